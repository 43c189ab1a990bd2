// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	anthropicrules "github.com/artelhq/artel/model/fake/rules/anthropic"
	geminirules "github.com/artelhq/artel/model/fake/rules/gemini"
	chatrules "github.com/artelhq/artel/model/fake/rules/openai"
	responsesrules "github.com/artelhq/artel/model/fake/rules/responses"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/responses"
)

// An answerer is a server half: a request that was read, and its answers.
type answerer struct {
	request *model.Request
	stream  bool
	valid   error
	whole   func(iter.Seq2[model.Delta, error]) (any, error)
	write   func(io.Writer, func() error, iter.Seq2[model.Delta, error]) error
}

func read(r *http.Request) (answerer, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return answerer{}, err
	}
	in := bytes.NewReader(body)
	var o provider.DecodeOptions
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/chat/completions"):
		req, err := openai.Decode(r.Context(), in, o)
		if err != nil {
			return answerer{}, err
		}
		a := openai.Answer{ID: "c1", Model: req.Model, Created: time.Now(), IncludeUsage: true}
		return answerer{req.Neutral(), req.Stream, chatrules.Validate(req, chatrules.Options{}), func(d iter.Seq2[model.Delta, error]) (any, error) { return a.Whole(d) }, a.Stream}, nil
	case strings.HasSuffix(path, "/v1/messages"):
		req, err := anthropic.Decode(r.Context(), in, o)
		if err != nil {
			return answerer{}, err
		}
		a := anthropic.Answer{ID: "m1", Model: req.Model}
		return answerer{req.Neutral(), req.Stream, anthropicrules.Validate(req, anthropicrules.Options{}), func(d iter.Seq2[model.Delta, error]) (any, error) { return a.Whole(d) }, a.Stream}, nil
	case strings.HasSuffix(path, "/responses"):
		req, err := responses.Decode(r.Context(), in, o)
		if err != nil {
			return answerer{}, err
		}
		a := responses.Answer{ID: "resp_1", Model: req.Model, Created: time.Now(), Request: req}
		return answerer{req.Neutral(), req.Stream, responsesrules.Validate(req, responsesrules.Options{}), func(d iter.Seq2[model.Delta, error]) (any, error) { return a.Whole(d) }, a.Stream}, nil
	}
	name, method, ok := gemini.Target(r.URL.Path)
	if !ok {
		return answerer{}, fmt.Errorf("no such path: %s", r.URL.Path)
	}
	req, err := gemini.Decode(r.Context(), in, o)
	if err != nil {
		return answerer{}, err
	}
	a := gemini.Answer{Model: name}
	return answerer{req.Neutral(), method == "streamGenerateContent", geminirules.ValidateJSON(name, body), func(d iter.Seq2[model.Delta, error]) (any, error) { return a.Whole(d) }, a.Stream}, nil
}

// apis speaks all dialects, strictly, and answers with what it was sent.
func apis(w http.ResponseWriter, r *http.Request) {
	a, err := read(r)
	if err == nil {
		err = a.valid
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":%s,"code":400}}`, quoted(err.Error()))
		return
	}
	a.send(w, fake.Echo(r.Context(), a.request))
}

