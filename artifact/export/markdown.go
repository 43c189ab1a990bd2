// SPDX-License-Identifier: Apache-2.0

package export

import (
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/render"
)

// Markdown writes the text, with the refs in links and pictures replaced by the
// results of d.Link. Code, bare addresses and text that is not Markdown stay
// unchanged.
func Markdown(w io.Writer, d Document) error {
	text := d.Text
	if d.isMarkdown() && d.Link != nil {
		text = relink(d)
	}
	_, err := io.WriteString(w, text)
	return failed("export.Markdown", artel.Shorten(d.Title, 120), err)
}

// containers are the quotes and list items that a definition may begin in.
const containers = `(?:[ \t>]|[-+*][ \t]|\d{1,9}[.)][ \t])*`

// destinations finds what may be the destination of a link in the source: of
// an inline link or picture, of a definition, or an address between angle
// brackets. The last group of each is the ref.
var destinations = [...]*regexp.Regexp{
	regexp.MustCompile(`\]\([ \t]*\n?[ \t]*<?((?:artifact:|artel://|blob:)[^\s<>()]+)`),
	regexp.MustCompile(`(?m)^` + containers + `\[[^\]\n]+\]:[ \t]*\n?[ \t]*<?((?:artifact:|artel://|blob:)[^\s<>()]+)`),
	regexp.MustCompile(`<((?:artifact:|artel://|blob:)[^\s<>()]+)>`),
}

// relink returns the text with its refs replaced by their targets.
func relink(d Document) string {
	doc, src, ok := render.Parse(d.Text)
	if !ok || string(src) != d.Text {
		return d.Text
	}
	type change struct {
		start, end int
		to         string
	}
	var changes []change
	literal, bracketed := literalOf(doc, src)
	for kind, pattern := range destinations {
		for _, m := range pattern.FindAllStringSubmatchIndex(d.Text, -1) {
			start, end := m[2], m[3]
			ref, isRef := parseRef(string(util.UnescapePunctuations(src[start:end])))
			if !isRef || literal.has(start) || !endsHere(d.Text[end:]) || kind == 2 && !bracketed[start] {
				continue
			}
			to, ok := cleanURL(d.Link(ref), true)
			if !ok {
				continue
			}
			c := change{start, end, to}
			if kind == 2 && !strings.HasPrefix(to, "http") {
				// Only absolute addresses stand between angle brackets alone.
				c = change{m[0], m[1], "[" + escapeLabel(d.Text[start:end]) + "](" + to + ")"}
				// A bare address ends at an angle bracket, and not at a square one,
				// and behind some signs that means something else.
				if literal.reaches(m[0], d.Text) || m[0] > 0 && strings.ContainsRune("]!", rune(d.Text[m[0]-1])) {
					c.to = " " + c.to
				}
			}
			changes = append(changes, c)
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return a.start - b.start })
	var b strings.Builder
	at := 0
	for _, c := range changes {
		if c.start < at {
			continue // found by two patterns
		}
		b.WriteString(d.Text[at:c.start])
		b.WriteString(c.to)
		at = c.end
	}
	b.WriteString(d.Text[at:])
	return b.String()
}

// endsHere reports whether a destination ends before rest.
func endsHere(rest string) bool { return rest == "" || strings.ContainsAny(rest[:1], " \t\r\n)>") }

// escapeLabel makes s the text of a link that shows it.
func escapeLabel(s string) string {
	return strings.NewReplacer(`_`, `\_`, `*`, `\*`, `~`, `\~`).Replace(s)
}

// spans are parts of a text, in order.
type spans [][2]int

// has reports whether at is in one of them.
func (s spans) has(at int) bool {
	i, found := slices.BinarySearchFunc(s, at, func(span [2]int, at int) int { return span[0] - at })
	return found || i > 0 && at < s[i-1][1]
}

// reaches reports whether nothing but what may belong to an address is between
// one of them and at.
func (s spans) reaches(at int, text string) bool {
	i, _ := slices.BinarySearchFunc(s, at, func(span [2]int, at int) int { return span[0] - at })
	return i > 0 && s[i-1][1] <= at && !strings.ContainsAny(text[s[i-1][1]:at], " \t\n")
}

// literalOf returns where a text stands for itself: in code, and in addresses
// without anything around them, which may look as if a link were in them; and
// where addresses in angle brackets begin.
func literalOf(doc ast.Node, src []byte) (s spans, bracketed map[int]bool) {
	bracketed = map[int]bool{}
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				s = append(s, [2]int{line.Start, line.Stop})
			}
		case *ast.CodeSpan:
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				if t, ok := c.(*ast.Text); ok {
					s = append(s, [2]int{t.Segment.Start, t.Segment.Stop})
				}
			}
		case *ast.AutoLink:
			// The label is a part of src; what is left behind each says where.
			label := n.Label(src)
			switch start := cap(src) - cap(label); {
			case start < 0:
			case start > 0 && src[start-1] == '<':
				bracketed[start] = true
			default:
				s = append(s, [2]int{start, start + len(label)})
			}
		}
		return ast.WalkContinue, nil
	})
	slices.SortFunc(s, func(a, b [2]int) int { return a[0] - b[0] })
	return s, bracketed
}
