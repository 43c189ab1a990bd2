// SPDX-License-Identifier: Apache-2.0

package scrub

// Classes of base64 characters.
const (
	plainChar = 1 << iota // a letter or digit
	stdChar               // + or /
	urlChar               // - or _
)

// classes holds the class of each byte; 0: no base64 character.
var classes = [256]byte{
	'+': stdChar, '/': stdChar, '-': urlChar, '_': urlChar,
	'0': plainChar, '1': plainChar, '2': plainChar, '3': plainChar, '4': plainChar, '5': plainChar, '6': plainChar, '7': plainChar, '8': plainChar, '9': plainChar,
	'A': plainChar, 'B': plainChar, 'C': plainChar, 'D': plainChar, 'E': plainChar, 'F': plainChar, 'G': plainChar, 'H': plainChar, 'I': plainChar,
	'J': plainChar, 'K': plainChar, 'L': plainChar, 'M': plainChar, 'N': plainChar, 'O': plainChar, 'P': plainChar, 'Q': plainChar, 'R': plainChar,
	'S': plainChar, 'T': plainChar, 'U': plainChar, 'V': plainChar, 'W': plainChar, 'X': plainChar, 'Y': plainChar, 'Z': plainChar,
	'a': plainChar, 'b': plainChar, 'c': plainChar, 'd': plainChar, 'e': plainChar, 'f': plainChar, 'g': plainChar, 'h': plainChar, 'i': plainChar,
	'j': plainChar, 'k': plainChar, 'l': plainChar, 'm': plainChar, 'n': plainChar, 'o': plainChar, 'p': plainChar, 'q': plainChar, 'r': plainChar,
	's': plainChar, 't': plainChar, 'u': plainChar, 'v': plainChar, 'w': plainChar, 'x': plainChar, 'y': plainChar, 'z': plainChar,
}

// sextets holds the value of each base64 character plus one; 0: none.
var sextets = [256]byte{
	'A': 1, 'B': 2, 'C': 3, 'D': 4, 'E': 5, 'F': 6, 'G': 7, 'H': 8, 'I': 9, 'J': 10, 'K': 11, 'L': 12, 'M': 13,
	'N': 14, 'O': 15, 'P': 16, 'Q': 17, 'R': 18, 'S': 19, 'T': 20, 'U': 21, 'V': 22, 'W': 23, 'X': 24, 'Y': 25, 'Z': 26,
	'a': 27, 'b': 28, 'c': 29, 'd': 30, 'e': 31, 'f': 32, 'g': 33, 'h': 34, 'i': 35, 'j': 36, 'k': 37, 'l': 38, 'm': 39,
	'n': 40, 'o': 41, 'p': 42, 'q': 43, 'r': 44, 's': 45, 't': 46, 'u': 47, 'v': 48, 'w': 49, 'x': 50, 'y': 51, 'z': 52,
	'0': 53, '1': 54, '2': 55, '3': 56, '4': 57, '5': 58, '6': 59, '7': 60, '8': 61, '9': 62,
	'+': 63, '-': 63, '/': 64, '_': 64,
}

// span returns the number of base64 characters at the beginning of b, and their
// classes.
func span(b []byte) (n int, kinds byte) {
	for n+4 <= len(b) {
		c0, c1, c2, c3 := classes[b[n]], classes[b[n+1]], classes[b[n+2]], classes[b[n+3]]
		if c0 == 0 || c1 == 0 || c2 == 0 || c3 == 0 {
			break
		}
		kinds |= c0 | c1 | c2 | c3
		n += 4
	}
	for n < len(b) && classes[b[n]] != 0 {
		kinds |= classes[b[n]]
		n++
	}
	return n, kinds
}

// A char is one character of a text, after resolving escapes.
type char byte

// The special characters. Base64 characters stand for themselves.
const (
	charMore  char = 0    // not enough text
	charEnd   char = 1    // the end of the text
	charOther char = 2    // anything else
	charBreak char = '\n' // a line break
	charSpace char = ' '  // a space or tab
	charPad   char = '='  // padding
	charQuote char = '"'  // a double quote, at any depth of escapes
)

// charAt returns the character at an offset and its width in bytes. It resolves
// nested JSON escapes and, in URIs, percent signs and HTML character references.
func (w *window) charAt(at int, uri bool) (s char, width int) {
	if !w.need(at + 1) {
		return charEnd, 0
	}
	c := w.buf[w.pos+at]
	if classes[c] != 0 {
		return char(c), 1
	}
	switch c {
	case '=', ' ', '"':
		return char(c), 1
	case '\t':
		return charSpace, 1
	case '\n', '\r':
		return charBreak, 1
	case '\\':
		return w.escape(at)
	case '%':
		if uri && w.need(at+3) {
			return known(hexByte(w.buf[w.pos+at+1:]), 3)
		}
	case '&':
		if uri {
			return w.reference(at)
		}
	}
	return charOther, 1
}

// maxEscape limits the backslashes of one escape; ten nested strings need fewer.
const maxEscape = 1 << 11

// backslashes counts the backslashes at an offset.
func (w *window) backslashes(at int) int {
	n := 0
	for n < maxEscape && w.need(at+n+1) && w.buf[w.pos+at+n] == '\\' {
		n++
	}
	return n
}

func (w *window) escape(at int) (char, int) {
	n := w.backslashes(at)
	if !w.need(at + n + 1) {
		return charOther, 1
	}
	switch c := w.buf[w.pos+at+n]; c {
	case '/':
		return '/', n + 1
	case '"':
		return charQuote, n + 1
	case 'n', 'r':
		return charBreak, n + 1
	case 't':
		return charSpace, n + 1
	case 'u':
		if w.need(at+n+5) && w.buf[w.pos+at+n+1] == '0' && w.buf[w.pos+at+n+2] == '0' {
			return known(hexByte(w.buf[w.pos+at+n+3:]), n+5)
		}
	}
	return charOther, 1
}

// known returns the character of an escape; charOther if it does not matter.
func known(c int, width int) (char, int) {
	switch {
	case c < 0:
	case c == '\r', c == '\n':
		return charBreak, width
	case c == '\t':
		return charSpace, width
	case c == '=', c == ' ', classes[byte(c)] != 0:
		return char(c), width
	case c == '"':
		return charQuote, width
	}
	return charOther, 1
}

func (w *window) reference(at int) (char, int) {
	w.need(at + 6)
	b := w.buf[w.pos+at : min(w.end, w.pos+at+6)]
	for _, r := range []struct {
		text string
		sign char
	}{
		{"&#43;", '+'},
		{"&#x2b;", '+'},
		{"&#x2B;", '+'},
		{"&plus;", '+'},
		{"&#47;", '/'},
		{"&#x2f;", '/'},
		{"&#x2F;", '/'},
		{"&sol;", '/'},
		{"&#61;", '='},
		{"&#x3d;", '='},
		{"&#x3D;", '='},
		{"&#34;", charQuote},
		{"&quot;", charQuote},
		{"&#10;", charBreak},
	} {
		if len(b) >= len(r.text) && string(b[:len(r.text)]) == r.text {
			return r.sign, len(r.text)
		}
	}
	return charOther, 1
}

// hexByte reads two hex digits; -1 if they are none.
func hexByte(b []byte) int {
	if len(b) < 2 {
		return -1
	}
	hi, lo := hexDigit(b[0]), hexDigit(b[1])
	if hi < 0 || lo < 0 {
		return -1
	}
	return hi<<4 | lo
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
