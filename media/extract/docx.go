// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"cmp"
	"encoding/xml"
	"errors"
	"slices"
	"strings"
)

// A docx reads a Word document.
type docx struct {
	*archive
	o      *out
	rels   map[string]relation // of the current part
	styles map[string]*docxStyle
	lists  *docxLists
	notes  notes
	boxes  []*node                // text boxes anchored in the current paragraph
	inList bool                   // the last block was a list item
	bodies map[string]*docxBodies // by kind
	marks  map[[2]string]span     // of the notes that were referred to, by kind and id
	left   tally                  // what bodies may still hold
	depth  int
}

// docxBodies are the notes or comments of a document, with the relations of their part.
type docxBodies struct {
	of   map[string]*node // by id
	rels map[string]relation
}

// readDOCX reads a Word document: its body, then headers and footers, then
// notes and comments as footnotes.
func readDOCX(src *source, o *out) error {
	a, err := openArchive(src)
	if err != nil {
		return err
	}
	main, err := a.mainPart("word/document.xml")
	if err != nil {
		return err
	}
	d := &docx{archive: a, o: o, bodies: map[string]*docxBodies{}, marks: map[[2]string]span{}, left: tally{maxNodes, src.maxText}}
	o.pages = a.property("Pages")
	if d.rels, err = a.relations(main); err != nil {
		return err
	}
	if err := d.readStyles(); err != nil {
		return err
	}
	for _, kind := range []string{"footnotes", "endnotes", "comments"} {
		if err := d.readBodies(kind); err != nil {
			return err
		}
	}
	if err := d.readPart(main); err != nil {
		return err
	}
	if err := d.readMargins(); err != nil {
		return err
	}
	o.endCode()
	o.writeNotes(&d.notes)
	return nil
}

// part returns the name of the document's first part of a kind.
func (d *docx) part(kind string) string {
	for _, r := range inOrder(d.rels) {
		if r.kind == kind && !r.external && d.has(r.target) {
			return r.target
		}
	}
	return ""
}

// readBodies keeps the notes or comments of a kind by id.
func (d *docx) readBodies(kind string) error {
	name := d.part(kind)
	if name == "" {
		return nil
	}
	rels, err := d.relations(name)
	if err != nil {
		return err
	}
	bodies := &docxBodies{map[string]*node{}, rels}
	d.bodies[kind] = bodies
	return d.within(&d.left, name, func(n *node) { bodies.of[n.attr("id")] = n }, "footnote", "endnote", "comment")
}

// readPart writes the blocks of a part.
func (d *docx) readPart(name string) error {
	return d.scan(name, func(x *xmlReader, e xml.StartElement) error {
		switch e.Name.Local {
		case "p":
			n, err := x.subtree(e)
			if err != nil {
				return err
			}
			return d.paragraph(n)
		case "tbl":
			return d.table(x)
		case "sectPr", "sdtPr", "del", "moveFrom":
			return x.skip()
		case "oMathPara", "oMath": // beside paragraphs
			n, err := x.subtree(e)
			if err != nil {
				return err
			}
			return d.paragraph(&node{kids: []*node{n}})
		case "altChunk":
			d.omit(OmitObject, 1)
			return x.skip()
		}
		return nil
	})
}

// readMargins writes the distinct paragraphs of headers and footers.
func (d *docx) readMargins() error {
	var names []string
	for _, r := range d.rels {
		if (r.kind == "header" || r.kind == "footer") && d.has(r.target) {
			names = append(names, r.target)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	names = slices.Compact(names)
	main := d.rels
	defer func() { d.rels = main }()
	var seen []string
	size := 0
	var write func(n *node)
	write = func(n *node) {
		s := d.inline(d.runs(n))
		boxes := d.boxes
		d.boxes = nil
		switch {
		case s == "" || slices.Contains(seen, s):
		case len(seen) > 100 || size > 1<<20:
			d.o.truncate("the document has more headers and footers than are read")
		default:
			if len(seen) == 0 {
				d.o.comment("headers and footers")
			}
			seen = append(seen, s)
			size += len(s)
			d.o.block(guardLines(s))
		}
		for _, b := range boxes {
			b.all("p", write)
		}
	}
	for _, name := range names {
		rels, err := d.relations(name)
		if err != nil {
			return err
		}
		d.rels = rels
		if err = d.subtrees(name, write, "p"); err != nil {
			return err
		}
	}
	return nil
}

// paragraph writes a paragraph by its style.
func (d *docx) paragraph(n *node) error {
	props := n.kid("pPr")
	st := d.paragraphStyle(props)
	spans := d.runs(n)
	boxes := d.boxes
	d.boxes = nil
	if label, depth, ok := d.label(props, st); ok && !blank(spans) {
		switch {
		case st.heading > 0:
			d.o.heading(st.heading, append([]span{plain(label + " ")}, spans...))
			d.inList = false
		default:
			mark, text := marked(label, spans)
			d.o.item(depth, mark, text, d.inList)
			d.inList = true
		}
		return d.textBoxes(boxes)
	}
	if !blank(spans) || st.code {
		d.inList = false
	}
	switch {
	case st.code:
		d.o.codeLine(plainText(spans))
	case st.heading > 0:
		d.o.heading(st.heading, spans)
	case st.quote:
		d.o.quote(spans)
	default:
		d.o.paragraph(spans)
	}
	return d.textBoxes(boxes)
}

// textBoxes writes the text boxes anchored in a paragraph.
func (d *docx) textBoxes(boxes []*node) error {
	if d.depth >= 4 {
		d.omit(OmitObject, len(boxes))
		return nil
	}
	d.depth++
	defer func() { d.depth-- }()
	for _, box := range boxes {
		for _, k := range box.kids {
			switch k.name {
			case "p":
				if err := d.paragraph(k); err != nil {
					return err
				}
			case "tbl":
				d.o.table(d.rowsOf(k))
			}
		}
		if more := d.boxes; len(more) > 0 { // in the cells of its tables
			d.boxes = nil
			if err := d.textBoxes(more); err != nil {
				return err
			}
		}
	}
	return nil
}

// plainText joins the texts of spans.
func plainText(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.text)
	}
	return b.String()
}

