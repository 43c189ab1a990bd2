// SPDX-License-Identifier: Apache-2.0

// Command routefile says what two models would get of a file: one that sees
// pictures and takes files, and one that takes text only.
//
//	go run ./examples/routefile FILE
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/route"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: routefile FILE")
	}
	content, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = explain(context.Background(), os.Stdout, filepath.Base(os.Args[1]), content)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// explain writes what each model gets.
func explain(ctx context.Context, w io.Writer, name string, content []byte) error {
	info := media.Detect(content, media.Hint{Filename: name})
	info = media.Measure(ctx, info, bytes.NewReader(content))
	fmt.Fprintf(w, "%s is %s\n", name, info.MediaType)

	file := route.Source{
		Filename: name, Info: info,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		Text: func() (string, error) { return media.DecodeText(bytes.NewReader(content), info.Charset) },
	}
	able := model.TextOnly()
	able.Input.Value = []artel.Capability{artel.CanText, artel.CanVision, artel.CanFile}
	for _, m := range []struct {
		name string
		can  model.Capabilities
	}{{"a model that sees", able}, {"a model that reads text", model.TextOnly()}} {
		// The decision opens nothing; Encode streams the payload where there is one.
		result := route.New(file, route.Target{Capabilities: m.can}, phrase.English)
		size := counter(0)
		if err := result.Encode(ctx, &size); err != nil {
			return err
		}
		fmt.Fprintf(w, "\n%s gets %s (%s), %d bytes of JSON:\n%s\n", m.name, result.Route.Routing, result.Route.Step, size, result.Content)
	}
	return nil
}

type counter int

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }
