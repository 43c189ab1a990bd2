// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"strings"
	"sync"
)

// accents are the endings of glyph names and the marks they put on a letter.
var accents = map[string]string{
	"acute": "\u0301", "grave": "\u0300", "circumflex": "\u0302", "dieresis": "\u0308", "tilde": "\u0303",
	"caron": "\u030C", "ring": "\u030A", "cedilla": "\u0327", "ogonek": "\u0328", "macron": "\u0304",
	"breve": "\u0306", "dotaccent": "\u0307", "hungarumlaut": "\u030B", "commaaccent": "\u0326", "dot": "\u0307",
}

// glyphNames are the names of glyphs that say neither a letter nor a number.
var glyphNames = sync.OnceValue(func() map[string]string { return nameTable(glyphRows) })

const glyphRows = `
space:20 exclam:21 quotedbl:22 numbersign:23 dollar:24 percent:25 ampersand:26 quotesingle:27 parenleft:28 parenright:29
asterisk:2A plus:2B comma:2C hyphen:2D period:2E slash:2F zero:30 one:31 two:32 three:33 four:34 five:35 six:36 seven:37
eight:38 nine:39 colon:3A semicolon:3B less:3C equal:3D greater:3E question:3F at:40 bracketleft:5B backslash:5C
bracketright:5D asciicircum:5E underscore:5F grave:60 braceleft:7B bar:7C braceright:7D asciitilde:7E nbspace:A0
exclamdown:A1 cent:A2 sterling:A3 currency:A4 yen:A5 brokenbar:A6 section:A7 dieresis:A8 copyright:A9 ordfeminine:AA
guillemotleft:AB logicalnot:AC registered:AE macron:AF degree:B0 plusminus:B1 twosuperior:B2 threesuperior:B3 acute:B4
mu:B5 paragraph:B6 periodcentered:B7 middot:B7 cedilla:B8 onesuperior:B9 ordmasculine:BA guillemotright:BB onequarter:BC
onehalf:BD threequarters:BE questiondown:BF AE:C6 Eth:D0 multiply:D7 Oslash:D8 Thorn:DE germandbls:DF ae:E6 eth:F0
divide:F7 oslash:F8 thorn:FE dotlessi:131 dotlessj:237 Lslash:141 lslash:142 OE:152 oe:153 Dcroat:110 dcroat:111 Hbar:126
hbar:127 Eng:14A eng:14B florin:192 circumflex:2C6 caron:2C7 breve:2D8 dotaccent:2D9 ring:2DA ogonek:2DB tilde:2DC
hungarumlaut:2DD endash:2013 emdash:2014 quoteleft:2018 quoteright:2019 quotesinglbase:201A quotedblleft:201C
quotedblright:201D quotedblbase:201E dagger:2020 daggerdbl:2021 bullet:2022 ellipsis:2026 perthousand:2030
guilsinglleft:2039 guilsinglright:203A fraction:2044 Euro:20AC euro:20AC trademark:2122 minus:2212 sfthyphen:AD
Alpha:391 Beta:392 Gamma:393 Delta:394 Epsilon:395 Zeta:396 Eta:397 Theta:398 Iota:399 Kappa:39A Lambda:39B Mu:39C Nu:39D
Xi:39E Omicron:39F Pi:3A0 Rho:3A1 Sigma:3A3 Tau:3A4 Upsilon:3A5 Phi:3A6 Chi:3A7 Psi:3A8 Omega:3A9 alpha:3B1 beta:3B2
gamma:3B3 delta:3B4 epsilon:3B5 epsilon1:3F5 zeta:3B6 eta:3B7 theta:3B8 theta1:3D1 iota:3B9 kappa:3BA lambda:3BB nu:3BD
xi:3BE omicron:3BF pi:3C0 rho:3C1 sigma:3C3 sigma1:3C2 tau:3C4 upsilon:3C5 phi:3C6 phi1:3D5 chi:3C7 psi:3C8 omega:3C9
summation:2211 product:220F radical:221A infinity:221E integral:222B approxequal:2248 notequal:2260 equivalence:2261
lessequal:2264 greaterequal:2265 partialdiff:2202 gradient:2207 element:2208 notelement:2209 union:222A intersection:2229
propersubset:2282 reflexsubset:2286 logicaland:2227 logicalor:2228 universal:2200 existential:2203 emptyset:2205
arrowleft:2190 arrowup:2191 arrowright:2192 arrowdown:2193 arrowboth:2194 arrowdblright:21D2 arrowdblleft:21D0
arrowdblboth:21D4 similar:223C congruent:2245 proportional:221D therefore:2234 perpendicular:22A5 angle:2220 asteriskmath:2217
dotmath:22C5 circleplus:2295 circlemultiply:2297 lozenge:25CA heart:2665 spade:2660 club:2663 diamond:2666 prime:2032
minute:2032 second:2033 bulletop:2219 periodinferior:2E checkmark:2713 angbracketleft:27E8 angbracketright:27E9 ell:2113
visiblespace:2423 quoteright:2019 a19:2713 a20:2714 a21:2715 a22:2716 a71:25CF a73:25A0 a70:25B3 a161:2192 a35:2605
`

