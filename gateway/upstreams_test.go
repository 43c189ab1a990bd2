// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
)

// dialectNames are the dialects of [request], and the services that speak them.
func dialectNames() map[string]string {
	return map[string]string{"chat": "chat", "responses": "responses", "messages": "messages", "gemini": "gemini"}
}

// respond makes all services strict stand-ins whose answers come from responder.
func (b *bench) respond(responder fake.Responder) {
	o := fake.Options{Open: true, Responder: responder, Blobs: b.blobs}
	mux := http.NewServeMux()
	openAI := fake.OpenAI(o)
	mux.Handle("/v1/chat/completions", openAI)
	mux.Handle("/v1/responses", openAI)
	mux.Handle("/v1/messages", fake.Anthropic(o))
	mux.Handle("/v1beta/", fake.Gemini(o))
	b.mu.Lock()
	b.upstream = mux
	b.mu.Unlock()
}

// callsFirst is a model that calls the first tool.
func callsFirst(_ context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		_ = yield(model.CallDelta{ID: "call_new", Name: r.Tools[0].Name, Arguments: []byte(`{"city":"Bonn"}`)}, nil) &&
			yield(model.Finish{Reason: model.StopTools}, nil)
	}
}

// toolRequest returns a request of a dialect with one tool of that name, which the
// history has called and which must be called.
func toolRequest(dialect, service, name string, stream bool) (path, body string) {
	path, body = request(dialect, service, stream)
	const schema = `{"type":"object","properties":{"city":{"type":"string"}}}`
	n := quoted(name)
	content := map[string]string{"chat": "messages", "messages": "messages", "responses": "input", "gemini": "contents"}[dialect]
	head, _, _ := strings.Cut(body, `"`+content+`":`)
	switch dialect {
	case "messages":
		return path, head + `"tools":[{"name":` + n + `,"input_schema":` + schema + `}],"tool_choice":{"type":"tool","name":` + n + `},"messages":[{"role":"user","content":"hi"},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":` + n + `,"input":{"city":"Ulm"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"rain"}]}]}`
	case "responses":
		return path, head + `"tools":[{"type":"function","name":` + n + `,"parameters":` + schema + `}],"tool_choice":{"type":"function","name":` + n + `},"input":[{"role":"user","content":"hi"},` +
			`{"type":"function_call","call_id":"call_1","name":` + n + `,"arguments":"{\"city\":\"Ulm\"}"},{"type":"function_call_output","call_id":"call_1","output":"rain"}]}`
	case "gemini":
		return path, head + `"tools":[{"functionDeclarations":[{"name":` + n + `,"parametersJsonSchema":` + schema + `}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":[` + n + `]}},"contents":[{"role":"user","parts":[{"text":"hi"}]},` +
			`{"role":"model","parts":[{"functionCall":{"id":"call_1","name":` + n + `,"args":{"city":"Ulm"}}}]},{"role":"user","parts":[{"functionResponse":{"id":"call_1","name":` + n + `,"response":{"output":"rain"}}}]}]}`
	}
	return path, head + `"tools":[{"type":"function","function":{"name":` + n + `,"parameters":` + schema + `}}],"tool_choice":{"type":"function","function":{"name":` + n + `}},"messages":[{"role":"user","content":"hi"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":` + n + `,"arguments":"{\"city\":\"Ulm\"}"}}]},{"role":"tool","tool_call_id":"call_1","content":"rain"}]}`
}

// TestToolNames: tools have any names; each service gets names that its API takes,
// and the client reads its own.
func TestToolNames(t *testing.T) {
	b := newBench(t)
	b.respond(callsFirst)
	for _, name := range []string{"mcp__" + strings.Repeat("long_", 19), "files.read:all", "2nd", "\u5de5\u5177"} {
		for dialect := range dialectNames() {
			for _, service := range dialectNames() {
				if dialect == service {
					continue // forwarded: the service judges its own client
				}
				for _, stream := range []bool{false, true} {
					path, body := toolRequest(dialect, service, name, stream)
					status, got := b.post(path, body)
					if status != 200 {
						t.Errorf("%s to %s, %q: %d %s", dialect, service, name, status, got)
						continue
					}
					if !strings.Contains(got, `"name":`+quoted(name)) {
						t.Errorf("%s to %s: no call of %q in %s", dialect, service, name, got)
					}
				}
			}
		}
	}
}

// thinkingAnswer is a model that thinks before it answers.
func thinkingAnswer(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		_ = yield(model.ReasoningDelta("hm"), nil) && yield(model.ReasoningDone{}, nil) && yield(model.TextDelta("well"), nil) && yield(model.Finish{Reason: model.StopEnd}, nil)
	}
}
