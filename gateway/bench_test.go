// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/gateway"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/internal/fetch/fetchtest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/responses"
	"github.com/artelhq/artel/store/rows/rowstest"
)

// A bench is a gateway before two services: "chat", which speaks the Chat
// Completions dialect and is played by upstream, and "other", which speaks
// another and is played by a function.
type bench struct {
	t        *testing.T
	url      string
	handler  http.Handler
	client   *http.Client // of the gateway
	app      *app.App
	blobs    blob.Store
	registry *model.Registry
	upstream http.Handler
	untapped bool // nothing of requests is kept
	answer   func(context.Context, *model.Request) iter.Seq2[model.Delta, error]

	mu       sync.Mutex
	sent     [][]byte // bodies that the service got
	headers  []http.Header
	asked    []*model.Request // that the other got
	entries  []gateway.Entry
	finished chan struct{}
}

// Generate implements [model.Provider] for the other service.
func (b *bench) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	b.mu.Lock()
	b.asked = append(b.asked, r)
	b.mu.Unlock()
	return b.answer(ctx, r)
}

// sees is what a service takes whose model sees and reads PDF.
func sees() model.Capabilities {
	c := model.TextOnly()
	c.Input = model.Fact[[]artel.Capability]{Value: []artel.Capability{artel.CanText, artel.CanVision, artel.CanFile}, Source: model.FromOperator}
	return c
}

type setup struct {
	options  backend.Options
	services func([]model.Service) []model.Service
	caller   model.CallerOptions
	blobs    blob.Store
	held     bool // services hold files
	key      []byte
	storage  int64 // of a user
	now      func() time.Time
	bubble   bool                     // the bench is in a synctest bubble; it has no URL
	address  func(artel.Media) string // where services fetch media
}

func newBench(t *testing.T, setups ...setup) *bench {
	t.Helper()
	db := rowstest.Open(t)
	var s setup
	if len(setups) > 0 {
		s = setups[0]
	}
	if s.blobs == nil {
		s.blobs = blob.NewMemory()
	}
	b := &bench{t: t, client: http.DefaultClient, blobs: s.blobs, answer: fake.Echo, finished: make(chan struct{}, 10_000)}
	b.upstream = fake.OpenAI(fake.Options{Open: true})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	t.Cleanup(client.CloseIdleConnections)
	var up *httptest.Server
	if s.bubble {
		up, client = fetchtest.Serve(t, http.HandlerFunc(b.tap))
	} else {
		up = httptest.NewServer(http.HandlerFunc(b.tap))
		t.Cleanup(up.Close)
	}
	services := []model.Service{
		{ID: "chat", Dialect: model.OpenAI, BaseURL: up.URL + "/v1", Model: "upstream-model", APIKey: "sk-upstream-key", Capabilities: sees()},
		{ID: "other", Dialect: model.Demo, BaseURL: up.URL, Model: "other-model", Capabilities: sees()},
		{ID: "text", Dialect: model.OpenAI, BaseURL: up.URL + "/v1", Model: "text-model", Capabilities: model.TextOnly()},
		{ID: "messages", Dialect: model.Anthropic, BaseURL: up.URL, Model: "claude-test", APIKey: "sk-upstream-key", Capabilities: sees()},
		{ID: "responses", Dialect: model.OpenAIResponses, BaseURL: up.URL + "/v1", Model: "gpt-test", APIKey: "sk-upstream-key", Capabilities: sees()},
		{ID: "gemini", Dialect: model.Gemini, BaseURL: up.URL, Model: "gemini-3-test", APIKey: "sk-upstream-key", Capabilities: sees()},
	}
	for i := range services[3:] {
		services[3+i].Capabilities.ToolImage = model.Fact[bool]{Value: true, Source: model.FromDialect}
		services[3+i].Capabilities.ToolFile = model.Fact[bool]{Value: true, Source: model.FromDialect}
	}
	services[1].Capabilities.ToolImage = model.Fact[bool]{Value: true, Source: model.FromDialect}
	if s.services != nil {
		services = s.services(services)
	}
	s.caller.Backoff = time.Millisecond
	b.registry = model.NewRegistry(services, "chat")
	var held *provider.Uploads
	if s.held {
		held = provider.NewUploads(provider.UploadsOptions{Address: s.address})
	}
	providers := map[model.Dialect]model.Provider{
		model.OpenAI:          openai.New(openai.Options{Client: client, Blobs: b.blobs, Uploads: held}),
		model.Anthropic:       anthropic.New(anthropic.Options{Client: client, Blobs: b.blobs, Uploads: held}),
		model.OpenAIResponses: responses.New(responses.Options{Client: client, Blobs: b.blobs, Uploads: held}),
		model.Gemini:          gemini.New(gemini.Options{Client: client, Blobs: b.blobs, Uploads: held}),
		model.Demo:            b,
	}
	log := slog.New(slog.DiscardHandler)
	config := app.Config{
		Store: db, Blobs: b.blobs, Notifier: event.NewNotifier(), Services: b.registry,
		Providers: providers, Web: client,
		Options: app.Options{Log: log, SpoolDir: t.TempDir(), Caller: s.caller, Now: s.now},
	}
	config.Files.Key = s.key
	config.Options.Artifacts.Quota = s.storage
	b.app = apptest.Open(t, config)
	forwarders := map[model.Dialect]provider.Forwarder{}
	for d, p := range providers {
		if f, ok := p.(provider.Forwarder); ok {
			forwarders[d] = f
		}
	}
	b.handler = apptest.As(gateway.New(b.app, gateway.Options{
		Forwarders: forwarders, Log: log, Backend: s.options,
		OnRequest: func(ctx context.Context, e gateway.Entry) {
			b.app.GatewayLog.Add(ctx, e)
			b.mu.Lock()
			b.entries = append(b.entries, e)
			b.mu.Unlock()
			b.finished <- struct{}{}
		},
	}))
	if s.bubble {
		return b
	}
	g := httptest.NewServer(b.handler)
	t.Cleanup(g.Close)
	b.url = g.URL
	return b
}

