// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

func sessionLoader() Processor {
	return Processor{
		ID:          SessionLoader,
		Name:        "Session loader",
		Description: "Loads the branch from the newest summary on, without muted messages, blank messages and messages for other agents.",
		Priority:    PrioritySessionLoader,
		Icon:        "📜",
		Core:        true, Required: true, Always: true,
		Adds:    Session,
		Process: load,
	}
}

func load(_ context.Context, d *Draft) error {
	path, err := branch(d)
	if err != nil {
		return err
	}
	d.At = d.branchAt(path)
	places := activeIndexes(path, d.Agent.Name)
	if done, err := d.loadRecent(path, places); done || err != nil {
		return err
	}
	d.Messages, err = d.loadMessages(path, places)
	return err
}

// extraMessages is the spare capacity of a draft for messages beside the
// history.
const extraMessages = 16

// loadMessages returns the draft messages of these indexes of the branch.
func (d *Draft) loadMessages(path []artel.Message, places []int) ([]Message, error) {
	out := make([]Message, 0, len(places)+extraMessages)
	for _, i := range places {
		m := &path[i] // no copy: histories are long
		switch m.Role {
		case artel.RoleSystem, artel.RoleUser, artel.RoleAssistant, artel.RoleTool:
		default:
			return nil, artel.Errorf(artel.Invalid, "pipeline.Build", "", "the message %q has the role %q: want system, user, assistant or tool",
				artel.Shorten(string(m.ID), 60), artel.Shorten(string(m.Role), 60))
		}
		parts := d.forModel(m.Parts)
		if blank(parts) || onlyReasoning(parts) {
			continue
		}
		origin := OriginHistory
		if m.Summary {
			origin = OriginSummary // the first message, in place of those that it covers
		}
		out = append(out, Message{
			ID: string(m.ID), Role: m.Role, Parts: parts, Agent: m.Agent, Origin: origin, Stability: Session,
		})
	}
	return d.pairResults(out), nil
}

// forModel returns ps without the content that is not for this service:
// reasoning and opaque state of other services, and the metadata of tool
// results. It returns ps itself if there is none.
func (d *Draft) forModel(ps artel.Parts) artel.Parts {
	if onlyText(ps) { // the usual case
		return ps
	}
	foreign := func(p artel.Part) bool {
		r, ok := p.(artel.Reasoning)
		return ok && r.Service != d.Service.ID
	}
	private := func(p artel.Part) bool {
		switch p := p.(type) {
		case artel.ToolResult:
			return p.Millis != 0 || p.Metadata != nil
		case artel.ToolCall:
			return p.Opaque != nil && p.Service != d.Service.ID
		}
		return false
	}
	ps = without(ps, foreign)
	if !slices.ContainsFunc(ps, private) {
		return ps
	}
	ps = slices.Clone(ps)
	for i, p := range ps {
		switch p := p.(type) {
		case artel.ToolResult:
			p.Millis, p.Metadata = 0, nil
			ps[i] = p
		case artel.ToolCall:
			if private(p) {
				p.Opaque, p.Service = nil, ""
			}
			ps[i] = p
		}
	}
	return ps
}

func onlyText(ps artel.Parts) bool {
	for _, p := range ps {
		if _, ok := p.(artel.Text); !ok {
			return false
		}
	}
	return true
}

