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

// extraMessages is how many messages a draft has room for beside its history.
const extraMessages = 16

// loaded makes messages of these places on the branch.
func (d *Draft) loadMessages(path []artel.Message, places []int) ([]Message, error) {
	out := make([]Message, 0, len(places)+extraMessages)
	for _, i := range places {
		m := &path[i] // histories are long, and messages large
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
			origin = OriginSummary // it comes first, and stands for what came before
		}
		out = append(out, Message{
			ID: string(m.ID), Role: m.Role, Parts: parts, Agent: m.Agent, Origin: origin, Stability: Session,
		})
	}
	return d.dropUnpaired(out), nil
}

// forModel returns the parts without what is not for this service: what
// another one thought or keeps with its calls, and what people are told of
// tool results. It returns ps itself where there is none of it.
func (d *Draft) forModel(ps artel.Parts) artel.Parts {
	if onlyText(ps) { // as nearly all
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

// branch returns the messages on the path that ends in the
// head, root first. A parent that is not there ends it.
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
	for i, m := range slices.Backward(d.History) { // the last of one id counts
		byID.add(string(m.ID), i, at)
	}
	if byID.find(string(head), at) < 0 {
		return nil, unknownHead(head)
	}
	path := make([]artel.Message, 0, len(d.History))
	on := make([]bool, len(d.History))
	for id := head; id != ""; {
		i := byID.find(string(id), at)
		if i < 0 || on[i] { // a loop ends where it would begin again
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

// straight reports whether a history is a branch as it stands, which is what
// stores give. Ids that ascend are all different.
func isBranch(history []artel.Message, head artel.MessageID) bool {
	for i := range history {
		m := &history[i]
		if i == 0 && m.Parent != "" || i > 0 && (m.Parent != history[i-1].ID || m.ID <= history[i-1].ID) {
			return false
		}
	}
	return len(history) > 0 && history[len(history)-1].ID == head
}

func unknownHead(id artel.MessageID) error {
	return artel.Errorf(artel.Invalid, "pipeline.Build", "", "the head %q is not among the messages", artel.Shorten(string(id), 60))
}

// blank reports whether there is nothing in ps but white space.
func blank(ps artel.Parts) bool {
	for _, p := range ps {
		t, ok := p.(artel.Text)
		if !ok || t.Text != "" && t.Text[0] > ' ' && t.Text[0] < utf8.RuneSelf { // as nearly all, whose end need not be looked at
			return false
		}
		if strings.TrimSpace(t.Text) != "" {
			return false
		}
	}
	return true
}

// exchange returns the end of the unit that begins at i: an assistant message
// with tool calls and the tool messages right after it, else one message.
func exchange(ms []Message, i int) int {
	end := i + 1
	if ms[i].Role != artel.RoleAssistant || !artel.HasCalls(ms[i].Parts) {
		return end
	}
	for end < len(ms) && ms[end].Role == artel.RoleTool {
		end++
	}
	return end
}

// paired takes out halves of tool exchanges, which every model API refuses: a
// muted message, a filter or the begin of the history may have left them. It
// writes into ms.
func (d *Draft) dropUnpaired(ms []Message) []Message {
	out := ms[:0]
	for i := 0; i < len(ms); {
		end := exchange(ms, i)
		unit := ms[i:end]
		if complete(unit) { // as nearly all
			if len(out) == i {
				out = ms[:end]
			} else {
				out = append(out, unit...)
			}
			i = end
			continue
		}
		for j, m := range unit {
			keep := m.Parts
			if j == 0 {
				keep = without(keep, func(p artel.Part) bool {
					c, ok := p.(artel.ToolCall)
					return ok && !answered(unit, c.ID)
				})
			}
			if j > 0 || m.Role == artel.RoleTool {
				keep = without(keep, func(p artel.Part) bool {
					r, ok := p.(artel.ToolResult)
					return ok && (m.Role != artel.RoleTool || j == 0 || !called(unit, r.CallID))
				})
			}
			if len(keep) != len(m.Parts) {
				d.Log(Warn, "half of a tool exchange is not sent", map[string]any{"message_id": m.ID})
				if m.Parts = keep; blank(keep) || onlyReasoning(keep) {
					continue
				}
			}
			out = append(out, m)
		}
		i = end
	}
	clear(ms[len(out):])
	return out
}

// whole reports whether all calls of an exchange have their results, and all
// results their calls.
func complete(unit []Message) bool {
	if unit[0].Role == artel.RoleTool {
		return false
	}
	for _, c := range artel.CallsOf(unit[0].Parts) {
		if !answered(unit, c.ID) {
			return false
		}
	}
	for _, m := range unit[1:] {
		for _, r := range artel.ResultsOf(m.Parts) {
			if !called(unit, r.CallID) {
				return false
			}
		}
	}
	return true
}

// called reports whether the assistant message of an exchange has call id.
func called(unit []Message, id artel.CallID) bool {
	return slices.ContainsFunc(unit[0].Parts, func(p artel.Part) bool { c, ok := p.(artel.ToolCall); return ok && c.ID == id })
}

// answered reports whether an exchange has a result of call id.
func answered(unit []Message, id artel.CallID) bool {
	return slices.ContainsFunc(unit[1:], func(m Message) bool {
		return slices.ContainsFunc(m.Parts, func(p artel.Part) bool { r, ok := p.(artel.ToolResult); return ok && r.CallID == id })
	})
}

func onlyReasoning(ps artel.Parts) bool {
	return !slices.ContainsFunc(ps, func(p artel.Part) bool { _, ok := p.(artel.Reasoning); return !ok })
}

// without returns ps itself where nothing goes.
func without(ps artel.Parts, gone func(artel.Part) bool) artel.Parts {
	if !slices.ContainsFunc(ps, gone) {
		return ps
	}
	return slices.DeleteFunc(slices.Clone(ps), gone)
}