func (b *bench) tap(w http.ResponseWriter, r *http.Request) {
	if b.untapped {
		b.upstream.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	b.mu.Lock()
	b.sent, b.headers = append(b.sent, body), append(b.headers, r.Header)
	up := b.upstream
	b.mu.Unlock()
	if r.ContentLength != int64(len(body)) || r.Header.Get("Content-Length") == "" && r.ContentLength < 0 {
		b.t.Errorf("the request has Content-Length %d and %d bytes", r.ContentLength, len(body))
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	up.ServeHTTP(w, r)
}

// post sends a request and returns the answer's status and body.
func (b *bench) post(path, body string, header ...string) (int, string) {
	b.t.Helper()
	resp := b.send(apptest.Context(b.t), path, body, header...)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatalf("the answer broke off: %v after %q", err, got)
	}
	<-b.finished
	return resp.StatusCode, string(got)
}

func (b *bench) send(ctx context.Context, path, body string, header ...string) *http.Response {
	b.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp
}

// last is the body that the service got last.
func (b *bench) last() string {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.sent) == 0 {
		b.t.Fatal("the service was not asked")
	}
	return string(b.sent[len(b.sent)-1])
}

func (b *bench) calls() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.sent)
}

// entry is the last of the log.
func (b *bench) entry() gateway.Entry {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.entries) == 0 {
		b.t.Fatal("no entry was logged")
	}
	return b.entries[len(b.entries)-1]
}

// did are the changes of the last entry.
func (b *bench) did() []string {
	var out []string
	for _, c := range b.entry().Changes {
		out = append(out, c.Did)
	}
	return out
}

// picture is a PNG of some size, other for each n.
func picture(side int, n uint8) []byte { return pictureOf(side, side, n) }

func pictureOf(width, height int, n uint8) []byte {
	img := image.NewGray(image.Rect(0, 0, width, height))
	noise := uint32(n)
	for i := range img.Pix {
		noise = noise*1664525 + 1013904223
		img.Pix[i] = uint8(noise >> 24)
	}
	img.SetGray(0, 0, color.Gray{n})
	var out bytes.Buffer
	_ = png.Encode(&out, img) // to memory
	return out.Bytes()
}

func encoded(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func dataURL(b []byte) string { return "data:image/png;base64," + encoded(b) }

func quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string
	return strings.TrimSpace(b.String())
}

// asks is a request of one user message.
func asks(service string, more string) string {
	return `{"model":"` + service + `","messages":[{"role":"user","content":"hi"}]` + more + `}`
}

// toolTurn is a request in which a tool was called with some results.
func toolTurn(service string, contents ...string) string {
	var calls, results []string
	for i, c := range contents {
		id := "call_" + strconv.Itoa(i+1)
		calls = append(calls, `{"id":"`+id+`","type":"function","function":{"name":"look","arguments":"{}"}}`)
		results = append(results, `{"role":"tool","tool_call_id":"`+id+`","content":`+c+`}`)
	}
	return `{"model":"` + service + `","messages":[{"role":"user","content":"look"},{"role":"assistant","content":null,"tool_calls":[` + strings.Join(calls, ",") + `]},` +
		strings.Join(results, ",") + `]}`
}

func errorOf(t *testing.T, body string) (message, code string) {
	t.Helper()
	var e struct {
		Error struct {
			Message, Type string
			Code          *string
		}
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error.Message == "" || e.Error.Type == "" {
		t.Fatalf("no error of the dialect: %v: %s", err, body)
	}
	if e.Error.Code != nil {
		code = *e.Error.Code
	}
	return e.Error.Message, code
}

// has reports whether all of want are in got, as often as they are in want.
func has(got []string, want ...string) bool {
	for _, w := range want {
		i := slices.Index(got, w)
		if i < 0 {
			return false
		}
		got = slices.Delete(slices.Clone(got), i, i+1)
	}
	return true
}

// completion is an answer that is not streamed.
const completion = `{"id":"x1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"ok","x":[1.0]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`

// says is a service that takes everything and answers with body.
func says(body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	})
}
