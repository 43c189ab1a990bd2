// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type bench struct {
	*httptest.Server
	fake *fake.Server
}

func serve(t *testing.T, o fake.Options) bench {
	t.Helper()
	return serving(t, fake.OpenAI(o))
}

// serving serves f for the length of a test.
func serving(t *testing.T, f *fake.Server) bench {
	t.Helper()
	srv := httptest.NewServer(f)
	t.Cleanup(func() {
		srv.Client().CloseIdleConnections()
		srv.Close()
	})
	return bench{srv, f}
}

func (b bench) do(t *testing.T, method, path, key, body string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := b.Client().Do(req)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, string(out) + err.Error(), resp.Header
	}
	return resp.StatusCode, string(out), resp.Header
}

const hello = `{"model":"fake-1","messages":[{"role":"user","content":"hello"}]}`

func TestAnswers(t *testing.T) {
	t.Parallel()
	b := serve(t, fake.Options{Key: "k", Now: func() time.Time { return time.Unix(7, 0) }})
	status, body, _ := b.do(t, "POST", "/v1/chat/completions", "k", hello)
	var resp openai.Response
	if err := json.Unmarshal([]byte(body), &resp); err != nil || status != 200 {
		t.Fatal(status, body, err)
	}
	if got := resp.Choices[0].Message.Content.String(); got != "received 1 messages and 0 tools for fake-1\n1 user: text: hello\n" {
		t.Errorf("got %q", got)
	}
	status, body, h := b.do(t, "POST", "/v1/chat/completions", "k", strings.Replace(hello, "{", `{"stream":true,"stream_options":{"include_usage":true},`, 1))
	if status != 200 || !strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") || !strings.HasSuffix(body, "data: [DONE]\n\n") ||
		!strings.Contains(body, `"object":"chat.completion.chunk"`) || !strings.Contains(body, `"choices":[],"usage":{"prompt_tokens":2`) {
		t.Errorf("got %d %s", status, body)
	}
	if status, body, _ = b.do(t, "GET", "/v1/models", "k", ""); status != 200 || !strings.Contains(body, `"id":"fake-1","object":"model"`) {
		t.Errorf("models: %d %s", status, body)
	}
	if status, _, _ = b.do(t, "GET", "/models/fake-1", "k", ""); status != 200 {
		t.Errorf("model: %d", status)
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	b := serve(t, fake.Options{Key: "k", Models: []string{"m"}})
	for name, c := range map[string]struct {
		method, path, key, body string
		status                  int
		want                    string
	}{
		"no key":        {"POST", "/v1/chat/completions", "", hello, 401, "You didn't provide an API key"},
		"wrong key":     {"POST", "/v1/chat/completions", "secret", hello, 401, `"code":"invalid_api_key"`},
		"no such model": {"POST", "/v1/chat/completions", "k", hello, 404, `"code":"model_not_found"`},
		"image in tool": {"POST", "/v1/chat/completions", "k", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`, 400, "Image URLs are only allowed for messages with role 'user'"},
		"no JSON":       {"POST", "/v1/chat/completions", "k", "x", 400, "could not parse"},
		"no such path":  {"GET", "/v1/nope", "k", "", 404, "Invalid URL (GET /v1/nope)"},
		"model":         {"GET", "/v1/models/other", "k", "", 404, "does not exist"},
		"behaviour":     {"POST", "/_fake/behave", "", `{"mode":"sulk"}`, 400, "unknown mode"},
		"behaviour's":   {"POST", "/_fake/behave", "", `{"mod":"hang"}`, 400, "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body, _ := b.do(t, c.method, c.path, c.key, c.body)
			var e struct{ Error openai.APIError }
			if err := json.Unmarshal([]byte(body), &e); err != nil || status != c.status || !strings.Contains(body, c.want) || e.Error.Type == "" {
				t.Errorf("got %d %s", status, body)
			}
			if c.key == "secret" && strings.Contains(body, "secret") {
				t.Error("the key shows")
			}
		})
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	b := serve(t, fake.Options{Open: true})
	payload := []byte("not really a picture")
	enc := base64.StdEncoding.EncodeToString(payload)
	for range 102 {
		b.do(t, "POST", "/v1/chat/completions", "secret", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+enc+`"}}]}]}`)
	}
	_, body, _ := b.do(t, "GET", "/_fake/requests", "", "")
	var list []fake.Request
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 100 || len(b.fake.Requests()) != 100 || list[1].Media[0].Size != int64(len(payload)) || list[1].Status != 200 ||
		list[1].Path != "/v1/chat/completions" || list[1].Header.Get("User-Agent") == "" || strings.Contains(body, "secret") {
		t.Errorf("got %+v", list)
	}
	if strings.Contains(body, enc) || !strings.Contains(body, string(list[0].Media[0].Digest)+", 20 bytes") {
		t.Errorf("the record is %s", body)
	}
}

// ask calls the fake with the product's own client.
func ask(ctx context.Context, b bench, blobs blob.Store, parts ...artel.Part) (text string, err error) {
	p := openai.New(openai.Options{Client: b.Client(), Blobs: blobs})
	r := &model.Request{
		Service:  model.Service{ID: "s", BaseURL: b.URL + "/v1", Model: "fake-1", APIKey: "k"},
		Messages: []model.Message{{Role: artel.RoleUser, Parts: parts}},
	}
	for d, e := range p.Generate(ctx, r) {
		if t, ok := d.(model.TextDelta); ok {
			text += string(t)
		}
		err = e
	}
	return text, err
}

func TestMisbehaves(t *testing.T) {
	t.Parallel()
	b := serve(t, fake.Options{Behavior: fake.Behavior{Mode: fake.RateLimit, RetryAfter: 3, Times: 1}})
	_, err := ask(t.Context(), b, nil, artel.Text{Text: "hi"})
	if c, ok := errors.AsType[*model.CallError](err); !ok || c.Status != 429 || c.RetryAfter != 3*time.Second {
		t.Errorf("rate limit: got %v", err)
	}
	if _, err := ask(t.Context(), b, nil, artel.Text{Text: "hi"}); err != nil {
		t.Errorf("after one time: %v", err)
	}
	for mode, want := range map[fake.Mode]string{
		fake.ServerError: "had an error", fake.Overloaded: "overloaded", fake.HalfStream: "broke off", fake.StreamError: "Overloaded", fake.Garbage: "not valid JSON", fake.WebPage: "web page",
	} {
		if status, body, _ := b.do(t, "POST", "/_fake/behave", "", fmt.Sprintf(`{"mode":%q}`, mode)); status != 200 {
			t.Fatal(body)
		}
		text, err := ask(t.Context(), b, nil, artel.Text{Text: "hi"})
		if artel.KindOf(err) != artel.Unavailable || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", mode, err)
		}
		if (mode == fake.HalfStream || mode == fake.StreamError) && text == "" {
			t.Errorf("%s said nothing", mode)
		}
		if status, _, _ := b.do(t, "POST", "/v1/chat/completions", "k", hello); mode == fake.HalfStream && status != 0 {
			t.Errorf("half an answer without a stream: status %d", status)
		}
	}
	if err := b.fake.Behave(fake.Behavior{Mode: fake.Hang}); err != nil {
		t.Fatal(err)
	}
	before := len(b.fake.Requests())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := ask(ctx, b, nil, artel.Text{Text: "hi"})
		ended <- err
	}()
	for len(b.fake.Requests()) == before {
		runtime.Gosched()
	}
	cancel()
	if err := <-ended; artel.KindOf(err) != artel.Canceled {
		t.Errorf("hang: got %v", err)
	}
}

