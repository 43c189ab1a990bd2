// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/providertest"
)

// TestQuirks writes one conversation for each server, with a call whose result
// has a picture, reasoning, sound and video, and holds what is sent to the
// letter.
func TestQuirks(t *testing.T) {
	t.Parallel()
	blobs := blob.NewMemory()
	info, err := blobs.Put(t.Context(), strings.NewReader("\x89PNG"), 0)
	if err != nil {
		t.Fatal(err)
	}
	media := func(mediaType string) artel.Media {
		return artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: mediaType, Size: info.Size}
	}
	const (
		told   = `"file, from tool call `
		shown  = `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}`
		stream = `,"stream":true,"stream_options":{"include_usage":true}}`
		user   = `{"role":"user","content":`
	)
	call := func(id, more string) string {
		return `{"role":"assistant","content":null,"tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"f","arguments":"{}"}}]` + more + `},{"role":"tool","tool_call_id":"` + id + `","content":`
	}
	list := func(id string) string { return call(id, "") + `[{"type":"text","text":"see"},` + shown + `}]}` }
	carried := func(id, more, uuid string) string {
		return call(id, more) + `"see"},` + user + `[{"type":"text","text":` + told + `call_1"},` + shown + uuid + `},{"type":"text","text":"so?"}]}`
	}
	for name, c := range map[string]struct {
		service model.Service
		want    string // from the assistant's message on
	}{
		"OpenAI":     {model.Service{BaseURL: "https://api.openai.com/v1"}, list("call_1") + "," + user + `"so?"}],"max_completion_tokens":9` + stream},
		"OpenRouter": {model.Service{BaseURL: "https://openrouter.ai/api/v1"}, call("call_1", `,"reasoning_details":[{"type":"reasoning.text"}]`) + `[{"type":"text","text":"see"},` + shown + `}]},` + user + `"so?"}],"max_tokens":9` + stream},
		"Ollama":     {model.Service{Server: model.OllamaServer}, carried("call_1", `,"reasoning":"I think."`, "") + `],"max_tokens":9` + stream},
		"vLLM":       {model.Service{Server: model.VLLMServer}, call("call_1", `,"reasoning":"I think."`) + `[{"type":"text","text":"see"},` + shown + `,"uuid":"` + string(info.Digest) + `"}]},` + user + `"so?"}],"max_tokens":9` + stream},
		"llama.cpp":  {model.Service{Server: model.LlamaCPPServer}, call("call_1", `,"reasoning":"I think."`) + `[{"type":"text","text":"see"},` + shown + `}]},` + user + `"so?"}],"max_tokens":9` + stream},
		"LM Studio":  {model.Service{Server: model.LMStudioServer}, carried("call_1", "", "") + `],"max_tokens":9` + stream},
		"DashScope":  {model.Service{BaseURL: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"}, carried("call_1", "", "") + `],"max_tokens":9` + stream},
		"DeepSeek":   {model.Service{BaseURL: "https://api.deepseek.com"}, carried("call_1", `,"reasoning_content":"I think."`, "") + `],"max_tokens":9` + stream},
		"Mistral":    {model.Service{BaseURL: "https://api.mistral.ai/v1"}, strings.Replace(carried("OQMW7ZZOJ", "", ""), `},{"role":"user"`, `},{"role":"assistant","content":"(I have read the results.)"},{"role":"user"`, 1) + `],"max_tokens":9,"stream":true}`},
		"any other":  {model.Service{BaseURL: "https://models.example/v1"}, list("call_1") + "," + user + `"so?"}],"max_tokens":9` + stream},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.service
			if s.BaseURL == "" {
				s.BaseURL = "http://127.0.0.1:9/v1"
			}
			s.ID, s.Model, s.Dialect = "mine", "m", model.OpenAI
			if got := s.Quirks().Name; got != name {
				t.Fatalf("it is taken for %s", got)
			}
			yes := model.Fact[bool]{Value: true, Source: model.FromProbe}
			s.Capabilities = model.Capabilities{ToolImage: yes, ToolFile: yes}
			if s.Quirks().NoUserAfterTool {
				s.Capabilities.UserAfterTool = model.Fact[bool]{Source: model.FromDialect}
			}
			r := &model.Request{Service: s, MaxOutput: 9, Messages: []model.Message{
				{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "look"}}},
				{Role: artel.RoleAssistant, Parts: artel.Parts{
					artel.Reasoning{Text: "I think.", Opaque: json.RawMessage(`{"field":"reasoning","reasoning_details":[{"type":"reasoning.text"}]}`), Service: "mine"},
					artel.Reasoning{Text: "Theirs.", Opaque: json.RawMessage(`{"field":"reasoning","reasoning_details":[{"type":"theirs"}]}`), Service: "theirs"},
					artel.ToolCall{ID: "call_1", Name: "f"},
				}},
				{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "call_1", Content: "see", Parts: artel.Parts{media("image/png")}}}},
				{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "so?"}}},
			}}
			_, rest, _ := strings.Cut(providertest.Encoded(t, openai.Encode, r, blobs), `"content":"look"},`)
			if d := cmp.Diff(c.want, rest); d != "" {
				t.Error(d)
			}
			// What the row says is taken can be written, and nothing else of sound
			// and video.
			for _, mediaType := range []string{"image/webp", "application/pdf", "audio/mpeg", "audio/flac", "audio/mp4", "video/mp4", "application/zip"} {
				on := s
				on.Capabilities = model.Capabilities{Input: model.Fact[[]artel.Capability]{Value: []artel.Capability{artel.CanVision, artel.CanAudio, artel.CanVideo, artel.CanFile}}}
				admits := on.OnWire().Capabilities.Admits(mediaType)
				_, err := openai.Encode(&model.Request{Service: s, Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{media(mediaType)}}}}, blobs)
				if admits && err != nil {
					t.Errorf("%s is taken and cannot be written: %v", mediaType, err)
				}
				if special := mediaType[:5] != "image" && mediaType != "application/pdf" && mediaType != "audio/mpeg"; special && !admits && err == nil {
					t.Errorf("%s is not taken, and is written", mediaType)
				}
			}
		})
	}
}

