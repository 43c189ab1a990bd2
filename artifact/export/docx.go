// SPDX-License-Identifier: Apache-2.0

package export

import (
	"archive/zip"
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/yuin/goldmark/ast"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/render"
)

// DOCX writes the document as Office Open XML (ECMA-376, transitional), the
// format of Word: A4 with page numbers, real headings, lists, tables, links
// and check boxes, and the pictures that are artifacts. A picture that is missing or
// not PNG, JPEG or GIF is replaced by its alternative text. Errors are those of w,
// ctx and d.Open.
func DOCX(ctx context.Context, w io.Writer, d Document) error {
	return failed("export.DOCX", artel.Shorten(d.Title, 120), docx(ctx, w, d))
}

func docx(ctx context.Context, w io.Writer, d Document) error {
	p := docxPackage{zip: zip.NewWriter(w), modified: zipTime(d.Time)}
	language := d.Language
	if language == "" {
		language = guessLanguage(d.Text)
	}
	var doc ast.Node
	src := []byte(d.Text)
	if d.isMarkdown() {
		doc, src, _ = render.Parse(d.Text)
	}
	pictures, err := findPictures(ctx, d, doc, wordFormats)
	if err != nil {
		return err
	}
	b := &body{d: d, src: src, pictures: pictures, relations: map[string]string{}}

	// Programs recognise the file by the list of parts, so it comes first.
	fixed := []struct{ name, content string }{
		{"[Content_Types].xml", contentTypes},
		{"_rels/.rels", rootRelations},
		{"docProps/core.xml", coreProperties(d, language)},
		{"docProps/app.xml", appProperties},
		{"word/styles.xml", styles(language)},
		{"word/settings.xml", settings(language)},
		{"word/fontTable.xml", fontTable(language)},
		{"word/footer1.xml", footer},
	}
	for _, part := range fixed {
		if err := p.write(part.name, func(w *bufio.Writer) error { _, err := w.WriteString(part.content); return err }); err != nil {
			return err
		}
	}
	if err := p.write("word/document.xml", func(w *bufio.Writer) error { b.w = w; return b.document(ctx, doc) }); err != nil {
		return err
	}
	// These parts depend on what the document uses.
	if err := p.write("word/numbering.xml", func(w *bufio.Writer) error { return writeNumbering(w, b.lists) }); err != nil {
		return err
	}
	if err := p.write("word/_rels/document.xml.rels", b.writeRelations); err != nil {
		return err
	}
	for _, pic := range b.used {
		if err := p.copy(ctx, d, pic); err != nil {
			return err
		}
	}
	return p.zip.Close()
}

// A docxPackage is the ZIP archive of a DOCX.
type docxPackage struct {
	zip      *zip.Writer
	modified time.Time
}

// write adds one part.
func (p docxPackage) write(name string, fill func(*bufio.Writer) error) error {
	part, err := p.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: p.modified})
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(part, 32<<10)
	if err := fill(w); err != nil {
		return err
	}
	return w.Flush()
}

// copy adds the part of a picture without compressing its bytes again.
func (p docxPackage) copy(ctx context.Context, d Document, pic *picture) error {
	part, err := p.zip.CreateHeader(&zip.FileHeader{Name: "word/" + pic.target(), Method: zip.Store, Modified: p.modified})
	if err != nil {
		return err
	}
	return pic.copy(ctx, d, part)
}

// zipTime limits a time to the range of a ZIP; the zero time becomes the first.
func zipTime(t time.Time) time.Time {
	first := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	last := time.Date(2107, 12, 31, 23, 59, 58, 0, time.UTC)
	t = t.UTC().Truncate(2 * time.Second)
	switch {
	case t.Before(first):
		return first
	case t.After(last):
		return last
	}
	return t
}

// A body writes word/document.xml and collects the parts that it refers to. Errors of
// w are returned by its Flush, so writes ignore them.
type body struct {
	d        Document
	w        *bufio.Writer
	src      []byte
	pictures map[string]*picture // by destination in the text

	relations map[string]string // id by target of a link
	targets   []string          // of links, in the order of their ids
	used      []*picture        // in the order of their numbers
	lists     []list            // numbered ones, in the order of their ids
	controls  int               // check boxes and pictures so far

	line inline // the paragraph that is being written
}

// document writes the part; doc is nil if the text is not Markdown.
func (b *body) document(ctx context.Context, doc ast.Node) error {
	b.put(xmlHeader, `<w:document`, wordNamespaces, ` mc:Ignorable="w14"><w:body>`)
	if b.d.Title != "" && !opensWithTitle(doc) {
		b.open(paragraph{style: "Title"})
		b.run(look{}, b.d.Title)
		b.close()
	}
	switch {
	case doc != nil:
		if err := b.blocks(ctx, doc, place{}); err != nil {
			return err
		}
	case b.d.isMarkdown() || b.d.MediaType == "text/plain":
		b.plain(string(b.src))
	default:
		b.code(string(b.src), place{})
	}
	b.put(`<w:sectPr><w:footerReference w:type="default" r:id="`, relationFooter, `"/>`,
		`<w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1440" w:right="1440" w:bottom="1440" w:left="1440" w:header="709" w:footer="709" w:gutter="0"/>`,
		`</w:sectPr></w:body></w:document>`)
	return ctx.Err()
}

// opensWithTitle reports whether the text begins with its title.
func opensWithTitle(doc ast.Node) bool {
	if doc == nil {
		return false
	}
	h, ok := doc.FirstChild().(*ast.Heading)
	return ok && h.Level == 1
}

// put writes XML.
func (b *body) put(pieces ...string) {
	for _, s := range pieces {
		_, _ = b.w.WriteString(s)
	}
}

// relate returns the id of the relationship to the target of a link.
func (b *body) relate(target string) string {
	id, ok := b.relations[target]
	if !ok {
		b.targets = append(b.targets, target)
		id = fmt.Sprintf("rLink%d", len(b.targets))
		b.relations[target] = id
	}
	return id
}

func (b *body) writeRelations(w *bufio.Writer) error {
	_, _ = w.WriteString(documentRelations)
	for i, target := range b.targets {
		fmt.Fprintf(w, `<Relationship Id="rLink%d" Type="%s/hyperlink" Target="%s" TargetMode="External"/>`, i+1, relationTypes, attr(target))
	}
	for _, pic := range b.used {
		fmt.Fprintf(w, `<Relationship Id="%s" Type="%s/image" Target="%s"/>`, pic.relation(), relationTypes, pic.target())
	}
	_, err := w.WriteString(`</Relationships>`)
	return err
}

// attr escapes s for attributes and text. Characters that XML forbids and
// noncharacters become U+FFFD.
func attr(s string) string {
	clean := strings.IndexFunc(s, func(r rune) bool {
		return r < ' ' || r == '<' || r == '>' || r == '&' || r == '"' || r > 0xD7FF
	}) < 0
	if clean {
		return s
	}
	var out strings.Builder
	for _, r := range s {
		switch {
		case r == '<':
			out.WriteString("&lt;")
		case r == '>':
			out.WriteString("&gt;")
		case r == '&':
			out.WriteString("&amp;")
		case r == '"':
			out.WriteString("&quot;")
		case r == '\t', r == '\n', r == '\r':
			fmt.Fprintf(&out, "&#%d;", r)
		case r < ' ', r&0xFFFE == 0xFFFE:
			out.WriteRune('\uFFFD')
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}
