// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider/openai"
)

// recording puts bytes of a type and returns a call about them.
func recording(t *testing.T, blobs blob.Store, base, mediaType string, r io.Reader) *model.Recording {
	t.Helper()
	info, err := blobs.Put(t.Context(), r, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &model.Recording{
		Service: model.Service{ID: "ear", Dialect: model.OpenAI, BaseURL: base, Model: "whisper-1", APIKey: "key"},
		Media:   artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: mediaType, Size: info.Size},
	}
}

func TestTranscribe(t *testing.T) {
	server := fake.OpenAI(fake.Options{Key: "key", Models: []string{"whisper-1"}})
	web := httptest.NewServer(server)
	defer web.Close()
	blobs := blob.NewMemory()
	caller := model.NewCaller(map[model.Dialect]model.Provider{
		model.OpenAI: openai.New(openai.Options{Client: web.Client(), Blobs: blobs}),
	}, model.CallerOptions{Attempts: 2, Backoff: time.Nanosecond})

	r := recording(t, blobs, web.URL+"/v1", "audio/mpeg", strings.NewReader("ID3 some sound"))
	r.Language = "en"
	want := fake.Transcript(r.Media.Ref.Digest, r.Media.Size)
	if got, err := caller.Transcribe(t.Context(), r); got != want || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	// A service that is overloaded is asked again.
	if err := server.Behave(fake.Behavior{Mode: fake.ServerError, Times: 1}); err != nil {
		t.Fatal(err)
	}
	if got, err := caller.Transcribe(t.Context(), r); got != want || err != nil {
		t.Errorf("after a refusal: got %q, %v", got, err)
	}
	asked := server.Requests()
	if len(asked) != 3 || asked[2].Media[0].Digest != r.Media.Ref.Digest {
		t.Errorf("asked %+v", asked)
	}

	for name, c := range map[string]struct {
		change func(*model.Recording)
		want   artel.Kind
	}{
		"another key":         {func(r *model.Recording) { r.Service.APIKey = "wrong" }, artel.Denied},
		"a model not there":   {func(r *model.Recording) { r.Service.Model = "deaf" }, artel.Invalid},
		"no model":            {func(r *model.Recording) { r.Service.Model = "" }, artel.Unsupported},
		"a type nobody hears": {func(r *model.Recording) { r.Media.MediaType = "audio/midi" }, artel.Unsupported},
		"another dialect":     {func(r *model.Recording) { r.Service.Dialect = model.Gemini }, artel.Unsupported},
		"a bad language":      {func(r *model.Recording) { r.Language = "English" }, artel.Invalid},
		"bytes that are gone": {func(r *model.Recording) { r.Media.Ref = artel.BlobRef(artel.NewDigest([32]byte{1})) }, artel.Unavailable},
	} {
		changed := *r
		c.change(&changed)
		if _, err := caller.Transcribe(t.Context(), &changed); artel.KindOf(err) != c.want {
			t.Errorf("%s: got %v (%v), want %v", name, artel.KindOf(err), err, c.want)
		}
	}
}

// TestTranscribeAnswers reads what servers answer with.
func TestTranscribeAnswers(t *testing.T) {
	var answer string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, answer)
	}))
	defer web.Close()
	blobs := blob.NewMemory()
	p := openai.New(openai.Options{Client: web.Client(), Blobs: blobs})
	r := recording(t, blobs, web.URL, "audio/wav", strings.NewReader("RIFF"))
	for text, want := range map[string]struct {
		text string
		kind artel.Kind
	}{
		`{"text":"said \u4e2d"}`:               {"said 中", ""},
		`{"text":""}`:                          {"", ""},
		" said in plain text\n":                {"said in plain text", ""},
		`{"error":{"message":"overloaded"}}`:   {"", artel.Unavailable},
		`{"words":[]}`:                         {"", artel.Unavailable},
		`<html>gateway</html>`:                 {"", artel.Unavailable},
		"\xff\xfe":                             {"", artel.Unavailable},
		strings.Repeat("a", model.MaxAnswer+1): {"", artel.TooLarge},
	} {
		answer = text
		got, err := p.Transcribe(t.Context(), r)
		if got != want.text || want.kind != "" && artel.KindOf(err) != want.kind || want.kind == "" && err != nil {
			t.Errorf("%s: got %q, %v", artel.Shorten(text, 40), got, err)
		}
	}
}

// TestTranscribeStreams sends a recording that is much larger than the memory
// that it takes, and stops when it is told to.
func TestTranscribeStreams(t *testing.T) {
	const size = 64 << 20
	var peak uint64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = m.HeapAlloc
		if n != r.ContentLength || n < size {
			t.Errorf("%d bytes came, %d were announced", n, r.ContentLength)
		}
		_, _ = io.WriteString(w, `{"text":"long"}`)
	}))
	defer web.Close()
	blobs, err := blob.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	p := openai.New(openai.Options{Client: web.Client(), Blobs: blobs})
	r := recording(t, blobs, web.URL, "audio/wav", io.LimitReader(zeros{}, size))
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	if got, err := p.Transcribe(t.Context(), r); got != "long" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	if peak > before.HeapAlloc+8<<20 {
		t.Errorf("%d bytes more were in use", peak-before.HeapAlloc)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := p.Transcribe(ended, r); artel.KindOf(err) != artel.Canceled {
		t.Errorf("got %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
