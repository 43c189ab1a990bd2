// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// A linear is a pattern with the same meaning in RE2 as in JavaScript, on texts
// that [linear.takes].
type linear struct {
	re     *regexp.Regexp
	size   int         // about how many instructions re has
	groups map[int]int // number in the pattern to number in re, for wanted groups

	// looksBack: ^, \b or \B looks at the character before a match.
	looksBack bool

	chunk  int // the most matches that are searched at once
	second sync.Once
	after  *regexp.Regexp // re after one more character, made at the first need

	// pairs: it could match half of a character beyond U+FFFF, which for
	// JavaScript is two, and for RE2 one.
	pairs bool

	// lines: ^ or $ means the ends of lines, which for JavaScript are also
	// "\r", U+2028 and U+2029.
	lines bool
}

// linearOf returns nil where the pattern has no form in RE2 of the same
// meaning. Groups that wanted does not have do not capture.
//
// What keeps a pattern from it: assertions about what is before or behind,
// back references, and the letters beyond ASCII under the flag i, whose cases
// fold by other rules; a pattern, or a repeated part of one, that can match
// nothing, since RE2 tries its alternatives in another order then; a group in
// a repeated part that not every repetition sets, since JavaScript forgets
// what an earlier one has set; and the flag y.
func linearOf(t *syntaxTree, flags flagSet, wanted map[int]bool) *linear {
	size := t.root.size()
	if flags.sticky || flags.unicode && flags.ignoreCase || shortest(t.root) == 0 || size > maxProgram {
		return nil
	}
	e := emitter{flags: flags, wanted: wanted, linear: linear{size: size, groups: make(map[int]int)}}
	if !e.node(t.root, false, true) {
		return nil
	}
	re, err := regexp.Compile(e.b.String())
	if err != nil {
		return nil // as where repetitions multiply beyond what RE2 takes
	}
	e.linear.re, e.linear.chunk = re, matchChunk
	return &e.linear
}

// RE2 writes repetitions out, so that a pattern of 2 KB can take 100 MB, and may
// take a step with each instruction for each character. Beyond these limits the
// backtracking engine, which counts repetitions, takes a pattern or a text.
const (
	maxProgram = 10_000    // instructions of a pattern
	maxSteps   = 256 << 20 // of one search, about two seconds
	small      = 64        // instructions; patterns of these take every text
)

// size is about the number of instructions of n, at most 1<<30.
func (n *node) size() int {
	sum := 1
	for _, s := range n.sub {
		sum += s.size()
	}
	if n.op == opRepeat {
		sum *= min(max(n.min, n.max, 1), 1<<20)
	}
	return min(sum, 1<<30)
}

// matchChunk bounds the memory of a search: a chunk of matches is searched at
// once, the next one from the end of the last.
const matchChunk = 4096

// each calls found with the matches in text, or with the first one, until found
// returns false. A match is nil, or has the offsets of the whole and of the
// groups in re; work is that of the search since the last call. cpu is the time
// of the processor.
func (l *linear) each(text string, global bool, cpu func() time.Duration, found func(work int, match []int) bool) {
	chunk := 1 // it grows while searches are short, so that the work is known in time
	for pos := 0; ; {
		began := cpu()
		from := pos
		if l.looksBack && pos > 0 { // at the beginning of a text, nothing is before a match
			_, size := utf8.DecodeLastRuneInString(text[:pos])
			from -= size
		}
		n := chunk
		if from < pos {
			n = 1
		}
		matches := l.search(text[from:], n)
		if len(matches) > 0 && from+matches[0][0] < pos { // it overlaps the last match
			matches = l.searchFrom(text[from:])
		} else if n < chunk && len(matches) > 0 {
			matches, n = l.search(text[from:], chunk), chunk
		}
		full := len(matches) == n
		end := len(text)
		if full {
			end = from + matches[n-1][1]
		}
		took := cpu() - began
		extra := overrun(took, end-pos, len(matches))
		for _, m := range matches {
			for i := range m {
				if m[i] >= 0 {
					m[i] += from
				}
			}
			if !found(extra+scanWork*max(0, m[1]-pos), m) {
				return
			}
			pos, extra = m[1], 0
		}
		if !full || !global {
			found(extra+scanWork*(len(text)-pos), nil)
			return
		}
		if took > longSearch {
			chunk = max(chunk/2, 1)
		} else {
			chunk = min(2*chunk, l.chunk)
		}
	}
}

// What a search may take before its time is work: nearly all are shorter. A
// match that could have been longer is found only at the end of the text, so
// that many matches can take as long as their number times the text.
const (
	longSearch = 10 * time.Millisecond
	timeBase   = time.Millisecond
	timeByte   = 250 * time.Nanosecond
	timeMatch  = 4 * time.Microsecond
	timeWork   = 8 * time.Nanosecond // of one unit of work
)

// overrun returns the work of a search that took longer than others with as many
// bytes and matches.
func overrun(took time.Duration, bytes, matches int) int {
	return int(max(0, took-timeBase-time.Duration(bytes)*timeByte-time.Duration(matches)*timeMatch) / timeWork)
}

// search returns the first matches, with groups only if needed.
func (l *linear) search(text string, limit int) [][]int {
	if len(l.groups) > 0 {
		return l.re.FindAllStringSubmatchIndex(text, limit)
	}
	return l.re.FindAllStringIndex(text, limit)
}

