// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"maps"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
)

// Action is the URL that the form posts to.
func (e AgentEditor) Action() string {
	if e.Original == "" {
		return "/agents/new"
	}
	return agentURL(e.Original) + "/edit"
}

// Back is the URL of the cancel link.
func (e AgentEditor) Back() string {
	for _, name := range []artel.AgentName{e.Original, e.From} {
		if name != "" {
			return agentURL(name)
		}
	}
	return "/agents"
}

// PipelineURL is the URL of the agent's pipeline settings.
func (e AgentEditor) PipelineURL() string { return pipelineURL(e.Original, "", "") }

// Value returns the form value of a field.
func (e AgentEditor) Value(field string) string { return e.values.Get(field) }

// Has reports whether a field has problems.
func (e AgentEditor) Has(field string) bool { return len(e.Faults.Of(field).Texts) > 0 }

// Rest returns the parts of the agent's file that the form does not show.
func (e AgentEditor) Rest() agent.Definition {
	return agent.Definition{Presets: e.definition.Presets, Clock: e.definition.Clock, Processors: e.definition.Processors, Greetings: e.definition.Greetings, Character: e.definition.Character, Sampling: e.definition.Sampling}
}

// HasRest reports whether Rest is not empty.
func (e AgentEditor) HasRest() bool {
	d := e.definition
	return len(d.Presets) > 0 || len(d.Processors) > 0 || len(d.Greetings) > 0 || d.Character.Name != "" || !d.Sampling.IsZero() || e.HasClock() || e.Has("file")
}

// HasClock reports whether the agent has a clock of its own.
func (e AgentEditor) HasClock() bool { return !e.definition.Clock.Virtual.IsZero() }

// A PickedService is an option of a service list.
type PickedService struct {
	ID     artel.ServiceID
	Name   string
	Chosen bool
}

func (e AgentEditor) services(chosen artel.ServiceID) []PickedService {
	var out []PickedService
	found := chosen == ""
	for _, c := range e.Models.Choices {
		out = append(out, PickedService{c.ID, c.Name, c.ID == chosen})
		found = found || c.ID == chosen
	}
	if !found {
		out = append(out, PickedService{chosen, string(chosen), true})
	}
	return out
}

// Services are the options for the answering service, including automatic
// choice.
func (e AgentEditor) Services() []PickedService {
	chosen := e.definition.Service
	auto := PickedService{model.AutoService, automatic(e.locale).Name, chosen == model.AutoService}
	if auto.Chosen {
		chosen = ""
	}
	return append([]PickedService{auto}, e.services(chosen)...)
}

// A FallbackChoice is the list for one fallback service.
type FallbackChoice struct {
	Number   int
	Services []PickedService
}

// Fallbacks returns one list more than there are fallbacks, at least two, and
// no more than there are services.
func (e AgentEditor) Fallbacks() []FallbackChoice {
	n := max(len(e.definition.Fallbacks), min(max(2, len(e.definition.Fallbacks)+1), len(e.Models.Choices)))
	out := make([]FallbackChoice, n)
	for i := range out {
		var chosen artel.ServiceID
		if i < len(e.definition.Fallbacks) {
			chosen = e.definition.Fallbacks[i]
		}
		out[i] = FallbackChoice{i + 1, e.services(chosen)}
	}
	return out
}

// A ToolChoice is a tool in the agent's form.
type ToolChoice struct {
	Name       string
	About      string
	Foreign    bool // its description is in English
	On         bool
	Gone       bool   // unknown tool
	Many       bool   // a pattern for all tools of a server
	Of         string // the pattern that includes it; "": none
	Covered    bool   // the agent has that pattern
	Always     bool   // added by other settings, not by this form
	Permission string
}

