// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"pgregory.net/rapid"
)

const (
	wordNS = ` xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"`
	relsNS = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`
)

const wordRels = relsNS + `
<Relationship Id="s" Type="http://x/relationships/styles" Target="styles.xml"/>
<Relationship Id="n" Type="http://x/relationships/numbering" Target="numbering.xml"/>
<Relationship Id="f" Type="http://x/relationships/footnotes" Target="footnotes.xml"/>
<Relationship Id="c" Type="http://x/relationships/comments" Target="comments.xml"/>
<Relationship Id="h" Type="http://x/relationships/header" Target="header1.xml"/>
<Relationship Id="i" Type="http://x/relationships/image" Target="media/image1.png"/>
<Relationship Id="l" Type="http://x/relationships/hyperlink" Target="https://example.org/a b" TargetMode="External"/>
</Relationships>`

const wordStyles = `<w:styles` + wordNS + `>
<w:style w:type="paragraph" w:styleId="H1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="H1"/></w:style>
<w:style w:type="paragraph" w:styleId="Loop"><w:name w:val="Loop"/><w:basedOn w:val="Loop"/></w:style>
<w:style w:type="paragraph" w:styleId="Code"><w:name w:val="Source Code"/></w:style>
</w:styles>`

const wordNumbering = `<w:numbering` + wordNS + `>
<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl><w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="(%2)"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="2"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="chineseCounting"/><w:lvlText w:val="第%1条"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="1"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="2"/></w:num>
</w:numbering>`

// wordDocument makes a Word document with a body.
func wordDocument(tb testing.TB, body string) []byte {
	tb.Helper()
	return packed(
		tb,
		"word/document.xml", `<w:document`+wordNS+`><w:body>`+body+`</w:body></w:document>`,
		"word/_rels/document.xml.rels", wordRels,
		"word/styles.xml", wordStyles,
		"word/numbering.xml", wordNumbering,
		"word/footnotes.xml", `<w:footnotes`+wordNS+`><w:footnote w:id="2"><w:p><w:r><w:t>A note.</w:t></w:r></w:p></w:footnote></w:footnotes>`,
		"word/comments.xml", `<w:comments`+wordNS+`><w:comment w:id="0" w:author="Ann"><w:p><w:r><w:t>Really?</w:t></w:r></w:p></w:comment></w:comments>`,
		"word/header1.xml", `<w:hdr`+wordNS+`><w:p><w:r><w:t>Secret</w:t></w:r></w:p></w:hdr>`,
	)
}

func item(num, level, text string) string {
	return `<w:p><w:pPr><w:numPr><w:ilvl w:val="` + level + `"/><w:numId w:val="` + num + `"/></w:numPr></w:pPr><w:r><w:t>` + text + `</w:t></w:r></w:p>`
}

func TestDOCX(t *testing.T) {
	tests := []struct {
		name, body, want string
		left             map[Omission]int
	}{
		{"inherited heading", `<w:p><w:pPr><w:pStyle w:val="Mine"/></w:pPr><w:r><w:t>Title</w:t></w:r></w:p>`, "# Title", nil},
		{"style that inherits from itself", `<w:p><w:pPr><w:pStyle w:val="Loop"/></w:pPr><w:r><w:t>x</w:t></w:r></w:p>`, "x", nil},
		{
			"numbers", item("1", "0", "one") + item("1", "1", "a") + item("1", "1", "b") + item("1", "0", "two") + `<w:p><w:r><w:t>between</w:t></w:r></w:p>` + item("1", "0", "three") + `<w:p><w:r><w:t>again</w:t></w:r></w:p>` + item("2", "0", "anew"),
			"1. one\n   - (a) a\n   - (b) b\n2. two\n\nbetween\n\n3. three\n\nagain\n\n1. anew", nil,
		},
		{"chinese numbers", item("3", "0", "甲") + item("3", "0", "乙"), "- 第一条 甲\n- 第二条 乙", nil},
		{
			"footnote and comment", `<w:p><w:r><w:t>Text</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r><w:r><w:t> goes on</w:t></w:r><w:r><w:commentReference w:id="0"/></w:r></w:p>`,
			"Text[^1] goes on[^c2]\n\n<!-- headers and footers -->\n\nSecret\n\n[^1]: A note.\n[^c2]: Comment by Ann: Really?", nil,
		},
		{"link", `<w:p><w:hyperlink r:id="l"><w:r><w:t>here [1]</w:t></w:r></w:hyperlink></w:p>`, `[here \[1\]](https://example.org/a%20b)`, nil},
		{"field", `<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> HYPERLINK "https://example.org/" </w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>site</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r><w:r><w:t>, end</w:t></w:r></w:p>`, "[site](https://example.org/), end", nil},
		{"picture", `<w:p><w:r><w:drawing><wp:inline><wp:docPr id="1" name="Picture 1" descr="A [red] cat"/><a:graphic><a:graphicData><a:blip r:embed="i"/></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>`, "![A (red) cat](image1.png)", nil},
		{"chart", `<w:p><w:r><w:drawing><wp:inline><wp:docPr id="1" name="Chart --> 1"/><a:graphic><a:graphicData uri="http://x/2006/chart"/></a:graphic></wp:inline></w:drawing></w:r></w:p>`, "<!-- chart: Chart - -) 1 -->", map[Omission]int{OmitChart: 1}},
		{"tracked changes", `<w:p><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>`, "new", map[Omission]int{OmitDeleted: 1}},
		{"hidden", `<w:p><w:r><w:t>seen</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>unseen</w:t></w:r></w:p>`, "seen", map[Omission]int{OmitHidden: 1}},
		{"code", `<w:p><w:pPr><w:pStyle w:val="Code"/></w:pPr><w:r><w:t xml:space="preserve">  a := "**"</w:t></w:r></w:p><w:p><w:pPr><w:pStyle w:val="Code"/></w:pPr><w:r><w:t>` + "```" + `</w:t></w:r></w:p>`, "````\n  a := \"**\"\n```\n````", nil},
		{
			"merged cells", `<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr><w:p><w:r><w:t>wide</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>c|d</w:t></w:r></w:p></w:tc></w:tr><w:tr><w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr><w:p><w:r><w:t>tall</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>1</w:t></w:r></w:p><w:p><w:r><w:t>2</w:t></w:r></w:p></w:tc><w:tc/></w:tr><w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p><w:r><w:t>ghost</w:t></w:r></w:p></w:tc><w:tc><w:p/></w:tc><w:tc><w:p><w:r><w:t>z</w:t></w:r></w:p></w:tc></w:tr></w:tbl>`,
			"| wide | | c\\|d |\n| --- | --- | --- |\n| tall | 1<br>2 | |\n| | | z |", nil,
		},
		{"looks", `<w:p><w:r><w:rPr><w:b/></w:rPr><w:t>注意：</w:t></w:r><w:r><w:t>请</w:t></w:r><w:r><w:rPr><w:b/><w:i/></w:rPr><w:t xml:space="preserve"> both </w:t></w:r><w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>2</w:t></w:r></w:p>`, "**注意**：请 ***both*** <sup>2</sup>", nil},
		{"text box", `<w:p><w:r><w:t>Outside</w:t></w:r><w:r><w:pict><w:txbxContent><w:p><w:r><w:t>inside</w:t></w:r></w:p></w:txbxContent></w:pict></w:r></w:p>`, "Outside\n\ninside", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := textOf(t, wordDocument(t, tt.body), asType(typeDOCX), Options{})
			got := strings.TrimSuffix(x.Text, "\n")
			if i := strings.Index(got, "\n\n<!-- left out"); i >= 0 {
				got = got[:i]
			}
			if !strings.Contains(tt.want, "headers") {
				got = strings.Replace(got, "\n\n<!-- headers and footers -->\n\nSecret", "", 1)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if diff := cmp.Diff(tt.left, x.LeftOut); diff != "" {
				t.Errorf("left out: -want +got\n%s", diff)
			}
		})
	}
}

