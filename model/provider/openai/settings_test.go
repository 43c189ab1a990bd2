// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/openai"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/providertest"
)

// TestSettingsThereAndBack: what a request asks of the answer is written in the
// API's words, which its rules let in, and read as it was.
func TestSettingsThereAndBack(t *testing.T) {
	t.Parallel()
	half, one := 0.5, 1.0
	tools := []model.ToolSpec{{Name: "f", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "g"}}
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}},"required":["a"],"additionalProperties":false}`)
	for name, c := range map[string]struct {
		request model.Request
		want    string
	}{
		"nothing":      {model.Request{}, `"content":"x"}],"stream":true`},
		"no tool":      {model.Request{Tools: tools, Choice: model.ToolChoice{Mode: model.ChooseNone}}, `"tool_choice":"none"`},
		"some tool":    {model.Request{Tools: tools, Choice: model.ToolChoice{Mode: model.ChooseAny, OneByOne: true}}, `"tool_choice":"required","parallel_tool_calls":false`},
		"that tool":    {model.Request{Tools: tools, Choice: model.ToolChoice{Mode: model.ChooseNamed, Name: "g"}}, `"tool_choice":{"type":"function","function":{"name":"g"}}`},
		"json":         {model.Request{Format: model.Format{JSON: true}}, `"response_format":{"type":"json_object"}`},
		"schema":       {model.Request{Format: model.Format{JSON: true, Schema: schema, Name: "a", Strict: true}}, `"json_schema":{"name":"a","schema":` + string(schema) + `,"strict":true}`},
		"loose schema": {model.Request{Format: model.Format{JSON: true, Schema: json.RawMessage(`{}`), Name: "answer"}}, `"schema":{},"strict":false`},
		"dice": {
			model.Request{Sampling: model.Sampling{Temperature: &half, TopP: &one, Stop: []string{"a", "b"}}}, `"temperature":0.5,"top_p":1,"stop":["a","b"]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := c.request
			r.Reasoning.Show = true // a field that clients may ignore
			r.Service = model.Service{Model: "m", Capabilities: model.TextOnly()}
			r.Messages = []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "x"}}}}
			body := providertest.Encoded(t, openai.Encode, &r, nil)
			if !strings.Contains(body, c.want) {
				t.Errorf("%s\nhas no %s", body, c.want)
			}
			if err := rules.ValidateJSON([]byte(body)); err != nil {
				t.Error(err)
			}
			req, err := openai.Decode(t.Context(), strings.NewReader(body), provider.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			back := req.Neutral()
			if name == "json" { // that was not asked for in words
				back.Messages = back.Messages[1:]
			}
			if d := cmp.Diff(r, *back, cmpopts.IgnoreFields(model.Request{}, "Service"), cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestSettingsOfClients reads forms that Artel itself does not write.
func TestSettingsOfClients(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}]`
	f := []model.ToolSpec{{Name: "f"}}
	fg := append(f, model.ToolSpec{Name: "g"})
	for body, want := range map[string]model.Request{
		tools + `,"tool_choice":"auto","parallel_tool_calls":true,"stop":null,"response_format":{"type":"text"}`:                                    {Tools: fg},
		tools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}}`:     {Tools: f},
		tools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}}]}}`: {Tools: f, Choice: model.ToolChoice{Mode: model.ChooseAny}},
		`"stop":"end","tool_choice":"none"`: {Sampling: model.Sampling{Stop: []string{"end"}}, Choice: model.ToolChoice{Mode: model.ChooseNone}},
	} {
		body = `{"model":"m",` + body + `,"messages":[]}`
		req, err := openai.Decode(t.Context(), strings.NewReader(body), provider.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want.Reasoning.Show = true
		if d := cmp.Diff(want, *req.Neutral(), cmpopts.IgnoreFields(model.Request{}, "Service"), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: %s", body, d)
		}
	}
}

func TestValidateSettings(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"function","function":{"name":"f"}}],`
	schema := func(s string) string {
		return `"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":` + s + `}}`
	}
	for in, want := range map[string]string{
		`"tool_choice":"required"`:                                                     "only allowed when 'tools' are specified",
		tools + `"tool_choice":"any"`:                                                  "'none', 'auto', and 'required'",
		tools + `"tool_choice":{"type":"function","function":{"name":"g"}}`:            "'g' is not among 'tools'",
		tools + `"tool_choice":{"type":"tool"}`:                                        "Invalid value: 'tool'",
		tools + `"tool_choice":7`:                                                      "Invalid type for 'tool_choice'",
		`"parallel_tool_calls":true`:                                                   "only allowed when 'tools' are specified",
		`"response_format":{"type":"json_object"}`:                                     "must contain the word 'json'",
		`"response_format":{"type":"json"}`:                                            "Invalid value: 'json'",
		`"response_format":{"type":"json_schema"}`:                                     "Missing required parameter: 'response_format.json_schema'",
		`"response_format":{"type":"json_schema","json_schema":{}}`:                    "response_format.json_schema.name",
		schema(`{"type":"object","properties":{}}`):                                    "'additionalProperties' is required",
		schema(`{"type":"object","additionalProperties":false,"properties":{"a":{}}}`): "Missing 'a'",
		schema(`{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"items":{"type":"object"}}}}`): "'items'",
		schema(`{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"type":"string"}}}`):           "",
		`"temperature":2.5`:              "expected a value from 0 to 2",
		`"top_p":-1`:                     "expected a value from 0 to 1",
		`"stop":["a","b","c","d","e"]`:   "maximum length 4",
		`"stop":7`:                       "Invalid type",
		`"temperature":null,"stop":null`: "",
	} {
		err := rules.ValidateJSON([]byte(`{"model":"m",` + in + `,"messages":[{"role":"user","content":"x"}]}`))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", in, err, want)
		}
	}
}

// TestUsageDetails reads what servers say of caches and of thought.
func TestUsageDetails(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string]string{
		`{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}`: `9/5 cached=4 stored=3 thought=2`,
		`{"prompt_tokens":9,"completion_tokens":5,"prompt_cache_hit_tokens":6}`:                                                                                           `9/5 cached=6 stored=0 thought=0`,
	} {
		body := `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":` + usage + `}`
		if got := told(t, "application/json", body); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
