// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/macro"
)

// macroContext returns the values of the macros of this build. The last
// messages are those of the history in the draft.
func (d *Draft) macroContext() macro.Context {
	values := maps.Clone(d.Machine)
	if values == nil {
		values = map[string]string{}
	}
	maps.Copy(values, map[string]string{
		"user": d.User.Called(), "persona": d.User.Persona,
		"modelId": d.Service.Model, "modelName": lastSegment(d.Service.Model),
		"profileId": string(d.Service.ID), "profileName": d.Service.Name, "provider": string(d.Service.Dialect),
		"locale": string(d.Locale),
	})
	maps.Copy(values, d.Agent.Values(d.User.Called()))
	for _, m := range slices.Backward(d.Messages) {
		if m.Origin != OriginHistory {
			continue
		}
		text := artel.TextOf(m.Parts)
		for _, name := range []string{"lastMessage", lastOf(m.Role)} {
			if _, known := values[name]; !known && name != "" && text != "" {
				values[name] = text
			}
		}
		if values["lastUserMessage"] != "" && values["lastCharMessage"] != "" {
			break
		}
	}
	values["input"] = values["lastUserMessage"]
	values["idle_duration"] = d.idle()
	var tools []macro.Tool
	for _, t := range d.Tools {
		tools = append(tools, macro.Tool{Name: t.Name, Description: t.Description, Schema: string(t.Schema)})
	}
	c := macro.Context{
		Values: values, Tools: tools, Now: d.Now, Conversation: string(d.Conversation),
		Seed: strconv.FormatUint(d.Seed, 10), Variables: &macro.Variables{Local: maps.Clone(d.Variables), Global: maps.Clone(d.Globals)},
	}
	return expandCharacter(c)
}

// expandCharacter expands the macros in the texts of a character, once, so that
// they may stand in prompts. Variables that they set are discarded.
func expandCharacter(c macro.Context) macro.Context {
	for _, name := range []string{"description", "personality", "scenario", "mesExamples"} {
		if strings.Contains(c.Values[name], "{{") {
			own := c
			own.Variables = &macro.Variables{Local: maps.Clone(c.Variables.Local), Global: maps.Clone(c.Variables.Global)}
			if r, err := macro.New(own).Expand(c.Values[name]); err == nil {
				c.Values[name] = r.Text
			}
		}
	}
	return c
}

// idle describes the time between the newest message and the newest message of
// the user before it. It depends on the history alone, so that a preview and the
// call give the same.
func (d *Draft) idle() string {
	var ids []artel.MessageID
	for _, m := range slices.Backward(d.Messages) {
		if m.Origin == OriginHistory && (len(ids) == 0 || m.Role == artel.RoleUser) {
			if ids = append(ids, artel.MessageID(m.ID)); len(ids) == 2 {
				break
			}
		}
	}
	var times []time.Time
	for _, m := range slices.Backward(d.History) {
		if slices.Contains(ids, m.ID) && !m.CreatedAt.IsZero() {
			if times = append(times, m.CreatedAt); len(times) == 2 {
				return macro.Duration(times[0].Sub(times[1]))
			}
		}
	}
	return "just now"
}

func lastOf(r artel.Role) string {
	switch r {
	case artel.RoleUser:
		return "lastUserMessage"
	case artel.RoleAssistant:
		return "lastCharMessage"
	}
	return ""
}

func lastSegment(model string) string { return model[strings.LastIndexByte(model, '/')+1:] }

var macroName = regexp.MustCompile(`\{\{\s*([^\s:{}][^:{}]*)`)

// macroStability returns how long a text with macros stays the same. Macros
// about the user, the agent and the model are as stable as those.
func macroStability(text string) Stability {
	s := Static
	for _, m := range macroName.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(m[1], "//") {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(m[1])) {
		case "trim", "newline", "space", "noop", "reverse", "char", "agent", "description", "agentversion", "repeat":
		case "user", "persona", "modelid", "modelname", "profileid", "profilename", "provider", "pick", "personality", "scenario", "mesexamples", "tools", "tool_usage",
			"os", "osversion", "arch", "platform", "hostname", "locale":
			s = s.Least(Session)
		default:
			return Turn
		}
	}
	return s
}

// expand expands the macros of prompts, one after the other, with one set of
// variables.
func (d *Draft) expand(prompts []prompt) error {
	if !slices.ContainsFunc(prompts, func(p prompt) bool { return strings.Contains(p.Text, "{{") }) {
		return nil
	}
	c := d.macroContext()
	Set(d, c.Variables)
	x := macro.New(c)
	for i := range prompts {
		p := &prompts[i]
		r, err := x.Expand(p.Text)
		if err != nil {
			return &artel.Error{Op: "pipeline.Build", Subject: p.ID, Kind: artel.KindOf(err), Err: err}
		}
		if names := r.Unknown(); len(names) > 0 {
			d.Log(Warn, "macros of a preset are not expanded", map[string]any{"preset": p.ID, "macros": names, "because": r.Problems[0].Message})
		}
		p.stability = macroStability(p.Text)
		p.Text = r.Text
	}
	return nil
}
