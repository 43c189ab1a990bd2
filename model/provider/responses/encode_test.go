// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/responses"
	"github.com/artelhq/artel/model/provider/providertest"
	"github.com/artelhq/artel/model/provider/responses"
)

// native says that media may stand in tool results.
func native() model.Capabilities {
	c := model.TextOnly()
	yes := model.Fact[bool]{Value: true, Source: model.FromDialect}
	c.ToolImage, c.ToolFile = yes, yes
	return c
}

// encode returns the body of r, for a service that sees.
func encode(t providertest.TB, r *model.Request, blobs blob.Store) string {
	t.Helper()
	if r.Service.Model == "" {
		r.Service = model.Service{ID: "mine", Model: "m", Capabilities: native()}
	}
	return providertest.Encoded(t, responses.Encode, r, blobs)
}

// TestEncode holds what is sent to the letter.
func TestEncode(t *testing.T) {
	t.Parallel()
	text := func(s string) artel.Text { return artel.Text{Text: s} }
	said := func(role artel.Role, ps ...artel.Part) model.Message { return model.Message{Role: role, Parts: ps} }
	blobs := blob.NewMemory()
	info, err := blobs.Put(t.Context(), strings.NewReader("\x89PNG"), 0)
	if err != nil {
		t.Fatal(err)
	}
	media := func(mediaType, name string) artel.Media {
		return artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: mediaType, Filename: name, Size: info.Size}
	}
	mine := func(opaque string) artel.Reasoning {
		return artel.Reasoning{Text: "I think.", Opaque: json.RawMessage(opaque), Service: "mine"}
	}
	const end = `,"store":false,"include":["reasoning.encrypted_content"],"stream":true}`
	for name, c := range map[string]struct {
		request model.Request
		want    string
	}{
		"text": {
			model.Request{Messages: []model.Message{said("system", text("one")), said("system", text("two")), said("user", text("<hi>")), said("system", text("tail"))}},
			`{"model":"m","instructions":"one\n\ntwo","input":[{"type":"message","role":"user","content":"<hi>"},{"type":"message","role":"system","content":"tail"}]` + end,
		},
		"instructions alone": {
			model.Request{Messages: []model.Message{said("system", text("one"))}},
			`{"model":"m","input":[{"type":"message","role":"system","content":"one"}]` + end,
		},
		"a turn": {
			model.Request{Messages: []model.Message{
				said("user", text("hi")),
				said("assistant", mine(thought), mine(`{"type":"message","phase":"commentary"}`), text("yes"), artel.ToolCall{ID: "a", Name: "f"}, artel.ToolCall{ID: "a", Name: "g", Arguments: json.RawMessage(`"x"`)}),
				said("tool", artel.ToolResult{CallID: "a", Content: "r"}),
				said("tool", artel.ToolResult{CallID: "a", Content: "see", Parts: artel.Parts{media("image/png", "p.png"), media("application/pdf", "")}}),
			}},
			`{"model":"m","input":[{"type":"message","role":"user","content":"hi"},` + thought +
				`,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"yes"}],"phase":"commentary"}` +
				`,{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call","call_id":"a_2","name":"g","arguments":"{\"invalid_arguments\":\"x\"}"}` +
				`,{"type":"function_call_output","call_id":"a","output":"r"}` +
				`,{"type":"function_call_output","call_id":"a_2","output":[{"type":"input_text","text":"see"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,iVBORw=="},{"type":"input_text","text":"file, from tool call a_2: the same as file (p.png), already shown"}]}]` + end,
		},
		"what is not to be passed back": {
			model.Request{Messages: []model.Message{
				said("user", text("hi")),
				said("assistant", artel.Reasoning{Text: "theirs", Opaque: json.RawMessage(thought), Service: "theirs"}, artel.Reasoning{Text: "bare", Service: "mine"}, text("yes"), mine(thought)),
				said("user", text("so?")),
			}},
			`{"model":"m","input":[{"type":"message","role":"user","content":"hi"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"yes"}]},{"type":"message","role":"user","content":"so?"}]` + end,
		},
		"files": {
			model.Request{Messages: []model.Message{said("user", text("see"), media("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "report"))}},
			`{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_file","filename":"report.docx","file_data":"data:application/vnd.openxmlformats-officedocument.wordprocessingml.document;base64,iVBORw=="}]}]` + end,
		},
		"settings": {
			model.Request{
				Messages: []model.Message{said("user", text("hi"))}, MaxOutput: 5, Sampling: model.Sampling{Temperature: new(0.5), TopP: new(1.0), Stop: []string{"x"}},
				Tools:  []model.ToolSpec{{Name: "f", Description: "d", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "g"}},
				Choice: model.ToolChoice{Mode: model.ChooseNamed, Name: "g", OneByOne: true},
				Format: model.Format{JSON: true, Schema: json.RawMessage(`{"type":"object"}`), Name: "an answer"},
			},
			`{"model":"m","input":[{"type":"message","role":"user","content":"hi"}],"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":false},{"type":"function","name":"g","parameters":{"type":"object","properties":{}},"strict":false}]` +
				`,"tool_choice":{"type":"function","name":"g"},"parallel_tool_calls":false,"text":{"format":{"type":"json_schema","name":"an_answer","schema":{"type":"object"},"strict":false}},"max_output_tokens":16,"temperature":0.5,"top_p":1` + end,
		},
		"any JSON": {
			model.Request{Messages: []model.Message{said("user", text("hi"))}, Format: model.Format{JSON: true}},
			`{"model":"m","instructions":"Answer with a JSON object.","input":[{"type":"message","role":"user","content":"hi"}],"text":{"format":{"type":"json_object"}}` + end,
		},
		"a model that does not reason": {
			model.Request{Service: model.Service{ID: "mine", Model: "openai/gpt-4o-mini", Capabilities: native()}, Messages: []model.Message{said("user", text("hi"))}},
			`{"model":"openai/gpt-4o-mini","input":[{"type":"message","role":"user","content":"hi"}],"store":false,"stream":true}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := c.request
			got := encode(t, &r, blobs)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if err := rules.ValidateJSON([]byte(got)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	for mediaType, kind := range map[string]artel.Kind{
		"audio/mpeg": artel.Unsupported, "video/mp4": artel.Unsupported, "application/zip": artel.Unsupported, "image": artel.Invalid, "": artel.Invalid,
	} {
		m := artel.Media{Ref: artel.BlobRef(artel.NewDigest([32]byte{1})), MediaType: mediaType, Size: 1}
		r := &model.Request{Service: model.Service{ID: "mine", Model: "m"}, Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{m}}}}
		if _, err := responses.Encode(r, nil); artel.KindOf(err) != kind {
			t.Errorf("%q: got %v, want %s", mediaType, err, kind)
		}
	}
}

// TestEveryHistoryIsLegal sends histories of any kind: parallel calls, results
// that are missing, late or of nobody, media anywhere, reasoning of several
// services and at the end of a turn. The API takes the request, nothing is lost
// and the order is kept.
func TestEveryHistoryIsLegal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		blobs := blob.NewMemory()
		var digests []artel.Digest
		for n := range 3 {
			info, err := blobs.Put(t.Context(), bytes.NewReader([]byte{byte(n + 1), 2, 3, 4}), 0)
			if err != nil {
				rt.Fatal(err)
			}
			digests = append(digests, info.Digest)
		}
		var texts []string
		sent := map[artel.Digest]bool{}
		text := func() string {
			texts = append(texts, fmt.Sprintf("<text %d>", len(texts)))
			return texts[len(texts)-1]
		}
		media := func() artel.Media {
			n := rapid.IntRange(0, 2).Draw(rt, "media")
			sent[digests[n]] = true
			return artel.Media{Ref: artel.BlobRef(digests[n]), MediaType: []string{"image/png", "image/webp", "application/pdf"}[n], Size: 4, Filename: "a.pdf"}
		}
		id := func() artel.CallID {
			return rapid.SampledFrom([]artel.CallID{"a", "b", "call_c", "", artel.CallID(strings.Repeat("long", 30))}).Draw(rt, "id")
		}
		state := func() json.RawMessage {
			return json.RawMessage(rapid.SampledFrom([]string{thought, `{"type":"message","phase":"final_answer"}`, `{"type":"thinking"}`, `"x"`, ""}).Draw(rt, "state"))
		}
		r := &model.Request{Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: text()}}}}}
		for range rapid.IntRange(0, 8).Draw(rt, "messages") {
			m := model.Message{Role: rapid.SampledFrom([]artel.Role{"system", "user", "assistant", "tool"}).Draw(rt, "role")}
			for range rapid.IntRange(0, 4).Draw(rt, "parts") {
				switch kind := rapid.IntRange(0, 3).Draw(rt, "part"); {
				case m.Role == artel.RoleTool:
					res := artel.ToolResult{CallID: id(), Content: text()}
					if kind == 0 {
						res.Parts = artel.Parts{media()}
					}
					m.Parts = append(m.Parts, res)
				case kind == 0:
					m.Parts = append(m.Parts, media())
				case kind == 1 && m.Role == artel.RoleAssistant:
					m.Parts = append(m.Parts, artel.ToolCall{ID: id(), Name: "f", Arguments: json.RawMessage(rapid.SampledFrom([]string{"{}", "", `"{ broken"`, "[1]"}).Draw(rt, "arguments"))})
				case kind == 2 && m.Role == artel.RoleAssistant:
					m.Parts = append(m.Parts, artel.Reasoning{Text: "hm", Opaque: state(), Service: rapid.SampledFrom([]artel.ServiceID{"mine", "theirs", ""}).Draw(rt, "service")})
				default:
					m.Parts = append(m.Parts, artel.Text{Text: text()})
				}
			}
			r.Messages = append(r.Messages, m)
		}
		if rapid.Bool().Draw(rt, "no media in results") {
			r.Service = model.Service{ID: "mine", Model: "m", Capabilities: model.TextOnly()}
		}
		body := encode(rt, r, blobs)
		if err := rules.ValidateJSON([]byte(body)); err != nil {
			rt.Fatalf("%v\n%s", err, body)
		}
		if again := encode(rt, r, blobs); body != again {
			rt.Fatal("the same request is written in two ways")
		}
		for _, s := range texts {
			if n := strings.Count(body, s); n != 1 {
				rt.Fatalf("%s is in the request %d times\n%s", s, n, body)
			}
		}
		var got []artel.Digest
		for _, m := range decode(t, body).Extraction().Payloads() {
			got = append(got, m.Digest)
		}
		slices.Sort(got)
		var want []artel.Digest
		for d := range sent {
			want = append(want, d)
		}
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatalf("media: %s", d)
		}
	})
}

// TestThereAndBack: what is read of what was written is what was meant.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	r := &model.Request{
		Messages: []model.Message{
			{Role: artel.RoleSystem, Parts: artel.Parts{artel.Text{Text: "Be brief."}}},
			{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "hi"}}},
			{Role: artel.RoleAssistant, Parts: artel.Parts{artel.Reasoning{Text: "I think.", Opaque: json.RawMessage(thought), Service: "mine"}, artel.Text{Text: "yes"}, artel.ToolCall{ID: "a", Name: "f", Arguments: json.RawMessage(`{"x":1}`)}}},
			{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "a", Content: "r"}}},
			{Role: artel.RoleAssistant, Parts: artel.Parts{artel.Text{Text: "so"}}},
		},
		Tools: []model.ToolSpec{{Name: "f", Description: "d", Schema: json.RawMessage(`{"type":"object"}`)}}, MaxOutput: 100,
		Choice: model.ToolChoice{Mode: model.ChooseAny, OneByOne: true}, Sampling: model.Sampling{Temperature: new(0.5)},
		Format: model.Format{JSON: true, Schema: json.RawMessage(`{"type":"object"}`), Name: "n"},
	}
	got := decode(t, encode(t, r, nil)).Neutral()
	if d := cmp.Diff(r, got, cmpopts.IgnoreFields(model.Request{}, "Service"), cmpopts.IgnoreFields(artel.Reasoning{}, "Service")); d != "" {
		t.Error(d)
	}
}