func TestResponder(t *testing.T) {
	t.Parallel()
	var got *model.Request
	b := serve(t, fake.Options{Responder: func(_ context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
		got = r
		return func(yield func(model.Delta, error) bool) {
			yield(nil, artel.Errorf(artel.Internal, "x", "", "no idea"))
		}
	}})
	if status, body, _ := b.do(t, "POST", "/v1/chat/completions", "k", strings.Replace(hello, `"hello"`, `[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}}]`, 1)); status != 500 || !strings.Contains(body, "no idea") {
		t.Errorf("got %d %s", status, body)
	}
	m, ok := got.Messages[0].Parts[0].(artel.Media)
	if !ok || m.Size != 3 || m.Filename != "a.pdf" || m.Kind != artel.KindDocument || !m.Ref.IsBlob() {
		t.Errorf("got %+v", got.Messages)
	}
	if _, err := ask(t.Context(), b, nil, artel.Text{Text: "x"}); err == nil || !strings.Contains(err.Error(), "no idea") {
		t.Errorf("in a stream: got %v", err)
	}
}

// TestLargeImage sends 50 MiB from a client to the fake and watches what both
// allocate together.
func TestLargeImage(t *testing.T) {
	b := serve(t, fake.Options{})
	store := blob.NewMemory()
	info, err := store.Put(t.Context(), bytes.NewReader(make([]byte, 50<<20)), 0)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text, err := ask(t.Context(), b, store, artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: "image/png", Size: info.Size})
	runtime.ReadMemStats(&after)
	if err != nil || !strings.Contains(text, fmt.Sprintf("image image/png, %d bytes, %s", info.Size, info.Digest)) {
		t.Errorf("got %q, %v", text, err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 2<<20 {
		t.Errorf("50 MiB cost %d bytes of allocation", grown)
	}
}