// send writes an answer in the dialect of the request.
func (a answerer) send(w http.ResponseWriter, deltas iter.Seq2[model.Delta, error]) {
	if a.stream {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = a.write(w, http.NewResponseController(w).Flush, deltas)
		return
	}
	v, err := a.whole(deltas)
	if err != nil {
		panic(err)
	}
	body, err := json.Marshal(v)
	if m, ok := v.(interface{ MarshalBody() ([]byte, error) }); ok {
		body, err = m.MarshalBody()
	}
	if raw, ok := v.([]byte); ok {
		body = raw
	}
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// A speech is how requests of a dialect are written.
type speech struct {
	name    model.Dialect
	service string // that speaks it
	path    func(service string, stream bool) string
	header  []string
	body    func(service string, stream bool, content speechContent) string
	end     string // of a stream that is whole; empty: it has no mark
	prelude int    // events of a stream before the answer itself
	fails   string // what an error event begins with
}

type speechContent struct {
	text    string
	picture string // base64 of a PNG; in the result of a tool where tool is set
	tool    string // the text of a tool's result; empty: there is none
}

func speeches() []speech {
	streams := func(stream bool) string {
		if stream {
			return `,"stream":true`
		}
		return ""
	}
	return []speech{
		{
			name: model.OpenAI, service: "chat", end: "data: [DONE]\n\n", fails: `data: {"error":`,
			path: func(string, bool) string { return "/v1/chat/completions" },
			body: func(service string, stream bool, c speechContent) string {
				image := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + c.picture + `"}}`
				messages := `{"role":"user","content":[{"type":"text","text":` + quoted(c.text) + `}`
				if c.picture != "" && c.tool == "" {
					messages += "," + image
				}
				messages += `]}`
				if c.tool != "" {
					messages += `,{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":[{"type":"text","text":` + quoted(c.tool) + `},` + image + `]}`
				}
				return `{"model":"` + service + `","messages":[` + messages + `]` + streams(stream) + `}`
			},
		},
		{
			name: model.Anthropic, service: "messages", prelude: 3, end: "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", fails: "event: error\ndata: {",
			path:   func(string, bool) string { return "/v1/messages" },
			header: []string{"anthropic-version", "2023-06-01", "x-api-key", "k"},
			body: func(service string, stream bool, c speechContent) string {
				image := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + c.picture + `"}}`
				messages := `{"role":"user","content":[{"type":"text","text":` + quoted(c.text) + `}`
				if c.picture != "" && c.tool == "" {
					messages += "," + image
				}
				messages += `]}`
				tools := ""
				if c.tool != "" {
					tools = `,"tools":[{"name":"look","input_schema":{"type":"object"}}]`
					messages += `,{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"look","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text","text":` + quoted(c.tool) + `},` + image + `]}]}`
				}
				return `{"model":"` + service + `","max_tokens":100,"messages":[` + messages + `]` + tools + streams(stream) + `}`
			},
		},
		{
			name: model.OpenAIResponses, service: "responses", prelude: 4, end: "event: response.completed\n", fails: "event: error\n",
			path: func(string, bool) string { return "/v1/responses" },
			body: func(service string, stream bool, c speechContent) string {
				image := `{"type":"input_image","image_url":"data:image/png;base64,` + c.picture + `"}`
				input := `{"role":"user","content":[{"type":"input_text","text":` + quoted(c.text) + `}`
				if c.picture != "" && c.tool == "" {
					input += "," + image
				}
				input += `]}`
				if c.tool != "" {
					input += `,{"type":"function_call","call_id":"call_1","name":"look","arguments":"{}"},{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":` + quoted(c.tool) + `},` + image + `]}`
				}
				return `{"model":"` + service + `","input":[` + input + `]` + streams(stream) + `}`
			},
		},
		{
			name: model.Gemini, service: "gemini", fails: `data: {"error":`,
			path: func(service string, stream bool) string {
				if stream {
					return "/v1beta/models/" + service + ":streamGenerateContent?alt=sse"
				}
				return "/v1beta/models/" + service + ":generateContent"
			},
			header: []string{"x-goog-api-key", "k"},
			body: func(_ string, _ bool, c speechContent) string {
				image := `{"inlineData":{"mimeType":"image/png","data":"` + c.picture + `"}}`
				contents := `{"role":"user","parts":[{"text":` + quoted(c.text) + `}`
				if c.picture != "" && c.tool == "" {
					contents += "," + image
				}
				contents += `]}`
				if c.tool != "" {
					contents += `,{"role":"model","parts":[{"functionCall":{"id":"call_1","name":"look","args":{}},"thoughtSignature":"c2ln"}]},{"role":"user","parts":[{"functionResponse":{"id":"call_1","name":"look","response":{"output":` + quoted(c.tool) + `},"parts":[` + image + `]}}]}`
				}
				return `{"contents":[` + contents + `],"tools":[{"functionDeclarations":[{"name":"look","description":"looks"}]}]}`
			},
		},
	}
}

// TestEveryPair sends a text, a picture and a picture in the result of a tool
// from every dialect to every other, streamed and not.
func TestEveryPair(t *testing.T) {
	b := newBench(t)
	b.upstream = http.HandlerFunc(apis)
	png := picture(8, 9)
	image := fmt.Sprintf("image image/png, %d bytes", len(png))
	for _, in := range speeches() {
		for _, out := range speeches() {
			for _, stream := range []bool{false, true} {
				for name, c := range map[string]speechContent{
					"text": {text: "hello there"}, "picture": {text: "hello there", picture: encoded(png)},
					"result": {text: "hello there", picture: encoded(png), tool: "a chart of numbers"},
				} {
					what := fmt.Sprintf("%s to %s, %s, stream %v", in.name, out.name, name, stream)
					sent := in.body(out.service, stream, c)
					status, body := b.post(in.path(out.service, stream), sent, in.header...)
					said := strings.NewReplacer(`\n`, "", `\"`, `"`).Replace(body)
					if status != 200 || !strings.Contains(said, "hello there") {
						t.Fatalf("%s: %d %s\nsent %s\nit got %s", what, status, body, sent, b.last())
					}
					if c.picture != "" && !strings.Contains(said, image) {
						t.Errorf("%s: the picture is not there: %s\nit got %s", what, body, b.last())
					}
					if c.tool != "" && !strings.Contains(said, "result of call_1: "+c.tool) {
						t.Errorf("%s: the result is not there: %s\nit got %s", what, body, b.last())
					}
					if stream && !strings.Contains(body, in.end) {
						t.Errorf("%s: the end is not there: %s", what, body)
					}
					e := b.entry()
					if e.Inbound != in.name || e.Outbound != out.name || e.Stream != stream || e.Usage.OutputTokens == 0 {
						t.Errorf("%s: entry %+v", what, e)
					}
					if in.name == out.name && in.name != model.OpenAI && len(e.Changes) > 0 {
						t.Errorf("%s: changed %v", what, e.Changes)
					}
					if in.name == model.OpenAI && stream {
						sent = strings.TrimSuffix(sent, "}") + `,"stream_options":{"include_usage":true}}`
					}
					if want := strings.Replace(sent, `"`+out.service+`"`, `"`+map[string]string{"messages": "claude-test", "responses": "gpt-test", "chat": "upstream-model"}[out.service]+`"`, 1); in.name == out.name && len(e.Changes) == 0 && b.last() != want && in.name != model.Gemini {
						t.Errorf("%s: it got %s\nwant %s", what, b.last(), want)
					}
				}
			}
		}
	}
}

// TestEveryError tells errors in the dialect of the client, before an answer and
// inside of one.
func TestEveryError(t *testing.T) {
	b := newBench(t, setup{caller: model.CallerOptions{Attempts: 1}})
	for _, in := range speeches() {
		status, body := b.post(in.path("nothing", false), in.body("nothing", false, speechContent{text: "x"}), in.header...)
		if status != 404 || !strings.Contains(body, "nothing") || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %s", in.name, status, body)
		}
		b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(418)
			_, _ = io.WriteString(w, `{"error":{"message":"short and stout"}}`)
		})
		for _, service := range []string{"chat", "messages", "responses", "gemini"} {
			status, body := b.post(in.path(service, false), in.body(service, false, speechContent{text: "x"}), in.header...)
			if status != 418 || !strings.Contains(body, "short and stout") || !json.Valid([]byte(body)) {
				t.Errorf("%s to %s: %d %s", in.name, service, status, body)
			}
		}
		// The stream of the same dialect is cut after each of its events.
		var whole bytes.Buffer
		b.upstream = http.HandlerFunc(apis)
		_, streamed := b.post(in.path(in.service, true), in.body(in.service, true, speechContent{text: "x"}), in.header...)
		events := strings.SplitAfter(strings.ReplaceAll(streamed, "\r\n", "\n"), "\n\n")
		events = events[:len(events)-1]
		for cut := 1; cut < len(events); cut++ {
			whole.Reset()
			whole.WriteString(strings.Join(events[:cut], ""))
			b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write(whole.Bytes())
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			})
			status, body := b.post(in.path(in.service, true), in.body(in.service, true, speechContent{text: "x"}), in.header...)
			if cut <= in.prelude {
				if status != 502 || !json.Valid([]byte(body)) {
					t.Errorf("%s cut after %d of %d events, before the answer: %d %q", in.name, cut, len(events), status, body)
				}
				continue
			}
			rest, ok := strings.CutPrefix(body, whole.String())
			if status != 200 || !ok || !strings.HasPrefix(rest, in.fails) || in.end != "" && strings.Contains(body, in.end) {
				t.Errorf("%s cut after %d of %d events: %d %q", in.name, cut, len(events), status, rest)
			}
		}
		// And that of another.
		b.answer = func(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
			return func(yield func(model.Delta, error) bool) {
				if yield(model.TextDelta("one"), nil) {
					yield(nil, artel.Errorf(artel.Unavailable, "test", "", "it broke off"))
				}
			}
		}
		_, body = b.post(in.path("other", true), in.body("other", true, speechContent{text: "x"}), in.header...)
		if !strings.Contains(body, in.fails) || !strings.Contains(body, "it broke off") || in.end != "" && strings.Contains(body, in.end) {
			t.Errorf("%s, translated: %s", in.name, body)
		}
	}
}

