// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// An op says what a node of a pattern is.
type op uint8

const (
	opChar    op = iota // one character: a code point, or a UTF-16 unit without the flag u
	opSet               // one character of a set
	opBegin             // ^
	opEnd               // $
	opWord              // \b
	opNotWord           // \B
	opCat               // one after the other
	opAlt               // one of them
	opCapture           // a group that captures
	opRepeat
	opAhead   // (?=x)
	opBehind  // (?<=x)
	opNone    // (?!x) and (?<!x)
	opBack    // a back reference
	opForeign // an unknown set, such as \p{L}
)

// A node is a part of a pattern.
type node struct {
	op       op
	sub      []*node
	char     rune
	set      runes
	min, max int // of opRepeat; max < 0: no limit
	lazy     bool
	group    int // of opCapture, from 1
}

// A syntaxTree is a parsed JavaScript pattern.
type syntaxTree struct {
	root   *node
	groups int
	names  map[string]int // of groups

	crossed bool // a class has a range that crosses the surrogates
}

// errUnclear says that this parser does not support a pattern; the backtracking
// engine decides whether it is valid.
var errUnclear = errors.New("the pattern has syntax that is rare")

// errGroup is a group syntax of other engines that JavaScript does not have.
var errGroup = errors.New("the pattern has a group that JavaScript does not have: after (? comes one of : = ! <= <! <name>")

// Errors that JavaScript reports only with the flag u.
var (
	errBrace  = errors.New(`with the flag u, { } and ] have to be written \{ \} and \]`)
	errEscape = errors.New("with the flag u, a backslash can only stand before what has a meaning")
)

// refused reports whether the error means that JavaScript refuses the pattern.
func refused(err error) bool {
	return errors.Is(err, errGroup) || errors.Is(err, errBrace) || errors.Is(err, errEscape)
}

// A parser parses one pattern. Its text is code points with the flag u,
// otherwise UTF-16 units, as in JavaScript.
type parser struct {
	text  []rune
	at    int
	flags flagSet
	tree  syntaxTree
	back  int      // the highest number in a back reference
	named []string // names in back references
	depth int
}

const maxNesting = 200

func parse(pattern string, flags flagSet) (*syntaxTree, error) {
	p := &parser{flags: flags, text: []rune(pattern)}
	if !flags.unicode {
		p.text = units(pattern)
	}
	root, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if p.at < len(p.text) || p.back > p.tree.groups {
		return nil, errUnclear
	}
	for _, name := range p.named {
		if p.tree.names[name] == 0 {
			return nil, errUnclear
		}
	}
	p.tree.root = root
	return &p.tree, nil
}

// units returns s in UTF-16, each unit as a rune.
func units(s string) []rune {
	out := make([]rune, 0, len(s))
	for _, r := range s {
		if r > 0xFFFF {
			a, b := utf16.EncodeRune(r)
			out = append(out, a, b)
			continue
		}
		out = append(out, r)
	}
	return out
}

// peek returns the next character, or -1.
func (p *parser) peek() rune {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return -1
}

// take skips s if it comes next.
func (p *parser) take(s string) bool {
	for i, c := range s { // s is ASCII
		if p.at+i >= len(p.text) || p.text[p.at+i] != c {
			return false
		}
	}
	p.at += len(s)
	return true
}

func (p *parser) alternatives() (*node, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, errUnclear
	}
	defer func() { p.depth-- }()
	var alts []*node
	for {
		n, err := p.sequence()
		if err != nil {
			return nil, err
		}
		alts = append(alts, n)
		if !p.take("|") {
			break
		}
	}
	if len(alts) == 1 {
		return alts[0], nil
	}
	return &node{op: opAlt, sub: alts}, nil
}

func (p *parser) sequence() (*node, error) {
	seq := &node{op: opCat}
	for p.at < len(p.text) && p.peek() != '|' && p.peek() != ')' {
		n, err := p.term()
		if err != nil {
			return nil, err
		}
		last := len(seq.sub) - 1
		if last >= 0 && n.op == opChar && seq.sub[last].op == opChar && utf16.DecodeRune(seq.sub[last].char, n.char) != utf8.RuneError {
			seq.sub[last] = &node{op: opChar, char: utf16.DecodeRune(seq.sub[last].char, n.char)}
			continue
		}
		seq.sub = append(seq.sub, n)
	}
	return seq, nil
}

