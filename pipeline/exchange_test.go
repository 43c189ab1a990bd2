// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
)

// resultsIn returns the messages of a request in short: "u", "a", "s" and the
// calls and results with their ids; "!" follows the result of an interrupted call.
func resultsIn(ms []model.Message) string {
	var words []string
	for _, m := range ms {
		word := string(m.Role)[:1]
		for _, p := range m.Parts {
			switch p := p.(type) {
			case artel.ToolCall:
				word += ":" + string(p.ID)
			case artel.ToolResult:
				word += "=" + string(p.CallID)
				if strings.Contains(p.Content, "outcome unknown") && p.IsError {
					word += "!"
				}
			}
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// TestEveryCallHasOneResult: a call without a result is never hidden, and a
// result without a call, or a second one, is never sent. The record says so.
func TestEveryCallHasOneResult(t *testing.T) {
	ask, next := say("m0", "user", "Pay."), say("m9", "user", "And?")
	tests := map[string]struct {
		history []artel.Message
		want    string
		logs    string
	}{
		"no result": {
			[]artel.Message{ask, calls("m1", "x"), next},
			"u a:x t=x! u", "a tool call without a result",
		},
		"some results": {
			[]artel.Message{ask, calls("m1", "x", "y", "z"), answers("m2", "y", "paid"), next},
			"u a:x:y:z t=y t=x!=z! u", "a tool call without a result",
		},
		"two results": {
			[]artel.Message{ask, calls("m1", "x"), answers("m2", "x", "paid"), answers("m3", "x", "paid again"), next},
			"u a:x t=x u", "a tool result without a call of its own",
		},
		"a call twice": {
			[]artel.Message{ask, calls("m1", "x", "x"), answers("m2", "x", "one"), answers("m3", "x", "two"), next},
			"u a:x:x t=x t=x u", "",
		},
		"a late result": {
			[]artel.Message{ask, calls("m1", "x"), say("m2", "user", "Wait."), answers("m3", "x", "paid"), next},
			"u a:x t=x! u u", "a tool call without a result is sent with one that says so; a tool result without a call of its own",
		},
		"no call": {
			[]artel.Message{ask, answers("m2", "x", "paid"), next},
			"u u", "a tool result without a call of its own",
		},
		"muted result": {
			[]artel.Message{ask, calls("m1", "x"), with(answers("m2", "x", "paid"), func(m *artel.Message) { m.Muted = true }), next},
			"u a:x t=x! u", "a tool call without a result",
		},
		"at the end": {
			[]artel.Message{ask, calls("m1", "x")},
			"u a:x t=x!", "a tool call without a result",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := input(service(0), tt.history...)
			off := false
			in.Settings.Agent = []pipeline.Setting{{ID: pipeline.MergeRoles, Enabled: &off}}
			r := build(t, in)
			if got := resultsIn(r.Request.Messages); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			var said []string
			for _, l := range r.Record.Processors[0].Logs {
				said = append(said, l.Message)
			}
			if got := strings.Join(said, "; "); !strings.HasPrefix(got, tt.logs) || tt.logs == "" && got != "" {
				t.Errorf("the record says %q, want %q", got, tt.logs)
			}
		})
	}
}
