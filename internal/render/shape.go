// SPDX-License-Identifier: Apache-2.0

package render

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
)

// shape returns the source to render for an unfinished text: the last line is
// held back while it may still become another kind of block, and open inline
// constructs are closed.
func shape(src string, refs []parser.Reference) string {
	line := lastLine(src, len(src))
	if strings.TrimSpace(src[line:]) == "" && strings.TrimSpace(src[lastLine(src, line-1):]) == "" {
		return src // after a blank line nothing inline is open
	}
	leaf := lastLeaf(src, refs)
	if leaf == nil {
		return src
	}
	if isCode(leaf) && endOf(leaf) >= line && (endOf(leaf) > line || line == len(src)) {
		if known().fence.MatchString(src[line:]) {
			return src[:line]
		}
		return src
	}
	cut := len(src)
	if line < len(src) && waits(src[line:]) {
		cut = line
	}
	if at := header(src, line, leaf, refs); at < cut {
		cut = at
	}
	if cut < len(src) {
		src = src[:cut]
		if leaf = lastLeaf(src, refs); leaf == nil {
			return src
		}
	}
	return closeLeaf(src, leaf)
}

// lastLine returns the beginning of the line that ends at end.
func lastLine(src string, end int) int {
	return strings.LastIndexByte(src[:max(end, 0)], '\n') + 1
}

// lastLeaf is the last leaf block of src; nil if there is none.
func lastLeaf(src string, refs []parser.Reference) ast.Node {
	n, _ := parse([]byte(src), refs)
	for {
		c := n.LastChild()
		if n.Kind() == tables.KindTableRow || n.Kind() == tables.KindTableHeader {
			for c != nil && c.Lines().Len() == 0 && c.PreviousSibling() != nil {
				c = c.PreviousSibling() // cells missing in the row
			}
		}
		if c == nil || c.Type() != ast.TypeBlock {
			if n.Kind() == ast.KindDocument {
				return nil
			}
			return n
		}
		n = c
	}
}

// endOf is the end of the last line of n.
func endOf(n ast.Node) int {
	if h, ok := n.(*ast.HTMLBlock); ok && h.HasClosure() {
		return h.ClosureLine.Stop
	}
	if k := n.Lines().Len(); k > 0 {
		return n.Lines().At(k - 1).Stop
	}
	return n.Pos()
}

// patterns match lines, and the end of a text.
type patterns struct {
	waiting               []*regexp.Regexp // lines that may still become another kind of block
	fence, row, delimiter *regexp.Regexp
	entity                *regexp.Regexp
}

// known is compiled on first use.
var known = sync.OnceValue(func() patterns {
	// Prefix of quotes and lists.
	const opens = `^[\s>]*(?:(?:[-+*]|\d{1,9}[.)])\s+)*`
	return patterns{
		waiting: []*regexp.Regexp{
			regexp.MustCompile(opens + `(?:[-=*#_>|~+:.)\[\]!\\` + "`" + `\s]*|\d{1,9}[.)]?|\[[ xX]?\]?\s*)$`), // marks alone
			regexp.MustCompile(opens + "(?:```+[^`]*|~~~+.*)$"),                                                // a fence and its language
			regexp.MustCompile(opens + `<(?:[^>]*|/?[A-Za-z][^<>]*>\s*)$`),                                     // a tag
			regexp.MustCompile(opens + `\[[^\]]*\](?::.*)?$`),                                                  // the definition of a reference
			regexp.MustCompile(opens + `\[[^\]]{0,80}$`),                                                       // and its beginning
		},
		fence:     regexp.MustCompile("^[\\s>]*(?:`+|~+)\\s*$"),
		row:       regexp.MustCompile(opens + `\|`),
		delimiter: regexp.MustCompile(`^[\s>|:-]*$`),
		entity:    regexp.MustCompile(`^&(?:#?[0-9A-Za-z]{0,10})$`),
	}
})

// waits reports whether line, which is incomplete, may still become another
// kind of block.
func waits(line string) bool {
	for _, r := range known().waiting {
		if r.MatchString(line) {
			return true
		}
	}
	return false
}

// header returns the beginning of a line that may be the header of a table
// without its delimiter row, otherwise len(src). The last line of src begins at
// line.
func header(src string, line int, leaf ast.Node, refs []parser.Reference) int {
	if before := lastLine(src, line-1); before < line && known().delimiter.MatchString(src[line:]) && known().row.MatchString(src[before:line]) {
		if l := lastLeaf(src[:line], refs); l != nil && l.Kind() != tables.KindTableCell && !isCode(l) {
			return before
		}
	}
	if line < len(src) && leaf.Kind() != tables.KindTableCell && known().row.MatchString(src[line:]) {
		return line
	}
	return len(src)
}

