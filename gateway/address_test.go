// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/gateway"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
)

// TestForwardedByAddress: services fetch the media of forwarded requests from
// this server; if they cannot, they get the bytes.
func TestForwardedByAddress(t *testing.T) {
	t.Parallel()
	png := base64.StdEncoding.EncodeToString(picture(300, 1))
	pdf := base64.StdEncoding.EncodeToString([]byte(tinyPDF + "\n%" + strings.Repeat("x", 64<<10)))
	for _, c := range []struct {
		service, path, body string
		want                string // of the part, with the address in the place of NAME
		upstream            func(fake.Options) *fake.Server
	}{
		{
			"chat", "/v1/chat/completions",
			`{"model":"chat","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png + `","detail":"low"}},{"type":"text","text":"x"}]}]}`,
			`{"type":"image_url","image_url":{"url":"NAME","detail":"low"}}`, fake.OpenAI,
		},
		{
			"responses", "/v1/responses",
			`{"model":"responses","input":[{"role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,` + pdf + `"}]}]}`,
			`{"type":"input_file","file_url":"NAME"}`, fake.OpenAI,
		},
		{
			"messages", "/v1/messages",
			`{"model":"messages","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"},"cache_control":{"type":"ephemeral"}}]}]}`,
			`{"type":"image","source":{"type":"url","url":"NAME"},"cache_control":{"type":"ephemeral"}}`, fake.Anthropic,
		},
		{
			"gemini", "/v1beta/models/gemini:generateContent",
			`{"contents":[{"role":"user","parts":[{"inline_data":{"mime_type":"image/png","data":"` + png + `"}},{"text":"x"}]}]}`,
			`{"fileData":{"mimeType":"image/png","fileUri":"NAME"}}`, fake.Gemini,
		},
	} {
		t.Run(c.service, func(t *testing.T) {
			t.Parallel()
			var api http.Handler
			var shut atomic.Bool
			public := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if shut.Load() {
					http.NotFound(w, r)
					return
				}
				api.ServeHTTP(w, r)
			}))
			t.Cleanup(public.Close)
			t.Cleanup(public.Client().CloseIdleConnections)
			key := []byte("the key of the addresses")
			b := newBench(t, setup{
				held: true, key: key, address: app.MediaAddress(key, public.URL+"/api/v1/files/tool_results/", nil),
				services: func(all []model.Service) []model.Service {
					for i := range all {
						all[i].Capabilities.Transport = model.Fact[[]model.Transport]{Value: []model.Transport{model.ByBytes, model.ByURL}, Source: model.FromOperator}
					}
					return all
				},
			})
			api = apptest.As(httpapi.Guard(httpapi.New(b.app, httpapi.Options{})))
			upstream := c.upstream(fake.Options{Open: true})
			upstream.Fetch(public.Client())
			b.upstream = upstream
			head, tail, _ := strings.Cut(c.want, "NAME")
			var first string
			for round := range 2 {
				if status, body := b.post(c.path, c.body); status != 200 {
					t.Fatalf("%d %s", status, body)
				}
				_, rest, ok := strings.Cut(b.last(), head)
				name, _, _ := strings.Cut(rest, `"`)
				if !ok || !strings.HasPrefix(name, public.URL) || !strings.HasPrefix(rest, name+tail) {
					t.Errorf("round %d: sent %.400s, want %s", round, b.last(), c.want)
				}
				if round == 0 {
					first = b.last()
				} else if b.last() != first {
					t.Errorf("the same request is other bytes:\n%s\n%s", first, b.last())
				}
				if !has(b.did(), gateway.DidAddress) {
					t.Errorf("round %d: did %v", round, b.did())
				}
			}
			got := upstream.Requests()
			if n := len(got[len(got)-1].Fetched); n != 1 {
				t.Errorf("%d were fetched", n)
			}
			// From another dialect too.
			from, body := "/v1/messages", `{"model":"`+c.service+`","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+png+`"}}]}]}`
			if c.service == "messages" {
				from, body = "/v1/chat/completions", `{"model":"messages","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+png+`"}}]}]}`
			}
			if status, said := b.post(from, body); status != 200 || !has(b.did(), gateway.DidAddress) {
				t.Errorf("translated: %d %s, did %v", status, said, b.did())
			}
			// What cannot be fetched stays unchanged, and the log says nothing else.
			shut.Store(true)
			calls := b.calls()
			if status, said := b.post(c.path, c.body); status != 200 || has(b.did(), gateway.DidAddress) || b.calls()-calls != 2 || len(b.last()) < 64<<10 {
				t.Errorf("healed: %d %s, did %v in %d calls", status, said, b.did(), b.calls()-calls)
			}
		})
	}
}

// TestMediaAddress opens the addresses sent to a service, and no others.
func TestMediaAddress(t *testing.T) {
	t.Parallel()
	if app.MediaAddress([]byte("k"), "", nil) != nil {
		t.Error("there are addresses without a base")
	}
	key := []byte("k")
	b := newBench(t, setup{key: key})
	info, err := b.blobs.Put(apptest.Context(t), strings.NewReader("\x89PNG\r\n\x1a\n of another owner"), 0)
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.blobs.Put(apptest.Context(t), strings.NewReader("another"), 0)
	if err != nil {
		t.Fatal(err)
	}
	m := artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: "image/png"}
	api := apptest.As(httpapi.Guard(httpapi.New(b.app, httpapi.Options{})))
	get := func(address string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequestWithContext(apptest.Context(t), http.MethodGet, address, nil))
		return w
	}
	const base = "https://artel.example/api/v1/files/tool_results"
	address := app.MediaAddress(key, base, nil)(m)
	if w := get(address); w.Code != 200 || w.Header().Get("Content-Type") != "image/png" || w.Body.Len() != int(info.Size) {
		t.Errorf("%s: %d %v", address, w.Code, w.Header())
	}
	_, sig, _ := strings.Cut(address, "?")
	for what, address := range map[string]string{
		"other bytes":        base + "/" + other.Digest.Hex() + "?" + sig,
		"no signature":       base + "/" + info.Digest.Hex(),
		"another key":        app.MediaAddress([]byte("l"), base, nil)(m),
		"of long ago":        app.MediaAddress(key, base, func() time.Time { return time.Now().Add(-49 * time.Hour) })(m),
		"in an owner's name": strings.Replace(address, "..", ".bG9jYWw.", 1),
	} {
		if w := get(address); w.Code != 403 && w.Code != 404 {
			t.Errorf("%s: %d", what, w.Code)
		}
	}
	day := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	at := func(h time.Duration) string {
		return app.MediaAddress(key, base, func() time.Time { return day.Add(h) })(m)
	}
	if at(0) != at(24*time.Hour-time.Second) || at(0) == at(24*time.Hour) {
		t.Error("an address is not the same for a day")
	}
}
