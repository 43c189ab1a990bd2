// SPDX-License-Identifier: Apache-2.0

package token

import (
	"sync"
	"unicode"
)

// The character classes of the splitting expressions.
const (
	upper   uint8 = 1 << iota // Lu, Lt
	lower                     // Ll
	uncased                   // Lm, Lo
	mark                      // M
	number                    // N
	space                     // White_Space
	newline                   // \r and \n, which are space as well

	letter = upper | lower | uncased
	word   = letter | mark
)

// pageSize is how many characters share an entry of the first stage.
const pageSize = 1 << 8

// A classes maps every character to its class: a byte each for ASCII, otherwise
// a two-stage table in which equal pages are stored once.
type classes struct {
	ascii [128]uint8
	index [(unicode.MaxRune + 1) / pageSize]uint16
	pages [][pageSize]uint8
}

// classTable is built with the first vocabulary; it takes some tens of
// kilobytes.
var classTable = sync.OnceValue(func() *classes {
	all := make([]uint8, unicode.MaxRune+1)
	for class, tables := range map[uint8][]*unicode.RangeTable{
		upper:   {unicode.Lu, unicode.Lt},
		lower:   {unicode.Ll},
		uncased: {unicode.Lm, unicode.Lo},
		mark:    {unicode.M},
		number:  {unicode.N},
		space:   {unicode.White_Space},
	} {
		for _, t := range tables {
			add(all, t, class)
		}
	}
	all['\r'] |= newline
	all['\n'] |= newline

	t := &classes{}
	copy(t.ascii[:], all)
	known := make(map[[pageSize]uint8]uint16)
	for i := range t.index {
		page := [pageSize]uint8(all[i*pageSize:])
		n, ok := known[page]
		if !ok {
			n = uint16(len(t.pages))
			known[page] = n
			t.pages = append(t.pages, page)
		}
		t.index[i] = n
	}
	return t
})

func add(all []uint8, t *unicode.RangeTable, class uint8) {
	for _, r := range t.R16 {
		for c := int(r.Lo); c <= int(r.Hi); c += int(r.Stride) {
			all[c] |= class
		}
	}
	for _, r := range t.R32 {
		for c := int(r.Lo); c <= int(r.Hi); c += int(r.Stride) {
			all[c] |= class
		}
	}
}

// at returns the class and the width of the character at s[i], which is valid
// UTF-8. Past the end both are 0.
func (t *classes) at(s string, i int) (class uint8, width int) {
	if i >= len(s) {
		return 0, 0
	}
	if c := s[i]; c < 0x80 {
		return t.ascii[c], 1
	}
	return t.wide(s, i)
}

func (t *classes) wide(s string, i int) (class uint8, width int) {
	var r int
	switch c := s[i]; {
	case c < 0xE0:
		r, width = int(c&0x1F)<<6|int(s[i+1]&0x3F), 2
	case c < 0xF0:
		r, width = int(c&0x0F)<<12|int(s[i+1]&0x3F)<<6|int(s[i+2]&0x3F), 3
	default:
		r, width = int(c&0x07)<<18|int(s[i+1]&0x3F)<<12|int(s[i+2]&0x3F)<<6|int(s[i+3]&0x3F), 4
	}
	return t.pages[t.index[r/pageSize]][r%pageSize], width
}
