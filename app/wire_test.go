// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/png"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/responses"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/run/record"
)

// inBase64 are the places of bytes in a raw request.
var inBase64 = regexp.MustCompile("blob:sha256-[0-9a-f]{64}")

// A wired bench is an app whose one service is a fake that keeps what it was sent.
type wired struct {
	*bench
	fake   *fake.Server
	shut   atomic.Bool // nothing is found where media are fetched
	broken atomic.Bool // calls are refused
	answer fake.Responder
	mu     sync.Mutex
	bodies []string // of calls of the model
}

// newWire makes one. Where held is set, its service holds files and fetches
// addresses.
func newWire(t *testing.T, dialect model.Dialect, held bool) *wired {
	t.Helper()
	w := &wired{answer: fake.Echo}
	o, base := fake.Options{Open: true, Responder: func(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
		return w.answer(ctx, r)
	}}, ""
	switch dialect {
	case model.Anthropic:
		w.fake = fake.Anthropic(o)
	case model.Gemini:
		w.fake = fake.Gemini(o)
	default:
		w.fake, base = fake.OpenAI(o), "/v1"
	}
	server := httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(server.Close)
	t.Cleanup(server.Client().CloseIdleConnections)
	w.bench = newBench(t, nil, func(a *app.Config) {
		s := model.DemoService()
		s.ID, s.Dialect, s.Model, s.BaseURL, s.APIKey = "wire", dialect, "fake-1", server.URL+base, "key"
		with := provider.Options{Client: server.Client(), Blobs: a.Blobs}
		if held {
			s.Capabilities.Transport = model.Fact[[]model.Transport]{Value: model.Transports(), Source: model.FromOperator}
			with.Uploads = provider.NewUploads(provider.UploadsOptions{Address: w.public(t, a)})
		}
		a.Services = model.NewRegistry([]model.Service{s}, s.ID)
		a.Providers = map[model.Dialect]model.Provider{dialect: wingOf(dialect, with)}
	})
	return w
}

func wingOf(dialect model.Dialect, with provider.Options) model.Provider {
	switch dialect {
	case model.Anthropic:
		return anthropic.New(with)
	case model.Gemini:
		return gemini.New(with)
	case model.OpenAIResponses:
		return responses.New(with)
	}
	return openai.New(with)
}

// serve notes the calls of the model.
func (w *wired) serve(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Error(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	for _, call := range []string{"/chat/completions", "/responses", "/messages", ":streamGenerateContent"} {
		if !strings.HasSuffix(r.URL.Path, call) {
			continue
		}
		w.mu.Lock()
		w.bodies = append(w.bodies, string(body))
		w.mu.Unlock()
		if w.broken.Load() {
			http.Error(out, `{"error":{"message":"no more credit","code":"no_credit"}}`, http.StatusPaymentRequired)
			return
		}
	}
	w.fake.ServeHTTP(out, r)
}

// public serves the bytes of a where its service fetches them, and returns what
// tells their addresses.
func (w *wired) public(t *testing.T, a *app.Config) func(artel.Media) string {
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		hex, _, _ := strings.Cut(path.Base(r.URL.Path), ".")
		content, err := a.Blobs.Open(r.Context(), artel.Digest("sha256-"+hex))
		if w.shut.Load() || err != nil {
			http.NotFound(out, r)
			return
		}
		defer content.Close()
		out.Header().Set("Content-Type", "image/png")
		_, _ = io.Copy(out, content)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.Client().CloseIdleConnections)
	w.fake.Fetch(server.Client())
	return app.MediaAddress([]byte("key"), server.URL, nil)
}

