// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// A span is a range of bytes of a text.
type span struct{ from, to int }

func (s span) of(text string) string { return text[s.from:s.to] }

// An edit replaces a span; an empty span inserts.
type edit struct {
	span
	with string
}

// apply returns text with edits made, which must not overlap. Insertions at one
// position keep their order.
func apply(text string, edits []edit) string {
	if len(edits) == 0 {
		return text
	}
	var b strings.Builder
	size := len(text)
	for _, e := range edits {
		size += len(e.with) - (e.to - e.from)
	}
	b.Grow(size)
	at := 0
	for _, e := range inOrder(edits) {
		b.WriteString(text[at:e.from])
		b.WriteString(e.with)
		at = e.to
	}
	b.WriteString(text[at:])
	return b.String()
}

func inOrder(edits []edit) []edit {
	out := slices.Clone(edits)
	slices.SortStableFunc(out, func(a, b edit) int { return a.from - b.from })
	return out
}

// removeElements returns the edits that remove the elements of a list for which
// out is true, with their commas. If none would be left, the result of all
// replaces them.
func removeElements(l gjson.Result, out func(gjson.Result) bool, all func() string) []edit {
	var elements []span
	var kept []bool
	each(l, func(_, v gjson.Result) bool {
		elements, kept = append(elements, at(v)), append(kept, !out(v))
		return true
	})
	first := slices.Index(kept, true)
	switch {
	case len(elements) == 0:
		return nil
	case first < 0:
		return []edit{{span{elements[0].from, elements[len(elements)-1].to}, all()}}
	}
	var edits []edit
	if first > 0 {
		edits = append(edits, edit{span{elements[0].from, elements[first].from}, ""})
	}
	for i := first + 1; i < len(elements); i++ {
		if !kept[i] {
			edits = append(edits, edit{span{elements[i-1].to, elements[i].to}, ""})
		}
	}
	return edits
}

// An array describes changes to the elements of a JSON array.
type array struct {
	elements []span
	order    []int          // of elements; nil: unchanged
	after    map[int]string // JSON to insert after an element, by its index; elements separated by commas
}

// arrange returns text with the elements of l in their new order, edits made in
// them, and insertions after them. Text between elements is not moved. Edits
// outside of the elements are made too.
func arrange(text string, l array, edits []edit) string {
	if l.order == nil && len(l.after) == 0 {
		return apply(text, edits)
	}
	inside := make([][]edit, len(l.elements))
	var outside []edit
	for _, e := range edits {
		i := slices.IndexFunc(l.elements, func(s span) bool { return e.from >= s.from && e.to <= s.to })
		if i < 0 {
			outside = append(outside, e)
			continue
		}
		e.from, e.to = e.from-l.elements[i].from, e.to-l.elements[i].from
		inside[i] = append(inside[i], e)
	}
	order := l.order
	if order == nil {
		for i := range l.elements {
			order = append(order, i)
		}
	}
	for place, i := range order {
		s := apply(l.elements[i].of(text), inside[i])
		if more := l.after[i]; more != "" {
			s += "," + more
		}
		outside = append(outside, edit{l.elements[place], s})
	}
	return apply(text, outside)
}
