// SPDX-License-Identifier: Apache-2.0

package token

import "sync"

const (
	scanLimit  = 128  // bytes up to which scanning all pairs is faster than a heap
	windowSize = 2048 // bytes of a long piece merged at a time
	overlap    = 256  // bytes at the end of a window that are merged again with the next
)

// merged returns the number of tokens of the piece s, which is not a token
// itself: the adjacent pair with the lowest rank is joined, the leftmost of
// equals, until no pair is a token.
func (v *table) merged(s string) int {
	m := mergers.Get().(*merger)
	defer mergers.Put(m)
	if len(s) <= 3*scanLimit {
		if n, ok := m.mergeCharacters(v, s); ok {
			return n
		}
	}
	if len(s) <= scanLimit {
		n, _ := m.scan(v, s)
		return n
	}
	for size := windowSize; ; size *= 4 {
		if n, ok := m.windows(v, s, size, overlap); ok {
			return n
		}
	}
}

// A merger holds the buffers of a merge. It is used by one goroutine.
type merger struct {
	ends  []int32 // of the parts
	ranks []uint32
	nodes []node
	heap  []candidate
}

var mergers = sync.Pool{New: func() any { return new(merger) }}

// windows merges s in windows, in linear time and constant memory. The result
// is exact: a sequence of tokens is the merge of a text if and only if each two
// neighbours are the merge of their bytes. Within a window they are, so only
// the pair at each boundary has to be checked. If one fails it reports false; a
// larger window will succeed.
func (m *merger) windows(v *table, s string, size, overlap int) (n int, ok bool) {
	from, last := 0, 0 // where the window begins, and the token before it
	for {
		to := min(from+size, len(s))
		tokens := m.merge(v, s[from:to])
		if from > 0 {
			middle := int32(from - last)
			if k, end := m.scan(v, s[last:from+int(m.nodes[0].next)]); k != 2 || end != middle {
				return 0, false
			}
		}
		if to == len(s) {
			return n + tokens, true
		}
		i := int32(0)
		for {
			next := m.nodes[i].next
			if n++; int(next) >= size-overlap {
				last, from = from+int(i), from+int(next)
				break
			}
			i = next
		}
	}
}

// scan merges a short piece, and returns the number of its tokens and the end
// of the first.
func (m *merger) scan(v *table, s string) (n int, first int32) {
	if len(s) < 2 {
		return len(s), int32(len(s))
	}
	// Part i is s[ends[i-1]:ends[i]], and ranks[i] that of it and the next.
	ends, ranks := m.ends[:0], m.ranks[:0]
	for i := range len(s) - 1 {
		ends = append(ends, int32(i+1))
		ranks = append(ranks, v.pairs[uint16(s[i])|uint16(s[i+1])<<8])
	}
	ends, ranks = append(ends, int32(len(s))), append(ranks, none)
	m.ends, m.ranks = ends, ranks
	return m.join(v, s, ends, ranks)
}

// join merges parts, of which ends and ranks are as in [merger.scan], and
// overwrites both.
func (m *merger) join(v *table, s string, ends []int32, ranks []uint32) (n int, first int32) {
	for {
		at, lowest := 0, none
		for i, r := range ranks {
			if r < lowest {
				at, lowest = i, r
			}
		}
		if lowest == none {
			return len(ends), ends[0]
		}
		copy(ends[at:], ends[at+1:])
		copy(ranks[at+1:], ranks[at+2:])
		ends, ranks = ends[:len(ends)-1], ranks[:len(ranks)-1]
		from := 0
		if at > 0 {
			from = int(ends[at-1])
		}
		if at+1 < len(ends) {
			ranks[at] = v.rank(s, from, int(ends[at+1]))
		} else {
			ranks[at] = none
		}
		if at > 0 {
			before := 0
			if at > 1 {
				before = int(ends[at-2])
			}
			ranks[at-1] = v.rank(s, before, int(ends[at]))
		}
	}
}

// A node is the start of a part; rank is that of it and the next part.
type node struct {
	previous, next int32
	rank           uint32
}

// A candidate is a pair of parts that may be joined: its rank above its
// position.
type candidate uint64

// merge leaves the tokens of s in m.nodes, linked by next from the first to
// len(s), and returns their number.
func (m *merger) merge(v *table, s string) int {
	m.nodes, m.heap = m.nodes[:0], m.heap[:0]
	for i := range len(s) {
		rank := none
		if i+1 < len(s) {
			rank = v.pairs[uint16(s[i])|uint16(s[i+1])<<8]
		}
		m.nodes = append(m.nodes, node{int32(i - 1), int32(i + 1), rank})
		if rank != none {
			m.heap = append(m.heap, candidate(rank)<<32|candidate(i))
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	n, end := len(s), int32(len(s))
	for len(m.heap) > 0 {
		top := m.heap[0]
		i := int32(uint32(top))
		if m.nodes[i].rank != uint32(top>>32) {
			m.pop() // stale: one of its parts has been joined with another
			continue
		}
		m.pop()
		gone := m.nodes[i].next
		next := m.nodes[gone].next
		m.nodes[gone].rank = none
		m.nodes[i].next = next
		if next < end {
			m.nodes[next].previous = i
		}
		n--
		m.consider(v, s, i)
		if i > 0 {
			m.consider(v, s, m.nodes[i].previous)
		}
	}
	return n
}

// consider recomputes the pair that begins at node i.
func (m *merger) consider(v *table, s string, i int32) {
	rank := none
	if next := m.nodes[i].next; int(next) < len(s) {
		rank = v.rank(s, int(i), int(m.nodes[next].next))
	}
	m.nodes[i].rank = rank
	if rank != none {
		m.heap = append(m.heap, candidate(rank)<<32|candidate(i))
		m.up(len(m.heap) - 1)
	}
}

func (m *merger) pop() {
	last := len(m.heap) - 1
	m.heap[0] = m.heap[last]
	m.heap = m.heap[:last]
	m.down(0)
}

func (m *merger) up(i int) {
	for i > 0 && m.heap[i] < m.heap[(i-1)/2] {
		m.heap[i], m.heap[(i-1)/2] = m.heap[(i-1)/2], m.heap[i]
		i = (i - 1) / 2
	}
}

func (m *merger) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(m.heap) {
			return
		}
		if child+1 < len(m.heap) && m.heap[child+1] < m.heap[child] {
			child++
		}
		if m.heap[child] >= m.heap[i] {
			return
		}
		m.heap[i], m.heap[child] = m.heap[child], m.heap[i]
		i = child
	}
}
