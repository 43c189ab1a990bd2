// SPDX-License-Identifier: Apache-2.0

// Package render turns untrusted text into HTML that is safe to put on a page.
//
// Begin with [Markdown] for the text of models and users, [Stream] for an
// answer in progress, [Code], [JSON], [Table] and [Diff] for files and results,
// and [Text] for plain text. Each is pure: the same text and options give the
// same HTML, except that code which a lexer does not finish in time stays plain.
//
// The invariant holds for hostile text. HTML in the source is shown, never
// interpreted. No script, style, form, frame or event handler is produced; links
// lead to http, https and mailto URLs or to a result of [Options.ArtifactURL];
// images come from this server's API only, because fetching one from another
// site would reveal what the user reads. The parsed tree is secured first, and a
// sanitizer with its own list of elements and attributes checks the result;
// code and values consist of fixed elements and escaped text. Time and memory
// are bounded: text too long or too costly for Markdown is shown plain, and
// values say what was left out.
//
// The look is left to a stylesheet; docs/page.md lists the classes. Scrolling
// areas have tabindex 0 and, if they have a name, the role of a group.
package render

import (
	"bytes"
	"html"
	"html/template"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/artelhq/artel"
)

// MaxMarkdown is the longest text, in bytes, that is parsed as Markdown.
const MaxMarkdown = 1 << 20

// Options says how to render.
type Options struct {
	// ArtifactURL returns where the artifact or blob that a ref points to can
	// be fetched: a path on this server, or "" for a ref that has none. For
	// images the path is that of a file, below "/api/v1/files/". nil: refs are not linked.
	ArtifactURL func(artel.Ref) string
	// Cut returns the notice that n units of a value were left out, in the
	// reader's language, as plain text. nil: "… +n".
	Cut func(n int, unit Unit) string
}

// Markdown renders CommonMark with GitHub's tables, task lists, strikethrough
// and bare links. Destinations that [artel.ParseRef] accepts with a scheme go
// through o.ArtifactURL, in links and in images. An unsafe link becomes its
// text, an unsafe image its alternative text.
func Markdown(source string, o Options) template.HTML {
	var b strings.Builder
	for _, block := range Blocks(source, o) {
		b.WriteString(string(block))
	}
	return template.HTML(b.String()) //nolint:gosec // made of what Blocks returns
}

// Blocks renders the same HTML as [Markdown], one element per block of the top
// level: paragraphs, headings, whole lists, tables, blocks of code.
func Blocks(source string, o Options) []template.HTML {
	source = clean(source)
	if len(source) > MaxMarkdown || costly(source) {
		return []template.HTML{plain(source)}
	}
	src := []byte(source)
	doc, _ := parse(src, nil)
	if secure(doc, src, o) > allowance(len(src)) {
		return []template.HTML{plain(source)}
	}
	h := newHighlighter(maxBlock, maxBlocks)
	paint(doc, src, func(language, code string, _ bool) string { return block(code, language, h) })
	return draw(doc, src)
}

// parse parses src. Link references defined elsewhere in the text take
// precedence over those of src.
func parse(src []byte, refs []parser.Reference) (ast.Node, parser.Context) {
	pc := parser.NewContext()
	for _, r := range refs {
		pc.AddReference(r)
	}
	return engine().Parser().Parse(text.NewReader(src), parser.WithContext(pc)), pc
}

// painted is the attribute with the HTML of a block of code.
const painted = "painted"

// paint renders all code in the tree. painter also learns whether a block
// reaches the end of src and may continue.
func paint(doc ast.Node, src []byte, painter func(language, code string, open bool) string) {
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || !isCode(n) {
			return ast.WalkContinue, nil
		}
		var language string
		lines := n.Lines()
		code := string(lines.Value(src))
		end := 0
		if k := lines.Len(); k > 0 {
			end = lines.At(k - 1).Stop
		}
		switch n := n.(type) {
		case *ast.FencedCodeBlock:
			language = string(n.Language(src))
		case *ast.HTMLBlock:
			language = "html"
			if n.HasClosure() {
				code += string(n.ClosureLine.Value(src))
				end = n.ClosureLine.Stop
			}
		}
		n.SetAttributeString(painted, []byte(painter(language, code, end == len(src))))
		return ast.WalkSkipChildren, nil
	})
}