// raw compares the raw request of a call with the one that went last over the
// wire.
func (w *wired) raw(key record.ContextKey) {
	w.t.Helper()
	w.mu.Lock()
	sent := w.bodies[len(w.bodies)-1]
	w.mu.Unlock()
	raw, err := w.Contexts.Request(apptest.Context(w.t), key)
	if err != nil {
		w.t.Fatal(err)
	}
	shown := inBase64.ReplaceAllStringFunc(string(raw.Body), func(ref string) string {
		content, err := w.config.Blobs.Open(apptest.Context(w.t), artel.Digest(strings.TrimPrefix(ref, "blob:")))
		if err != nil {
			w.t.Fatal(err)
		}
		defer content.Close()
		all, err := io.ReadAll(content)
		if err != nil {
			w.t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(all)
	})
	want := signed.ReplaceAllStringFunc(sent, func(s string) string { return "?" + strings.Repeat("*", len(s)-2) + `"` })
	if shown != want || raw.Bytes != int64(len(sent)) {
		w.t.Errorf("%d bytes are shown of %d (-sent +shown):\n%s", raw.Bytes, len(sent), cmp.Diff(shortened(want), shortened(shown)))
	}
}

// signed is what opens an address that is all of a text; what answers have quoted
// is as it was.
var signed = regexp.MustCompile(`\?sig=[\w.-]+"`)

// shortened leaves out most of what is in base64.
func shortened(s string) string {
	return regexp.MustCompile(`[A-Za-z0-9+/]{200,}`).ReplaceAllStringFunc(s, func(s string) string { return s[:40] + "…" + s[len(s)-40:] })
}

// In every dialect, what a preview shows is what is sent, and the raw request
// of the record is byte for byte what went over the wire, but for the digests
// in the place of bytes.
func TestRawRequestsOfAllDialects(t *testing.T) {
	for _, dialect := range []model.Dialect{model.OpenAI, model.OpenAIResponses, model.Anthropic, model.Gemini} {
		t.Run(string(dialect), func(t *testing.T) {
			b := newWire(t, dialect, false)
			id := b.conversation()
			b.upload(id, "dot.gif", gif)
			for _, in := range []run.Input{{Text: "See <b> & “this”.", Attachments: []string{"dot.gif"}}, {Text: "And now?"}} {
				p, err := b.Previews.Build(apptest.Context(t), id, in)
				if err != nil || !p.Exact {
					t.Fatalf("the preview: %+v, %v", p.Error, err)
				}
				in.Clock = &run.Clock{Now: p.Clock, Seed: p.Seed}
				run := b.ended(b.send(id, in))
				if run.State != artel.RunDone {
					t.Fatalf("the run: %+v", run.Error)
				}
				summary := contextsOf(t, b.bench, run.ID)[0]
				b.raw(summary.ContextKey)
				if summary.RequestHash != p.RequestHash {
					t.Error("the preview was another request")
				}
				if diff := cmp.Diff(p.Media, summary.Media); diff != "" || len(p.Media) != 1 {
					t.Errorf("its media (-preview +run):\n%s", diff)
				}
			}
		})
	}
}

// How media went is told of each call of a run, also of one that failed, and the
// raw request has the names that went in the place of bytes.
func TestHowMediaWent(t *testing.T) {
	for _, dialect := range []model.Dialect{model.OpenAIResponses, model.Anthropic, model.Gemini} {
		t.Run(string(dialect), func(t *testing.T) {
			w := newWire(t, dialect, true)
			id := w.conversation()
			names := []string{"dot.gif", "photo.png", "poster.png"}
			w.upload(id, names[0], gif)
			w.upload(id, names[1], noise(t, 200))
			w.upload(id, names[2], noise(t, 700))
			told := func(r artel.Run, want ...model.Transport) {
				t.Helper()
				list, err := w.Contexts.List(apptest.Context(t), r.ID)
				if err != nil || len(list) != 1 {
					t.Fatalf("%d calls, %v", len(list), err)
				}
				found, err := w.Contexts.Find(apptest.Context(t), list[0].ContextKey)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(list[0].Media, found.Media); diff != "" {
					t.Errorf("the list is not the record:\n%s", diff)
				}
				var got []model.Transport
				for _, m := range found.Media {
					got = append(got, m.Transport)
					if m.Artifact.Artifact == "" || m.Digest == "" || m.Size == 0 || m.MediaType == "" || (m.Name == "") != (m.Transport == model.ByBytes) {
						t.Errorf("it tells %+v", m)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("how they went (-want +told):\n%s", diff)
				}
			}
			ask := func(text string, want artel.RunState, attached ...string) artel.Run {
				t.Helper()
				r := w.ended(w.send(id, run.Input{Text: text, Attachments: attached}))
				if r.State != want {
					t.Fatalf("the run: %+v", r)
				}
				if w.raw(contextsOf(t, w.bench, r.ID)[0].ContextKey); want == artel.RunDone && r.Usage.InputTokens == 0 {
					t.Error("what it took is not told")
				}
				return r
			}
			first := ask("See.", artel.RunDone, names...)
			told(first, model.ByBytes, model.ByURL, model.ByFileID)
			w.shut.Store(true) // what cannot be fetched goes inside after all, and that is what is told
			told(ask("And now?", artel.RunDone), model.ByBytes, model.ByBytes, model.ByFileID)
			told(first, model.ByBytes, model.ByURL, model.ByFileID)
			w.broken.Store(true)
			told(ask("Once more?", artel.RunFailed), model.ByBytes, model.ByBytes, model.ByFileID)
		})
	}
}

// noise is a square picture that no compression makes smaller.
func noise(t *testing.T, side int) string {
	t.Helper()
	r := rand.NewPCG(uint64(side), 1)
	p := image.NewNRGBA(image.Rect(0, 0, side, side))
	for i := range p.Pix {
		p.Pix[i] = byte(r.Uint64()) | byte(i&3/3*255)
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
