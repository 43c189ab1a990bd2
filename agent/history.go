// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/pipeline"
)

// Messages that a summary stands for are not sent. The model finds them with
// [tool.SearchHistory], which the agent has while a summary stands for some, or
// always if its file names the tool.

// withHistory adds the tool that searches what summaries stand for, if one does. If
// none does, it leaves the tool out, unless the agent's file names it.
func (r *run) withHistory(tools *tool.Set) *tool.Set {
	if slices.Contains(r.in.Agent.Tools, tool.SearchHistory) || r.permission(tool.SearchHistory) == Deny {
		return tools
	}
	if active := pipeline.ActiveMessages(r.history, r.in.Agent.Name); len(active) > 0 && active[0].Summary {
		return tools.With(tool.SearchHistoryTool())
	}
	if !tools.Has(tool.SearchHistory) {
		return tools
	}
	return tools.Only(slices.DeleteFunc(tools.Names(), func(n string) bool { return n == tool.SearchHistory })...)
}

// coveredMessages returns the messages that the newest summary stands for, oldest
// first. Muted messages and earlier summaries are left out.
func (r *run) coveredMessages(context.Context) ([]artel.Message, error) {
	return Covered(r.history, r.in.Agent.Name), nil
}

// Covered returns the messages of a branch that its newest summary stands for, oldest
// first, without muted ones and earlier summaries; nil: there is no summary. They are
// what an agent would be sent without the summaries.
func Covered(branch []artel.Message, name artel.AgentName) []artel.Message {
	active := pipeline.ActiveMessages(branch, name)
	if len(active) == 0 || !active[0].Summary {
		return nil
	}
	sent := make(map[artel.MessageID]bool, len(active))
	for _, m := range active {
		sent[m.ID] = true
	}
	without := slices.DeleteFunc(slices.Clone(branch), func(m artel.Message) bool { return m.Summary })
	return slices.DeleteFunc(pipeline.ActiveMessages(without, name), func(m artel.Message) bool { return sent[m.ID] })
}

// undone returns the newest summary that a user has undone and that stood for some of
// the active messages; "": there is none.
func (r *run) undone(standing []artel.Message) artel.MessageID {
	for i, m := range slices.Backward(r.history) {
		if !m.Summary || !m.Muted || m.Agent != "" && m.Agent != r.in.Agent.Name {
			continue
		}
		last := m.Covers
		if last == "" && i > 0 {
			last = r.history[i-1].ID
		}
		if slices.ContainsFunc(standing, func(m artel.Message) bool { return m.ID == last }) {
			return m.ID
		}
	}
	return ""
}

// compactableAfterUndo returns how many of the active messages to summarise, at most n,
// after a user has undone a summary of them: so few that the others fill half of the
// budget. What fits is sent as it was written.
func compactableAfterUndo(standing []artel.Message, n, budget int) int {
	starts, end, size, least := pipeline.Exchanges(standing), len(standing), 0, n
	for _, at := range slices.Backward(starts) {
		for _, m := range standing[at:end] {
			size += sizeInTokens(m)
		}
		if size > budget/2 {
			break
		}
		end, least = at, min(least, at)
	}
	if worthCompacting(standing[:least]) {
		return least
	}
	return n
}

// sizeInTokens is a high estimate of the tokens of a message.
func sizeInTokens(m artel.Message) int {
	b, err := m.Parts.MarshalJSON()
	if err != nil {
		return 0
	}
	return len(b) / minTokenBytes
}

// muteSummaries changes the history as users have undone or redone its summaries.
func (r *run) muteSummaries(muted map[artel.MessageID]bool) {
	if len(muted) == 0 {
		return
	}
	r.history = slices.Clone(r.history)
	for i := range r.history {
		if m, ok := muted[r.history[i].ID]; ok {
			r.history[i].Muted = m
		}
	}
	r.noCompaction, r.lastTokens = false, 0
	r.addTools()
}

// inOrder returns ms without parents, so that their order is that of the list.
func inOrder(ms []artel.Message) []artel.Message {
	out := make([]artel.Message, len(ms))
	for i, m := range ms {
		m.Parent = ""
		out[i] = m
	}
	return out
}