// branch returns the path from the root to the head, root first. It begins
// after a missing parent.
func branch(d *Draft) ([]artel.Message, error) {
	head := d.head()
	if head == "" {
		return d.History, nil
	}
	linked := slices.ContainsFunc(d.History, func(m artel.Message) bool { return m.Parent != "" })
	if !linked {
		i := slices.IndexFunc(d.History, func(m artel.Message) bool { return m.ID == head })
		if i < 0 {
			return nil, unknownHead(head)
		}
		return d.History[:i+1], nil
	}
	if isBranch(d.History, head) {
		return d.History, nil
	}
	byID := newIndex(len(d.History))
	at := func(i int) string { return string(d.History[i].ID) }
	for i, m := range slices.Backward(d.History) { // of several messages with one id, the last
		byID.add(string(m.ID), i, at)
	}
	if byID.find(string(head), at) < 0 {
		return nil, unknownHead(head)
	}
	path := make([]artel.Message, 0, len(d.History))
	on := make([]bool, len(d.History))
	for id := head; id != ""; {
		i := byID.find(string(id), at)
		if i < 0 || on[i] { // missing, or a loop
			d.Log(Warn, "a parent is missing; the branch begins after it", map[string]any{"message_id": string(id)})
			break
		}
		on[i] = true
		path = append(path, d.History[i])
		id = d.History[i].Parent
	}
	slices.Reverse(path)
	return path, nil
}

// isBranch reports whether the history is already a branch in order, as stores
// return it.
func isBranch(history []artel.Message, head artel.MessageID) bool {
	for i := range history {
		m := &history[i]
		if i == 0 && m.Parent != "" || i > 0 && m.Parent != history[i-1].ID {
			return false
		}
	}
	return len(history) > 0 && history[len(history)-1].ID == head &&
		surelyDistinct(len(history), func(i int) (string, bool) { return string(history[i].ID), true })
}

func unknownHead(id artel.MessageID) error {
	return artel.Errorf(artel.Invalid, "pipeline.Build", "", "the head %q is not among the messages", artel.Shorten(string(id), 60))
}

// ActiveMessages returns the messages of a branch, root first, that an agent is
// sent: those that are neither muted nor another agent's, with the newest
// summary first, in place of the messages that it covers. If the summary names
// no covered message, or one that is not on the branch, only later messages
// follow it. The result shares parts with the branch.
func ActiveMessages(branch []artel.Message, agent artel.AgentName) []artel.Message {
	out := make([]artel.Message, 0, len(branch)+2)
	for _, i := range activeIndexes(branch, agent) {
		out = append(out, branch[i])
	}
	return out
}

// activeIndexes returns the indexes of [ActiveMessages] on the branch.
func activeIndexes(branch []artel.Message, agent artel.AgentName) []int {
	counts := func(m *artel.Message) bool { return !m.Muted && (m.Agent == "" || m.Agent == agent) }
	newest := -1
	for i := range slices.Backward(branch) {
		if m := &branch[i]; m.Summary && counts(m) && !blank(m.Parts) { // an empty summary covers nothing
			newest = i
			break
		}
	}
	first := 0
	out := make([]int, 0, len(branch)+2)
	if newest >= 0 {
		first, out = newest+1, append(out, newest)
		if c := branch[newest].Covers; c != "" {
			if i := slices.IndexFunc(branch[:newest], func(m artel.Message) bool { return m.ID == c }); i >= 0 {
				first = i + 1
			}
		}
	}
	for i := first; i < len(branch); i++ {
		if m := &branch[i]; counts(m) && !m.Summary {
			out = append(out, i)
		}
	}
	return out
}

// blank reports whether ps holds only white space.
func blank(ps artel.Parts) bool {
	for _, p := range ps {
		t, ok := p.(artel.Text)
		if !ok || t.Text != "" && t.Text[0] > ' ' && t.Text[0] < utf8.RuneSelf { // fast path for most texts
			return false
		}
		if strings.TrimSpace(t.Text) != "" {
			return false
		}
	}
	return true
}

func onlyReasoning(ps artel.Parts) bool {
	return !slices.ContainsFunc(ps, func(p artel.Part) bool { _, ok := p.(artel.Reasoning); return !ok })
}

// without returns ps without the parts for which gone is true; ps itself if
// there are none.
func without(ps artel.Parts, gone func(artel.Part) bool) artel.Parts {
	if !slices.ContainsFunc(ps, gone) {
		return ps
	}
	return slices.DeleteFunc(slices.Clone(ps), gone)
}
