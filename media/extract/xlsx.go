// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"cmp"
	"encoding/xml"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
)

// An xlsx is a workbook while it is read.
type xlsx struct {
	*archive
	o        *out
	strings  []string
	formats  []string // by cell style
	date1904 bool
}

// A sheetCell is a cell that holds something.
type sheetCell struct {
	row, col int
	text     string
}

type sheetRef struct {
	name, id string
	hidden   bool
}

// readXLSX reads the sheets of a workbook, each as a table under its name,
// with the values as their formats show them. Rows and columns that hold
// nothing are left out, and of merged cells the first has the value.
func readXLSX(src *source, o *out) error {
	a, err := openArchive(src)
	if err != nil {
		return err
	}
	main, err := a.mainPart("xl/workbook.xml")
	if err != nil {
		return err
	}
	rels, err := a.relations(main)
	if err != nil {
		return err
	}
	x := &xlsx{archive: a, o: o}
	sheets, err := x.readWorkbook(main)
	if err != nil {
		return err
	}
	for _, r := range rels {
		switch {
		case r.external || !a.has(r.target):
		case r.kind == "sharedStrings":
			err = x.readStrings(r.target)
		case r.kind == "styles":
			err = x.readFormats(r.target)
		}
		if err != nil {
			return err
		}
	}
	o.pages = len(sheets)
	for i, s := range sheets {
		if i >= o.maxPages {
			o.truncate("the workbook has more sheets than the limit")
			break
		}
		title := s.name
		if s.hidden {
			title += " (hidden)"
		}
		o.heading(2, []span{plain(title)})
		r, ok := rels[s.id]
		if !ok || !a.has(r.target) {
			o.omit(OmitPart, 1)
			continue
		}
		if r.kind == "chartsheet" {
			o.omit(OmitChart, 1)
			continue
		}
		if err := x.sheet(r.target); err != nil {
			return err
		}
		if o.cut != "" || o.full {
			break
		}
	}
	return nil
}

func (x *xlsx) readWorkbook(name string) ([]sheetRef, error) {
	r, err := x.xml(name)
	if err != nil {
		return nil, err
	}
	defer r.close()
	var sheets []sheetRef
	err = r.elements(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "workbookPr":
			v := attr(e.Attr, "date1904")
			x.date1904 = v == "1" || v == "true"
		case "sheet":
			n := node{attrs: e.Attr}
			state := n.attr("state")
			sheets = append(sheets, sheetRef{n.attr("name"), n.attrIn("relationships", "id"), state == "hidden" || state == "veryHidden"})
		}
		return nil
	}, nil)
	return sheets, err
}

// readStrings reads the texts that cells share.
func (x *xlsx) readStrings(name string) error {
	r, err := x.xml(name)
	if err != nil {
		return err
	}
	defer r.close()
	size := int64(0)
	return r.elements(func(e xml.StartElement) error {
		if e.Name.Local != "si" {
			return nil
		}
		n, err := r.subtree(e)
		if err != nil {
			return err
		}
		s := richText(n)
		if size += int64(len(s)) + 16; size > 8*x.maxText+64<<20 {
			return artel.Errorf(artel.TooLarge, op, "", "the texts of the workbook take more than %d bytes; split it", 8*x.maxText+64<<20)
		}
		x.strings = append(x.strings, s)
		return nil
	}, nil)
}

// richText joins the runs of a text, without how it is pronounced.
func richText(n *node) string {
	var b strings.Builder
	for _, k := range n.kids {
		switch k.name {
		case "t":
			b.WriteString(k.allText())
		case "r":
			if t := k.kid("t"); t != nil {
				b.WriteString(t.allText())
			}
		}
	}
	return b.String()
}

// readFormats reads which number format each cell style has.
func (x *xlsx) readFormats(name string) error {
	r, err := x.xml(name)
	if err != nil {
		return err
	}
	defer r.close()
	own := map[int]string{}
	cells := false
	return r.elements(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "numFmt":
			if code := attr(e.Attr, "formatCode"); len(code) <= 1000 {
				own[number(attr(e.Attr, "numFmtId"))] = code
			}
		case "cellXfs":
			cells = true
		case "cellStyles", "dxfs":
			cells = false
		case "xf":
			if cells && len(x.formats) < 1<<17 {
				id := number(attr(e.Attr, "numFmtId"))
				code, ok := own[id]
				if !ok {
					code = builtInFormat(id)
				}
				x.formats = append(x.formats, code)
			}
		}
		return nil
	}, func(e xml.EndElement) error {
		if e.Name.Local == "cellXfs" {
			cells = false
		}
		return nil
	})
}

// sheet reads a sheet and writes it with its links, notes and pictures.
func (x *xlsx) sheet(name string) error {
	rels, err := x.relations(name)
	if err != nil {
		return err
	}
	r, err := x.xml(name)
	if err != nil {
		return err
	}
	defer r.close()
	var cells []sheetCell
	row, col := 0, 0
	err = r.elements(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "row":
			row++
			if n := number(attr(e.Attr, "r")); n > 0 {
				row = n
			}
			col = 0
		case "c":
			n, err := r.subtree(e)
			if err != nil {
				return err
			}
			col++
			if rr, c := cellRef(n.attr("r")); c > 0 {
				row, col = rr, c
			}
			text := x.value(n)
			if text == "" {
				return nil
			}
			if !x.cell() {
				return errStop
			}
			cells = append(cells, sheetCell{row, col, text})
		case "hyperlink":
			n := node{attrs: e.Attr}
			rr, c := cellRef(n.attr("ref"))
			if rel, ok := rels[n.attrIn("relationships", "id")]; ok && rel.external {
				setLink(cells, rr, c, rel.target)
			}
		}
		return nil
	}, nil)
	if err != nil && !errors.Is(err, errStop) {
		return err
	}
	x.writeCells(cells)
	if x.cut != "" {
		return nil
	}
	return x.extras(rels)
}

