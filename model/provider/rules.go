// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// keeps reports whether reasoning is passed back.
func (f MessageRules) replays(r artel.Reasoning) bool {
	return f.Own != "" && r.Service == f.Own && len(r.Opaque) > 0
}

// holds reports whether media of a type stay in tool results.
func (f MessageRules) allowsInResult(mediaType string, to model.Capabilities) bool {
	if f.ToolTypes != nil && !slices.ContainsFunc(f.ToolTypes, func(t string) bool {
		major, all := strings.CutSuffix(t, "/*")
		return t == mediaType || all && strings.HasPrefix(mediaType, major+"/")
	}) {
		return false
	}
	return to.ToolTakes(mediaType)
}

// call returns c as it is sent, and adds its id to those that are.
func (p *conformer) call(c artel.ToolCall, sent *[]artel.CallID) artel.ToolCall {
	if p.form.Own != "" && c.Service != p.form.Own {
		c.Opaque, c.Service = nil, ""
	}
	if p.form.UniqueIDs {
		c.ID = p.unique(c.ID)
	}
	*sent = append(*sent, c.ID)
	return c
}

// idsOf returns the ids of all calls, none of them taken.
func idsOf(messages []model.Message) map[artel.CallID]bool {
	ids := map[artel.CallID]bool{}
	for _, m := range messages {
		for _, c := range artel.CallsOf(m.Parts) {
			ids[c.ID] = false
		}
	}
	return ids
}

// unique takes id, or where it is taken the first like it that nobody has.
func (p *conformer) unique(id artel.CallID) artel.CallID {
	if taken := p.ids[id]; !taken && id != "" {
		p.ids[id] = true
		return id
	}
	stem := id
	if stem == "" {
		stem = "call"
	}
	for n := 2; ; n++ {
		next := stem + "_" + artel.CallID(strconv.Itoa(n))
		if _, there := p.ids[next]; !there {
			p.ids[next] = true
			return next
		}
	}
}

// remind turns what the system says into what a user message tells of it.
func systemReminder(m model.Message) model.Message {
	m.Parts = slices.Clone(m.Parts)
	for i, part := range m.Parts {
		if t, ok := part.(artel.Text); ok && t.Text != "" {
			m.Parts[i] = artel.Text{Text: "<system-reminder>\n" + t.Text + "\n</system-reminder>"}
		}
	}
	m.Role = artel.RoleUser
	return m
}

// join brings neighbors together as the form says. It may change messages, and
// makes new parts where it adds to them.
func (f MessageRules) join(messages []model.Message) []model.Message {
	var out []model.Message
	spoken := false // anything but system messages
	for _, m := range messages {
		results := m.Role == artel.RoleTool
		if results && f.Results == WithUser {
			m.Role = artel.RoleUser
		}
		if m.Role != artel.RoleSystem {
			if f.UserFirst && !spoken && m.Role != artel.RoleUser {
				out = append(out, opening())
			}
			spoken = true
		}
		if n := len(out); n > 0 && out[n-1].Role == m.Role && f.joins(m.Role, results, holdsResults(out[n-1])) {
			out[n-1].Parts = append(slices.Clip(out[n-1].Parts), m.Parts...)
			continue
		}
		out = append(out, m)
	}
	if f.UserFirst && !spoken {
		out = append(out, opening())
	}
	return out
}

func opening() model.Message {
	return model.Message{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: OpeningMessage}}}
}

func holdsResults(m model.Message) bool {
	_, ok := m.Parts[len(m.Parts)-1].(artel.ToolResult)
	return ok
}

// joins reports whether a message joins the one before it, which has its role:
// results say whether it has any, after whether the other ends with one.
func (f MessageRules) joins(role artel.Role, results, after bool) bool {
	switch {
	case results:
		return after && f.Results != OneByOne
	case after:
		return f.Results == WithUser
	}
	return f.Alternate
}
