// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"strconv"

	"github.com/artelhq/artel"
)

// marks is a set of digests. It stores the first eight bytes of each: a collision
// may keep an unreferenced blob, but never removes a referenced one. Digests are
// uniformly distributed, so their own bits serve as the hash.
type marks struct {
	table []uint64 // length is a power of two; 0: free; at most four fifths are used
	n     int
}

func (m *marks) add(d artel.Digest) { m.put(beginning(d)) }

func (m *marks) put(b uint64) {
	if 5*m.n >= 4*len(m.table) {
		old := m.table
		m.table, m.n = make([]uint64, max(64, 2*len(old))), 0
		for _, b := range old {
			if b != 0 {
				m.put(b)
			}
		}
	}
	if at, found := m.find(b); !found {
		m.table[at] = b
		m.n++
	}
}

func (m *marks) has(d artel.Digest) bool { return m.contains(beginning(d)) }

func (m *marks) contains(b uint64) bool {
	if m.n == 0 {
		return false
	}
	_, found := m.find(b)
	return found
}

// find returns the index of b, or the free index for it.
func (m *marks) find(b uint64) (at int, found bool) {
	last := len(m.table) - 1
	for at = int(b) & last; m.table[at] != 0; at = (at + 1) & last {
		if m.table[at] == b {
			return at, true
		}
	}
	return at, false
}

// beginning returns the first eight bytes of a digest, never 0.
func beginning(d artel.Digest) uint64 {
	hex := d.Hex()
	if len(hex) < 16 {
		return 1
	}
	n, _ := strconv.ParseUint(hex[:16], 16, 64)
	return max(1, n)
}
