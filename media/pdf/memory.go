// SPDX-License-Identifier: Apache-2.0

package pdf

// A memory is the memory of an instance: a part of all, or of the heap without it.
type memory struct {
	all  []byte
	free func()
	heap []byte
}

// Reallocate implements [experimental.LinearMemory].
func (m *memory) Reallocate(size uint64) []byte {
	if m.free != nil {
		if size > uint64(len(m.all)) {
			return nil
		}
		return m.all[:size]
	}
	if size > uint64(cap(m.heap)) {
		grown := make([]byte, size, size+size/4)
		copy(grown, m.heap)
		m.heap = grown
	}
	m.heap = m.heap[:size]
	return m.heap
}

// Free implements [experimental.LinearMemory].
func (m *memory) Free() {
	if m.free != nil {
		m.free()
	}
	*m = memory{}
}