// TestSoundAndVideo holds what is written of them to the letter.
func TestSoundAndVideo(t *testing.T) {
	t.Parallel()
	blobs := blob.NewMemory()
	info, err := blobs.Put(t.Context(), strings.NewReader("\x89PNG"), 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ base, mediaType, want string }{
		"OpenRouter's m4a":   {"https://openrouter.ai/api/v1", "audio/mp4", `{"type":"input_audio","input_audio":{"data":"iVBORw==","format":"m4a"}}`},
		"OpenRouter's video": {"https://openrouter.ai/api/v1", "video/mp4", `{"type":"video_url","video_url":{"url":"data:video/mp4;base64,iVBORw=="}}`},
		"DashScope's sound":  {"https://dashscope.aliyuncs.com/compatible-mode/v1", "audio/mpeg", `{"type":"input_audio","input_audio":{"data":"data:;base64,iVBORw==","format":"mp3"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: c.mediaType, Size: info.Size}
			r := &model.Request{Service: model.Service{BaseURL: c.base}, Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{m}}}}
			if got := providertest.Encoded(t, openai.Encode, r, blobs); !strings.Contains(got, c.want) {
				t.Error(got)
			}
		})
	}
}

// TestQuirksOfConfiguration calls a server with the quirks of its entry.
func TestQuirksOfConfiguration(t *testing.T) {
	t.Parallel()
	var sent []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream(`{"delta":{"content":"So."},"finish_reason":"stop"}`)+done)
	}))
	defer srv.Close()
	defer srv.Client().CloseIdleConnections()
	services, findings := model.ParseServices([]any{map[string]any{
		"id": "mine", "baseURL": srv.URL, "model": "m",
		"quirks": map[string]any{"output_limit": "max_completion_tokens", "no_usage": true, "call_ids": 9, "reasoning": "always"},
	}}, "artel.yaml", func(string) string { return "" })
	if len(services) != 1 || len(findings[0].Warnings()) > 0 {
		t.Fatal(findings)
	}
	r := &model.Request{Service: services[0], MaxOutput: 9, Messages: []model.Message{
		{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "look"}}},
		{Role: artel.RoleAssistant, Parts: artel.Parts{artel.ToolCall{ID: "call_1", Name: "f"}}},
		{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "call_1", Content: "see"}}},
	}}
	for _, err := range openai.New(openai.Options{Client: srv.Client()}).Generate(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, got, _ := bytes.Cut(sent, []byte(`"content":"look"},`))
	want := `{"role":"assistant","content":null,"tool_calls":[{"id":"OQMW7ZZOJ","type":"function","function":{"name":"f","arguments":"{}"}}],"reasoning_content":""},` +
		`{"role":"tool","tool_call_id":"OQMW7ZZOJ","content":"see"}],"max_completion_tokens":9,"stream":true}`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
}

// TestReasoningGoesBack plays two turns against each kind of server: what goes
// back of the reasoning is what came, in the field that it came in.
func TestReasoningGoesBack(t *testing.T) {
	t.Parallel()
	call := `{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}`
	for name, c := range map[string]struct {
		server model.Server
		host   string
		answer string
		want   string // after the tool calls; empty: nothing
	}{
		"in the field that it came in": {model.VLLMServer, "", stream(`{"delta":{"reasoning_content":"I "}}`, `{"delta":{"reasoning_content":"think."}}`, `{"delta":{"content":"So."}}`, call) + done, `,"reasoning_content":"I think."`},
		"in the other":                 {model.OllamaServer, "", stream(`{"delta":{"reasoning":"I think."}}`, call) + done, `,"reasoning":"I think."`},
		"not to others":                {model.LMStudioServer, "", stream(`{"delta":{"reasoning_content":"I think."}}`, call) + done, ""},
		"nothing, and the field":       {"", "api.deepseek.com", stream(call) + done, `,"reasoning_content":""`},
		"nothing":                      {model.VLLMServer, "", stream(call) + done, ""},
		"details, joined": {model.OpenRouterAPI, "", stream(
			`{"delta":{"reasoning":"I ","reasoning_details":[{"type":"reasoning.text","text":"I ","index":0,"format":"anthropic-claude-v1"}]}}`,
			`{"delta":{"reasoning":"think.","reasoning_details":[{"type":"reasoning.text","text":"think.","index":0,"signature":null}]}}`,
			`{"delta":{"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"c2ln"}]}}`,
			`{"delta":{"content":"So."}}`,
			`{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"ZGF0YQ==","index":1}]}}`, call,
		) + done, `,"reasoning_details":[{"format":"anthropic-claude-v1","index":0,"signature":"c2ln","text":"I think.","type":"reasoning.text"},{"data":"ZGF0YQ==","index":1,"type":"reasoning.encrypted"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := model.Service{ID: "mine", Dialect: model.OpenAI, BaseURL: "http://x", Model: "m", Server: c.server}
			r := &model.Request{Service: service, Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "look"}}}}}
			var said artel.Parts
			text := ""
			for d, err := range openai.New(openai.Options{Client: providertest.Canned(c.answer)}).Generate(t.Context(), r) {
				switch d := d.(type) {
				case nil:
					t.Fatal(err)
				case model.ReasoningDelta:
					text += string(d)
				case model.ReasoningDone:
					said = append(said, artel.Reasoning{Text: text, Opaque: d.Opaque, Service: "mine"})
					text = ""
				case model.CallDelta:
					said = append(said, artel.ToolCall(d))
				}
			}
			r.Messages = append(r.Messages, model.Message{Role: artel.RoleAssistant, Parts: said})
			if c.host != "" {
				r.Service.BaseURL = "https://" + c.host
			}
			_, rest, _ := strings.Cut(providertest.Encoded(t, openai.Encode, r, nil), `"arguments":"{}"}}]`)
			got, _, _ := strings.Cut(rest, `},{"role":"tool"`)
			if got != c.want {
				t.Errorf("goes back: %s\nwant %s", got, c.want)
			}
		})
	}
	if got, want := told(t, "application/json", `{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"So."}]},"finish_reason":"stop"}]}`), `(hm) "So." end 0/0`; got != want {
		t.Errorf("Mistral's thinking is read as %s, want %s", got, want)
	}
}
