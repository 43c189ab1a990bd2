// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"archive/zip"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/export"
)

var update = flag.Bool("update", false, "write what documents show anew")

// golden compares got with a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want +got\n%s", file, diff)
	}
}

func TestDOCX(t *testing.T) {
	file := docx(t, rich(t))
	if err := checkDOCX(file); err != nil {
		t.Fatal(err)
	}
	doc, err := documentOf(file, "word/document.xml")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/rich.docx.txt", textOf(doc))
	for part, want := range map[string][]string{
		"docProps/core.xml":            {"<dc:title>季度报告 Quarterly report</dc:title>", "<dc:creator>lead</dc:creator>", "2026-03-01T12:00:00Z"},
		"word/_rels/document.xml.rels": {`"https://example.com/a?b=1&amp;c=2"`, `"https://xn--r8jz45g.jp/%E3%83%91%E3%82%B9?q=%25zz"`, `"https://artel.example/plan"`, `"mailto:a@example.com"`, `"media/image1.png"`},
		"word/styles.xml":              {`w:eastAsia="Yu Gothic"`, `w:styleId="Heading6"`},
		"word/document.xml":            {`<w:tblHeader/>`, `<w:jc w:val="center"/>`, `<w:jc w:val="right"/>`, `descr="A red square"`, `<w:b/>`, `<w:i/>`, `<w:strike/>`, `w:tooltip="A title"`, `w14:val="1"`, `cx="5731510" cy="859726"`},
		"word/numbering.xml":           {`<w:startOverride w:val="7"/>`, `<w:lvlText w:val="%1)"/>`},
	} {
		b := string(partOf(t, file, part))
		for _, w := range want {
			if !strings.Contains(b, w) {
				t.Errorf("%s has no %s", part, w)
			}
		}
	}
}

