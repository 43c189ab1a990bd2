// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
		"user": d.User.Name, "persona": d.User.Persona,
		"char": string(d.Agent.Name), "description": d.Agent.Description,
		"modelId": d.Service.Model, "modelName": lastSegment(d.Service.Model),
		"profileId": string(d.Service.ID), "profileName": d.Service.Name, "provider": string(d.Service.Dialect),
		"locale": string(d.Locale),
	})
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
	var tools []macro.Tool
	for _, t := range d.Tools {
		tools = append(tools, macro.Tool{Name: t.Name, Description: t.Description, Schema: string(t.Schema)})
	}
	return macro.Context{
		Values: values, Tools: tools, Now: d.Now, Conversation: string(d.Conversation),
		Seed: strconv.FormatUint(d.Seed, 10), Variables: &macro.Variables{Local: maps.Clone(d.Variables), Global: maps.Clone(d.Globals)},
	}
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
		switch strings.ToLower(strings.TrimSpace(m[1])) {
		case "trim", "newline", "char", "agent", "description", "agentversion", "repeat":
		case "user", "persona", "modelid", "modelname", "profileid", "profilename", "provider", "pick", "tools", "tool_usage",
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
