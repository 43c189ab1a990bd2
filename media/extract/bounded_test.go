// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/artelhq/artel/media/pdf"
)

// TestPaddedCSV: rows whose fields are padded with blanks, which their text leaves out,
// are all read or said to be cut.
func TestPaddedCSV(t *testing.T) {
	var b strings.Builder
	for n := range 200 {
		fmt.Fprintf(&b, "row%d           ,    ,            ,         \n", n)
	}
	for _, most := range []int{b.Len(), b.Len() + 100} {
		x := textOf(t, []byte(b.String()), asType(typeCSV), Options{MaxText: int64(most)})
		if x.Cut || !strings.Contains(x.Text, "| 200 | row199 |") {
			t.Errorf("%d bytes: cut %v, the text ends in %q", most, x.Cut, x.Text[len(x.Text)-40:])
		}
	}
}

// TestGlyphsInOnePlace: a page whose characters are all in one place is put in order in
// steps that its length bounds, and not its square.
func TestGlyphsInOnePlace(t *testing.T) {
	font := &pdf.Font{}
	glyphs := make([]glyph, 400_000)
	for i := range glyphs {
		glyphs[i].Char = pdf.Char{Rune: rune('A' + i%26), Font: font, Size: 10, Box: pdf.Rect{X1: 8, Y1: 10}}
	}
	if got := ordered(glyphs); len(got) != len(glyphs) || got[1].Rune != 'B' {
		t.Errorf("%d glyphs, the second is %q", len(got), got[1].Rune)
	}
}

// TestSparseTable: a line of many cells above many lines of few takes memory for the
// cells that are there.
func TestSparseTable(t *testing.T) {
	const width, height = 1000, 50_000
	row := func(y float64, cells int) pdfLine {
		l := pdfLine{y: y, size: 1}
		for i := range cells {
			x := float64(3 * i)
			l.cells = append(l.cells, pdfCell{x: x, end: x + 1, chunks: []chunk{{text: "a", x: x, end: x + 1, size: 1}}})
		}
		return l
	}
	lines := []pdfLine{row(height+1, width), row(height, width)}
	for n := height - 1; n > 0; n-- {
		lines = append(lines, row(float64(n), 2))
	}
	o := &out{budget: newBudget(t.Context(), Options{MaxText: 1 << 20})}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	(&pdfWriter{o: o, body: 1}).page(&pdfLines{number: 1, lines: lines})
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 256<<20 {
		t.Errorf("%d MB were allocated", n>>20)
	}
	if text := o.b.String(); strings.Count(text, "--- |") < width || !strings.Contains(text, "\n| a | a | | |") {
		t.Errorf("no table of %d columns: %.200s", width, text)
	}
}

// TestCutIsSaid: what bounds on a number leave out is said.
func TestCutIsSaid(t *testing.T) {
	annotations := func(n int, what string) []byte {
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, "<</Type/Annot"+what+"/Rect[66 695 112 712]>>", i)
		}
		doc := string(pdfOf("BT /F 10 Tf 50 700 Td (text) Tj ET", helvetica))
		return []byte(strings.Replace(doc, "/Annots[8 0 R 9 0 R 10 0 R 13 0 R]", "/Annots["+all.String()+"]", 1))
	}
	headers := func(n int) []byte {
		parts := []string{"word/document.xml", `<w:document xmlns:w="w"><w:body><w:p><w:r><w:t>text</w:t></w:r></w:p></w:body></w:document>`}
		rels := relsNS
		for i := range n {
			rels += fmt.Sprintf(`<Relationship Id="h%d" Type="x/header" Target="h%d.xml"/>`, i, i)
			parts = append(parts, fmt.Sprintf("word/h%d.xml", i), fmt.Sprintf(`<w:hdr xmlns:w="w"><w:p><w:r><w:t>head %d</w:t></w:r></w:p></w:hdr>`, i))
		}
		return packed(t, append(parts, "word/_rels/document.xml.rels", rels+"</Relationships>")...)
	}
	table := func(columns, rows int, text string) []byte {
		return odtOf(t, fmt.Sprintf(`<table:table><table:table-row table:number-rows-repeated="%d"><table:table-cell table:number-columns-repeated="%d"><text:p>%s</text:p></table:table-cell><table:table-cell><text:p/></table:table-cell></table:table-row></table:table>`, rows, columns, text))
	}
	for _, tt := range []struct {
		name, mediaType string
		doc             []byte
		cut             bool
	}{
		{"headers", typeDOCX, headers(101), false},
		{"more headers", typeDOCX, headers(102), true},
		{"columns", typeODT, table(65, 1, "a"), false},
		{"more columns", typeODT, table(66, 1, "a"), true},
		{"rows", typeODT, table(1, 64, "a"), false},
		{"more rows", typeODT, table(1, 65, "a"), true},
		{"empty cells", typeODT, table(1000, 1000, ""), false},
		{"comments", typePDF, annotations(5000, "/Subtype/Text/Contents(%d)"), false},
		{"more comments", typePDF, annotations(5001, "/Subtype/Text/Contents(%d)"), true},
		{"links", typePDF, annotations(2000, "/Subtype/Link/A<</S/URI/URI(https://example.com/%d)>>"), false},
		{"more links", typePDF, annotations(2001, "/Subtype/Link/A<</S/URI/URI(https://example.com/%d)>>"), true},
	} {
		if x := textOf(t, tt.doc, asType(tt.mediaType), Options{}); x.Cut != tt.cut || x.Cut != strings.Contains(x.Text, "<!-- cut here: ") {
			t.Errorf("%s: cut %v, the text ends in %q", tt.name, x.Cut, x.Text[max(0, len(x.Text)-100):])
		}
	}
}
