// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

// An xlsx reads a workbook.
type xlsx struct {
	*archive
	o        *out
	strings  []string
	formats  []string // number formats by cell style
	parsed   map[string]*numberFormat
	date1904 bool
}

// A sheetRef is an entry in the list of sheets.
type sheetRef struct {
	name, id string
	hidden   bool
}

// readXLSX reads the sheets of a workbook, each as a table under its name. The table
// has the letters of the columns in its head and the numbers of the rows in its first
// column, so that each cell has its address; empty rows and columns are left out.
// Values are shown by their number format from at most 15 digits, as Excel computes
// them, and a formula without a value is shown itself. Lists below the table name
// merged cells, hidden rows and columns, and notes.
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
	x := &xlsx{archive: a, o: o, parsed: map[string]*numberFormat{}}
	sheets, err := x.readWorkbook(main)
	if err != nil {
		return err
	}
	for _, r := range inOrder(rels) {
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
	var sheets []sheetRef
	err := x.scan(name, func(_ *xmlReader, e xml.StartElement) error {
		switch e.Name.Local {
		case "workbookPr":
			v := attr(e.Attr, "date1904")
			x.date1904 = v == "1" || v == "true"
		case "sheet":
			n := node{attrs: e.Attr}
			state := n.attr("state")
			if len(sheets) < maxRelations {
				sheets = append(sheets, sheetRef{n.attr("name"), n.attrIn("relationships", "id"), state == "hidden" || state == "veryHidden"})
			}
		}
		return nil
	})
	return sheets, err
}

// readStrings reads the texts that cells share.
func (x *xlsx) readStrings(name string) error {
	size := int64(0)
	return x.scan(name, func(r *xmlReader, e xml.StartElement) error {
		if e.Name.Local != "si" {
			return nil
		}
		n, err := r.subtree(e)
		if err != nil {
			return err
		}
		s := richText(n)
		if size += int64(len(s)) + 16; size > 4*x.maxText {
			return artel.Errorf(artel.TooLarge, op, "", "the texts of the workbook take more than %d MB; split it into several", 4*x.maxText>>20)
		}
		x.strings = append(x.strings, s)
		return nil
	})
}

// richText joins the runs of a text, without its phonetic guide.
func richText(n *node) string {
	var b strings.Builder
	for _, k := range n.kids {
		switch k.name {
		case "t":
			b.WriteString(unescaped(k.allText()))
		case "r":
			b.WriteString(unescaped(k.kid("t").allText()))
		}
	}
	return b.String()
}

// unescaped returns a text of a workbook with the characters that are written in it as
// _x000D_, with four digits of UTF-16.
func unescaped(s string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, "_x")
		if i < 0 {
			if b.Len() == 0 {
				return s
			}
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		if c, ok := escapedUnit(s[i:]); ok {
			if low, pair := escapedUnit(s[i+7:]); pair && utf16.IsSurrogate(c) {
				if c = utf16.DecodeRune(c, low); c != utf8.RuneError {
					i += 7
				}
			}
			b.WriteRune(c)
			s = s[i+7:]
			continue
		}
		b.WriteString("_x")
		s = s[i+2:]
	}
}

// escapedUnit returns the unit of UTF-16 that s begins with as _xHHHH_.
func escapedUnit(s string) (rune, bool) {
	if len(s) < 7 || s[:2] != "_x" || s[6] != '_' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
}

// readFormats reads the number format of each cell style.
func (x *xlsx) readFormats(name string) error {
	own := map[int]string{}
	cells := false
	return x.scan(name, func(_ *xmlReader, e xml.StartElement) error {
		switch e.Name.Local {
		case "numFmt":
			if code := attr(e.Attr, "formatCode"); len(code) <= maxFormat && len(own) < maxStyles {
				own[number(attr(e.Attr, "numFmtId"))] = code
			}
		case "cellXfs":
			cells = true
		case "cellStyles", "cellStyleXfs", "dxfs":
			cells = false
		case "xf":
			if cells && len(x.formats) < 1<<17 {
				id := number(attr(e.Attr, "numFmtId"))
				code, ok := own[id]
				if !ok {
					code = builtInFormats[id]
				}
				x.formats = append(x.formats, code)
			}
		}
		return nil
	})
}

