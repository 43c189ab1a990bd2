// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
)

// odtLists makes a text with list styles: L1 counts 5., 5.a, (i), L2 has signs.
func odtLists(tb testing.TB, body string) []byte {
	return packed(tb, "content.xml", `<office:document-content`+odtNS+`><office:automatic-styles><text:list-style style:name="L1">`+
		`<text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="." text:start-value="5"/>`+
		`<text:list-level-style-number text:level="2" style:num-format="a" text:display-levels="2"/>`+
		`<text:list-level-style-number text:level="3" style:num-format="i" style:num-prefix="(" style:num-suffix=")"/></text:list-style>`+
		`<text:list-style style:name="L2"><text:list-level-style-bullet text:level="1"/></text:list-style></office:automatic-styles>`+
		`<office:body><office:text>`+body+`</office:text></office:body></office:document-content>`)
}

// TestNumbersOfLists wants each item to have the number that its program shows, because
// texts refer to items by it.
func TestNumbersOfLists(t *testing.T) {
	item := func(text string, more ...string) string {
		return `<text:list-item><text:p>` + text + `</text:p>` + strings.Join(more, "") + `</text:list-item>`
	}
	list := func(attrs string, items ...string) string {
		return `<text:list ` + attrs + `>` + strings.Join(items, "") + `</text:list>`
	}
	shape := func(paragraphs ...string) []byte {
		return slideOf(t, `<p:sp><p:txBody>`+strings.Join(paragraphs, "")+`</p:txBody></p:sp>`)
	}
	p := func(props, text string) string { return `<a:p>` + props + `<a:r><a:t>` + text + `</a:t></a:r></a:p>` }
	auto := func(level int, scheme, start string) string {
		return fmt.Sprintf(`<a:pPr lvl="%d"><a:buAutoNum type="%s" startAt="%s"/></a:pPr>`, level, scheme, start)
	}
	tests := []struct {
		name, mediaType string
		doc             []byte
		want            string
	}{
		{"beginning of an ODT list", typeODT, odtLists(t, list(`text:style-name="L1"`, item("five"), item("six"))), "5. five\n6. six\n"},
		{
			"levels of an ODT list", typeODT,
			odtLists(t, list(`text:style-name="L1"`, item("five", list("", item("a", list("", item("i"), item("ii"))), item("b"))), item("six", list("", item("a again")), list("", item("a once more"))))),
			"5. five\n   - 5.a a\n     - (i) i\n     - (ii) ii\n   - 5.b b\n6. six\n   - 6.a a again\n   - 6.a a once more\n",
		},
		{
			"ODT lists that go on", typeODT, odtLists(t,
				list(`xml:id="l1" text:style-name="L1"`, item("five"), item("six"))+`<text:p>between</text:p>`+
					list(`text:style-name="L1"`, item("five anew"))+`<text:p>between</text:p>`+
					list(`text:style-name="L1" text:continue-numbering="true"`, item("six anew"))+`<text:p>between</text:p>`+
					list(`text:continue-list="l1" text:style-name="L1"`, item("seven"), `<text:list-item text:start-value="20"><text:p>twenty</text:p></text:list-item>`),
			),
			"5. five\n6. six\n\nbetween\n\n5. five anew\n\nbetween\n\n6. six anew\n\nbetween\n\n7. seven\n20. twenty\n",
		},
		{
			"what an ODT list has beside items", typeODT,
			odtLists(t, list(`text:style-name="L1"`, `<text:list-header><text:p>head</text:p></text:list-header>`, item("five", `<text:p>more</text:p>`, `<table:table><table:table-row><table:table-cell><text:p>cell</text:p></table:table-cell></table:table-row></table:table>`))+
				list(`text:style-name="L2"`, item("sign"))+list(`text:style-name="L1"`, `<text:list-item><text:h text:outline-level="2">Headed</text:h></text:list-item>`)),
			"head\n\n5. five\n\nmore\n\n| cell |\n| --- |\n\n- sign\n\n## 5. Headed\n",
		},
		{
			"ODT lists in cells", typeODT,
			odtLists(t, `<table:table><table:table-row><table:table-cell>`+list(`text:style-name="L1"`, item("five"), item("six"))+`</table:table-cell><table:table-cell>`+list(`text:style-name="L2"`, item("sign"))+`</table:table-cell></table:table-row></table:table>`),
			"| 5. five<br>6. six | • sign |\n| --- | --- |\n",
		},
		{
			"levels of a slide", typePPTX,
			shape(p(auto(0, "arabicPeriod", ""), "one"), p(auto(1, "alphaLcParenR", ""), "a"), p(auto(1, "alphaLcParenR", ""), "b"), p(auto(0, "arabicPeriod", ""), "two"), p(auto(1, "alphaLcParenR", ""), "a again")),
			"<!-- slide 1 -->\n\n1. one\n   - a) a\n   - b) b\n2. two\n   - a) a again\n",
		},
		{
			"lists of a slide that follow each other", typePPTX,
			shape(p(auto(0, "arabicPeriod", "8"), "eight"), p(auto(0, "arabicPeriod", "8"), "nine"), p(auto(0, "alphaLcParenBoth", "3"), "c"), p(auto(0, "romanUcPeriod", "4"), "four"), p(auto(0, "arabicPeriod", "1"), "one")),
			"<!-- slide 1 -->\n\n8. eight\n9. nine\n- (c) c\n- IV. four\n1. one\n",
		},
		{"letters of an HTML list", "text/html", []byte(`<ol type=a start=27><li>27<li value=3>3</ol><ol type=I><li>one<ul><li>sub</ul></ol>`), "- aa. 27\n- c. 3\n\n- I. one\n  - sub\n"},
		{"an HTML list that counts down", "text/html", []byte(`<ol reversed><li>three<li>two<li>one</ol>`), "3. three\n2. two\n1. one\n"},
		{"text beside the items of an HTML list", "text/html", []byte(`<ul>before<li>one</li>between <b>them</b><li>two</li></ul>`), "before\n\n- one\n\nbetween\n\n**them**\n\n- two\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := textOf(t, tt.doc, artel.MediaInfo{MediaType: tt.mediaType, Charset: "utf-8"}, Options{})
			if diff := cmp.Diff(tt.want, x.Text); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestLinksOfNotes: each part of a Word document has names of its own for what it links
// to. Programs often give the same name to another target.
func TestLinksOfNotes(t *testing.T) {
	note := func(tag string) string {
		return `<w:` + tag + `s` + wordNS + `><w:` + tag + ` w:id="2"><w:p><w:hyperlink r:id="l"><w:r><w:t>source of the ` + tag + `</w:t></w:r></w:hyperlink></w:p></w:` + tag + `></w:` + tag + `s>`
	}
	rels := func(url string) string {
		return relsNS + `<Relationship Id="l" Type="http://x/relationships/hyperlink" Target="` + url + `" TargetMode="External"/></Relationships>`
	}
	doc := packed(
		t, "word/document.xml", `<w:document`+wordNS+`><w:body><w:p><w:r><w:t>a</w:t><w:footnoteReference w:id="2"/></w:r><w:r><w:t>b</w:t><w:commentReference w:id="2"/></w:r><w:hyperlink r:id="l"><w:r><w:t>text</w:t></w:r></w:hyperlink></w:p></w:body></w:document>`,
		"word/_rels/document.xml.rels", wordRels,
		"word/footnotes.xml", note("footnote"), "word/_rels/footnotes.xml.rels", rels("https://notes.example/"),
		"word/comments.xml", note("comment"), "word/_rels/comments.xml.rels", rels("https://comments.example/"),
	)
	want := "a[^1]b[^c2][text](https://example.org/a%20b)\n\n[^1]: [source of the footnote](https://notes.example/)\n[^c2]: [source of the comment](https://comments.example/)\n"
	if diff := cmp.Diff(want, textOf(t, doc, asType(typeDOCX), Options{}).Text); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestObjectsWithPictures: programs put a picture beside each embedded object, for readers
// that do not know it.
func TestObjectsWithPictures(t *testing.T) {
	frame := func(name, object string) string {
		return `<draw:frame draw:name="` + name + `"><` + object + ` xlink:href="./` + name + `"/><draw:image xlink:href="./ObjectReplacements/` + name + `"/></draw:frame>`
	}
	doc := packed(
		t, "content.xml", `<office:document-content xmlns:xlink="x"`+odtNS+`><office:body><office:text><text:p>so `+frame("Object 1", "draw:object")+` and `+frame("Object 2", "draw:object")+` or `+frame("Object 3", "draw:object-ole")+`</text:p></office:text></office:body></office:document-content>`,
		"Object 1/content.xml", `<math xmlns="http://www.w3.org/1998/Math/MathML"><semantics><mfrac><mi>a</mi><mi>b</mi></mfrac><annotation encoding="StarMath 5.0">a over b</annotation></semantics></math>`,
		"Object 2/content.xml", `<office:document-content`+odtNS+`><office:body/></office:document-content>`,
	)
	want := "so $\\frac{a}{b}$ and ![Object 2](Object%202) or ![Object 3](Object%203)\n\n<!-- left out: 2 embedded objects -->\n"
	if diff := cmp.Diff(want, textOf(t, doc, asType(typeODT), Options{}).Text); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
