// SPDX-License-Identifier: Apache-2.0

package token

import (
	"iter"
	"unicode"
)

const (
	segmentSize = 32 << 10 // bytes; the library holds some ten times that while it counts
	maxBlank    = 512      // white space in one piece; the library's time grows with the square of it
)

// segments cuts text so that the counts of the pieces add up to the count of
// the whole, and counting takes little memory and time in proportion to the
// text's length.
//
// After at least size bytes it cuts between a letter and white space or
// punctuation other than an apostrophe, where the splitting expressions of
// both vocabularies always part: nothing but a contraction joins a letter to
// what follows, and neither looks back. A run of more than blank white space
// characters is cut as well. There the sum may exceed the whole by a token a
// cut, which no text that people write comes to.
func segments(text string, size, blank int) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, run := 0, 0
		letter := false // the rune before is one
		for i, r := range text {
			space := unicode.IsSpace(r)
			if space {
				run++
			} else {
				run = 0
			}
			apart := letter && i-start >= size && (space || unicode.IsPunct(r) && r != '\'')
			if apart || run > blank {
				if !yield(text[start:i]) {
					return
				}
				start, run = i, min(run, 1)
			}
			letter = unicode.IsLetter(r)
		}
		if start < len(text) {
			yield(text[start:])
		}
	}
}
