// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/anthropic"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/providertest"
)

// TestVersions: what a model takes is read from its name.
func TestVersions(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][3]bool{ // thinks, adaptive, fixed sampling
		"claude-2.1":                                 {},
		"claude-3-5-sonnet-20241022":                 {},
		"anthropic.claude-3-5-haiku-20241022-v1:0":   {},
		"claude-3-7-sonnet-latest":                   {true},
		"claude-sonnet-4-20250514":                   {true},
		"claude-opus-4@20250514":                     {true},
		"us.anthropic.claude-opus-4-1-20250805-v1:0": {true},
		"claude-haiku-4-5":                           {true},
		"anthropic/claude-sonnet-4.5":                {true},
		"claude-opus-4-6":                            {true, true},
		"claude-opus-4-7":                            {true, true, true},
		"claude-sonnet-5":                            {true, true, true},
		"glm-5":                                      {true},
	} {
		thinks, adaptive := anthropic.Thinks(name)
		if got := [3]bool{thinks, adaptive, anthropic.FixedSampling(name)}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestThinking: reasoning becomes settings that the API takes, or is reported as
// dropped.
func TestThinking(t *testing.T) {
	t.Parallel()
	half := 0.5
	ask := []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "x"}}}}
	loop := append(slices.Clone(ask),
		model.Message{Role: artel.RoleAssistant, Parts: artel.Parts{artel.ToolCall{ID: "a", Name: "f", Arguments: []byte("{}")}}},
		model.Message{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "a", Content: "y"}}})
	tools := []model.ToolSpec{{Name: "f"}}
	for name, c := range map[string]struct {
		model   string
		request model.Request
		want    []string
		dropped string
	}{
		"budget":          {"claude-sonnet-4-5", model.Request{Messages: ask, Reasoning: model.Reasoning{Budget: 5000}}, []string{`"thinking":{"type":"enabled","budget_tokens":5000}`, `"max_tokens":13192`}, ""},
		"effort":          {"claude-sonnet-4-5", model.Request{Messages: ask, MaxOutput: 64_000, Reasoning: model.Reasoning{Effort: "medium"}}, []string{`"budget_tokens":8192`, `"max_tokens":64000`}, ""},
		"small limit":     {"claude-sonnet-4-5", model.Request{Messages: ask, MaxOutput: 2000, Reasoning: model.Reasoning{Effort: "high"}}, []string{`"budget_tokens":1500`, `"max_tokens":2000`}, ""},
		"too small limit": {"claude-sonnet-4-5", model.Request{Messages: ask, MaxOutput: 500, Reasoning: model.Reasoning{Effort: "high"}}, []string{`"max_tokens":500`}, "reasoning_effort in_conflict"},
		"adaptive":        {"claude-opus-4-6", model.Request{Messages: ask, Reasoning: model.Reasoning{Effort: "xhigh", Show: true}}, []string{`"output_config":{"effort":"max"}`, `"thinking":{"type":"adaptive","display":"summarized"}`}, ""},
		"hidden":          {"claude-opus-4-7", model.Request{Messages: loop, Tools: tools, Reasoning: model.Reasoning{Effort: "xhigh"}}, []string{`"output_config":{"effort":"xhigh"}`, `"thinking":{"type":"adaptive","display":"omitted"}`}, ""},
		"none":            {"claude-sonnet-4-5", model.Request{Messages: ask, Reasoning: model.Reasoning{Effort: "none"}}, nil, ""},
		"old":             {"claude-3-5-haiku-latest", model.Request{Messages: ask, Reasoning: model.Reasoning{Effort: "low"}}, nil, "reasoning_effort model_lacks"},
		"unknown effort":  {"claude-opus-4-6", model.Request{Messages: ask, Reasoning: model.Reasoning{Effort: "ultra"}}, nil, "reasoning_effort model_lacks"},
		"forced call":     {"claude-sonnet-4-5", model.Request{Messages: ask, Tools: tools, Choice: model.ToolChoice{Mode: model.ChooseAny}, Reasoning: model.Reasoning{Effort: "low"}}, nil, "reasoning_effort in_conflict"},
		"after a call":    {"claude-sonnet-4-5", model.Request{Messages: loop, Tools: tools, Reasoning: model.Reasoning{Effort: "low"}}, nil, "reasoning_effort in_conflict"},
		"temperature":     {"claude-sonnet-4-5", model.Request{Messages: ask, Sampling: model.Sampling{Temperature: &half}, Reasoning: model.Reasoning{Effort: "low"}}, []string{`"budget_tokens":2048`}, "temperature in_conflict"},
		"fixed sampling":  {"claude-opus-4-7", model.Request{Messages: ask, Sampling: model.Sampling{Temperature: &half}}, nil, "temperature model_lacks"},
	} {
		var dropped []string
		r := c.request
		r.Service = model.Service{ID: "s", Dialect: model.Anthropic, Model: c.model, Capabilities: model.TextOnly()}
		r.OnDrop = func(d model.Drop) error {
			dropped = append(dropped, d.Field+" "+string(d.Reason))
			return nil
		}
		body := providertest.Encoded(t, anthropic.Encode, &r, nil)
		for _, want := range c.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %s in %s", name, want, body)
			}
		}
		if c.want == nil && (strings.Contains(body, `"thinking"`) || strings.Contains(body, `"effort"`)) {
			t.Errorf("%s: %s", name, body)
		}
		if got := strings.Join(dropped, ", "); got != c.dropped {
			t.Errorf("%s: dropped %q, want %q", name, got, c.dropped)
		}
		if err := rules.ValidateJSON([]byte(body)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGrammarLimits: schemas beyond what the API enforces in one request are not
// strict, and the log says so.
func TestGrammarLimits(t *testing.T) {
	t.Parallel()
	ask := []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "x"}}}}
	for name, c := range map[string]struct {
		schema        string
		tools, strict int
	}{
		"many tools":  {`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, 22, 20},
		"many unions": {`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":["string","null"]}},"required":["a","b"]}`, 10, 8},
		"optional":    {`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"}},"required":[]}`, 7, 6},
	} {
		r := model.Request{Service: model.Service{ID: "s", Dialect: model.Anthropic, Model: "claude-sonnet-4-5", Capabilities: model.TextOnly()}, Messages: ask}
		for i := range c.tools {
			r.Tools = append(r.Tools, model.ToolSpec{Name: fmt.Sprint("f", i), Schema: []byte(c.schema), Strict: true})
		}
		dropped := 0
		r.OnDrop = func(model.Drop) error {
			dropped++
			return nil
		}
		body := providertest.Encoded(t, anthropic.Encode, &r, nil)
		if got := strings.Count(body, `"strict":true`); got != c.strict || dropped != c.tools-c.strict {
			t.Errorf("%s: %d strict tools, %d drops", name, got, dropped)
		}
	}
}