// term reads an assertion, or an atom with its quantifier.
func (p *parser) term() (*node, error) {
	n, err := p.atom()
	if err != nil {
		return nil, err
	}
	low, high, ok := p.quantifier()
	if !ok {
		return n, nil
	}
	switch n.op {
	case opBegin, opEnd, opWord, opNotWord, opAhead, opBehind, opNone:
		return nil, errUnclear
	}
	if high >= 0 && low > high {
		return nil, errUnclear
	}
	return &node{op: opRepeat, sub: []*node{n}, min: low, max: high, lazy: p.take("?")}, nil
}

func (p *parser) quantifier() (low, high int, ok bool) {
	switch {
	case p.take("*"):
		return 0, -1, true
	case p.take("+"):
		return 1, -1, true
	case p.take("?"):
		return 0, 1, true
	case p.peek() != '{':
		return 0, 0, false
	}
	begin := p.at
	p.at++
	low, ok = p.number()
	if high = low; ok && p.take(",") {
		if high, ok = p.number(); !ok {
			high, ok = -1, true
		}
	}
	if !ok || !p.take("}") {
		p.at = begin
		return 0, 0, false
	}
	return low, high, true
}

func (p *parser) number() (int, bool) {
	n, begin := 0, p.at
	for ; p.peek() >= '0' && p.peek() <= '9'; p.at++ {
		n = min(n*10+int(p.peek()-'0'), 1<<30)
	}
	return n, p.at > begin
}

func (p *parser) atom() (*node, error) {
	c := p.peek()
	p.at++
	switch c {
	case '^':
		return &node{op: opBegin}, nil
	case '$':
		return &node{op: opEnd}, nil
	case '.':
		if p.flags.dotAll {
			return &node{op: opSet, set: everything()}, nil
		}
		return &node{op: opSet, set: lineEnds().not()}, nil
	case '(':
		return p.group()
	case '[':
		return p.class()
	case '\\':
		return p.escape()
	case '*', '+', '?':
		return nil, errUnclear
	case '{', '}', ']':
		if p.at--; p.flags.unicode {
			return nil, errBrace
		}
		if _, _, repeats := p.quantifier(); repeats {
			return nil, errUnclear
		}
		p.at++
	}
	return &node{op: opChar, char: c}, nil
}

func (p *parser) group() (*node, error) {
	n := &node{}
	switch {
	case !p.take("?"):
		p.tree.groups++
		n.op, n.group = opCapture, p.tree.groups
	case p.take(":"):
		n.op = opCat
	case p.take("="):
		n.op = opAhead
	case p.take("<="):
		n.op = opBehind
	case p.take("!"), p.take("<!"):
		n.op = opNone
	case p.take("<"):
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		if p.tree.names[name] > 0 {
			return nil, errUnclear
		}
		if p.tree.names == nil {
			p.tree.names = make(map[string]int)
		}
		p.tree.groups++
		p.tree.names[name] = p.tree.groups
		n.op, n.group = opCapture, p.tree.groups
	case slices.Contains([]rune("ims-"), p.peek()):
		return nil, p.modifiers()
	default:
		return nil, errGroup
	}
	inner, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if !p.take(")") {
		return nil, errUnclear
	}
	n.sub = []*node{inner}
	return n, nil
}

// modifiers distinguishes (?i:x), which is new in JavaScript, from (?i), which
// is not part of it.
func (p *parser) modifiers() error {
	for slices.Contains([]rune("ims-"), p.peek()) {
		p.at++
	}
	if p.peek() == ':' {
		return errUnclear
	}
	return errGroup
}

// name reads the name of a group, in letters, digits, _ and $ of ASCII.
func (p *parser) name() (string, error) {
	begin := p.at
	for p.peek() != '>' {
		c := p.peek()
		word := c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' && p.at > begin
		if !word {
			return "", errUnclear
		}
		p.at++
	}
	name := string(p.text[begin:p.at])
	p.at++
	if name == "" {
		return "", errUnclear
	}
	return name, nil
}

// escape reads what follows a backslash outside of classes.
func (p *parser) escape() (*node, error) {
	c := p.peek()
	switch {
	case c == 'b':
		p.at++
		return &node{op: opWord}, nil
	case c == 'B':
		p.at++
		return &node{op: opNotWord}, nil
	case c >= '1' && c <= '9':
		n, _ := p.number()
		p.back = max(p.back, n)
		return &node{op: opBack}, nil
	case c == 'k':
		if p.at++; !p.take("<") {
			return nil, errUnclear
		}
		name, err := p.name()
		p.named = append(p.named, name)
		return &node{op: opBack}, err
	case p.property():
		return &node{op: opForeign}, nil
	}
	if set, ok := p.setEscape(); ok {
		return &node{op: opSet, set: set}, nil
	}
	char, err := p.charEscape()
	return &node{op: opChar, char: char}, err
}

