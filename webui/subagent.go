// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"context"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
)

// delegateTool is the tool whose calls start subagents.
const delegateTool = "call_subagent"

// A Subagent is the thread of a subagent.
type Subagent struct {
	ID       string // element id
	Call     artel.CallID
	Into     string // selector of the list of calls that contains it
	Before   string // selector of the threads of later calls; "": none
	Folds    bool   // it has just ended
	Agent    artel.AgentName
	State    string // running, done, stopped, failed
	Asks     bool   // it or a nested subagent has an open question
	Messages []Message
}

// Open reports whether it is initially unfolded.
func (s Subagent) Open() bool { return s.State == stateRunning }

// subagentID is the element id of a thread. Call ids come from providers and
// may contain any character.
func subagentID(run artel.RunID, within artel.CallPath) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(run) + "/" + string(within)))
	return "w-" + strconv.FormatUint(h.Sum64(), 36)
}

func callsID(m artel.MessageID) string { return "m-" + string(m) + "-c" }

// subagents returns the threads of a message's calls, in call order.
func (v *view) subagents(ctx context.Context, m artel.Message, active artel.RunID) ([]Subagent, error) {
	all, err := v.app.Messages.Nested(ctx, v.conversation, m.Run)
	if err != nil {
		return nil, err
	}
	var out []Subagent
	for _, c := range artel.CallsOf(m.Parts) {
		if c.Name != delegateTool {
			continue
		}
		within := m.Within.Join(c.ID)
		thread := slices.DeleteFunc(slices.Clone(all), func(n artel.Message) bool { return n.Within != within })
		if len(thread) == 0 {
			continue
		}
		s, err := v.subagent(ctx, thread, active)
		if err != nil {
			return nil, err
		}
		s.Call = c.ID
		out = append(out, s)
	}
	return out, nil
}

// endThreads sets the outcome of the threads whose calls are done.
func (m Message) endThreads() {
	for i := range m.Subagents {
		s := &m.Subagents[i]
		for _, c := range m.Calls {
			if c.ID == s.Call && (c.State == stateDone || c.State == stateStopped || c.State == stateFailed) {
				s.end(c.State)
			}
		}
	}
}

// end sets the outcome of a thread, which is that of its call; the last answer of
// one that was stopped or failed is marked as cut off.
func (s *Subagent) end(state string) {
	if s.State = state; state == stateDone {
		return
	}
	if n := len(s.Messages); n > 0 {
		last := &s.Messages[n-1]
		last.Partial = last.Role == artel.RoleAssistant && len(last.Calls) == 0
	}
}

// subagent renders a thread, which begins with the instruction.
func (v *view) subagent(ctx context.Context, thread []artel.Message, active artel.RunID) (Subagent, error) {
	first, last := thread[0], thread[len(thread)-1]
	s := Subagent{ID: subagentID(first.Run, first.Within), Into: "#" + callsID(first.Parent), Agent: first.Agent, State: stateDone}
	if last.Role != artel.RoleAssistant || artel.HasCalls(last.Parts) {
		s.State = stateStopped
		if first.Run == active {
			s.State, s.Asks = stateRunning, v.asksIn(first.Run, first.Within)
		}
	}
	shown, err := v.messages(ctx, thread, active)
	for i := range shown {
		shown[i].Into, shown[i].Notice = "#"+s.ID+"-b", nil
	}
	s.Messages = shown
	return s, err
}

// subagentStarted opens the thread of a subagent.
func (s *stream) subagentStarted(ctx context.Context, out *bytes.Buffer, e artel.Event) error {
	p, err := payload[artel.SubagentStarted](e)
	if err != nil {
		return err
	}
	later, err := s.laterThreads(ctx, e, p.Message.Parent)
	if err != nil {
		return err
	}
	m := s.message(p.Message)
	id := subagentID(e.Run, e.Within)
	m.Into = "#" + id + "-b"
	return s.put(out, "subagent", Subagent{ID: id, Into: "#" + callsID(p.Message.Parent), Before: later, Agent: e.Agent, State: stateRunning, Messages: []Message{m}})
}

// laterThreads selects the threads of the calls after that of a thread, in the same
// message; parallel subagents start in any order.
func (s *stream) laterThreads(ctx context.Context, e artel.Event, caller artel.MessageID) (string, error) {
	branch, err := s.app.Messages.Branch(ctx, s.conversation, caller, 1)
	if err != nil || len(branch) == 0 {
		return "", err
	}
	var out []string
	found := false
	for _, c := range artel.CallsOf(branch[0].Parts) {
		if found && c.Name == delegateTool {
			out = append(out, "#"+subagentID(e.Run, e.Within.Outer().Join(c.ID)))
		}
		found = found || c.ID == e.Within.Call()
	}
	return strings.Join(out, ", "), nil
}

// endLeftCalls ends the calls and subagent threads left by a run that ended early.
func (s *stream) endLeftCalls(ctx context.Context, out *bytes.Buffer, run artel.RunID) error {
	c, err := s.app.Conversations.Find(ctx, s.conversation)
	if err != nil {
		return err
	}
	shown, _, err := s.branch(ctx, c.Leaf, 0)
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(shown) {
		if m.run == run && len(m.Calls) > 0 {
			return s.put(out, "message", m)
		}
	}
	return nil
}

// subagentCompleted closes a thread, with all its messages.
func (s *stream) subagentCompleted(ctx context.Context, out *bytes.Buffer, e artel.Event) error {
	p, err := payload[artel.SubagentCompleted](e)
	if err != nil {
		return err
	}
	all, err := s.app.Messages.Nested(ctx, s.conversation, e.Run)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(m artel.Message) bool { return m.Within != e.Within })
	if len(all) == 0 {
		return nil
	}
	v := s.view
	if err = v.loadQuestions(ctx); err != nil {
		return err
	}
	if v.events, err = s.loadEvents(ctx); err != nil {
		return err
	}
	shown, err := v.subagent(ctx, all, "")
	if err != nil {
		return err
	}
	state := stateFailed
	if p.OK {
		state = stateDone
	}
	shown.end(state)
	shown.Folds = true // otherwise the user's folding would be kept
	delete(s.answers, e.Within)
	return s.put(out, "subagent", shown)
}