func nameTable(rows string) map[string]string {
	m := map[string]string{"ff": "ff", "fi": "fi", "fl": "fl", "ffi": "ffi", "ffl": "ffl", "st": "st", "ct": "ct"}
	for row := range strings.FieldsSeq(rows) {
		name, hex, _ := strings.Cut(row, ":")
		m[name] = hexText(hex, len(hex))
	}
	return m
}

// standardHigh are the names of Adobe's standard encoding from 0xA1 on, "." for none.
const standardHigh = `exclamdown cent sterling fraction yen florin section currency quotesingle quotedblleft guillemotleft
guilsinglleft guilsinglright fi fl . endash dagger daggerdbl periodcentered . paragraph bullet quotesinglbase quotedblbase
quotedblright guillemotright ellipsis perthousand . questiondown . grave acute circumflex tilde macron breve dotaccent
dieresis . ring cedilla . hungarumlaut ogonek caron emdash . . . . . . . . . . . . . . . . AE . ordfeminine . . . . Lslash
Oslash OE ordmasculine . . . . . ae . . . dotlessi . . lslash oslash oe germandbls . . . .`

// standard is the text of every code in Adobe's standard encoding.
var standard = sync.OnceValue(func() *[256]string {
	var t [256]string
	for c := 0x20; c < 0x7F; c++ {
		t[c] = string(rune(c))
	}
	t['\''], t['`'] = "’", "‘"
	for i, name := range strings.Fields(standardHigh) {
		t[0xA1+i] = glyphText(name)
	}
	return &t
})

// The letters of the font Symbol, "." for none, and of its signs from 0xA1 on
// those that text uses.
const (
	symbolLetters = "!∀#∃%&∍()∗+,−./0123456789:;<=>?≅ΑΒΧ∆ΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"
	symbolSigns   = "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑"
)

// symbol returns the text of a code in the fonts Symbol and Zapf Dingbats.
func symbol(c int, greek bool) string {
	if !greek {
		switch c {
		case 0x20:
			return " "
		case 0x33, 0x34:
			return "✓"
		case 0x35, 0x36, 0x37, 0x38:
			return "✗"
		case 0x6C:
			return "●"
		case 0x6E, 0xA7:
			return "■"
		case 0x6F, 0x71:
			return "❑"
		case 0xB7:
			return "•"
		}
		return ""
	}
	letters, signs := []rune(symbolLetters), []rune(symbolSigns)
	switch {
	case c == ' ':
		return " "
	case c >= 0x21 && c-0x21 < len(letters):
		return string(letters[c-0x21])
	case c >= 0xA1 && c-0xA1 < len(signs):
		return string(signs[c-0xA1])
	}
	return ""
}
