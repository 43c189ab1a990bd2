// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/mediatest"
	"github.com/artelhq/artel/media/pdf"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/pipeline"
)

// drawsPages gives the makers of a test an engine.
func (w *world) drawsPages(o rendition.Options) func(*pipeline.Input) {
	engine := pdf.New(pdf.Options{})
	w.t.Cleanup(func() { _ = engine.Close() })
	w.pdf = engine
	return func(in *pipeline.Input) { in.Renditions, _ = w.makerWith(o) }
}

// TestScansAreShown says that a model that sees gets the pages of a PDF without text as
// pictures, as many as fit, and that the record says which.
func TestScansAreShown(t *testing.T) {
	w := newWorld(t)
	render := w.drawsPages(rendition.Options{})
	s := service(0, artel.CanVision)
	s.Capabilities.MaxImages.Value = 2
	in := w.asked(s, w.upload("scan.pdf", mediatest.Scan(3)))
	render(&in)
	r := build(t, in)
	got := mediaIn(r)
	if len(got) != 2 || got[0].Kind != artel.KindImage || got[0].Width != 833 || got[0].Height != 1250 || got[0].Ref.Digest == "" {
		t.Fatalf("got %+v, %+v\n%s", got, r.Record.Decisions, text(r))
	}
	for _, want := range []string{"scan.pdf v1 (scan.pdf), page 1 of 3", "page 2 of 3, the last that is shown; pages 3 to 3 are not"} {
		if !strings.Contains(text(r), want) {
			t.Errorf("%q is missing in %q", want, text(r))
		}
	}
	d := r.Record.Decisions[0]
	if d.Step != artel.StepConverted || d.Routing != artel.RoutingImage || d.Sent == nil || d.Sent.Pages != 2 || d.Sent.PagesLeft != 1 || d.Tokens < 100 {
		t.Errorf("got %+v", d)
	}
}

// TestScansAreRead says that a model that does not see gets the words that a service reads
// from the pages, and without such a service is told that the text is doubtful.
func TestScansAreRead(t *testing.T) {
	w := newWorld(t)
	render := w.drawsPages(rendition.Options{Caption: rendition.Caption{Service: "eye"}})
	file := w.upload("scan.pdf", mediatest.Scan(2))
	in := w.asked(service(0), file)
	render(&in)
	var calls []rendition.Call
	var mu sync.Mutex // pages are read at the same time
	in.Renditions = in.Renditions.Reporting(func(c rendition.Call) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, c)
	})
	for range 2 { // the second time nothing is asked
		r := build(t, in)
		d := r.Record.Decisions[0]
		if d.Step != artel.StepTranscribed || d.Sent == nil || d.Sent.Service != "eye" {
			t.Errorf("got %+v", d)
		}
		if !strings.Contains(text(r), "read from its pages by eye") || strings.Count(text(r), "<!-- page ") != 2 {
			t.Errorf("got %q", text(r))
		}
	}
	if len(calls) != 2 || calls[0].Request == nil {
		t.Errorf("%d calls", len(calls))
	}
	in = w.asked(service(0), w.upload("long.pdf", mediatest.Scan(22)))
	render(&in)
	if got, want := text(build(t, in)), "read from its pages by eye; pages 21 to 22 of 22 are missing"; !strings.Contains(got, want) {
		t.Errorf("%q is missing in %.300s", want, got)
	}
	in = w.asked(service(0), file)
	w.drawsPages(rendition.Options{})(&in)
	r := build(t, in)
	if d := r.Record.Decisions[0]; d.Step != artel.StepExtracted || !strings.Contains(text(r), "caption.service") || !strings.Contains(text(r), "this text is doubtful: 2 of 2 pages are only pictures") {
		t.Errorf("got %+v\n%s", d, text(r))
	}
}

// TestTextIsKept says that a PDF with text comes as text, also to a model that sees.
func TestTextIsKept(t *testing.T) {
	w := newWorld(t)
	render := w.drawsPages(rendition.Options{})
	in := w.asked(service(0, artel.CanVision), w.upload("report.pdf", sample(t, "report.pdf")))
	render(&in)
	r := build(t, in)
	if d := r.Record.Decisions[0]; d.Step != artel.StepExtracted || len(mediaIn(r)) != 0 || !strings.Contains(text(r), "Revenue grew") {
		t.Errorf("got %+v", d)
	}
}