func partOf(t testing.TB, file, name string) []byte {
	t.Helper()
	z, err := zip.NewReader(strings.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	b, err := readAll(z, name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCheckDOCX holds the check to files that are broken.
func TestCheckDOCX(t *testing.T) {
	good := docx(t, rich(t))
	tests := []struct{ part, old, new string }{
		{"word/document.xml", `w:val="Heading2"`, `w:val="Nothing"`},
		{"word/document.xml", `<w:b/><w:bCs/>`, `<w:bCs/><w:b/>`},
		{"word/document.xml", `</w:sectPr>`, ``},
		{"word/document.xml", `</w:p></w:tc>`, `</w:p><w:tcPr/></w:tc>`},
		{"word/document.xml", `<w:numId w:val="1"/>`, `<w:numId w:val="99"/>`},
		{"word/document.xml", `r:id="rLink1"`, `r:id="rLink99"`},
		{"word/document.xml", `<w:gridCol `, `<w:gridCol/><w:gridCol `},
		{"word/document.xml", `<wp:docPr id="`, `<wp:docPr id="1" x="`},
		{"word/_rels/document.xml.rels", `Target="styles.xml"`, `Target="gone.xml"`},
		{"word/_rels/document.xml.rels", `Target="https://example.org/"`, `Target="https://exa mple.org/"`},
		{"word/_rels/document.xml.rels", `Id="rFonts"`, `Id="rStyles"`},
		{"[Content_Types].xml", `PartName="/word/footer1.xml"`, `PartName="/word/footer2.xml"`},
		{"[Content_Types].xml", `Extension="png"`, `Extension="bmp"`},
		{"word/numbering.xml", `<w:start w:val="1"/><w:numFmt w:val="bullet"/>`, `<w:numFmt w:val="bullet"/><w:start w:val="1"/>`},
	}
	for _, tt := range tests {
		t.Run(tt.part+" "+tt.old, func(t *testing.T) {
			broken := replaceIn(t, good, tt.part, tt.old, tt.new)
			if checkDOCX(broken) == nil {
				t.Error("passes")
			}
		})
	}
}

// replaceIn changes the first place of old in a part.
func replaceIn(t *testing.T, file, part, old, with string) string {
	t.Helper()
	z, err := zip.NewReader(strings.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range z.File {
		b, err := readAll(z, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == part {
			changed := strings.Replace(string(b), old, with, 1)
			if changed == string(b) {
				t.Fatalf("%s has no %s", part, old)
			}
			b = []byte(changed)
		}
		e, err := w.Create(f.Name)
		if err == nil {
			_, err = e.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestDOCXOfText(t *testing.T) {
	line := strings.Repeat("word ", 200)
	tests := []struct {
		name string
		d    export.Document
		want string
	}{
		{"empty", export.Document{}, ""},
		{"title", export.Document{Title: "T", Text: "text"}, "Title|T\n|text\n"},
		{"title is there", export.Document{Title: "T", Text: "# Other\n"}, "Heading1|Other\n"},
		{"plain", export.Document{Text: "# a\n\n*b*\r\n", MediaType: "text/plain"}, "Plain|# a\nPlain|\nPlain|*b*\n"},
		{"code", export.Document{Text: "a\n\tb\n", MediaType: "text/x-go"}, "Code|a\\n\tb\nGap|\n"},
		{"controls", export.Document{Text: "a\x00b\x01c\uFFFEd\x7f"}, "|a\uFFFDb\uFFFDc\uFFFDd\x7f\n"},
		{"not UTF-8", export.Document{Text: "a\xffb"}, "|a\uFFFDb\n"},
		{"escapes", export.Document{Text: `a\*b &amp; &lt;&#65;`}, "|a*b & <A\n"},
		{"soft breaks", export.Document{Text: "中\n文\nb\nc\n*中*\n**文**"}, "|中文 b c 中文\n"},
		{"list in list", export.Document{Text: "- - a\n  - b\n-\n- > q\n"}, "ListParagraph[1:0]|\nListParagraph[1:1]|a\nListParagraph[1:1]|b\nListParagraph[1:0]|\nListParagraph[1:0]|\nListParagraph|q\n"},
		{"numbers begin anew", export.Document{Text: "1. a\n   1. b\n\nx\n\n5. c\n"}, "ListParagraph[3:0]|a\nListParagraph[4:1]|b\n|x\nListParagraph[5:0]|c\n"},
		{"table of a head", export.Document{Text: "|a|b|\n|-|-|\n"}, "Cell|a\nCell|b\nGap|\n"},
		{"wide table", export.Document{Text: strings.Repeat("|a", 64) + "|\n" + strings.Repeat("|-", 64) + "|\n"}, "Code|" + strings.Repeat("a | ", 63) + "a\nGap|\n"},
		{"links that lead nowhere", export.Document{Text: "[a](artifact:x) [b](/x) [c](javascript:x) <artifact:y> [d](data:x) [e](http://)"}, "|a b c artifact:y d e\n"},
		{"pictures that are none", export.Document{Text: "![a](artifact:fake.png) ![b](artifact:x.svg) ![c](artifact:note.txt) ![d](artifact:empty) ![e](artifact:none)", Open: pictures(t).open}, "|a b c d e\n"},
		{"pictures", export.Document{Text: "![a](artifact:red.gif) ![b](artifact:red.jpg@1) ![c](artifact:red.gif)", Open: pictures(t).open}, "|<picture> <picture> <picture>\n"},
		{"linked picture", export.Document{Text: "[![a](artifact:red.gif)](https://a.example)", Open: pictures(t).open}, "|<link><picture>\n"},
		{"html", export.Document{Text: "<script>\nx\n</script>\n\na <b>c</b>"}, "Code|<script>\\nx\\n</script>\nGap|\n|a <b>c</b>\n"},
		{"code with breaks", export.Document{Text: "`a\nb`"}, "|a b\n"},
		{"long", export.Document{Text: strings.Repeat(line+"\n", 1_200)}, strings.Repeat("Plain|"+line+"\n", 1_200)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := docx(t, tt.d)
			if err := checkDOCX(file); err != nil {
				t.Fatal(err)
			}
			doc, err := documentOf(file, "word/document.xml")
			if err != nil {
				t.Fatal(err)
			}
			if got := textOf(doc); got != tt.want {
				t.Errorf("got  %q\nwant %q", artel.Shorten(got, 500), artel.Shorten(tt.want, 500))
			}
		})
	}
}

// TestPicturesAreBounded shows more pictures than a document may have.
func TestPicturesAreBounded(t *testing.T) {
	var text strings.Builder
	for i := range 600 {
		fmt.Fprintf(&text, "![p%d](artifact:red%d)\n", i, i)
	}
	one := picture(t, "png", 2, 2)
	d := export.Document{Text: text.String(), Open: func(context.Context, artel.Ref) (artifact.Content, error) {
		return content(one, "image/png", 1), nil
	}}
	doc, err := documentOf(docx(t, d), "word/document.xml")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(doc.find("pic:pic")); n != 500 {
		t.Errorf("%d pictures, want 500", n)
	}
	if got := strings.Count(page(t, d), "<img "); got != 500 {
		t.Errorf("%d pictures in the page, want 500", got)
	}
	d.Open = func(context.Context, artel.Ref) (artifact.Content, error) {
		c := content(one, "image/png", 1)
		c.Reader = sized{c.Reader.(reader), 33 << 20}
		return c, nil
	}
	if n := strings.Count(page(t, d), "<img "); n != 0 {
		t.Errorf("%d pictures that are too large", n)
	}
}

// A sized reader says that it has more bytes than it has.
type sized struct {
	reader
	size int64
}

func (s sized) Size() int64 { return s.size }

// fragments are what the texts of properties are made of.
var fragments = []string{
	"# h\n", "a ", "*", "**", "_", "`", "~~", "\n", "\n\n", "- ", "  ", "    ", "1. ", "3) ", "> ", "|a|b|\n|-|-:|\n|c|\n", "```\n", "~~~go\n", "---\n",
	"[x](https://a.example/?q=\")", "[y](artifact:red.png)", "![z](artifact:red.jpg)", "![w](artifact:red.gif@2 \"t\")", "<artifact:red.png>", "http://a.example/ü ", "<b>", "&lt;", "\\", "中", "文\n", "☐", "- [x] t\n", "\t", "\x00", "\x0b", "]]>", "<w:p>", "\"", "&", "[r]: artifact:red.png\n", "[r]", "<!-- c -->\n",
}

func anyText(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(fragments), 0, 40).Draw(t, "fragments"), "")
}

func TestDOCXProperty(t *testing.T) {
	open := pictures(t).open
	rapid.Check(t, func(rt *rapid.T) {
		d := export.Document{Title: rapid.String().Draw(rt, "title"), Text: anyText(rt), Open: open, Link: func(r artel.Ref) string { return "files/" + string(r.Artifact) }}
		if err := checkDOCX(docx(t, d)); err != nil {
			rt.Fatalf("%q: %v", d.Text, err)
		}
	})
}

func FuzzDOCX(f *testing.F) {
	f.Add(rich(f).Text, "text/markdown")
	f.Add(strings.Join(fragments, ""), "")
	f.Add("a\tb", "text/plain")
	open := pictures(f).open
	f.Fuzz(func(t *testing.T, text, mediaType string) {
		d := export.Document{Title: artel.Shorten(text, 40), Text: text, MediaType: mediaType, Open: open, Link: func(artel.Ref) string { return text }}
		file := docx(t, d)
		if err := checkDOCX(file); err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(partOf(t, file, "word/document.xml")) {
			t.Fatal("not UTF-8")
		}
	})
}

func BenchmarkDOCX(b *testing.B) {
	d := rich(b)
	d.Text = strings.Repeat(d.Text, 100<<10/len(d.Text))
	b.SetBytes(int64(len(d.Text)))
	b.ReportAllocs()
	for b.Loop() {
		if err := export.DOCX(b.Context(), io.Discard, d); err != nil {
			b.Fatal(err)
		}
	}
}
