// SPDX-License-Identifier: Apache-2.0

// Package render turns text into HTML that is safe to put on a page, whoever
// wrote the text.
//
// Begin with [Markdown] for what models and people write, and [Text] for
// everything that is to be shown as it is. Both are pure: the same text and
// options give the same HTML.
//
// The promise of the package is about hostile text. HTML in the source is
// shown, never interpreted. No script, style, form, frame or event handler
// comes out; links lead to http, https and mailto addresses or to what
// [Options.ArtifactURL] returned; images come from this server's own API, as
// fetching a picture from elsewhere would tell that place what was read.
// The tree that the parser makes is cleaned first, and a sanitiser with its
// own list of elements and attributes reads the result again. Time and memory
// are bounded: text that is too long or nested too deeply for Markdown is shown
// as plain text.
//
// Colours for code, diffs and the page around are left to others. Code blocks
// keep the name of their language as class "language-…".
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
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/artelhq/artel"
)

// MaxMarkdown is the longest text, in bytes, that is read as Markdown.
const MaxMarkdown = 1 << 20

// Options says how to render.
type Options struct {
	// ArtifactURL returns where the artifact or blob that a ref points to can
	// be fetched: a path on this server, or "" for a ref that has none. For
	// images the path begins with "/api/". nil: refs are not linked.
	ArtifactURL func(artel.Ref) string
}

// Markdown renders CommonMark with GitHub's tables, task lists, strikethrough
// and bare links. Destinations of the forms that [artel.ParseRef] accepts with
// a scheme go through o.ArtifactURL, in links and in images. A link that leads
// nowhere safe becomes its text, an image its alternative text.
func Markdown(source string, o Options) template.HTML {
	source = clean(source)
	if len(source) > MaxMarkdown || costly(source) {
		return plain(source)
	}
	src := []byte(source)
	md := engine()
	doc := md.Parser().Parse(text.NewReader(src))
	if !secure(doc, src, o) {
		return plain(source)
	}
	var out bytes.Buffer
	if err := md.Renderer().Render(&out, src, doc); err != nil {
		return plain(source)
	}
	return template.HTML(policy().SanitizeBytes(out.Bytes())) //nolint:gosec // sanitised on this line
}

// Text escapes s. Lines and spaces stay as they are, so the element around
// it decides how they show. Bytes that are not UTF-8 become U+FFFD.
func Text(s string) template.HTML {
	return template.HTML(html.EscapeString(clean(s))) //nolint:gosec // escaped on this line
}

func plain(s string) template.HTML { return "<pre>" + Text(s) + "</pre>\n" }

// clean makes s what HTML may hold: UTF-8 without NUL.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// engine is built once and has no state of its own: what belongs to one text
// is in the tree that it makes.
var engine = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(
			// An align attribute, because a style attribute would need a
			// content security policy that allows them.
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
			extension.Strikethrough,
			extension.TaskList,
			extension.NewLinkify(extension.WithLinkifyAllowedProtocols([]string{"http:", "https:"})),
		),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(shown{}, 100))),
	)
})

// shown renders HTML in the source as the text that it is.
type shown struct{}

// RegisterFuncs implements [renderer.NodeRenderer].
func (shown) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindRawHTML, showInline)
	r.Register(ast.KindHTMLBlock, showBlock)
}

func showInline(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		writeLines(w, src, n.(*ast.RawHTML).Segments)
	}
	return ast.WalkSkipChildren, nil
}

func showBlock(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<pre><code class="language-html">`)
	writeLines(w, src, n.Lines())
	if b := n.(*ast.HTMLBlock); b.HasClosure() {
		_, _ = w.Write(util.EscapeHTML(b.ClosureLine.Value(src)))
	}
	_, _ = w.WriteString("</code></pre>\n")
	return ast.WalkContinue, nil
}

// writeLines drops errors: a BufWriter keeps the first one for its Flush.
func writeLines(w util.BufWriter, src []byte, lines *text.Segments) {
	for i := range lines.Len() {
		line := lines.At(i)
		_, _ = w.Write(util.EscapeHTML(line.Value(src)))
	}
}
