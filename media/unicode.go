// SPDX-License-Identifier: Apache-2.0

package media

import (
	"bytes"
	"unicode/utf8"
)

// A textVerdict names the charset of text; the zero value says "not text".
type textVerdict struct {
	charset    string
	confidence float64
	guessed    bool // not certain by the bytes
}

// A utf8Check validates UTF-8 piece by piece.
type utf8Check struct {
	bad     bool
	wide    bool              // a multi-byte character occurred
	pending [utf8.UTFMax]byte // a character cut by the end of a piece
	n       int
}

func (c *utf8Check) feed(p []byte) {
	if c.bad {
		return
	}
	for c.n > 0 && len(p) > 0 {
		c.pending[c.n] = p[0]
		c.n++
		p = p[1:]
		if !utf8.FullRune(c.pending[:c.n]) {
			continue
		}
		r, size := utf8.DecodeRune(c.pending[:c.n])
		c.bad = r == utf8.RuneError && size == 1
		c.n, c.wide = 0, c.wide || size > 1
		if c.bad {
			return
		}
	}
	cut := cutRune(p)
	whole := p[:len(p)-cut]
	c.wide = c.wide || firstHigh(whole) >= 0
	if c.bad = !utf8.Valid(whole); !c.bad && cut > 0 {
		c.n = copy(c.pending[:], p[len(p)-cut:])
	}
}

func (c *utf8Check) valid() bool { return !c.bad && c.n == 0 }

// cut reports valid UTF-8 with a truncated last character.
func (c *utf8Check) cut() bool { return !c.bad && c.n > 0 && c.wide }

