// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/gateway"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
)

// TestAliases: a name that no service has reaches the service of the longest pattern
// that matches it; the id of a service comes first; the list of models has the names.
func TestAliases(t *testing.T) {
	one := func(pattern string, id artel.ServiceID) backend.Alias {
		return backend.Alias{Pattern: pattern, Services: []backend.Deployment{{Service: id, Weight: 1}}}
	}
	b := newBench(t, setup{options: backend.Options{Aliases: []backend.Alias{
		one("claude-*", "other"), one("claude-haiku-*", "text"), one("*-mini", "text"), one("a*b*c", "text"), one("fast", "text"), one("chat", "text"),
		one("upstream-model", "text"), one("lost", "nowhere"),
	}}})
	for name, want := range map[string]artel.ServiceID{
		"claude-opus-4-7": "other", "claude-haiku-4-5": "text", "gpt-5-mini": "text", "fast": "text", "aXbYc": "text", "abc": "text",
		"chat":           "chat", // a service
		"upstream-model": "text", // also the model of a service
		"claude-test":    "other",
	} {
		status, body := b.post("/v1/chat/completions", asks(name, ""))
		if e := b.entry(); status != 200 || e.Service != want || e.Model != name {
			t.Errorf("%s: %d from %s, want %s: %s", name, status, e.Service, want, body)
		}
	}
	for _, name := range []string{"acb", "faster", "mini", "lost"} {
		if status, body := b.post("/v1/chat/completions", asks(name, "")); status != 404 {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if _, body := b.get("/v1/models"); !strings.Contains(body, `"id":"fast"`) || strings.Contains(body, "haiku-*") || strings.Contains(body, `"lost"`) {
		t.Errorf("listed: %s", body)
	}
	if status, body := b.get("/v1/models/claude-haiku-4-5"); status != 200 || gjson.Get(body, "id").String() != "claude-haiku-4-5" {
		t.Errorf("%d %s", status, body)
	}
	if status, body := b.post("/v1/messages/count_tokens", `{"model":"claude-haiku-4-5","messages":[{"role":"user","content":"hi"}]}`); status != 200 {
		t.Errorf("tokens: %d %s", status, body)
	}
}

// east and west are two services behind the name team.
func team(weight int) backend.Options {
	return backend.Options{Aliases: []backend.Alias{{Pattern: "team", Services: []backend.Deployment{{Service: "chat", Weight: weight}, {Service: "text", Weight: 1}}}}}
}

// TestWeights: the services behind a name get their shares of conversations, and all
// requests of one conversation reach the same one.
func TestWeights(t *testing.T) {
	b := newBench(t, setup{options: team(3)})
	got := map[artel.ServiceID]int{}
	const n = 200
	for i := range n {
		first := fmt.Sprintf(`{"role":"user","content":"question %d"}`, i)
		b.post("/v1/chat/completions", `{"model":"team","messages":[`+first+`]}`)
		s := b.entry().Service
		got[s]++
		if i%10 > 0 {
			continue
		}
		b.post("/v1/chat/completions", `{"messages":[`+first+`,{"role":"assistant","content":"a"},{"role":"user","content":"more"}],"model":"team"}`)
		if later := b.entry().Service; later != s {
			t.Errorf("conversation %d moved from %s to %s", i, s, later)
		}
	}
	if share := float64(got["chat"]) / n; share < 0.65 || share > 0.85 || got["text"] == 0 {
		t.Errorf("shares %v, want three quarters for the first", got)
	}
	// A picture in the first message does not move the conversation.
	first := `{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + dataURL(picture(8, 1)) + `"}}]}`
	seen := map[artel.ServiceID]bool{}
	for range 8 {
		b.post("/v1/chat/completions", `{"model":"team","messages":[`+first+`]}`)
		seen[b.entry().Service] = true
	}
	if len(seen) != 1 {
		t.Errorf("one conversation reached %v", seen)
	}
}

// TestCooldown: a service that fails is asked once before the next one, not at all
// while it cools down, and again afterwards; if all cool down they are asked.
func TestCooldown(t *testing.T) {
	var at atomic.Int64 // seconds
	var broken atomic.Value
	broken.Store("upstream-model text-model")
	b := newBench(t, setup{options: team(1_000_000), now: func() time.Time { return time.Unix(1_800_000_000+at.Load(), 0) }})
	asked := ""
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		name := gjson.GetBytes(body, "model").String()
		asked += name[:1]
		if strings.Contains(broken.Load().(string), name) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":{"message":"down","type":"server_error"}}`)
			return
		}
		says(completion).ServeHTTP(w, r)
	})
	ask := func(want int, order string) {
		t.Helper()
		asked = ""
		if status, body := b.post("/v1/chat/completions", asks("team", "")); status != want || asked != order {
			t.Errorf("%d after asking %q, want %d after %q: %s", status, asked, want, order, body)
		}
	}
	ask(503, "uttt") // the last one is asked again, as a service alone is
	broken.Store("upstream-model")
	ask(200, "ut")
	if did := b.did(); len(did) != 1 || did[0] != "fell_back" || b.entry().Changes[0].Service != "chat" || b.entry().Changes[0].Reason != "unavailable" {
		t.Errorf("logged %+v", b.entry().Changes)
	}
	ask(200, "ut") // the third failure
	ask(200, "t")
	at.Add(31)
	ask(200, "ut") // one more failure is enough
	ask(200, "t")
	broken.Store("text-model")
	ask(200, "tu") // all others failed
	ask(200, "u")  // an answer ends the cool-down
	broken.Store("upstream-model")
	ask(200, "ut") // and the series of failures
	ask(200, "ut")
}

