// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/pdf"
)

// readPDF reads the text of a PDF page by page, in the order in which the
// pages write it. Headings, paragraphs, lists and tables are not in a PDF; they
// are concluded from sizes, distances and columns.
func readPDF(src *source, o *out) (err error) {
	doc, err := src.open()
	if err != nil {
		return err
	}
	defer func() {
		if e := doc.close(); err == nil {
			err = e
		}
	}()
	o.pages = doc.pages
	if err := sayAttached(doc, o); err != nil {
		return err
	}
	w := &pdfWriter{o: o}
	var waiting []*pdfLines
	for n := range doc.pages {
		if n >= o.maxPages {
			o.truncate("the document has more pages than the limit")
			break
		}
		lines, err := pageLines(doc, n, o)
		if err != nil {
			return err
		}
		if w.body == 0 { // what size the text has shows after a few pages
			waiting = append(waiting, lines)
			if n < 7 && n+1 < doc.pages && n+1 < o.maxPages {
				continue
			}
			w.body = bodySize(waiting)
			for _, l := range waiting {
				w.page(l)
			}
			waiting = nil
			continue
		}
		w.page(lines)
		if o.full {
			o.doubtPDF()
			return errFull
		}
	}
	for _, l := range waiting {
		w.page(l)
	}
	o.endCode()
	o.doubtPDF()
	return nil
}

// sayAttached names the files that are attached to a document, which are not in its text.
func sayAttached(doc *openPDF, o *out) error {
	names, n, err := doc.attached()
	if err != nil || n == 0 {
		return err
	}
	o.omit(OmitFile, n)
	for i, name := range names {
		name = strings.Join(strings.Fields(strings.ToValidUTF8(artel.Visible(name), "\uFFFD")), " ")
		if name = artel.Shorten(strings.NewReplacer("--", "- -", ">", "›").Replace(name), maxName); name == "" {
			name = "a file without a name"
		}
		names[i] = name
	}
	if n > len(names) {
		names = append(names, fmt.Sprintf("and %d more", n-len(names)))
	}
	o.comment("attached files, whose content is not in this text: " + strings.Join(names, ", "))
	return nil
}

// maxName is how many bytes of the name of an attached file are shown.
const maxName = 200

// doubtPDF records whether the text of a PDF that was read is doubtful.
func (o *out) doubtPDF() {
	if n := o.omitted[OmitGlyph]; n*5 > o.shown {
		o.doubt = fmt.Sprintf("%d of %d characters have no known meaning", n, o.shown)
	} else if n := o.omitted[OmitScan]; n > 0 && n*2 >= min(o.pages, o.maxPages) {
		o.doubt = fmt.Sprintf("%d of %d pages are only pictures", n, o.pages)
	}
}

// An openPDF is a PDF that is being read under the context of the call.
type openPDF struct {
	pages int
	page  func(n int) (pdf.Page, error)
	// attached returns names of attached files, and how many there are.
	attached func() ([]string, int, error)
	close    func() error
}

// openWith opens a PDF with an engine, or with one of its own if there is none.
func openWith(ctx context.Context, engine *pdf.Engine, src *source) (*openPDF, error) {
	end := func() error { return nil }
	if engine == nil {
		engine = pdf.New(pdf.Options{})
		end = engine.Close
	}
	doc, err := engine.Open(ctx, src.at, src.size)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return &openPDF{
		pages:    doc.Pages(),
		page:     func(n int) (pdf.Page, error) { return doc.Page(ctx, n) },
		attached: func() ([]string, int, error) { return doc.Attached(ctx) },
		close:    func() error { return errors.Join(doc.Close(), end()) },
	}, nil
}

// pageLines reads page n as lines. A damaged page is counted as left out.
func pageLines(doc *openPDF, n int, o *out) (*pdfLines, error) {
	p, err := doc.page(n)
	if artel.KindOf(err) == artel.Invalid {
		o.omit(OmitPage, 1)
		return &pdfLines{number: n + 1}, nil
	}
	if err != nil {
		return nil, err
	}
	if p.Cut {
		o.truncate("a page has more text than is read of one")
	}
	for range p.Chars {
		if err := o.step(); err != nil {
			return nil, err
		}
	}
	glyphs := shown(p, o)
	for _, g := range glyphs {
		if g.Rune != ' ' {
			o.shown++
		}
	}
	if len(glyphs) == 0 && p.Pictures > 0 {
		o.omit(OmitScan, 1)
	} else {
		o.omit(OmitPicture, p.Pictures)
	}
	o.omit(OmitObject, p.Attached)
	l := &pdfLines{number: n + 1, lines: buildLines(glyphs)}
	for _, f := range p.Fields {
		text := strings.TrimSpace(f.Value)
		if f.Name != "" {
			text = f.Name + ": " + text
		}
		l.fields = append(l.fields, plain(strings.ToValidUTF8(text, "\uFFFD")))
	}
	return l, nil
}

// shown returns the characters that the page shows, with their links. Those beyond its
// edges are counted as hidden, those without a meaning as unknown.
func shown(p pdf.Page, o *out) []glyph {
	glyphs := make([]glyph, 0, len(p.Chars))
	unknown, hidden := 0, 0
	outside := false
	var brk, hint bool
	for _, c := range p.Chars {
		switch {
		case c.Generated && (c.Rune == '\n' || c.Rune == '\r'):
			brk = true
			continue
		case c.Generated:
			hint = true
			continue
		case c.Size < 0.1 || !finite(c.X) || !finite(c.Y) || !finite(c.Box.X0) || !finite(c.Box.X1):
			continue
		}
		if x, y := (c.Box.X0+c.Box.X1)/2, (c.Box.Y0+c.Box.Y1)/2; x < p.Box.X0 || x > p.Box.X1 || y < p.Box.Y0 || y > p.Box.Y1 {
			if !outside && c.Rune > ' ' {
				hidden++
			}
			outside = true
			continue
		}
		outside = false
		g := glyph{Char: c, brk: brk, hinted: hint}
		if c.Unknown {
			unknown++
			g.Rune = '\uFFFD'
		}
		if g.Rune == 0xA0 {
			g.Rune = ' '
		}
		if g.Rune < ' ' || g.Rune == 0x7F || g.Rune == 0xFFFE || g.Rune > 0x10FFFF || g.Rune >= 0xD800 && g.Rune < 0xE000 {
			continue
		}
		if n := len(glyphs); n > 0 && !brk && c.X == glyphs[n-1].X && c.Y == glyphs[n-1].Y && c.Font == glyphs[n-1].Font {
			g.joined = true
		}
		brk, hint = false, false
		glyphs = append(glyphs, g)
	}
	o.omit(OmitGlyph, unknown)
	o.omit(OmitHidden, hidden)
	for _, l := range p.Links {
		link := linkOf(l.URI)
		for i := range glyphs {
			g := &glyphs[i]
			if x := (g.Box.X0 + g.Box.X1) / 2; x >= l.X0 && x <= l.X1 && g.Y+g.Size/3 >= l.Y0 && g.Y <= l.Y1 {
				g.link = link
			}
		}
	}
	return glyphs
}

func finite(f float64) bool { return f > -1e7 && f < 1e7 }
