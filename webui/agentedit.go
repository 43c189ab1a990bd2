// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
)

// An AgentEditor is the page that edits an agent, as a form or as its Markdown
// file.
type AgentEditor struct {
	frame
	Original artel.AgentName // "": new
	From     artel.AgentName // template of a new agent
	AsFile   bool
	Stale    bool // someone else saved a newer revision
	Faults   AgentFaults

	values     url.Values // form values
	definition agent.Definition
	unread     bool // some values cannot be read
	tools      []model.ToolSpec
	prefixes   []string // of tools that may be registered later
	agents     []settings.Agent
	locale     phrase.Locale
}

// AgentFaults are the problems of an edited agent, by form field.
type AgentFaults struct {
	Slots   []FaultSlot
	Count   int
	Checked bool // the values were checked; otherwise nothing is shown
	Tried   bool // saving was attempted
}

// A FaultSlot shows the problems of one field.
type FaultSlot struct {
	Field string
	Texts []string
	Title phrase.Key // label of the field
}

// ID is the element id of the slot.
func (s FaultSlot) ID() string { return "fault-" + strings.ReplaceAll(s.Field, ".", "-") }

// For is the element id of the field.
func (s FaultSlot) For() string { return "agent-" + strings.ReplaceAll(s.Field, ".", "-") }

// Of returns the slot of a field.
func (f AgentFaults) Of(field string) FaultSlot {
	for _, s := range f.Slots {
		if s.Field == field {
			return s
		}
	}
	return FaultSlot{Field: field}
}

// agentFields are the slots of the form, in order, with their labels. Problems
// of other fields are shown in the last slot.
var agentFields = [...]struct {
	field string
	title phrase.Key
}{
	{"name", phrase.PageAgentsName},
	{"description", phrase.PageAgentsDescription},
	{"prompt", phrase.PageAgentsPrompt},
	{"service", phrase.PageAgentsService},
	{"fallbacks", phrase.PageAgentsFallbacks},
	{"tools", phrase.PageAgentsTools},
	{"subagents", phrase.PageAgentsSubagents},
	{"skills", phrase.PageSkills},
	{"limits.turns", phrase.PageAgentsTurns},
	{"limits.tool_calls", phrase.PageAgentsToolCalls},
	{"limits.seconds", phrase.PageAgentsSeconds},
	{"limits.tokens", phrase.PageAgentsTokens},
	{"limits.cost", phrase.PageAgentsCost},
	{"limits.depth", phrase.PageAgentsDepth},
	{"limits.answer", phrase.PageAgentsAnswer},
	{"context.max_tokens", phrase.PageAgentsMaxTokens},
	{"context.reply_reserve", phrase.PageAgentsReplyReserve},
	{"context.keep_chars", phrase.PageAgentsKeepChars},
	{"compaction.threshold", phrase.PageAgentsThreshold},
	{"file", phrase.PageAgentsElse},
}

func isAgentField(field string) bool {
	for _, f := range agentFields {
		if f.field == field {
			return true
		}
	}
	return false
}

// An agentBound is a run limit in a form.
type agentBound struct {
	field string
	title phrase.Key
	value func(agent.Limits) string // "": 0
}

func some(n int) string {
	if n == 0 {
		return ""
	}
	return itoa(n)
}

var agentBounds = [...]agentBound{
	{"limits.turns", phrase.PageAgentsTurns, func(l agent.Limits) string { return some(l.Turns) }},
	{"limits.tool_calls", phrase.PageAgentsToolCalls, func(l agent.Limits) string { return some(l.ToolCalls) }},
	{"limits.seconds", phrase.PageAgentsSeconds, func(l agent.Limits) string { return some(l.Seconds) }},
	{"limits.tokens", phrase.PageAgentsTokens, func(l agent.Limits) string { return some(l.Tokens) }},
	{"limits.cost", phrase.PageAgentsCost, func(l agent.Limits) string {
		if l.Cost == 0 {
			return ""
		}
		return number(l.Cost)
	}},
	{"limits.depth", phrase.PageAgentsDepth, func(l agent.Limits) string { return some(l.Depth) }},
	{"limits.answer", phrase.PageAgentsAnswer, func(l agent.Limits) string { return some(l.Answer) }},
}