// errStop ends the reading of one part.
var errStop = errors.New("enough was read")

// setLink makes the text of a cell a link.
func setLink(cells []sheetCell, row, col int, url string) {
	i, ok := slices.BinarySearchFunc(cells, sheetCell{row: row, col: col}, byPlace)
	if ok && linkOf(url) != "" {
		cells[i].text = inline([]span{{text: cells[i].text, link: linkOf(url)}})
	}
}

func byPlace(a, b sheetCell) int {
	return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col))
}

// writeCells writes cells as a table without empty rows and columns.
func (x *xlsx) writeCells(cells []sheetCell) {
	if !slices.IsSortedFunc(cells, byPlace) {
		slices.SortStableFunc(cells, byPlace)
	}
	var used []int
	for _, c := range cells {
		used = append(used, c.col)
	}
	slices.Sort(used)
	used = slices.Compact(used)
	if len(used) == 0 {
		return
	}
	x.o.rows(len(used), func(yield func([]string) bool) {
		row := make([]string, len(used))
		for i := 0; i < len(cells); {
			clear(row)
			at := cells[i].row
			for ; i < len(cells) && cells[i].row == at; i++ {
				k, _ := slices.BinarySearch(used, cells[i].col)
				row[k] = cells[i].text
			}
			if !yield(row) {
				return
			}
		}
	})
}

// cellRef takes "BC12" apart; 0 and 0 is no reference.
func cellRef(s string) (row, col int) {
	s, _, _ = strings.Cut(s, ":")
	for i := range len(s) {
		switch c := s[i] | 0x20; {
		case c >= 'a' && c <= 'z' && col < 1<<15:
			col = col*26 + int(c-'a') + 1
		default:
			row = number(s[i:])
			if row <= 0 || row > 1<<20 || col > 1<<14 {
				return 0, 0
			}
			return row, col
		}
	}
	return 0, 0
}

// value returns what a cell shows, as Markdown.
func (x *xlsx) value(n *node) string {
	v := ""
	if k := n.kid("v"); k != nil {
		v = k.allText()
	}
	switch n.attr("t") {
	case "s":
		i, err := strconv.Atoi(strings.TrimSpace(v))
		if err != nil || i < 0 || i >= len(x.strings) {
			return ""
		}
		v = x.strings[i]
	case "inlineStr":
		if k := n.kid("is"); k != nil {
			v = richText(k)
		}
	case "b":
		v = map[bool]string{true: "TRUE", false: "FALSE"}[strings.TrimSpace(v) == "1"]
	case "str", "e":
	default:
		format := ""
		if s := number(n.attr("s")); s > 0 && s < len(x.formats) {
			format = x.formats[s]
		} else if s == 0 && len(x.formats) > 0 {
			format = x.formats[0]
		}
		v = formatNumber(strings.TrimSpace(v), format, x.date1904)
	}
	return cellLines(v)
}

// extras writes the notes on cells and the marks of pictures.
func (x *xlsx) extras(rels map[string]relation) error {
	var ids []string
	for id := range rels {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		r := rels[id]
		if r.external || !x.has(r.target) {
			continue
		}
		var err error
		switch r.kind {
		case "comments":
			err = x.comments(r.target)
		case "drawing":
			err = x.drawing(r.target)
		case "oleObject", "package":
			x.omit(OmitObject, 1)
		case "pivotTable":
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *xlsx) comments(name string) error {
	r, err := x.xml(name)
	if err != nil {
		return err
	}
	defer r.close()
	follows := false
	return r.elements(func(e xml.StartElement) error {
		if e.Name.Local != "comment" {
			return nil
		}
		n, err := r.subtree(e)
		if err != nil {
			return err
		}
		if t := n.kid("text"); t != nil {
			text := strings.Join(strings.Fields(richText(t)), " ")
			x.o.item(0, "-", []span{plain("Note on " + n.attr("ref") + ": " + text)}, follows)
			follows = true
		}
		return nil
	}, nil)
}

func (x *xlsx) drawing(name string) error {
	rels, err := x.relations(name)
	if err != nil {
		return err
	}
	r, err := x.xml(name)
	if err != nil {
		return err
	}
	defer r.close()
	return r.elements(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "pic":
			n, err := r.subtree(e)
			if err != nil {
				return err
			}
			props, target := n.find("cNvPr"), rels[n.find("blip").attr("embed")]
			x.o.paragraph([]span{image(cmp.Or(props.attr("descr"), props.attr("name")), pictureName(target.target, target.external))})
		case "graphicFrame":
			x.omit(OmitChart, 1)
			return r.skip()
		case "sp":
			n, err := r.subtree(e)
			if err != nil {
				return err
			}
			n.all("p", func(p *node) {
				if s := strings.TrimSpace(p.allText()); s != "" {
					x.o.paragraph([]span{plain(s)})
				}
			})
		}
		return nil
	}, nil)
}
