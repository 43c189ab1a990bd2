// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media/extract"
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

// A converter converts one file in memory. The zero maker calls no service.
type converter struct {
	*rendition.Maker
	blobs blob.Store
}

// converter returns a maker over the services; the caller shuts it.
func (t routing) converter(ctx context.Context, conf config) (m converter, shut func(), err error) {
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
		Store: db, Blobs: m.blobs, Services: t.services,
		Caller:  model.NewCaller(networkProviders(modelClient(), m.blobs, nil), model.CallerOptions{}),
		Options: rendition.Options{Transcription: building.Transcription, Caption: building.Caption},
	})
	return m, func() { _ = db.Close() }, nil
}

func (m converter) forms() route.Forms {
	f := route.Forms{Converted: true}
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
		Extract: func() (string, error) {
			x, err := extract.Text(ctx, f, info.Size, info, extract.Options{})
			return x.Text, err
		},
		Transcribe: func() (string, error) {
			// Files for services are small enough for memory.
			kept, err := m.blobs.Put(ctx, io.NewSectionReader(f, 0, info.Size), 0)
			if err != nil {
				return "", err
			}
			text, err := m.Words(ctx, "local", rendition.Source{Digest: kept.Digest, MediaInfo: info})
			return text.Text, err
		},
		Convert: func(form picture.Form) (route.Converted, error) {
			return route.InMemory(picture.Convert(ctx, f, info.Size, form))
		},
	}
}
