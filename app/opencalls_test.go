// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
)

// A scripted model plays one list of deltas per call, and keeps the requests.
type scriptedModel struct {
	mu       sync.Mutex
	turns    [][]model.Delta
	requests []*model.Request
}

func (s *scriptedModel) generate(_ context.Context, r *model.Request, yield func(model.Delta, error) bool) {
	s.mu.Lock()
	n := len(s.requests)
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	for _, d := range append(s.turns[n], model.Finish{}) {
		if !yield(d, nil) {
			return
		}
	}
}

func (s *scriptedModel) last() *model.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[len(s.requests)-1]
}

// outcomes returns the results in a request by call; a call without one is "".
func outcomes(r *model.Request) map[artel.CallID]string {
	out := map[artel.CallID]string{}
	for _, m := range r.Messages {
		for _, c := range artel.CallsOf(m.Parts) {
			out[c.ID] = ""
		}
		for _, res := range artel.ResultsOf(m.Parts) {
			out[res.CallID] = res.Content
		}
	}
	return out
}

func calling(id artel.CallID, name string) model.Delta {
	return model.CallDelta{ID: id, Name: name, Arguments: []byte("{}")}
}

// paying returns tools of which "pay" and "look" begin and never end by
// themselves, "fail" ends the run, and "note" is quick.
func paying(begun chan<- string) []tool.Tool {
	waits := func(name string, parallel bool) tool.Tool {
		t := tool.Func(name, "Waits.", func(ctx context.Context, _ *tool.Env, _ struct{}) (tool.Result, error) {
			begun <- name
			<-ctx.Done()
			return tool.Result{}, context.Cause(ctx)
		})
		t.Parallel = parallel
		return t
	}
	fail := tool.Func("fail", "Fails.", func(context.Context, *tool.Env, struct{}) (tool.Result, error) {
		return tool.Result{}, errors.New("a fault of the program")
	})
	note := tool.Func("note", "Notes.", func(context.Context, *tool.Env, struct{}) (tool.Result, error) {
		return tool.Result{Content: "noted"}, nil
	})
	note.Parallel, fail.Parallel = true, true
	return []tool.Tool{waits("pay", false), waits("look", true), fail, note}
}

// TestCallsHaveResultsAtEveryEnd: whatever ends a run, the next request shows
// every call that the model made, with what came of it, so that no effect is
// repeated.
func TestCallsHaveResultsAtEveryEnd(t *testing.T) {
	const unknown, notMade, noted = "outcome unknown", "not called", "noted"
	tests := map[string]struct {
		calls  []string
		limits agent.Limits
		wait   string // a tool that has to begin
		cancel bool
		state  artel.RunState
		want   []string
	}{
		"cancelled":           {calls: []string{"pay", "note"}, wait: "pay", cancel: true, state: artel.RunCancelled, want: []string{unknown, notMade}},
		"cancelled, parallel": {calls: []string{"note", "look", "pay"}, wait: "look", cancel: true, state: artel.RunCancelled, want: []string{noted, unknown, notMade}},
		"timed out":           {calls: []string{"pay", "note"}, limits: agent.Limits{Seconds: 1}, wait: "pay", state: artel.RunTimedOut, want: []string{unknown, notMade}},
		"failed":              {calls: []string{"fail", "note", "pay"}, state: artel.RunFailed, want: []string{unknown, noted, notMade}},
		"limit":               {calls: []string{"note", "note"}, limits: agent.Limits{ToolCalls: 1}, state: artel.RunFailed, want: []string{notMade, notMade}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				turn := []model.Delta{model.TextDelta("I will.")}
				for i, c := range tt.calls {
					turn = append(turn, calling(artel.CallID([]string{"c0", "c1", "c2"}[i]), c))
				}
				s := &scriptedModel{turns: [][]model.Delta{turn, {model.TextDelta("Well.")}}}
				begun := make(chan string, 10)
				b := newBench(t, provide(s.generate), func(c *app.Config) {
					c.Tools = paying(begun)
					c.Agents = []agent.Definition{{Name: agent.Lead, Prompt: "You pay.", Tools: []string{"pay", "look", "fail", "note"}, Limits: tt.limits}}
				})
				c := b.conversation()
				r := b.send(c, run.Input{Text: "Pay Bob."})
				if tt.wait != "" {
					if got := <-begun; got != tt.wait {
						t.Fatalf("%s began", got)
					}
				}
				if tt.cancel {
					synctest.Wait() // the calls beside the one that waits have ended
					if _, err := b.Runs.Cancel(apptest.Context(t), r.ID); err != nil {
						t.Fatal(err)
					}
				}
				if r = b.ended(r); r.State != tt.state {
					t.Fatalf("it ended as %s: %+v", r.State, r.Error)
				}
				if r := b.ended(b.send(c, run.Input{Text: "What happened?"})); r.State != artel.RunDone {
					t.Fatalf("the next run ended as %s: %+v", r.State, r.Error)
				}
				got := outcomes(s.last())
				for i, want := range tt.want {
					id := artel.CallID([]string{"c0", "c1", "c2"}[i])
					if result, sent := got[id]; !sent || !strings.Contains(result, want) {
						t.Errorf("%s: sent %v, result %q; want %q", tt.calls[i], sent, result, want)
					}
				}
				done := 0
				for _, e := range b.events(c) {
					if e.Type == artel.EventToolCompleted {
						done++
					}
				}
				if done != len(tt.calls) {
					t.Errorf("the log has %d results of %d calls", done, len(tt.calls))
				}
				if found, err := b.Conversations.Find(apptest.Context(t), c); err != nil || found.Leaf == r.Reply {
					t.Errorf("the results are on no branch: %+v, %v", found, err)
				}
			})
		})
	}
}

