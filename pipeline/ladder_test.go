// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/image/bmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/pipeline"
)

// drawing is a picture that differs from others of another seed.
func drawing(w, h int, seed uint8) image.Image {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = 255
	}
	m.Set(0, 0, color.NRGBA{seed, 1, 2, 255})
	return m
}

func pngOf(t *testing.T, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sample(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../testdata/files", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// maker makes renditions with a service that writes recordings down.
func (w *world) maker() (*rendition.Maker, *fake.Server) {
	return w.makerWith(rendition.Options{Transcription: rendition.Transcription{Service: "ear"}})
}

// seeing makes captions too.
func (w *world) seeing() (*rendition.Maker, *fake.Server) {
	return w.makerWith(rendition.Options{Transcription: rendition.Transcription{Service: "ear"}, Caption: rendition.Caption{Service: "eye"}})
}

func (w *world) makerWith(o rendition.Options) (*rendition.Maker, *fake.Server) {
	server := fake.OpenAI(fake.Options{})
	web := httptest.NewServer(server)
	w.t.Cleanup(web.Close)
	return rendition.New(rendition.Config{
		Store: w.db, Blobs: w.blobs, PDF: w.pdf,
		Caller: model.NewCaller(map[model.Dialect]model.Provider{
			model.OpenAI: openai.New(openai.Options{Client: web.Client(), Blobs: w.blobs}),
		}, model.CallerOptions{Attempts: 1}),
		Services: model.NewRegistry([]model.Service{
			{ID: "ear", Dialect: model.OpenAI, BaseURL: web.URL + "/v1", Model: "whisper-1", APIKey: "k"},
			{ID: "eye", Dialect: model.OpenAI, BaseURL: web.URL + "/v1", Model: "m", APIKey: "k", Capabilities: service(0, artel.CanVision).Capabilities},
		}, ""),
		Options: o,
	}), server
}

// asked is one message with attachments.
func (w *world) asked(s model.Service, files ...artel.Artifact) pipeline.Input {
	m := say("1", "user", "look")
	for _, f := range files {
		m.Parts = append(m.Parts, f.MediaPart())
	}
	in := input(s, m)
	in.Sources = w.files
	return in
}

// text joins the texts of the first message.
func text(r pipeline.Result) string { return artel.TextOf(r.Request.Messages[0].Parts) }

func mediaIn(r pipeline.Result) []artel.Media {
	var out []artel.Media
	for _, p := range r.Request.Messages[0].Parts {
		if m, ok := p.(artel.Media); ok {
			out = append(out, m)
		}
	}
	return out
}

// TestPicturesAreConverted sends a picture in the form that the service takes,
// and counts the tokens of that form.
func TestPicturesAreConverted(t *testing.T) {
	w := newWorld(t)
	var data bytes.Buffer
	if err := bmp.Encode(&data, drawing(1200, 600, 1)); err != nil {
		t.Fatal(err)
	}
	file := w.upload("wide.bmp", data.Bytes())
	s := service(0, artel.CanVision)
	s.Capabilities.Accepts.Value = []string{"image/png", "image/jpeg"}
	s.Capabilities.MaxSide.Value = 300
	in := w.asked(s, file)
	in.Renditions, _ = w.maker()
	r := build(t, in)
	got := mediaIn(r)
	if len(got) != 1 || got[0].MediaType != "image/png" || got[0].Width != 300 || got[0].Height != 150 || got[0].Ref.Digest == file.Digest || got[0].Ref.Artifact != "wide.bmp" {
		t.Fatalf("got %+v", got)
	}
	if want := "attachment wide.bmp v1 (wide.bmp, 1200 × 600 pixels, shown as 300 × 150)"; !strings.Contains(text(r), want) {
		t.Errorf("got %q", text(r))
	}
	b, err := w.blobs.Open(t.Context(), got[0].Ref.Digest)
	if err != nil || b.Size() != got[0].Size {
		t.Errorf("the bytes are not there: %v", err)
	}
	d := r.Record.Decisions[0]
	want := &artel.SentForm{MediaType: "image/png", Size: got[0].Size, Width: 300, Height: 150}
	if d.Step != artel.StepConverted || d.Reason != artel.ReasonNotAccepted || d.Ref != file.MediaPart().Ref && d.Ref.Artifact != "wide.bmp" || d.MediaType != "image/bmp" || d.Digest != file.Digest {
		t.Errorf("got %+v", d)
	}
	if diff := cmp.Diff(want, d.Sent); diff != "" {
		t.Error(diff)
	}
	s.Capabilities.MaxSide.Value = 0
	in.Service = s
	if large := build(t, in).Record.Decisions[0]; large.Tokens <= d.Tokens {
		t.Errorf("a picture of 1200 pixels costs %d tokens, one of 300 %d", large.Tokens, d.Tokens)
	}
	if again := build(t, in); again.Record.RequestHash != build(t, in).Record.RequestHash {
		t.Error("two builds differ")
	}
	in.Renditions = nil
	if d := build(t, in).Record.Decisions[0]; d.Step != artel.StepDescribed || d.Reason != artel.ReasonNotAccepted {
		t.Errorf("without a maker: %+v", d)
	}
}

// TestRowsHaveNumbers sends a CSV with the numbers of its rows and the letters of its
// columns; the file and the offset of the rest are those without them.
func TestRowsHaveNumbers(t *testing.T) {
	w := newWorld(t)
	csv := w.upload("stock.csv", []byte("article,count\nTea,4\n\n\"Rope,\n8 mm\",2\n"))
	long := w.upload("long.tsv", []byte("id\tname\n"+strings.Repeat("12345\tname\n", 10_000)))
	got := text(build(t, w.asked(service(0), csv, long)))
	want := "attachment stock.csv v1 (stock.csv, text/csv) (each row after its number, which is not in the file; columns: A article, B count):\n" +
		"```\n1: article,count\n2: Tea,4\n3: \n4: \"Rope,\n8 mm\",2\n```"
	if !strings.Contains(got, want) {
		t.Errorf("got %.500s\nwant %s", got, want)
	}
	if !strings.Contains(got, "\n4545: 12345\tname\n```\n[") || !strings.Contains(got, "offset=4546, version=1)]") {
		t.Errorf("the cut: %s", got[strings.Index(got, " characters are shown")-100:][:200])
	}
}

// TestDocumentsAreExtracted sends the text of documents that the service does
// not take.
func TestDocumentsAreExtracted(t *testing.T) {
	w := newWorld(t)
	docx, pdf, locked := w.upload("brief.docx", sample(t, "brief.docx")), w.upload("report.pdf", sample(t, "report.pdf")), w.upload("locked.pdf", sample(t, "locked.pdf"))
	s := service(0)
	r := build(t, w.asked(s, docx, pdf, locked))
	for i, want := range []artel.Step{artel.StepExtracted, artel.StepExtracted, artel.StepDescribed} {
		if d := r.Record.Decisions[i]; d.Step != want || d.Need != artel.CanFile && d.Reason != artel.ReasonNotMade || (d.Sent != nil) != (want == artel.StepExtracted) || d.Tokens == 0 {
			t.Errorf("%s: got %+v", d.Filename, d.AttachmentRoute)
		}
	}
	x, err := w.files.Derived(t.Context(), artel.Local, docx.MediaPart().Ref, "")
	if err != nil {
		t.Fatal(err)
	}
	got := text(r)
	if !strings.Contains(got, strings.TrimSpace(x.Text)) || !strings.Contains(got, "attachment brief.docx v1 (brief.docx, "+docx.MediaType+"), the text that was taken out of it:\n```") {
		t.Errorf("got %s", got)
	}
	if r.Record.Decisions[2].Reason != artel.ReasonNotMade || !strings.Contains(got, "[cannot read] locked.pdf") {
		t.Errorf("a document that is locked: %+v", r.Record.Decisions[2])
	}
	if len(mediaIn(r)) != 0 {
		t.Error("bytes are sent")
	}
	s.Capabilities.Input.Value = append(s.Capabilities.Input.Value, artel.CanFile)
	s.Capabilities.MaxPages.Value = 1
	s.Capabilities.Accepts.Value = []string{"application/pdf"}
	long := w.upload("packed.pdf", sample(t, "packed.pdf"))
	for _, d := range build(t, w.asked(s, pdf, long)).Record.Decisions {
		if over := d.Ref.Artifact == "packed.pdf" && long.Pages > 1 || d.Ref.Artifact == "report.pdf" && pdf.Pages > 1; over != (d.Step == artel.StepExtracted) {
			t.Errorf("%s of %d and %d pages: got %+v", d.Filename, pdf.Pages, long.Pages, d.Route)
		}
	}
}

// TestRecordingsAreWrittenDown sends what is said in recordings, asked of the
// service once.
func TestRecordingsAreWrittenDown(t *testing.T) {
	w := newWorld(t)
	tone, clip, again := w.upload("tone.mp3", sample(t, "tone.mp3")), w.upload("clip.mp4", sample(t, "clip.mp4")), w.upload("tone2.mp3", sample(t, "tone.mp3"))
	in := w.asked(service(0), tone, clip, again)
	maker, server := w.maker()
	in.Renditions = maker
	for range 2 {
		r := build(t, in)
		for _, f := range []artel.Artifact{tone, clip} {
			want := fmt.Sprintf("attachment %s v1 (%s, %s), written down by ear:\n```\n%s\n```", f.ID, f.Filename, f.MediaType, fake.Transcript(f.Digest, f.Size))
			if !strings.Contains(text(r), want) {
				t.Errorf("got %s\nlacks %s", text(r), want)
			}
		}
		for _, d := range r.Record.Decisions {
			if d.Step != artel.StepTranscribed || d.Sent == nil || d.Sent.Service != "ear" || d.Sent.Characters == 0 {
				t.Errorf("got %+v", d.AttachmentRoute)
			}
		}
	}
	if n := len(server.Requests()); n != 2 {
		t.Errorf("the service was asked %d times", n)
	}
	// One that fails is described, and the run goes on.
	other := w.upload("tone.wav", sample(t, "tone.wav"))
	if err := server.Behave(fake.Behavior{Mode: fake.ServerError}); err != nil {
		t.Fatal(err)
	}
	in = w.asked(service(0), tone, other)
	in.Renditions = maker
	r := build(t, in)
	if d := r.Record.Decisions; d[0].Step != artel.StepTranscribed || d[1].Step != artel.StepDescribed || d[1].Reason != artel.ReasonNotMade {
		t.Errorf("got %+v", d)
	}
	if !strings.Contains(text(r), "[cannot read] tone.wav") {
		t.Errorf("got %s", text(r))
	}
}

// TestRequestsHaveRoom describes the oldest media beyond what a request takes.
func TestRequestsHaveRoom(t *testing.T) {
	w := newWorld(t)
	var files []artel.Artifact
	for i := range 4 {
		files = append(files, w.upload(fmt.Sprintf("p%d.png", i), pngOf(t, drawing(40, 30, uint8(i)))))
	}
	history := []artel.Message{
		with(say("1", "user", "first"), func(m *artel.Message) { m.Parts = append(m.Parts, files[0].MediaPart(), files[1].MediaPart()) }),
		calls("2", "c"), answers("3", "c", "{}", files[2].MediaPart()),
		with(say("4", "user", "then"), func(m *artel.Message) { m.Parts = append(m.Parts, files[3].MediaPart(), files[0].MediaPart()) }),
	}
	steps := func(change func(*model.Capabilities)) string {
		s := service(0, artel.CanVision)
		change(&s.Capabilities)
		in := input(s, history...)
		in.Sources = w.files
		r := build(t, in)
		out := ""
		for _, d := range r.Record.Decisions {
			switch {
			case d.Step == artel.StepNative:
				out += "n"
			case d.Reason == artel.ReasonRequestFull && d.Sent == nil:
				out += "f"
			default:
				t.Errorf("got %+v", d.AttachmentRoute)
			}
		}
		if again := build(t, in); again.Record.RequestHash != r.Record.RequestHash {
			t.Error("two builds differ")
		}
		return out
	}
	size := files[0].Size
	for name, c := range map[string]struct {
		change func(*model.Capabilities)
		want   string // in the order of the branch: p0 p1 p2 p3 p0
	}{
		"no limit":     {func(*model.Capabilities) {}, "nnnnn"},
		"four":         {func(c *model.Capabilities) { c.MaxImages.Value = 4 }, "nnnnn"}, // p0 is sent once
		"three":        {func(c *model.Capabilities) { c.MaxImages.Value = 3 }, "nfnnn"},
		"one":          {func(c *model.Capabilities) { c.MaxImages.Value = 1 }, "nfffn"},
		"a few bytes":  {func(c *model.Capabilities) { c.MaxRequestBytes.Value = 850 + 2*(210+size*3/2) }, "nffnn"},
		"enough bytes": {func(c *model.Capabilities) { c.MaxRequestBytes.Value = 100_000 }, "nnnnn"},
	} {
		if got := steps(c.change); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	s := service(0, artel.CanVision)
	s.Capabilities.MaxImages.Value = 1
	in := input(s, history...)
	in.Sources = w.files
	if got := build(t, in).Request.Messages[0].Parts; !strings.HasPrefix(artel.TextOf(got[len(got)-1:]), "[not shown] p1.png (artifact:p1.png)\n") {
		t.Errorf("got %+v", got)
	}
}
