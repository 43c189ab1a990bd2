// SPDX-License-Identifier: Apache-2.0

package diff

import "strings"

// slide moves runs of marked lines that could as well stand earlier or later.
// Of "a b" that became "a b a b", it cannot be known which "a b" was added; a
// reader expects a change to begin and end where a passage does. Only runs that
// have no marked line of the other side beside them are moved, and never to
// where they would touch another run, so that no run is split or joined.
func slide(t *text, ids []int32, marks, others []bool) {
	for i, j := 0, 0; i < len(marks); {
		begin := i
		for i < len(marks) && marks[i] {
			i++
		}
		alone := true
		for j < len(others) && others[j] {
			alone = false
			j++
		}
		if begin == i || !alone {
			if i < len(marks) { // a common line
				i++
				j++
			}
			continue
		}
		r := reach(ids, marks, others, begin, i, j)
		best, least := 0, weight(t, begin, i)
		for by := r.up; by <= r.down; by++ {
			if w := weight(t, begin+by, i+by); w < least || w == least && by > best {
				best, least = by, w
			}
		}
		for k := range i - begin {
			marks[begin+k] = false
		}
		for k := range i - begin {
			marks[begin+best+k] = true
		}
		i, j = i+max(best, 0), j+max(best, 0)
	}
}

// A shift says how many lines a run can be moved, up as a negative number.
type shift struct{ up, down int }

// reach finds out how far the marked lines from begin to before end can move,
// which stand before line j of the other side.
func reach(ids []int32, marks, others []bool, begin, end, j int) shift {
	var r shift
	for n := 1; n <= margin; n++ {
		b, k := begin-n, j-n
		if b < 0 || marks[b] || ids[b] != ids[end-n] || b > 0 && marks[b-1] || k > 0 && others[k-1] {
			break
		}
		r.up = -n
	}
	for n := 1; n <= margin; n++ {
		e, k := end+n, j+n
		if e > len(marks) || marks[e-1] || ids[begin+n-1] != ids[e-1] || e < len(marks) && marks[e] || k < len(others) && others[k] {
			break
		}
		r.down = n
	}
	return r
}

// weight says how ill a run of lines would stand: the sum for both its bounds.
func weight(t *text, begin, end int) int { return bound(t, begin) + bound(t, end) }

// bound says how ill a passage begins at line i: well after an empty line and
// at the ends of the text, and the better the less line i is indented.
func bound(t *text, i int) int {
	if i == t.count() {
		return 0
	}
	w := 0
	if i > 0 {
		if _, empty := indent(t.line(i - 1)); !empty {
			w = 2
		}
	}
	n, empty := indent(t.line(i))
	if empty {
		return w + 1
	}
	return w + 4*n
}

// indent returns how many bytes of white space a line begins with, of the
// first few, and whether there is nothing else.
func indent(line string) (n int, empty bool) {
	line = line[:min(len(line), 40)]
	n = len(line) - len(strings.TrimLeft(line, " \t\r\n"))
	return n, n == len(line)
}
