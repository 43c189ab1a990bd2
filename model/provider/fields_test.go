// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/providertest"
	"github.com/artelhq/artel/model/provider/responses"
)

// TestFields: every field of the neutral request is written by a dialect, or reported
// as dropped.
func TestFields(t *testing.T) {
	t.Parallel()
	half, three, seven := 0.5, 3, int64(7)
	encoders := map[model.Dialect]func(*model.Request, blob.Store) (*provider.Body, error){
		model.OpenAI: openai.Encode, model.OpenAIResponses: responses.Encode, model.Anthropic: anthropic.Encode, model.Gemini: gemini.Encode,
	}
	models := map[model.Dialect]string{model.OpenAI: "gpt-4.1", model.OpenAIResponses: "gpt-4.1", model.Anthropic: "claude-sonnet-4-5", model.Gemini: "gemini-2.5-flash"}
	reasoners := map[model.Dialect]string{model.OpenAI: "gpt-5", model.OpenAIResponses: "gpt-5", model.Anthropic: "claude-sonnet-4-5", model.Gemini: "gemini-2.5-flash"}
	type want map[model.Dialect]string // the path and the value; "": dropped
	for field, c := range map[string]struct {
		set  func(*model.Request)
		want want
	}{
		"temperature":       {func(r *model.Request) { r.Sampling.Temperature = &half }, want{model.OpenAI: "temperature 0.5", model.OpenAIResponses: "temperature 0.5", model.Anthropic: "temperature 0.5", model.Gemini: "generationConfig.temperature 0.5"}},
		"top_p":             {func(r *model.Request) { r.Sampling.TopP = &half }, want{model.OpenAI: "top_p 0.5", model.OpenAIResponses: "top_p 0.5", model.Anthropic: "top_p 0.5", model.Gemini: "generationConfig.topP 0.5"}},
		"top_k":             {func(r *model.Request) { r.Sampling.TopK = &three }, want{model.Anthropic: "top_k 3", model.Gemini: "generationConfig.topK 3"}},
		"seed":              {func(r *model.Request) { r.Sampling.Seed = &seven }, want{model.OpenAI: "seed 7", model.Gemini: "generationConfig.seed 7"}},
		"frequency_penalty": {func(r *model.Request) { r.Sampling.FrequencyPenalty = &half }, want{model.OpenAI: "frequency_penalty 0.5", model.Gemini: "generationConfig.frequencyPenalty 0.5"}},
		"presence_penalty":  {func(r *model.Request) { r.Sampling.PresencePenalty = &half }, want{model.OpenAI: "presence_penalty 0.5", model.Gemini: "generationConfig.presencePenalty 0.5"}},
		"stop":              {func(r *model.Request) { r.Sampling.Stop = []string{"END"} }, want{model.OpenAI: "stop.0 END", model.Anthropic: "stop_sequences.0 END", model.Gemini: "generationConfig.stopSequences.0 END"}},
		"user":              {func(r *model.Request) { r.Extras.User = "u1" }, want{model.OpenAI: "user u1", model.OpenAIResponses: "user u1", model.Anthropic: "metadata.user_id u1"}},
		"safety_identifier": {func(r *model.Request) { r.Extras.SafetyID = "s1" }, want{model.OpenAI: "safety_identifier s1", model.OpenAIResponses: "safety_identifier s1", model.Anthropic: "metadata.user_id s1"}},
		"service_tier":      {func(r *model.Request) { r.Extras.Tier = "default" }, want{model.OpenAI: "service_tier default", model.OpenAIResponses: "service_tier default", model.Anthropic: "service_tier standard_only"}},
		"prompt_cache_key":  {func(r *model.Request) { r.Extras.CacheKey = "k" }, want{model.OpenAI: "prompt_cache_key k", model.OpenAIResponses: "prompt_cache_key k"}},
		"verbosity":         {func(r *model.Request) { r.Extras.Verbosity = "low" }, want{model.OpenAI: "verbosity low", model.OpenAIResponses: "text.verbosity low"}},
		"parallel_tool_calls": {func(r *model.Request) {
			r.Tools, r.Choice.OneByOne = []model.ToolSpec{{Name: "f", Schema: []byte(`{"type":"object","properties":{}}`)}}, true
		}, want{model.OpenAI: "parallel_tool_calls false", model.OpenAIResponses: "parallel_tool_calls false", model.Anthropic: "tool_choice.disable_parallel_tool_use true"}},
		"reasoning_effort": {func(r *model.Request) {
			r.Reasoning.Effort, r.Service.Model = model.EffortHigh, reasoners[r.Service.Dialect]
		}, want{
			model.OpenAI: "reasoning_effort high", model.OpenAIResponses: "reasoning.effort high", model.Anthropic: "thinking.budget_tokens 16384", model.Gemini: "generationConfig.thinkingConfig.thinkingBudget 24576",
		}},
	} {
		for dialect, encode := range encoders {
			name := fmt.Sprint(field, " of ", dialect)
			var dropped []string
			r := &model.Request{
				Service: model.Service{ID: "s", Dialect: dialect, Model: models[dialect], Capabilities: model.TextOnly()}, Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "x"}}}},
				OnDrop: func(d model.Drop) error {
					dropped = append(dropped, d.Field)
					return nil
				},
			}
			c.set(r)
			body := providertest.Encoded(t, encode, r, nil)
			path, value, there := cut(c.want[dialect])
			if got := gjson.Get(body, path).String(); there && got != value {
				t.Errorf("%s: %s is %q in %s", name, path, got, body)
			}
			if lost := slices.Contains(dropped, field); lost == there || len(dropped) > 1 {
				t.Errorf("%s: dropped %q", name, dropped)
			}
		}
	}
}

