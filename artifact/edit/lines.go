// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"iter"
	"strings"
)

const lineEnd = "\n"

// Lines is a text as lines, numbered from 1. A line ends with "\n" or "\r\n". Text
// after the last line end is a line unless it is empty, so "" has no line, and "a"
// and "a\n" have one.
type Lines string

// Count returns the number of lines.
func (l Lines) Count() int {
	n := strings.Count(string(l), lineEnd)
	if l != "" && !strings.HasSuffix(string(l), lineEnd) {
		n++
	}
	return n
}

// All yields the lines with their numbers, without their ends.
func (l Lines) All() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		n := 0
		for line := range strings.Lines(string(l)) {
			n++
			if s, ok := strings.CutSuffix(line, lineEnd); ok {
				line = strings.TrimSuffix(s, "\r")
			}
			if !yield(n, line) {
				return
			}
		}
	}
}

// Slice returns the lines from the first to the last, both included, with
// their ends. Numbers outside the text are those nearest inside it; a range
// that holds no line is "".
func (l Lines) Slice(first, last int) string {
	first = max(first, 1)
	if last < first {
		return ""
	}
	rest := l.skip(first - 1)
	return string(rest[:len(rest)-len(rest.skip(last-first+1))])
}

// skip returns the text after the first n lines.
func (l Lines) skip(n int) Lines {
	for ; n > 0 && l != ""; n-- {
		i := strings.Index(string(l), lineEnd)
		if i < 0 {
			return ""
		}
		l = l[i+len(lineEnd):]
	}
	return l
}