// isCode reports whether n is rendered as a block of code.
func isCode(n ast.Node) bool {
	switch n.Kind() {
	case ast.KindFencedCodeBlock, ast.KindCodeBlock, ast.KindHTMLBlock:
		return true
	}
	return false
}

// draw renders the blocks of a secured and painted tree.
func draw(doc ast.Node, src []byte) []template.HTML {
	var blocks []template.HTML
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if b := drawOne(n, src); b != "" {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// drawOne renders a block. It omits the sanitizer only for code, which consists
// of escaped text and class names from spans.
func drawOne(n ast.Node, src []byte) template.HTML {
	if isCode(n) {
		return template.HTML(paintOf(n)) //nolint:gosec // escaped by spans
	}
	var out bytes.Buffer
	if err := engine().Renderer().Render(&out, src, n); err != nil {
		return plain(string(n.Lines().Value(src)))
	}
	return template.HTML(policy().SanitizeBytes(out.Bytes())) //nolint:gosec // sanitized on this line
}

func paintOf(n ast.Node) []byte {
	if v, ok := n.AttributeString(painted); ok {
		return v.([]byte)
	}
	return nil
}

// Text escapes s and keeps its white space. Bytes that are not UTF-8 become
// U+FFFD.
func Text(s string) template.HTML {
	return template.HTML(html.EscapeString(clean(s))) //nolint:gosec // escaped on this line
}

func plain(s string) template.HTML { return "<pre>" + Text(s) + "</pre>\n" }

// clean returns s as valid HTML text: UTF-8 without NUL. Each wrong byte is
// replaced separately, so that a text can be cleaned in pieces.
func clean(s string) string {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	if strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(s, "\x00", "\uFFFD")
}

// engine is stateless: the state of a text is in its tree.
var engine = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(
			// An align attribute, because a style attribute would need a weaker
			// content security policy.
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
			extension.Strikethrough,
			extension.TaskList,
			extension.NewLinkify(extension.WithLinkifyAllowedProtocols([]string{"http:", "https:"})),
		),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(htmlRenderer{}, 100))),
	)
})

// htmlRenderer overrides goldmark's rendering: HTML in the source as text, highlighted
// code, tables that scroll.
type htmlRenderer struct{}

// RegisterFuncs implements [renderer.NodeRenderer].
func (htmlRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindRawHTML, showInline)
	r.Register(ast.KindHTMLBlock, showCode)
	r.Register(ast.KindFencedCodeBlock, showCode)
	r.Register(ast.KindCodeBlock, showCode)
	r.Register(tables.KindTable, showTable)
}

// Errors are dropped here: a BufWriter keeps the first one for its Flush.

func showInline(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		lines := n.(*ast.RawHTML).Segments
		_, _ = w.Write(util.EscapeHTML(lines.Value(src)))
	}
	return ast.WalkSkipChildren, nil
}

func showCode(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.Write(paintOf(n))
	}
	return ast.WalkSkipChildren, nil
}

// showTable makes a wide table scroll. Scrolling areas take the keyboard focus
// and need a name: the column names.
func showTable(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, _ = w.WriteString("</table></div>\n")
		return ast.WalkContinue, nil
	}
	var names []string
	if head := n.FirstChild(); head != nil {
		for cell := head.FirstChild(); cell != nil; cell = cell.NextSibling() {
			names = append(names, string(textOf(cell, src)))
		}
	}
	_, _ = w.WriteString(openTable(names) + "\n")
	return ast.WalkContinue, nil
}

// openTable opens a table and its scrolling container.
func openTable(columns []string) string {
	open := `<div class="table" tabindex="0"`
	if name := html.EscapeString(label(strings.Join(columns, ", "))); name != "" {
		open += ` role="group" aria-label="` + name + `"`
	}
	return open + "><table>"
}

// textOf is the text of n without markup.
func textOf(n ast.Node, src []byte) []byte {
	var b []byte
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b = append(b, n.Value(src)...)
		case *ast.String:
			b = append(b, n.Value...)
		}
		return ast.WalkContinue, nil
	})
	return b
}
