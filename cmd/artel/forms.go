// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media/extract"
	"github.com/artelhq/artel/media/pdf"
	"github.com/artelhq/artel/media/picture"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/model/route"
	"github.com/artelhq/artel/store/sqlite"
)

// routing is a target and the services it was made from, without a server.
type routing struct {
	route.Target
	services *model.Registry
}

// stepsOf parses the names of forms.
func stepsOf(forms []string) ([]artel.Step, error) {
	known := []string{string(artel.StepExtracted), string(artel.StepTranscribed)}
	steps := make([]artel.Step, 0, len(forms))
	for _, f := range forms {
		if !slices.Contains(known, f) {
			return nil, usageError{fmt.Errorf("--forms: there is no %q; the nearest is %q (there are: %s)", f, model.Nearest(f, known), strings.Join(known, ", "))}
		}
		steps = append(steps, artel.Step(f))
	}
	return steps, nil
}

// A converter converts one file in memory. Without a maker it calls no service.
type converter struct {
	*rendition.Maker
	blobs blob.Store
	pdf   *pdf.Engine
}

// converter returns a converter that calls services if calls is set; the caller shuts it.
func (t routing) converter(ctx context.Context, conf config, calls bool) (m converter, shut func(), err error) {
	m.pdf = pdf.New(pdf.Options{})
	if !calls {
		return m, func() { _ = m.pdf.Close() }, nil
	}
	building, err := conf.context()
	if err != nil {
		return m, nil, err
	}
	db, err := sqlite.Open(ctx, ":memory:", sqlite.Options{})
	if err != nil {
		return m, nil, err
	}
	m.blobs = blob.NewMemory()
	m.Maker = rendition.New(rendition.Config{
		Store: db, Blobs: m.blobs, Services: t.services, PDF: m.pdf,
		Caller:  model.NewCaller(networkProviders(modelClient(), m.blobs, nil), model.CallerOptions{}),
		Options: rendition.Options{Transcription: building.Transcription, Caption: building.Caption},
	})
	return m, func() { _ = errors.Join(m.pdf.Close(), db.Close()) }, nil
}

func (m converter) forms() route.Forms {
	f := route.Forms{Converted: true, Pages: true}
	if m.Maker == nil {
		return f
	}
	if id, most, ok := m.Transcriber(); ok {
		f.Transcriber, f.MaxRecording = id, most
	}
	f.Captioner, _ = m.Captioner()
	return f
}

func (m converter) makers(ctx context.Context, f *os.File, info artel.MediaInfo) route.Makers {
	return route.Makers{
		Extract: func() (extract.Extracted, error) {
			return extract.Text(ctx, f, info.Size, info, extract.Options{PDF: m.pdf})
		},
		Transcribe: func(pages int) (string, error) {
			// Files for services are small enough for memory.
			kept, err := m.blobs.Put(ctx, io.NewSectionReader(f, 0, info.Size), 0)
			if err != nil {
				return "", err
			}
			source := rendition.Source{Digest: kept.Digest, MediaInfo: info}
			source.Pages = pages
			text, err := m.Words(ctx, "local", source)
			return text.Text, err
		},
		Convert: func(form picture.Form) (route.Converted, error) {
			return route.InMemory(picture.Convert(ctx, f, info.Size, form))
		},
		Pages: func(first, last int, form picture.Form) ([]route.Converted, error) {
			return route.AllInMemory(rendition.Draw(ctx, m.pdf, f, info.Size, first, last, form))
		},
	}
}
