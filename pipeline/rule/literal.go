// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"
	"strings"
	"unicode"
)

// A need is a necessary condition for a match: the text contains one of some
// strings, and a match has one of some bytes at each edge. If nothing is known,
// every text is searched.
type need struct {
	any         []string
	fold        bool // any in lower case; letters of ASCII stand for both cases
	first, last edge
	lines       bool // ^ and $ are the edges of lines
}

// The most strings of a need, and bytes of each; more would cost more than
// they save.
const (
	maxNeeds    = 8
	maxNeedSize = 40
)

// needOf derives the need of a pattern.
func needOf(t *syntaxTree, flags flagSet) need {
	f := needs{flags}
	return need{
		any: f.best(f.node(t.root)), fold: flags.ignoreCase,
		first: edges{flags: flags}.of(t.root), last: edges{flags: flags, last: true}.of(t.root), lines: flags.multiline,
	}
}

// canMatch reports whether text can have a match.
func (n need) canMatch(text string) bool {
	return n.contained(text) && (len(n.any) > 0 && !n.first.anchored || n.first.begins(text, n.lines)) &&
		(!n.last.anchored || n.last.ends(text, n.lines))
}

func (n need) contained(text string) bool {
	for _, s := range n.any {
		if n.fold && containsFold(text, s) || !n.fold && strings.Contains(text, s) {
			return true
		}
	}
	return len(n.any) == 0
}

// containsFold is strings.Contains for s in lower case, where letters of ASCII
// in text count as lower case.
func containsFold(text, s string) bool {
	first := s[0]
	if first < 'a' || first > 'z' {
		for {
			i := strings.IndexByte(text, first)
			if i < 0 || len(text)-i < len(s) {
				return false
			}
			if hasPrefixFold(text[i:], s) {
				return true
			}
			text = text[i+1:]
		}
	}
	for i := 0; i+len(s) <= len(text); i++ {
		if text[i]|0x20 == first && hasPrefixFold(text[i:], s) {
			return true
		}
	}
	return false
}

func hasPrefixFold(text, s string) bool {
	for i := range len(s) {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != s[i] {
			return false
		}
	}
	return true
}

// A literals describes a node: exact are all strings that it can match, if they
// are few; some are strings of which every match contains one. nil is unknown.
type literals struct{ exact, some []string }

type needs struct{ flags flagSet }

// best returns the strings to search a text for.
func (f needs) best(x literals) []string {
	if better(x.exact, x.some) {
		return x.exact
	}
	return x.some
}

// better reports whether a is more selective than b: by the shortest string,
// then by their number.
func better(a, b []string) bool {
	if len(a) == 0 || slices.Contains(a, "") {
		return false
	}
	if len(b) == 0 {
		return true
	}
	if x, y := size(a), size(b); x != y {
		return x > y
	}
	return len(a) < len(b)
}

func size(list []string) int {
	n := len(list[0])
	for _, s := range list {
		n = min(n, len(s))
	}
	return n
}

func (f needs) node(n *node) literals {
	switch n.op {
	case opChar:
		return literals{exact: f.char(n.char)}
	case opSet:
		return literals{exact: f.set(n.set)}
	case opBegin, opEnd, opWord, opNotWord, opNone:
		return literals{exact: []string{""}}
	case opAhead, opBehind:
		return literals{exact: []string{""}, some: f.best(f.node(n.sub[0]))}
	case opCat:
		return f.cat(n.sub)
	case opCapture:
		return f.node(n.sub[0])
	case opAlt:
		return f.alt(n.sub)
	case opRepeat:
		if n.min == 0 {
			return literals{}
		}
		x := f.node(n.sub[0])
		if n.min == 1 && n.max == 1 {
			return x
		}
		return literals{some: f.best(x)}
	}
	return literals{}
}

// char returns the single string, in lower case if case is ignored.
func (f needs) char(c rune) []string {
	if c >= 0xD800 && c <= 0xDFFF || c == unicode.ReplacementChar {
		return nil // possibly half of another character, or invalid
	}
	if f.flags.ignoreCase {
		if c >= utf8Self && unicode.SimpleFold(c) != c || f.flags.unicode && strings.ContainsRune("kKsS", c) {
			return nil
		}
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
	}
	return []string{string(c)}
}

func (f needs) set(s runes) []string {
	if s.count(0) > maxNeeds {
		return nil
	}
	out := []string{}
	for i := 0; i < len(s); i += 2 {
		for c := s[i]; c <= s[i+1]; c++ {
			one := f.char(c)
			if one == nil {
				return nil
			}
			if !slices.Contains(out, one[0]) {
				out = append(out, one[0])
			}
		}
	}
	if len(out) == 0 {
		return nil // it matches nothing at all
	}
	return out
}

func (f needs) alt(sub []*node) literals {
	out := literals{exact: []string{}, some: []string{}}
	for _, s := range sub {
		x := f.node(s)
		out.exact = union(out.exact, x.exact)
		some := f.best(x)
		if slices.Contains(some, "") {
			some = nil
		}
		out.some = union(out.some, some)
	}
	return out
}

// union returns nil if either is nil, or if the result would be too long.
func union(a, b []string) []string {
	if a == nil || b == nil {
		return nil
	}
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	if len(a) > maxNeeds {
		return nil
	}
	return a
}

func (f needs) cat(sub []*node) literals {
	run := []string{""} // what the nodes since the last unknown one can match
	whole := true
	var some []string
	keep := func(list []string) {
		if better(list, some) {
			some = list
		}
	}
	for _, s := range sub {
		x := f.node(s)
		keep(x.some)
		joined := join(run, x.exact)
		if joined == nil {
			keep(run)
			whole = false
			if joined = x.exact; joined == nil {
				joined = []string{""}
			}
		}
		run = joined
	}
	keep(run)
	if !whole {
		return literals{some: some}
	}
	return literals{exact: run, some: some}
}

// join returns each of a followed by each of b; nil if b is unknown or the
// result would be too large.
func join(a, b []string) []string {
	if b == nil || len(a)*len(b) > maxNeeds {
		return nil
	}
	var out []string
	for _, x := range a {
		for _, y := range b {
			if len(x)+len(y) > maxNeedSize {
				return nil
			}
			if !slices.Contains(out, x+y) {
				out = append(out, x+y)
			}
		}
	}
	return out
}
