// SPDX-License-Identifier: Apache-2.0

package diff

import "strings"

// slide moves runs of marked lines that may equally be placed earlier or later. If
// "a b" became "a b a b", either "a b" may be the added one; readers expect a
// change to begin and end at a paragraph. Only runs without marked lines of the
// other side next to them are moved, and never next to another run, so that no run
// is split or joined.
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

// A shift is the range of lines by which a run can be moved; up is negative.
type shift struct{ up, down int }

// reach returns how far the marked lines from begin to before end, which precede
// line j of the other side, can move.
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

// weight returns the cost of a position of a run: the sum for its two bounds.
func weight(t *text, begin, end int) int { return bound(t, begin) + bound(t, end) }

// bound returns the cost of a boundary at line i: low after an empty line and at
// the ends of the text, and otherwise growing with the indentation of line i.
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
