// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An out collects the text as Markdown blocks.
type out struct {
	*budget
	b      strings.Builder
	around []container // the enclosing quotes and list items
	tight  bool        // the next block follows without an empty line
	code   []string    // lines of an unfinished code block
	levels []level     // of the current list of [out.item]
	shown  int         // characters of a PDF that are not blank
}

// A container is a quote or a list item.
type container struct {
	first, rest string // prefixes of its first line and of the others
	used        bool
}

// push opens a container. Beyond maxNesting it has no prefix.
func (o *out) push(first, rest string) {
	o.endCode()
	if len(o.around) >= maxNesting {
		first, rest = "", ""
	}
	o.around = append(o.around, container{first: first, rest: rest})
}

// pop closes the innermost container.
func (o *out) pop() {
	o.endCode()
	o.around = o.around[:len(o.around)-1]
}

// prefixes returns the prefixes of the first line of a block and of its others, and
// marks the containers as used.
func (o *out) prefixes() (first, rest string) {
	for i := range o.around {
		c := &o.around[i]
		if c.used {
			first += c.rest
		} else {
			first += c.first
			c.used = true
		}
		rest += c.rest
	}
	return first, rest
}

// block writes lines after an empty line.
func (o *out) block(text string) {
	o.endCode()
	o.put(text)
}

func (o *out) put(text string) {
	if o.full || text == "" {
		return
	}
	// The blank line has the prefix of the enclosing containers, but not the mark of
	// a new item.
	blank := ""
	for _, c := range o.around {
		if c.used {
			blank += c.rest
		}
	}
	first, rest := o.prefixes()
	if o.b.Len() > 0 {
		if o.tight {
			o.write("\n")
		} else {
			o.write("\n" + strings.TrimRight(blank, " ") + "\n")
		}
	}
	o.tight = false
	for n := 0; ; n++ {
		line, more, ok := strings.Cut(text, "\n")
		prefix := rest
		if n == 0 {
			prefix = first
		}
		if line == "" {
			prefix = strings.TrimRight(prefix, " ")
		}
		o.write(prefix)
		o.write(line)
		if !ok || o.full {
			return
		}
		o.write("\n")
		text = more
	}
}

// write appends to the text until it is full.
func (o *out) write(s string) {
	if o.full {
		return
	}
	if room := o.maxText - int64(o.b.Len()); int64(len(s)) > room {
		o.full = true
		n := int(room)
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	o.b.WriteString(s)
}

// paragraph writes spans as a paragraph.
func (o *out) paragraph(spans []span) {
	if s := o.inline(spans); s != "" {
		o.block(guardLines(s))
	}
}

// heading writes a heading of a level from 1 on.
func (o *out) heading(level int, spans []span) {
	s := strings.Join(strings.Fields(o.inline(spans)), " ")
	if s == "" {
		return
	}
	if t := strings.TrimRight(s, "#"); len(t) < len(s) && (t == "" || t[len(t)-1] == ' ') {
		s = t + "\\" + s[len(t):] // otherwise it would close the heading
	}
	o.block(strings.Repeat("#", min(max(level, 1), 6)) + " " + s)
}

// A level is an open list.
type level struct {
	depth        int
	mark, indent string
}

// item writes one item of a list at a depth from 0. The mark is "-" or a number with
// its dot. follows says that the last block was an item too.
func (o *out) item(depth int, mark string, spans []span, follows bool) {
	s := o.inline(spans)
	if s == "" {
		return
	}
	o.endCode()
	if !follows {
		o.levels = o.levels[:0]
	}
	sibling := ""
	for n := len(o.levels); n > 0 && o.levels[n-1].depth >= depth; n = len(o.levels) {
		sibling = o.levels[n-1].mark
		o.levels = o.levels[:n-1]
	}
	indent := ""
	if n := len(o.levels); n > 0 {
		indent = o.levels[n-1].indent
		if n <= maxNesting {
			indent += strings.Repeat(" ", len(o.levels[n-1].mark)+1)
		}
	}
	o.levels = append(o.levels, level{depth, mark, indent})
	// In Markdown only the number 1 can begin a list directly below a paragraph.
	o.tight = follows && (mark[0] == '-' || mark[:len(mark)-1] == "1" || sibling != "" && sibling[len(sibling)-1] == mark[len(mark)-1])
	o.around = append(o.around, container{first: indent + mark + " ", rest: indent + strings.Repeat(" ", len(mark)+1)})
	o.put(guardLines(s))
	o.around = o.around[:len(o.around)-1]
}

// comment writes a comment.
func (o *out) comment(text string) { o.block("<!-- " + text + " -->") }

// marker marks the beginning of a page, slide or similar.
func (o *out) marker(what string, n int) { o.comment(what + " " + strconv.Itoa(n)) }

// codeLine adds lines to a code block, which the next other block ends.
func (o *out) codeLine(text string) {
	text = strings.ReplaceAll(text, "\r", "")
	if len(o.code) == 0 && text == "" {
		return
	}
	o.code = append(o.code, strings.Split(strings.ToValidUTF8(text, "\uFFFD"), "\n")...)
}

// endCode writes the collected code block.
func (o *out) endCode() {
	if len(o.code) == 0 {
		return
	}
	code := o.code
	o.code = nil
	for len(code) > 0 && strings.TrimSpace(code[len(code)-1]) == "" {
		code = code[:len(code)-1]
	}
	text := strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0x7F {
			return -1
		}
		return r
	}, strings.Join(code, "\n"))
	if text == "" {
		return
	}
	fence := strings.Repeat("`", max(3, longest(text, '`')+1))
	o.put(fence + "\n" + text + "\n" + fence)
}

