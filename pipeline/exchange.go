// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
)

// Exchanges returns the index at which each exchange of ms begins. An exchange
// is an assistant message with tool calls and the tool messages right after it,
// or any other single message. Its messages are kept, dropped or replaced
// together.
func Exchanges(ms []artel.Message) []int {
	content := func(m *artel.Message) (artel.Role, artel.Parts) { return m.Role, m.Parts }
	var starts []int
	for i := 0; i < len(ms); i = exchangeEnd(ms, i, content) {
		starts = append(starts, i)
	}
	return starts
}

// A span is a range of indexes, without its end.
type span struct{ start, end int }

// exchanges returns the exchanges of a draft.
func exchanges(ms []Message) []span {
	out := make([]span, 0, len(ms))
	for i := 0; i < len(ms); {
		end := exchangeEnd(ms, i, (*Message).content)
		out = append(out, span{i, end})
		i = end
	}
	return out
}

func (m *Message) content() (artel.Role, artel.Parts) { return m.Role, m.Parts }

// exchangeEnd returns the end of the exchange that begins at i.
func exchangeEnd[M any](ms []M, i int, content func(*M) (artel.Role, artel.Parts)) int {
	end := i + 1
	if role, parts := content(&ms[i]); role != artel.RoleAssistant || !artel.HasCalls(parts) {
		return end
	}
	for end < len(ms) {
		if role, _ := content(&ms[end]); role != artel.RoleTool {
			break
		}
		end++
	}
	return end
}

// pairResults returns ms with one result for every tool call, right after it, as
// every model API requires. A call without a result gets one that says that its
// outcome is unknown: a call that may have had effects is never hidden. Results
// without a call, and further results of one call, are removed. Such calls and
// results come from muted messages, imports and runs that ended early.
func (d *Draft) pairResults(ms []Message) []Message {
	i := 0
	for i < len(ms) {
		end := exchangeEnd(ms, i, (*Message).content)
		if !paired(ms[i:end]) {
			break
		}
		i = end
	}
	if i == len(ms) { // the usual case
		return ms
	}
	out := append(make([]Message, 0, len(ms)+extraMessages), ms[:i]...)
	for i < len(ms) {
		end := exchangeEnd(ms, i, (*Message).content)
		if unit := ms[i:end]; paired(unit) {
			out = append(out, unit...)
		} else {
			out = d.pairExchange(out, unit)
		}
		i = end
	}
	return out
}

// pairExchange appends an exchange to out, with one result for every call.
func (d *Draft) pairExchange(out, unit []Message) []Message {
	var open []artel.ToolCall
	if unit[0].Role == artel.RoleAssistant {
		out, open, unit = append(out, unit[0]), artel.CallsOf(unit[0].Parts), unit[1:]
	}
	caller := len(out) - 1
	for _, m := range unit {
		kept := make(artel.Parts, 0, len(m.Parts))
		for _, p := range m.Parts {
			if r, ok := p.(artel.ToolResult); ok {
				k := slices.IndexFunc(open, func(c artel.ToolCall) bool { return c.ID == r.CallID })
				if k < 0 {
					d.Log(Warn, "a tool result without a call of its own is not sent", map[string]any{"message_id": m.ID, "call_id": string(r.CallID)})
					continue
				}
				open = slices.Delete(open, k, k+1)
			}
			kept = append(kept, p)
		}
		if len(kept) == len(m.Parts) {
			out = append(out, m)
		} else if m.Parts = kept; !blank(kept) && !onlyReasoning(kept) {
			out = append(out, m)
		}
	}
	if len(open) == 0 {
		return out
	}
	last := out[caller]
	last.ID, last.Role, last.Parts = noResultID+last.ID, artel.RoleTool, make(artel.Parts, len(open))
	for i, c := range open {
		d.Log(Warn, "a tool call without a result is sent with one that says so", map[string]any{"message_id": out[caller].ID, "call_id": string(c.ID)})
		last.Parts[i] = artel.ToolResult{CallID: c.ID, Content: d.Locale.Say(phrase.ToolNoResult, map[string]any{"Name": c.Name}), IsError: true}
	}
	return append(out, last)
}

// noResultID begins the ids of messages that complete the calls of a message.
const noResultID = "artel:no-result:"

// paired reports whether every call of an exchange has one result, and every
// result a call.
func paired(unit []Message) bool {
	if unit[0].Role == artel.RoleTool {
		return false
	}
	if unit[0].Role != artel.RoleAssistant {
		return true
	}
	open := artel.CallsOf(unit[0].Parts)
	for i := range unit[1:] {
		for _, p := range unit[1+i].Parts {
			if r, ok := p.(artel.ToolResult); ok {
				k := slices.IndexFunc(open, func(c artel.ToolCall) bool { return c.ID == r.CallID })
				if k < 0 {
					return false
				}
				open = slices.Delete(open, k, k+1)
			}
		}
	}
	return len(open) == 0
}
