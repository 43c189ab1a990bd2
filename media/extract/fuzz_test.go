// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

// small are bounds under which hostile bytes end soon.
var small = Options{MaxText: 1 << 20, MaxExpanded: 8 << 20, MaxPages: 20, MaxCells: 20_000, PDF: engine}

// check holds what comes out of any bytes to what is promised of it.
func check(t *testing.T, b []byte, mediaType string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	x, err := read(t.Context(), bytes.NewReader(b), int64(len(b)), asType(mediaType), small)
	runtime.ReadMemStats(&after)
	// All told, with what was garbage at once; TestUnfoldingKeepsSmall has the heap.
	if n := after.TotalAlloc - before.TotalAlloc; n > 256*(uint64(small.MaxExpanded)+uint64(len(b))) {
		t.Fatalf("%s: %d bytes were allocated for %d", mediaType, n, len(b))
	}
	if err != nil {
		switch artel.KindOf(err) {
		case artel.Invalid, artel.TooLarge, artel.Unsupported:
		default:
			t.Fatalf("%s: %v", artel.KindOf(err), err)
		}
		return
	}
	if !utf8.ValidString(x.Text) || strings.ContainsRune(x.Text, 0) || int64(len(x.Text)) > small.MaxText+2000 || x.Text != "" && !strings.HasSuffix(x.Text, "\n") {
		t.Fatalf("the text of %d bytes is not as promised: %.200q", len(x.Text), x.Text)
	}
}

func seeds(f *testing.F, names ...string) {
	f.Helper()
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "files", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

func FuzzPDF(f *testing.F) {
	seeds(f, "report.pdf", "packed.pdf", "open.pdf")
	f.Add(pdfOf("BT /F 10 Tf 50 700 Td [(a) -500 (b)] TJ ET", helvetica))
	f.Fuzz(func(t *testing.T, b []byte) { check(t, b, typePDF) })
}

func FuzzPDFContent(f *testing.F) {
	f.Add([]byte("BT /F 10 Tf 50 700 Td [(a) -500 (b)] TJ ET q 1 0 0 1 5 5 cm /X Do Q BI ID EI"))
	f.Fuzz(func(t *testing.T, b []byte) { check(t, pdfOf(string(b), helvetica), typePDF) })
}

// FuzzOffice puts the bytes where each office format has its text.
func FuzzOffice(f *testing.F) {
	for _, body := range []string{
		`<w:p xmlns:m="m"><m:oMathPara><m:oMath><m:nary><m:sub/><m:e><m:r><m:t>x</m:t></m:r></m:e></m:nary><m:d><m:e><m:m><m:mr><m:e/></m:mr></m:m></m:e></m:d></m:oMath></m:oMathPara></w:p>`,
		`<row r="2"><c r="B2"><f t="shared" si="0">A1</f></c><c r="C2"><f t="shared" si="0"/></c><c r="D2" t="e"><v>#N/A</v></c></row><mergeCell ref="A1:B2"/><col min="1" max="3" hidden="1"/>`,
		`<text:p><frame><object><math><mfrac><mi>a</mi></mfrac></math></object></frame></text:p>`,
		item("1", "0", "x") + `<w:tbl><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl>`, `<row r="2"><c r="B2" t="s" s="1"><v>0</v></c></row>`,
		`<text:p><text:span>a</text:span></text:p>`, `<w:p><w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		check(t, wordDocument(t, body), typeDOCX)
		check(t, excelFile(t, body), typeXLSX)
		check(t, packed(t, "content.xml", `<office:document xmlns:office="o:office:1.0"><office:text>`+body+`</office:text></office:document>`), typeODT)
		check(t, packed(t, "ppt/presentation.xml", `<p><sldId r:id="a" xmlns:r="relationships"/></p>`, "ppt/_rels/presentation.xml.rels", relsNS+`<Relationship Id="a" Target="s.xml"/></Relationships>`, "ppt/s.xml", `<sld><cSld><spTree>`+body+`</spTree></cSld></sld>`), typePPTX)
	})
}

func FuzzZIP(f *testing.F) {
	seeds(f, "brief.docx", "brief.odt", "data.xlsx", "archive.zip")
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, mediaType := range []string{typeDOCX, typeXLSX, typePPTX, typeODT, typeEPUB} {
			check(t, b, mediaType)
		}
	})
}

func FuzzText(f *testing.F) {
	seeds(f, "brief.html", "table.csv", "memo.rtf")
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, mediaType := range []string{typeHTML, typeCSV, typeRTF} {
			check(t, b, mediaType)
		}
	})
}

// FuzzMath: any tree of elements has a formula that ends.
func FuzzMath(f *testing.F) {
	f.Add(`<math><munderover><mo>∑</mo><mi>i</mi><mi>n</mi></munderover><mfenced open="["><mtable><mtr><mtd>a</mtd></mtr></mtable></mfenced></math>`)
	f.Add(`<math><mrow><mo>(</mo><mtable/><mo>)</mo></mrow><mmultiscripts><mi>X</mi><mn>1</mn><mprescripts/></mmultiscripts></math>`)
	f.Fuzz(func(t *testing.T, s string) { check(t, []byte(s), typeHTML) })
}

// FuzzAddressed: numbers are all that is added to the rows of a table.
func FuzzAddressed(f *testing.F) {
	f.Add("a,b\n\"x\ny\",1\n\n2")
	f.Add("sep=;\na;\"b\"\"\n\"")
	number := regexp.MustCompile(`(?m)(^|\r)[0-9]+: `)
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) || number.MatchString(s) {
			return
		}
		if _, rows := Addressed(s, typeCSV); strings.TrimPrefix(number.ReplaceAllString(rows, "$1"), "\uFEFF") != strings.TrimPrefix(s, "\uFEFF") && !strings.HasPrefix(s, "\uFEFF") {
			t.Fatalf("%q became %q", s, rows)
		}
	})
}

func FuzzFormatNumber(f *testing.F) {
	f.Add("46090.5", `[$€-407]#,##0.00;"x"`)
	f.Add("1", "yyyy-mm-dd hh:mm:ss AM/PM")
	f.Fuzz(func(t *testing.T, value, format string) {
		if len(value)+len(format) > 1000 {
			return
		}
		if got := newNumberFormat(format).show(value, false); len(got) > 10_000 {
			t.Fatalf("%d bytes", len(got))
		}
	})
}