// TestRetryAfterCools: a service that asks to wait longer than a client may is avoided
// for that time.
func TestRetryAfterCools(t *testing.T) {
	b := newBench(t, setup{services: func(s []model.Service) []model.Service {
		s[0].Fallbacks = []artel.ServiceID{"text"}
		return s
	}})
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.calls() > 1 {
			says(completion).ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"message":"slow down","type":"rate_limit_error"}}`)
	})
	for i, want := range []int{2, 3} {
		status, body := b.post("/v1/chat/completions", asks("chat", ""))
		if status != 200 || b.calls() != want || b.entry().Service != "text" {
			t.Errorf("request %d: %d after %d calls, from %s: %s", i, status, b.calls(), b.entry().Service, body)
		}
	}
}

// TestFallbackForContext: a request that is too long for a service goes to the one for
// long requests; another mistake of the client does not.
func TestFallbackForContext(t *testing.T) {
	b := newBench(t, setup{services: func(s []model.Service) []model.Service {
		s[0].ForContext = []artel.ServiceID{"nowhere", "text", "other"}
		return s
	}})
	const long = `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`
	refusal := long
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, refusal)
	})
	for _, dialect := range []string{"chat", "messages"} {
		for _, stream := range []bool{false, true} {
			path, body := request(dialect, "chat", stream)
			status, got := b.post(path, body)
			if e := b.entry(); status != 200 || e.Service != "other" || len(e.Changes) != 2 || e.Changes[0].Did != "fell_back" || e.Changes[0].Reason != "too_long" || e.Changes[1].Service != "text" {
				t.Errorf("%s, stream %v: %d from %s %+v: %s", dialect, stream, status, e.Service, e.Changes, got)
			}
		}
	}
	refusal = `{"error":{"message":"tools is too short","type":"invalid_request_error","param":"tools","code":null}}`
	if status, body := b.post("/v1/chat/completions", asks("chat", "")); status != 400 || !strings.Contains(body, "too short") {
		t.Errorf("%d %s", status, body)
	}
	refusal = long
	if status, body := b.post("/v1/chat/completions", asks("text", "")); status != 400 || !strings.Contains(body, "context_length_exceeded") {
		t.Errorf("without another service: %d %s", status, body)
	}
}

// TestFallbackForFilter: a request that a content filter refuses goes to the service
// for that, whether the refusal is an error or an answer without content.
func TestFallbackForFilter(t *testing.T) {
	const (
		azure  = `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400}}`
		chat   = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"content_filter"}],"usage":{"prompt_tokens":1,"completion_tokens":0,"total_tokens":1}}`
		claude = `{"id":"m","type":"message","role":"assistant","model":"m","content":[],"stop_reason":"refusal","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":0}}`
		google = `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":1,"totalTokenCount":1}}`
		resp   = `{"id":"r","object":"response","created_at":1,"status":"incomplete","incomplete_details":{"reason":"content_filter"},"model":"m","output":[],"usage":{"input_tokens":1,"output_tokens":0,"total_tokens":1}}`
	)
	b := newBench(t, setup{services: func(s []model.Service) []model.Service {
		for i := range s {
			if s[i].ID != "other" && s[i].ID != "text" {
				s[i].ForFilter = []artel.ServiceID{"other"}
			}
		}
		return s
	}})
	answer, code := "", 200
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, answer)
	})
	for _, c := range []struct {
		client, service, answer string
		code                    int
	}{
		{"chat", "chat", azure, 400},
		{"messages", "chat", azure, 400},
		{"chat", "chat", chat, 200},
		{"messages", "messages", claude, 200},
		{"gemini", "gemini", google, 200},
		{"chat", "gemini", google, 200},
		{"responses", "responses", resp, 200},
	} {
		answer, code = c.answer, c.code
		if c.client != c.service && c.code == 200 { // a translated call is streamed
			answer = "data: " + c.answer + "\r\n\r\n"
		}
		path, body := request(c.client, c.service, false)
		status, got := b.post(path, body)
		if e := b.entry(); status != 200 || e.Service != "other" || !strings.Contains(got, "text: hi") || len(e.Changes) == 0 || e.Changes[0].Reason != "filtered" {
			t.Errorf("%s to %s: %d from %s %+v: %s", c.client, c.service, status, e.Service, e.Changes, got)
		}
	}
	// Without another service the client gets the answer as it is.
	answer, code = chat, 200
	if status, body := b.post("/v1/chat/completions", asks("text", "")); status != 200 || body != chat {
		t.Errorf("%d %s", status, body)
	}
}

