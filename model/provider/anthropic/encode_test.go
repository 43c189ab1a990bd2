// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/anthropic"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/providertest"
)

// native is a service of the dialect that takes what the API takes.
func native() model.Service {
	yes := model.Fact[bool]{Value: true, Source: model.FromDialect}
	c := model.TextOnly()
	c.ToolImage, c.ToolFile = yes, yes
	return model.Service{ID: "mine", Dialect: model.Anthropic, Model: "claude-sonnet-4-5", Capabilities: c}
}

// encoded returns the body of a request.
func encoded(t providertest.TB, r *model.Request, blobs blob.Store) []byte {
	t.Helper()
	return []byte(providertest.Encoded(t, anthropic.Encode, r, blobs))
}

// sent returns the messages of a body.
func sent(t *testing.T, r *model.Request, blobs blob.Store) (string, *model.Request) {
	t.Helper()
	b := encoded(t, r, blobs)
	if err := rules.ValidateJSON(b); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return string(b), decode(t, string(b)).Neutral()
}

func keep(ctx context.Context, t rapid.TB, blobs blob.Store, mediaType, name, data string) artel.Media {
	t.Helper()
	info, err := blobs.Put(ctx, strings.NewReader(data), 0)
	if err != nil {
		t.Fatal(err)
	}
	kind := artel.KindImage
	if mediaType == "application/pdf" {
		kind = artel.KindDocument
	}
	return artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: mediaType, Kind: kind, Filename: name, Size: info.Size}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	blobs := blob.NewMemory()
	half := 0.5
	two := 2.0
	r := &model.Request{
		Service: native(),
		Messages: []model.Message{
			{Role: artel.RoleSystem, Parts: artel.Parts{artel.Text{Text: "Be brief."}, artel.Text{Text: "<system-reminder>\nIt is late.\n</system-reminder>"}}},
			user("Look, <b>&"),
			{Role: artel.RoleAssistant, Parts: artel.Parts{
				artel.Reasoning{Text: "Hm.", Opaque: json.RawMessage(`{"type":"thinking","signature":"c2ln"}`), Service: "mine"},
				artel.Text{Text: "I look."},
				artel.Reasoning{Opaque: json.RawMessage(`{"type":"redacted_thinking","data":"ZGF0YQ=="}`), Service: "mine"},
				artel.ToolCall{ID: "functions.look:0", Name: "look", Arguments: json.RawMessage(`{"q":1}`), Opaque: json.RawMessage(`{"toolset_name":"browser"}`), Service: "mine"},
				artel.ToolCall{ID: "b", Name: "gone.away", Arguments: json.RawMessage(`"{ broken"`)},
			}},
			{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "functions.look:0", Content: "seen", Parts: artel.Parts{keep(t.Context(), t, blobs, "image/png", "a.png", "PNG!")}}}},
			{Role: artel.RoleSystem, Parts: artel.Parts{artel.Text{Text: "Now."}}},
			user("And this?"),
			{Role: artel.RoleUser, Parts: artel.Parts{keep(t.Context(), t, blobs, "application/pdf", "b.pdf", "%PDF-"), artel.Text{Text: "<system-reminder>\nPlan.\n</system-reminder>"}}},
		},
		Tools:     []model.ToolSpec{{Name: "look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "bare"}},
		MaxOutput: 100,
		Choice:    model.ToolChoice{Mode: model.ChooseNamed, Name: "look", OneByOne: true},
		Format:    model.Format{Schema: json.RawMessage(`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}},"additionalProperties":false}`)},
		Sampling:  model.Sampling{Temperature: &two, TopP: &half, Stop: []string{"\n", "END"}},
	}
	const want = `{"model":"claude-sonnet-4-5","max_tokens":100,` +
		`"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"<system-reminder>\nIt is late.\n</system-reminder>"}],` +
		`"tools":[{"name":"look","description":"Looks.","input_schema":{"type":"object"}},{"name":"bare","input_schema":{"type":"object"}}],` +
		`"tool_choice":{"type":"tool","name":"look","disable_parallel_tool_use":true},` +
		`"temperature":1,"stop_sequences":["END"],` +
		`"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}},"additionalProperties":false}}},` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"Look, <b>&","cache_control":{"type":"ephemeral"}}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"text","text":"I look."},{"type":"redacted_thinking","data":"ZGF0YQ=="},` +
		`{"type":"tool_use","id":"toolu_cc2a4d0a1b5e05ab94bd7a54","name":"look","input":{"q":1},"toolset_name":"browser"},` +
		`{"type":"tool_use","id":"b","name":"gone_away_d3f3f4826b23","input":{"invalid_arguments":"{ broken"}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_cc2a4d0a1b5e05ab94bd7a54","toolset_name":"browser","content":[{"type":"text","text":"seen"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"UE5HIQ=="}}]},` +
		`{"type":"tool_result","tool_use_id":"b","content":"no result: the call was interrupted before it answered","is_error":true},` +
		`{"type":"text","text":"<system-reminder>\nNow.\n</system-reminder>"},{"type":"text","text":"And this?"},` +
		`{"type":"document","title":"b.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="},"cache_control":{"type":"ephemeral"}},` +
		`{"type":"text","text":"<system-reminder>\nPlan.\n</system-reminder>"}]}],"stream":true}`
	got, _ := sent(t, r, blobs)
	i := strings.Index(got, `"id":"toolu_`) + len(`"id":"`)
	id := got[i : i+len("toolu_")+24]
	if diff := cmp.Diff(strings.ReplaceAll(want, "toolu_cc2a4d0a1b5e05ab94bd7a54", id), got); diff != "" {
		t.Error(diff)
	}
	if again, _ := sent(t, r, blobs); again != got {
		t.Error("the same request gives another body")
	}
}

