// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"reflect"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel/model"
)

// An optionalField is a field of the neutral request that some dialects lack.
type optionalField struct {
	name string // in the log
	set  func(*model.Request) bool
	in   []model.Dialect // that have it
}

// optionalFields is the table of the fields that some dialects lack. The encoders of
// the dialects write the others.
func optionalFields() []optionalField {
	const chat, responses, messages, gemini = model.OpenAI, model.OpenAIResponses, model.Anthropic, model.Gemini
	return []optionalField{
		{"top_k", func(r *model.Request) bool { return r.Sampling.TopK != nil }, []model.Dialect{messages, gemini}},
		{"seed", func(r *model.Request) bool { return r.Sampling.Seed != nil }, []model.Dialect{chat, gemini}},
		{"frequency_penalty", func(r *model.Request) bool { return nonZero(r.Sampling.FrequencyPenalty) }, []model.Dialect{chat, gemini}},
		{"presence_penalty", func(r *model.Request) bool { return nonZero(r.Sampling.PresencePenalty) }, []model.Dialect{chat, gemini}},
		{"stop", func(r *model.Request) bool { return len(r.Sampling.Stop) > 0 }, []model.Dialect{chat, messages, gemini}},
		{"user", func(r *model.Request) bool { return r.Extras.User != "" }, []model.Dialect{chat, responses, messages}},
		{"safety_identifier", func(r *model.Request) bool { return r.Extras.SafetyID != "" }, []model.Dialect{chat, responses, messages}},
		{"service_tier", func(r *model.Request) bool { return r.Extras.Tier != "" && r.Extras.Tier != "auto" }, []model.Dialect{chat, responses, messages}},
		{"prompt_cache_key", func(r *model.Request) bool { return r.Extras.CacheKey != "" }, []model.Dialect{chat, responses}},
		{"tools.strict", func(r *model.Request) bool {
			return slices.ContainsFunc(r.Tools, func(t model.ToolSpec) bool { return t.Strict })
		}, []model.Dialect{chat, responses, messages}},
		{"parallel_tool_calls", func(r *model.Request) bool { return r.Choice.OneByOne && len(r.Tools) > 0 }, []model.Dialect{chat, responses, messages}},
		{"detail", func(r *model.Request) bool {
			return slices.ContainsFunc(model.MediaIn(r), func(m model.PlacedMedia) bool { return m.Detail != "" })
		}, []model.Dialect{chat, responses}},
		{"verbosity", func(r *model.Request) bool { return r.Extras.Verbosity != "" }, []model.Dialect{chat, responses}},
	}
}

func nonZero(f *float64) bool { return f != nil && *f != 0 }

// dropLacking reports the fields of r that the dialect of its service lacks. A server
// that takes a field beyond its dialect is left to the dialect's encoder.
func (e *Encoder) dropLacking(r *model.Request) {
	for _, f := range optionalFields() {
		if r.Service.Dialect != model.Demo && !slices.Contains(f.in, r.Service.Dialect) && f.set(r) && (f.name != "top_k" || !TakesTopK(r.Service)) {
			e.Drop(f.name, model.DialectLacks)
		}
	}
}

// TakesTopK reports whether a server of Chat Completions takes top_k, which OpenAI's
// API lacks.
func TakesTopK(s model.Service) bool {
	return s.Dialect == model.OpenAI && slices.Contains([]model.Server{model.OpenRouterAPI, model.VLLMServer, model.LlamaCPPServer}, s.Quirks().Server)
}

// Fields returns the names of the members that the JSON of a struct type has.
func Fields(t reflect.Type) map[string]bool {
	out := map[string]bool{}
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			out[name] = true
		}
	}
	return out
}

// maxUnread is how many unread fields are named; a last drop stands for the others.
const maxUnread = 50

// Unread returns a drop for each member of the JSON object that is not read: one that
// is not in fields, and neither null, false, empty nor its default, in JSON.
// prefix begins its name. Of very many members the first ones have drops.
func Unread(object gjson.Result, prefix string, fields map[string]bool, defaults map[string]string) []model.Drop {
	var out []model.Drop
	object.ForEach(func(key, value gjson.Result) bool {
		switch raw := value.Raw; {
		case fields[key.Str], raw == "null", raw == "false", raw == `""`, raw == "[]", raw == "{}", raw == defaults[key.Str]:
		default:
			if len(out) == maxUnread {
				out = append(out, model.Drop{Field: prefix + "…", Reason: model.NotTranslated})
			} else {
				out = append(out, model.Drop{Field: prefix + key.Str, Reason: model.NotTranslated})
			}
		}
		return len(out) <= maxUnread
	})
	return out
}

// UnreadIn returns the drops of all elements of lists, each field once, and of very
// many the first. Elements that
// are no objects have none; skip, which may be nil, excludes elements.
func UnreadIn(lists []gjson.Result, prefix string, fields map[string]bool, skip func(gjson.Result) bool) []model.Drop {
	var out []model.Drop
	for _, list := range lists {
		if !list.IsArray() {
			continue
		}
		list.ForEach(func(_, e gjson.Result) bool {
			if !e.IsObject() || skip != nil && skip(e) {
				return true
			}
			for _, d := range Unread(e, prefix, fields, nil) {
				if len(out) <= maxUnread && !slices.Contains(out, d) {
					out = append(out, d)
				}
			}
			return len(out) <= maxUnread
		})
	}
	return out
}
