// SPDX-License-Identifier: Apache-2.0

package model

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// An optionalField is a field of a request without which the request asks the same.
type optionalField struct {
	name  string // as in a [Drop]
	words string // what APIs call it, beside its name: a regular expression
	set   func(*Request) bool
	clear func(*Request)
}

// optionalFields are the fields that are left out for models that refuse them. An
// API's error names one of them; the first match counts.
var optionalFields = sync.OnceValue(func() []optionalField {
	float := func(at func(*Request) **float64) (set func(*Request) bool, clear func(*Request)) {
		return func(r *Request) bool { return *at(r) != nil }, func(r *Request) { *at(r) = nil }
	}
	text := func(at func(*Request) *string) (set func(*Request) bool, clear func(*Request)) {
		return func(r *Request) bool { return *at(r) != "" }, func(r *Request) { *at(r) = "" }
	}
	var out []optionalField
	add := func(name, words string, set func(*Request) bool, clear func(*Request)) {
		out = append(out, optionalField{name, words, set, clear})
	}
	addFloat := func(name, words string, at func(*Request) **float64) {
		set, clear := float(at)
		add(name, words, set, clear)
	}
	addText := func(name, words string, at func(*Request) *string) {
		set, clear := text(at)
		add(name, words, set, clear)
	}
	addFloat("temperature", ``, func(r *Request) **float64 { return &r.Sampling.Temperature })
	addFloat("top_p", `topP`, func(r *Request) **float64 { return &r.Sampling.TopP })
	addFloat("frequency_penalty", `frequencyPenalty`, func(r *Request) **float64 { return &r.Sampling.FrequencyPenalty })
	addFloat("presence_penalty", `presencePenalty`, func(r *Request) **float64 { return &r.Sampling.PresencePenalty })
	add("penalties", `penalty`, func(r *Request) bool { return r.Sampling.FrequencyPenalty != nil || r.Sampling.PresencePenalty != nil },
		func(r *Request) { r.Sampling.FrequencyPenalty, r.Sampling.PresencePenalty = nil, nil })
	add("top_k", `topK`, func(r *Request) bool { return r.Sampling.TopK != nil }, func(r *Request) { r.Sampling.TopK = nil })
	add("seed", `random_seed`, func(r *Request) bool { return r.Sampling.Seed != nil }, func(r *Request) { r.Sampling.Seed = nil })
	add("stop", `stop_sequences|stopSequences`, func(r *Request) bool { return len(r.Sampling.Stop) > 0 }, func(r *Request) { r.Sampling.Stop = nil })
	addText("reasoning.summary", `reasoning summar(?:y|ies)`, func(r *Request) *string { return &r.Reasoning.Summary })
	add("reasoning_effort", `reasoning(?:\.effort)?|thinking(?:[_ ]?(?:level|budget|config)|Level|Budget|Config)?(?:\.\w+)*|output_config\.effort|effort`, func(r *Request) bool { return r.Reasoning.Effort != "" || r.Reasoning.Budget > 0 },
		func(r *Request) { r.Reasoning.Effort, r.Reasoning.Budget = "", 0 })
	addText("user", `metadata(?:\.user_id)?`, func(r *Request) *string { return &r.Extras.User })
	addText("safety_identifier", ``, func(r *Request) *string { return &r.Extras.SafetyID })
	addText("service_tier", ``, func(r *Request) *string { return &r.Extras.Tier })
	addText("prompt_cache_key", ``, func(r *Request) *string { return &r.Extras.CacheKey })
	addText("verbosity", `text\.verbosity`, func(r *Request) *string { return &r.Extras.Verbosity })
	add("parallel_tool_calls", `disable_parallel_tool_use`, func(r *Request) bool { return r.Choice.OneByOne }, func(r *Request) { r.Choice.OneByOne = false })
	return out
})

// refusedField matches words of APIs that refuse a field of a request; the first
// group that matched is its name.
//
// Sources: the errors of OpenAI, Anthropic, Gemini, Mistral, Groq, and servers on
// pydantic.
var refusedField = sync.OnceValue(func() *regexp.Regexp {
	const name = "['\"`]?([A-Za-z][A-Za-z0-9_.]*)['\"`]?"
	return regexp.MustCompile(`(?i)unsupported (?:value|parameter)s?: ` + name +
		`|unrecognized request arguments? supplied: ` + name +
		`|unknown (?:parameter|name|field):? ` + name +
		"|[`'\"]([A-Za-z_.]+)[`'\"] (?:is deprecated|is not supported|is not available|does not support|cannot be (?:set|used)|(?:may|must) (?:only be set|be unset|not be set))" +
		"|[`'\"]temperature[`'\"] and [`'\"](top_p)[`'\"] cannot both" +
		`|([a-z_.]+): extra (?:inputs|fields) (?:are )?not (?:permitted|allowed)` +
		`|extra_forbidden.{0,20}"loc":\s*\[\s*"body",\s*"([A-Za-z_]+)"` +
		`|property ` + name + ` is unsupported` +
		`|\b([a-z_]+) is not (?:enabled|supported) for (?:this model|models?/)` +
		`|(thinking(?: level| budget)?|reasoning summaries|penalty) (?:is|are) not (?:supported|enabled|available)` +
		`|must be verified to (?:generate|use) (reasoning summaries)`)
})

// onlyBeside matches words that refuse a field beside another one, not by itself.
var onlyBeside = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)cannot both be specified|may only be set|when thinking is enabled`)
})

// fieldRefused returns the optional field that an API refused, in its neutral name;
// "" if its message names none.
func fieldRefused(message string) string {
	m := refusedField().FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	word := m[1+slices.IndexFunc(m[1:], func(s string) bool { return s != "" })]
	for _, f := range optionalFields() {
		whole := f.name
		if f.words != "" {
			whole += "|" + f.words
		}
		if regexp.MustCompile(`(?i)^(?:` + whole + `)$`).MatchString(strings.TrimPrefix(word, "generation_config.")) {
			return f.name
		}
	}
	return ""
}

// sends reports whether r has an optional field that reaches the service.
func (r *Request) sends(field string) bool {
	return !slices.Contains(r.Service.Capabilities.RefusesFields.Value, field) && slices.ContainsFunc(optionalFields(), func(f optionalField) bool { return f.name == field && f.set(r) })
}

// withoutRefused returns r without the fields that its service is known to refuse,
// which it reports as dropped.
func (r *Request) withoutRefused() (*Request, error) {
	refused := r.Service.Capabilities.RefusesFields.Value
	if len(refused) == 0 {
		return r, nil
	}
	out := *r
	for _, f := range optionalFields() {
		if !slices.Contains(refused, f.name) || !f.set(r) {
			continue
		}
		f.clear(&out)
		if r.OnDrop == nil {
			continue
		}
		if err := r.OnDrop(Drop{Field: f.name, Reason: ModelLacks}); err != nil {
			return nil, err
		}
	}
	return &out, nil
}