// property skips p{…} or P{…} with the flag u.
func (p *parser) property() bool {
	if c := p.peek(); !p.flags.unicode || c != 'p' && c != 'P' {
		return false
	}
	end := slices.Index(p.text[p.at:], '}')
	if end < 0 {
		return false
	}
	p.at += end + 1
	return true
}

// setEscape reads one of \d \D \w \W \s \S.
func (p *parser) setEscape() (runes, bool) {
	var set runes
	switch p.peek() {
	case 'd', 'D':
		set = runes{'0', '9'}
	case 'w', 'W':
		set = runes{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}
	case 's', 'S':
		set = spaces()
	default:
		return nil, false
	}
	if p.peek() < 'a' {
		set = set.not()
	}
	p.at++
	return set, true
}

// charEscape reads the escape of one character.
func (p *parser) charEscape() (rune, error) {
	c := p.peek()
	p.at++
	switch c {
	case 't':
		return '\t', nil
	case 'n':
		return '\n', nil
	case 'v':
		return '\v', nil
	case 'f':
		return '\f', nil
	case 'r':
		return '\r', nil
	case '0':
		if d := p.peek(); d >= '0' && d <= '9' {
			return 0, errUnclear
		}
		return 0, nil
	case 'c':
		l := p.peek()
		if l >= 'a' && l <= 'z' || l >= 'A' && l <= 'Z' {
			p.at++
			return l % 32, nil
		}
		return 0, errUnclear
	case 'x':
		return p.hex(2)
	case 'u':
		if p.flags.unicode {
			return 0, errUnclear // pairs and braces
		}
		return p.hex(4)
	}
	if p.flags.unicode && c >= 0 && !strings.ContainsRune(`^$\.*+?()[]{}|/`, c) {
		return 0, errEscape
	}
	if c < 0x20 || c >= 0x7F || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
		return 0, errUnclear
	}
	return c, nil
}

func (p *parser) hex(digits int) (rune, error) {
	var n rune
	for range digits {
		i := strings.IndexRune("0123456789abcdefABCDEF", p.peek())
		if i < 0 {
			return 0, errUnclear
		}
		if i > 15 {
			i -= 6
		}
		n = n<<4 | rune(i)
		p.at++
	}
	return n, nil
}

// class reads what follows [.
func (p *parser) class() (*node, error) {
	negated := p.take("^")
	var set runes
	foreign := false
	for !p.take("]") {
		if p.peek() == '\\' {
			p.at++
			if p.property() {
				foreign = true
				continue
			}
			p.at--
		}
		low, members, err := p.member()
		if err != nil {
			return nil, err
		}
		high := low
		if p.peek() == '-' && p.at+1 < len(p.text) && p.text[p.at+1] != ']' {
			p.at++
			var other runes
			if high, other, err = p.member(); err != nil {
				return nil, err
			}
			if members != nil || other != nil || low > high {
				return nil, errUnclear
			}
		}
		if members == nil {
			members = runes{low, high}
			p.tree.crossed = p.tree.crossed || low < 0xD800 && high >= 0xD800 || low <= 0xDFFF && high > 0xDFFF
		}
		set = append(set, members...)
	}
	if foreign {
		return &node{op: opForeign}, nil
	}
	set = set.sorted()
	if p.flags.ignoreCase {
		var ok bool
		if set, ok = set.folded(p.flags.unicode); !ok {
			return &node{op: opForeign}, nil
		}
	}
	if negated {
		set = set.not()
	}
	return &node{op: opSet, set: set}, nil
}

// member reads a character of a class, or a set in it.
func (p *parser) member() (rune, runes, error) {
	c := p.peek()
	p.at++
	if c < 0 {
		return 0, nil, errUnclear
	}
	if c != '\\' {
		return c, nil, nil
	}
	if set, ok := p.setEscape(); ok {
		return 0, set, nil
	}
	switch {
	case p.take("b"):
		return '\b', nil, nil
	case p.take("-"):
		return '-', nil, nil
	}
	c, err := p.charEscape()
	return c, nil, err
}
