// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// A pdfFont turns the codes of a font into text and widths.
type pdfFont struct {
	composite    bool
	unicode      *cmap // what the document says about its codes
	codes        *cmap // of a composite font: how long codes are
	legacy       encoding.Encoding
	utf16        bool
	simple       [256]string
	widths       map[int]float64 // thousandths of the size
	missing      float64
	bold, italic bool
	mono         bool
}

// A glyph is one code that was shown.
type glyph struct {
	text  string // "": unknown
	width float64
	space bool // code 32 of a simple font, which word spacing applies to
}

func (f *pdfFile) font(o any) *pdfFont {
	ref, isRef := o.(pdfRef)
	if isRef {
		if known, ok := f.fonts[ref]; ok {
			return known
		}
	}
	font := f.readFont(f.dict(o))
	if isRef && len(f.fonts) < 5000 {
		f.fonts[ref] = font
	}
	return font
}

func (f *pdfFile) readFont(d pdfDict) *pdfFont {
	font := &pdfFont{widths: map[int]float64{}, missing: -1}
	base := f.name(d["BaseFont"])
	if s, ok := f.get(d["ToUnicode"]).(*pdfStream); ok {
		font.unicode = f.cmap(s, d["ToUnicode"])
	}
	descriptor := f.dict(d["FontDescriptor"])
	if f.name(d["Subtype"]) == "Type0" {
		descriptor = f.readComposite(font, d)
	} else {
		f.readSimple(font, d, descriptor, base)
	}
	flags, _ := f.get(descriptor["Flags"]).(int)
	weight, _ := f.num(descriptor["FontWeight"])
	lower := strings.ToLower(base)
	font.bold = strings.Contains(lower, "bold") || strings.Contains(lower, "black") || strings.Contains(lower, "heavy") || weight >= 600 || flags&(1<<18) != 0
	font.italic = strings.Contains(lower, "italic") || strings.Contains(lower, "oblique") || flags&(1<<6) != 0
	font.mono = isMono(lower) || strings.HasSuffix(lower, "mono") || strings.Contains(lower, "mono-") || flags&1 != 0 && !font.composite
	return font
}

// readComposite reads a font whose codes have several bytes, and returns its
// descriptor.
func (f *pdfFile) readComposite(font *pdfFont, d pdfDict) pdfDict {
	font.composite, font.missing = true, 1000
	var descendant pdfDict
	if l := f.list(d["DescendantFonts"]); len(l) > 0 {
		descendant = f.dict(l[0])
	}
	if s, ok := f.get(d["Encoding"]).(*pdfStream); ok {
		font.codes = f.cmap(s, d["Encoding"])
	}
	name := f.name(d["Encoding"])
	switch {
	case strings.HasPrefix(name, "Uni"):
		font.utf16 = true
	case strings.HasPrefix(name, "GB"):
		font.legacy = simplifiedchinese.GB18030
	case strings.Contains(name, "RKSJ"):
		font.legacy = japanese.ShiftJIS
	case strings.HasPrefix(name, "EUC-"):
		font.legacy = japanese.EUCJP
	case strings.HasPrefix(name, "B5"), strings.HasPrefix(name, "ETen"), strings.HasPrefix(name, "HKscs"):
		font.legacy = traditionalchinese.Big5
	case strings.HasPrefix(name, "KSC"):
		font.legacy = korean.EUCKR
	}
	if w, ok := f.num(descendant["DW"]); ok {
		font.missing = w
	}
	w := f.list(descendant["W"])
	for i := 0; i+1 < len(w) && len(font.widths) < 1<<17; {
		first, _ := f.num(w[i])
		if list, ok := f.get(w[i+1]).([]any); ok {
			for k, v := range list {
				if n, ok := f.num(v); ok {
					font.widths[int(first)+k] = n
				}
			}
			i += 2
			continue
		}
		if i+2 >= len(w) {
			break
		}
		last, _ := f.num(w[i+1])
		n, _ := f.num(w[i+2])
		for c := int(first); c <= int(last) && c < 1<<16 && len(font.widths) < 1<<17; c++ {
			font.widths[c] = n
		}
		i += 3
	}
	return f.dict(descendant["FontDescriptor"])
}

