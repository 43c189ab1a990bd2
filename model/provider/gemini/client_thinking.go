// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"strings"

	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// thinking returns how much the model is to think, and whether it returns its
// thoughts; nil: what is usual for the model.
//
// Source: "Thinking" of the Gemini API documentation, whose page on OpenAI's SDKs
// has the budget of each effort.
func (e *encoder) thinking(r *model.Request) *ThinkingConfig {
	effort := provider.EffortOf(r.Reasoning)
	if !Thinks(r.Service.Model) {
		if effort != "" && effort != model.EffortNone {
			e.Drop("reasoning_effort", model.ModelLacks)
		}
		return nil
	}
	c := ThinkingConfig{IncludeThoughts: r.Reasoning.Show}
	switch {
	case effort == "":
	case thirdOrLater(r.Service.Model):
		if c.ThinkingLevel = string(level(r.Service.Model, effort)); c.ThinkingLevel == "" {
			e.Drop("reasoning_effort", model.ModelLacks)
		}
	default:
		c.ThinkingBudget = e.budget(r, effort)
	}
	if c == (ThinkingConfig{}) {
		return nil
	}
	return &c
}

// level returns the level of thinking of a model of the third generation that is
// nearest to an effort.
func level(name string, effort model.Effort) model.Effort {
	switch {
	case strings.Contains(name, "flash"):
		return provider.NearestEffort(effort, model.Efforts()[1:5]...)
	case strings.Contains(name, "gemini-3-pro"):
		return provider.NearestEffort(effort, model.EffortLow, model.EffortHigh)
	}
	return provider.NearestEffort(effort, model.Efforts()[2:5]...)
}

// budget returns the tokens of thinking of a model of the second generation. Only the
// smaller models can be kept from thinking.
func (e *encoder) budget(r *model.Request, effort model.Effort) *int {
	least, most := 0, 24_576
	switch {
	case strings.Contains(r.Service.Model, "pro"):
		least, most = 128, 32_768
	case strings.Contains(r.Service.Model, "lite") && effort != model.EffortNone:
		least = 512
	}
	n := r.Reasoning.Budget
	if r.Reasoning.Effort != "" || n <= 0 {
		switch effort {
		case model.EffortNone:
			n = 0
		case model.EffortMinimal, model.EffortLow:
			n = 1024
		case model.EffortMedium:
			n = 8192
		case model.EffortHigh:
			n = 24_576
		case model.EffortXHigh, model.EffortMax:
			n = most
		default:
			e.Drop("reasoning_effort", model.ModelLacks)
			return nil
		}
	}
	n = min(max(n, least), most)
	return &n
}
