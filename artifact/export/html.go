// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bufio"
	"context"
	"crypto/sha256"
	_ "embed" // the style of the page
	"encoding/base64"
	"html"
	"io"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	markup "golang.org/x/net/html"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/render"
)

//go:embed page.css
var pageStyle string

// stylePolicy is the content security policy that allows only the page's style.
var stylePolicy = sync.OnceValue(func() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
})

// HTML writes the document as one page without other files. It supports light and
// dark mode and printing, and its policy forbids scripts and requests. Pictures that
// are artifacts are embedded; a picture that browsers do not support, or over a
// limit, is replaced by its alternative text. Errors are those of w, ctx and d.Open.
func HTML(ctx context.Context, w io.Writer, d Document) error {
	return failed("export.HTML", artel.Shorten(d.Title, 120), writePage(ctx, w, d))
}

func writePage(ctx context.Context, w io.Writer, d Document) error {
	var doc ast.Node
	if d.isMarkdown() {
		doc, _, _ = render.Parse(d.Text)
	}
	pictures, err := findPictures(ctx, d, doc, browserFormats)
	if err != nil {
		return err
	}
	p := page{d: d, w: bufio.NewWriterSize(w, 32<<10), pictures: map[artel.Ref]*picture{}}
	for destination, pic := range pictures {
		if ref, ok := parseRef(destination); ok && pic != nil {
			p.pictures[ref] = pic
		}
	}
	p.head()
	if d.Title != "" && !opensWithTitle(doc) {
		p.put("<h1>", html.EscapeString(d.Title), "</h1>\n")
	}
	switch {
	case d.isMarkdown():
		for _, block := range render.Blocks(d.Text, render.Options{ArtifactURL: ownAddress}) {
			if err := p.block(ctx, string(block)); err != nil {
				return err
			}
		}
	case d.MediaType == "text/plain":
		p.put(`<pre class="plain">`, string(render.Text(d.Text)), "</pre>\n")
	default:
		p.put(string(render.Code(d.Text, render.LanguageOf(d.Filename, d.MediaType))))
	}
	p.put("</main>\n</body>\n</html>\n")
	return p.w.Flush()
}

// A page is a page being written. Errors of w are returned by its Flush, so writes
// ignore them.
type page struct {
	d        Document
	w        *bufio.Writer
	pictures map[artel.Ref]*picture
	shown    int64 // bytes of pictures that were written
}

func (p *page) put(pieces ...string) {
	for _, s := range pieces {
		_, _ = p.w.WriteString(s)
	}
}

func (p *page) head() {
	language := p.d.Language
	if language == "" {
		language = guessLanguage(p.d.Text)
	}
	p.put("<!DOCTYPE html>\n<html")
	if language != "" {
		p.put(` lang="`, html.EscapeString(language), `"`)
	}
	p.put(">\n<head>\n<meta charset=\"utf-8\">\n",
		`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src `, stylePolicy(), `; base-uri 'none'; form-action 'none'">`, "\n",
		`<meta name="viewport" content="width=device-width, initial-scale=1">`, "\n",
		`<meta name="referrer" content="no-referrer">`, "\n",
		`<meta name="generator" content="Artel">`, "\n")
	if p.d.Author != "" {
		p.put(`<meta name="author" content="`, html.EscapeString(p.d.Author), "\">\n")
	}
	if !p.d.Time.IsZero() {
		p.put(`<meta name="date" content="`, p.d.Time.UTC().Format("2006-01-02T15:04:05Z"), "\">\n")
	}
	p.put("<title>", html.EscapeString(p.d.Title), "</title>\n<style>", pageStyle, "</style>\n</head>\n<body>\n<main>\n")
}

// refPath begins the path that render gets for refs, because for pictures it
// accepts only paths of files.
const refPath = "/api/v1/files/ref-"

func ownAddress(ref artel.Ref) string { return refPath + nameOf(ref) }

// block writes one block of render's, with pictures and links of its refs as
// they are in a file of its own. What render made safe stays as it is but for
// the two attributes.
func (p *page) block(ctx context.Context, block string) error {
	if !strings.Contains(block, `="/`) {
		p.put(block)
		return ctx.Err()
	}
	z := markup.NewTokenizer(strings.NewReader(block))
	dropped := false // the a element that is open leads nowhere
	for {
		switch z.Next() {
		case markup.ErrorToken:
			if err := z.Err(); err != io.EOF {
				return err
			}
			return ctx.Err()
		case markup.StartTagToken, markup.SelfClosingTagToken:
			raw := string(z.Raw())
			t := z.Token()
			switch t.Data {
			case "img":
				if err := p.image(ctx, t); err != nil {
					return err
				}
				continue
			case "a":
				dropped = !p.anchor(&t)
				if dropped {
					continue
				}
				raw = t.String()
			}
			p.put(raw)
		case markup.EndTagToken:
			raw := string(z.Raw())
			if name, _ := z.TagName(); string(name) == "a" && dropped {
				dropped = false
				continue
			}
			p.put(raw)
		default:
			_, _ = p.w.Write(z.Raw())
		}
	}
}

// anchor sets the target of a link to a ref, and reports whether it has one.
func (p *page) anchor(t *markup.Token) bool {
	for i, a := range t.Attr {
		if a.Key != "href" {
			continue
		}
		name, own := strings.CutPrefix(a.Val, refPath)
		if !own {
			return !strings.HasPrefix(a.Val, "/")
		}
		ref, ok := refOf(name)
		if !ok || p.d.Link == nil {
			return false
		}
		to, ok := cleanURL(p.d.Link(ref), true)
		t.Attr[i].Val = to
		return ok
	}
	return true
}

// image writes a picture with its bytes, or its alternative text.
func (p *page) image(ctx context.Context, t markup.Token) error {
	var pic *picture
	var alt, title string
	for _, a := range t.Attr {
		switch a.Key {
		case "src":
			name, _ := strings.CutPrefix(a.Val, refPath)
			if ref, ok := refOf(name); ok {
				pic = p.pictures[ref]
			}
		case "alt":
			alt = html.EscapeString(a.Val)
		case "title":
			title = html.EscapeString(a.Val)
		}
	}
	if pic == nil || p.shown+pic.size > maxShownBytes {
		p.put(alt)
		return nil
	}
	p.shown += pic.size
	p.put(`<img src="data:`, pic.mediaType, `;base64,`)
	enc := base64.NewEncoder(base64.StdEncoding, p.w)
	if err := pic.copy(ctx, p.d, enc); err != nil {
		return err
	}
	_ = enc.Close() // an error of w, which it keeps
	p.put(`" alt="`, alt, `"`)
	if title != "" {
		p.put(` title="`, title, `"`)
	}
	p.put(">")
	return nil
}