func cut(want string) (path, value string, ok bool) {
	if want == "" {
		return "none", "", false
	}
	_, err := fmt.Sscan(want, &path, &value)
	return path, value, err == nil
}

// TestEfforts: each model gets the nearest effort that it takes.
func TestEfforts(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]model.Effort{ // for none, minimal, low, medium, high, xhigh, max
		"o3-mini":                 {"low", "low", "low", "medium", "high", "high", "high"},
		"gpt-5-mini":              {"minimal", "minimal", "low", "medium", "high", "high", "high"},
		"gpt-5-codex":             {"low", "low", "low", "medium", "high", "high", "high"},
		"gpt-5-pro":               {"high", "high", "high", "high", "high", "high", "high"},
		"gpt-5.1":                 {"none", "low", "low", "medium", "high", "high", "high"},
		"gpt-5.1-codex-max":       {"none", "low", "low", "medium", "high", "xhigh", "xhigh"},
		"gpt-5.6-sol":             {"none", "low", "low", "medium", "high", "xhigh", "xhigh"},
		"openai/gpt-oss-120b":     {"", "low", "low", "medium", "high", "high", "high"},
		"gpt-5.4-pro":             {"medium", "medium", "medium", "medium", "high", "xhigh", "xhigh"},
		"gpt-5.2-chat-latest":     {"", "medium", "medium", "medium", "medium", "medium", "medium"},
		"gpt-4.1":                 {"", "", "", "", "", "", ""},
		"gpt-5-chat-latest":       {"", "", "", "", "", "", ""},
		"qwen3-coder:30b-a3b-q4":  {"", "low", "low", "medium", "high", "high", "high"},
		"ollama/deepseek-r1:free": {"", "low", "low", "medium", "high", "high", "high"},
	} {
		for i, e := range model.Efforts() {
			if got := provider.OpenAIEffort(name, e); got != want[i] {
				t.Errorf("%s, %s: %q, want %q", name, e, got, want[i])
			}
		}
		if got := provider.OpenAIEffort(name, "fast"); got != "" {
			t.Errorf("%s takes the effort fast as %q", name, got)
		}
	}
}
