// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
)

// withOthers gives the first service models that do not chat, and a price.
func withOthers(s []model.Service) []model.Service {
	s[0].OtherModels = []string{"text-embedding-*", "whisper-1"}
	s[0].Capabilities.Price = model.Fact[model.Price]{Value: model.Price{Input: 2, Output: 10}, Source: model.FromOperator}
	return s
}

// TestPass: requests that are not for answers reach the service of their model as the
// client wrote them, but for its name; so does the answer, of any type.
func TestPass(t *testing.T) {
	b := newBench(t, setup{services: withOthers, options: backend.Options{Aliases: []backend.Alias{{Pattern: "voice", Services: []backend.Deployment{{Service: "chat", Weight: 1}}}}}})
	answer, kind, at := "", "application/json", ""
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at = r.Method + " " + r.URL.String()
		w.Header().Set("Content-Type", kind)
		w.Header().Set("X-Request-Id", "req_1")
		_, _ = io.WriteString(w, answer)
	})
	answer = `{"object":"list","data":[{"index":0,"embedding":[0.10]}],"model":"text-embedding-3-small","usage":{"prompt_tokens":8,"total_tokens":8}}`
	in := `{ "input": ["a", "b"], "model":"text-embedding-3-small", "dimensions":1e2 }`
	status, body := b.post("/v1/embeddings?x=1&key=mine", in)
	if status != 200 || body != answer || b.last() != in || at != "POST /v1/embeddings?x=1" {
		t.Errorf("%d %s; sent %s to %s", status, body, b.last(), at)
	}
	if h := b.headers[0]; h.Get("Authorization") != "Bearer sk-upstream-key" || h.Get("Content-Type") == "" {
		t.Errorf("header %v", h)
	}
	if e := b.entry(); e.Service != "chat" || e.Model != "text-embedding-3-small" || e.Usage.InputTokens != 8 || e.Usage.Cost.USD != 16e-6 || e.Endpoint != "/v1/embeddings" || e.Tries != 1 || e.BytesOut != int64(len(answer)) {
		t.Errorf("entry %+v", e)
	}
	// By the id of a service, the name of its model, and an alias.
	for name, want := range map[string]string{"chat": "upstream-model", "upstream-model": "upstream-model", "voice": "upstream-model", "text": "text-model"} {
		if b.post("/v1/completions", `{"model":"`+name+`","prompt":"x"}`); gjson.Get(b.last(), "model").String() != want {
			t.Errorf("%s: sent %s", name, b.last())
		}
	}
	// Bytes and streams pass, too.
	kind, answer = "audio/mpeg", "\xff\xfb\x00sound"
	if status, body := b.post("/v1/audio/speech", `{"model":"chat","input":"hi","voice":"alloy"}`); status != 200 || body != answer {
		t.Errorf("%d %q", status, body)
	}
	kind, answer = "text/event-stream", "data: {\"choices\":[{\"text\":\"a\"}],\"usage\":null}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n"
	if status, body := b.post("/v1/completions", `{"model":"chat","prompt":"x","stream":true}`); status != 200 || body != answer || b.entry().Usage.OutputTokens != 4 || !b.entry().Stream {
		t.Errorf("%d %q %+v", status, body, b.entry())
	}
	kind, answer = "application/json", `{"created":1,"data":[],"usage":{"input_tokens":5,"output_tokens":6,"total_tokens":11}}`
	if b.post("/v1/images/generations", `{"model":"chat","prompt":"x"}`); b.entry().Usage.OutputTokens != 6 {
		t.Errorf("%+v", b.entry())
	}
	// Without a model, the first service of the dialect.
	if status, _ := b.post("/v1/moderations", `{"input":"x"}`); status != 200 || b.entry().Service != "chat" || b.last() != `{"input":"x"}` {
		t.Errorf("%d: sent %s to %s", status, b.last(), b.entry().Service)
	}
}

// TestPassForm: a form keeps its fields and files, in their order.
func TestPassForm(t *testing.T) {
	b := newBench(t, setup{services: withOthers})
	var names, got []string
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names, got = nil, nil
		parts, err := r.MultipartReader()
		if err != nil {
			t.Error(err)
			return
		}
		for {
			p, err := parts.NextPart()
			if err != nil {
				break
			}
			text, err := io.ReadAll(p)
			if err != nil {
				t.Error(err)
			}
			names, got = append(names, p.FormName()+":"+p.FileName()+":"+p.Header.Get("Content-Type")), append(got, string(text))
		}
		says(`{"text":"hello"}`).ServeHTTP(w, r)
	})
	sound := strings.Repeat("\x00\xff\r\n--", 50_000)
	var in bytes.Buffer
	form := multipart.NewWriter(&in)
	file, err := form.CreateFormFile("file", `so"und.wav`)
	if err == nil {
		_, err = io.WriteString(file, sound)
	}
	for _, f := range [][2]string{{"model", "chat"}, {"timestamp_granularities[]", "word"}, {"timestamp_granularities[]", "segment"}} {
		if err == nil {
			err = form.WriteField(f[0], f[1])
		}
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	status, body := b.post("/v1/audio/transcriptions", in.String(), "Content-Type", form.FormDataContentType())
	if status != 200 || body != `{"text":"hello"}` || len(got) != 4 || got[0] != sound || got[1] != "upstream-model" || got[2] != "word" || got[3] != "segment" ||
		names[0] != `file:so"und.wav:application/octet-stream` || names[3] != "timestamp_granularities[]::" {
		t.Errorf("%d %s: %q", status, body, names)
	}
	// The model may be one of the endpoint that does not chat.
	other := strings.Replace(in.String(), "\r\nchat\r\n", "\r\nwhisper-1\r\n", 1)
	if status, body := b.post("/v1/audio/transcriptions", other, "Content-Type", form.FormDataContentType()); status != 200 || got[1] != "whisper-1" {
		t.Errorf("%d %s: %q", status, body, names)
	}
	if status, body := b.post("/v1/audio/transcriptions", in.String()[:in.Len()/2], "Content-Type", form.FormDataContentType()); status != 400 || b.calls() != 2 {
		t.Errorf("a form that is cut off: %d %s", status, body)
	}
}