// A sheetCell is a cell that has something to show.
type sheetCell struct {
	row, col int32
	text     string // Markdown
}

// A sheet is one sheet while it is read.
type sheet struct {
	cells  []sheetCell
	size   int64          // bytes of their texts
	shared map[int]string // formulas by number, for the cells that share them
	merged []string       // ranges
	rows   []string       // hidden ones, by number
	cols   []string       // hidden ones, by letter
}

// maxListed bounds the merged or hidden ranges that are listed.
const maxListed = 1000

// list appends a range to a list below the table.
func list(to *[]string, what string) {
	if what = artel.Shorten(what, 40); len(*to) < maxListed {
		*to = append(*to, what)
	} else if len(*to) == maxListed {
		*to = append(*to, "and more")
	}
}

// sheet reads a sheet and writes it with its links, notes and pictures.
func (x *xlsx) sheet(name string) error {
	rels, err := x.relations(name)
	if err != nil {
		return err
	}
	s := &sheet{shared: map[int]string{}}
	row, col := 0, 0
	err = x.scan(name, func(r *xmlReader, e xml.StartElement) error {
		switch e.Name.Local {
		case "row":
			row++
			if n := number(attr(e.Attr, "r")); n > 0 && n <= 1<<20 {
				row = n
			}
			if isHidden(e) {
				list(&s.rows, strconv.Itoa(row))
			}
			col = 0
		case "col":
			if from, to := number(attr(e.Attr, "min")), number(attr(e.Attr, "max")); isHidden(e) && from > 0 {
				list(&s.cols, span2(columnName(from), columnName(max(from, min(to, 1<<14)))))
			}
		case "c":
			n, err := r.subtree(e)
			if err != nil {
				return err
			}
			col++
			if rr, c := cellRef(n.attr("r")); c > 0 {
				row, col = rr, c
			}
			text := x.value(s, n, row, col)
			if text == "" {
				return nil
			}
			if !x.cell() {
				return errStop
			}
			s.cells = append(s.cells, sheetCell{int32(row), int32(col), text})
			if s.size += int64(len(text)); s.size > x.maxText {
				return errStop
			}
		case "mergeCell":
			list(&s.merged, attr(e.Attr, "ref"))
		case "hyperlink":
			n := node{attrs: e.Attr}
			rr, c := cellRef(n.attr("ref"))
			if rel, ok := rels[n.attrIn("relationships", "id")]; ok && rel.external {
				x.setLink(s.cells, rr, c, rel.target)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStop) && !errors.Is(err, errFull) {
		return err
	}
	x.write(s)
	if x.cut != "" || err != nil {
		x.truncate("the sheet has more text than fits")
		return nil
	}
	return x.extras(rels)
}

func isHidden(e xml.StartElement) bool {
	v := attr(e.Attr, "hidden")
	return v == "1" || v == "true"
}

func span2(from, to string) string {
	if from == to {
		return from
	}
	return from + "–" + to
}

// errStop ends the reading of one part.
var errStop = errors.New("enough was read")

// setLink makes the text of a cell a link.
func (x *xlsx) setLink(cells []sheetCell, row, col int, url string) {
	i, ok := slices.BinarySearchFunc(cells, sheetCell{row: int32(row), col: int32(col)}, byPlace)
	if ok && linkOf(url) != "" {
		cells[i].text = x.inline([]span{{text: cells[i].text, raw: true, link: linkOf(url)}})
	}
}

func byPlace(a, b sheetCell) int {
	return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col))
}

// write writes the cells as a table with addresses, then what is said about them.
func (x *xlsx) write(s *sheet) {
	cells := s.cells
	if !slices.IsSortedFunc(cells, byPlace) {
		slices.SortStableFunc(cells, byPlace)
	}
	wide := map[int32]bool{}
	for _, c := range cells {
		wide[c.col] = true
	}
	var used []int32
	for c := range wide {
		used = append(used, c)
	}
	slices.Sort(used)
	if len(used) > 0 {
		x.o.rows(len(used)+1, func(yield func([]string) bool) {
			row := make([]string, len(used)+1)
			for i, c := range used {
				row[i+1] = columnName(int(c))
			}
			for i := 0; yield(row) && i < len(cells); {
				clear(row)
				at := cells[i].row
				row[0] = strconv.Itoa(int(at))
				for ; i < len(cells) && cells[i].row == at; i++ {
					k, _ := slices.BinarySearch(used, cells[i].col)
					row[k+1] = cells[i].text
				}
			}
		})
	}
	follows := false
	say := func(what string, of []string) {
		if len(of) > 0 {
			x.o.item(0, "-", []span{plain(what + strings.Join(of, ", "))}, follows)
			follows = true
		}
	}
	say("Merged cells (the first has the value): ", s.merged)
	say("Hidden rows: ", s.rows)
	say("Hidden columns: ", s.cols)
}

// columnName returns the letters of a column from 1.
func columnName(n int) string {
	name := ""
	for ; n > 0; n = (n - 1) / 26 {
		name = string(rune('A'+(n-1)%26)) + name
	}
	return name
}

// cellRef returns the row and column of "BC12" from 1, or 0 and 0.
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
func (x *xlsx) value(s *sheet, n *node, row, col int) string {
	stored := n.kid("v")
	v := stored.allText()
	switch n.attr("t") {
	case "s":
		i, err := strconv.Atoi(strings.TrimSpace(v))
		if err != nil || i < 0 || i >= len(x.strings) {
			x.omit(OmitPart, 1)
			return ""
		}
		v = x.strings[i]
	case "inlineStr":
		if k := n.kid("is"); k != nil {
			v = richText(k)
		}
	case "b":
		switch v = strings.ToUpper(strings.TrimSpace(v)); v {
		case "1":
			v = "TRUE"
		case "0":
			v = "FALSE"
		}
	case "str":
		v = unescaped(v)
	case "e", "d":
	default:
		style := number(n.attr("s"))
		format := ""
		if style >= 0 && style < len(x.formats) {
			format = x.formats[style]
		}
		v = x.format(format).show(strings.TrimSpace(v), x.date1904)
	}
	if f := n.kid("f"); f != nil {
		if shown := s.formula(f, row, col); v == "" && (stored == nil || n.attr("t") != "str") {
			v = shown
		}
	}
	return cellLines(v)
}

// formula returns a formula as it is typed, and keeps one that other cells share.
func (s *sheet) formula(f *node, row, col int) string {
	text := f.allText()
	shared := f.attr("t") == "shared"
	if shared && text == "" {
		return s.shared[number(f.attr("si"))]
	}
	if text == "" {
		return ""
	}
	text = "=" + text
	if shared && len(s.shared) < maxRelations {
		s.shared[number(f.attr("si"))] = fmt.Sprintf("%s (filled from %s%d)", text, columnName(col), row)
	}
	return text
}

// extras writes the notes on cells and the marks of pictures.
func (x *xlsx) extras(rels map[string]relation) error {
	for _, r := range inOrder(rels) {
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
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *xlsx) comments(name string) error {
	follows := false
	return x.subtrees(name, func(n *node) {
		if t := n.kid("text"); t != nil {
			text := strings.Join(strings.Fields(richText(t)), " ")
			x.o.item(0, "-", []span{plain("Note on " + n.attr("ref") + ": " + text)}, follows)
			follows = true
		}
	}, "comment")
}

func (x *xlsx) drawing(name string) error {
	rels, err := x.relations(name)
	if err != nil {
		return err
	}
	return x.subtrees(name, func(n *node) {
		switch n.name {
		case "pic":
			props, target := n.find("cNvPr"), rels[n.find("blip").attr("embed")]
			x.o.paragraph([]span{image(cmp.Or(props.attr("descr"), props.attr("name")), pictureName(target.target, target.external))})
		case "graphicFrame":
			x.omit(OmitChart, 1)
		case "sp":
			n.all("p", func(p *node) {
				if s := strings.TrimSpace(p.allText()); s != "" {
					x.o.paragraph([]span{plain(s)})
				}
			})
		}
	}, "pic", "graphicFrame", "sp")
}
