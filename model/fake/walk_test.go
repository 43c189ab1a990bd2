// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"iter"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/responses"
)

// A stop is a service that a conversation comes by, and what its model got last.
type stop struct {
	provider model.Provider
	service  model.Service
	sees     bool
	got      *model.Request
}

// answer thinks and makes two calls when it is asked something, and says
// something when it has the results.
func (s *stop) answer(_ context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	s.got = r
	said := []model.Delta{model.ReasoningDelta("I see it."), model.TextDelta("Two pictures."), model.Finish{Reason: model.StopEnd}}
	if last := artel.TextOf(r.Messages[len(r.Messages)-1].Parts); strings.HasSuffix(last, "Look!") {
		said = []model.Delta{
			model.ReasoningDelta("I look."),
			model.CallDelta{ID: "call_1", Name: "look", Arguments: json.RawMessage(`{"q":"one"}`)},
			model.CallDelta{ID: "call_2", Name: "look", Arguments: json.RawMessage(`{"q":"two"}`)},
			model.Finish{Reason: model.StopTools},
		}
	}
	return func(yield func(model.Delta, error) bool) {
		for _, d := range said {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// stops are all that a conversation may come by: each dialect, and each odd
// behavior of servers, with what is known of it.
func stops(t *testing.T, blobs blob.Store) map[string]*stop {
	t.Helper()
	all := map[string]*stop{}
	yes, no := model.Fact[bool]{Value: true, Source: model.FromDialect}, model.Fact[bool]{Source: model.FromDialect}
	for name, c := range map[string]struct {
		dialect  model.Dialect
		model    string
		server   model.Server
		behavior fake.Behavior
		native   bool
		filler   bool
		blind    bool
	}{
		"OpenAI":                {dialect: model.OpenAI},
		"a newer OpenAI":        {dialect: model.OpenAI, behavior: fake.Behavior{ToolMedia: fake.ToolMediaLost}},
		"Ollama":                {dialect: model.OpenAI, server: model.OllamaServer, behavior: fake.Behavior{ToolMedia: fake.ToolMediaSplit, Compatible: true}},
		"a flattening gateway":  {dialect: model.OpenAI, behavior: fake.Behavior{ToolMedia: fake.ToolMediaFlat}},
		"vLLM":                  {dialect: model.OpenAI, server: model.VLLMServer, behavior: fake.Behavior{ToolMedia: fake.ToolMediaLost, Compatible: true}},
		"LM Studio":             {dialect: model.OpenAI, server: model.LMStudioServer, behavior: fake.Behavior{Refuses: []fake.Refusal{fake.NoListsInTools}}},
		"Mistral":               {dialect: model.OpenAI, behavior: fake.Behavior{Refuses: []fake.Refusal{fake.NoUserAfterTool}}, filler: true},
		"text alone":            {dialect: model.OpenAI, behavior: fake.Behavior{Refuses: []fake.Refusal{fake.NoImages}}, blind: true},
		"Responses":             {dialect: model.OpenAIResponses, native: true},
		"llama.cpp's Responses": {dialect: model.OpenAIResponses, behavior: fake.Behavior{Refuses: []fake.Refusal{fake.TextOutputs}}},
		"Anthropic":             {dialect: model.Anthropic, native: true},
		"Gemini 3":              {dialect: model.Gemini, model: "gemini-3-fake", native: true},
		"Gemini 2.5":            {dialect: model.Gemini, model: "gemini-2.5-fake"},
	} {
		s := &stop{sees: !c.blind}
		o := fake.Options{Behavior: c.behavior, Responder: s.answer}
		var f *fake.Server
		base := ""
		switch c.dialect {
		case model.Anthropic:
			f = fake.Anthropic(o)
		case model.Gemini:
			f = fake.Gemini(o)
		default:
			f, base = fake.OpenAI(o), "/v1"
		}
		srv := httptest.NewServer(f)
		t.Cleanup(func() {
			srv.Client().CloseIdleConnections()
			srv.Close()
		})
		switch c.dialect {
		case model.Anthropic:
			s.provider = anthropic.New(anthropic.Options{Client: srv.Client(), Blobs: blobs})
		case model.Gemini:
			s.provider = gemini.New(gemini.Options{Client: srv.Client(), Blobs: blobs})
		case model.OpenAIResponses:
			s.provider = responses.New(responses.Options{Client: srv.Client(), Blobs: blobs})
		default:
			s.provider = openai.New(openai.Options{Client: srv.Client(), Blobs: blobs})
		}
		s.service = model.Service{ID: artel.ServiceID(name), Dialect: c.dialect, BaseURL: srv.URL + base, Model: c.model, Server: c.server, APIKey: "a-key", Capabilities: model.TextOnly()}
		if c.model == "" {
			s.service.Model = "fake-1"
		}
		if c.native {
			s.service.Capabilities.ToolImage, s.service.Capabilities.ToolFile = yes, yes
		}
		if c.filler {
			s.service.Capabilities.UserAfterTool = no
		}
		all[name] = s
	}
	return all
}

// described replaces the media of messages by texts, as is done for models that
// do not see.
func described(messages []model.Message) []model.Message {
	var out []model.Message
	for _, m := range messages {
		var parts artel.Parts
		for _, p := range m.Parts {
			if r, ok := p.(artel.ToolResult); ok {
				r.Content, r.Parts = r.Content+" [a picture]", nil
				p = r
			}
			parts = append(parts, p)
		}
		out = append(out, model.Message{Role: m.Role, Parts: parts})
	}
	return out
}

// TestWalk takes one conversation from service to service in any order: with
// reasoning, calls in parallel and a picture in every result. Nobody refuses it,
// every model that sees sees every picture of it, and none gets base64 as text.
func TestWalk(t *testing.T) {
	t.Parallel()
	blobs := blob.NewMemory()
	all := stops(t, blobs)
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	picture := func(n int) artel.Media {
		img := image.NewGray(image.Rect(0, 0, 40+n, 30))
		img.SetGray(n, n, color.Gray{200})
		var b bytes.Buffer
		if err := png.Encode(&b, img); err != nil {
			t.Fatal(err)
		}
		info, err := blobs.Put(t.Context(), &b, 0)
		if err != nil {
			t.Fatal(err)
		}
		return artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: "image/png", Kind: artel.KindImage, Size: info.Size, Width: 40 + n, Height: 30}
	}
	var history []model.Message
	shown := map[artel.Digest]bool{}
	before := "nobody"
	for n := range 2 * len(names) {
		if n%len(names) == 0 {
			rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		}
		name := names[n%len(names)]
		s := all[name]
		ask := func() artel.Parts {
			r := &model.Request{Service: s.service, Messages: history, Tools: []model.ToolSpec{{Name: "look", Schema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`)}}}
			if !s.sees {
				r.Messages = described(history)
			}
			parts, _, err := generate(t.Context(), s.provider, r)
			if err != nil {
				t.Fatalf("step %d, %s after %s: %v", n, name, before, err)
			}
			return parts
		}
		history = append(history, model.Message{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "Look!"}}})
		said := ask()
		history = append(history, model.Message{Role: artel.RoleAssistant, Parts: said})
		calls := 0
		for _, p := range said {
			call, ok := p.(artel.ToolCall)
			if !ok {
				continue
			}
			m := picture(2*(n%6) + calls)
			shown[m.Ref.Digest] = true
			calls++
			history = append(history, model.Message{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: call.ID, Content: fmt.Sprintf("result %d", calls), Parts: artel.Parts{m}}}})
		}
		if calls != 2 {
			t.Fatalf("step %d, %s after %s: it made %d calls: %+v", n, name, before, calls, said)
		}
		history = append(history, model.Message{Role: artel.RoleAssistant, Parts: ask()})
		got := map[artel.Digest]bool{}
		for _, m := range s.got.Messages {
			for _, media := range artel.MediaOf(m.Parts) {
				got[media.Ref.Digest] = true
			}
			for _, p := range m.Parts {
				if r, ok := p.(artel.ToolResult); ok && strings.Contains(r.Content, "base64") {
					t.Fatalf("step %d, %s: a result is %.80q", n, name, r.Content)
				}
			}
		}
		if s.sees && len(got) != len(shown) || !s.sees && len(got) != 0 {
			t.Fatalf("step %d, %s after %s: it sees %d of %d pictures", n, name, before, len(got), len(shown))
		}
		before = name
	}
}