// closeLeaf closes the open inline constructs of leaf at the end of src.
func closeLeaf(src string, leaf ast.Node) string {
	switch leaf.Kind() {
	case ast.KindParagraph, ast.KindTextBlock, ast.KindHeading, tables.KindTableCell:
	default:
		return src
	}
	lines := leaf.Lines()
	end := strings.TrimRight(src, " \t\r\n")
	if lines.Len() == 0 || endOf(leaf) < len(end) || len(src)-len(end) > 0 && strings.Count(src[len(end):], "\n") > 1 {
		return src
	}
	from := lines.At(0).Start
	if from >= len(end) {
		return src
	}
	var c closer
	return end[:from] + c.close(end[from:])
}

// A closer copies the text of one block with all inline constructs closed.
type closer struct {
	out      []byte
	runs     []run
	brackets []run
}

// A run is a run of the same mark in out, without a partner yet.
type run struct {
	mark byte
	n    int
	at   int
}

// longLabel is the length in bytes from which a bracket is no longer taken for
// the beginning of a link.
const longLabel = 300

func (c *closer) close(s string) string {
	for i := 0; i < len(s); {
		n := 1
		stop := false
		switch s[i] {
		case '\\':
			n = 2
			stop = i+1 == len(s)
		case '`':
			var code string
			if n, code = codeSpan(s[i:]); n == 0 {
				if code != "" {
					c.out = append(c.out, code...)
					return c.end(true)
				}
				stop = true
			}
		case '*', '_', '~':
			n = len(s[i:]) - len(strings.TrimLeft(s[i:], s[i:i+1]))
			stop = c.emphasis(s, i, n)
		case '[':
			c.brackets = append(c.brackets, run{mark: '[', n: 1, at: len(c.out)})
		case '!':
			// An image, or the end of a sentence.
			if i+1 == len(s) && (i == 0 || s[i-1] == ' ' || s[i-1] == '\n') {
				stop = true
			} else if i+1 < len(s) && s[i+1] == '[' {
				c.brackets = append(c.brackets, run{mark: '[', n: 2, at: len(c.out)})
				n = 2
			}
		case ']':
			n, stop = c.link(s[i:])
		case '<':
			n, stop = angle(s[i:])
		case '&':
			stop = known().entity.MatchString(s[i:])
		}
		if stop {
			break
		}
		c.out = append(c.out, s[i:i+n]...)
		i += n
	}
	return c.end(false)
}

// codeSpan returns the length of the code span that s begins with or, if it is
// open, 0 and the closed span; "" if it is still empty.
func codeSpan(s string) (int, string) {
	n := len(s) - len(strings.TrimLeft(s, "`"))
	mark := s[:n]
	for rest := s[n:]; ; {
		i := strings.IndexByte(rest, '`')
		if i < 0 {
			break
		}
		rest = rest[i:]
		k := len(rest) - len(strings.TrimLeft(rest, "`"))
		rest = rest[k:]
		if k == n {
			return len(s) - len(rest), ""
		}
	}
	code := strings.TrimRight(strings.TrimRight(s[n:], "`"), " \t\r\n")
	if code == "" {
		return 0, ""
	}
	return 0, mark + code + mark
}

// emphasis pairs the run of n marks at s[i:]. It returns true if the run is at
// the end and opening: more marks may follow.
func (c *closer) emphasis(s string, i, n int) (stop bool) {
	mark := s[i]
	before, after := ' ', ' '
	if i > 0 {
		before, _ = utf8.DecodeLastRuneInString(s[:i])
	}
	if i+n < len(s) {
		after, _ = utf8.DecodeRuneInString(s[i+n:])
	}
	left := !unicode.IsSpace(after) && (!punct(after) || unicode.IsSpace(before) || punct(before))
	right := !unicode.IsSpace(before) && (!punct(before) || unicode.IsSpace(after) || punct(after))
	opens, closes := left, right
	if mark == '_' {
		opens, closes = left && (!right || punct(before)), right && (!left || punct(after))
	}
	rest := n
	if closes {
		runs := append([]run(nil), c.runs...)
		for k := len(runs) - 1; k >= 0 && rest > 0; k-- {
			if runs[k].mark != mark || mark == '~' && runs[k].n != rest {
				continue
			}
			used := min(rest, runs[k].n)
			rest -= used
			runs[k].n -= used
			runs = runs[:k+min(1, runs[k].n)]
		}
		if rest == 0 || i+n < len(s) {
			c.runs = runs
		}
	}
	if rest == 0 {
		return false
	}
	if i+n == len(s) {
		return true
	}
	// One star inside a word is rarely emphasis, and one tilde often means
	// about.
	if n == 1 && (mark == '~' || mark == '*' && before < utf8.RuneSelf && !unicode.IsSpace(before) && !punct(before)) {
		return false
	}
	if opens {
		c.runs = append(c.runs, run{mark: mark, n: rest, at: len(c.out) + n - rest})
	}
	return false
}

