// SPDX-License-Identifier: Apache-2.0

package export

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
)

// Lengths in twentieths of a point.
const (
	pageText   = 9026 // width of A4 between the margins
	pageHeight = 13958
	indentStep = 425  // of a list or a quote
	maxIndent  = 5100 // of deeper nesting too, so that words still fit
	tableInset = 108  // between the edge of a cell and its text
	codeInset  = 130  // of the text of code from the margins, so that its box ends there
)

// maxLevel is the deepest level of a list in Office Open XML, from 0.
const maxLevel = 8

// A place describes the blocks around a block.
type place struct {
	left  int   // indentation
	quote int   // quotes around it
	level int   // lists around it
	tight bool  // in a list whose items follow each other closely
	mark  *mark // of the item; nil outside of lists and when it is written
}

// inner returns the place inside a further list or quote.
func (p place) inner() place {
	p.left = min(p.left+indentStep, maxIndent)
	return p
}

// A mark is the number or bullet of an item.
type mark struct {
	list  int // the id in numbering.xml
	level int
	done  bool // written
}

// A paragraph holds the properties of a paragraph.
type paragraph struct {
	style  string // "": the ordinary one
	at     place
	align  string // "": left
	number bool   // takes the mark of its item
}

// open begins a paragraph. The elements of w:pPr have a fixed order: pStyle,
// numPr, pBdr, ind, contextualSpacing, jc.
func (b *body) open(p paragraph) {
	b.line = inline{}
	b.put(`<w:p>`)
	marked := p.number && p.at.mark != nil && !p.at.mark.done
	var out strings.Builder
	if p.style != "" {
		out.WriteString(`<w:pStyle w:val="` + p.style + `"/>`)
	}
	if marked {
		p.at.mark.done = true
		out.WriteString(`<w:numPr><w:ilvl w:val="` + strconv.Itoa(p.at.mark.level) + `"/><w:numId w:val="` + strconv.Itoa(p.at.mark.list) + `"/></w:numPr>`)
	}
	if p.at.quote > 0 && p.style != "Code" {
		out.WriteString(`<w:pBdr><w:left w:val="single" w:sz="18" w:space="8" w:color="C8CDD2"/></w:pBdr>`)
	}
	left := p.at.left
	if p.style == "Code" {
		left += codeInset
	}
	if p.at.left > 0 || marked {
		out.WriteString(`<w:ind w:left="` + strconv.Itoa(left) + `"`)
		if marked {
			out.WriteString(` w:hanging="` + strconv.Itoa(indentStep) + `"`)
		}
		out.WriteString(`/>`)
	}
	if p.at.tight && p.style == "ListParagraph" {
		out.WriteString(`<w:contextualSpacing/>`)
	}
	if p.align != "" {
		out.WriteString(`<w:jc w:val="` + p.align + `"/>`)
	}
	if out.Len() > 0 {
		b.put(`<w:pPr>`, out.String(), `</w:pPr>`)
	}
}

func (b *body) close() { b.put(`</w:p>`) }

// blocks writes the blocks in n.
func (b *body) blocks(ctx context.Context, n ast.Node, at place) error {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.block(ctx, c, at); err != nil {
			return err
		}
	}
	return nil
}

func (b *body) block(ctx context.Context, n ast.Node, at place) error {
	switch n := n.(type) {
	case *ast.Heading:
		b.text(n, paragraph{style: "Heading" + strconv.Itoa(min(max(n.Level, 1), 6)), at: at, number: true})
	case *ast.Paragraph, *ast.TextBlock:
		p := paragraph{at: at, number: true}
		switch {
		case at.level > 0:
			p.style = "ListParagraph"
		case at.quote > 0:
			p.style = "Quote"
		}
		b.text(n, p)
	case *ast.ThematicBreak:
		b.marked(at)
		b.open(paragraph{style: "Rule", at: place{left: at.left}})
		b.close()
	case *ast.Blockquote:
		b.marked(at)
		inside := at.inner()
		inside.quote++
		return b.blocks(ctx, n, inside)
	case *ast.List:
		b.marked(at)
		return b.list(ctx, n, at)
	case *tables.Table:
		b.marked(at)
		b.table(n, at)
	case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock:
		b.marked(at)
		code := string(n.Lines().Value(b.src))
		if h, ok := n.(*ast.HTMLBlock); ok && h.HasClosure() {
			code += string(h.ClosureLine.Value(b.src))
		}
		b.code(code, at)
	default: // an unknown block: write its text
		if n.Type() == ast.TypeBlock && n.FirstChild() != nil && n.FirstChild().Type() == ast.TypeBlock {
			return b.blocks(ctx, n, at)
		}
		b.text(n, paragraph{at: at, number: true})
	}
	return nil
}

// marked writes the mark of an item that begins with another block than text.
func (b *body) marked(at place) {
	if at.mark != nil && !at.mark.done {
		b.open(paragraph{style: "ListParagraph", at: at, number: true})
		b.close()
	}
}

// text writes a block that holds inline content.
func (b *body) text(n ast.Node, p paragraph) {
	if _, ok := n.(*ast.LinkReferenceDefinition); ok {
		return
	}
	b.open(p)
	b.inlines(n, look{}, pageText-p.at.left)
	b.close()
}

// A list is a numbered list of the document.
type list struct {
	kind  int // of the abstract numberings: numberedDot, numberedParen
	level int
	start int
}

