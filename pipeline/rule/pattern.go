// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"

	"github.com/artelhq/artel"
)

// searchTime limits one search of the backtracking engine, in time of the
// processor. The engine itself can only be stopped by a clock, which is late by
// up to 200 ms; on a busy machine it is given up to maxSearchTime by that.
const (
	searchTime    = 50 * time.Millisecond
	maxSearchTime = 64 * searchTime
)

// maxBacktrack limits the stack of the backtracking engine, in numbers.
const maxBacktrack = 4 << 20

// A pattern is a compiled regular expression. It is safe for concurrent use.
type pattern struct {
	flags       flagSet
	groups      int
	names       map[string]int
	linear      *linear // nil: only the backtracking engine takes it
	need        need
	halvesMoved bool                              // surrogates are shifted by halfOffset for the backtracking engine
	back        []func() (*regexp2.Regexp, error) // with longer and longer limits of time
}

// compile compiles a pattern. Groups that are not in wanted need not capture.
func compile(source, flags string, wanted map[int]bool, named bool) (*pattern, error) {
	f, err := parseFlags(flags)
	if err != nil {
		return nil, err
	}
	tree, err := parse(source, f)
	p := &pattern{flags: f, halvesMoved: !f.unicode && namesHalves(source) && (tree == nil || !tree.crossed)}
	for limit := searchTime; limit <= maxSearchTime; limit *= 8 {
		p.back = append(p.back, sync.OnceValues(func() (*regexp2.Regexp, error) { return backtracking(source, f, p.halvesMoved, limit) }))
	}
	switch {
	case err == nil:
		p.groups, p.names, p.need = tree.groups, tree.names, needOf(tree, f)
		if named && len(p.names) > 0 {
			wanted = maps.Clone(wanted)
			for _, n := range p.names {
				wanted[n] = true
			}
		}
		if p.linear = linearOf(tree, f, wanted); p.linear != nil {
			return p, nil
		}
	case refused(err):
		return nil, err
	}
	if f.ignoreCase && wide(tree, source) > maxWide {
		return nil, fmt.Errorf("with the flag i it has more than %d classes of many characters, which takes too long to prepare", maxWide)
	}
	re, err := p.back[0]()
	if err != nil {
		return nil, err
	}
	if tree == nil {
		p.readGroups(re)
	}
	return p, nil
}

// maxWide is how many wide classes a pattern may have with the flag i: the
// backtracking engine folds the case of each character in them, which takes
// tens of milliseconds.
const maxWide = 50

// wide counts the classes of many characters; without a tree, what could be
// one.
func wide(t *syntaxTree, source string) int {
	if t == nil {
		n := 0
		for _, s := range []string{"[", ".", `\W`, `\D`, `\S`, `\p`, `\P`} {
			n += strings.Count(source, s)
		}
		return n
	}
	return t.root.wide()
}

func (n *node) wide() int {
	sum := 0
	if n.op == opForeign || n.op == opSet && n.set.count(0) > 1000 {
		sum++
	}
	for _, s := range n.sub {
		sum += s.wide()
	}
	return sum
}

// readGroups gets the groups from the engine, for patterns that the parser does
// not understand.
func (p *pattern) readGroups(re *regexp2.Regexp) {
	numbers := re.GetGroupNumbers()
	p.groups = len(numbers) - 1
	for _, n := range numbers {
		if name := re.GroupNameFromNumber(n); n > 0 && name != "" && name != strconv.Itoa(n) {
			if p.names == nil {
				p.names = make(map[string]int)
			}
			if p.names[name] == 0 {
				p.names[name] = n
			}
		}
	}
}

func backtracking(source string, f flagSet, moved bool, limit time.Duration) (_ *regexp2.Regexp, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the pattern cannot be read: %v", v)
		}
	}()
	options := regexp2.ECMAScript
	if f.ignoreCase {
		options |= regexp2.IgnoreCase
	}
	if f.multiline {
		options |= regexp2.Multiline
	}
	if f.dotAll {
		options |= regexp2.Singleline
	}
	if f.unicode {
		options |= regexp2.Unicode
	}
	if moved {
		source = moveHalves(source)
	}
	re, err := regexp2.Compile(source, options, regexp2.OptionMaxBacktrackingStackSize(maxBacktrack), regexp2.OptionMaintainCaptureOrder())
	if err != nil {
		return nil, fmt.Errorf("the pattern is not valid: %s", artel.Shorten(strings.TrimPrefix(err.Error(), "error parsing regexp: "), 200))
	}
	re.MatchTimeout = limit
	return re, nil
}

// halfOffset is added to surrogates in patterns that name them, and in their
// texts, which moves them to unused code points: the engine searches with
// strings, which cannot hold surrogates.
const halfOffset = 0x100000

var halfEscape = regexp.MustCompile(`^\\u[dD][89a-fA-F][0-9a-fA-F]{2}`)

// namesHalves reports whether a pattern may name surrogates.
func namesHalves(s string) bool {
	return beyondBMP(s) || strings.Contains(s, `\ud`) || strings.Contains(s, `\uD`)
}

