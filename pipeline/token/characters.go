// SPDX-License-Identifier: Apache-2.0

package token

import (
	"math/bits"
	"unicode/utf8"
)

// Merging starts with bytes, of which a Chinese character has three. Starting with
// characters is several times faster, and gives the same result if no token
// contains a part of a character and reaches across the boundary to another one:
// the bytes of a character are then merged only with one another, by lower ranks
// than those of any token that contains the character. Tokens that violate this
// are recorded when the vocabulary is loaded, by the bytes around the boundary.
// There are few, and a piece with such a boundary is merged from its bytes.

const boundaryBits = 16

// A boundaries records pairs of adjacent characters by the bytes around their
// boundary.
type boundaries struct {
	near [1 << 10]uint64                 // by the last byte and the first
	far  [1 << (boundaryBits - 6)]uint64 // by the hash of up to two bytes on either side
}

// boundaryHash hashes up to two bytes on either side. shape says how many of
// them are known.
func boundaryHash(before, after uint32, shape uint32) uint32 {
	return (before*0x9E3779B1 ^ bits.RotateLeft32(after*0x85EBCA6B, 15) ^ shape*0xC2B2AE35) * 0x27D4EB2F >> (32 - boundaryBits)
}

// add records the boundary before s[i].
func (x *boundaries) add(s string, i int) {
	near := uint32(s[i-1])<<8 | uint32(s[i])
	x.near[near/64] |= 1 << (near % 64)
	before, after, shape := uint32(s[i-1]), uint32(s[i]), uint32(0)
	if i >= 2 {
		before, shape = before|uint32(s[i-2])<<8, 1
	}
	if i+1 < len(s) {
		after, shape = after|uint32(s[i+1])<<8, shape|2
	}
	h := boundaryHash(before, after, shape)
	x.far[h/64] |= 1 << (h % 64)
}

// has reports whether the boundary before s[i] may have been recorded.
func (x *boundaries) has(s string, i int) bool {
	near := uint32(s[i-1])<<8 | uint32(s[i])
	if x.near[near/64]>>(near%64)&1 == 0 {
		return false
	}
	for shape := range uint32(4) {
		before, after := uint32(s[i-1]), uint32(s[i])
		if shape&1 != 0 {
			if i < 2 {
				continue
			}
			before |= uint32(s[i-2]) << 8
		}
		if shape&2 != 0 {
			if i+1 >= len(s) {
				continue
			}
			after |= uint32(s[i+1]) << 8
		}
		if h := boundaryHash(before, after, shape); x.far[h/64]>>(h%64)&1 != 0 {
			return true
		}
	}
	return false
}

// character returns the number of tokens of the three bytes of a character
// alone, and the highest rank needed to make one token of them; none if they do
// not become one.
func (v *table) character(code uint16) (parts uint8, needs uint32) {
	b := [3]byte{0xE0 | byte(code>>12), 0x80 | byte(code>>6)&0x3F, 0x80 | byte(code)&0x3F}
	pair := min(v.pairs[uint16(b[0])|uint16(b[1])<<8], v.pairs[uint16(b[1])|uint16(b[2])<<8])
	switch {
	case pair == none:
		return 3, none
	case v.chars[code] == none:
		return 2, none
	}
	return 1, max(pair, v.chars[code])
}

// learnCharacters derives from all tokens how characters of three bytes are
// merged.
func (v *table) learnCharacters(ends []int) {
	v.parts = make([]uint8, 1<<16)
	needs := make([]uint32, 1<<16)
	for code := range v.parts {
		v.parts[code], needs[code] = v.character(uint16(code))
	}
	from := 0
	for rank, to := range ends {
		t := v.text[from:to]
		from = to
		whole := utf8.ValidString(t)
		for i := 0; whole && i < len(t); {
			n := 1
			switch {
			case t[i] >= 0xF0:
				n = 4
			case t[i] >= 0xE0:
				n = 3
				code, _ := char(load(t, i, 3))
				whole = n == len(t) || needs[code] < uint32(rank)
			case t[i] >= 0x80:
				n = 2
			}
			i += n
		}
		if whole {
			continue
		}
		for i := 1; i < len(t); i++ {
			if t[i]&0xC0 != 0x80 { // a character begins
				v.boundaries.add(t, i)
			}
		}
	}
}

// mergeCharacters merges a short piece from its characters, of one byte or
// three, and returns the number of its tokens; false if it has to be merged
// from its bytes.
func (m *merger) mergeCharacters(v *table, s string) (n int, ok bool) {
	ends := m.ends[:0]
	defer func() { m.ends = ends[:0] }()
	more := 0 // tokens in excess of one per character
	for i := 0; i < len(s); {
		if i > 0 && v.boundaries.has(s, i) {
			return 0, false
		}
		switch c := s[i]; {
		case c < 0x80:
			i++
		case c >= 0xE0 && c < 0xF0:
			code, _ := char(load(s, i, 3))
			more += int(v.parts[code]) - 1
			i += 3
		default:
			return 0, false
		}
		ends = append(ends, int32(i))
	}
	if len(ends) > scanLimit {
		return 0, false
	}
	ranks := m.ranks[:0]
	from := 0
	for i := range len(ends) - 1 {
		ranks = append(ranks, v.rank(s, from, int(ends[i+1])))
		from = int(ends[i])
	}
	ranks = append(ranks, none)
	m.ranks = ranks
	k, _ := m.join(v, s, ends, ranks)
	return k + more, true
}