// agentValues returns the form fields of a definition.
func agentValues(d agent.Definition) url.Values {
	v := url.Values{"name": {string(d.Name)}, "description": {d.Description}, "prompt": {d.Prompt}, "service": {string(d.Service)}, "tool": d.Tools}
	for _, s := range d.Fallbacks {
		v.Add("fallback", string(s))
	}
	for _, a := range d.Subagents {
		v.Add("subagent", string(a))
	}
	v.Set("skills", d.Skills.String())
	effects := agent.Permissions{} // they have no fields of their own
	for name, p := range d.Permissions {
		if strings.Contains(name, ".") {
			effects[name] = p
			continue
		}
		v.Set("permission."+name, string(p))
	}
	for _, b := range agentBounds {
		v.Set(b.field, b.value(d.Limits))
	}
	v.Set("context.max_tokens", some(d.Context.MaxTokens))
	v.Set("context.keep_chars", some(d.Context.KeepChars))
	if n := d.Context.ReplyReserve; n != nil {
		v.Set("context.reply_reserve", itoa(*n))
	}
	v.Set("compaction.threshold", some(d.Compaction.Threshold))
	if d.Compaction.Off {
		v.Set("compaction.off", "1")
	}
	v.Set("rest", string(encoded(agent.Definition{
		Presets: d.Presets, Clock: d.Clock, Processors: d.Processors, Permissions: effects, Sampling: d.Sampling, Character: d.Character, Greetings: d.Greetings,
	})))
	return v
}

// agentOf parses the definition in a form, and returns the problems of
// unreadable fields.
func agentOf(v url.Values, l phrase.Locale) (d agent.Definition, faults []FaultSlot) {
	wrong := func(field string, key phrase.Key, args map[string]any) {
		faults = append(faults, FaultSlot{Field: field, Texts: []string{l.Say(key, args)}})
	}
	if rest := v.Get("rest"); rest != "" {
		if err := json.Unmarshal([]byte(rest), &d); err != nil {
			wrong("file", phrase.PageInputJSON, map[string]any{"Detail": err})
		}
	}
	d.Name, d.Description, d.Prompt = artel.AgentName(strings.TrimSpace(v.Get("name"))), v.Get("description"), v.Get("prompt")
	d.Service, d.Tools = artel.ServiceID(v.Get("service")), v["tool"]
	for _, s := range v["fallback"] {
		if s != "" {
			d.Fallbacks = append(d.Fallbacks, artel.ServiceID(s))
		}
	}
	for _, a := range v["subagent"] {
		d.Subagents = append(d.Subagents, artel.AgentName(a))
	}
	d.Skills = agent.ParseSkillNames(v.Get("skills"))
	for field := range v {
		if name, ok := strings.CutPrefix(field, "permission."); ok && v.Get(field) != "" {
			if d.Permissions == nil {
				d.Permissions = agent.Permissions{}
			}
			d.Permissions[name] = agent.Permission(v.Get(field))
		}
	}
	whole := func(field string, to *int) {
		if s := strings.TrimSpace(v.Get(field)); s != "" {
			var err error
			if *to, err = strconv.Atoi(s); err != nil {
				wrong(field, phrase.PageInputWhole, nil)
			}
		}
	}
	whole("limits.turns", &d.Limits.Turns)
	whole("limits.tool_calls", &d.Limits.ToolCalls)
	whole("limits.seconds", &d.Limits.Seconds)
	whole("limits.tokens", &d.Limits.Tokens)
	whole("limits.depth", &d.Limits.Depth)
	whole("limits.answer", &d.Limits.Answer)
	if s := strings.TrimSpace(v.Get("limits.cost")); s != "" {
		var err error
		if d.Limits.Cost, err = strconv.ParseFloat(s, 64); err != nil {
			wrong("limits.cost", phrase.PageInputNumber, nil)
		}
	}
	whole("context.max_tokens", &d.Context.MaxTokens)
	whole("context.keep_chars", &d.Context.KeepChars)
	if strings.TrimSpace(v.Get("context.reply_reserve")) != "" {
		d.Context.ReplyReserve = new(int)
		whole("context.reply_reserve", d.Context.ReplyReserve)
	}
	whole("compaction.threshold", &d.Compaction.Threshold)
	d.Compaction.Off = v.Get("compaction.off") != ""
	return d, faults
}