// TestFallbackForFilterInStreams: a stream that a content filter ends before its answer
// begins goes to the service for that, forwarded or translated; one that has begun is
// passed on.
func TestFallbackForFilterInStreams(t *testing.T) {
	b := newBench(t, setup{services: func(s []model.Service) []model.Service {
		for i := range s {
			if s[i].ID != "other" {
				s[i].ForFilter = []artel.ServiceID{"other"}
			}
		}
		return s
	}})
	answer := ""
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, answer)
	})
	event := func(data ...string) string {
		var out strings.Builder
		for _, d := range data {
			if name := gjson.Get(d, "type").String(); name != "" {
				out.WriteString("event: " + name + "\n")
			}
			out.WriteString("data: " + d + "\n\n")
		}
		return out.String()
	}
	const (
		role     = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`
		said     = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"half"},"finish_reason":null}]}`
		filtered = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}`
		called   = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"t","type":"function","function":{"name":"f","arguments":"{\"a\":\"half\"}"}}]},"finish_reason":"content_filter"}]}`

		start   = `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}`
		block   = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
		closed  = `{"type":"content_block_stop","index":0}`
		delta   = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"half"}}`
		refused = `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":null},"usage":{"output_tokens":1}}`
		because = `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":null,"stop_details":{"type":"refusal","category":"cyber","explanation":"not this"}},"usage":{"output_tokens":1}}`
		stop    = `{"type":"message_stop"}`

		created = `{"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","created_at":1,"status":"in_progress","model":"m","output":[]}}`
		item    = `{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"message","id":"i","status":"in_progress","role":"assistant","content":[]}}`
		part    = `{"type":"response.content_part.added","sequence_number":2,"item_id":"i","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`
		text    = `{"type":"response.output_text.delta","sequence_number":3,"item_id":"i","output_index":0,"content_index":0,"delta":"half"}`
		partial = `{"type":"response.incomplete","sequence_number":4,"response":{"id":"r","object":"response","created_at":1,"status":"incomplete","incomplete_details":{"reason":"content_filter"},"model":"m","output":[{"type":"message","id":"i","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"half","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}`
		textEnd = `{"type":"response.output_text.done","sequence_number":3,"item_id":"i","output_index":0,"content_index":0,"text":""}`
		partEnd = `{"type":"response.content_part.done","sequence_number":4,"item_id":"i","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`
		itemEnd = `{"type":"response.output_item.done","sequence_number":5,"output_index":0,"item":{"type":"message","id":"i","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"","annotations":[]}]}}`
		none    = `{"type":"response.incomplete","sequence_number":3,"response":{"id":"r","object":"response","created_at":1,"status":"incomplete","incomplete_details":{"reason":"content_filter"},"model":"m","output":[],"usage":{"input_tokens":1,"output_tokens":0,"total_tokens":1}}}`

		blocked = `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":1,"totalTokenCount":1}}`
		begun   = `{"candidates":[{"content":{"role":"model","parts":[{"text":"half"}]},"index":0}]}`
		unsafe  = `{"candidates":[{"finishReason":"SAFETY","index":0}],"usageMetadata":{"promptTokenCount":1,"totalTokenCount":1}}`
	)
	done := "data: [DONE]\n\n"
	for _, c := range []struct {
		name, service, answer string
		begun                 bool
	}{
		{"chat", "chat", event(role, filtered) + done, false},
		{"chat, begun", "chat", event(role, said, filtered) + done, true},
		{"chat, a call", "chat", event(called) + done, true},
		{"messages", "messages", event(start, refused, stop), false},
		{"messages, an empty block", "messages", event(start, block, closed, refused, stop), false},
		{"messages, a reason", "messages", event(start, because, stop), false},
		{"messages, begun", "messages", event(start, block, delta, delta, closed, refused, stop), true},
		{"responses", "responses", event(created, none), false},
		{"responses, an empty item", "responses", event(created, item, part, none), false},
		{"responses, an empty item that ends", "responses", event(created, item, part, textEnd, partEnd, itemEnd, none), false},
		{"responses, begun", "responses", event(created, item, part, text, partial), true},
		{"gemini", "gemini", event(blocked), false},
		{"gemini, without parts", "gemini", event(unsafe), false},
		{"gemini, begun", "gemini", event(begun, unsafe), true},
	} {
		answer = c.answer
		for _, client := range []string{"chat", "messages", "responses", "gemini"} {
			path, body := request(client, c.service, true)
			status, got := b.post(path, body)
			e := b.entry()
			want := "other"
			if c.begun {
				want = c.service
			}
			if status != 200 || string(e.Service) != want || strings.Contains(got, "half") != c.begun || strings.Contains(got, "text: hi") == c.begun {
				t.Errorf("%s to %s: %d from %s: %s", client, c.name, status, e.Service, got)
			}
			fell := slices.ContainsFunc(e.Changes, func(c gateway.Change) bool { return c.Did == gateway.DidFallBack && c.Reason == gateway.ReasonFiltered })
			if fell == c.begun {
				t.Errorf("%s to %s: %+v", client, c.name, e.Changes)
			}
		}
	}
}
