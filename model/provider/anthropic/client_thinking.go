// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// leastBudget is the smallest budget of thinking that the API takes.
const leastBudget = 1024

// answerTokens is what is added to the budget of thinking for the answer, if the
// request states no limit.
const answerTokens = 8192

var claude = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`claude-(?:[a-z]+-)?(\d)(?:[-.](\d{1,2}))?(?:[-.@:_]|$)`)
})

// version returns the version of a Claude model, 4.5 as 405; false if name is none.
func version(name string) (int, bool) {
	m := claude().FindStringSubmatch(strings.ToLower(name))
	if m == nil {
		return 0, false
	}
	major, _ := strconv.Atoi(m[1]) // digits
	minor, _ := strconv.Atoi(m[2]) // digits or nothing
	return major*100 + minor, true
}

// Thinks reports whether a model takes settings of thinking: Claude since 3.7, and
// models of others behind the dialect. adaptive says that it takes an effort
// instead of a budget of tokens: Claude since 4.6.
//
// Source: "Extended thinking" and "Adaptive thinking" of the Claude documentation.
func Thinks(name string) (thinks, adaptive bool) {
	v, ok := version(name)
	return !ok || v >= 307, ok && v >= 406
}

// FixedSampling reports whether a model refuses temperature, top_p and top_k: Claude
// since 4.7.
//
// Source: the error "`temperature` is deprecated for this model." of the API.
func FixedSampling(name string) bool {
	v, ok := version(name)
	return ok && v >= 407
}

// thinking is what is written about the reasoning of a request.
type thinking struct {
	settings *Thinking
	effort   model.Effort // of adaptive models
	limit    int          // max_tokens
}

// thinkingOf returns the settings of thinking for r, whose messages conform to the
// API. It reports a drop if the API would refuse them.
func (e *encoder) thinkingOf(r *model.Request, messages []model.Message, bare bool) thinking {
	t := thinking{limit: outputLimit(r)}
	effort := provider.EffortOf(r.Reasoning)
	if effort == "" || effort == model.EffortNone {
		return t
	}
	thinks, adaptive := Thinks(r.Service.Model)
	forced := len(r.Tools) > 0 && (r.Choice.Mode == model.ChooseAny || r.Choice.Mode == model.ChooseNamed)
	switch {
	case !thinks:
		e.Drop("reasoning_effort", model.ModelLacks)
	case forced:
		e.Drop("reasoning_effort", model.InConflict)
	case adaptive:
		if t.effort = e.adaptiveEffort(r.Service.Model, effort); t.effort == "" {
			return t
		}
		t.settings = &Thinking{Type: "adaptive", Display: "omitted"}
		if r.Reasoning.Show {
			t.settings.Display = "summarized"
		}
	default:
		budget := budgetOf(r.Reasoning, effort)
		if r.MaxOutput == 0 {
			t.limit = max(t.limit, budget+answerTokens)
			if most := r.Service.Capabilities.MaxOutput.Value; most > 0 {
				t.limit = min(t.limit, most)
			}
		}
		// The budget counts against the limit; a quarter remains for the answer.
		budget = min(max(budget, leastBudget), t.limit*3/4)
		if budget < leastBudget || bare || unthought(messages) {
			e.Drop("reasoning_effort", model.InConflict)
			return t
		}
		t.settings = &Thinking{Type: "enabled", BudgetTokens: budget}
	}
	return t
}

func (e *encoder) adaptiveEffort(name string, effort model.Effort) model.Effort {
	allowed := []model.Effort{model.EffortLow, model.EffortMedium, model.EffortHigh, model.EffortMax}
	if FixedSampling(name) { // since the same version
		allowed = model.Efforts()[2:]
	}
	nearest := provider.NearestEffort(effort, allowed...)
	if nearest == "" {
		e.Drop("reasoning_effort", model.ModelLacks)
	}
	return nearest
}

// budgetOf returns the tokens of a budget.
func budgetOf(r model.Reasoning, effort model.Effort) int {
	if r.Budget > 0 {
		return r.Budget
	}
	switch effort {
	case model.EffortMinimal:
		return 1024
	case model.EffortLow:
		return 2048
	case model.EffortMedium:
		return 8192
	case model.EffortHigh:
		return 16_384
	}
	return 32_768
}

// unthought reports whether messages end with results of calls before which the
// model has not thought: the API then refuses budgets of thinking.
func unthought(messages []model.Message) bool {
	n := len(messages)
	if n < 2 || messages[n-2].Role != artel.RoleAssistant || len(messages[n-2].Parts) == 0 {
		return false
	}
	for _, p := range messages[n-1].Parts {
		if _, ok := p.(artel.ToolResult); ok {
			first, ok := messages[n-2].Parts[0].(artel.Reasoning)
			return !ok || !thinks(first)
		}
	}
	return false
}

// wireTier returns the API's name of a service tier of OpenAI's; "" if it has none.
func wireTier(tier string) string {
	switch tier {
	case "auto":
		return "auto"
	case "default":
		return "standard_only"
	}
	return ""
}