// Tools are all registered tools, and unknown ones that the agent names.
func (e AgentEditor) Tools() []ToolChoice {
	var out []ToolChoice
	add := func(t ToolChoice) {
		t.On, t.Permission = slices.Contains(e.definition.Tools, t.Name), string(e.definition.Permissions[t.Name])
		if at := slices.IndexFunc(e.prefixes, func(p string) bool { return strings.HasPrefix(t.Name, p) }); at >= 0 && !t.Many {
			t.Of = e.prefixes[at] + "*"
			t.Covered = slices.Contains(e.definition.Tools, t.Of)
		}
		out = append(out, t)
	}
	for _, s := range e.tools {
		t := ToolChoice{Name: s.Name}
		t.About, t.Foreign = e.about(s)
		add(t)
	}
	for _, p := range e.prefixes {
		add(ToolChoice{Name: p + "*", Many: true, About: e.locale.Say(phrase.PageAgentsAllOfServer, map[string]any{"Name": strings.TrimSuffix(p, "_")})})
	}
	about, _ := e.about(model.ToolSpec{Name: agent.SubagentTool})
	add(ToolChoice{Name: agent.SubagentTool, About: about, Always: !slices.Contains(e.definition.Tools, agent.SubagentTool)})
	about, _ = e.about(model.ToolSpec{Name: tool.OpenSkill})
	add(ToolChoice{Name: tool.OpenSkill, About: about, Always: !slices.Contains(e.definition.Tools, tool.OpenSkill)})
	for _, name := range append(slices.Clone(e.definition.Tools), slices.Sorted(maps.Keys(e.definition.Permissions))...) {
		if name != "*" && !slices.ContainsFunc(out, func(t ToolChoice) bool { return t.Name == name }) {
			add(ToolChoice{Name: name, Gone: !slices.ContainsFunc(e.prefixes, func(p string) bool { return strings.HasPrefix(name, p) })})
		}
	}
	return out
}

// about returns the description of a tool: the page's own, otherwise the first
// sentence of the tool's.
func (e AgentEditor) about(s model.ToolSpec) (text string, foreign bool) {
	key := phrase.Key("page.tool_about_" + s.Name)
	if text := e.locale.Say(key, nil); text != "" && text != string(key) {
		return text, false
	}
	text, _, _ = strings.Cut(s.Description, "\n")
	text, _, _ = strings.Cut(text, ". ")
	return artel.Shorten(text, 200), true
}

// Others is the permission of tools without one of their own.
func (e AgentEditor) Others() string { return string(e.definition.Permissions["*"]) }

// A SubagentChoice is an agent that can be delegated to.
type SubagentChoice struct {
	Name, About string
	On, Gone    bool
}

// Agents are all other agents, and unknown ones that the agent names.
func (e AgentEditor) Agents() []SubagentChoice {
	var out []SubagentChoice
	for _, a := range e.agents {
		if a.Name != e.Original {
			out = append(out, SubagentChoice{string(a.Name), a.Description, slices.Contains(e.definition.Subagents, a.Name), false})
		}
	}
	for _, n := range e.definition.Subagents {
		if !slices.ContainsFunc(out, func(c SubagentChoice) bool { return c.Name == string(n) }) {
			out = append(out, SubagentChoice{Name: string(n), On: true, Gone: n != e.Original})
		}
	}
	return out
}

// A NumberField is a number input.
type NumberField struct {
	Field, Value, Otherwise string
	Title                   phrase.Key
	Faults                  FaultSlot
}

// ID is the element id of the field.
func (n NumberField) ID() string { return n.Faults.For() }

// Bounds are the fields of run limits.
func (e AgentEditor) Bounds() []NumberField {
	out := make([]NumberField, len(agentBounds))
	for i, b := range agentBounds {
		otherwise := b.value(agent.Limits{}.Full())
		if otherwise == "" {
			otherwise = e.locale.Say(phrase.PageAgentsUnlimited, nil)
		}
		out[i] = NumberField{b.field, e.Value(b.field), otherwise, b.title, e.Faults.Of(b.field)}
	}
	return out
}

// Contexts are the fields of context limits.
func (e AgentEditor) Contexts() []NumberField {
	field := func(name string, title, otherwise phrase.Key) NumberField {
		return NumberField{name, e.Value(name), e.locale.Say(otherwise, nil), title, e.Faults.Of(name)}
	}
	percent := field("compaction.threshold", phrase.PageAgentsThreshold, phrase.PageAgentsNone)
	percent.Otherwise = "80"
	return []NumberField{
		field("context.max_tokens", phrase.PageAgentsMaxTokens, phrase.PageAgentsWindow),
		field("context.reply_reserve", phrase.PageAgentsReplyReserve, phrase.PageAgentsModels),
		field("context.keep_chars", phrase.PageAgentsKeepChars, phrase.PageAgentsNone),
		percent,
	}
}