// table writes rows of cells, each of one or more lines of Markdown. The first row is
// the head. Empty last columns are dropped.
func (o *out) table(rows [][]string) {
	width := 0
	for _, row := range rows {
		for i := len(row); i > width; i-- {
			if row[i-1] != "" {
				width = i
			}
		}
	}
	if width == 0 {
		return
	}
	if len(rows) > 1 {
		rows[0] = unbold(rows[0])
	}
	o.rows(width, slices.Values(rows))
}

// rows writes a table of width columns.
func (o *out) rows(width int, rows iter.Seq[[]string]) {
	o.endCode()
	var b strings.Builder
	first := true
	for row := range rows {
		if o.full || int64(o.b.Len())+int64(b.Len()) > o.maxText {
			break
		}
		b.WriteByte('|')
		for c := range width {
			cell := ""
			if c < len(row) {
				cell = cellText(row[c])
			}
			if cell != "" {
				b.WriteByte(' ')
				b.WriteString(cell)
			}
			b.WriteString(" |")
		}
		b.WriteByte('\n')
		if first {
			b.WriteString("|" + strings.Repeat(" --- |", width) + "\n")
			first = false
		}
	}
	o.put(strings.TrimSuffix(b.String(), "\n"))
}

// unbold removes bold from a head in which all cells are bold.
func unbold(head []string) []string {
	bare := make([]string, len(head))
	for i, c := range head {
		if c == "" {
			continue
		}
		inner, ok := strings.CutPrefix(c, "**")
		if ok {
			inner, ok = strings.CutSuffix(inner, "**")
		}
		if !ok || strings.Contains(inner, "**") || strings.HasPrefix(inner, "*") {
			return head
		}
		bare[i] = inner
	}
	return bare
}

// cellText puts the Markdown of a cell on one line.
func cellText(s string) string {
	if !strings.ContainsAny(s, "|\n") {
		return s
	}
	s = strings.ReplaceAll(s, "|", "\\|")
	if !strings.Contains(s, "\n") {
		return s
	}
	parts := strings.Split(s, "\n")
	kept := parts[:0]
	for _, p := range parts {
		if p = strings.TrimSpace(p); p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "<br>")
}

// cellLines returns text as the Markdown of a cell, with its lines.
func cellLines(text string) string {
	text = strings.TrimSpace(text)
	return strings.ReplaceAll(lines(text, hasLinks(text)), "  \n", "\n")
}

// notes are footnotes in document order.
type notes struct {
	labels []string
	texts  []*string
}

// add reserves the next footnote. It returns its label and where its text goes.
func (n *notes) add(prefix string) (label string, text *string) {
	label, text = prefix+strconv.Itoa(len(n.labels)+1), new(string)
	n.labels, n.texts = append(n.labels, label), append(n.texts, text)
	return label, text
}

// quote writes a paragraph as a block quote.
func (o *out) quote(spans []span) {
	o.push("> ", "> ")
	o.paragraph(spans)
	o.pop()
}

// writeNotes writes the footnotes after everything else.
func (o *out) writeNotes(n *notes) {
	for i, label := range n.labels {
		o.tight = i > 0
		o.push("[^"+label+"]: ", "    ")
		o.block(*n.texts[i])
		o.pop()
	}
}
