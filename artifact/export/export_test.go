// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/export"
)

// written is when all documents of these tests were written.
var written = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A reader is bytes as content.
type reader struct{ *bytes.Reader }

func (reader) Close() error { return nil }

// content returns bytes as those of a version.
func content(b []byte, mediaType string, number int) artifact.Content {
	v := artel.Version{Number: number}
	v.MediaType = mediaType
	return artifact.Content{Reader: reader{bytes.NewReader(b)}, Version: v, Visible: true}
}

// shelf opens the pictures of the tests by their artifact ids.
type shelf map[artel.ArtifactID]artifact.Content

func (s shelf) open(_ context.Context, ref artel.Ref) (artifact.Content, error) {
	c, ok := s[ref.Artifact]
	if !ok {
		return artifact.Content{}, artel.Errorf(artel.NotFound, "shelf.Open", ref.String(), "not here")
	}
	b := make([]byte, c.Size())
	_, _ = c.ReadAt(b, 0)
	return content(b, c.Version.MediaType, c.Version.Number), nil
}

// picture draws a square.
func picture(t testing.TB, format string, width, height int) []byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.RGBA{200, 30, 30, 255}, color.Black})
	img.SetColorIndex(0, 0, 1)
	var b bytes.Buffer
	var err error
	switch format {
	case "png":
		err = png.Encode(&b, img)
	case "jpeg":
		err = jpeg.Encode(&b, img, nil)
	case "gif":
		err = gif.Encode(&b, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pictures(t testing.TB) shelf {
	return shelf{
		"red.png":  content(picture(t, "png", 2000, 300), "image/png", 3),
		"red.jpg":  content(picture(t, "jpeg", 40, 40), "image/jpeg", 1),
		"red.gif":  content(picture(t, "gif", 40, 4000), "image/gif", 1),
		"fake.png": content([]byte("\x89PNG\r\n\x1a\nno"), "image/png", 1),
		"x.svg":    content([]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), "image/svg+xml", 1),
		"note.txt": content([]byte("text"), "text/plain", 1),
		"empty":    content(nil, "image/png", 1),
	}
}

// rich is a document with all that the dialect has.
func rich(t testing.TB) export.Document {
	t.Helper()
	text, err := os.ReadFile("testdata/rich.md")
	if err != nil {
		t.Fatal(err)
	}
	return export.Document{
		Title: "季度报告 Quarterly report", Text: string(text), Author: "lead", Time: written,
		Open: pictures(t).open,
		Link: func(ref artel.Ref) string { return "https://artel.example/" + string(ref.Artifact) },
	}
}

func docx(t testing.TB, d export.Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := export.DOCX(t.Context(), &b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func page(t testing.TB, d export.Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := export.HTML(t.Context(), &b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func markdown(t testing.TB, d export.Document) string {
	t.Helper()
	var b strings.Builder
	if err := export.Markdown(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestSameBytes holds all formats to giving the same bytes again.
func TestSameBytes(t *testing.T) {
	for name, make := range map[string]func(testing.TB, export.Document) string{"docx": docx, "html": page, "markdown": markdown} {
		first, second := make(t, rich(t)), make(t, rich(t))
		if first != second {
			t.Errorf("%s: two exports differ", name)
		}
	}
}

// TestFailures holds all formats to passing on what fails, and to stopping.
func TestFailures(t *testing.T) {
	type format func(context.Context, *failing, export.Document) error
	for name, make := range map[string]format{
		"docx":     func(ctx context.Context, w *failing, d export.Document) error { return export.DOCX(ctx, w, d) },
		"html":     func(ctx context.Context, w *failing, d export.Document) error { return export.HTML(ctx, w, d) },
		"markdown": func(_ context.Context, w *failing, d export.Document) error { return export.Markdown(w, d) },
	} {
		d := rich(t)
		for _, room := range []int{0, 100, 1000} {
			if err := make(t.Context(), &failing{room: room}, d); artel.KindOf(err) != artel.Unavailable {
				t.Errorf("%s: a writer with room for %d bytes gives %v", name, room, err)
			}
		}
		if name == "markdown" {
			continue
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := make(ctx, &failing{room: 1 << 30}, d); artel.KindOf(err) != artel.Canceled {
			t.Errorf("%s: canceled: %v", name, err)
		}
		d.Open = func(context.Context, artel.Ref) (artifact.Content, error) {
			return artifact.Content{}, artel.Unavailable
		}
		if err := make(t.Context(), &failing{room: 1 << 30}, d); artel.KindOf(err) != artel.Unavailable {
			t.Errorf("%s: a store that fails: %v", name, err)
		}
		opened := 0
		d.Open = func(context.Context, artel.Ref) (artifact.Content, error) {
			opened++
			b := picture(t, "png", 3, 3)
			return content(b[:len(b)-opened+1], "image/png", 1), nil
		}
		if err := make(t.Context(), &failing{room: 1 << 30}, d); artel.KindOf(err) != artel.Internal {
			t.Errorf("%s: a picture that changes: %v", name, err)
		}
	}
}

// A failing writer has room for some bytes.
type failing struct{ room int }

func (f *failing) Write(p []byte) (int, error) {
	if len(p) > f.room {
		return 0, artel.Unavailable
	}
	f.room -= len(p)
	return len(p), nil
}
