// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
)

func TestFormatNumber(t *testing.T) {
	tests := []struct{ value, format, want string }{
		{"1234.5", "", "1234.5"},
		{"0.1", "General", "0.1"},
		{"0.0001e-9223372036854775808", "General", "0"}, // its exponent does not fit
		{"0.0001e-9223372036854775808", "0", "0"},
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
		{"59", "yyyy-mm-dd", "1900-02-28"},
		{"60", "yyyy-mm-dd", "1900-02-29"},
		{"60.5", "dddd, d mmm yyyy hh:mm", "Wednesday, 29 Feb 1900 12:00"},
		{"61", "yyyy-mm-dd", "1900-03-01"},
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
		{"1", `[`, "["},
		{"1", `\`, "1"},
		// literals between digits
		{"123456789", "000-00-0000", "123-45-6789"},
		{"5551234567", "(000) 000-0000", "(555) 123-4567"},
		{"123451234", "00000-0000", "12345-1234"},
		{"12345678", `##\ ##0`, "12345 678"},
		{"5", "0,000", "0,005"},
		// conditions
		{"5551234567", "[<=9999999]###-####;(###) ###-####", "(555) 123-4567"},
		{"5551234", "[<=9999999]###-####;(###) ###-####", "555-1234"},
		{"150", `[Red][<0]0.0;[>100]"big";General`, "big"},
		{"-2", `[Red][<0]0.0;[>100]"big";General`, "-2.0"},
		{"7.25", `[Red][<0]0.0;[>100]"big";General`, "7.25"},
		{"-7", `[>5]0.0;0.00`, "-7.00"},
		// half away from zero, on the decimal number
		{"0.125", "0.00", "0.13"},
		{"2.5", "0", "3"},
		{"-2.5", "0", "-3"},
		{"1.005", "0.00", "1.01"},
		{"1.0049999999999999", "0.00", "1.01"},
		{"10.235", "0.00", "10.24"},
		{"99999.995", "0.00", "100000.00"},
		{"0.285", "0%", "29%"},
		{"0", "0%", "0%"},
		{"0", "0.00%", "0.00%"},
		{"9.995", "0.00E+00", "1.00E+01"},
		{"12345", "##0.0E+0", "12.3E+3"},
		{"0.00012345", "0.00E+00", "1.23E-04"},
		// what a format would hide
		{"-5", "0;[Red]0", "-5"},
		{"-5", `0;"debit "0`, "debit 5"},
		{"7", ";;;", "7"},
		{"0.000123", "#.##", "0.000123"},
		{"0", "#", "0"},
		{"0", "0;-0;;@", "0"},
		{"0.5", "# ??/??", "0.5"},
		{"7", "0.0E-0", "7"},
		{"0", `_(* #,##0.00_);_(* \(#,##0.00\);_(* "-"??_);_(@_)`, "-"},
		{"-1234.5", `_(* #,##0.00_);_(* \(#,##0.00\);_(* "-"??_);_(@_)`, "(1,234.50)"},
		// as stored
		{"123456789012", "General", "123456789012"},
		{"312309.03", "", "312309.03"},
		{"33079013000.62", "#,##0.00", "33,079,013,000.62"},
		{"33079013000.62", "", "33079013000.62"},
		{"8530911526", "General", "8530911526"},
		{"4006381333931", "0", "4006381333931"},
		{"123456789012345678", "", "123456789012345678"},
		{"1.2345678901234501E-7", "", "0.000000123456789012345"},
		{"1E+100", "", "1E+100"},
		{"46090.5", "[$-F800]dddd\\, mmmm\\ dd\\, yyyy", "Monday, March 09, 2026"},
		{"45000.5", "yyyy-mm-dd hh:mm:ss.000", "2023-03-15 12:00:00.000"},
		{"0.75", `上午/下午h"时"mm"分"`, "下午6时00分"},
		{"0.010023148", "mm:ss.00", "14:26.00"},
		// days of the week in Chinese, and other calendars
		{"45000", "yyyy/mm/dd aaa", "2023/03/15 Wed"},
		{"60", `m"月"d"日" aaaa;@`, "2月29日 Wednesday"},
		{"45000", `[$-411]ggge"年"m"月"d"日"`, "2023-03-15"},
		{"60.5", "[$-411]ge.m.d h:mm", "1900-02-29 12:00:00"},
	}
	for _, tt := range tests {
		if got := newNumberFormat(tt.format).show(tt.value, false); got != tt.want {
			t.Errorf("%s as %s is %q, want %q", tt.value, tt.format, got, tt.want)
		}
	}
	if got := newNumberFormat("yyyy-mm-dd").show("0", true); got != "1904-01-01" {
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
	want := "## One | 一\n\n| | B | C | D |\n| --- | --- | --- | --- |\n| 2 | shared | | rich text |\n| 9 | TRUE | in \\| line<br>two | #N/A |\n\n## Two (hidden)\n\n<!-- left out: 1 unreadable parts -->\n"
	if diff := cmp.Diff(want, x.Text); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if x.Pages != 2 {
		t.Errorf("%d sheets", x.Pages)
	}
}

// TestFormatsOfOffice compares cells in 42 number formats with what LibreOffice 7.4 shows
// of them (testdata/formats.tsv, cell contents as shown).
func TestFormatsOfOffice(t *testing.T) {
	b, err := os.ReadFile("testdata/formats.xlsx")
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := os.ReadFile("testdata/formats.tsv")
	if err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(bytes.NewReader(recorded))
	r.Comma, r.FieldsPerRecord, r.LazyQuotes = '\t', -1, true
	want, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	cells := 0
	for line := range strings.SplitSeq(textOf(t, b, asType(typeXLSX), Options{}).Text, "\n") {
		got := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
		row, err := strconv.Atoi(got[0])
		if err != nil {
			continue
		}
		for i, cell := range got[1:] {
			office := strings.TrimSpace(want[row-1][i])
			if cell = strings.ReplaceAll(cell, "\\", ""); office != "" && cell != office {
				t.Errorf("row %d, column %s: got %q, LibreOffice shows %q", row, columnName(i+1), cell, office)
			}
			cells++
		}
	}
	if cells < 500 {
		t.Errorf("%d cells are compared", cells)
	}
}

// TestNumbersAreExact: what a cell without a number format shows is the number that it
// holds, and what its format shows is the number that the format can show.
func TestNumbersAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.Int64Range(0, 999_999_999_999_999).Draw(t, "digits")
		if rapid.Bool().Draw(t, "negative") {
			digits = -digits
		}
		exp := rapid.IntRange(-30, 30).Draw(t, "exponent")
		x, err := strconv.ParseFloat(fmt.Sprintf("%de%d", digits, exp), 64)
		if err != nil {
			t.Fatal(err)
		}
		for _, stored := range []string{strconv.FormatFloat(x, 'g', -1, 64), strconv.FormatFloat(x, 'G', 17, 64), strconv.FormatFloat(x, 'E', 16, 64)} {
			for _, format := range []string{"", "General", "0_);;", "0.00000000000000E+0", "@"} {
				shown := newNumberFormat(format).show(stored, false)
				if format == "0_);;" && math.Abs(x) < 1e15 && x != math.Trunc(x) || format == "0_);;" && x <= 0 {
					continue
				}
				if got, err := strconv.ParseFloat(shown, 64); err != nil || got != x {
					t.Fatalf("%s as %q is %s", stored, format, shown)
				}
			}
			shown := newNumberFormat("#,##0.00").show(stored, false)
			got, err := strconv.ParseFloat(strings.ReplaceAll(shown, ",", ""), 64)
			if err != nil || math.Abs(got-x) > 0.005+math.Abs(x)*1e-15 {
				t.Fatalf("%s is %s", stored, shown)
			}
		}
	})
}