// TestCounting estimates for every service, and never counts base64 as text.
func TestCounting(t *testing.T) {
	b := newBench(t)
	b.upstream = http.NotFoundHandler()
	png := picture(256, 5)
	for _, in := range speeches() {
		var path string
		switch in.name {
		case model.Anthropic:
			path = "/v1/messages/count_tokens"
		case model.OpenAIResponses:
			path = "/v1/responses/input_tokens"
		case model.Gemini:
			path = "/v1beta/models/%s:countTokens"
		default:
			continue
		}
		for _, service := range []string{"chat", "messages", "gemini", "text"} {
			count := func(c speechContent) int {
				at := path
				if strings.Contains(at, "%s") {
					at = fmt.Sprintf(at, service)
				}
				status, body := b.post(at, in.body(service, false, c), in.header...)
				var n struct {
					Input       int `json:"input_tokens"`
					TotalTokens int
				}
				if err := json.Unmarshal([]byte(body), &n); err != nil || status != 200 {
					t.Fatalf("%s for %s: %d %s", in.name, service, status, body)
				}
				return n.Input + n.TotalTokens
			}
			short, long := count(speechContent{text: "a few words"}), count(speechContent{text: strings.Repeat("a few words more ", 100)})
			with := count(speechContent{text: "a few words", picture: encoded(png)})
			if short < 3 || long < short+300 || with <= short || with > short+2000 || len(encoded(png)) < 10_000 {
				t.Errorf("%s for %s: %d, %d, with a picture of %d characters %d", in.name, service, short, long, len(encoded(png)), with)
			}
		}
	}
}