// searchFrom returns the first match that begins after the first character,
// which it can see.
func (l *linear) searchFrom(text string) [][]int {
	l.second.Do(func() { l.after = regexp.MustCompile(`\A(?s:.)(?s:.*?)(` + l.re.String() + `)`) })
	m := l.after.FindStringSubmatchIndex(text)
	if m == nil {
		return nil
	}
	return [][]int{m[2:]}
}

// takes reports whether the pattern has the same meaning on this text.
func (l *linear) takes(text string) bool {
	if l.lines && (strings.IndexByte(text, '\r') >= 0 || strings.Contains(text, "\u2028") || strings.Contains(text, "\u2029")) {
		return false
	}
	if l.size > small && len(text) > maxSteps/l.size {
		return false
	}
	return !l.pairs || !beyondBMP(text)
}

// beyondBMP reports whether text has a character that is two units of UTF-16.
func beyondBMP(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] >= 0xF0 {
			return true
		}
	}
	return false
}

// shortest returns the least number of characters that a node matches, at most
// 1.
func shortest(n *node) int {
	switch n.op {
	case opChar, opSet, opForeign:
		return 1
	case opCat, opCapture:
		sum := 0
		for _, s := range n.sub {
			sum += shortest(s)
		}
		return min(sum, 1)
	case opAlt:
		least := 1
		for _, s := range n.sub {
			least = min(least, shortest(s))
		}
		return least
	case opRepeat:
		if n.min > 0 {
			return shortest(n.sub[0])
		}
	}
	return 0
}

// An emitter writes a tree in RE2 syntax.
type emitter struct {
	b      strings.Builder
	flags  flagSet
	wanted map[int]bool
	linear linear
}

// node writes n and reports whether that was possible. repeated says that n is
// inside a repetition, always that every repetition passes through n; outside
// of repetitions, always is ignored.
func (e *emitter) node(n *node, repeated, always bool) bool {
	switch n.op {
	case opChar:
		return e.char(n.char)
	case opSet:
		e.set(n.set)
	case opBegin:
		e.linear.looksBack = true
		e.b.WriteString(e.anchor(`\A`, `(?m:^)`))
	case opEnd:
		e.b.WriteString(e.anchor(`\z`, `(?m:$)`))
	case opWord:
		e.linear.looksBack = true
		e.b.WriteString(`\b`)
	case opNotWord:
		e.linear.looksBack = true
		e.b.WriteString(`\B`)
	case opCat:
		e.b.WriteString("(?:")
		for _, s := range n.sub {
			if !e.node(s, repeated, always) {
				return false
			}
		}
		e.b.WriteString(")")
	case opAlt:
		e.b.WriteString("(?:")
		for i, s := range n.sub {
			if i > 0 {
				e.b.WriteString("|")
			}
			if !e.node(s, repeated, false) {
				return false
			}
		}
		e.b.WriteString(")")
	case opCapture:
		return e.capture(n, repeated, always)
	case opRepeat:
		return e.repeat(n, repeated, always)
	default:
		return false
	}
	return true
}

func (e *emitter) anchor(text, line string) string {
	if e.flags.multiline {
		e.linear.lines = true
		return line
	}
	return text
}

func (e *emitter) char(c rune) bool {
	if c >= 0xD800 && c <= 0xDFFF {
		return false
	}
	if e.flags.ignoreCase {
		set, ok := runes{c, c}.folded(false)
		if !ok {
			return false
		}
		e.ranges(set)
		return true
	}
	e.b.WriteString(regexp.QuoteMeta(string(c)))
	return true
}

func (e *emitter) set(s runes) {
	if !e.flags.unicode && (s.has(0xD800, 0xDFFF) || s.has(0x10000, utf8.MaxRune)) {
		e.linear.pairs = true
	}
	e.ranges(s)
}

func (e *emitter) ranges(s runes) {
	if len(s) == 0 {
		e.b.WriteString(`[^\x00-\x{10FFFF}]`)
		return
	}
	e.b.WriteString("[")
	for i := 0; i < len(s); i += 2 {
		fmt.Fprintf(&e.b, `\x{%X}-\x{%X}`, s[i], s[i+1])
	}
	e.b.WriteString("]")
}

func (e *emitter) capture(n *node, repeated, always bool) bool {
	if !e.wanted[n.group] {
		e.b.WriteString("(?:")
	} else {
		if repeated && !always {
			return false
		}
		e.linear.groups[n.group] = len(e.linear.groups) + 1
		e.b.WriteString("(")
	}
	ok := e.node(n.sub[0], repeated, always)
	e.b.WriteString(")")
	return ok
}

func (e *emitter) repeat(n *node, repeated, always bool) bool {
	if shortest(n.sub[0]) == 0 {
		return false
	}
	again := n.max < 0 || n.max > 1
	e.b.WriteString("(?:")
	if !e.node(n.sub[0], repeated || again, !repeated || always && n.min > 0) {
		return false
	}
	e.b.WriteString(")")
	switch {
	case n.min == 0 && n.max < 0:
		e.b.WriteString("*")
	case n.min == 1 && n.max < 0:
		e.b.WriteString("+")
	case n.min == 0 && n.max == 1:
		e.b.WriteString("?")
	case n.max < 0:
		fmt.Fprintf(&e.b, "{%d,}", n.min)
	default:
		fmt.Fprintf(&e.b, "{%d,%d}", n.min, n.max)
	}
	if n.lazy {
		e.b.WriteString("?")
	}
	return true
}