// TestAddresses: formulas without values are shown, rows and columns have their names,
// and what is merged or hidden is said.
func TestAddresses(t *testing.T) {
	x := textOf(t, excelFile(t, `<row r="2"><c r="B2"><v>123456789012</v></c><c r="C2"><f>B2*2</f></c><c r="D2"><f t="shared" ref="D2:D17" si="0">B2+C2</f></c><c r="AA2" t="str"><f>""</f><v></v></c></row><row r="3"><c r="B3" t="str"><f>A1</f></c><c r="C3" t="b"><v>true</v></c></row>`+
		`<row r="17" hidden="1"><c r="B17"><f>B2*2</f><v>246913578024</v></c><c r="D17"><f t="shared" si="0"/></c><c r="AA17" t="e"><v>#DIV/0!</v></c></row></sheetData>`+
		`<mergeCells><mergeCell ref="B2:C3"/><mergeCell ref="A5:A7"/></mergeCells><sheetData>`), asType(typeXLSX), Options{})
	want := "## One | 一\n\n| | B | C | D | AA |\n| --- | --- | --- | --- | --- |\n| 2 | 123456789012 | =B2\\*2 | =B2+C2 | |\n| 3 | =A1 | TRUE | | |\n| 17 | 246913578024 | | =B2+C2 (filled from D2) | #DIV/0! |\n\n" +
		"- Merged cells (the first has the value): B2:C3, A5:A7\n- Hidden rows: 17\n\n## Two (hidden)\n"
	if diff := cmp.Diff(want, x.Text); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestDamagedSheet: a sheet that ends in the middle is an error and not a shorter sheet.
func TestDamagedSheet(t *testing.T) {
	b := excelFile(t, `<row r="1"><c r="A1"><v>1</v></c></row><row r="2"><c r=A2><v>2</v></c></row>`)
	if _, err := read(t.Context(), bytes.NewReader(b), int64(len(b)), asType(typeXLSX), Options{}); artel.KindOf(err) != artel.Invalid {
		t.Errorf("got %v", err)
	}
}

// TestFarCells says that cells far apart cost what they hold and no more.
func TestFarCells(t *testing.T) {
	var rows strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&rows, `<row r="%d"><c r="A%d"><v>1</v></c><c r="XFD%d"><v>2</v></c></row>`, i*300+1, i*300+1, i*300+1)
	}
	x := textOf(t, excelFile(t, rows.String()), asType(typeXLSX), Options{})
	if len(x.Text) > 100_000 || strings.Count(x.Text, " | 1 | 2 |") != 3000 {
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

// TestSameTextEachTime: notes and comments of a slide have one order.
func TestSameTextEachTime(t *testing.T) {
	rels := relsNS
	parts := []string{
		"ppt/presentation.xml", `<p><sldId r:id="a" xmlns:r="relationships"/></p>`,
		"ppt/_rels/presentation.xml.rels", relsNS + `<Relationship Id="a" Target="s.xml"/></Relationships>`,
		"ppt/s.xml", `<sld><cSld><spTree/></cSld></sld>`,
	}
	want := "<!-- slide 1 -->\n"
	for i := range 12 {
		rels += fmt.Sprintf(`<Relationship Id="r%d" Type="t/comments" Target="c%d.xml"/>`, i, i)
		parts = append(parts, fmt.Sprintf("ppt/c%d.xml", i), fmt.Sprintf("<cmLst><cm><text>c %d</text></cm></cmLst>", i))
		want += fmt.Sprintf("\n> **Comment:** c %d\n", i)
	}
	doc := packed(t, append(parts, "ppt/_rels/s.xml.rels", rels+"</Relationships>")...)
	if diff := cmp.Diff(want, textOf(t, doc, asType(typePPTX), Options{}).Text); diff != "" {
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
		{"semicolons", typeCSV, "a;b\n1,5;2\n", "| | A | B |\n| --- | --- | --- |\n| 1 | a | b |\n| 2 | 1,5 | 2 |\n"},
		{"told", typeCSV, "sep=|\r\na|b\r\n", "| | A | B |\n| --- | --- | --- |\n| 2 | a | b |\n"},
		{"told in capitals", typeCSV, "SEP=;\na;b,c\n", "| | A | B |\n| --- | --- | --- |\n| 2 | a | b,c |\n"},
		{"told in quotes", typeCSV, "\"sep=;\"\na;b,c\n", "| | A | B |\n| --- | --- | --- |\n| 2 | a | b,c |\n"},
		{"told wrongly", typeCSV, "sep=\"\na,b\n", "| | A | B |\n| --- | --- | --- |\n| 1 | sep=\" | |\n| 2 | a | b |\n"},
		{"tabs", "text/tab-separated-values", "a\tb,c\n", "| | A | B |\n| --- | --- | --- |\n| 1 | a | b,c |\n"},
		{"lines in a field", typeCSV, "a,b\n\n\n\"x\n\ny\",\"p|q\"\n\nz\n", "| | A | B |\n| --- | --- | --- |\n| 1 | a | b |\n| 4 | x<br>y | p\\|q |\n| 6 | z | |\n"},
		{"uneven", typeCSV, "a\n1,2,3\n\n\"open", "| | A | B | C |\n| --- | --- | --- | --- |\n| 1 | a | | |\n| 2 | 1 | 2 | 3 |\n| 4 | open | | |\n"},
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

func TestAddressed(t *testing.T) {
	tests := []struct{ mediaType, in, columns, rows string }{
		{typeCSV, "a,b b\n1,2\n", "A a, B b b", "1: a,b b\n2: 1,2\n"},
		{typeCSV, "a;b\n\"x\ny\"\"\n\";1\n\n5\" pipe;2", "A a, B b", "1: a;b\n2: \"x\ny\"\"\n\";1\n3: \n4: 5\" pipe;2"},
		{typeCSV, "sep=|\r\na|b\r\n", "A a, B b", "1: sep=|\r\n2: a|b\r\n"},
		{"text/tab-separated-values", "a\tb,c\n", "A a, B b,c", "1: a\tb,c\n"},
		{typeCSV, "", "", ""},
		{typeCSV, "a\xff", "A a\uFFFD", "1: a\xff"},
		{typeCSV, "\uFEFFid\n1\n", "A id", "\uFEFF1: id\n2: 1\n"},
	}
	for _, tt := range tests {
		columns, rows := Addressed(tt.in, tt.mediaType)
		if columns != tt.columns || rows != tt.rows {
			t.Errorf("%q: got %q and %q, want %q and %q", tt.in, columns, rows, tt.columns, tt.rows)
		}
	}
	// The numbers are those of the table that readCSV makes.
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		w := csv.NewWriter(&b)
		want := rapid.SliceOfN(rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("ab,\"\n 字")), 1, 5, -1), 2, 3), 1, 6).Draw(t, "rows")
		for _, row := range want {
			if row[0] = "x" + row[0]; rapid.Bool().Draw(t, "blank") {
				w.Flush()
				b.WriteByte('\n')
			}
			if err := w.Write(row); err != nil {
				t.Fatal(err)
			}
		}
		w.Flush()
		_, rows := Addressed(b.String(), typeCSV)
		x, err := read(context.Background(), strings.NewReader(b.String()), int64(b.Len()), asType(typeCSV), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(x.Text, "\n") {
			n, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | x")
			if ok && !strings.Contains("\n"+rows, "\n"+n+": x") && !strings.Contains("\n"+rows, "\n"+n+": \"x") {
				t.Fatalf("row %s of\n%s\nis not in\n%s", n, x.Text, rows)
			}
		}
	})
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