// What the API refuses is not sent, and what others signed even less.
func TestEncodeLeavesOut(t *testing.T) {
	t.Parallel()
	state := func(s string) json.RawMessage { return json.RawMessage(s) }
	for name, c := range map[string]struct {
		parts artel.Parts
		want  string // the blocks of the assistant
	}{
		"thought of others":  {artel.Parts{artel.Reasoning{Text: "x", Opaque: state(`{"type":"thinking","signature":"s"}`), Service: "theirs"}, artel.Text{Text: "a"}}, `[{"type":"text","text":"a"}]`},
		"thought unsigned":   {artel.Parts{artel.Reasoning{Text: "x", Service: "mine"}, artel.Text{Text: "a"}}, `[{"type":"text","text":"a"}]`},
		"state of nobody":    {artel.Parts{artel.Reasoning{Text: "x", Opaque: state(`"?"`), Service: "mine"}, artel.Reasoning{Opaque: state(`{"type":"thinking","signature":""}`), Service: "mine"}, artel.Text{Text: "a"}}, `[{"type":"text","text":"a"}]`},
		"thought at the end": {artel.Parts{artel.Text{Text: "a"}, artel.Reasoning{Text: "x", Opaque: state(`{"type":"thinking","signature":"s"}`), Service: "mine"}, artel.Text{Text: " \n"}}, `[{"type":"text","text":"a"}]`},
		"half a tool":        {artel.Parts{artel.Reasoning{Opaque: state(`{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`), Service: "mine"}, artel.Text{Text: "a"}}, `[{"type":"text","text":"a"}]`},
		"a whole tool":       {artel.Parts{artel.Reasoning{Opaque: state(`{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`), Service: "mine"}, artel.Reasoning{Opaque: state(`{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`), Service: "mine"}, artel.Text{Text: "a"}}, `[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]},{"type":"text","text":"a"}]`},
		"call of others":     {artel.Parts{artel.ToolCall{ID: "c", Name: "f", Opaque: state(`{"toolset_name":"x"}`), Service: "theirs"}}, `[{"type":"tool_use","id":"c","name":"f","input":{}}]`},
		"a thought alone":    {artel.Parts{artel.Reasoning{Text: "x", Opaque: state(`{"type":"thinking","signature":"s"}`), Service: "mine"}}, ``},
	} {
		t.Run(name, func(t *testing.T) {
			r := &model.Request{Service: native(), Messages: []model.Message{user("x"), {Role: artel.RoleAssistant, Parts: c.parts}, user("y")}}
			body, _ := sent(t, r, nil)
			want := `{"role":"assistant","content":` + c.want + `}`
			if c.want != "" && !strings.Contains(body, want) || c.want == "" && strings.Contains(body, "assistant") {
				t.Errorf("got %s", body)
			}
		})
	}
}

