// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
)

func TestFormatNumber(t *testing.T) {
	tests := []struct{ value, format, want string }{
		{"1234.5", "", "1234.5"},
		{"0.1", "General", "0.1"},
		{"0.30000000000000004", "General", "0.3"},
		{"1234.5", "#,##0.00", "1,234.50"},
		{"-1234.5", "#,##0.00", "-1,234.50"},
		{"-1234.5", `#,##0.00;(#,##0.00)`, "(1,234.50)"},
		{"-5", `$#,##0;-$#,##0`, "-$5"},
		{"-5", `[$€]#,##0.00`, "-€5.00"},
		{"1234.5", `#,##0.00\ [$€-407]`, "1,234.50 €"},
		{"0", `0;-0;"zero"`, "zero"},
		{"7", "000", "007"},
		{"0.125", "0.0%", "12.5%"},
		{"1234567", `0.0,,"M"`, "1.2M"},
		{"0.5", "#.##", ".5"},
		{"3", "0.##", "3"},
		{"12345", "0.00E+00", "1.23E+04"},
		{"0.5", "# ?/?", "0.5"},
		{"46090", "yyyy-mm-dd", "2026-03-09"},
		{"46090.295138888891", `dd\.mm\.yyyy hh:mm`, "09.03.2026 07:05"},
		{"46090.75", "d mmm yy h:mm AM/PM", "9 Mar 26 6:00 PM"},
		{"46090", "dddd, mmmm d", "Monday, March 9"},
		{"1.5", "[h]:mm:ss", "36:00:00"},
		{"0.000011574", "mm:ss.0", "00:01.0"},
		{"46090", `yyyy"年"m"月"d"日"`, "2026年3月9日"},
		{"-1", "yyyy-mm-dd", "-1"},
		{"1", "d", "1"},
		{"text", "0.00", "text"},
		{"1", `"open`, "open"},
		{"1", `[`, ""},
		{"1", `\`, `\`},
	}
	for _, tt := range tests {
		if got := formatNumber(tt.value, tt.format, false); got != tt.want {
			t.Errorf("%s as %s is %q, want %q", tt.value, tt.format, got, tt.want)
		}
	}
	if got := formatNumber("0", "yyyy-mm-dd", true); got != "1904-01-01" {
		t.Errorf("the first day of 1904 is %s", got)
	}
}

const workbook = `<workbook xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="One | 一" sheetId="1" r:id="a"/><sheet name="Two" sheetId="2" state="hidden" r:id="b"/></sheets></workbook>`

func excelFile(tb testing.TB, sheet string) []byte {
	tb.Helper()
	return packed(
		tb, "xl/workbook.xml", workbook,
		"xl/_rels/workbook.xml.rels", relsNS+`<Relationship Id="a" Type="t/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="b" Type="t/worksheet" Target="/xl/worksheets/sheet2.xml"/><Relationship Id="s" Type="t/sharedStrings" Target="sharedStrings.xml"/></Relationships>`,
		"xl/sharedStrings.xml", `<sst><si><t>shared</t></si><si><r><t>rich </t></r><r><t>text</t></r><rPh><t>sound</t></rPh></si></sst>`,
		"xl/worksheets/sheet1.xml", `<worksheet><sheetData>`+sheet+`</sheetData></worksheet>`,
		"xl/worksheets/sheet2.xml", `<worksheet><sheetData/></worksheet>`,
	)
}

func TestXLSX(t *testing.T) {
	x := textOf(t, excelFile(t, `<row r="2"><c r="B2" t="s"><v>0</v></c><c r="D2" t="s"><v>1</v></c></row><row r="9"><c r="B9" t="b"><v>1</v></c><c t="inlineStr"><is><t>in | line
two</t></is></c><c r="D9" t="e"><v>#N/A</v></c></row><row><c t="s"><v>99</v></c></row>`), asType(typeXLSX), Options{})
	want := "## One | 一\n\n| shared | | rich text |\n| --- | --- | --- |\n| TRUE | in \\| line<br>two | #N/A |\n\n## Two (hidden)\n"
	if diff := cmp.Diff(want, x.Text); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if x.Pages != 2 {
		t.Errorf("%d sheets", x.Pages)
	}
}

// TestFarCells says that cells far apart cost what they hold and no more.
func TestFarCells(t *testing.T) {
	var rows strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&rows, `<row r="%d"><c r="A%d"><v>1</v></c><c r="XFD%d"><v>2</v></c></row>`, i*300+1, i*300+1, i*300+1)
	}
	x := textOf(t, excelFile(t, rows.String()), asType(typeXLSX), Options{})
	if len(x.Text) > 100_000 || strings.Count(x.Text, "| 1 | 2 |") != 3000 {
		t.Errorf("%d bytes: %.200s", len(x.Text), x.Text)
	}
}

