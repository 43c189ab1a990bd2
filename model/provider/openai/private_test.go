// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/providertest"
)

// TestSignedCalls: what a server keeps with its calls comes back to it, and to
// no other service.
func TestSignedCalls(t *testing.T) {
	t.Parallel()
	const signature = `{"google":{"thought_signature":"CrICAdHtim827fQ"}}`
	var bodies [][]byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies = append(bodies, b)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream(
			`{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":"{}"},"extra_content":`+signature+`}]}}`,
			`{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"look","arguments":"{}"},"extra_content":null}]}}`,
			`{"delta":{},"finish_reason":"tool_calls"}`,
		)+done)
	}))
	defer srv.Close()
	defer srv.Client().CloseIdleConnections()
	p := openai.New(openai.Options{Client: srv.Client()})
	service := model.Service{ID: "gemini", Dialect: model.OpenAI, BaseURL: srv.URL, Model: "m", Capabilities: model.TextOnly()}
	history := []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "look"}}}}
	var said artel.Parts
	for d, err := range p.Generate(t.Context(), &model.Request{Service: service, Messages: history}) {
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := d.(model.CallDelta); ok {
			said = append(said, artel.ToolCall(c))
		}
	}
	want := artel.Parts{
		artel.ToolCall{ID: "a", Name: "look", Arguments: json.RawMessage("{}"), Opaque: json.RawMessage(signature), Service: "gemini"},
		artel.ToolCall{ID: "b", Name: "look", Arguments: json.RawMessage("{}")},
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Fatal(diff)
	}
	history = append(history, model.Message{Role: artel.RoleAssistant, Parts: said})
	other := service
	other.ID = "another"
	for i, s := range []model.Service{service, other} {
		for _, err := range p.Generate(t.Context(), &model.Request{Service: s, Messages: history}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		sent := bodies[i+1]
		if signed := bytes.Count(sent, []byte(`"extra_content":`+signature)); signed != 1-i || bytes.Count(sent, []byte("extra_content")) != 1-i {
			t.Errorf("%s is sent %s", s.ID, sent)
		}
	}
}

// TestWireHoldsNothingForPeople: neither what people are told of a tool result
// nor what a model thought changes a byte of the request.
func TestWireHoldsNothingForPeople(t *testing.T) {
	t.Parallel()
	body := func(thought artel.Parts, r artel.ToolResult) string {
		t.Helper()
		r.CallID, r.Content = "a", "seen"
		said := append(thought, artel.Text{Text: "I look."}, artel.ToolCall{ID: "a", Name: "look"})
		return providertest.Encoded(t, openai.Encode, &model.Request{
			Service: model.Service{ID: "mine", Dialect: model.OpenAI, Model: "m", Capabilities: model.TextOnly()},
			Messages: []model.Message{
				{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "look"}}},
				{Role: artel.RoleAssistant, Parts: said},
				{Role: artel.RoleTool, Parts: artel.Parts{r}},
			},
		}, blob.NewMemory())
	}
	plain := body(nil, artel.ToolResult{})
	told := body(
		artel.Parts{artel.Reasoning{Text: "theirs", Service: "theirs"}, artel.Reasoning{Text: "own", Service: "mine"}},
		artel.ToolResult{Millis: 12, Metadata: map[string]any{"content_type": "image", "url": "/api/v1/files/x"}},
	)
	if plain != told {
		t.Errorf("the request changes:\n%s\n%s", plain, told)
	}
}