// TestSubagentCallsHaveResults: a run that is cancelled inside a subagent leaves
// no call without a result, neither in the thread nor in the branch.
func TestSubagentCallsHaveResults(t *testing.T) {
	s := &scriptedModel{turns: [][]model.Delta{
		{model.CallDelta{ID: "out", Name: agent.SubagentTool, Arguments: []byte(`{"agent":"payer","instruction":"Pay."}`)}},
		{calling("in0", "pay"), calling("in1", "note")},
		{model.CallDelta{ID: "out2", Name: agent.SubagentTool, Arguments: []byte(`{"agent":"payer","instruction":"Did you?","fresh_start":false}`)}},
		{model.TextDelta("I may have.")},
		{model.TextDelta("Perhaps.")},
	}}
	begun := make(chan string, 10)
	b := newBench(t, provide(s.generate), func(c *app.Config) {
		c.Tools = paying(begun)
		c.Agents = []agent.Definition{
			{Name: agent.Lead, Prompt: "You lead.", Subagents: []artel.AgentName{"payer"}},
			{Name: "payer", Description: "Pays.", Prompt: "You pay.", Tools: []string{"pay", "note"}},
		}
	})
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Pay Bob."})
	<-begun
	if _, err := b.Runs.Cancel(apptest.Context(t), r.ID); err != nil {
		t.Fatal(err)
	}
	if r := b.ask(c, "And?"); r.State != artel.RunDone {
		t.Fatalf("it ended as %s: %+v", r.State, r.Error)
	}
	inside, outside := outcomes(s.requests[3]), outcomes(s.requests[2])
	for id, want := range map[artel.CallID]string{"in0": "outcome unknown", "in1": "not called"} {
		if !strings.Contains(inside[id], want) {
			t.Errorf("%s: %q, want %q", id, inside[id], want)
		}
	}
	if !strings.Contains(outside["out"], "outcome unknown") {
		t.Errorf("the call of the subagent: %q", outside["out"])
	}
	if slices.ContainsFunc(b.messages(c), func(m artel.Message) bool { return m.Role == artel.RoleTool && m.Agent == "" }) {
		t.Error("a result is nobody's")
	}
}

