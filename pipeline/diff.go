// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/artelhq/artel"
)

// lookahead is how far diff searches for a message after messages that were
// added or removed before it. Processors rarely add or remove more in one
// place, except at the beginning of the history, and messages that moved
// farther are found in a second pass.
const lookahead = 32

// diff compares two states of a draft by message id. Of messages with the same
// id, the first is compared with the first. All ids are in the order of the
// draft.
//
// Most messages of a long draft keep their relative order. diff matches these
// in one parallel pass and looks up only the rest.
func diff(before, after []Message) (added, removed, changed []string) {
	var differ []int // indexes in after
	compare := func(i, j int) {
		if !same(&before[i], &after[j]) {
			differ = append(differ, j)
		}
	}
	end := 0 // length of the common end
	for end < len(before) && end < len(after) && before[len(before)-1-end].ID == after[len(after)-1-end].ID {
		end++
		compare(len(before)-end, len(after)-end)
	}
	before, after = before[:len(before)-end], after[:len(after)-end]
	i, j := 0, 0
	var gone, come []int
	for i < len(before) && j < len(after) {
		if before[i].ID == after[j].ID {
			compare(i, j)
			i, j = i+1, j+1
		} else if k := ahead(after[j+1:], before[i].ID); k >= 0 {
			come = span{j, j + 1 + k}.appendIndexes(come)
			j += k + 1
		} else if k := ahead(before[i+1:], after[j].ID); k >= 0 {
			gone = span{i, i + 1 + k}.appendIndexes(gone)
			i += k + 1
		} else {
			come, gone = append(come, j), append(gone, i)
			i, j = i+1, j+1
		}
	}
	gone = span{i, len(before)}.appendIndexes(gone)
	come = span{j, len(after)}.appendIndexes(come)

	if len(come) > 0 && len(gone) > 0 { // some may have moved
		old := make(map[string][]int, len(gone))
		for _, i := range gone {
			old[before[i].ID] = append(old[before[i].ID], i)
		}
		come = slices.DeleteFunc(come, func(j int) bool {
			o := old[after[j].ID]
			if len(o) == 0 {
				return false
			}
			compare(o[0], j)
			old[after[j].ID] = o[1:]
			return true
		})
		gone = slices.DeleteFunc(gone, func(i int) bool { return !slices.Contains(old[before[i].ID], i) })
	}
	added = slices.Grow(added, len(come))
	for _, j := range come {
		added = append(added, after[j].ID)
	}
	for _, i := range gone {
		removed = append(removed, before[i].ID)
	}
	slices.Sort(differ)
	after = after[:len(after)+end]
	for _, j := range differ {
		changed = append(changed, after[j].ID)
	}
	return added, removed, changed
}

// ahead returns the index of the message with this id among the first of ms, or
// -1.
func ahead(ms []Message, id string) int {
	for i := range ms[:min(len(ms), lookahead)] {
		if ms[i].ID == id {
			return i
		}
	}
	return -1
}

// appendIndexes appends the indexes of s to list.
func (s span) appendIndexes(list []int) []int {
	list = slices.Grow(list, s.end-s.start)
	for i := s.start; i < s.end; i++ {
		list = append(list, i)
	}
	return list
}

// same compares two messages. It relies on parts being replaced and never
// written into.
func same(a, b *Message) bool {
	return a.Role == b.Role && a.Origin == b.Origin && sameParts(a.Parts, b.Parts) && slices.Equal(a.MergedFrom, b.MergedFrom)
}

func sameParts(a, b artel.Parts) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// maxLate is the number of ids that surelyDistinct compares with those before.
const maxLate = 64

// surelyDistinct reports whether n ids are distinct, without the memory that an index
// takes. It answers only for ids in nearly ascending order, as those are that begin with
// the time: of messages of one millisecond, the first may have the greater id. at returns
// the id at a place, and whether it counts.
func surelyDistinct(n int, at func(i int) (id string, counts bool)) bool {
	newest := ""
	var late []int // places of the ids that are not greater than all before
	for i := range n {
		id, counts := at(i)
		switch {
		case !counts:
			continue
		case id > newest:
			newest = id
			continue
		case len(late) == maxLate:
			return false
		}
		for j := i - 1; j >= 0; j-- {
			before, counts := at(j)
			if counts && before == id {
				return false
			}
			if counts && before < id && !slices.Contains(late, j) {
				break // all ids before it are smaller still
			}
		}
		late = append(late, i)
	}
	return true
}

// An index finds positions in a list by id, about five times as fast as a map,
// which would take most of the time of a build with a long history.
type index struct {
	seed  maphash.Seed
	slots []int32 // 1 + position; 0: free
}

// newIndex makes an index with room for n ids.
func newIndex(n int) *index {
	return &index{maphash.MakeSeed(), make([]int32, 2<<bits.Len(uint(n)))}
}

// add stores position i of id. It reports false and changes nothing if the id
// has a position already. at returns the id at a position.
func (x *index) add(id string, i int, at func(int) string) bool {
	slot := x.slot(id, at)
	if *slot != 0 {
		return false
	}
	*slot = int32(i + 1)
	return true
}

// find returns the position of id, or -1.
func (x *index) find(id string, at func(int) string) int { return int(*x.slot(id, at)) - 1 }

func (x *index) slot(id string, at func(int) string) *int32 {
	for h := maphash.String(x.seed, id); ; h++ {
		slot := &x.slots[h&uint64(len(x.slots)-1)]
		if *slot == 0 || at(int(*slot-1)) == id {
			return slot
		}
	}
}