func TestEncodeSettings(t *testing.T) {
	t.Parallel()
	half := 0.5
	schema := func(s string) model.Format { return model.Format{Schema: json.RawMessage(s)} }
	closed := `{"type":"object","additionalProperties":false}`
	limited := native()
	limited.Capabilities.MaxOutput = model.Fact[int]{Value: 64_000, Source: model.FromCatalog}
	old := native()
	old.Model = "claude-3-5-sonnet-20241022"
	called := []model.Message{user("x"), {Role: artel.RoleAssistant, Parts: artel.Parts{artel.ToolCall{ID: "a", Name: "f"}, artel.ToolCall{ID: "b", Name: "f"}}}}
	for name, c := range map[string]struct {
		r          model.Request
		has, hasNo string
	}{
		"no limit":            {model.Request{}, `"max_tokens":4096,`, "tool"},
		"the model's limit":   {model.Request{Service: limited}, `"max_tokens":32000,`, ""},
		"over the limit":      {model.Request{Service: limited, MaxOutput: 100_000}, `"max_tokens":64000,`, ""},
		"top_p":               {model.Request{Sampling: model.Sampling{TopP: &half}}, `"top_p":0.5`, "temperature"},
		"one by one":          {model.Request{Tools: []model.ToolSpec{{Name: "f"}}, Choice: model.ToolChoice{OneByOne: true}}, `"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, ""},
		"any":                 {model.Request{Tools: []model.ToolSpec{{Name: "f"}}, Choice: model.ToolChoice{Mode: model.ChooseAny}}, `"tool_choice":{"type":"any"}`, ""},
		"none":                {model.Request{Tools: []model.ToolSpec{{Name: "f"}}, Choice: model.ToolChoice{Mode: model.ChooseNone, OneByOne: true}}, `"tool_choice":{"type":"none"}`, ""},
		"auto":                {model.Request{Tools: []model.ToolSpec{{Name: "f"}}}, `"tools":[{"name":"f"`, "tool_choice"},
		"any of nothing":      {model.Request{Choice: model.ToolChoice{Mode: model.ChooseAny}}, "", "tool_choice"},
		"calls of no tools":   {model.Request{Messages: called}, `"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"none"}`, ""},
		"a schema":            {model.Request{Format: schema(closed)}, `"output_config"`, ""},
		"of an old model":     {model.Request{Service: old, Format: schema(closed)}, "", "output_config"},
		"an open schema":      {model.Request{Format: schema(`{"type":"object"}`)}, "", "output_config"},
		"open inside":         {model.Request{Format: schema(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}},"additionalProperties":false}`)}, "", "output_config"},
		"a bounded schema":    {model.Request{Format: schema(`{"type":"object","properties":{"a":{"type":"integer","minimum":1}},"additionalProperties":false}`)}, `"a":{"type":"integer","description":"{minimum: 1}"}`, ""},
		"a map":               {model.Request{Format: schema(`{"type":"object","additionalProperties":{"type":"integer"}}`)}, `It conforms to this JSON Schema:`, "output_config"},
		"itself inside":       {model.Request{Format: schema(`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}}}`)}, "JSON Schema", "output_config"},
		"a strict tool":       {model.Request{Tools: []model.ToolSpec{{Name: "f", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","maxLength":3,"description":"A."}}}`), Strict: true}}}, `"a":{"type":"string","description":"A.\n\n{maxLength: 3}"}},"additionalProperties":false},"strict":true`, ""},
		"any JSON":            {model.Request{Format: model.Format{JSON: true}}, "Answer with JSON alone", "output_config"},
		"ends with the model": {model.Request{Messages: []model.Message{user("x"), {Role: artel.RoleAssistant, Parts: artel.Parts{artel.Text{Text: "I "}}}}}, anthropic.ContinueMessage, ""},
		"nothing at all":      {model.Request{Messages: []model.Message{{Role: artel.RoleSystem, Parts: artel.Parts{artel.Text{Text: "Be."}}}}}, `"system":[{"type":"text","text":"Be."`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.r.Service.ID == "" {
				c.r.Service = native()
			}
			if c.r.Messages == nil {
				c.r.Messages = []model.Message{user("x")}
			}
			body, _ := sent(t, &c.r, nil)
			if !strings.Contains(body, c.has) || c.hasNo != "" && strings.Contains(body, c.hasNo) {
				t.Errorf("got %s", body)
			}
		})
	}
	for name, m := range map[string]artel.Media{
		"a type that the API has no place for": {Ref: artel.BlobRef(artel.NewDigest([32]byte{})), MediaType: "audio/wav"},
		"no type":                              {Ref: artel.BlobRef(artel.NewDigest([32]byte{})), MediaType: "x"},
		"no bytes":                             {MediaType: "image/png"},
	} {
		if _, err := anthropic.Encode(&model.Request{Service: native(), Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{m}}}}, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestHistories: whatever a conversation was made with, the API takes it, and