func punct(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }

// link handles a closing bracket. It returns how much of s to copy; stop means
// that the link is incomplete and the rest of s is held back.
func (c *closer) link(s string) (n int, stop bool) {
	if len(c.brackets) == 0 {
		return 1, false
	}
	open := c.brackets[len(c.brackets)-1]
	var complete bool
	switch {
	case len(s) == 1:
	case s[1] == '(':
		n, complete = target(s[1:])
		if n == 0 {
			complete = true // not a link
		}
	case s[1] == '[':
		n = strings.IndexByte(s[1:], ']') + 1
		complete = n > 0 || len(s) > longLabel
	default:
		complete = true
	}
	if !complete {
		return 0, true
	}
	c.brackets = c.brackets[:len(c.brackets)-1]
	c.runs = within(c.runs, open.at)
	return 1 + n, false
}

// within drops the runs after at: a link closes the runs inside it.
func within(runs []run, at int) []run {
	for len(runs) > 0 && runs[len(runs)-1].at > at {
		runs = runs[:len(runs)-1]
	}
	return runs
}

// target parses the destination and title that s begins with. It returns their
// length, or 0 if invalid; complete is false if they are unfinished.
func target(s string) (n int, complete bool) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1, true
			}
		case '<':
			if i == 1 {
				end := strings.IndexAny(s, ">\n")
				if end < 0 {
					return len(s), false
				}
				i = end
			}
		case ' ', '\t', '\n':
			return title(s, i)
		}
	}
	return len(s), false
}

// title parses the title after a destination that ends at i.
func title(s string, i int) (n int, complete bool) {
	rest := strings.TrimLeft(s[i:], " \t\n")
	if rest == "" {
		return len(s), false
	}
	at := len(s) - len(rest)
	quote := rest[0]
	switch quote {
	case ')':
		return at + 1, true
	case '(':
		quote = ')'
	case '"', '\'':
	default:
		return 0, false
	}
	end := strings.IndexByte(rest[1:], quote)
	if end < 0 {
		return len(s), false
	}
	rest = strings.TrimLeft(rest[end+2:], " \t\n")
	switch {
	case rest == "":
		return len(s), false
	case rest[0] == ')':
		return len(s) - len(rest) + 1, true
	}
	return 0, false
}

// angle handles an autolink or a tag in angle brackets.
func angle(s string) (n int, stop bool) {
	end := strings.IndexAny(s[1:], "<> \t\n")
	switch {
	case end < 0:
		return 0, true
	case s[1+end] == '>':
		return end + 2, false
	}
	return 1, false
}

// end removes unpaired brackets and closes the open runs. done: out ends with
// code, which is not trimmed.
func (c *closer) end(done bool) string {
	for i := len(c.brackets) - 1; i >= 0; i-- {
		b := c.brackets[i]
		if len(c.out)-b.at > longLabel {
			continue
		}
		c.out = append(c.out[:b.at], c.out[b.at+b.n:]...)
		for k := range c.runs {
			if c.runs[k].at > b.at {
				c.runs[k].at -= b.n
			}
		}
	}
	if !done {
		c.out = []byte(strings.TrimRight(string(c.out), " \t\r\n"))
	}
	for i := len(c.runs) - 1; i >= 0; i-- {
		r := c.runs[i]
		if r.at+r.n >= len(c.out) {
			c.out = c.out[:min(r.at, len(c.out))]
			c.out = []byte(strings.TrimRight(string(c.out), " \t\r\n"))
			continue
		}
		for range min(r.n, 3) {
			c.out = append(c.out, r.mark)
		}
	}
	return string(c.out)
}
