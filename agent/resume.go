// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/phrase"
)

// cutOff returns the result of a call that an earlier attempt started and that
// must not be repeated.
func (r *run) cutOff(c artel.ToolCall) (tool.Result, bool) {
	edited, cut := r.in.CutOff[c.ID]
	if !cut {
		return tool.Result{}, false
	}
	switch repeat := r.tools.Repeat(c.Name); {
	case repeat == tool.RepeatAlways, repeat == tool.RepeatUnlessEdited && len(edited) == 0:
		return tool.Result{}, false
	case len(edited) == 0:
		said := r.in.Env.Locale.Say(phrase.ToolCutOff, map[string]any{"Name": c.Name})
		return tool.Result{Content: said, IsError: true, Metadata: map[string]any{"interrupted": true}}, true
	default:
		refs := make([]string, len(edited))
		for i, ref := range edited {
			ref.Conversation = ""
			refs[i] = ref.String()
		}
		said := r.in.Env.Locale.Say(phrase.ToolCutOffDone, map[string]any{"Name": c.Name, "Refs": strings.Join(refs, ", ")})
		unknown := r.tools.Repeat(c.Name) == tool.RepeatNever // it may have done more than these edits
		if unknown {
			said = r.in.Env.Locale.Say(phrase.ToolCutOff, map[string]any{"Name": c.Name}) + " " + said
		}
		return tool.Result{Content: said, IsError: unknown, Metadata: map[string]any{"interrupted": true}}, true
	}
}

// countResumed counts the calls of earlier attempts at the run, and returns the
// number of model calls. Unanswered tool calls are counted when they are
// answered.
func (r *run) countResumed() (turns int) {
	for _, m := range r.history {
		if m.Run == r.in.Run.ID && m.Role == artel.RoleAssistant && m.Agent == r.in.Agent.Name && m.Within == r.thread {
			turns++
			r.toolCalls += len(artel.CallsOf(m.Parts))
		}
	}
	open := len(r.unanswered())
	r.toolCalls -= open
	if r.thread == "" {
		r.tree.restoreCounts(turns, r.toolCalls)
		for _, m := range r.in.Nested {
			if m.Role == artel.RoleAssistant {
				r.tree.restoreCounts(1, len(artel.CallsOf(m.Parts)))
			}
		}
	} else {
		r.tree.restoreCounts(0, -open) // the outer run has counted everything
	}
	if open > 0 {
		turns-- // the newest turn continues
	}
	return turns
}
