// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
)

const (
	strangeNS = ` xmlns:a="a" xmlns:p="p" xmlns:mc="mc" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`
	odtNS     = ` xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="t" xmlns:table="tb" xmlns:draw="d" xmlns:style="s" xmlns:fo="f"`
)

// slideOf makes a presentation of one slide.
func slideOf(tb testing.TB, shapes string, parts ...string) []byte {
	return packed(tb, append([]string{
		"ppt/presentation.xml", `<p:presentation` + strangeNS + `><p:sldIdLst><p:sldId r:id="one"/></p:sldIdLst></p:presentation>`,
		"ppt/_rels/presentation.xml.rels", relsNS + `<Relationship Id="one" Type="t/slide" Target="slides/slide1.xml"/></Relationships>`,
		"ppt/slides/slide1.xml", `<p:sld` + strangeNS + `><p:cSld><p:spTree>` + shapes + `</p:spTree></p:cSld></p:sld>`,
	}, parts...)...)
}

func odtOf(tb testing.TB, body string) []byte {
	return packed(tb, "content.xml", `<office:document-content`+odtNS+`><office:body><office:text>`+body+`</office:text></office:body></office:document-content>`)
}

func bookOf(tb testing.TB, chapter string) []byte {
	return packed(
		tb, "META-INF/container.xml", `<container><rootfiles><rootfile full-path="book.opf"/></rootfiles></container>`,
		"book.opf", `<package><manifest><item id="a" href="one.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>`,
		"one.xhtml", chapter,
	)
}