// TestSignaturesComeBack: what a service signs a call with reaches it again,
// whatever the client's dialect has a place for, and no other service.
func TestSignaturesComeBack(t *testing.T) {
	b := newBench(t)
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"call_1","name":"look","args":{}},"thoughtSignature":"c2lnbmF0dXJl"}]},"finishReason":"STOP"}]}`+"\n\n")
	})
	for _, in := range speeches() {
		if in.name == model.Gemini {
			continue
		}
		if status, body := b.post(in.path("gemini", false), in.body("gemini", false, speechContent{text: "x"}), in.header...); status != 200 || !strings.Contains(body, "call_1") {
			t.Fatalf("%s: %d %s", in.name, status, body)
		}
		turn := in.body("gemini", false, speechContent{text: "x", tool: "result", picture: encoded(picture(8, 1))})
		b.post(in.path("gemini", false), turn, in.header...)
		if !strings.Contains(b.last(), `"thoughtSignature":"c2lnbmF0dXJl"`) {
			t.Errorf("%s: it got %s", in.name, b.last())
		}
		b.post(in.path("messages", false), strings.Replace(turn, `"gemini"`, `"messages"`, 1), in.header...)
		if strings.Contains(b.last(), "c2lnbmF0dXJl") {
			t.Errorf("%s: another got %s", in.name, b.last())
		}
	}
}

// TestForeignReasoning: a client that changes its service keeps its reasoning to
// itself.
func TestForeignReasoning(t *testing.T) {
	b := newBench(t)
	b.upstream = http.HandlerFunc(apis)
	b.answer = thinkingAnswer
	_, body := b.post("/v1/messages", `{"model":"other","max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[{"role":"user","content":"x"}]}`)
	var said struct{ Content json.RawMessage }
	if err := json.Unmarshal([]byte(body), &said); err != nil || !strings.Contains(body, `"signature":"artel.`) {
		t.Fatalf("%v: %s", err, body)
	}
	status, body := b.post("/v1/messages", `{"model":"messages","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":`+string(said.Content)+`},{"role":"user","content":"y"}]}`)
	if want := `{"role":"assistant","content":[{"type":"text","text":"well"}]}`; status != 200 || !strings.Contains(b.last(), want) {
		t.Errorf("%d %s\nit got %s", status, body, b.last())
	}
}