// TestFaithful says that Markdown shows every text as it stood in the
// document, whatever signs are in it and whatever look they have.
func TestFaithful(t *testing.T) {
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Footnote))
	rapid.Check(t, func(t *rapid.T) {
		var body, want strings.Builder
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			s := rapid.StringOfN(rapid.RuneFrom([]rune("ab 1.)#*_~`[]()<>!&;|\\:-+=天。，\"'")), 1, 12, -1).Draw(t, "text")
			look := rapid.SampledFrom([]string{"", "<w:b/>", "<w:i/>", "<w:b/><w:i/>", "<w:strike/>"}).Draw(t, "look")
			body.WriteString(`<w:r><w:rPr>` + look + `</w:rPr><w:t xml:space="preserve">`)
			if err := xml.EscapeText(&body, []byte(s)); err != nil {
				t.Fatal(err)
			}
			body.WriteString(`</w:t></w:r>`)
			want.WriteString(s)
		}
		x, err := read(t.Context(), strings.NewReader(""), 0, asType("none"), Options{})
		if err == nil {
			t.Fatal(x)
		}
		src := paragraphOf(t, body.String())
		doc := md.Parser().Parse(text.NewReader([]byte(src)))
		var got strings.Builder
		_ = ast.Walk(doc, func(n ast.Node, in bool) (ast.WalkStatus, error) {
			if in {
				switch n := n.(type) {
				case *ast.Text:
					got.Write(n.Segment.Value([]byte(src)))
				case *ast.String:
					got.Write(n.Value)
				case *ast.Document, *ast.Paragraph, *ast.Emphasis:
				default:
					if n.Kind().String() != "Strikethrough" {
						t.Fatalf("%s in %q", n.Kind(), src)
					}
				}
			}
			return ast.WalkContinue, nil
		})
		plain := strings.TrimSpace(want.String())
		if shown := unescape(got.String()); strings.Join(strings.Fields(shown), " ") != strings.Join(strings.Fields(plain), " ") {
			t.Fatalf("%q became %q, which shows %q", plain, src, shown)
		}
	})
}

// unescape takes the backslashes that the parser leaves in its text.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte(punctuation, s[i+1]) >= 0 {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// paragraphOf returns the Markdown of one paragraph with runs.
func paragraphOf(t *rapid.T, runs string) string {
	b := newBudget(t.Context(), Options{})
	x := newXMLReader(strings.NewReader(`<w:p`+wordNS+`>`+runs+`</w:p>`), nil, b)
	o := &out{budget: b}
	d := &docx{archive: &archive{budget: b}, o: o, lists: &docxLists{}}
	err := x.elements(func(e xml.StartElement) error {
		n, err := x.subtree(e)
		if err != nil {
			return err
		}
		return d.paragraph(n)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return o.b.String()
}
