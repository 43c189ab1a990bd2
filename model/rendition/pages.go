// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media/pdf"
	"github.com/artelhq/artel/media/picture"
	"github.com/artelhq/artel/model"
)

// typePDF is the media type of the documents whose pages can be drawn.
const typePDF = "application/pdf"

// MaxPages is how many pages of a document are drawn for one request.
const MaxPages = 20

// The resolution of pages in dots per inch, at which small print can be read, and their
// longest side in pixels, to which most models scale larger pictures down.
const (
	pageResolution = 150
	pageSide       = 1568
)

// Pages draws pages of documents.
type Pages struct{ m *Maker }

// Pages returns what draws pages; nil: nothing does.
func (m *Maker) Pages() *Pages {
	if m.cfg.PDF == nil {
		return nil
	}
	return &Pages{m}
}

// Of reports whether pages of documents of a media type can be drawn; p may be nil.
func (p *Pages) Of(mediaType string) bool { return p != nil && mediaType == typePDF }

// Picture returns page n of a PDF, from 1 on, as a picture in form f. Errors are of kind Unsupported if it cannot be drawn or is encrypted, NotFound
// beyond the last page, or those of [pdf.Engine.Open] and of the blob store.
func (p *Pages) Picture(ctx context.Context, owner artel.Owner, s Source, n int, f picture.Form) (Rendition, error) {
	const op = "rendition.Picture"
	if !p.Of(s.MediaType) {
		return Rendition{}, artel.Errorf(artel.Unsupported, op, string(s.Digest), "no pages are drawn of media of type %s", artel.Shorten(s.MediaType, 80))
	}
	if f.Side == 0 || f.Side > pageSide {
		f.Side = pageSide
	}
	m := p.m
	return m.getOrMake(ctx, owner, s, fmt.Sprintf("page/1;n=%d;%s", n, f), func(ctx context.Context, src blob.Reader) (io.Reader, artel.MediaInfo, error) {
		const need = 64 << 20 // bytes of a picture and its encodings
		if err := m.memory.Acquire(ctx, need); err != nil {
			return nil, artel.MediaInfo{}, err
		}
		defer m.memory.Release(need)
		drawn, err := Draw(ctx, m.cfg.PDF, src, src.Size(), n, n, f)
		if err != nil {
			return nil, artel.MediaInfo{}, err
		}
		p := drawn[0]
		return bytes.NewReader(p.Data), artel.MediaInfo{
			MediaType: p.MediaType, Kind: artel.KindImage, DetectedBy: artel.FromSignature, Confidence: 1,
			Size: int64(len(p.Data)), Width: p.Width, Height: p.Height,
		}, nil
	})
}

