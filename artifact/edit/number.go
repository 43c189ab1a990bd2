// SPDX-License-Identifier: Apache-2.0

package edit

import "unicode/utf8"

// A numbering numbers the characters of a pattern from 1 on. The numbers of the
// first plane beyond ASCII are in groups of groupSize characters, of which most
// patterns need few.
type numbering struct {
	count  int32
	low    [utf8.RuneSelf]int32              // numbers of ASCII
	groups [firstPlaneEnd / groupSize]uint16 // of the first plane: 1 + the group; 0: none
	slab   [][groupSize]int32
	rest   map[rune]int32 // of the other planes
}

const (
	firstPlaneEnd = 0x10000
	groupSize     = 32
)

// number returns the number of r; 0: it has none.
func (n *numbering) number(r rune) int32 {
	if r >= firstPlaneEnd {
		return n.rest[r]
	}
	if r < utf8.RuneSelf {
		return n.low[r]
	}
	if g := n.groups[uint32(r)/groupSize%uint32(len(n.groups))]; g != 0 {
		return n.slab[g-1][r%groupSize]
	}
	return 0
}

// assign returns the number of r, a new one if it has none.
func (n *numbering) assign(r rune) int32 {
	var at *int32
	switch {
	case r < utf8.RuneSelf:
		at = &n.low[r]
	case r < firstPlaneEnd:
		g := &n.groups[r/groupSize]
		if *g == 0 {
			if n.slab == nil {
				n.slab = make([][groupSize]int32, 0, 32)
			}
			n.slab = append(n.slab, [groupSize]int32{})
			*g = uint16(len(n.slab))
		}
		at = &n.slab[*g-1][r%groupSize]
	default:
		if n.rest == nil {
			n.rest = map[rune]int32{}
		}
		if n.rest[r] == 0 {
			n.count++
			n.rest[r] = n.count
		}
		return n.rest[r]
	}
	if *at == 0 {
		n.count++
		*at = n.count
	}
	return *at
}