// TestSubagentAtItsLimit: a subagent that fails does not end the run, and its
// calls have results when it continues.
func TestSubagentAtItsLimit(t *testing.T) {
	s := &scriptedModel{turns: [][]model.Delta{
		{model.CallDelta{ID: "out", Name: agent.SubagentTool, Arguments: []byte(`{"agent":"payer","instruction":"Pay."}`)}},
		{calling("in0", "note"), calling("in1", "note")},
		{model.CallDelta{ID: "out2", Name: agent.SubagentTool, Arguments: []byte(`{"agent":"payer","instruction":"And?","fresh_start":false}`)}},
		{model.TextDelta("No.")},
		{model.TextDelta("No, then.")},
	}}
	b := newBench(t, provide(s.generate), func(c *app.Config) {
		c.Tools = paying(nil)
		c.Agents = []agent.Definition{
			{Name: agent.Lead, Prompt: "You lead.", Subagents: []artel.AgentName{"payer"}},
			{Name: "payer", Description: "Pays.", Prompt: "You pay.", Tools: []string{"pay", "note"}, Limits: agent.Limits{ToolCalls: 1}},
		}
	})
	if r := b.ask(b.conversation(), "Pay Bob."); r.State != artel.RunDone {
		t.Fatalf("it ended as %s: %+v", r.State, r.Error)
	}
	got := outcomes(s.requests[3])
	for _, id := range []artel.CallID{"in0", "in1"} {
		if !strings.Contains(got[id], "not called") {
			t.Errorf("%s: %q", id, got[id])
		}
	}
}

// TestThreadGoesOnOnce: a run to which something was added has several messages
// of the user on the branch, and the work of its subagents is still continued
// as it was, each message once.
func TestThreadGoesOnOnce(t *testing.T) {
	s := &scriptedModel{turns: [][]model.Delta{
		{model.CallDelta{ID: "out", Name: agent.SubagentTool, Arguments: []byte(`{"agent":"payer","instruction":"Pay."}`)}},
		{calling("in0", "note")},
		{model.TextDelta("Paid.")},
		{model.TextDelta("Done.")},
		{model.TextDelta("That too.")},
		{model.CallDelta{ID: "out2", Name: agent.SubagentTool, Arguments: []byte(`{"agent":"payer","instruction":"Did you?","fresh_start":false}`)}},
		{model.TextDelta("I did.")},
		{model.TextDelta("It was paid.")},
	}}
	asked, added := make(chan struct{}), make(chan struct{})
	b := newBench(t, provide(func(ctx context.Context, r *model.Request, yield func(model.Delta, error) bool) {
		s.mu.Lock()
		last := len(s.requests) == 3
		s.mu.Unlock()
		if last {
			close(asked)
			<-added
		}
		s.generate(ctx, r, yield)
	}), func(c *app.Config) {
		c.Tools = paying(nil)
		c.Agents = []agent.Definition{
			{Name: agent.Lead, Prompt: "You lead.", Subagents: []artel.AgentName{"payer"}},
			{Name: "payer", Description: "Pays.", Prompt: "You pay.", Tools: []string{"note"}},
		}
	})
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Pay Bob."})
	<-asked
	if _, err := b.Runs.Inject(apptest.Context(t), r.ID, "And Ann."); err != nil {
		t.Fatal(err)
	}
	close(added)
	if r = b.ended(r); r.State != artel.RunDone {
		t.Fatalf("it ended as %s: %+v", r.State, r.Error)
	}
	if r := b.ask(c, "Was it paid?"); r.State != artel.RunDone {
		t.Fatalf("it ended as %s: %+v", r.State, r.Error)
	}
	var got []string
	for _, m := range s.requests[6].Messages[1:] {
		said, _, _ := strings.Cut(artel.TextOf(m.Parts), "\n\n<system-reminder>")
		got = append(got, said)
		for _, c := range artel.CallsOf(m.Parts) {
			got = append(got, "calls "+string(c.ID))
		}
		for _, res := range artel.ResultsOf(m.Parts) {
			got = append(got, "result of "+string(res.CallID))
		}
	}
	got = slices.DeleteFunc(got, func(s string) bool { return s == "" })
	if want := []string{"Pay.", "calls in0", "result of in0", "Paid.", "Did you?"}; !slices.Equal(got, want) {
		t.Errorf("the subagent goes on behind %q, want %q", got, want)
	}
}
