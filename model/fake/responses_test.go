// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider/responses"
)

// native is a service that takes media in tool results.
func native(b bench) model.Service {
	c := model.TextOnly()
	yes := model.Fact[bool]{Value: true, Source: model.FromDialect}
	c.ToolImage, c.ToolFile = yes, yes
	return model.Service{ID: "s", Dialect: model.OpenAIResponses, BaseURL: b.URL + "/v1", Model: "fake-1", APIKey: "k", Capabilities: c}
}

// generate returns the parts of an answer and its end.
func generate(ctx context.Context, p model.Provider, r *model.Request) (parts artel.Parts, end model.Finish, err error) {
	thought := ""
	for d, err := range p.Generate(ctx, r) {
		switch d := d.(type) {
		case nil:
			return parts, end, err
		case model.TextDelta:
			parts = append(parts, artel.Text{Text: string(d)})
		case model.ReasoningDelta:
			thought += string(d)
		case model.ReasoningDone:
			parts = append(parts, artel.Reasoning{Text: thought, Opaque: d.Opaque, Service: r.Service.ID})
		case model.CallDelta:
			parts = append(parts, artel.ToolCall(d))
		case model.Finish:
			end = d
		}
	}
	return parts, end, nil
}

// TestResponses plays a conversation with everything in it: reasoning, two
// calls at once, results with a picture and a PDF.
func TestResponses(t *testing.T) {
	t.Parallel()
	blobs := blob.NewMemory()
	var asked []*model.Request
	b := serve(t, fake.Options{Responder: func(_ context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
		asked = append(asked, r)
		said := []model.Delta{model.ReasoningDelta("I have "), model.ReasoningDelta("seen it."), model.TextDelta("A cat."), model.Finish{Reason: model.StopEnd}}
		if len(asked) == 1 {
			said = []model.Delta{
				model.ReasoningDelta("I look."),
				model.CallDelta{ID: "a", Name: "look", Arguments: json.RawMessage(`{"q":"cat"}`)},
				model.CallDelta{ID: "b", Name: "look", Arguments: json.RawMessage(`{}`)},
				model.Finish{Reason: model.StopTools, Usage: artel.Usage{InputTokens: 9, OutputTokens: 5, CachedTokens: 4, ThoughtTokens: 2}},
			}
		}
		return func(yield func(model.Delta, error) bool) {
			for _, d := range said {
				if !yield(d, nil) {
					return
				}
			}
		}
	}})
	p := responses.New(responses.Options{Client: b.Client(), Blobs: blobs})
	media := func(mediaType, name, data string) artel.Media {
		info, err := blobs.Put(t.Context(), strings.NewReader(data), 0)
		if err != nil {
			t.Fatal(err)
		}
		return artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: mediaType, Kind: artel.KindOther, Filename: name, Size: info.Size}
	}
	r := &model.Request{
		Service:  native(b),
		Messages: []model.Message{{Role: artel.RoleSystem, Parts: artel.Parts{artel.Text{Text: "Be brief."}}}, {Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "What is it?"}}}},
		Tools:    []model.ToolSpec{{Name: "look", Schema: json.RawMessage(`{"type":"object"}`)}},
	}
	said, end, err := generate(t.Context(), p, r)
	if err != nil {
		t.Fatal(err)
	}
	if want := (artel.Usage{Calls: 1, InputTokens: 9, OutputTokens: 5, CachedTokens: 4, ThoughtTokens: 2}); end.Reason != model.StopTools || end.Usage != want {
		t.Errorf("the end is %+v", end)
	}
	if state, ok := said[0].(artel.Reasoning); !ok || state.Text != "I look." || !strings.Contains(string(state.Opaque), "encrypted_content") || len(said) != 3 {
		t.Fatalf("it said %+v", said)
	}
	r.Messages = append(
		r.Messages, model.Message{Role: artel.RoleAssistant, Parts: said},
		model.Message{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "b", Content: "two", Parts: artel.Parts{media("application/pdf", "a.pdf", "%PDF")}}}},
		model.Message{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "a", Content: "one", Parts: artel.Parts{media("image/png", "", "\x89PNG")}}}},
	)
	again, _, err := generate(t.Context(), p, r)
	if err != nil {
		t.Fatal(err)
	}
	if artel.TextOf(again) != "A cat." {
		t.Errorf("it said %+v", again)
	}
	var got []string
	for _, m := range asked[1].Messages {
		for _, part := range m.Parts {
			line := fmt.Sprintf("%s %T", m.Role, part)
			if res, ok := part.(artel.ToolResult); ok {
				line += fmt.Sprintf(" %s %s %s", res.CallID, res.Content, res.Parts[0].(artel.Media).MediaType)
			}
			got = append(got, line)
		}
	}
	want := []string{
		"system artel.Text", "user artel.Text", "assistant artel.Reasoning", "assistant artel.ToolCall", "assistant artel.ToolCall",
		"tool artel.ToolResult a one image/png", "tool artel.ToolResult b two application/pdf",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// State that was touched, or is of another service, is refused.
	said[0] = artel.Reasoning{Text: "I look.", Opaque: json.RawMessage(strings.Replace(string(said[0].(artel.Reasoning).Opaque), "I look.", "I stare.", 1)), Service: "s"}
	if _, _, err := generate(t.Context(), p, r); err == nil || !strings.Contains(err.Error(), "could not be verified") {
		t.Errorf("changed reasoning: got %v", err)
	}
}

