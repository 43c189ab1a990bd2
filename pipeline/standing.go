// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"slices"

	"github.com/artelhq/artel"
)

// ActiveMessages returns what of a branch, root first, is for an agent: what is not
// muted and not another agent's, with its newest summary first, in the place of
// what that covers. Of a summary that covers a message which is not on the
// branch, and of one that names none, only what comes after it stands. The
// result shares the messages' parts with the branch.
func ActiveMessages(branch []artel.Message, agent artel.AgentName) []artel.Message {
	out := make([]artel.Message, 0, len(branch)+2)
	for _, i := range activeIndexes(branch, agent) {
		out = append(out, branch[i])
	}
	return out
}

// standing is [ActiveMessages] in places on the branch.
func activeIndexes(branch []artel.Message, agent artel.AgentName) []int {
	counts := func(m *artel.Message) bool { return !m.Muted && (m.Agent == "" || m.Agent == agent) }
	newest := -1
	for i := range slices.Backward(branch) {
		if m := &branch[i]; m.Summary && counts(m) && !blank(m.Parts) { // who says nothing stands for nothing
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

// Exchanges cuts messages into what is kept or replaced together: an assistant
// message with tool calls and the tool messages right after it, else one
// message. It returns where each begins.
func Exchanges(ms []artel.Message) []int {
	var starts []int
	for i := 0; i < len(ms); {
		starts = append(starts, i)
		calls := artel.HasCalls(ms[i].Parts) && ms[i].Role == artel.RoleAssistant
		i++
		for calls && i < len(ms) && ms[i].Role == artel.RoleTool {
			i++
		}
	}
	return starts
}