// cutRune returns the length of a truncated character at the end of p.
func cutRune(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if b := p[len(p)-n]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(p[len(p)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// A utf16Check validates UTF-16 of one byte order piece by piece and counts plausible
// characters.
type utf16Check struct {
	bigEndian bool
	marked    bool // there is a byte order mark, so that all characters are allowed
	bad       bool
	half      int // a single byte waiting for its partner, plus one
	high      bool
	units     int64
	plausible int64
	ascii     int64
	bytes     int64 // printable ASCII
}

func (c *utf16Check) feed(p []byte) {
	for i := 0; i < len(p) && !c.bad; i++ {
		if c.half == 0 {
			c.half = int(p[i]) + 1
			continue
		}
		unit := rune(c.half-1)<<8 | rune(p[i])
		if !c.bigEndian {
			unit = rune(p[i])<<8 | rune(c.half-1)
		}
		c.half = 0
		c.take(unit)
	}
}

func (c *utf16Check) take(unit rune) {
	c.units++
	for _, b := range [...]rune{unit & 0xFF, unit >> 8} {
		switch {
		case b >= 0x7F:
		case b >= 0x20, b == '\t', b == '\n', b == '\r':
			c.bytes++
		}
	}
	switch {
	case unit >= 0xD800 && unit < 0xDC00:
		c.bad = c.high
		c.high = true
	case unit >= 0xDC00 && unit < 0xE000:
		c.bad = !c.high
		c.high = false
		c.plausible += 2
	case c.high, unit >= 0xFFFE, isControl(unit):
		c.bad = true
	case unit < 0x7F:
		c.ascii++
		c.plausible++
	case usual(unit):
		c.plausible++
	}
	if c.units == 16 && !c.marked && c.plausible < 12 { // fail early
		c.bad = true
	}
}

// usual reports the blocks expected in text without a byte order mark. They cover
// half of all 16-bit values, so that other bytes fall below the threshold quickly.
func usual(r rune) bool {
	switch {
	case r < 0xA0:
		return false
	case r <= 0x06FF: // Latin, Greek, Cyrillic, Armenian, Hebrew, Arabic
	case r >= 0x0900 && r <= 0x109F: // scripts of India, Thai, Lao, Tibetan, Burmese
	case r >= 0x10A0 && r <= 0x10FF, r >= 0x1200 && r <= 0x13FF, r >= 0x1780 && r <= 0x17FF: // Georgian, Ethiopic, Khmer
	case r >= 0x1E00 && r <= 0x22FF: // more Latin and Greek, punctuation, symbols
	case r >= 0x2500 && r <= 0x27BF: // boxes, dingbats
	case r >= 0x3000 && r <= 0x31FF, r >= 0x4E00 && r <= 0x9FFF: // kana, Han
	case r >= 0xAC00 && r <= 0xD7A3: // Hangul
	case r == 0xFEFF, r >= 0xFF00: // full width
	default:
		return false
	}
	return true
}

func (c *utf16Check) valid() bool { return !c.bad && c.half == 0 && !c.high }

// judgeUTF16 chooses between the byte orders. Without a mark, at least two
// characters are needed, nearly all of them plausible.
func judgeUTF16(checks *[2]utf16Check, bom bool) textVerdict {
	var best *utf16Check
	for i := range checks {
		c := &checks[i]
		// Nearly all pairs of ASCII letters are Han as UTF-16, so that ASCII with
		// a stray NUL would pass for Chinese; of the bytes of real text in any
		// script, more than a tenth are none of ASCII.
		if !c.valid() || !bom && (c.units < 2 || c.ascii == 0 || c.plausible*100 < c.units*97 || c.bytes*100 > 2*c.units*92) {
			continue
		}
		if best == nil || c.plausible > best.plausible || c.plausible == best.plausible && c.ascii > best.ascii {
			best = c
		}
	}
	if best == nil {
		return textVerdict{}
	}
	v := textVerdict{charset: "utf-16le", confidence: 0.9, guessed: !bom}
	if best.bigEndian {
		v.charset = "utf-16be"
	}
	if bom {
		v.confidence = 1
	}
	return v
}

// hasUTF16BOM reports a mark of either order. The wrong order reads it as
// U+FFFE, which is no character.
func hasUTF16BOM(head []byte) bool {
	return len(head) >= 2 && (head[0] == 0xFF && head[1] == 0xFE || head[0] == 0xFE && head[1] == 0xFF)
}

// A utf32Check validates UTF-32 with a byte order mark piece by piece.
type utf32Check struct {
	bigEndian bool
	bad       bool
	unit      [4]byte
	n         int
}

// startUTF32 returns a check of the byte order that head begins with, or nil.
func startUTF32(head []byte) *utf32Check {
	switch string(head[:4]) {
	case "\xFF\xFE\x00\x00":
		return new(utf32Check)
	case "\x00\x00\xFE\xFF":
		return &utf32Check{bigEndian: true}
	}
	return nil
}

func (c *utf32Check) feed(p []byte) {
	for i := 0; i < len(p) && !c.bad; i++ {
		c.unit[c.n] = p[i]
		if c.n++; c.n < len(c.unit) {
			continue
		}
		c.n = 0
		u := c.unit
		if c.bigEndian {
			u = [4]byte{u[3], u[2], u[1], u[0]}
		}
		r := rune(u[0]) | rune(u[1])<<8 | rune(u[2])<<16 | rune(u[3])<<24
		c.bad = !utf8.ValidRune(r) || isControl(r)
	}
}

func (c *utf32Check) valid() bool { return !c.bad && c.n == 0 }

func (c *utf32Check) name() string {
	if c.bigEndian {
		return "utf-32be"
	}
	return "utf-32le"
}

// hasShift reports an escape sequence with which ISO-2022-JP begins Japanese.
func hasShift(b []byte) bool {
	for {
		i := bytes.IndexByte(b, 0x1B)
		if i < 0 || len(b) < i+3 {
			return false
		}
		if b[i+1] == '$' && (b[i+2] == 'B' || b[i+2] == '@') {
			return true
		}
		b = b[i+1:]
	}
}

// isControl reports control characters that no text of an old charset or of
// UTF-16 has: all but backspace to carriage return, escape and next line.
func isControl(r rune) bool {
	return r < 0x20 && (r < '\b' || r > '\r') && r != 0x1B || r >= 0x7F && r < 0xA0 && r != 0x85
}