func TestResponsesRefuses(t *testing.T) {
	t.Parallel()
	b := serve(t, fake.Options{Key: "k", Models: []string{"m"}})
	const call = `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`
	for name, c := range map[string]struct {
		method, path, key, body string
		status                  int
		want                    string
	}{
		"no key":          {"POST", "/v1/responses", "", `{"model":"m","input":"x"}`, 401, "You didn't provide an API key"},
		"no such model":   {"POST", "/v1/responses", "k", `{"model":"n","input":"x"}`, 404, `"code":"model_not_found"`},
		"unanswered":      {"POST", "/responses", "k", `{"model":"m","input":[` + call + `]}`, 400, "No tool output found for function call a"},
		"stored before":   {"POST", "/v1/responses", "k", `{"model":"m","input":"x","previous_response_id":"resp_1"}`, 400, `"code":"previous_response_not_found"`},
		"stored":          {"GET", "/v1/responses/resp_1", "k", "", 404, "Response with id 'resp_1' not found"},
		"no JSON":         {"POST", "/v1/responses", "k", "x", 400, "could not parse"},
		"foreign thought": {"POST", "/v1/responses", "k", `{"model":"m","input":[{"type":"reasoning","summary":[],"encrypted_content":"gAAAAAtheirs"},{"role":"assistant","content":"x"}]}`, 400, "invalid_encrypted_content"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body, _ := b.do(t, c.method, c.path, c.key, c.body)
			var e struct{ Error responses.APIError }
			if err := json.Unmarshal([]byte(body), &e); err != nil || status != c.status || !strings.Contains(body, c.want) || e.Error.Type == "" {
				t.Errorf("got %d %s", status, body)
			}
		})
	}
}

func TestResponsesMisbehaves(t *testing.T) {
	t.Parallel()
	b := serve(t, fake.Options{})
	p := responses.New(responses.Options{Client: b.Client()})
	r := &model.Request{Service: native(b), Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "hi"}}}}}
	for mode, want := range map[fake.Mode]string{
		fake.RateLimit: "Rate limit", fake.ServerError: "had an error", fake.Overloaded: "overloaded", fake.HalfStream: "broke off",
		fake.StreamError: "Overloaded", fake.Garbage: "not valid JSON", fake.WebPage: "web page",
	} {
		if err := b.fake.Behave(fake.Behavior{Mode: mode}); err != nil {
			t.Fatal(err)
		}
		said, _, err := generate(t.Context(), p, r)
		if c, ok := errors.AsType[*model.CallError](err); !ok || artel.KindOf(err) != artel.Unavailable || !strings.Contains(err.Error(), want) || c.Transient == (mode == fake.WebPage) {
			t.Errorf("%s: got %v", mode, err)
		}
		if (mode == fake.HalfStream || mode == fake.StreamError) && len(said) == 0 {
			t.Errorf("%s said nothing", mode)
		}
	}
	if err := b.fake.Behave(fake.Behavior{Refuses: []fake.Refusal{fake.TextOutputs}}); err != nil {
		t.Fatal(err)
	}
	if status, body, _ := b.do(t, "POST", "/v1/responses", "k", withPicture); status != 400 || !strings.Contains(body, "Output of tool call should be 'Input text'") {
		t.Errorf("text outputs: got %d %s", status, body)
	}
}

