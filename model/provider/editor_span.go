// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// A Span is a range of bytes of a text.
type Span struct{ From, To int }

// Of returns the part of text.
func (s Span) Of(text string) string { return text[s.From:s.To] }

// An Edit replaces a span; an empty span inserts.
type Edit struct {
	Span
	With string
}

// ApplyEdits returns text with edits made, which must not overlap. Insertions at one
// position keep their order.
func ApplyEdits(text string, edits []Edit) string {
	if len(edits) == 0 {
		return text
	}
	var b strings.Builder
	size := len(text)
	for _, e := range edits {
		size += len(e.With) - (e.To - e.From)
	}
	b.Grow(size)
	at := 0
	for _, e := range inOrder(edits) {
		b.WriteString(text[at:e.From])
		b.WriteString(e.With)
		at = e.To
	}
	b.WriteString(text[at:])
	return b.String()
}

func inOrder(edits []Edit) []Edit {
	out := slices.Clone(edits)
	slices.SortStableFunc(out, func(a, b Edit) int { return a.From - b.From })
	return out
}

// RemoveElements returns the edits that remove the elements of a list for which
// out is true, with their commas. If none would be left, the result of all
// replaces them.
func RemoveElements(l gjson.Result, out func(gjson.Result) bool, all func() string) []Edit {
	var elements []Span
	var kept []bool
	EachElement(l, func(_, v gjson.Result) bool {
		elements, kept = append(elements, SpanOf(v)), append(kept, !out(v))
		return true
	})
	first := slices.Index(kept, true)
	switch {
	case len(elements) == 0:
		return nil
	case first < 0:
		return []Edit{{Span{elements[0].From, elements[len(elements)-1].To}, all()}}
	}
	var edits []Edit
	if first > 0 {
		edits = append(edits, Edit{Span{elements[0].From, elements[first].From}, ""})
	}
	for i := first + 1; i < len(elements); i++ {
		if !kept[i] {
			edits = append(edits, Edit{Span{elements[i-1].To, elements[i].To}, ""})
		}
	}
	return edits
}

// An Array describes changes to the elements of a JSON array.
type Array struct {
	Elements []Span
	Order    []int          // of elements; nil: unchanged
	After    map[int]string // JSON to insert after an element, by its index; elements separated by commas
}

// Arrange returns text with the elements of l in their new order, edits made in
// them, and insertions after them. Text between elements is not moved. Edits
// outside of the elements are made too.
func Arrange(text string, l Array, edits []Edit) string {
	if l.Order == nil && len(l.After) == 0 {
		return ApplyEdits(text, edits)
	}
	inside := make([][]Edit, len(l.Elements))
	var outside []Edit
	for _, e := range edits {
		i := slices.IndexFunc(l.Elements, func(s Span) bool { return e.From >= s.From && e.To <= s.To })
		if i < 0 {
			outside = append(outside, e)
			continue
		}
		e.From, e.To = e.From-l.Elements[i].From, e.To-l.Elements[i].From
		inside[i] = append(inside[i], e)
	}
	order := l.Order
	if order == nil {
		for i := range l.Elements {
			order = append(order, i)
		}
	}
	for place, i := range order {
		s := ApplyEdits(l.Elements[i].Of(text), inside[i])
		if more := l.After[i]; more != "" {
			s += "," + more
		}
		outside = append(outside, Edit{l.Elements[place], s})
	}
	return ApplyEdits(text, outside)
}