// markdownNumber reports a list number of Markdown: "3." or "3)".
func markdownNumber(label string) bool {
	if len(label) < 2 || len(label) > 10 || label[len(label)-1] != '.' && label[len(label)-1] != ')' {
		return false
	}
	return strings.Trim(label[:len(label)-1], "0123456789") == ""
}

// marked returns the mark of an item with a label and its text. A label that is no list
// number in Markdown, such as (a), IV. or 1.2, is text.
func marked(label string, spans []span) (mark string, text []span) {
	if markdownNumber(label) || label == "-" {
		return label, spans
	}
	return "-", append([]span{plain(label + " ")}, spans...)
}

// cellMark returns what stands before an item in a cell.
func cellMark(label string) string {
	if label == "-" {
		label = "•"
	}
	return escape(label) + " "
}

// table reads the rest of a table after its start tag, row by row, and writes it.
func (d *docx) table(x *xmlReader) error {
	var rows [][]string
	size := int64(0)
	depth := x.depth
	for x.depth >= depth {
		t, err := x.next()
		if errors.Is(err, errFull) {
			d.writeTable(rows)
		}
		if err != nil {
			return ended(err)
		}
		e, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		switch e.Name.Local {
		case "tr":
			n, err := x.subtree(e)
			if err != nil {
				return err
			}
			if !rowDeleted(n) {
				rows = append(rows, d.row(n))
				for _, text := range rows[len(rows)-1] {
					size += int64(len(text))
				}
			} else {
				d.omit(OmitDeleted, 1)
			}
			if d.cells > d.maxCells || size > d.maxText {
				d.writeTable(rows)
				return errFull
			}
		case "tblPr", "tblGrid":
			if err := x.skip(); err != nil {
				return err
			}
		}
	}
	d.writeTable(rows)
	boxes := d.boxes
	d.boxes = nil
	return d.textBoxes(boxes)
}

func (d *docx) writeTable(rows [][]string) {
	d.inList = false
	d.o.table(rows)
}

// rowDeleted reports a row deleted by tracked changes.
func rowDeleted(tr *node) bool { return tr.kid("trPr").kid("del") != nil }

// row returns the cells of a row. Merged cells are empty except for the first.
func (d *docx) row(tr *node) []string {
	var cells []string
	before := number(tr.kid("trPr").kid("gridBefore").attr("val"))
	for range min(max(before, 0), 64) {
		cells = append(cells, "")
	}
	tr.all("tc", func(tc *node) {
		if !d.cell() {
			return
		}
		props := tc.kid("tcPr")
		text := ""
		if m := props.kid("vMerge"); m == nil || m.attr("val") == "restart" {
			text = d.cellOf(tc)
		}
		cells = append(cells, text)
		for range min(max(number(props.kid("gridSpan").attr("val"))-1, 0), 64) {
			if d.cell() {
				cells = append(cells, "")
			}
		}
	})
	return cells
}

// cellOf returns the text of a cell, one line per paragraph.
func (d *docx) cellOf(tc *node) string {
	var parts []string
	for _, k := range tc.kids {
		switch k.name {
		case "p":
			s := d.inline(d.runs(k))
			if label, _, ok := d.label(k.kid("pPr"), d.paragraphStyle(k.kid("pPr"))); ok && s != "" {
				s = cellMark(label) + s
			}
			if s != "" {
				parts = append(parts, s)
			}
		case "tbl":
			for _, row := range d.rowsOf(k) {
				parts = append(parts, strings.Join(slices.DeleteFunc(row, func(s string) bool { return s == "" }), " / "))
			}
		case "sdt", "sdtContent", "ins", "customXml":
			if s := d.cellOf(k); s != "" {
				parts = append(parts, s)
			}
		}
	}
	return strings.Join(parts, "\n")
}

// rowsOf returns the rows of a nested table.
func (d *docx) rowsOf(tbl *node) [][]string {
	var rows [][]string
	tbl.all("tr", func(tr *node) {
		if !rowDeleted(tr) && d.cells <= d.maxCells {
			rows = append(rows, d.row(tr))
		}
	})
	return rows
}

// note adds the footnote of a kind and id and returns its mark.
func (d *docx) note(kind, letter, id string) span {
	if mark, again := d.marks[[2]string{kind, id}]; again { // also of a note that refers to itself
		return mark
	}
	bodies := d.bodies[kind]
	if bodies == nil || bodies.of[id] == nil {
		return span{}
	}
	body, rels := bodies.of[id], d.rels
	d.rels = bodies.rels
	defer func() { d.rels = rels }()
	label, text := d.notes.add(letter)
	mark := raw("[^" + label + "]")
	d.marks[[2]string{kind, id}] = mark
	var parts []string
	if author := body.attr("author"); kind == "comments" && author != "" {
		parts = append(parts, "Comment by "+escape(tidy(author))+":")
	}
	body.all("p", func(p *node) {
		if s := d.inline(d.runs(p)); s != "" {
			parts = append(parts, s)
		}
	})
	sep := " "
	if kind != "comments" {
		sep = "  \n"
	}
	*text = cmp.Or(strings.Join(parts, sep), "(empty)")
	return mark
}
