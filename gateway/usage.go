// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model/provider"
)

// A memberScanner finds one of the members of a JSON object that is written to it
// in pieces, and keeps its value. The object itself is not kept, so it may be of any
// size.
type memberScanner struct {
	names []string

	depth    int
	inString bool
	escaped  bool
	name     []byte // the last string at depth 1, as far as it is kept
	keeps    bool   // the bytes belong to the value
	found    string // the last member with one of the names
	value    []byte // of it
}

const (
	maxMemberName  = 32
	maxMemberValue = 16 << 10 // bytes; of a longer value nothing is kept
)

// Write implements [io.Writer].
func (s *memberScanner) Write(p []byte) (int, error) {
	for i := 0; i < len(p); i++ {
		c := p[i]
		if s.inString {
			if !s.escaped && !s.keeps && s.depth != 1 { // most bytes of an answer
				n := bytes.IndexAny(p[i:], `"\`)
				if n < 0 {
					break
				}
				i += n
				c = p[i]
			}
			s.string(c)
			continue
		}
		switch c {
		case '"':
			s.inString, s.name = true, s.name[:0]
		case '{', '[':
			s.depth++
		case '}', ']':
			if s.depth--; s.depth == 0 {
				s.keeps = false
			}
		case ':':
			if s.depth == 1 && slices.Contains(s.names, string(s.name)) {
				s.keeps, s.found, s.value = true, string(s.name), s.value[:0]
				continue
			}
		case ',':
			if s.depth == 1 {
				s.keeps = false
			}
		}
		s.keep(c)
	}
	return len(p), nil
}

// string takes a byte of a string.
func (s *memberScanner) string(c byte) {
	s.keep(c)
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.inString = false
		return
	}
	if s.depth == 1 && len(s.name) < maxMemberName {
		s.name = append(s.name, c)
	}
}

func (s *memberScanner) keep(c byte) {
	if s.keeps {
		if s.value = append(s.value, c); len(s.value) > maxMemberValue {
			s.keeps, s.value = false, nil
		}
	}
}

// usageMembers are the members of an answer that hold its usage, in all dialects.
var usageMembers = []string{"usage", "usageMetadata"}

// usageIn reads the usage that s has found.
func (s *memberScanner) usageIn(d provider.Editor) artel.Usage {
	if !gjson.ValidBytes(s.value) {
		return artel.Usage{}
	}
	usage, _ := d.CheckBody([]byte("{" + provider.QuoteJSON(s.found) + ":" + string(s.value) + "}"))
	return usage
}