// TestStrange has valid documents that programs write seldom.
func TestStrange(t *testing.T) {
	tests := []struct {
		name, mediaType string
		doc             []byte
		want            string
	}{
		{
			"cells below a cell over several rows, in short rows", "text/html",
			[]byte(`<table><tr><td>a<td rowspan=3>b<tr><td>c<tr><td>d<tr><td>e<td>f</table>`),
			"| a | b |\n| --- | --- |\n| c | |\n| d | |\n| e | f |\n",
		},
		{"an empty title in XHTML", typeEPUB, bookOf(t, `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="x.js"/><style/></head><body><p>All <b/>of it.</p><textarea/><p>More.</p></body></html>`), "<!-- chapter 1 -->\n\nAll of it.\n\nMore.\n"},
		{"sections in XHTML", typeEPUB, bookOf(t, `<html><body><!-- <p/> --><p title="a/>b"><![CDATA[x < y & ]] z]]>, <i class="c" />w</p><svg><g/></svg><p>a<br/>b<math><mrow><mi>x</mi><mrow/></mrow></math></p><script>if (a<b) "</p>"</script></body></html>`), "<!-- chapter 1 -->\n\nx < y & ]] z, w\n\na  \nb$x$\n\n<!-- left out: 1 diagrams, 1 scripts -->\n"},
		{"page breaks in XHTML", typeEPUB, bookOf(t, `<html><body>`+strings.Repeat(`<div class="break"/>`, 600)+`<p>End</p></body></html>`), "<!-- chapter 1 -->\n\nEnd\n"},
		{"an empty title in XHTML alone", "application/xhtml+xml", []byte(`<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body><p>All of it.</p></body></html>`), "All of it.\n"},
		{"lines that end in CR", "text/csv", []byte("a,b\rc,d\r"), "| | A | B |\n| --- | --- | --- |\n| 1 | a | b |\n| 2 | c | d |\n"},
		{"decimal commas", "text/csv", []byte("1,5;2,5\n3,25;4,5\n"), "| | A | B |\n| --- | --- | --- |\n| 1 | 1,5 | 2,5 |\n| 2 | 3,25 | 4,5 |\n"},
		{"title in an alternative", typePPTX, slideOf(t, `<mc:AlternateContent><mc:Choice><p:sp><p:nvSpPr><p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>The title</a:t></a:r></a:p></p:txBody></p:sp></mc:Choice></mc:AlternateContent><p:sp><p:txBody><a:p><a:r><a:t>text</a:t></a:r></a:p></p:txBody></p:sp>`), "<!-- slide 1 -->\n\n## The title\n\ntext\n"},
		{"threads of comments", typePPTX, slideOf(t, `<p:sp><p:txBody><a:p><a:r><a:t>text</a:t></a:r></a:p></p:txBody></p:sp>`,
			"ppt/slides/_rels/slide1.xml.rels", relsNS+`<Relationship Id="c" Type="http://schemas.microsoft.com/office/2018/10/relationships/comments" Target="../comments/c.xml"/></Relationships>`,
			"ppt/comments/c.xml", `<p188:cmLst xmlns:p188="p188" xmlns:a="a"><p188:cm><p188:replyLst><p188:reply><p188:txBody><a:p><a:r><a:t>No.</a:t></a:r></a:p></p188:txBody></p188:reply></p188:replyLst><p188:txBody><a:p><a:r><a:t>Is it </a:t></a:r><a:r><a:t>so?</a:t></a:r></a:p></p188:txBody></p188:cm></p188:cmLst>`,
		), "<!-- slide 1 -->\n\ntext\n\n> **Comment:** Is it so?\n\n> **Reply:** No.\n"},
		{"escapes in a sheet", typeXLSX, excelFile(t, `<row r="1"><c r="A1" t="inlineStr"><is><t>one_x000D_
two_x005F_x000D_ 中_x4E2D_ _xZZZZ_</t></is></c></row>`), "## One | 一\n\n| | A |\n| --- | --- |\n| 1 | one<br>two_x000D\\_ 中中 \\_xZZZZ\\_ |\n\n## Two (hidden)\n"},
		{"paragraphs of a frame", typeODT, odtOf(t, `<text:p>Before<draw:frame><draw:text-box><text:p>one</text:p><text:p>two</text:p></draw:text-box></draw:frame>after</text:p>`), "Before  \none  \ntwo  \nafter\n"},
		{"a comment", typeODT, odtOf(t, `<text:p>so<office:annotation><dc:creator>Ann</dc:creator><dc:date>2026-01-02</dc:date><text:p>Is</text:p><text:p>it?</text:p></office:annotation> it is</text:p>`), "so[^c1] it is\n\n[^c1]: Comment by Ann: Is it?\n"},
		{"headers and footers", typeODT, packed(
			t, "styles.xml", `<office:document-styles`+odtNS+`><office:master-styles><style:master-page><style:header><text:p>Secret</text:p></style:header><style:footer><text:p>Page 1</text:p></style:footer><style:header-left style:display="false"><text:p>never</text:p></style:header-left></style:master-page><style:master-page><style:header><text:p>Secret</text:p></style:header></style:master-page></office:master-styles></office:document-styles>`,
			"content.xml", `<office:document-content`+odtNS+`><office:body><office:text><text:p>Text</text:p></office:text></office:body></office:document-content>`,
		), "Text\n\n<!-- headers and footers -->\n\nSecret\n\nPage 1\n"},
		{"a chapter in another charset", typeEPUB, bookOf(t, "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?><html><body><p>caf\xe9</p></body></html>"), "<!-- chapter 1 -->\n\ncafé\n"},
		{"a chapter in UTF-16", typeEPUB, bookOf(t, "\xff\xfe<\x00p\x00>\x00\xe9\x00<\x00/\x00p\x00>\x00"), "<!-- chapter 1 -->\n\né\n"},
		{"text in a charset and in Unicode", typeRTF, []byte(`{\rtf1\ansi before {\upr{caf?}{\*\ud{caf\u233?}}} after{\info{\title{\upr{x}{\*\ud{hidden}}}}}\par}`), "before café after\n"},
		{"fields of a form", typeRTF, []byte(`{\rtf1 choose {\field{\*\fldinst { FORMDROPDOWN {\*\formfield{\fftype2\ffres1{\*\ffname D}{\*\ffl one}{\*\ffl two}}}}}{\fldrslt }} and {\field{\*\fldinst FORMCHECKBOX {\*\formfield{\fftype1\ffres25\ffdefres1}}}{\fldrslt }} or {\field{\*\fldinst FORMDROPDOWN {\*\formfield{\fftype2{\*\ffl first}}}}{\fldrslt first}}\par}`), "choose two and ☒ or first\n"},
		{"paragraphs of a shape", typeODT, odtOf(t, `<text:p>Before<draw:custom-shape><text:p>one</text:p><text:p>two</text:p></draw:custom-shape>after</text:p>`), "Before  \none  \ntwo  \nafter\n"},
		{"headings in a cell", typeODT, odtOf(t, `<table:table><table:table-row><table:table-cell><text:h>Head</text:h><text:p>text</text:p></table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>`), "| Head<br>text | b |\n| --- | --- |\n"},
		{"ruby", typeODT, odtOf(t, `<text:p><text:ruby><text:ruby-base>漢字</text:ruby-base><text:ruby-text>かんじ</text:ruby-text></text:ruby></text:p>`), "漢字(かんじ)\n"},
		{"text box in RTF", typeRTF, []byte(`{\rtf1\ansi Before{\shp{\*\shpinst\shpleft1{\sp{\sn a}{\sv 1}}{\shptxt \pard in the box\par second\par}}{\shprslt{\*\do{\dptxbxtext in the box\par}}}}after\par}`), "Before  \nin the box  \nsecond  \nafter\n"},
		{"deleted text in RTF", typeRTF, []byte(`{\rtf1\ansi old {\deleted\revauthdel1 gone }new\par}`), "old new\n\n<!-- left out: 1 deleted passages -->\n"},
		{"a character without a replacement in RTF", typeRTF, []byte(`{\rtf1\ansi {\u8217}quoted \u233{}e\par}`), "’quoted ée\n"},
		{"fonts of WordPad", typeRTF, []byte(`{\rtf1\ansi\ansicpg1252\deff0\nouicompat{\fonttbl{\f0\fnil\fcharset0 Calibri;}{\f1\fnil\fcharset204 Calibri;}}
{\*\generator Riched20 10.0}\viewkind4\uc1 \pard\f1\'cf\'f0\'e8\'e2\'e5\'f2\f0 !\par}`), "Привет!\n"},
		{"RTF of old Macs", typeRTF, []byte(`{\rtf1\mac caf\'8e\par}`), "café\n"},
		{"RTF of DOS", typeRTF, []byte(`{\rtf1\pc caf\'82\par}`), "café\n"},
		{"numbers of items", "text/html", []byte(`<ol><li value=5>five<li>six</ol><p style="DISPLAY: none">no`), "5. five\n6. six\n\n<!-- left out: 1 hidden passages -->\n"},
		{"repeated cells", typeODT, odtOf(t, `<table:table><table:table-row table:number-rows-repeated="2"><table:table-cell table:number-columns-repeated="2"><text:p>r</text:p></table:table-cell></table:table-row></table:table>`), "| r | r |\n| --- | --- |\n| r | r |\n"},
		{"frames of a page", typeODT, odtOf(t, `<draw:frame><draw:image href="Pictures/x.png"/></draw:frame><draw:frame><draw:text-box><text:section><text:h>Head</text:h><text:p>boxed</text:p></text:section></draw:text-box></draw:frame>`), "![](x.png)\n\n# Head\n\nboxed\n"},
		{"a note referred to twice", typeDOCX, wordDocument(t, `<w:p><w:r><w:t>a</w:t><w:footnoteReference w:id="2"/><w:t>b</w:t><w:footnoteReference w:id="2"/></w:r></w:p>`), "a[^1]b[^1]\n\n[^1]: A note.\n"},
		{"headers in RTF", typeRTF, []byte(`{\rtf1\ansi {\header Secret\par}text\par}`), "text\n\n<!-- headers and footers -->\n\nSecret\n"},
		{"code of a field in a field", typeDOCX, wordDocument(t, `<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>IF </w:instrText></w:r><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>MERGEFIELD sex</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>M</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r><w:r><w:instrText> = "M" "Mr"</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>Mr</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>`), "Mr\n"},
		{"drop-down list of an old form", typeDOCX, wordDocument(t, `<w:p><w:r><w:t>Pay: </w:t></w:r><w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="cash"/><w:listEntry w:val="card"/></w:ddList></w:ffData></w:fldChar></w:r><w:r><w:instrText>FORMDROPDOWN</w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>`), "Pay: card\n"},
		{"text box in the last cell", typeDOCX, wordDocument(t, `<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r><w:r><w:drawing><w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent></w:drawing></w:r></w:p></w:tc></w:tr></w:tbl>`), "| a |\n| --- |\n\nboxed\n"},
		{"formula beside paragraphs", typeDOCX, wordDocument(t, `<m:oMathPara xmlns:m="m"><m:oMath><m:r><m:t>x+1</m:t></m:r></m:oMath></m:oMathPara>`), "$$x+1$$\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := textOf(t, tt.doc, artel.MediaInfo{MediaType: tt.mediaType, Charset: "utf-8"}, Options{})
			if tt.mediaType == typeDOCX { // every one of them has a header
				x.Text = strings.Replace(x.Text, "\n\n<!-- headers and footers -->\n\nSecret", "", 1)
			}
			if diff := cmp.Diff(tt.want, x.Text); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestReturnsEndRows says that lines that end in CR alone have numbers, too.
func TestReturnsEndRows(t *testing.T) {
	columns, rows := Addressed("a,b\rc,d\r\ne,f\r", "text/csv")
	if columns != "A a, B b" || rows != "1: a,b\r2: c,d\r\n3: e,f\r" {
		t.Errorf("got %q, %q", columns, rows)
	}
}

// TestXHTMLReader says that pages without empty elements and sections stay as they are,
// and that it does not matter in which pieces a page is read.
func TestXHTMLReader(t *testing.T) {
	piece := rapid.SampledFrom([]string{"<", ">", "/", "/>", "!", "--", "<!--", "-->", "<![CDATA[", "]]>", "]", "\"", "'", "=", " ", "a", "br", "script", "</script>", "é", "&", "?"})
	rapid.Check(t, func(t *rapid.T) {
		page := strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "page"), "")
		whole, err := io.ReadAll(&xhtmlReader{r: strings.NewReader(page)})
		if err != nil {
			t.Fatal(err)
		}
		if bytewise, err := io.ReadAll(iotest.OneByteReader(&xhtmlReader{r: iotest.OneByteReader(strings.NewReader(page))})); err != nil || string(bytewise) != string(whole) {
			t.Fatalf("%q in pieces is %q, otherwise %q, %v", page, bytewise, whole, err)
		}
		if !strings.Contains(page, "/>") && !strings.Contains(page, "<![CDATA[") && string(whole) != page {
			t.Fatalf("%q becomes %q", page, whole)
		}
	})
}
