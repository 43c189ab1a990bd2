// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
)

// TestNotForThisModel: what another service thought, and what people are told
// of tool results, is in no request and changes none.
func TestNotForThisModel(t *testing.T) {
	build := func(reasoning artel.Parts, r artel.ToolResult, c artel.ToolCall) pipeline.Result {
		t.Helper()
		r.CallID, r.Content = "c", "result"
		c.ID, c.Name = "c", "look"
		calls := append(slices.Clone(reasoning), c)
		in := pipeline.Input{
			Service: model.Service{ID: "mine", Dialect: model.OpenAI, Model: "m", Capabilities: model.TextOnly()},
			History: []artel.Message{
				{ID: "1", Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "hello"}}},
				{ID: "2", Role: artel.RoleAssistant, Parts: calls},
				{ID: "3", Role: artel.RoleTool, Parts: artel.Parts{r}},
				{ID: "4", Role: artel.RoleAssistant, Parts: append(slices.Clone(reasoning), artel.Reasoning{Text: "broken off", Service: "mine"})},
				{ID: "5", Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "and?"}}},
			},
			Now: time.Unix(1, 0),
		}
		out, err := builtIn(t).Build(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	plain := build(nil, artel.ToolResult{}, artel.ToolCall{})
	told := build(
		artel.Parts{artel.Reasoning{Text: "a secret of theirs", Service: "theirs"}, artel.Reasoning{Text: "nobody's"}},
		artel.ToolResult{Millis: 7, Metadata: map[string]any{"content_type": "text"}},
		artel.ToolCall{Opaque: json.RawMessage(`{"a":"a signature of theirs"}`), Service: "theirs"},
	)
	if diff := cmp.Diff(plain.Request, told.Request); diff != "" {
		t.Errorf("the request changes:\n%s", diff)
	}
	if plain.Record.RequestHash != told.Record.RequestHash || plain.Record.Tokens.Total != told.Record.Tokens.Total {
		t.Errorf("the record changes: %+v, %+v", plain.Record.Tokens, told.Record.Tokens)
	}
	for _, m := range plain.Request.Messages {
		if m.Role == artel.RoleAssistant && len(m.Parts) != 1 {
			t.Errorf("sent: %+v", m.Parts)
		}
	}
	for name, own := range map[string]pipeline.Result{
		"thought": build(artel.Parts{artel.Reasoning{Text: "mine", Service: "mine"}}, artel.ToolResult{}, artel.ToolCall{}),
		"keeps":   build(nil, artel.ToolResult{}, artel.ToolCall{Opaque: json.RawMessage(`{"a":1}`), Service: "mine"}),
	} {
		if cmp.Equal(plain.Request, own.Request) {
			t.Errorf("what the service itself %s is gone", name)
		}
	}
}