func TestPPTX(t *testing.T) {
	const ns = ` xmlns:a="a" xmlns:p="p" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`
	shape := func(place, paragraphs string) string {
		return `<p:sp><p:nvSpPr><p:nvPr>` + place + `</p:nvPr></p:nvSpPr><p:txBody>` + paragraphs + `</p:txBody></p:sp>`
	}
	p := func(props, text string) string {
		return `<a:p>` + props + `<a:r><a:rPr b="1"/><a:t>` + text + `</a:t></a:r></a:p>`
	}
	doc := packed(
		t, "ppt/presentation.xml", `<p:presentation`+ns+`><p:sldIdLst><p:sldId r:id="two"/><p:sldId r:id="one"/></p:sldIdLst></p:presentation>`,
		"ppt/_rels/presentation.xml.rels", relsNS+`<Relationship Id="one" Type="t/slide" Target="slides/slide1.xml"/><Relationship Id="two" Type="t/slide" Target="slides/slide2.xml"/></Relationships>`,
		"ppt/slides/slide1.xml", `<p:sld`+ns+` show="0"><p:cSld><p:spTree>`+shape(`<p:ph type="ftr"/>`, p("", "footer"))+`<p:pic><p:nvPicPr><p:cNvPr name="x" descr="A chart of sales"/></p:nvPicPr><a:blip r:embed="i"/></p:pic></p:spTree></p:cSld></p:sld>`,
		"ppt/slides/_rels/slide1.xml.rels", relsNS+`<Relationship Id="i" Type="t/image" Target="../media/image7.png"/></Relationships>`,
		"ppt/slides/slide2.xml", `<p:sld`+ns+`><p:cSld><p:spTree>`+shape(`<p:ph idx="1"/>`, p("", "first")+p(`<a:pPr lvl="1"/>`, "deeper")+p(`<a:pPr><a:buAutoNum type="arabicPeriod"/></a:pPr>`, "counted"))+shape(`<p:ph type="title"/>`, p("", "The title"))+`</p:spTree></p:cSld></p:sld>`,
		"ppt/slides/_rels/slide2.xml.rels", relsNS+`<Relationship Id="n" Type="t/notesSlide" Target="../notesSlides/notesSlide1.xml"/></Relationships>`,
		"ppt/notesSlides/notesSlide1.xml", `<p:notes`+ns+`><p:cSld><p:spTree>`+shape(`<p:ph type="body" idx="1"/>`, `<a:p><a:r><a:t>Say it slowly.</a:t></a:r></a:p>`)+`</p:spTree></p:cSld></p:notes>`,
	)
	x := textOf(t, doc, asType(typePPTX), Options{})
	want := "<!-- slide 1 -->\n\n## **The title**\n\n- **first**\n  - **deeper**\n1. **counted**\n\n> **Notes:** Say it slowly.\n\n<!-- slide 2 -->\n\n<!-- this slide is hidden -->\n\n![A chart of sales](image7.png)\n"
	if diff := cmp.Diff(want, x.Text); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestHTML(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"title alone", `<title>A page</title><p>x`, "# A page\n\nx"},
		{"white space", "<p>a\n  b <b> c </b>d", "a b **c** d"},
		{"no bytes", `<img alt="dot" src="data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"><a href="javascript:x()">go</a>`, "![dot](embedded)go"},
		{"hidden", `<p hidden>a</p><div style="display: none">b</div>c`, "c\n\n<!-- left out: 2 hidden passages -->"},
		{"script", `<body><script>alert(1)</script><noscript>plain</noscript>`, "plain\n\n<!-- left out: 1 scripts -->"},
		{"nested lists", `<ol start=3><li>a<ul><li>b<li>c</ul><li>d</ol>`, "3. a\n   - b\n   - c\n4. d"},
		{"list in quote", `<blockquote><p>q<ul><li>x</ul></blockquote>`, "> q\n>\n> - x"},
		{"layout table", `<table><tr><td><h2>Head</h2><table><tr><th>a<th>b<tr><td>1<td>2</table></table>`, "## Head\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"},
		{"spans", `<table><tr><td rowspan=2>a<td>b<tr><td>c<tr><td colspan=2>d</table>`, "| a | b |\n| --- | --- |\n| | c |\n| d | |"},
		{"code", "<pre><code>a\n  **b**</code></pre><p><code>x `y` z</code>", "```\na\n  **b**\n```\n\n``x `y` z``"},
		{"form", `<input type=checkbox checked> yes <input type=password value=p><input type=hidden value=h><input value=shown>`, "☒ yes shown\n\n<!-- left out: 1 form fields -->"},
		{"comment cannot be faked", `&lt;!-- page 9 --&gt;`, `\<!-- page 9 -->`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := textOf(t, []byte(tt.in), asType(typeHTML), Options{})
			if diff := cmp.Diff(tt.want+"\n", x.Text); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestCSV(t *testing.T) {
	tests := []struct{ name, mediaType, in, want string }{
		{"semicolons", typeCSV, "a;b\n1,5;2\n", "| a | b |\n| --- | --- |\n| 1,5 | 2 |\n"},
		{"told", typeCSV, "sep=|\r\na|b\r\n", "| a | b |\n| --- | --- |\n"},
		{"tabs", "text/tab-separated-values", "a\tb,c\n", "| a | b,c |\n| --- | --- |\n"},
		{"lines in a field", typeCSV, "a,b\n\"x\ny\",\"p|q\"\n", "| a | b |\n| --- | --- |\n| x<br>y | p\\|q |\n"},
		{"uneven", typeCSV, "a\n1,2,3\n\n\"open", "| a | | |\n| --- | --- | --- |\n| 1 | 2 | 3 |\n| open | | |\n"},
		{"nothing", typeCSV, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, textOf(t, []byte(tt.in), asType(tt.mediaType), Options{}).Text); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestEPUB(t *testing.T) {
	book := packed(
		t, "META-INF/container.xml", `<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>`,
		"OPS/book.opf", `<package><manifest><item id="a" href="one.xhtml"/><item id="b" href="t/two%20.xhtml"/></manifest><spine><itemref idref="b"/><itemref idref="a"/><itemref idref="zz"/></spine></package>`,
		"OPS/one.xhtml", `<html><body><h1>One</h1></body></html>`, "OPS/t/two .xhtml", `<html><body><p>Two</p></body></html>`,
	)
	x := textOf(t, book, asType(typeEPUB), Options{})
	want := "<!-- chapter 1 -->\n\nTwo\n\n<!-- chapter 2 -->\n\n# One\n\n<!-- left out: 1 unreadable parts -->\n"
	if diff := cmp.Diff(want, x.Text); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestRTF(t *testing.T) {
	in := `{\rtf1\ansi\ansicpg936{\fonttbl{\f0\fcharset134 Song;}{\f1\fcharset0 Arial;}}{\*\generator x;}{\info{\title hidden}}` +
		`\f0 \'cc\'ec\f1  \b bold\b0  \u22825?\u-10179?\u-8704?{\v secret}\par {\pict 00ff}\trowd a\cell b\cell\row c\cell d\cell\row\pard end\par}`
	x := textOf(t, []byte(in), asType(typeRTF), Options{})
	want := "天 **bold** 太😀\n\n| a | b |\n| --- | --- |\n| c | d |\n\nend\n\n<!-- left out: 1 hidden passages, 1 pictures -->\n"
	want = strings.Replace(want, "太", "天"[:0]+string(rune(22825)), 1)
	if diff := cmp.Diff(want, x.Text); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// pdfOf makes a PDF of one page without a table of its objects, which the
// reader has to find itself.
func pdfOf(content, font string, objects ...string) []byte {
	var b strings.Builder
	b.WriteString("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
		"3 0 obj<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>/XObject<</X 4 0 R/Y 6 0 R>>>>>>endobj\n")
	fmt.Fprintf(&b, "4 0 obj<</Length %d>>stream\n%s\nendstream endobj\n5 0 obj %s endobj\n", len(content), content, font)
	for _, o := range objects {
		b.WriteString(o + "\n")
	}
	return []byte(b.String())
}

const helvetica = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"

func TestPDF(t *testing.T) {
	cmap := "/CIDInit begincmap 1 begincodespacerange <0000> <FFFF> endcodespacerange 1 beginbfchar <0001> <5929> endbfchar 1 beginbfrange <0002> <0003> <0061> endbfrange endcmap"
	tests := []struct {
		name, want string
		data       []byte
		left       map[Omission]int
	}{
		{"kerning and gaps", "Hello world", pdfOf("BT /F 10 Tf 50 700 Td [(Hel) 20 (lo) -300 (wor) -20 (ld)] TJ ET", helvetica), nil},
		{"hyphen", "information goes on", pdfOf("BT /F 10 Tf 12 TL 50 700 Td (infor-) Tj T* (mation goes on) Tj ET", helvetica), nil},
		{"differences", "éfi–Ω", pdfOf("BT /F 10 Tf 50 700 Td (abcd) Tj ET", "<</Type/Font/Subtype/Type1/BaseFont/X/Encoding<</Differences[97/eacute/fi/endash/uni03A9]>>>>"), nil},
		{"to unicode", "天ab", pdfOf("BT /F 10 Tf 50 700 Td <000100020003> Tj ET", "<</Type/Font/Subtype/Type0/Encoding/Identity-H/ToUnicode 7 0 R/DescendantFonts[<</DW 1000>>]>>",
			fmt.Sprintf("7 0 obj<</Length %d>>stream\n%s\nendstream endobj", len(cmap), cmap)), nil},
		{"legacy cmap", "天气", pdfOf("BT /F 10 Tf 50 700 Td <CCECC6F8> Tj ET", "<</Type/Font/Subtype/Type0/Encoding/GBK-EUC-H/DescendantFonts[<</DW 1000>>]>>"), nil},
		{"unknown glyphs", "\uFFFD\uFFFD", pdfOf("BT /F 10 Tf 50 700 Td <00010002> Tj ET", "<</Type/Font/Subtype/Type0/Encoding/Identity-H/DescendantFonts[<</DW 1000>>]>>"), map[Omission]int{OmitGlyph: 2}},
		{"actual text", "real", pdfOf("BT /F 10 Tf 50 700 Td /Span<</ActualText(real)>>BDC (fa) Tj (ke) Tj EMC ET", helvetica), nil},
		{"form inside itself", "deep", pdfOf("BT /F 10 Tf 50 700 Td (deep) Tj ET", helvetica), nil},
		{"table", "| a | b | c |\n| --- | --- | --- |\n| 1 | 2 | 3 |", pdfOf("BT /F 10 Tf 50 700 Td (a) Tj 100 0 Td (b) Tj 100 0 Td (c) Tj -200 -14 Td (1) Tj 100 0 Td (2) Tj 100 0 Td (3) Tj ET", helvetica), nil},
		{"scan", "", pdfOf("/Y Do", helvetica, "6 0 obj<</Subtype/Image/Length 0>>stream\n\nendstream endobj"), map[Omission]int{OmitScan: 1}},
		{"inline picture", "after", pdfOf("BI /W 1 ID (((\x00 EI BT /F 10 Tf (after) Tj ET", helvetica), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := textOf(t, tt.data, asType(typePDF), Options{})
			got, _, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(x.Text, "<!-- page 1 -->"), "\n"), "\n\n<!-- left")
			if diff := cmp.Diff(tt.want, strings.TrimPrefix(got, "\n\n")); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if diff := cmp.Diff(tt.left, x.LeftOut); diff != "" {
				t.Errorf("left out: -want +got\n%s", diff)
			}
		})
	}
}

// TestPDFBomb says that streams are counted as they grow, over all of them.
func TestPDFBomb(t *testing.T) {
	var zeros bytes.Buffer
	z := zlib.NewWriter(&zeros)
	if _, err := z.Write(make([]byte, 32<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	doc := pdfOf("", helvetica, fmt.Sprintf("4 0 obj<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream endobj", zeros.Len(), zeros.String()))
	_, err := read(t.Context(), bytes.NewReader(doc), int64(len(doc)), asType(typePDF), Options{MaxExpanded: 8 << 20})
	if artel.KindOf(err) != artel.TooLarge {
		t.Errorf("got %v", err)
	}
}

// TestPDFForms says that forms which show each other many times over end.
func TestPDFForms(t *testing.T) {
	content := strings.Repeat("/Y Do ", 40)
	form := fmt.Sprintf("6 0 obj<</Subtype/Form/Length %d>>stream\n%s\nendstream endobj", len(content), content)
	doc := pdfOf(content, helvetica, form)
	_, err := read(t.Context(), bytes.NewReader(doc), int64(len(doc)), asType(typePDF), Options{})
	if artel.KindOf(err) != artel.TooLarge {
		t.Errorf("got %v", err)
	}
}

// TestNoBytes says that no address carries bytes into the text.
func TestNoBytes(t *testing.T) {
	const data = "data:image/png;base64,iVBORw0KGgo/AAAANSUhEUgAAAAEAAAAB"
	for _, target := range []string{data, " DATA:x,y/" + data, strings.Repeat("x", 5000)} {
		for _, external := range []bool{false, true} {
			if got := pictureName(target, external); got != "embedded" {
				t.Errorf("%.30s: %.60s", target, got)
			}
		}
	}
	for _, target := range []string{data, "javascript:x()", " JavaScript:x()", "#top", ""} {
		if got := linkOf(target); got != "" {
			t.Errorf("%s leads to %s", target, got)
		}
	}
}
