// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"slices"

	"github.com/artelhq/artel"
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

// dropUnpaired removes tool calls without a result and results without a call,
// which every model API refuses. They occur after a muted message, a filter, or
// a cut of the history. It writes into ms.
func (d *Draft) dropUnpaired(ms []Message) []Message {
	out := ms[:0]
	for i := 0; i < len(ms); {
		end := exchangeEnd(ms, i, (*Message).content)
		unit := ms[i:end]
		if complete(unit) { // the usual case
			if len(out) == i {
				out = ms[:end]
			} else {
				out = append(out, unit...)
			}
			i = end
			continue
		}
		calls := artel.CallsOf(unit[0].Parts) // out may overwrite unit[0]
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
					return ok && (m.Role != artel.RoleTool || j == 0 || !called(calls, r.CallID))
				})
			}
			if len(keep) != len(m.Parts) {
				d.Log(Warn, "an unpaired tool call or result is not sent", map[string]any{"message_id": m.ID})
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

// complete reports whether every call of an exchange has a result, and every
// result a call.
func complete(unit []Message) bool {
	if unit[0].Role == artel.RoleTool {
		return false
	}
	calls := artel.CallsOf(unit[0].Parts)
	for _, c := range calls {
		if !answered(unit, c.ID) {
			return false
		}
	}
	for _, m := range unit[1:] {
		for _, r := range artel.ResultsOf(m.Parts) {
			if !called(calls, r.CallID) {
				return false
			}
		}
	}
	return true
}

// called reports whether call id is among calls.
func called(calls []artel.ToolCall, id artel.CallID) bool {
	return slices.ContainsFunc(calls, func(c artel.ToolCall) bool { return c.ID == id })
}

// answered reports whether an exchange has a result of call id.
func answered(unit []Message, id artel.CallID) bool {
	return slices.ContainsFunc(unit[1:], func(m Message) bool {
		return slices.ContainsFunc(m.Parts, func(p artel.Part) bool { r, ok := p.(artel.ToolResult); return ok && r.CallID == id })
	})
}