// nothing of it is lost.
func TestHistories(t *testing.T) {
	t.Parallel()
	blobs := blob.NewMemory()
	rapid.Check(t, func(rt *rapid.T) {
		n := 0
		var texts []string
		word := func() string {
			n++
			s := fmt.Sprintf("w%d.", n)
			texts = append(texts, s)
			return rapid.SampledFrom([]string{"", " ", "\n"}).Draw(rt, "pad") + s + rapid.SampledFrom([]string{"", " ", "\n"}).Draw(rt, "end")
		}
		var media []artel.Digest
		picture := func() artel.Media {
			n++
			m := keep(t.Context(), rt, blobs, rapid.SampledFrom([]string{"image/png", "image/jpeg", "application/pdf"}).Draw(rt, "type"), "f.bin", fmt.Sprint("bytes", n))
			media = append(media, m.Ref.Digest)
			return m
		}
		id := rapid.SampledFrom([]artel.CallID{"a", "b", "toolu_1", "functions.f:0", "call 7", "", artel.CallID(strings.Repeat("x", 80))})
		service := rapid.SampledFrom([]artel.ServiceID{"mine", "theirs", ""})
		state := rapid.SampledFrom([]string{
			`{"type":"thinking","signature":"s"}`, `{"type":"redacted_thinking","data":"d"}`, `{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`,
			`{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}`, `{"encrypted":"x"}`, `null`, `7`, ``,
		})
		var messages []model.Message
		for range rapid.IntRange(0, 8).Draw(rt, "messages") {
			role := rapid.SampledFrom([]artel.Role{artel.RoleUser, artel.RoleAssistant, artel.RoleAssistant, artel.RoleTool, artel.RoleTool, artel.RoleSystem}).Draw(rt, "role")
			m := model.Message{Role: role}
			for range rapid.IntRange(0, 4).Draw(rt, "parts") {
				kind := rapid.IntRange(0, 5).Draw(rt, "kind")
				switch {
				case role == artel.RoleTool:
					r := artel.ToolResult{CallID: id.Draw(rt, "id"), IsError: rapid.Bool().Draw(rt, "error")}
					if kind > 1 {
						r.Content = word()
					}
					if kind > 3 {
						r.Parts = artel.Parts{picture(), artel.Text{Text: word()}}
					}
					m.Parts = append(m.Parts, r)
				case kind == 0:
					m.Parts = append(m.Parts, artel.Text{Text: rapid.SampledFrom([]string{"", " ", "\n\n"}).Draw(rt, "blank")})
				case kind == 1:
					m.Parts = append(m.Parts, picture())
				case kind == 2 && role == artel.RoleAssistant:
					m.Parts = append(m.Parts, artel.Reasoning{Text: "thought", Opaque: json.RawMessage(state.Draw(rt, "state")), Service: service.Draw(rt, "whose")})
				case kind < 5 && role == artel.RoleAssistant:
					m.Parts = append(m.Parts, artel.ToolCall{
						ID: id.Draw(rt, "id"), Name: rapid.SampledFrom([]string{"look", "a.b", "名", ""}).Draw(rt, "name"),
						Arguments: json.RawMessage(rapid.SampledFrom([]string{`{}`, ``, `{"a":[1]}`, `"x"`, `7`, `{`}).Draw(rt, "arguments")),
						Opaque:    json.RawMessage(rapid.SampledFrom([]string{``, `{"toolset_name":"t"}`, `{"x":1}`}).Draw(rt, "opaque")), Service: service.Draw(rt, "whose"),
					})
				default:
					m.Parts = append(m.Parts, artel.Text{Text: word()})
				}
			}
			messages = append(messages, m)
		}
		r := &model.Request{Service: native(), Messages: messages}
		if rapid.Bool().Draw(rt, "text only") {
			r.Service.Capabilities = model.TextOnly()
		}
		if rapid.Bool().Draw(rt, "tools") {
			r.Tools = []model.ToolSpec{{Name: "look"}}
		}
		body := encoded(rt, r, blobs)
		if err := rules.ValidateJSON(body); err != nil {
			rt.Fatalf("%v: %s", err, body)
		}
		if !bytes.Equal(body, encoded(rt, r, blobs)) {
			rt.Fatal("the same request gives another body")
		}
		for _, s := range texts {
			if c := bytes.Count(body, []byte(s)); c != 1 {
				rt.Fatalf("%q is there %d times: %s", s, c, body)
			}
		}
		var got []artel.Digest
		back, err := anthropic.Decode(t.Context(), bytes.NewReader(body), decoding())
		if err != nil {
			rt.Fatal(err)
		}
		for _, p := range back.Extraction().Payloads() {
			got = append(got, p.Digest)
		}
		slices.Sort(got)
		slices.Sort(media)
		if !slices.Equal(got, media) {
			rt.Fatalf("media %v, want %v: %s", got, media, body)
		}
	})
}
