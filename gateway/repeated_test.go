// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestRepeatedResults: a result that a client sends twice reaches services of other
// dialects once, and a further one with other content as text; the log says so.
func TestRepeatedResults(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream = http.HandlerFunc(apis)
	result := func(text string) string {
		return `{"role":"tool","tool_call_id":"call_1","content":"` + text + `"}`
	}
	body := func(service string, results ...string) string {
		call := `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":"{}"}}]},`
		return `{"model":"` + service + `","messages":[{"role":"user","content":"look"},` + call + strings.Join(results, ",") + `,` + call + result("later") + `]}`
	}
	for _, service := range []string{"messages", "responses", "gemini"} {
		status, got := b.post("/v1/chat/completions", body(service, result("seen"), result("seen"), result("seen")))
		if status != 200 || strings.Count(b.last(), "seen") != 1 || strings.Count(b.last(), "later") != 1 {
			t.Errorf("%s: %d %s, sent %s", service, status, got, b.last())
		}
		if changes := b.entry().Changes; len(changes) != 1 || changes[0].Did != "dropped" || changes[0].Field != "result of tool call call_1" || changes[0].Reason != "too_many" {
			t.Errorf("%s: changes %+v", service, changes)
		}
		status, got = b.post("/v1/chat/completions", body(service, result("seen"), result("other")))
		if status != 200 || !strings.Contains(b.last(), `further result of tool call call_1:\n\nother`) || !has(b.did(), "moved") {
			t.Errorf("%s: %d %s, did %v, sent %s", service, status, got, b.did(), b.last())
		}
	}
	if status, got := b.post("/v1/chat/completions", body("messages", result("seen"), result("seen")), "X-Artel-Strict", "true"); status != 400 || !strings.Contains(got, "call_1") {
		t.Errorf("strict: %d %s", status, got)
	}
}
