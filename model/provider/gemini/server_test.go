// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/providertest"
)

// TestEncode has a whole request, for a model that takes media in results and
// wants signatures, and for an older one.
func TestEncode(t *testing.T) {
	t.Parallel()
	half := 0.5
	image := artel.Media{Ref: artel.BlobRef(artel.NewDigest([32]byte{1})), MediaType: "image/png", Kind: artel.KindImage, Filename: "p.png", Size: 0}
	msg := func(role artel.Role, ps ...artel.Part) model.Message { return model.Message{Role: role, Parts: ps} }
	r := &model.Request{
		Service: model.Service{ID: "me", Model: "gemini-3-pro"},
		Messages: []model.Message{
			msg("system", artel.Text{Text: "be brief"}), msg("user", artel.Text{Text: "look <at> this"}),
			msg("assistant", artel.Reasoning{Text: "hm", Opaque: json.RawMessage(`{"thoughtSignature":"dGg=","thought":true}`), Service: "me"},
				artel.Text{Text: "I look."}, artel.Reasoning{Opaque: json.RawMessage(`{"thoughtSignature":"dHg="}`), Service: "me"},
				artel.ToolCall{ID: "a", Name: "look", Arguments: json.RawMessage(`{"q": 1}`), Opaque: json.RawMessage(`{"thoughtSignature":"Y2E="}`), Service: "me"},
				artel.ToolCall{ID: "b", Name: "look"}),
			msg("tool", artel.ToolResult{CallID: "b", Content: "no", IsError: true}), msg("tool", artel.ToolResult{CallID: "a", Content: "seen", Parts: artel.Parts{image}}),
			msg("user", artel.Text{Text: "and?"}), msg("assistant", artel.ToolCall{ID: "a", Name: "look", Service: "other", Opaque: json.RawMessage(`{"thoughtSignature":"eA=="}`)}),
			msg("tool", artel.ToolResult{CallID: "a", Content: "again"}), msg("system", artel.Text{Text: "it is late"}),
		},
		Tools:     []model.ToolSpec{{Name: "look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"integer"}}}`)}, {Name: "rest"}},
		MaxOutput: 100, Choice: model.ToolChoice{Mode: model.ChooseNamed, Name: "look"},
		Reasoning: model.Reasoning{Show: true},
		Sampling:  model.Sampling{Temperature: &half, Stop: []string{"1", "2", "3", "4", "5", "6"}},
		Format:    model.Format{Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)},
	}
	for name, want := range map[string]string{
		"gemini-3-pro": `{"systemInstruction":{"parts":[{"text":"be brief"}]},` +
			`"tools":[{"functionDeclarations":[{"name":"look","description":"Looks.","parameters":{"type":"OBJECT","properties":{"q":{"type":"INTEGER"}}}},{"name":"rest"}]}],` +
			`"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["look"]}},` +
			`"generationConfig":{"stopSequences":["1","2","3","4","5"],"maxOutputTokens":100,"temperature":0.5,"responseMimeType":"application/json","responseSchema":{"type":"OBJECT","properties":{"n":{"type":"INTEGER"}}},"thinkingConfig":{"includeThoughts":true}},` +
			`"contents":[{"role":"user","parts":[{"text":"look <at> this"}]},` +
			`{"role":"model","parts":[{"text":"hm","thought":true,"thoughtSignature":"dGg="},{"text":"I look.","thoughtSignature":"dHg="},{"thoughtSignature":"Y2E=","functionCall":{"id":"a","name":"look","args":{"q":1}}},{"functionCall":{"id":"b","name":"look","args":{}}}]},` +
			`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"look","response":{"output":"seen"},"parts":[{"inlineData":{"mimeType":"image/png","data":""}}]}},{"functionResponse":{"id":"b","name":"look","response":{"error":"no"}}}]},` +
			`{"role":"user","parts":[{"text":"and?"}]},` +
			`{"role":"model","parts":[{"thoughtSignature":"skip_thought_signature_validator","functionCall":{"id":"a_2","name":"look","args":{}}}]},` +
			`{"role":"user","parts":[{"functionResponse":{"id":"a_2","name":"look","response":{"output":"again"}}}]},` +
			`{"role":"user","parts":[{"text":"<system-reminder>\nit is late\n</system-reminder>"}]}]}`,
		"gemini-2.0-flash": `{"systemInstruction":{"parts":[{"text":"be brief"},{"text":"Answer with JSON alone: no Markdown and no text before or after it. It conforms to this JSON Schema:\n{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}"}]},` +
			`"tools":[{"functionDeclarations":[{"name":"look","description":"Looks.","parameters":{"type":"OBJECT","properties":{"q":{"type":"INTEGER"}}}},{"name":"rest"}]}],` +
			`"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["look"]}},` +
			`"generationConfig":{"stopSequences":["1","2","3","4","5"],"maxOutputTokens":100,"temperature":0.5},` +
			`"contents":[{"role":"user","parts":[{"text":"look <at> this"}]},` +
			`{"role":"model","parts":[{"text":"hm","thought":true,"thoughtSignature":"dGg="},{"text":"I look.","thoughtSignature":"dHg="},{"thoughtSignature":"Y2E=","functionCall":{"id":"a","name":"look","args":{"q":1}}},{"functionCall":{"id":"b","name":"look","args":{}}}]},` +
			`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"look","response":{"output":"seen"}}},{"functionResponse":{"id":"b","name":"look","response":{"error":"no"}}}]},` +
			`{"role":"user","parts":[{"text":"file (p.png), from tool call a"},{"inlineData":{"mimeType":"image/png","data":""}},{"text":"and?"}]},` +
			`{"role":"model","parts":[{"functionCall":{"id":"a_2","name":"look","args":{}}}]},` +
			`{"role":"user","parts":[{"functionResponse":{"id":"a_2","name":"look","response":{"output":"again"}}}]},` +
			`{"role":"user","parts":[{"text":"<system-reminder>\nit is late\n</system-reminder>"}]}]}`,
	} {
		r.Service.Model = name
		r.Service.Capabilities.ToolImage.Value = name == "gemini-3-pro"
		if d := cmp.Diff(want, providertest.Encoded(t, gemini.Encode, r, empty{})); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
}

// TestNeutral has what clients of the API write, in both of its spellings.
func TestNeutral(t *testing.T) {
	t.Parallel()
	const body = `{
		"system_instruction": {"parts": {"text": "be brief"}},
		"contents": [
			{"parts": {"text": "hi"}},
			{"role": "model", "parts": [{"text": "hm", "thought": true}, {"text": "I look.", "thought_signature": "dHg="},
				{"functionCall": {"name": "look", "args": {"q": 1}}, "thoughtSignature": "Y2E="}, {"function_call": {"name": "list"}}, {"functionCall": {"id": "call_2", "name": "look"}}]},
			{"role": "function", "parts": [
				{"functionResponse": {"name": "list", "response": {"a": 1, "b": "x"}}},
				{"function_response": {"name": "look", "response": {"result": "seen"}, "parts": [{"inline_data": {"mime_type": "image/png", "data": "aGk"}}]}},
				{"functionResponse": {"id": "call_2", "name": "look", "response": {"error": {"code": 5}}}}]},
			{"role": "user", "parts": [{"inlineData": {"mimeType": "application/pdf; x=y", "data": "_-8="}}, {"fileData": {"fileUri": "https://example.com/x.mp4"}}, {"text": ""}]}],
		"tools": {"functionDeclarations": [{"name": "look", "description": "Looks.", "parameters": {"type": "OBJECT", "properties": {"q": {"type": "INTEGER", "nullable": true, "format": "int64"}, "k": {"type": "STRING", "format": "enum", "enum": ["a"]}}, "required": ["q"], "propertyOrdering": ["q"]}},
			{"name": "list", "parametersJsonSchema": {"type": "object", "x": 1}}, {"name": "rest"}]},
		"tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["look", "list"]}},
		"generation_config": {"max_output_tokens": "7", "temperature": 0.5, "topP": 1, "stopSequences": "X", "responseMimeType": "application/json", "responseSchema": {"anyOf": [{"type": "STRING"}], "nullable": true}},
		"unknown": 1
	}`
	r, err := decode([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Model = "gemini-3-pro"
	neutral := r.Neutral()
	got, err := json.Marshal(struct {
		Messages []model.Message
		Tools    []model.ToolSpec
		Choice   model.ToolChoice
		Max      int
		Format   model.Format
		Sampling model.Sampling
		Unknown  []string
	}{neutral.Messages, neutral.Tools, neutral.Choice, neutral.MaxOutput, neutral.Format, neutral.Sampling, r.Unknown()})
	if err != nil {
		t.Fatal(err)
	}
	text := string(got)
	for _, want := range []string{
		`{"Role":"system","Parts":[{"type":"text","text":"be brief"}]},{"Role":"user","Parts":[{"type":"text","text":"hi"}]},`,
		`{"Role":"assistant","Parts":[{"type":"reasoning","text":"hm"},{"type":"text","text":"I look."},{"type":"reasoning","opaque":{"thoughtSignature":"dHg="}},` +
			`{"type":"tool_call","id":"call_1","name":"look","arguments":{"q":1},"opaque":{"thoughtSignature":"Y2E="}},{"type":"tool_call","id":"call_3","name":"list","arguments":{}},{"type":"tool_call","id":"call_2","name":"look","arguments":{}}]},`,
		`{"Role":"tool","Parts":[{"type":"tool_result","call_id":"call_3","content":"{\"a\":1,\"b\":\"x\"}"}]},`,
		`{"Role":"tool","Parts":[{"type":"tool_result","call_id":"call_1","content":"seen","parts":[{"type":"media",`,
		`"ref":"blob:sha256-8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4",`, // of "hi"
		`"media_type":"image/png","kind":"image","size":2}]}]},`,
		`{"Role":"tool","Parts":[{"type":"tool_result","call_id":"call_2","content":"{\"code\":5}","is_error":true}]},`,
		`"media_type":"application/pdf","kind":"document","size":2},{"type":"text","text":"[file at https://example.com/x.mp4]"}]}],`,
		`"Tools":[{"name":"look","description":"Looks.","parameters":{"properties":{"q":{"format":"int64","type":["integer","null"]},"k":{"enum":["a"],"type":"string"}},"required":["q"],"type":"object"}},` +
			`{"name":"list","description":"","parameters":{"type":"object","x":1}}],`,
		`"Choice":{"mode":"any"},"Max":7,`,
		`"Format":{"json":true,"schema":{"anyOf":[{"type":"string"},{"type":"null"}]},"strict":true},`,
		`"Sampling":{"temperature":0.5,"top_p":1,`, `"stop":["X"]},`,
		`"Unknown":["Invalid JSON payload received. Unknown name \"unknown\": Cannot find field."]`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no\n%s\nin\n%s", want, text)
		}
	}
	if n := len(r.Extraction().Payloads()); n != 2 {
		t.Errorf("%d payloads", n)
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	signed := json.RawMessage(`{"thoughtSignature":"c2ln"}`)
	deltas := []model.Delta{
		model.ReasoningDelta("h"), model.ReasoningDelta("m"),
		model.ReasoningDone{Opaque: json.RawMessage(`{"signature":"of another dialect"}`)},
		model.TextDelta("I "), model.TextDelta("look."),
		model.ReasoningDone{Opaque: signed},
		model.CallDelta{ID: "a", Name: "f", Arguments: json.RawMessage(`{"a":1}`), Opaque: signed},
		model.CallDelta{ID: "b", Name: "g", Arguments: json.RawMessage(`"no"`)},
		model.Finish{Reason: model.StopTools, Usage: artel.Usage{Calls: 1, InputTokens: 9, OutputTokens: 5, CachedTokens: 4, ThoughtTokens: 2}},
	}
	sign := func(c artel.ToolCall, place int) string { return fmt.Sprintf("%s%d", c.ID, place) }
	a := gemini.Answer{ID: "r", Model: "m", Sign: sign}
	whole, err := a.Whole(providertest.Each(deltas...))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	const usage = `"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"totalTokenCount":14,"cachedContentTokenCount":4,"thoughtsTokenCount":2},"modelVersion":"m","responseId":"r"}`
	want := `{"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true},{"text":"I look.","thoughtSignature":"c2ln"},` +
		`{"thoughtSignature":"c2ln","functionCall":{"id":"a","name":"f","args":{"a":1}}},{"thoughtSignature":"b1","functionCall":{"id":"b","name":"g","args":{"invalid_arguments":"no"}}}]},"finishReason":"STOP","index":0}],` + usage
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
	var events, list bytes.Buffer
	flushed := 0
	flush := func() error { flushed++; return nil }
	if err := errors.Join(a.Stream(&events, flush, providertest.Each(deltas...)), a.StreamList(&list, flush, providertest.Each(deltas...))); err != nil {
		t.Fatal(err)
	}
	pieces := strings.Split(strings.TrimSuffix(events.String(), "\r\n\r\n"), "\r\n\r\n")
	if len(pieces) != 8 || flushed != 17 || !strings.HasSuffix(pieces[7], `"finishReason":"STOP","index":0}],`+usage) {
		t.Errorf("%d pieces, %d times flushed:\n%s", len(pieces), flushed, events.String())
	}
	if want := "[" + strings.ReplaceAll(strings.TrimPrefix(strings.Join(pieces, ","), "data: "), ",data: ", ",\r\n") + "]"; list.String() != want {
		t.Errorf("the list is\n%s\nwant\n%s", list.String(), want)
	}
	broken := func(yield func(model.Delta, error) bool) {
		_ = yield(model.TextDelta("x"), nil) && yield(nil, &artel.Error{Kind: artel.Unavailable, Err: &model.CallError{Status: 503, Message: "no"}})
	}
	for _, write := range []func() (string, error){
		func() (string, error) { var b bytes.Buffer; err := a.Stream(&b, nil, broken); return b.String(), err },
		func() (string, error) {
			var b bytes.Buffer
			err := a.StreamList(&b, nil, broken)
			return b.String(), err
		},
	} {
		if text, err := write(); err == nil || !strings.Contains(text, `{"error":{"code":503,"message":`) || strings.Contains(text, "finishReason") {
			t.Errorf("an error in the stream: %v %s", err, text)
		}
	}
	if _, err := a.Whole(broken); err == nil {
		t.Error("an error in the deltas is lost")
	}
	if _, err := a.Whole(providertest.Each()); err == nil {
		t.Error("an answer without an end is whole")
	}
	if err := a.Stream(&events, nil, providertest.Each(model.TextDelta("x"))); err == nil {
		t.Error("a stream without an end ends well")
	}
}
