// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark/ast"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/export"
	"github.com/artelhq/artel/internal/render"
)

// neighbor leads to files that lie beside each other.
func neighbor(ref artel.Ref) string {
	if ref.IsBlob() || ref.Artifact == "gone" {
		return ""
	}
	return "./" + string(ref.Artifact) + ".md"
}

func TestMarkdown(t *testing.T) {
	for text, want := range map[string]string{
		"[a](artifact:plan)":                                    "[a](./plan.md)",
		"![a](artifact:plan@3 \"t\")":                           "![a](./plan.md \"t\")",
		"[a](<artifact:plan>)":                                  "[a](<./plan.md>)",
		"[a]( artifact:plan )":                                  "[a]( ./plan.md )",
		"[a](artifact:计划)":                                      "[a](./%E8%AE%A1%E5%88%92.md)",
		"[a](artifact:my\\_plan)":                               "[a](./my_plan.md)",
		"see <artifact:my_plan>.":                               "see [artifact:my\\_plan](./my_plan.md).",
		"[r]\n\n[r]: artifact:plan":                             "[r]\n\n[r]: ./plan.md",
		"> [r]\n>\n> [r]: <artifact:plan> 't'":                  "> [r]\n>\n> [r]: <./plan.md> 't'",
		"[a](artel://cnv_01/x)":                                 "[a](artel://cnv_01/x)",
		"[a](artifact:gone) [b](blob:sha256-x)":                 "[a](artifact:gone) [b](blob:sha256-x)",
		"`[a](artifact:plan)` artifact:plan":                    "`[a](artifact:plan)` artifact:plan",
		"```\n[a](artifact:plan)\n```\n\n    <artifact:plan>\n": "```\n[a](artifact:plan)\n```\n\n    <artifact:plan>\n",
		"- [x](https://a.example/?q=\")[y](artifact:plan)":      "- [x](https://a.example/?q=\")[y](artifact:plan)", // one bare address
		"http://a.example/ü [y](artifact:plan)":                 "http://a.example/ü [y](./plan.md)",
		"*Text* as  it is.\r\n\r\n<b>\t":                        "*Text* as  it is.\r\n\r\n<b>\t",
	} {
		if got := markdown(t, export.Document{Text: text, Link: neighbor}); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	for _, d := range []export.Document{
		{Text: "[a](artifact:plan)"},
		{Text: "[a](artifact:plan)", MediaType: "text/x-go", Link: neighbor},
		{Text: "[a](artifact:plan)\xff", Link: neighbor},
		{Text: "[a](artifact:plan)" + strings.Repeat(" x", 1<<20), Link: neighbor},
	} {
		if got := markdown(t, d); got != d.Text {
			t.Errorf("%q became %q", artel.Shorten(d.Text, 40), artel.Shorten(got, 40))
		}
	}
}

// linksOf lists the destinations of all links and pictures, and all code.
func linksOf(text string) (links, code []string) {
	doc, src, ok := render.Parse(text)
	if !ok {
		return nil, nil
	}
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			links = append(links, string(n.Destination))
		case *ast.Image:
			links = append(links, string(n.Destination))
		case *ast.AutoLink:
			links = append(links, string(n.URL(src)))
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			code = append(code, string(n.Lines().Value(src)))
		}
		return ast.WalkContinue, nil
	})
	return links, code
}

// TestMarkdownProperty holds the text to leading where it should: every link
// of a ref to its place, all others where they did, and code as it was.
func TestMarkdownProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.ReplaceAll(anyText(rt), "\x00", "")
		want, code := linksOf(text)
		for i, w := range want {
			if strings.HasPrefix(w, "artifact:") {
				ref, err := artel.ParseRef(w)
				if err != nil {
					rt.Fatal(err)
				}
				want[i] = neighbor(ref)
			}
		}
		got, gotCode := linksOf(markdown(t, export.Document{Text: text, Link: neighbor}))
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Errorf("%q: -want +got\n%s", text, diff)
		}
		if diff := cmp.Diff(code, gotCode); diff != "" {
			rt.Errorf("%q: code: -want +got\n%s", text, diff)
		}
	})
}

func BenchmarkMarkdown(b *testing.B) {
	text := strings.Repeat("Some text and [a link](artifact:plan), `code`.\n\n", 2000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var out bytes.Buffer
		if err := export.Markdown(&out, export.Document{Text: text, Link: neighbor}); err != nil {
			b.Fatal(err)
		}
	}
}
