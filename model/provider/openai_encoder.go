// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/artelhq/artel/model"
)

// An OpenAIEncoder is an [Encoder] of one of OpenAI's dialects.
type OpenAIEncoder struct{ Encoder }

// maxUserID is the length of user ids and cache keys that OpenAI's APIs take.
const maxUserID = 64

// Choice writes the choice of tools; function is the JSON that chooses the
// named one. Without a choice it writes nothing: the model decides.
func (e *OpenAIEncoder) Choice(c model.ToolChoice, function any) {
	switch c.Mode {
	case model.ChooseNone:
		e.Field("tool_choice", "none")
	case model.ChooseAny:
		e.Field("tool_choice", "required")
	case model.ChooseNamed:
		e.Field("tool_choice", function)
	}
	if c.OneByOne {
		e.Field("parallel_tool_calls", false)
	}
}

// Sampling writes the temperature, the top-p and, for Chat Completions, the
// penalties. Models that are known to refuse them get the default, 1 or 0, alone.
func (e *OpenAIEncoder) Sampling(r *model.Request) {
	s := r.Sampling
	fixed := OpenAIFixedSampling(r.Service.Model, EffortOf(r.Reasoning))
	for _, f := range []struct {
		name     string
		value    *float64
		standard float64
		chat     bool // of Chat Completions alone
	}{
		{"temperature", s.Temperature, 1, false},
		{"top_p", s.TopP, 1, false},
		{"frequency_penalty", s.FrequencyPenalty, 0, true},
		{"presence_penalty", s.PresencePenalty, 0, true},
	} {
		switch {
		case f.value == nil, f.chat && r.Service.Dialect == model.OpenAIResponses:
		case fixed && *f.value != f.standard:
			e.Drop(f.name, model.ModelLacks)
		case !fixed:
			e.Field(f.name, *f.value)
		}
	}
}

// Effort returns the effort to write; "" if there is none.
func (e *OpenAIEncoder) Effort(r *model.Request) model.Effort {
	asked := EffortOf(r.Reasoning)
	if asked == "" {
		return ""
	}
	effort := OpenAIEffort(r.Service.Model, asked)
	if effort == "" && asked != model.EffortNone {
		e.Drop("reasoning_effort", model.ModelLacks)
	}
	return effort
}

// Extras writes the extras. Ids that are too long are replaced by their
// SHA-256.
func (e *OpenAIEncoder) Extras(x model.Extras) {
	for _, f := range [][2]string{{"user", x.User}, {"safety_identifier", x.SafetyID}, {"prompt_cache_key", x.CacheKey}} {
		value := f[1]
		if len(value) > maxUserID {
			sum := sha256.Sum256([]byte(value))
			value = hex.EncodeToString(sum[:])
		}
		if value != "" {
			e.Field(f[0], value)
		}
	}
	if x.Tier != "" {
		e.Field("service_tier", x.Tier)
	}
}

// StrictFormat returns whether OpenAI's APIs are to enforce the schema of f. It
// reports a drop if they are, but cannot.
func (e *OpenAIEncoder) StrictFormat(f model.Format) *bool {
	strict := f.Strict && StrictSchema(f.Schema)
	if f.Strict && !strict {
		e.Drop("response_format.strict", model.NotEnforced)
	}
	return &strict
}

// StrictTool is [OpenAIEncoder.StrictFormat] for the arguments of a tool.
func (e *OpenAIEncoder) StrictTool(t model.ToolSpec) bool {
	strict := t.Strict && StrictSchema(t.Schema)
	if t.Strict && !strict {
		e.Drop("tools.strict", model.NotEnforced)
	}
	return strict
}