func (f *pdfFile) readSimple(font *pdfFont, d, descriptor pdfDict, base string) {
	var differences []any
	name := f.name(d["Encoding"])
	if e := f.dict(d["Encoding"]); e != nil {
		name = f.name(e["BaseEncoding"])
		differences = f.list(e["Differences"])
	}
	flags, _ := f.get(descriptor["Flags"]).(int)
	symbolic := flags&4 != 0
	for c := range 256 {
		switch {
		case name == "MacRomanEncoding":
			font.simple[c] = string(charmap.Macintosh.DecodeByte(byte(c)))
		case name == "WinAnsiEncoding", f.name(d["Subtype"]) == "TrueType" && !symbolic:
			font.simple[c] = string(charmap.Windows1252.DecodeByte(byte(c)))
		case symbolic && name == "" && font.unicode == nil && differences == nil && c >= 0x80:
			font.simple[c] = "" // its own signs
		default:
			font.simple[c] = standard()[c]
		}
		if r, _ := utf8.DecodeRuneInString(font.simple[c]); r < 0x20 || r == utf8.RuneError || r >= 0x7F && r < 0xA0 {
			font.simple[c] = ""
		}
	}
	if strings.Contains(base, "Symbol") || strings.Contains(base, "Dingbats") {
		for c := range 256 {
			font.simple[c] = symbol(c, strings.Contains(base, "Symbol"))
		}
	}
	code := 0
	for _, o := range differences {
		switch v := f.get(o).(type) {
		case int:
			code = v
		case pdfName:
			if code >= 0 && code < 256 {
				font.simple[code] = glyphText(string(v))
			}
			code++
		}
	}
	first, _ := f.get(d["FirstChar"]).(int)
	scale := 1.0
	if m := f.list(d["FontMatrix"]); len(m) == 6 { // of a Type 3 font
		if a, ok := f.num(m[0]); ok && a > 1e-6 && a < 10 {
			scale = a * 1000
		}
	}
	for i, w := range f.list(d["Widths"]) {
		if n, ok := f.num(w); ok && i < 256 {
			font.widths[first+i] = n * scale
		}
	}
	if n, ok := f.num(descriptor["MissingWidth"]); ok && len(font.widths) > 0 {
		font.missing = n
	}
}

// decode returns the glyphs of a string.
func (font *pdfFont) decode(s string) []glyph {
	var glyphs []glyph
	if !font.composite {
		for i := range len(s) {
			c := int(s[i])
			text := font.simple[c]
			if t, ok := font.unicode.lookup(uint32(c), 1); ok {
				text = t
			}
			w, ok := font.widths[c]
			if !ok {
				if w = font.missing; w < 0 {
					w = guessWidth(text, font.mono)
				}
			}
			glyphs = append(glyphs, glyph{text, w, c == ' '})
		}
		return glyphs
	}
	for len(s) > 0 {
		n := font.codeLength(s)
		code := uint32(0)
		for i := range n {
			code = code<<8 | uint32(s[i])
		}
		text, ok := font.unicode.lookup(code, n)
		if !ok {
			text = font.legacyText(s[:n])
		}
		w, ok := font.widths[int(code)]
		if !ok {
			w = font.missing
		}
		if font.legacy != nil && n == 1 {
			w = 500
		}
		glyphs = append(glyphs, glyph{text, w, false})
		s = s[n:]
	}
	return glyphs
}

func (font *pdfFont) codeLength(s string) int {
	n := 2
	switch {
	case font.codes != nil:
		n = font.codes.length(s)
	case font.legacy != nil && (s[0] < 0x80 || font.legacy == japanese.ShiftJIS && s[0] >= 0xA1 && s[0] <= 0xDF):
		n = 1
	case font.utf16 && len(s) >= 4 && s[0] >= 0xD8 && s[0] <= 0xDB:
		n = 4
	}
	return min(n, len(s))
}

func (font *pdfFont) legacyText(s string) string {
	switch {
	case font.utf16:
		return utf16BE(s)
	case font.legacy != nil:
		if t, err := font.legacy.NewDecoder().String(s); err == nil && !strings.ContainsRune(t, utf8.RuneError) {
			return t
		}
	}
	return ""
}

func utf16BE(s string) string {
	units := make([]uint16, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		units = append(units, uint16(s[i])<<8|uint16(s[i+1]))
	}
	return string(utf16.Decode(units))
}

// pdfText decodes a string for people, such as a title.
func pdfText(s pdfString) string {
	switch {
	case strings.HasPrefix(string(s), "\xFE\xFF"):
		return utf16BE(string(s[2:]))
	case strings.HasPrefix(string(s), "\xEF\xBB\xBF"):
		return string(s[3:])
	}
	t, err := charmap.Windows1252.NewDecoder().String(string(s))
	if err != nil {
		return ""
	}
	return t
}

// guessWidth is the width of a letter of a font that every viewer has, about.
func guessWidth(text string, mono bool) float64 {
	switch r, _ := utf8.DecodeRuneInString(text); {
	case mono:
		return 600
	case strings.ContainsRune("ijl.,:;!|'", r):
		return 250
	case strings.ContainsRune(" ftr()[]/I-", r):
		return 300
	case strings.ContainsRune("mwMW@%", r):
		return 850
	case r >= 'A' && r <= 'Z':
		return 690
	}
	return 540
}
