// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel/gateway"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
)

// withMore returns a request of [request] with more members.
func withMore(dialect, service, more string, stream bool) (path, body string) {
	path, body = request(dialect, service, stream)
	return path, strings.TrimSuffix(body, "}") + "," + more + "}"
}

// reasoners are services whose models reason.
func reasoners(all []model.Service) []model.Service {
	for i, name := range map[int]string{0: "gpt-5.2", 3: "claude-sonnet-4-5", 4: "gpt-5.2", 5: "gemini-2.5-pro"} {
		all[i].Model = name
	}
	return all
}

// TestReasoning: how much a model reasons passes every translation.
func TestReasoning(t *testing.T) {
	b := newBench(t, setup{services: reasoners})
	b.respond(fake.Echo)
	asked := map[string][2]string{ // high and none, in each dialect
		"chat":      {`"reasoning_effort":"high"`, `"reasoning_effort":"none"`},
		"responses": {`"reasoning":{"effort":"high","summary":"auto"}`, `"reasoning":{"effort":"none"}`},
		"messages":  {`"thinking":{"type":"enabled","budget_tokens":16384}`, `"thinking":{"type":"disabled"}`},
		"gemini":    {`"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":24576}}`, `"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}`},
	}
	sent := map[string]func(body string) [2]string{ // what is read as high, and as none
		"chat":      func(body string) [2]string { e := gjson.Get(body, "reasoning_effort").String(); return [2]string{e, e} },
		"responses": func(body string) [2]string { e := gjson.Get(body, "reasoning.effort").String(); return [2]string{e, e} },
		"messages": func(body string) [2]string {
			if n := gjson.Get(body, "thinking.budget_tokens").Int(); n > 10_000 {
				return [2]string{"high", ""}
			}
			return [2]string{"", map[bool]string{true: "some", false: "none"}[gjson.Get(body, "thinking").Exists()]}
		},
		"gemini": func(body string) [2]string {
			switch n := gjson.Get(body, "generationConfig.thinkingConfig.thinkingBudget"); {
			case n.Int() > 10_000:
				return [2]string{"high", ""}
			case n.Int() == 128: // the least of this model
				return [2]string{"", "none"}
			}
			return [2]string{}
		},
	}
	for dialect := range dialectNames() {
		for service := range dialectNames() {
			if dialect == service {
				continue
			}
			for i, effort := range []string{"high", "none"} {
				path, body := withMore(dialect, service, asked[dialect][i], false)
				body = strings.Replace(body, `"max_tokens":100`, `"max_tokens":32000`, 1)
				status, got := b.post(path, body)
				if status != 200 {
					t.Errorf("%s to %s, %s: %d %s", dialect, service, effort, status, got)
				} else if read := sent[service](b.last())[i]; read != effort {
					t.Errorf("%s to %s, %s: %q in %s", dialect, service, effort, read, b.last())
				}
			}
		}
	}
}

// TestDrops: a field that the service does not take is in the log, or refused if the
// client wants that.
func TestDrops(t *testing.T) {
	b := newBench(t)
	b.respond(fake.Echo)
	for dialect, c := range map[string]struct{ service, more, field string }{
		"chat":      {"messages", `"logit_bias":{"7":1}`, "logit_bias"},
		"responses": {"gemini", `"prompt_cache_key":"k"`, "prompt_cache_key"},
		"messages":  {"chat", `"context_management":{"edits":[]}`, "context_management"},
		"gemini":    {"responses", `"generationConfig":{"topK":4,"speechConfig":{"languageCode":"de"}}`, "generationConfig.speechConfig top_k"},
	} {
		for _, stream := range []bool{false, true} {
			path, body := withMore(dialect, c.service, c.more, stream)
			if status, got := b.post(path, body); status != 200 {
				t.Errorf("%s: %d %s", dialect, status, got)
			}
			var fields []string
			for _, change := range b.entry().Changes {
				if change.Did == gateway.DidDrop && change.Reason != "" {
					fields = append(fields, change.Field)
				}
			}
			if got := strings.Join(fields, " "); got != c.field {
				t.Errorf("%s: dropped %q, want %q", dialect, got, c.field)
			}
			before := b.calls()
			status, got := b.post(path, body, gateway.StrictHeader, "true")
			if first, _, _ := strings.Cut(c.field, " "); status != 400 || !strings.Contains(got, first) || b.calls() != before {
				t.Errorf("%s, strict: %d %s", dialect, status, got)
			}
			path, body = request(dialect, c.service, stream)
			if status, got := b.post(path, body, gateway.StrictHeader, "true"); status != 200 || len(b.entry().Changes) > 0 {
				t.Errorf("%s without the field, strict: %d %s %v", dialect, status, got, b.entry().Changes)
			}
		}
	}
}

// TestThoughtsAreAskedFor: the first block of an answer is its text unless the client
// asked to read the model's thoughts.
func TestThoughtsAreAskedFor(t *testing.T) {
	b := newBench(t)
	b.answer = thinkingAnswer
	for more, want := range map[string]string{``: "text", `,"thinking":{"type":"disabled"}`: "text", `,"thinking":{"type":"enabled","budget_tokens":2000}`: "thinking"} {
		_, got := b.post("/v1/messages", `{"model":"other","max_tokens":9000,"messages":[{"role":"user","content":"x"}]`+more+`}`)
		if first := gjson.Get(got, "content.0.type").String(); first != want {
			t.Errorf("%s: the first block is %q in %s", more, first, got)
		}
	}
	for more, want := range map[string]bool{``: false, `,"generationConfig":{"thinkingConfig":{"includeThoughts":true}}`: true} {
		_, got := b.post("/v1beta/models/other:generateContent", `{"contents":[{"role":"user","parts":[{"text":"x"}]}]`+more+`}`)
		if first := gjson.Get(got, "candidates.0.content.parts.0.thought").Bool(); first != want {
			t.Errorf("%s: %s", more, got)
		}
	}
}

// TestRefusedField: a parameter that a model refuses is left out, which the log says,
// and after two such requests it is not sent again.
func TestRefusedField(t *testing.T) {
	b := newBench(t)
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // of a test
		if gjson.GetBytes(body, "temperature").Exists() {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}`)
			return
		}
		fake.OpenAI(fake.Options{Open: true}).ServeHTTP(w, withBody(r, body))
	})
	path, body := withMore("messages", "chat", `"temperature":0.2`, false)
	for i, calls := range []int{2, 4, 5} {
		if status, got := b.post(path, body); status != 200 || b.calls() != calls {
			t.Errorf("%d: %d %s after %d calls", i, status, got, b.calls())
		}
		changes := b.entry().Changes
		if len(changes) != 1 || changes[0].Did != gateway.DidDrop || changes[0].Field != "temperature" {
			t.Errorf("%d: the log has %+v", i, changes)
		}
	}
	if status, got := b.post(path, body, gateway.StrictHeader, "true"); status != 400 || b.calls() != 5 {
		t.Errorf("strict: %d %s", status, got)
	}
}

func withBody(r *http.Request, body []byte) *http.Request {
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}