// Pictures returns the pages from first to last as pictures, those that exist and at most
// [MaxPages]. Errors are those of [Pages.Picture]; NotFound if there is no first page.
func (p *Pages) Pictures(ctx context.Context, owner artel.Owner, s Source, first, last int, f picture.Form) ([]Rendition, error) {
	var all []Rendition
	for n := first; n <= min(last, first+MaxPages-1); n++ {
		r, err := p.Picture(ctx, owner, s, n, f)
		if artel.KindOf(err) == artel.NotFound && n > first {
			break
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// Draw returns pages of a PDF in memory as pictures, as [Pages.Pictures] does of stored ones.
func Draw(ctx context.Context, engine *pdf.Engine, src io.ReaderAt, size int64, first, last int, f picture.Form) ([]picture.Picture, error) {
	if f.Side == 0 || f.Side > pageSide {
		f.Side = pageSide
	}
	d, err := engine.Open(ctx, src, size)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	if first < 1 || first > d.Pages() {
		return nil, artel.Errorf(artel.NotFound, "rendition.Picture", "", "there is no page %d; the document has %d", first, d.Pages())
	}
	var all []picture.Picture
	for n := first; n <= min(last, first+MaxPages-1, d.Pages()); n++ {
		img, err := d.Render(ctx, n-1, f.Side, f.Side, pageResolution)
		if err != nil {
			return nil, err
		}
		p, err := picture.Encode(ctx, img, f)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// After returns the pages that follow page last of a document of some pages, as
// [ParsePages] reads them; "" if there are none.
func After(last, pages int) string {
	switch {
	case last >= pages:
		return ""
	case last+1 == pages:
		return strconv.Itoa(pages)
	}
	return fmt.Sprintf("%d-%d", last+1, min(pages, last+MaxPages))
}

// ParsePages reads a page, "3", or a range, "21-24", of at most [MaxPages] pages counted from
// 1. Errors are of kind Invalid, or TooLarge for a longer range.
func ParsePages(s string) (first, last int, err error) {
	const op = "rendition.ParsePages"
	from, to, isRange := strings.Cut(strings.ReplaceAll(s, "–", "-"), "-")
	if !isRange {
		to = from
	}
	first, err1 := strconv.Atoi(strings.TrimSpace(from))
	last, err2 := strconv.Atoi(strings.TrimSpace(to))
	switch {
	case err1 != nil || err2 != nil || first < 1 || last < first || first > math.MaxInt32:
		return 0, 0, artel.Errorf(artel.Invalid, op, "pages", "%q is no page; give one (3) or a range (21-24)", artel.Shorten(s, 40))
	case last-first >= MaxPages:
		return 0, 0, artel.Errorf(artel.TooLarge, op, "pages", "%d pages were asked for, and at most %d are shown at once; begin with %d-%d", last-first+1, MaxPages, first, first+MaxPages-1)
	}
	return first, last, nil
}

// scanPrompt asks for the text of a page.
const scanPrompt = "This is a page of a scanned document. Write down all text on it, word for word, in the order in which it is read, as Markdown: headings, lists and tables " +
	"as such. Describe a figure in one sentence in brackets. Write nothing else, no introduction and no fence. If something cannot be made out, write [illegible]. " +
	"If there is nothing on the page, write [empty page]."

// scanOutput limits the text of a page, in tokens.
const scanOutput = 4000

// Words returns the text of the pages from first to last of a PDF, those that exist and at
// most [MaxPages], as the caption service reads them from their pictures, under comments
// with their numbers. Each page is stored as a rendition of its own. s.Pages is how many the
// document has; 0: one. Errors are of kind Unsupported without such a service, NotFound if
// there is no first page, or those of [Pages.Picture] and [model.Caller.Call].
func (p *Pages) Words(ctx context.Context, owner artel.Owner, s Source, first, last int) (Text, error) {
	m, pages := p.m, max(s.Pages, 1)
	if first < 1 || first > pages {
		return Text{}, artel.Errorf(artel.NotFound, "rendition.Words", string(s.Digest), "there is no page %d; the document has %d", first, pages)
	}
	id, ok := m.Captioner()
	if !ok {
		return Text{}, artel.Errorf(artel.Unsupported, "rendition.Words", string(s.Digest), "no service that reads scans is configured (caption.service)")
	}
	last = min(last, pages, first+MaxPages-1)
	texts := make([]string, last-first+1)
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(calls)
	for i := range texts {
		g.Go(func() error {
			t, err := m.readPage(within, owner, s, first+i, id)
			texts[i] = fmt.Sprintf("<!-- page %d -->\n\n%s", first+i, t.Text)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return Text{}, err
	}
	if pages > last {
		texts = append(texts, fmt.Sprintf("<!-- cut here: pages %d to %d were not read -->", last+1, pages))
	}
	return Text{strings.Join(texts, "\n\n") + "\n", id}, nil
}

func (m *Maker) readPage(ctx context.Context, owner artel.Owner, s Source, n int, id artel.ServiceID) (Text, error) {
	service, _ := m.service(id)
	service = service.OnWire()
	form := fmt.Sprintf("scan/1;service=%s;model=%s;page=%d", id, service.Model, n)
	return m.words(ctx, owner, s, form, id, func(ctx context.Context, _ blob.Reader) (string, error) {
		p, err := m.Pages().Picture(ctx, owner, s, n, service.Capabilities.PictureForm())
		if err != nil {
			return "", err
		}
		return m.ask(ctx, &model.Request{
			Service: service, MaxOutput: scanOutput,
			Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: scanPrompt}, p.Media()}}},
		})
	})
}

// Media returns the part that shows a rendition that is a picture.
func (r Rendition) Media() artel.Media {
	return artel.Media{
		Ref: artel.BlobRef(r.Digest), MediaType: r.MediaType, Kind: r.Kind, Size: r.Size, Width: r.Width, Height: r.Height,
	}
}
