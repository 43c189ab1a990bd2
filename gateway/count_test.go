// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestCallsTeachTheRatio: what services report of requests corrects how those of
// theirs are counted, forwarded or translated; short ones say nothing.
func TestCallsTeachTheRatio(t *testing.T) {
	long := strings.Repeat("the quick brown fox jumps over it. ", 600)
	for _, c := range []struct {
		path, text string
		learns     bool
	}{
		{"/v1/chat/completions", long, true},
		{"/v1/messages", long, true},
		{"/v1/chat/completions", "hi", false},
	} {
		b := newBench(t)
		b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"ok"}}],"usage":{"prompt_tokens":6000,"completion_tokens":1,"total_tokens":6001}}`)
		})
		status, body := b.post(c.path, `{"model":"chat","max_tokens":9,"messages":[{"role":"user","content":`+quoted(c.text)+`}]}`)
		b.entry()
		s, _ := b.registry.Lookup("chat")
		got := s.Capabilities.TokenRatio.Value
		if status != 200 || c.learns != (got > 1.1 && got < 1.5) || !c.learns && got != 0 {
			t.Errorf("%s with %d bytes: %d %s: the ratio is %v, learnt: want %v", c.path, len(c.text), status, body, got, c.learns)
		}
	}
}
