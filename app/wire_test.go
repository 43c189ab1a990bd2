// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/fake"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/provider/anthropic"
	"github.com/artelhq/artel/provider/gemini"
	"github.com/artelhq/artel/provider/openai"
	"github.com/artelhq/artel/provider/responses"
)

// inBase64 are the places of bytes in a raw request.
var inBase64 = regexp.MustCompile("blob:sha256-[0-9a-f]{64}")

// In every dialect, what a preview shows is what is sent, and the raw request
// of the record is byte for byte what went over the wire, but for the digests
// in the place of bytes.
func TestRawRequestsOfAllDialects(t *testing.T) {
	for _, c := range []struct {
		dialect model.Dialect
		server  func(fake.Options) *fake.Server
		base    string
		wing    func(*http.Client, *app.Config) model.Provider
	}{
		{model.OpenAI, fake.OpenAI, "/v1", func(h *http.Client, c *app.Config) model.Provider {
			return openai.New(openai.Options{Client: h, Blobs: c.Blobs})
		}},
		{model.OpenAIResponses, fake.OpenAI, "/v1", func(h *http.Client, c *app.Config) model.Provider {
			return responses.New(responses.Options{Client: h, Blobs: c.Blobs})
		}},
		{model.Anthropic, fake.Anthropic, "", func(h *http.Client, c *app.Config) model.Provider {
			return anthropic.New(anthropic.Options{Client: h, Blobs: c.Blobs})
		}},
		{model.Gemini, fake.Gemini, "", func(h *http.Client, c *app.Config) model.Provider {
			return gemini.New(gemini.Options{Client: h, Blobs: c.Blobs})
		}},
	} {
		t.Run(string(c.dialect), func(t *testing.T) {
			upstream := c.server(fake.Options{Open: true})
			var mu sync.Mutex
			var bodies []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				if r.Method == http.MethodPost {
					mu.Lock()
					bodies = append(bodies, string(body))
					mu.Unlock()
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				upstream.ServeHTTP(w, r)
			}))
			defer server.Close()
			defer server.Client().CloseIdleConnections()
			b := newBench(t, nil, func(a *app.Config) {
				s := model.DemoService()
				s.ID, s.Dialect, s.Model, s.BaseURL, s.APIKey = "wire", c.dialect, "fake-1", server.URL+c.base, "key"
				a.Services = model.NewRegistry([]model.Service{s}, s.ID)
				a.Providers = map[model.Dialect]model.Provider{c.dialect: c.wing(server.Client(), a)}
			})
			id := b.conversation()
			b.upload(id, "dot.gif", gif)
			for _, in := range []app.Input{{Text: "See <b> & “this”.", Attachments: []string{"dot.gif"}}, {Text: "And now?"}} {
				p, err := b.Runs.Preview(t.Context(), id, in)
				if err != nil || !p.Exact {
					t.Fatalf("the preview: %+v, %v", p.Error, err)
				}
				in.Clock = &app.Clock{Now: p.Clock, Seed: p.Seed}
				run := b.ended(b.send(id, in))
				if run.State != artel.RunDone {
					t.Fatalf("the run: %+v", run.Error)
				}
				sent := bodies[len(bodies)-1]
				summary := contextsOf(t, b, run.ID)[0]
				raw, err := b.Contexts.Request(t.Context(), summary.ContextKey)
				if err != nil {
					t.Fatal(err)
				}
				shown := inBase64.ReplaceAllStringFunc(string(raw.Body), func(ref string) string {
					content, err := b.config.Blobs.Open(t.Context(), artel.Digest(strings.TrimPrefix(ref, "blob:")))
					if err != nil {
						t.Fatal(err)
					}
					defer content.Close()
					all, err := io.ReadAll(content)
					if err != nil {
						t.Fatal(err)
					}
					return base64.StdEncoding.EncodeToString(all)
				})
				if diff := cmp.Diff(sent, shown); diff != "" || raw.Bytes != int64(len(sent)) {
					t.Errorf("%d bytes are shown of %d (-sent +shown):\n%s", raw.Bytes, len(sent), diff)
				}
				if summary.RequestHash != p.RequestHash {
					t.Error("the preview was another request")
				}
			}
		})
	}
}
