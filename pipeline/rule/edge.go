// SPDX-License-Identifier: Apache-2.0

package rule

import "unicode/utf8"

// A byteSet is a set of bytes.
type byteSet [256]bool

// An edge describes the first or the last byte of every match.
type edge struct {
	bytes    byteSet
	known    bool // otherwise any byte is possible
	anchored bool // at the edge of a line, or of the text without the flag m
}

// An edges finds the bytes with which matches begin or end.
type edges struct {
	flags flagSet
	last  bool // otherwise the first byte
}

// of returns the edge of a whole pattern.
func (f edges) of(root *node) edge {
	var e edge
	ends, known := f.node(root, &e.bytes)
	e.known = known && ends
	e.anchored = e.known && f.anchored(root)
	return e
}

// node adds the bytes that a match of n can have at this edge to set. ends is
// false if n can match nothing, so that the adjacent node counts too; known is
// false if the bytes cannot be determined.
func (f edges) node(n *node, set *byteSet) (ends, known bool) {
	switch n.op {
	case opChar:
		one, ok := needs{f.flags}.char(n.char), n.char >= 0
		if one == nil || !ok {
			return true, false
		}
		s := runes{n.char, n.char}
		if f.flags.ignoreCase {
			if s, ok = s.folded(false); !ok {
				return true, false
			}
		}
		f.add(s, set)
		return true, true
	case opSet:
		f.add(n.set, set)
		return true, true
	case opForeign, opBack:
		return true, false
	case opCapture:
		return f.node(n.sub[0], set)
	case opCat:
		for i := range n.sub {
			s := n.sub[i]
			if f.last {
				s = n.sub[len(n.sub)-1-i]
			}
			if ends, known := f.node(s, set); ends || !known {
				return ends, known
			}
		}
		return false, true
	case opAlt:
		ends, known = true, true
		for _, s := range n.sub {
			e, k := f.node(s, set)
			ends, known = ends && e, known && k
		}
		return ends, known
	case opRepeat:
		ends, known = f.node(n.sub[0], set)
		return ends && n.min > 0, known
	}
	return false, true // assertions match nothing themselves
}

// add adds the bytes of characters; characters beyond ASCII add all bytes that
// can begin or end one.
func (f edges) add(s runes, set *byteSet) {
	for c := range rune(utf8.RuneSelf) {
		if s.has(c, c) {
			set[c] = true
		}
	}
	if s.count(utf8.RuneSelf) == 0 {
		return
	}
	low, high := 0xC0, 0xFF
	if f.last {
		low, high = 0x80, 0xBF
	}
	for b := low; b <= high; b++ {
		set[b] = true
	}
}

// anchored reports whether every match begins at ^, or ends at $.
func (f edges) anchored(n *node) bool {
	switch n.op {
	case opBegin:
		return !f.last
	case opEnd:
		return f.last
	case opCapture:
		return f.anchored(n.sub[0])
	case opCat:
		if len(n.sub) == 0 {
			return false
		}
		if f.last {
			return f.anchored(n.sub[len(n.sub)-1])
		}
		return f.anchored(n.sub[0])
	}
	return false
}

// begins reports whether a match could begin in text.
func (e edge) begins(text string, lines bool) bool {
	if !e.known {
		return true
	}
	if !e.anchored {
		return e.anywhere(text)
	}
	for i := range len(text) {
		if (i == 0 || lines && endsLine(text[i-1])) && e.bytes[text[i]] {
			return true
		}
		if !lines {
			break
		}
	}
	return false
}

// ends reports whether a match could end in text.
func (e edge) ends(text string, lines bool) bool {
	switch {
	case !e.known:
		return true
	case !e.anchored:
		return e.anywhere(text)
	case text == "":
		return false
	case e.bytes[text[len(text)-1]]:
		return true
	case !lines:
		return false
	}
	for i := 1; i < len(text); i++ {
		if endsLine(text[i]) && e.bytes[text[i-1]] {
			return true
		}
	}
	return false
}

func (e edge) anywhere(text string) bool {
	for i := range len(text) {
		if e.bytes[text[i]] {
			return true
		}
	}
	return false
}

// endsLine reports whether b can be the last byte of a JavaScript line end:
// "\n", "\r", U+2028 or U+2029, whose last bytes occur in many other characters
// too.
func endsLine(b byte) bool { return b == '\n' || b == '\r' || b == 0xE2 || b == 0xA8 || b == 0xA9 }