// moveHalves shifts the surrogates that a pattern names.
func moveHalves(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if m := halfEscape.FindString(s[i:]); m != "" {
			half, _ := strconv.ParseInt(m[2:], 16, 32) // it is four hexadecimal digits
			b.WriteRune(rune(half) + halfOffset)
			i += len(m)
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			b.WriteRune(high + halfOffset)
			b.WriteRune(low + halfOffset)
		case r == '\\' && i+1 < len(s) && s[i+1] < utf8.RuneSelf:
			b.WriteString(s[i : i+2])
			size = 2
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// A replacement is a compiled rule.
type replacement struct {
	*pattern
	template []piece
	trim     []string
	note     func(begin, end int) // called with the byte offsets of each match; may be nil
	cpu      func() time.Duration // time of the processor; nil: that of the thread
}

// errTooLong is the error for a result that is too long.
func errTooLong() error {
	return fmt.Errorf("the text would have more than %d bytes after it", MaxResult)
}

// apply replaces the matches in text and returns their number. An error is the
// reason to drop the rule. spend is called repeatedly with the work done since
// the last call, and can end the search with an error.
func (r *replacement) apply(text string, spend spender) (string, int, error) {
	if !r.need.canMatch(text) {
		return text, 0, nil
	}
	if r.linear != nil && r.linear.takes(text) {
		return r.applyLinear(text, spend)
	}
	return r.applyBack(text, spend)
}

// A spender receives the work of the linear engine since its last call, and
// returns an error if there has been too much of it or of the time of the other
// engine.
type spender func(work int) error

// The work of the linear engine, in units that each take a few nanoseconds.
const (
	scanWork  = 2  // of a byte that is searched
	matchWork = 64 // of a match
)

// spendEvery is the work after which a spender is called.
const spendEvery = 1 << 16

// applyLinear counts the pieces of the template and the bytes that they write as
// work too: a template may name a long group thousands of times.
func (r *replacement) applyLinear(text string, spend spender) (string, int, error) {
	var b strings.Builder
	n, at, counted := 0, 0, 0
	work := 0
	var failed error
	pay := func(least int) bool {
		work += b.Len() - counted
		if counted = b.Len(); work > least {
			failed = cmp.Or(failed, spend(work))
			work = 0
		}
		return failed == nil
	}
	defer r.onThread()()
	r.linear.each(text, r.flags.global, r.cpu, func(searched int, m []int) bool {
		work += searched
		if m == nil {
			return pay(spendEvery)
		}
		n++
		work += matchWork + len(r.template)
		b.WriteString(text[at:m[0]])
		at = m[1]
		if r.note != nil {
			r.note(m[0], m[1])
		}
		for _, p := range r.template {
			from, to := 0, 0
			switch p.kind {
			case literal:
				b.WriteString(p.text)
			case whole:
				from, to = m[0], m[1]
			case before:
				to = m[0]
			case after:
				from, to = m[1], len(text)
			case group, named:
				if n := r.linear.groups[r.number(p)]; n > 0 && m[2*n] >= 0 {
					work += (m[2*n+1] - m[2*n]) * len(r.trim)
					b.WriteString(r.trimmed(text[m[2*n]:m[2*n+1]]))
				}
			}
			if b.Len()+to-from > MaxResult {
				failed = errTooLong()
				return false
			}
			b.WriteString(text[from:to])
		}
		if b.Len() > MaxResult {
			failed = errTooLong()
			return false
		}
		return pay(spendEvery)
	})
	if !pay(0) {
		return "", 0, failed
	}
	if n == 0 {
		return text, 0, nil
	}
	b.WriteString(text[at:])
	return b.String(), n, nil
}

// number returns the group of a piece; 0 for an unknown name.
func (r *replacement) number(p piece) int {
	if p.kind == named {
		return r.names[p.text]
	}
	return p.group
}

func (r *replacement) trimmed(s string) string {
	for _, t := range r.trim {
		if t != "" {
			s = strings.ReplaceAll(s, t, "")
		}
	}
	return s
}

// applyBack works on the characters that the pattern refers to: code points
// with the flag u, otherwise UTF-16 units. A search that was stopped without
// having had its time of the processor is repeated with a longer limit.
func (r *replacement) applyBack(text string, spend spender) (string, int, error) {
	in := []rune(text)
	if !r.flags.unicode {
		in = r.units(text)
	}
	defer r.onThread()()
	for i, engine := range r.back {
		re, err := engine()
		if err != nil {
			return "", 0, err
		}
		out, notes, n, err := r.searchBack(re, in, spend)
		switch {
		case errors.Is(err, errStarved) && i+1 < len(r.back):
			continue
		case err != nil:
			return "", 0, err
		case n == 0:
			return text, 0, nil
		}
		for _, m := range notes {
			r.note(m[0], m[1])
		}
		return r.joined(out), n, nil
	}
	return "", 0, errors.New("the pattern has no engine")
}

// onThread sets the time of the processor, which is that of one thread.
func (r *replacement) onThread() (end func()) {
	if r.cpu == nil {
		r.cpu = threadTime
	}
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// errStarved is the error of a search that was stopped by the clock while other
// work had the processor.
var errStarved = errors.New("the machine was too busy to search a text; try again")

// cpuEvery is the number of matches after which the time is taken, which costs as
// much as a short search.
const cpuEvery = 32

func (r *replacement) searchBack(re *regexp2.Regexp, in []rune, spend spender) (out []rune, notes [][2]int, n int, err error) {
	var places []int
	if r.note != nil {
		places = r.byteOffsets(in)
	}
	at, next := 0, 0
	began := r.cpu()
	var failed error
	err = re.FindRunesMatches(in, 0, func(v regexp2.MatchView) bool {
		begin, size, _ := v.GroupRange(0)
		if r.flags.sticky && begin != next {
			return false
		}
		n++
		if r.note != nil {
			notes = append(notes, [2]int{places[begin], places[begin+size]})
		}
		out = append(out, in[at:begin]...)
		at = begin + size
		if next = at; size == 0 {
			next++
		}
		out, failed = r.fill(out, in, v)
		if failed == nil && n%cpuEvery == 0 {
			failed = spend(0)
			began = r.cpu()
		}
		return failed == nil && r.flags.global
	})
	switch {
	case failed != nil:
		return nil, nil, 0, failed
	case errors.Is(err, regexp2.ErrBacktrackingStackLimit):
		return nil, nil, 0, errors.New("the pattern needs too much memory on a text; make its repetitions less open")
	case err != nil:
		if e := spend(0); e != nil {
			return nil, nil, 0, e
		}
		if r.cpu()-began < searchTime/2 {
			return nil, nil, 0, errStarved
		}
		return nil, nil, 0, fmt.Errorf("the pattern took longer than %v on a text and was stopped; make its repetitions less open", searchTime)
	}
	return append(out, in[at:]...), notes, n, nil
}

// fill appends the replacement of one match.
func (r *replacement) fill(out, in []rune, v regexp2.MatchView) ([]rune, error) {
	begin, size, _ := v.GroupRange(0)
	for _, p := range r.template {
		var add []rune
		switch p.kind {
		case literal:
			add = r.units(p.text)
		case whole:
			add = in[begin : begin+size]
		case before:
			add = in[:begin]
		case after:
			add = in[begin+size:]
		case group, named:
			from, length, ok := v.GroupRange(r.number(p))
			if !ok || r.number(p) == 0 {
				continue
			}
			if add = in[from : from+length]; len(r.trim) > 0 {
				add = r.units(r.trimmed(r.joined(add)))
			}
		}
		if len(out)+len(add) > MaxResult/utf8.UTFMax {
			return nil, errTooLong()
		}
		out = append(out, add...)
	}
	return out, nil
}

// units returns a text in the form for the backtracking engine.
func (p *pattern) units(text string) []rune {
	s := units(text)
	for i, c := range s {
		if p.halvesMoved && utf16.IsSurrogate(c) {
			s[i] = c + halfOffset
		}
	}
	return s
}

// byteOffsets returns the byte offset of each unit of a text, and of its end.
// The second surrogate of a character has the offset of the character's end.
func (p *pattern) byteOffsets(in []rune) []int {
	out := make([]int, len(in)+1)
	at := 0
	for i, c := range in {
		out[i] = at
		if p.halvesMoved && c > halfOffset {
			c -= halfOffset
		}
		switch {
		case !utf16.IsSurrogate(c):
			at += utf8.RuneLen(c)
		case c < 0xDC00: // the first half
			at += utf8.UTFMax
		}
	}
	out[len(in)] = at
	return out
}

// joined is the text of code points, or of UTF-16 units.
func (p *pattern) joined(s []rune) string {
	if p.halvesMoved {
		s = slices.Clone(s)
		for i, c := range s {
			if c > halfOffset {
				s[i] = c - halfOffset
			}
		}
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		if utf16.IsSurrogate(s[i]) && i+1 < len(s) {
			if r := utf16.DecodeRune(s[i], s[i+1]); r != utf8.RuneError {
				b.WriteRune(r)
				i++
				continue
			}
		}
		b.WriteRune(s[i])
	}
	return b.String()
}

// groupsIn returns the numbers of the groups that a replacement can refer to,
// whatever its macros expand to, and whether it can refer to names.
func groupsIn(replace string) (wanted map[int]bool, named bool) {
	wanted = make(map[int]bool)
	for i := 0; i+1 < len(replace); i++ {
		if replace[i] != '$' {
			continue
		}
		if c := replace[i+1]; c >= '0' && c <= '9' {
			wanted[int(c-'0')] = true
			if i+2 < len(replace) && replace[i+2] >= '0' && replace[i+2] <= '9' {
				wanted[int(c-'0')*10+int(replace[i+2]-'0')] = true
			}
		} else if c == '<' {
			named = true
		}
	}
	return wanted, named
}

// sortedGroups encodes the result of [groupsIn] for a key.
func sortedGroups(wanted map[int]bool, named bool) string {
	var b strings.Builder
	for _, n := range slices.Sorted(maps.Keys(wanted)) {
		b.WriteString(strconv.Itoa(n) + ",")
	}
	return b.String() + strconv.FormatBool(named)
}
