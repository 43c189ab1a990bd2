// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// codexRequest returns a request of the Codex CLI 0.169 with shortened texts, for a
// service.
func codexRequest(t *testing.T, name, service string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/codex-" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(b), gjson.GetBytes(b, "model").Raw, quoted(service), 1)
}

// calling answers with calls, in pieces of their arguments.
func calling(calls ...model.CallDelta) func(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			for _, c := range calls {
				args := string(c.Arguments)
				for i := range args {
					if !yield(model.CallPiece{ID: c.ID, Name: c.Name, Text: args[i : i+1]}, nil) {
						return
					}
				}
				if !yield(c, nil) {
					return
				}
			}
			yield(model.Finish{Reason: model.StopTools}, nil)
		}
	}
}

// outputOf returns the items of the answer of Responses, streamed or not.
func outputOf(t *testing.T, body string) []gjson.Result {
	t.Helper()
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && strings.Contains(line, `"type":"response.completed"`) {
			return gjson.Get(data, "response.output").Array()
		}
	}
	return gjson.Get(body, "output").Array()
}

// TestCodexTools: every tool that Codex runs is offered to services of other
// dialects, and calls come back as the items that Codex understands, streamed or not.
func TestCodexTools(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tools []string                   // among those offered
		args  map[string]json.RawMessage // of a call of each
		items map[string]string          // what must be in the item of the call
		drops []string
	}{
		"unknown-model": {
			tools: []string{"exec_command", "multi_agent_v1__spawn_agent", "mcp__tt__shot"},
			items: map[string]string{
				"exec_command":                `{"type":"function_call","name":"exec_command","arguments":"{\"x\": \"1\"}"}`,
				"multi_agent_v1__spawn_agent": `{"type":"function_call","name":"spawn_agent","namespace":"multi_agent_v1","arguments":"{\"x\": \"1\"}"}`,
				"mcp__tt__shot":               `{"type":"function_call","name":"shot","namespace":"mcp__tt","arguments":"{\"x\": \"1\"}"}`,
			},
			drops: []string{"tools.web_search"},
		},
		"gpt-5.5": { // a search has found a tool
			tools: []string{"exec_command", "apply_patch", "tool_search", "mcp__tt__shot"},
			args:  map[string]json.RawMessage{"apply_patch": json.RawMessage(`{ "input" : "*** Begin Patch\n" }`), "tool_search": json.RawMessage(`{"query":"shot"}`)},
			items: map[string]string{
				"apply_patch":   `{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch\n"}`,
				"tool_search":   `{"type":"tool_search_call","execution":"client","arguments":{"query":"shot"}}`,
				"mcp__tt__shot": `{"type":"function_call","name":"shot","namespace":"mcp__tt","arguments":"{\"x\": \"1\"}"}`,
			},
			drops: []string{"tools.web_search"},
		},
		"gpt-6": {
			tools: []string{"exec", "wait", "clock__sleep", "collaboration__spawn_agent"},
			args:  map[string]json.RawMessage{"exec": json.RawMessage(`{"input":"text(1)"}`)},
			items: map[string]string{
				"exec":         `{"type":"custom_tool_call","name":"exec","namespace":"functions","input":"text(1)"}`,
				"clock__sleep": `{"type":"function_call","name":"sleep","namespace":"clock","arguments":"{\"x\": \"1\"}"}`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.upstream = http.HandlerFunc(apis)
			for _, stream := range []bool{true, false} {
				for tool, want := range c.items {
					args := c.args[tool]
					if args == nil {
						args = json.RawMessage(`{"x": "1"}`)
					}
					b.answer = calling(model.CallDelta{ID: "call_1", Name: tool, Arguments: args})
					body := codexRequest(t, name, "other")
					if !stream {
						body = strings.Replace(body, `"stream": true`, `"stream": false`, 1)
					}
					status, got := b.post("/v1/responses", body)
					if status != 200 {
						t.Fatalf("%d %s", status, got)
					}
					items := outputOf(t, got)
					if len(items) != 1 {
						t.Fatalf("%s: %s", tool, got)
					}
					if id := items[0].Get("call_id").String(); id != "call_1" || items[0].Get("status").String() != "completed" || items[0].Get("id").String() == "" {
						t.Errorf("%s: item %s", tool, items[0])
					}
					if fields := without(items[0], "id", "call_id", "status"); fields != sorted(want) {
						t.Errorf("%s, stream %v: item\n%s, want\n%s", tool, stream, fields, want)
					}
				}
			}
			asked := b.asked[len(b.asked)-1]
			var names []string
			for _, tool := range asked.Tools {
				if slices.Contains(names, tool.Name) {
					t.Errorf("%s is offered twice", tool.Name)
				}
				names = append(names, tool.Name)
				if (tool.Name == "exec" || tool.Name == "apply_patch") && !strings.Contains(tool.Description, "start: ") {
					t.Errorf("%s lost its grammar: %s", tool.Name, tool.Description)
				}
			}
			if !has(names, c.tools...) {
				t.Errorf("offered %v", names)
			}
			for _, m := range asked.Messages { // calls of the history have the names of the tools
				for _, call := range artel.CallsOf(m.Parts) {
					if !slices.Contains(names, call.Name) {
						t.Errorf("the history calls %s, which is no tool", call.Name)
					}
				}
			}
			var drops []string
			for _, d := range b.entry().Changes {
				if d.Did == "dropped" {
					drops = append(drops, d.Field)
				}
			}
			if !has(drops, c.drops...) || slices.Contains(drops, "tools.custom") {
				t.Errorf("dropped %v", drops)
			}
			for _, service := range []string{"chat", "messages", "gemini", "responses"} {
				status, got := b.post("/v1/responses", codexRequest(t, name, service))
				if status != 200 {
					t.Fatalf("%s: %d %s", service, status, got)
				}
				if service == "responses" {
					continue // it is forwarded
				}
				for _, tool := range c.tools {
					if !strings.Contains(b.last(), `"name":`+quoted(tool)) {
						t.Errorf("%s: %s is not offered: %s", service, tool, b.last())
					}
				}
			}
		})
	}
}

// TestLongNamesOfNamespaces: a name that is too long for a service with its namespace
// is shortened there, and the answer has the names of the client.
func TestLongNamesOfNamespaces(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	namespace, name := "mcp__"+strings.Repeat("server_", 7), strings.Repeat("tool_", 10)
	var sent string
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // the bench has read it
		sent = gjson.GetBytes(body, "tools.0.function.name").String()
		_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":`+quoted(sent)+`,"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)
	})
	status, got := b.post("/v1/responses", `{"model":"chat","tools":[{"type":"namespace","name":"`+namespace+`","tools":[{"type":"function","name":"`+name+`","parameters":{"type":"object"}}]}],"input":"go"}`)
	item := gjson.Get(got, "output.0")
	if status != 200 || len(sent) > 64 || item.Get("namespace").String() != namespace || item.Get("name").String() != name {
		t.Errorf("%d %s, sent %q", status, got, sent)
	}
}

// without returns an object without some members, its keys sorted.
func without(v gjson.Result, keys ...string) string {
	var m map[string]any
	if json.Unmarshal([]byte(v.Raw), &m) != nil {
		return v.Raw
	}
	for _, k := range keys {
		delete(m, k)
	}
	b, _ := json.Marshal(m) // it was JSON
	return string(b)
}

func sorted(object string) string { return without(gjson.Parse(object)) }