// TestRTFConstructs has links, tables with paragraphs in cells, notes and headings.
func TestRTFConstructs(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"link", `see {\field{\*\fldinst{HYPERLINK "https://a.b/c?x=1&y=2" \\l "z"}}{\fldrslt{\ul the {\b page}\plain  here}}} now\par`, "see [the **page** here](https://a.b/c?x=1&y=2) now"},
		{"other field", `{\field{\*\fldinst PAGE}{\fldrslt 3}} of {\field{\*\fldinst{HYPERLINK \\l "top"}}{\fldrslt top}}\par`, "3 of top"},
		{"cells with paragraphs", `before\par\trowd\cellx1\cellx2\pard\intbl one\par two\cell\pard\intbl {\b b}\par\cell\row\trowd\pard\intbl c\cell d\cell\row\pard after\par`, "before\n\n| one<br>two | **b** |\n| --- | --- |\n| c | d |\n\nafter"},
		{"footnote", `word{\super\chftn{\*\footnote\chftn\pard\plain The {\i note}.\par More.}} goes on{\footnote second}\par end\par`, "word[^1] goes on[^2]\n\nend\n\n[^1]: The *note*.  \n    More.\n[^2]: second"},
		{"note in a cell", `\trowd\intbl a{\footnote n}\cell b\cell\row\pard x\par`, "| a[^1] | b |\n| --- | --- |\n\nx\n\n[^1]: n"},
		{"heading", `{\pard\outlinelevel1\b Title\par}{\pard text\par}`, "## Title\n\ntext"},
		{"open ends", `{\field{\*\fldinst{HYPERLINK "http://a.b"}}{\fldrslt x{\footnote y`, "[x](http://a.b)[^1]\n\n[^1]: y"},
		{"stray", `\fldinst a\fldrslt b\footnote c\cell d\row\nestcell e\par`, "| c |\n| --- |\n\nab[^1]\n\n[^1]: d / e"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want+"\n", textOf(t, []byte(`{\rtf1\ansi `+tt.in+`}`), asType(typeRTF), Options{}).Text); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
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
