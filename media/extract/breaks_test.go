// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

// TestSeparatorsKeepWordsApart has what separates words beside blanks and line breaks.
func TestSeparatorsKeepWordsApart(t *testing.T) {
	for _, tt := range []struct {
		name, mediaType string
		data            []byte
	}{
		{"page break", typeDOCX, wordDocument(t, `<w:p><w:r><w:t>one</w:t></w:r><w:r><w:br w:type="page"/><w:t>two</w:t></w:r></w:p>`)},
		{"column break", typeRTF, []byte(`{\rtf1 one\column two\par}`)},
		{"wide space", typeRTF, []byte(`{\rtf1 one\emspace two\par}`)},
		{"page break in a note", typeRTF, []byte(`{\rtf1 x{\footnote one\page two}\par}`)},
		{"buttons", typeHTML, []byte(`<button>one</button><button>two</button>`)},
		{"ruled paragraphs", typeHTML, []byte(`one<hr>two`)},
		{"other charset", typeODT, packed(t, "content.xml", "<?xml version=\"1.0\" encoding=\"windows-1252\"?><office:d xmlns:office=\"urn:oasis:names:tc:opendocument:xmlns:office:1.0\" xmlns:text=\"t\"><office:text><text:p>one\xA0\x96 two</text:p></office:text></office:d>")},
		{"wide characters", typeODT, packed(t, "content.xml", wide(`<?xml version="1.0" encoding="UTF-16"?><office:d xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="t"><office:text><text:p>one<text:tab/>two</text:p></office:text></office:d>`))},
	} {
		got := textOf(t, tt.data, asType(tt.mediaType), Options{}).Text
		if words := strings.Join(wordsOf(got), " "); !strings.HasSuffix(words, "one two") && !strings.HasPrefix(words, "one two") {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// wide returns text as UTF-16.
func wide(s string) string {
	b := []byte{0xFF, 0xFE}
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return string(b)
}

// TestLineBreaksKeepWordsApart has one sentence with a line break between a link, plain
// text and bold text in each format.
func TestLineBreaksKeepWordsApart(t *testing.T) {
	const (
		want     = "plain [link](http://a.b/) then  \nnext **x** y  \nlast\n"
		nextLine = `<w:r><w:t xml:space="preserve"> then </w:t></w:r><w:r><w:br/></w:r><w:r><w:t xml:space="preserve">next </w:t></w:r>`
		page     = `<p>plain <a href="http://a.b/">link</a> then<br>next <b>x</b> y<br/> last</p>`
	)
	for _, tt := range []struct {
		name, mediaType string
		data            []byte
	}{
		{"DOCX", typeDOCX, packed(t,
			"word/document.xml", `<w:document`+wordNS+`><w:body><w:p><w:r><w:t xml:space="preserve">plain </w:t></w:r><w:hyperlink r:id="l"><w:r><w:t>link</w:t></w:r></w:hyperlink>`+nextLine+
				`<w:r><w:rPr><w:b/></w:rPr><w:t>x</w:t></w:r><w:r><w:t xml:space="preserve"> y</w:t><w:br/><w:t>last</w:t></w:r></w:p></w:body></w:document>`,
			"word/_rels/document.xml.rels", relsNS+`<Relationship Id="l" Type="t/hyperlink" Target="http://a.b/" TargetMode="External"/></Relationships>`)},
		{"ODT", typeODT, packed(t, "content.xml", `<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="t" xmlns:style="s" xmlns:fo="f" xmlns:xlink="x"><office:automatic-styles><style:style style:name="T1"><style:text-properties fo:font-weight="bold"/></style:style></office:automatic-styles><office:body><office:text>`+
			`<text:p>plain <text:a xlink:href="http://a.b/">link</text:a> then<text:line-break/>next <text:span text:style-name="T1">x</text:span> y<text:line-break/>last</text:p></office:text></office:body></office:document-content>`)},
		{"PPTX", typePPTX, packed(t,
			"ppt/presentation.xml", `<p:presentation xmlns:p="p" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><p:sldIdLst><p:sldId r:id="a"/></p:sldIdLst></p:presentation>`,
			"ppt/_rels/presentation.xml.rels", relsNS+`<Relationship Id="a" Type="t/slide" Target="slides/slide1.xml"/></Relationships>`,
			"ppt/slides/slide1.xml", `<p:sld xmlns:p="p" xmlns:a="a" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><p:cSld><p:spTree><p:sp><p:txBody><a:p><a:r><a:t>plain </a:t></a:r><a:r><a:rPr><a:hlinkClick r:id="l"/></a:rPr><a:t>link</a:t></a:r><a:r><a:t> then</a:t></a:r><a:br/><a:r><a:t>next </a:t></a:r><a:r><a:rPr b="1"/><a:t>x</a:t></a:r><a:r><a:t> y</a:t></a:r><a:br/><a:r><a:t>last</a:t></a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>`,
			"ppt/slides/_rels/slide1.xml.rels", relsNS+`<Relationship Id="l" Type="t/hyperlink" Target="http://a.b/" TargetMode="External"/></Relationships>`)},
		{"HTML", typeHTML, []byte(page)},
		{"EPUB", typeEPUB, packed(t, "META-INF/container.xml", `<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>`,
			"b.opf", `<package><manifest><item id="a" href="a.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>`, "a.xhtml", page)},
		{"RTF", typeRTF, []byte(`{\rtf1\ansi plain {\field{\*\fldinst{HYPERLINK "http://a.b/"}}{\fldrslt{link}}} then\line next {\b x} y\line last\par}`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.TrimPrefix(textOf(t, tt.data, asType(tt.mediaType), Options{}).Text, "<!-- chapter 1 -->\n\n")
			got = strings.TrimPrefix(got, "<!-- slide 1 -->\n\n")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