func (b *body) list(ctx context.Context, n *ast.List, at place) error {
	level := min(at.level, maxLevel)
	id := listBullets
	if n.IsOrdered() {
		l := list{kind: numberedDot, level: level, start: min(max(n.Start, 0), 32767)}
		if n.Marker == ')' {
			l.kind = numberedParen
		}
		b.lists = append(b.lists, l)
		id = listFirst + len(b.lists) - 1
	}
	inside := at.inner()
	inside.level++
	inside.tight = n.IsTight
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		m := &mark{list: id, level: level}
		if isTask(item) {
			m.list = listTasks
		}
		inside.mark = m
		if err := b.blocks(ctx, item, inside); err != nil {
			return err
		}
		b.marked(inside)
	}
	return nil
}

// isTask reports whether an item begins with a check box.
func isTask(item ast.Node) bool {
	first := item.FirstChild()
	if first == nil || first.FirstChild() == nil {
		return false
	}
	return first.FirstChild().Kind() == tables.KindTaskCheckBox
}

// linesAtOnce limits the lines of code in a paragraph: programs draw one box
// around a paragraph, and lay out a very long one slowly.
const linesAtOnce = 200

// code writes lines in a fixed-width font.
func (b *body) code(s string, at place) {
	n := 0
	for line := range strings.SplitSeq(withoutEnd(s), "\n") {
		switch {
		case n%linesAtOnce == 0:
			if n > 0 {
				b.close()
			}
			b.open(paragraph{style: "Code", at: place{left: at.left}})
		default:
			b.put(`<w:r><w:br/></w:r>`)
		}
		b.run(look{}, line)
		n++
	}
	b.close()
	b.gap()
}

// withoutEnd returns the text with "\n" between lines and none at the end.
func withoutEnd(s string) string {
	return strings.TrimSuffix(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
}

// plain writes each line of a text as a paragraph, without formatting.
func (b *body) plain(s string) {
	for line := range strings.SplitSeq(withoutEnd(s), "\n") {
		b.open(paragraph{style: "Plain"})
		b.run(look{}, line)
		b.close()
	}
}

// gap writes an empty paragraph: between two boxes that Word would join, and
// after a table at the end, where the format requires one.
func (b *body) gap() {
	b.open(paragraph{style: "Gap"})
	b.close()
}

// table writes a table of the width of the text.
func (b *body) table(n *tables.Table, at place) {
	widths := b.widths(n, pageText-at.left)
	if len(widths) > maxColumns {
		b.wide(n, at)
		return
	}
	b.put(`<w:tbl><w:tblPr><w:tblStyle w:val="Grid"/><w:tblW w:w="`, strconv.Itoa(pageText-at.left), `" w:type="dxa"/>`)
	if at.left > 0 {
		b.put(`<w:tblInd w:w="`, strconv.Itoa(at.left), `" w:type="dxa"/>`)
	}
	b.put(`<w:tblLayout w:type="fixed"/><w:tblLook w:val="0020" w:firstRow="1" w:lastRow="0" w:firstColumn="0" w:lastColumn="0" w:noHBand="1" w:noVBand="1"/></w:tblPr><w:tblGrid>`)
	for _, w := range widths {
		b.put(`<w:gridCol w:w="`, strconv.Itoa(w), `"/>`)
	}
	b.put(`</w:tblGrid>`)
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		head := row.Kind() == tables.KindTableHeader
		b.put(`<w:tr>`)
		if head {
			b.put(`<w:trPr><w:cantSplit/><w:tblHeader/></w:trPr>`)
		}
		cell := row.FirstChild()
		for i, w := range widths {
			b.put(`<w:tc><w:tcPr><w:tcW w:w="`, strconv.Itoa(w), `" w:type="dxa"/>`)
			if head {
				b.put(`<w:shd w:val="clear" w:color="auto" w:fill="F3F1EC"/>`)
			}
			b.put(`</w:tcPr>`)
			b.open(paragraph{style: "Cell", align: aligned(n, i)})
			if cell != nil {
				b.inlines(cell, look{bold: head}, w-2*tableInset)
				cell = cell.NextSibling()
			}
			b.close()
			b.put(`</w:tc>`)
		}
		b.put(`</w:tr>`)
	}
	b.put(`</w:tbl>`)
	b.gap()
}

func aligned(n *tables.Table, column int) string {
	if column < len(n.Alignments) {
		switch n.Alignments[column] {
		case tables.AlignCenter:
			return "center"
		case tables.AlignRight:
			return "right"
		}
	}
	return ""
}

// maxColumns is the maximum number of columns in Word.
const maxColumns = 63

// wide writes a table with more than maxColumns columns as lines of text.
func (b *body) wide(n *tables.Table, at place) {
	var lines []string
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, textOf(cell, b.src))
		}
		lines = append(lines, strings.Join(cells, " | "))
	}
	b.code(strings.Join(lines, "\n"), at)
}

// widths divides a width among the columns by their content.
func (b *body) widths(n *tables.Table, total int) []int {
	var need []int
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		i := 0
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			if i == len(need) {
				need = append(need, 5)
			}
			need[i] = max(need[i], min(columns(textOf(cell, b.src)), 60))
			i++
		}
	}
	sum := 0
	for _, n := range need {
		sum += n
	}
	widths := make([]int, len(need))
	left := total
	for i, n := range need {
		widths[i] = max(total*n/sum, 1)
		left -= widths[i]
	}
	if len(widths) > 0 {
		widths[len(widths)-1] = max(widths[len(widths)-1]+left, 1)
	}
	return widths
}

// columns estimates the width of s in Latin letters.
func columns(s string) int {
	n := utf8.RuneCountInString(s)
	for _, r := range s {
		if isWide(r) {
			n++
		}
	}
	return n
}
