// SPDX-License-Identifier: Apache-2.0

package media

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// The charset library recognises Latin text in the Western European charset only,
// and no Arabic. The other charsets are recognised here by the letters of each
// language: in a wrong charset they become letters of other languages, or symbols
// inside of words.

// A language has the non-ASCII letters of its texts in lower case, and a weight for
// ties.
type language struct {
	letters string
	weight  float64
}

// A latinCharset is a charset and its languages.
type latinCharset struct {
	charset   string
	table     *charmap.Charmap
	languages []language
}

// latinCharsets returns the charsets; of equal ones the first wins.
func latinCharsets() [5]latinCharset {
	return [...]latinCharset{
		{"windows-1252", charmap.Windows1252, []language{
			{"éèêëàâæçîïôœùûüÿ", 1},
			{"äöüßé", 1},
			{"áéíñóúüªº", 1},
			{"áâãàçéêíóôõúªº", 1},
			{"àèéìíòóù", 1},
			{"åäöé", 1},
			{"æøåéó", 1},
			{"ëïéèöüóá", 1},
			{"áæðéíóöúýþ", 0.95},
			{"äõöüšž", 0.95},
		}},
		{"windows-1250", charmap.Windows1250, eastern()},
		{"iso-8859-2", charmap.ISO8859_2, eastern()},
		{"windows-1254", charmap.Windows1254, []language{{"çğıöşüâîû", 0.98}}},
		{"windows-1257", charmap.Windows1257, []language{{"ąčęėįšųūž", 0.97}, {"āčēģīķļņšūž", 0.97}, {"äõöüšž", 0.94}}},
	}
}

func eastern() []language {
	return []language{
		{"ąćęłńóśźż", 0.99}, {"áčďéěíňóřšťúůýž", 0.99}, {"áäčďéíĺľňóôŕšťúýž", 0.98}, {"áéíóöőúüű", 0.99}, {"ăâîşţ", 0.98}, {"čćđšž", 0.98},
	}
}

// leastLatin is the least share of letters that must belong to the language.
const leastLatin = 0.9

// guessLatin returns the charset of text in Latin letters, which is mostly ASCII; ""
// for other text or without a match.
func guessLatin(sample []byte) (charset string, confidence float64) {
	var ascii, high int
	for _, c := range sample {
		switch {
		case c >= utf8.RuneSelf:
			high++
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			ascii++
		}
	}
	if ascii < 2*high {
		return "", 0
	}
	for _, p := range latinCharsets() {
		if fit := p.fit(sample); fit > confidence && fit >= leastLatin {
			charset, confidence = p.charset, fit
		}
	}
	return charset, 0.9 * confidence
}

// fit returns the share of non-ASCII letters that belong to the best language of the
// page, less implausible characters.
func (p latinCharset) fit(sample []byte) float64 {
	var counts [16]int
	var letters, odd int
	var before rune
	for i, c := range sample {
		r := p.table.DecodeByte(c)
		switch {
		case c < utf8.RuneSelf:
		case r == utf8.RuneError, isControl(r):
			return 0
		case unicode.IsLetter(r):
			letters++
			lower := unicode.ToLower(r)
			for n, l := range p.languages {
				if strings.ContainsRune(l.letters, lower) {
					counts[n]++
				}
			}
			if lower != r && unicode.IsLower(before) {
				odd++
			}
		case unicode.IsLetter(before) && i+1 < len(sample) && unicode.IsLetter(p.table.DecodeByte(sample[i+1])) && !strings.ContainsRune("’‘·\u00AD–—", r):
			odd++ // a symbol inside of a word
		}
		before = r
	}
	best := 0.0
	for n, l := range p.languages {
		best = max(best, l.weight*float64(counts[n]))
	}
	if letters == 0 {
		return 0
	}
	return (best - float64(odd)) / float64(letters)
}

// isArabic reports whether sample in windows-1256 is Arabic.
func isArabic(sample []byte) bool {
	var arabic, high int
	for _, c := range sample {
		if c < utf8.RuneSelf {
			continue
		}
		high++
		switch r := charmap.Windows1256.DecodeByte(c); {
		case r >= 0x0620 && r <= 0x0652, r == '،', r == '؛', r == '؟':
			arabic++
		case r == utf8.RuneError:
			return false
		}
	}
	return high >= 16 && arabic*100 >= high*97
}

// isUkrainian reports whether sample in koi8-r has box-drawing characters inside of
// words, which are letters in koi8-u.
func isUkrainian(sample []byte) bool {
	var letters, others int
	for i, c := range sample {
		switch c {
		case 0xA4, 0xA6, 0xA7, 0xAD, 0xB4, 0xB6, 0xB7, 0xBD:
			if i > 0 && sample[i-1] >= 0xC0 || i+1 < len(sample) && sample[i+1] >= 0xC0 {
				letters++
			}
		default:
			if c >= 0x80 && c < 0xC0 && c != 0xA3 && c != 0xB3 { // ё and Ё
				others++
			}
		}
	}
	return letters > others
}
