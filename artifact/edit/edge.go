// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// An edge is one end of a match: the character outside, the character inside, and
// the character of the old text. Several edges can be equally close if the first
// or last characters of the old text differ from the document.
type edge struct {
	outside, inside, wanted rune // none at the end of the text
	line                    bool // the match begins or ends with a line
}

const none rune = -1

// chooseEdge returns the one edge that is aligned with lines, otherwise with runs
// of the kind of character that the old text has there, otherwise with words. The
// first rule that leaves one edge decides. If none does, and the edges differ only
// in whether the last few characters are replaced or surplus, they count as
// replaced; otherwise chooseEdge returns false. The cuts ascend, and d is the
// distance.
func (a *approximate) chooseEdge(cuts []int, d int, outermost func([]int) int, edgeAt func(string, int, string) edge) (int, bool) {
	for _, rule := range []func(edge) bool{
		func(e edge) bool { return e.line },
		func(e edge) bool { return kind(e.inside) == kind(e.wanted) && kind(e.outside) != kind(e.inside) },
		func(e edge) bool { return kind(e.inside) == inWord && kind(e.outside) != inWord },
	} {
		if len(cuts) == 1 {
			break
		}
		var aligned []int
		for _, c := range cuts {
			if rule(edgeAt(a.text, c, a.old)) {
				aligned = append(aligned, c)
			}
		}
		if len(aligned) > 0 {
			cuts = aligned
		}
	}
	span := a.text[cuts[0]:cuts[len(cuts)-1]]
	return outermost(cuts), len(cuts) <= d+1 && countChars(span) == len(cuts)-1
}

func firstOf(cuts []int) int { return cuts[0] }
func lastOf(cuts []int) int  { return cuts[len(cuts)-1] }

// startEdge returns the edge of a passage of text that begins at byte i.
func startEdge(text string, i int, old string) edge {
	e := edge{outside: none, inside: first(text[i:]), wanted: first(old)}
	if i > 0 {
		e.outside, _ = utf8.DecodeLastRuneInString(text[:i])
	}
	if startsWithLineEnd(old) {
		e.line = startsWithLineEnd(text[i:])
	} else {
		e.line = e.outside == none || e.outside == '\n'
	}
	return e
}

// endEdge returns the edge of a passage of text that ends at byte i > 0.
func endEdge(text string, i int, old string) edge {
	e := edge{outside: first(text[i:])}
	e.inside, _ = utf8.DecodeLastRuneInString(text[:i])
	e.wanted, _ = utf8.DecodeLastRuneInString(old)
	if e.wanted == '\n' {
		e.line = e.inside == '\n'
	} else {
		e.line = e.outside == none || startsWithLineEnd(text[i:])
	}
	return e
}

func first(s string) rune {
	if s == "" {
		return none
	}
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

func startsWithLineEnd(s string) bool {
	return strings.HasPrefix(s, "\n") || strings.HasPrefix(s, "\r\n")
}

// The kinds of characters that edges tell apart.
const (
	nothing = iota
	inWord
	blank
	mark
)

func kind(r rune) int {
	switch {
	case r == none:
		return nothing
	case isWord(r):
		return inWord
	case unicode.IsSpace(r):
		return blank
	}
	return mark
}
