// SPDX-License-Identifier: Apache-2.0

package route

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media/picture"
)

// AllInMemory wraps pictures of pages for [Makers].
func AllInMemory(all []picture.Picture, err error) ([]Converted, error) {
	out := make([]Converted, len(all))
	for i, p := range all {
		out[i] = inMemory(p)
	}
	return out, err
}

// Pages is the result of [New] if a model asks for chosen pages of a document, as it does
// with the tool get_artifact: these pages as pictures. Errors are of kind Unsupported if s
// has no pages that can be drawn or t takes no pictures, or those of Makers.Pages.
func Pages(s Source, t Target, first, last int, l phrase.Locale) (*Result, error) {
	const op = "route.Pages"
	switch {
	case !paged(s.Info) || !t.Forms.Pages:
		return nil, artel.Errorf(artel.Unsupported, op, s.Filename, "pages are shown of PDFs only, and it is %s", s.Info.MediaType)
	case !sees(t):
		return nil, artel.Errorf(artel.Unsupported, op, s.Filename, "this model sees no pictures")
	}
	r := newResult(s, t, l)
	r.Route.Step, r.Route.Routing, r.Route.Suggested = artel.StepConverted, artel.RoutingImage, nil
	return r, r.draw(t, first, last, 0)
}

// Pages returns how many pages of a document are the payload, and how many are left out.
func (r *Result) Pages() (sent, left int) { return len(r.pages), r.left }

// draw makes pages the payload, no more than the service takes. The document has total
// pages; 0: how many is not said.
func (r *Result) draw(t Target, first, last, total int) error {
	if r.source.Makers.Pages == nil {
		return errNoMaker
	}
	if most := t.Capabilities.MaxImages.Value; most > 0 {
		last = min(last, first+most-1)
	}
	pages, err := r.source.Makers.Pages(first, last, t.Capabilities.PictureForm())
	if err == nil && len(pages) == 0 {
		err = errNoMaker
	}
	if err != nil {
		return err
	}
	r.pages, r.left = pages, max(total-len(pages), 0)
	r.Content = r.locale.Say(phrase.RouteContent, map[string]any{"Name": nameOf(r.media, r.locale)})
	return nil
}

// encodePages writes the pages, one after the other.
func (r *Result) encodePages(ctx context.Context, w io.Writer) error {
	s := &sent{MimeType: r.pages[0].Info.MediaType, Pages: len(r.pages), PagesLeft: r.left}
	for _, p := range r.pages {
		s.Size += p.Info.Size
	}
	if err := writeAll(w, r.head(s)); err != nil {
		return err
	}
	for i, p := range r.pages {
		before, after := r.payload(p.Info.MediaType, "")
		after = after[:len(after)-len("}\n")]
		switch i {
		case 0:
		case 1:
			before = append([]byte(`,"furtherPages":[`), bytes.TrimPrefix(before, []byte(`,"imageUrl":`))...)
		default:
			before = append([]byte(`,`), bytes.TrimPrefix(before, []byte(`,"imageUrl":`))...)
		}
		body, err := p.Open()
		if err != nil {
			return err
		}
		err = writeAll(w, before)
		if err == nil {
			err = encodeBase64(ctx, w, body, p.Info.Size)
		}
		if err = errors.Join(err, body.Close(), writeAll(w, after)); err != nil {
			return err
		}
	}
	if len(r.pages) > 1 {
		return writeAll(w, []byte("]}\n"))
	}
	return writeAll(w, []byte("}\n"))
}