// withPicture has a picture in the output of a call.
const withPicture = `{"model":"m","input":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw=="}]}]}`

// TestToolMedia tells for each way to treat media in tool results what the
// model gets, and what it costs.
func TestToolMedia(t *testing.T) {
	t.Parallel()
	data := strings.Repeat("\x89PNG", 3000)
	enc := base64.StdEncoding.EncodeToString([]byte(data))
	body := strings.Replace(withPicture, "iVBORw==", enc, 1)
	chat := `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + enc + `"}}]}]}`
	for media, want := range map[fake.ToolMedia][]string{
		fake.ToolMediaSeen:  {"call", "result a see image"},
		fake.ToolMediaLost:  {"call", "result a see"},
		fake.ToolMediaSplit: {"call", "result  see", "result  (nothing) image"},
		fake.ToolMediaFlat:  {"call", "result a see base64"},
	} {
		t.Run(string(media), func(t *testing.T) {
			t.Parallel()
			blobs := blob.NewMemory()
			var got []string
			b := serve(t, fake.Options{Blobs: blobs, Behavior: fake.Behavior{ToolMedia: media}, Responder: func(_ context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
				got = nil
				for _, m := range r.Messages {
					for _, p := range m.Parts {
						res, ok := p.(artel.ToolResult)
						if !ok {
							got = append(got, "call")
							continue
						}
						text := strings.ReplaceAll(res.Content, "\ndata:image/png;base64,"+enc, " base64")
						if text == "" {
							text = "(nothing)"
						}
						line := fmt.Sprintf("result %s %s", res.CallID, text)
						for range artel.MediaOf(res.Parts) {
							line += " image"
						}
						got = append(got, line)
					}
				}
				return func(yield func(model.Delta, error) bool) {
					_ = yield(model.TextDelta("ok"), nil) && yield(model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: 10, OutputTokens: 1}}, nil)
				}
			}})
			for path, body := range map[string]string{"/v1/responses": body, "/v1/chat/completions": chat} {
				status, answer, _ := b.do(t, "POST", path, "k", body)
				if status != 200 {
					t.Fatal(answer)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s: %s", path, d)
				}
				var usage struct {
					Usage struct {
						Input  int `json:"input_tokens"`
						Prompt int `json:"prompt_tokens"`
					}
				}
				if err := json.Unmarshal([]byte(answer), &usage); err != nil {
					t.Fatal(err)
				}
				if n := usage.Usage.Input + usage.Usage.Prompt; (n == 10) == (media == fake.ToolMediaFlat) || n > 10+len(enc) {
					t.Errorf("%s: it cost %d tokens, and the base64 has %d characters", path, n, len(enc))
				}
			}
		})
	}
}

// TestLargeOutput sends 50 MiB in the output of a call from a client to the
// fake and watches what both allocate together.
func TestLargeOutput(t *testing.T) {
	var got artel.Media
	b := serve(t, fake.Options{Responder: func(_ context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
		last := r.Messages[len(r.Messages)-1]
		got = artel.MediaOf(last.Parts)[0]
		return func(yield func(model.Delta, error) bool) {
			_ = yield(model.TextDelta("seen"), nil) && yield(model.Finish{Reason: model.StopEnd}, nil)
		}
	}})
	blobs := blob.NewMemory()
	info, err := blobs.Put(t.Context(), bytes.NewReader(make([]byte, 50<<20)), 0)
	if err != nil {
		t.Fatal(err)
	}
	m := artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: "image/png", Size: info.Size}
	r := &model.Request{Service: native(b), Messages: []model.Message{
		{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "look"}}},
		{Role: artel.RoleAssistant, Parts: artel.Parts{artel.ToolCall{ID: "a", Name: "look"}}},
		{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "a", Parts: artel.Parts{m}}}},
	}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err = generate(t.Context(), responses.New(responses.Options{Client: b.Client(), Blobs: blobs}), r)
	runtime.ReadMemStats(&after)
	if err != nil || got.Ref.Digest != info.Digest || got.Size != info.Size {
		t.Fatalf("%v: %+v", err, got)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 2<<20 {
		t.Errorf("50 MiB cost %d bytes of allocation", grown)
	}
}
