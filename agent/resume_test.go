// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
)

// TestCutOff goes on behind calls that an earlier attempt had begun, or had
// not come to: each is made again or told of, as its tool says.
func TestCutOff(t *testing.T) {
	var made []string
	kind := func(name string, repeat tool.Repeat) tool.Tool {
		t := tool.Func(name, "Does it.", func(context.Context, *tool.Env, struct{}) (tool.Result, error) {
			made = append(made, name)
			return tool.Result{Content: "did " + name}, nil
		})
		t.Repeat = repeat
		return t
	}
	b := newBench(
		t, []turn{{say("Good."), end}},
		kind("pay", tool.RepeatNever), kind("look", tool.RepeatAlways), kind("edit", tool.RepeatUnlessEdited),
	)
	answer := artel.Message{
		ID: "msg_answer", Conversation: b.in.Run.Conversation, Parent: b.in.Run.Message, Role: artel.RoleAssistant, Agent: b.in.Agent.Name, Run: b.in.Run.ID,
	}
	edited := artel.Ref{Conversation: b.in.Run.Conversation, Artifact: "doc", Version: 3}
	b.in.CutOff = map[artel.CallID][]artel.Ref{}
	begun := func(id artel.CallID, name string, edits ...artel.Ref) {
		answer.Parts = append(answer.Parts, artel.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(`{}`)})
		b.in.CutOff[id] = edits
	}
	begun("1", "pay")
	begun("2", "pay", edited)
	begun("3", "look", edited)
	begun("4", "edit")
	begun("5", "edit", edited)
	begun("6", "pay")
	delete(b.in.CutOff, "6") // it had not begun
	b.in.History = append(b.in.History, answer)

	all, err := b.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"look", "edit", "pay"}, made); diff != "" {
		t.Errorf("made: %s", diff)
	}
	told := map[artel.CallID]artel.ToolResult{}
	for _, p := range all {
		if done, ok := p.(artel.ToolCompleted); ok {
			told[done.Call] = done.Message.Parts[0].(artel.ToolResult)
			if done.OK == told[done.Call].IsError {
				t.Errorf("call %s is told as OK: %v", done.Call, done.OK)
			}
		}
	}
	for id, want := range map[artel.CallID][]string{
		"1": {"outcome unknown"}, "2": {"outcome unknown", "artifact:doc@3"}, "3": {"did look"}, "4": {"did edit"}, "5": {"Do not repeat", "artifact:doc@3"}, "6": {"did pay"},
	} {
		for _, text := range want {
			if !strings.Contains(told[id].Content, text) {
				t.Errorf("call %s: got %q, want %q in it", id, told[id].Content, text)
			}
		}
	}
	if !told["1"].IsError || !told["2"].IsError || told["5"].IsError {
		t.Errorf("got %+v", told)
	}
}

// TestLimitsHoldForAllAttempts counts what an earlier attempt has done.
func TestLimitsHoldForAllAttempts(t *testing.T) {
	for _, c := range []struct {
		turns, calls int
		want         string
	}{{2, 9, "after 2 model calls"}, {3, 9, ""}, {9, 2, "after 2 tool calls"}, {9, 3, ""}} {
		b := newBench(t, []turn{{call("c", "echo", `{"text":"c"}`), tools}, {say("Good."), end}})
		b.in.Agent.Limits.Turns, b.in.Agent.Limits.ToolCalls = c.turns, c.calls
		b.in.History = append(b.in.History,
			artel.Message{ID: "msg_1", Parent: b.in.Run.Message, Role: artel.RoleAssistant, Agent: b.in.Agent.Name, Run: b.in.Run.ID, Parts: artel.Parts{
				artel.ToolCall{ID: "a", Name: "echo", Arguments: json.RawMessage(`{"text":"a"}`)},
				artel.ToolCall{ID: "b", Name: "echo", Arguments: json.RawMessage(`{"text":"b"}`)},
			}},
			artel.Message{ID: "msg_2", Parent: "msg_1", Role: artel.RoleTool, Run: b.in.Run.ID, Parts: artel.Parts{artel.ToolResult{CallID: "a", Content: "echo a"}}},
		)
		_, err := b.run(t.Context())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d turns and %d calls: got %v, want %q", c.turns, c.calls, err, c.want)
		}
	}
}

// TestResumedLimits counts what subagents did before, and not twice.
func TestResumedLimits(t *testing.T) {
	for calls, want := range map[int]string{4: "", 3: artel.CodeLimitToolCalls} {
		b := newBench(t, []turn{{call("c2", "echo", `{"text":"x"}`), end}, {say("Good."), end}})
		b.in.Agent.Limits.ToolCalls = calls
		inner := func(parts ...artel.Part) artel.Message {
			return artel.Message{ID: "msg_in", Run: b.in.Run.ID, Role: artel.RoleAssistant, Agent: "scout", Within: "c1", Parts: parts}
		}
		echo := func(id artel.CallID) artel.ToolCall {
			return artel.ToolCall{ID: id, Name: "echo", Arguments: json.RawMessage(`{"text":"x"}`)}
		}
		b.in.Nested = []artel.Message{inner(echo("i1"), echo("i2")), inner(artel.Text{Text: "Seen."})}
		own := artel.Message{
			ID: "msg_own", Conversation: b.in.Run.Conversation, Parent: b.in.Run.Message, Role: artel.RoleAssistant, Agent: b.in.Agent.Name,
			Run: b.in.Run.ID, Parts: artel.Parts{echo("c1")},
		}
		result := own
		result.ID, result.Parent, result.Role, result.Parts = "msg_result", own.ID, artel.RoleTool, artel.Parts{artel.ToolResult{CallID: "c1", Content: "x"}}
		b.in.History = append(b.in.History, own, result)
		_, err := b.run(t.Context())
		if got := artel.CodeOf(err); err == nil && want != "" || err != nil && got != want {
			t.Errorf("at most %d calls: got %v", calls, err)
		}
	}
}
