// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"encoding/json"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

// decodeChanges returns the changes of the row.
func (r *versionRow) decodeChanges() (changes []artel.Change, err error) {
	if r.changes == nil {
		return nil, nil
	}
	p := changesParser{rest: *r.changes}
	if changes, ok := p.changes(); ok {
		return changes, nil
	}
	err = json.Unmarshal([]byte(*r.changes), &changes)
	return changes, err
}

// A changesParser reads what encodeChanges writes, in a fraction of the time that
// encoding/json takes. It gives up at everything else, which encoding/json reads.
type changesParser struct{ rest string }

func (p *changesParser) changes() (changes []artel.Change, ok bool) {
	if !utf8.ValidString(p.rest) || !p.skip("[") {
		return nil, false
	}
	changes = []artel.Change{}
	if p.skip("]") {
		return changes, p.rest == ""
	}
	for {
		var c artel.Change
		var layer string
		ok := p.skip("{")
		if ok && p.skip(`"layer":`) {
			ok = p.text(&layer) && p.skip(",")
		}
		if !ok || !p.skip(`"start":`) || !p.number(&c.Start) || !p.skip(`,"end":`) || !p.number(&c.End) ||
			!p.skip(`,"old":`) || !p.text(&c.Old) || !p.skip(`,"new":`) || !p.text(&c.New) || !p.skip("}") {
			return nil, false
		}
		c.Layer = artel.Layer(layer)
		changes = append(changes, c)
		if p.skip("]") {
			return changes, p.rest == ""
		}
		if !p.skip(",") {
			return nil, false
		}
	}
}

func (p *changesParser) skip(prefix string) (ok bool) {
	p.rest, ok = strings.CutPrefix(p.rest, prefix)
	return ok
}

// number reads an integer of at most 18 digits.
func (p *changesParser) number(to *int) bool {
	n := 0
	for n < len(p.rest) && n < 18 && p.rest[n] >= '0' && p.rest[n] <= '9' {
		*to = *to*10 + int(p.rest[n]-'0')
		n++
	}
	if n == 0 || n > 1 && p.rest[0] == '0' {
		return false
	}
	p.rest = p.rest[n:]
	return true
}

// text reads a string.
func (p *changesParser) text(to *string) bool {
	if !p.skip(`"`) {
		return false
	}
	for i := range len(p.rest) {
		switch c := p.rest[i]; {
		case c == '"':
			*to = strings.Clone(p.rest[:i])
			p.rest = p.rest[i+1:]
			return true
		case c < ' ':
			return false
		case c == '\\':
			return p.escaped(to, i)
		}
	}
	return false
}

// escaped reads the rest of a string whose first escape is at i.
func (p *changesParser) escaped(to *string, i int) bool {
	b := append(make([]byte, 0, 2*i+16), p.rest[:i]...)
	for ; i < len(p.rest); i++ {
		c := p.rest[i]
		switch {
		case c == '"':
			*to = string(b)
			p.rest = p.rest[i+1:]
			return true
		case c < ' ':
			return false
		case c == '\\':
			i++
			if i == len(p.rest) {
				return false
			}
			switch c = p.rest[i]; c {
			case '"', '\\':
			case 'n':
				c = '\n'
			default:
				return false
			}
		}
		b = append(b, c)
	}
	return false
}

// encodeChanges does what encoding/json does, without escaping HTML, in a fifth of
// the time. The texts must be valid UTF-8.
func encodeChanges(changes []artel.Change) string {
	size := 2
	for _, c := range changes {
		size += 64 + len(c.Old) + len(c.New)
	}
	b := append(make([]byte, 0, size+size/16), '[')
	for i, c := range changes {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		if c.Layer != "" {
			b = append(appendJSON(append(b, `"layer":`...), string(c.Layer)), ',')
		}
		b = strconv.AppendInt(append(b, `"start":`...), int64(c.Start), 10)
		b = strconv.AppendInt(append(b, `,"end":`...), int64(c.End), 10)
		b = appendJSON(append(b, `,"old":`...), c.Old)
		b = appendJSON(append(b, `,"new":`...), c.New)
		b = append(b, '}')
	}
	return string(append(b, ']'))
}

// appendJSON appends s as a JSON string.
func appendJSON(b []byte, s string) []byte {
	b = append(b, '"')
	for {
		i := plainJSON(s)
		b = append(b, s[:i]...)
		if i == len(s) {
			return append(b, '"')
		}
		switch c := s[i]; c {
		case '\n':
			b = append(b, `\n`...)
		case '"', '\\':
			b = append(b, '\\', c)
		default:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		s = s[i+1:]
	}
}

// plainJSON returns the index of the first byte that a JSON string has with a
// backslash, or the length. It looks at eight bytes at a time.
func plainJSON(s string) int {
	const (
		ones = 0x0101010101010101
		tops = 0x80 * ones
	)
	i := 0
	for ; i+8 <= len(s); i += 8 {
		x := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		quote, slash := x^'"'*ones, x^'\\'*ones
		// A byte less than n has its highest bit set by the subtraction of n. Only bytes
		// after the first such one may have it by mistake.
		if m := ((x-' '*ones)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & tops; m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			break
		}
	}
	return i
}
