// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/phrase"
)

// cutOff returns the result of a call that an earlier attempt started and that
// must not be repeated.
func (r *run) cutOff(c artel.ToolCall) (tool.Result, bool) {
	edited, cut := r.in.CutOff[c.ID]
	if !cut || r.in.Env.Host != nil && r.in.Env.Host.Kept(c.ID) != nil {
		return tool.Result{}, false
	}
	repeat := r.tools.Of(c.Name).Repeat
	if repeat == tool.RepeatAlways || repeat == tool.RepeatUnlessEdited && len(edited) == 0 {
		return tool.Result{}, false
	}
	return Interrupted(r.in.Env.Locale, c.Name, repeat, edited), true
}

// Interrupted returns the result of a call of the tool name that was started and
// not finished. edited are the artifacts that it had edited.
func Interrupted(l phrase.Locale, name string, repeat tool.Repeat, edited []artel.Ref) tool.Result {
	result := tool.Result{
		Content: l.Say(phrase.ToolCutOff, map[string]any{"Name": name}), IsError: true, Metadata: map[string]any{"interrupted": true},
	}
	if len(edited) == 0 {
		return result
	}
	refs := make([]string, len(edited))
	for i, ref := range edited {
		ref.Conversation = ""
		refs[i] = ref.String()
	}
	done := l.Say(phrase.ToolCutOffDone, map[string]any{"Name": name, "Refs": strings.Join(refs, ", ")})
	if repeat == tool.RepeatNever { // it may have done more than these edits
		result.Content += " " + done
	} else {
		result.Content, result.IsError = done, false
	}
	return result
}

// NotMade returns the result of a call that was not started before the end of
// its run.
func NotMade(l phrase.Locale, name string) tool.Result {
	return tool.Result{
		Content: l.Say(phrase.ToolNotMade, map[string]any{"Name": name}), IsError: true, Metadata: map[string]any{"not_made": true},
	}
}

// Unanswered returns the calls of messages that have no result. The messages
// are those of a thread, in order.
func Unanswered(thread []artel.Message) (calls []artel.ToolCall) {
	for _, m := range thread {
		if m.Role == artel.RoleAssistant {
			calls = append(calls, artel.CallsOf(m.Parts)...)
			continue
		}
		for _, res := range artel.ResultsOf(m.Parts) {
			if i := slices.IndexFunc(calls, func(c artel.ToolCall) bool { return c.ID == res.CallID }); i >= 0 {
				calls = slices.Delete(calls, i, i+1)
			}
		}
	}
	return calls
}

// answerOpenCalls emits a result for every call of a subagent that failed, so
// that its thread can be continued.
func (r *run) answerOpenCalls() error {
	for _, c := range Unanswered(r.ownMessages()) {
		result := NotMade(r.in.Env.Locale, c.Name)
		if r.started[c.ID] {
			result = Interrupted(r.in.Env.Locale, c.Name, tool.RepeatNever, nil)
		}
		if err := r.completeCall(c, result, 0); err != nil {
			return err
		}
	}
	return nil
}

// finished reports whether the newest message is a final answer.
func (r *run) finished() bool {
	for _, m := range slices.Backward(r.history) {
		if !m.Summary {
			return m.Run == r.in.Run.ID && m.Within == r.thread && m.Role == artel.RoleAssistant && !artel.HasCalls(m.Parts)
		}
	}
	return false
}

// unanswered returns the calls at the end of the history that are made here and have no
// result, because an attempt was interrupted between a model call and its tools.
func (r *run) unanswered() []artel.ToolCall {
	answered := map[artel.CallID]bool{}
	for i := len(r.history) - 1; i >= 0; i-- {
		m := r.history[i]
		switch m.Role {
		case artel.RoleTool:
			for _, res := range artel.ResultsOf(m.Parts) {
				answered[res.CallID] = true
			}
		case artel.RoleAssistant:
			if m.Run != r.in.Run.ID || m.Within != r.thread {
				return nil
			}
			var open []artel.ToolCall
			for _, c := range r.ownCalls(artel.CallsOf(m.Parts)) {
				if !answered[c.ID] {
					open = append(open, c)
				}
			}
			return open
		default:
			return nil
		}
	}
	return nil
}

// countResumed counts the calls of earlier attempts at the run. Unanswered tool
// calls are counted when they are answered.
func (r *run) countResumed() {
	for _, m := range r.history {
		if m.Run == r.in.Run.ID && (m.Role == artel.RoleAssistant || m.Summary) && m.Agent == r.in.Agent.Name && m.Within == r.thread {
			r.turns++
			r.toolCalls += len(r.ownCalls(artel.CallsOf(m.Parts)))
		}
	}
	open := len(r.unanswered())
	r.toolCalls -= open
	if r.thread == "" {
		r.tree.restoreCounts(r.turns, r.toolCalls)
		for _, m := range r.in.Nested {
			if m.Role == artel.RoleAssistant || m.Summary {
				r.tree.restoreCounts(1, len(artel.CallsOf(m.Parts)))
			}
		}
	} else {
		r.tree.restoreCounts(0, -open) // the outer run has counted everything
	}
}