// agentOfFile parses the definition in an edited file.
func agentOfFile(v url.Values, l phrase.Locale) (agent.Definition, []FaultSlot) {
	text := v.Get("markdown")
	if !strings.HasSuffix(text, "\n") {
		text += "\n" // a pasted text may lack the last line end
	}
	fault := func(s string) []FaultSlot { return []FaultSlot{{Field: "file", Texts: []string{s}}} }
	if !utf8.ValidString(text) {
		return agent.Definition{}, fault(l.Say(phrase.AgentNotUTF8, nil))
	}
	if !strings.HasPrefix(strings.TrimPrefix(text, "\uFEFF"), "---") {
		return agent.Definition{}, fault(l.Say(phrase.PageAgentsFrontMatter, nil))
	}
	d, err := agent.Read(cmp.Or(v.Get("filename"), ".md"), []byte(text))
	if err != nil {
		return d, fault(l.Say(phrase.PageAgentsCannotRead, map[string]any{"Detail": reasonOf(err)}))
	}
	return d, nil
}

// agentEditor builds an editor from form values.
func (ui *handler) agentEditor(r *http.Request, v url.Values) (e AgentEditor, err error) {
	e.values, e.locale, e.AsFile = v, locale(r), v.Has("markdown")
	e.Original, e.From = artel.AgentName(r.PathValue("name")), artel.AgentName(v.Get("from"))
	if v.Has("original") {
		e.Original = artel.AgentName(v.Get("original"))
	}
	if e.frame, err = ui.frame(r, ""); err != nil {
		return e, err
	}
	e.tools, e.prefixes = ui.app.Tools.List(r.Context()), ui.app.Tools.Prefixes(r.Context())
	if e.agents, err = ui.app.Agents.List(r.Context()); err != nil {
		return e, err
	}
	switch {
	case e.Original != "":
		e.Title = e.locale.Say(phrase.PageAgentsEdit, map[string]any{"Name": artel.Visible(string(e.Original))})
	case e.From != "":
		e.Title = e.locale.Say(phrase.PageAgentsCopyOf, map[string]any{"Name": artel.Visible(string(e.From))})
	default:
		e.Title = e.locale.Say(phrase.PageAgentsNew, nil)
	}
	return e, e.check(r, ui)
}

// check parses the values and finds their problems.
func (e *AgentEditor) check(r *http.Request, ui *handler) error {
	var found []FaultSlot
	read := agentOf
	if e.AsFile {
		read = agentOfFile
	}
	e.definition, found = read(e.values, e.locale)
	e.Faults = AgentFaults{Checked: true}
	if e.unread = len(found) > 0; e.unread && e.AsFile { // nothing else can be checked
		e.Faults.Slots, e.Faults.Count = found, 1
		return nil
	}
	flaws, err := ui.app.Agents.Check(r.Context(), e.definition)
	if err != nil {
		return err
	}
	taken := slices.ContainsFunc(e.agents, func(a settings.Agent) bool { return a.Name == e.definition.Name })
	switch {
	case e.Original == "" && taken:
		found = append(found, FaultSlot{Field: "name", Texts: []string{e.locale.Say(phrase.PageAgentsExists, nil)}})
	case e.Original != "" && e.Original != e.definition.Name:
		found = append(found, FaultSlot{Field: "name", Texts: []string{e.locale.Say(phrase.PageAgentsKeepsName, nil)}})
	}
	for _, f := range flaws {
		text := f.In(e.locale)
		field, _, _ := strings.Cut(f.Field, ".")
		switch {
		case e.AsFile:
			field, text = "file", f.Field+": "+text
		case isAgentField(f.Field):
			field = f.Field
		case field == "permissions":
			field = "tools"
		default:
			field, text = "file", f.Field+": "+text
		}
		found = append(found, FaultSlot{Field: field, Texts: []string{text}})
	}
	e.Faults.Count = len(found)
	for _, field := range agentFields {
		s := FaultSlot{Field: field.field, Title: field.title}
		for _, f := range found {
			if f.Field == s.Field || e.AsFile && s.Field == "file" {
				s.Texts = append(s.Texts, f.Texts...)
			}
		}
		e.Faults.Slots = append(e.Faults.Slots, s)
	}
	return nil
}
