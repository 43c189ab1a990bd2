// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

func TestCallStatesAreBounded(t *testing.T) {
	s := newCallStates()
	key := func(n int) callKey { return callKey{client: "o", call: artel.CallID(fmt.Sprint(n))} }
	for n := range maxCallStates + 10 {
		s.put(&callState{key: key(n), name: "look", service: "s", opaque: json.RawMessage("1")})
	}
	if len(s.of) != maxCallStates || s.bytes != maxCallStates {
		t.Errorf("%d states of %d bytes", len(s.of), s.bytes)
	}
	if _, ok := s.get(key(9)); ok {
		t.Error("the oldest is still there")
	}
	s.put(&callState{key: key(maxCallStates), name: "look", service: "s", opaque: make(json.RawMessage, maxCallStateBytes)})
	if _, ok := s.get(key(maxCallStates)); !ok || len(s.of) != 1 {
		t.Errorf("after a large one there are %d", len(s.of))
	}
	if _, ok := s.get(callKey{client: "other", call: key(maxCallStates).call}); ok {
		t.Error("another owner gets it too")
	}
}

// TestReasoningStaysInItsConversation: some services give calls of different
// conversations one id. Reasoning comes back only to the conversation that it is of,
// and not at all if it is not certain before which call it was.
func TestReasoningStaysInItsConversation(t *testing.T) {
	b := &Backend{calls: newCallStates()}
	in := func(conversation string) *Request {
		return &Request{b: b, owner: "o", Beginning: func() string { return conversation }}
	}
	call := func(arguments string) artel.ToolCall {
		return artel.ToolCall{ID: "call_0", Name: "look", Arguments: json.RawMessage(arguments)}
	}
	thought := func(text string) artel.Part {
		return artel.Reasoning{Text: text, Opaque: json.RawMessage(`"signed"`), Service: "s"}
	}
	sent := func(conversation, arguments string) string {
		r := &model.Request{Service: model.Service{ID: "s"}, Messages: []model.Message{{Parts: artel.Parts{call(arguments)}}}}
		in(conversation).RestoreCalls(t.Context(), r)
		if p, ok := r.Messages[0].Parts[0].(artel.Reasoning); ok {
			return p.Text
		}
		return ""
	}
	in("a").RememberCall(t.Context(), "s", call(`{"p":1}`), thought("of a"))
	in("b").RememberCall(t.Context(), "s", call(`{"p":2}`))
	in("c").RememberCall(t.Context(), "s", call(`{"p":1}`), thought("of c"))
	for _, c := range []struct{ conversation, arguments, want string }{
		{"a", `{"p":1}`, "of a"}, {"a", `{ "p": 1 }`, "of a"}, {"b", `{"p":2}`, ""}, {"b", `{"p":1}`, ""}, {"c", `{"p":1}`, "of c"}, {"c", `{"p":2}`, ""},
	} {
		if got := sent(c.conversation, c.arguments); got != c.want {
			t.Errorf("%s, %s: got %q, want %q", c.conversation, c.arguments, got, c.want)
		}
	}
	in("a").RememberCall(t.Context(), "s", call(`{"p":1}`), thought("another"))
	in("c").RememberCall(t.Context(), "s", call(`{"p":1}`))
	for _, conversation := range []string{"a", "c"} {
		if got := sent(conversation, `{"p":1}`); got != "" {
			t.Errorf("%s has two such calls, and got %q", conversation, got)
		}
	}
}