// TestPassRefused: what a service does not have is a 404 in the client's dialect, and
// its other errors pass as they are.
func TestPassRefused(t *testing.T) {
	b := newBench(t, setup{services: withOthers})
	for _, c := range []struct{ path, body, says string }{
		{"/v1/embeddings", `{"model":"messages","input":"x"}`, "The service messages has no /v1/embeddings"},
		{"/v1/embeddings", `{"model":"gemini","input":"x"}`, "dialect gemini"},
		{"/v1/embeddings", `{"model":"nothing","input":"x"}`, "`nothing` does not exist"},
		{"/v1/images/nothing", `{"model":"chat"}`, "Invalid URL"},
		{"/v1/batches/../x", `{}`, "Invalid URL"},
	} {
		status, body := b.post(c.path, c.body)
		if message, _ := errorOf(t, body); status != 404 || !strings.Contains(message, c.says) || b.calls() != 0 {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, body)
		}
	}
	if status, body := b.post("/v1/embeddings", `{"model":`); status != 400 || b.calls() != 0 {
		t.Errorf("%d %s", status, body)
	}
	const refusal = `{"error":{"message":"no embeddings here","type":"invalid_request_error","param":null,"code":"unknown_url"}}`
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, refusal)
	})
	if status, body := b.post("/v1/embeddings", `{"model":"chat","input":"x"}`); status != 404 || body != refusal || b.entry().Status != 404 {
		t.Errorf("%d %s", status, body)
	}
	b.upstream = http.NotFoundHandler()
	if status, body := b.post("/v1/rerank", `{"model":"chat","query":"x","documents":[]}`); status != 404 || !strings.Contains(body, `"error"`) {
		t.Errorf("%d %s", status, body)
	}
}

// TestPassBatches: batches, and files for them, belong to the service that a header
// names; a batch is begun once.
func TestPassBatches(t *testing.T) {
	b := newBench(t, setup{services: func(s []model.Service) []model.Service {
		s = withOthers(s)
		s[2].Fallbacks = []artel.ServiceID{"chat"} // of text
		return s
	}})
	at, code := "", 200
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at = r.Method + " " + r.URL.String()
		w.WriteHeader(code)
		_, _ = io.WriteString(w, `{"id":"batch_1"}`)
	})
	for _, c := range []struct{ method, path, service, want string }{
		{"POST", "/v1/batches", "text", "POST /v1/batches"},
		{"GET", "/v1/batches?limit=2&after=batch_0", "", "GET /v1/batches?after=batch_0&limit=2"},
		{"GET", "/v1/batches/batch_1", "text", "GET /v1/batches/batch_1"},
		{"POST", "/v1/batches/batch_1/cancel", "text", "POST /v1/batches/batch_1/cancel"},
		{"GET", "/v1/files/file-1/content", "text", "GET /v1/files/file-1/content"},
		{"GET", "/v1/messages/batches/b/results", "", "GET /v1/messages/batches/b/results"},
		{"DELETE", "/v1/messages/batches/b", "messages", "DELETE /v1/messages/batches/b"},
	} {
		body := ""
		if c.method == "POST" {
			body = `{"input_file_id":"file-1","model":"as it is"}`
		}
		at = ""
		status, got := b.ask(c.method, c.path, body, "X-Artel-Service", c.service)
		if status != 200 || got != `{"id":"batch_1"}` || at != c.want || body != "" && b.last() != body {
			t.Errorf("%s %s: %d %s after %q", c.method, c.path, status, got, at)
		}
	}
	if status, body := b.ask("GET", "/v1/files/file-1", ""); status != 404 || strings.Contains(body, "batch_1") {
		t.Errorf("without the header a file is ours: %d %s", status, body)
	}
	before := b.calls()
	code = http.StatusInternalServerError
	if b.ask("POST", "/v1/batches", `{}`, "X-Artel-Service", "text"); b.calls() != before+1 {
		t.Errorf("a batch was begun %d times", b.calls()-before)
	}
	if status, body := b.ask("GET", "/v1/batches", "", "X-Artel-Service", "nothing"); status != 404 || !strings.Contains(body, "nothing") {
		t.Errorf("%d %s", status, body)
	}
}

// TestPassWithKey: a key cannot pass requests to services that it may not use.
func TestPassWithKey(t *testing.T) {
	b := newBench(t, setup{services: withOthers, options: backend.Options{Keys: []backend.Key{{Name: "a", Secret: "sk-a", Services: []artel.ServiceID{"text"}}}}})
	b.upstream = says(`{"data":[]}`)
	for _, c := range []struct {
		model, service string
		want           int
	}{{"text", "", 200}, {"chat", "", 404}, {"whisper-1", "", 404}, {"any", "chat", 404}, {"any", "text", 200}} {
		status, body := b.ask("POST", "/v1/embeddings", `{"model":"`+c.model+`","input":"x"}`, "Authorization", "Bearer sk-a", "X-Artel-Service", c.service)
		if status != c.want {
			t.Errorf("%+v: %d %s", c, status, body)
		}
	}
	if status, _ := b.ask("POST", "/v1/embeddings", `{"model":"text","input":"x"}`); status != 401 {
		t.Errorf("without a key: %d", status)
	}
}
