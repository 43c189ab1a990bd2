// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/token"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A turn is one scripted answer: deltas, or an error.
type turn []any

// script answers the model calls one after the other, and notes the requests.
type script struct {
	turns []turn

	mu       sync.Mutex
	requests []*model.Request
}

func (s *script) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		s.mu.Lock()
		n := len(s.requests)
		s.requests = append(s.requests, r)
		s.mu.Unlock()
		if n >= len(s.turns) {
			yield(nil, artel.Errorf(artel.Internal, "script", "", "call %d was not expected", n+1))
			return
		}
		for _, step := range s.turns[n] {
			switch step := step.(type) {
			case model.Delta:
				if !yield(step, nil) {
					return
				}
			case error:
				yield(nil, step)
				return
			case func():
				step()
			case chan struct{}: // silence until the end
				<-ctx.Done()
				yield(nil, artel.Errorf(artel.Canceled, "script", "", "%w", ctx.Err()))
				return
			}
		}
	}
}

func say(s string) model.Delta { return model.TextDelta(s) }

func call(id, name, args string) model.Delta {
	return model.CallDelta{ID: artel.CallID(id), Name: name, Arguments: json.RawMessage(args)}
}

var (
	end   = model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: 10, OutputTokens: 2}}
	tools = model.Finish{Reason: model.StopTools, Usage: artel.Usage{InputTokens: 5, OutputTokens: 1}}
)

type echoArgs struct {
	Text string `json:"text"`
}

func echo(_ context.Context, _ *tool.Env, in echoArgs) (tool.Result, error) {
	if in.Text == "" {
		return tool.Failed("say something"), nil
	}
	return tool.Result{Content: "echo " + in.Text, Metadata: map[string]any{"n": 1}}, nil
}

// bench is an engine over a script.
type bench struct {
	*script
	engine *agent.Engine
	in     agent.Input
	host   *hooks // of in
}

// hooks is a host out of functions; those that are nil do nothing.
type hooks struct {
	permit      func(context.Context, []agent.Question) ([]agent.Verdict, error)
	inbox       func(artel.MessageID) (agent.Inbox, error)
	keepSummary func(string, artel.CompactionCompleted) error
	fallback    func(model.Service) (agent.Fallback, bool)
	delegate    func(agent.Delegation) (agent.Input, error)
	learn       func([]model.Mark)
}

func (h hooks) Record(context.Context, agent.Built, error) error { return nil }

func (h hooks) Permit(ctx context.Context, calls []agent.Question) ([]agent.Verdict, error) {
	if h.permit == nil {
		return make([]agent.Verdict, len(calls)), nil
	}
	return h.permit(ctx, calls)
}

func (h hooks) Inbox(_ context.Context, after artel.MessageID) (agent.Inbox, error) {
	if h.inbox == nil {
		return agent.Inbox{}, nil
	}
	return h.inbox(after)
}

func (h hooks) KeepSummary(_ context.Context, text string, end artel.CompactionCompleted) (bool, error) {
	if h.keepSummary == nil {
		return false, nil
	}
	return true, h.keepSummary(text, end)
}

func (h hooks) Fallback(_ context.Context, failed model.Service) (agent.Fallback, bool) {
	if h.fallback == nil {
		return agent.Fallback{}, false
	}
	return h.fallback(failed)
}

func (h hooks) Delegate(_ context.Context, d agent.Delegation) (agent.Input, error) {
	return h.delegate(d)
}

func (h hooks) Learn(marks []model.Mark) {
	if h.learn != nil {
		h.learn(marks)
	}
}

func newBench(t *testing.T, turns []turn, extra ...tool.Tool) *bench {
	t.Helper()
	box, err := tool.NewSet(append([]tool.Tool{tool.Func("echo", "Says it again.", echo)}, extra...)...)
	if err != nil {
		t.Fatal(err)
	}
	registry, err := pipeline.NewRegistry(token.NewCounter(), pipeline.BuiltIn()...)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{turns: turns}
	caller := model.NewCaller(map[model.Dialect]model.Provider{model.Demo: s}, model.CallerOptions{Attempts: 2, Backoff: time.Nanosecond})
	now := time.Now()
	ask := artel.Message{
		ID: artel.NewMessageID(now), Conversation: artel.NewConversationID(now), Role: artel.RoleUser,
		Parts: artel.Parts{artel.Text{Text: "Do it."}}, Run: artel.NewRunID(now), CreatedAt: now,
	}
	host := new(hooks)
	return &bench{script: s, host: host, engine: agent.New(registry, box, caller, nil), in: agent.Input{
		Host:    host,
		Run:     artel.Run{ID: ask.Run, Conversation: ask.Conversation, Message: ask.ID},
		Agent:   agent.Definition{Name: "tester", Prompt: "You test.", Tools: box.Names()},
		Service: model.Service{ID: "scripted", Dialect: model.Demo, Model: "script", Capabilities: model.TextOnly()},
		History: []artel.Message{ask},
	}}
}

// engineAt is the bench's engine with another clock, and the echo tool alone.
func (b *bench) engineAt(t *testing.T, now func() time.Time) *agent.Engine {
	t.Helper()
	box, err := tool.NewSet(tool.Func("echo", "Says it again.", echo))
	if err != nil {
		t.Fatal(err)
	}
	registry, err := pipeline.NewRegistry(token.NewCounter(), pipeline.BuiltIn()...)
	if err != nil {
		t.Fatal(err)
	}
	return agent.New(registry, box, model.NewCaller(map[model.Dialect]model.Provider{model.Demo: b.script}, model.CallerOptions{}), now)
}

// run plays the whole script.
func (b *bench) run(ctx context.Context) (all []artel.Payload, err error) {
	for p, e := range b.engine.Run(ctx, b.in) {
		if e != nil {
			if err != nil {
				return all, errors.New("two errors")
			}
			err = e
			continue
		}
		if err != nil {
			return all, errors.New("a payload after the error")
		}
		all = append(all, p)
	}
	return all, err
}

// line is what a payload tells, in short.
func line(p artel.Payload) string {
	switch p := p.(type) {
	case artel.MessageDelta:
		if p.Reasoning != "" {
			return "thought " + p.Reasoning
		}
		return "delta " + p.Text
	case artel.MessageCompleted:
		s := "message " + artel.TextOf(p.Message.Parts)
		for _, part := range p.Message.Parts {
			if r, ok := part.(artel.Reasoning); ok {
				s += "(" + r.Text + ")"
			}
			if c, ok := part.(artel.ToolCall); ok {
				s += " call:" + string(c.ID)
			}
		}
		if p.Partial {
			s += " (partial)"
		}
		return s
	case artel.ToolStarted:
		return fmt.Sprintf("start %s %s", p.Call, p.Name)
	case artel.ToolCompleted:
		r := p.Message.Parts[0].(artel.ToolResult)
		first, _, _ := strings.Cut(r.Content, "\n")
		return fmt.Sprintf("result %s %v %s", p.Call, p.OK, artel.Shorten(first, 40))
	case artel.UsageReported:
		if p.Usage.Estimated {
			return fmt.Sprintf("usage %d, estimated", p.Usage.Calls)
		}
		return fmt.Sprintf("usage %d/%d/%d", p.Usage.Calls, p.Usage.InputTokens, p.Usage.OutputTokens)
	}
	return string(p.EventType())
}

func lines(all []artel.Payload) []string {
	out := []string{}
	for _, p := range all {
		out = append(out, line(p))
	}
	return out
}

func (b *bench) want(t *testing.T, want ...string) []artel.Payload {
	t.Helper()
	all, err := b.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, lines(all)); diff != "" {
		t.Fatalf("-want +got\n%s", diff)
	}
	return all
}

func TestTurns(t *testing.T) {
	b := newBench(t, []turn{
		{model.ReasoningDelta("h"), model.ReasoningDelta("m"), say("Let "), say("me."), call("c1", "echo", `{"text":"a"}`), tools},
		{say("Done."), end},
	})
	all := b.want(t,
		"agent_started", "thought h", "thought m", "delta Let ", "delta me.", "message Let me.(hm) call:c1", "usage 1/5/1",
		"start c1 echo", "result c1 true echo a",
		"delta Done.", "message Done.", "usage 1/10/2")

	parent := b.in.History[0].ID
	for _, p := range all {
		var m artel.Message
		switch p := p.(type) {
		case artel.MessageCompleted:
			m = p.Message
		case artel.ToolCompleted:
			m = p.Message
		default:
			continue
		}
		if m.Parent != parent || m.Run != b.in.Run.ID || m.Conversation != b.in.Run.Conversation || m.Agent != "tester" || m.CreatedAt.IsZero() {
			t.Errorf("got %+v, want parent %s", m, parent)
		}
		parent = m.ID
	}
	if len(b.requests) != 2 || len(b.requests[1].Tools) != 1 {
		t.Fatalf("got %d requests", len(b.requests))
	}
	last := b.requests[1].Messages
	results := 0
	for _, m := range last {
		for _, p := range m.Parts {
			if r, ok := p.(artel.ToolResult); ok && r.CallID == "c1" && r.Content == "echo a" {
				results++
			}
		}
	}
	if results != 1 {
		t.Errorf("the second request has %d results: %+v", results, last)
	}
	if len(b.in.History) != 1 {
		t.Error("the caller's history grew")
	}
}

// TestResultsTellPeople: a stored tool message holds what the event says of the
// call, and the model is not told.
func TestResultsTellPeople(t *testing.T) {
	b := newBench(t, []turn{{call("c1", "echo", `{"text":"a"}`), call("c2", "echo", `{"text":""}`), tools}, {say("ok"), end}})
	ticks := time.Now()
	b.engine = b.engineAt(t, func() time.Time { ticks = ticks.Add(7 * time.Millisecond); return ticks })
	all, err := b.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var types []any
	for _, p := range all {
		e, ok := p.(artel.ToolCompleted)
		if !ok {
			continue
		}
		r := e.Message.Parts[0].(artel.ToolResult)
		if r.Millis != e.Millis || r.Millis != 7 || !cmp.Equal(r.Metadata, e.Metadata) {
			t.Errorf("the message has %d ms %v, the event %d ms %v", r.Millis, r.Metadata, e.Millis, e.Metadata)
		}
		types = append(types, r.Metadata["n"], r.Metadata["content_type"])
	}
	if diff := cmp.Diff([]any{1, "text", nil, "error"}, types); diff != "" {
		t.Error(diff)
	}
	for _, m := range b.requests[1].Messages {
		for _, p := range m.Parts {
			if r, ok := p.(artel.ToolResult); ok && (r.Millis != 0 || r.Metadata != nil) {
				t.Errorf("the model is told %+v", r)
			}
		}
	}
}

func TestToolFailuresAreMended(t *testing.T) {
	newBench(t, []turn{
		{call("c1", "echo", `{"text":""}`), call("c2", "nothing", `{}`), call("c3", "echo", `"{"`), tools},
		{say("I see."), end},
	}).want(t,
		"agent_started", "message  call:c1 call:c2 call:c3", "usage 1/5/1",
		"start c1 echo", "result c1 false say something",
		"start c2 nothing", `result c2 false there is no tool nothing; the tools are …`,
		"start c3 echo", "result c3 false the arguments of echo are not valid: not…",
		"delta I see.", "message I see.", "usage 1/10/2")
}

// waitFor makes two tools that meet: each waits for the other to have begun.
func waitFor(name string, parallel bool, mine, theirs chan struct{}) tool.Tool {
	t := tool.Func(name, "Waits.", func(ctx context.Context, _ *tool.Env, _ struct{}) (tool.Result, error) {
		close(mine)
		select {
		case <-theirs:
			return tool.Result{Content: name}, nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	})
	t.Parallel = parallel
	return t
}

func TestParallelToolsAnswerInOrder(t *testing.T) {
	one, two := make(chan struct{}), make(chan struct{})
	newBench(t, []turn{
		{call("c1", "first", `{}`), call("c2", "second", `{}`), call("c3", "echo", `{"text":"x"}`), tools},
		{say("ok"), end},
	}, waitFor("first", true, one, two), waitFor("second", true, two, one)).want(t,
		"agent_started", "message  call:c1 call:c2 call:c3", "usage 1/5/1",
		"start c1 first", "start c2 second", "result c1 true first", "result c2 true second",
		"start c3 echo", "result c3 true echo x",
		"delta ok", "message ok", "usage 1/10/2")
}

func TestOthersRunAlone(t *testing.T) {
	var busy sync.Mutex
	alone := func(name string) tool.Tool {
		return tool.Func(name, "Wants to be alone.", func(context.Context, *tool.Env, struct{}) (tool.Result, error) {
			if !busy.TryLock() {
				return tool.Failed("not alone"), nil
			}
			defer busy.Unlock()
			return tool.Result{Content: name}, nil
		})
	}
	newBench(t, []turn{{call("1", "a", `{}`), call("2", "b", `{}`), call("3", "a", `{}`), tools}, {say("ok"), end}}, alone("a"), alone("b")).want(t,
		"agent_started", "message  call:1 call:2 call:3", "usage 1/5/1",
		"start 1 a", "result 1 true a", "start 2 b", "result 2 true b", "start 3 a", "result 3 true a",
		"delta ok", "message ok", "usage 1/10/2")
}

func TestFailedToolKeepsItsNeighbours(t *testing.T) {
	broken := tool.Func("broken", "Fails.", func(context.Context, *tool.Env, struct{}) (tool.Result, error) {
		return tool.Result{}, artel.Errorf(artel.Unavailable, "test", "disk", "full")
	})
	fine := tool.Func("fine", "Works.", func(context.Context, *tool.Env, struct{}) (tool.Result, error) {
		return tool.Result{Content: "fine"}, nil
	})
	broken.Parallel, fine.Parallel = true, true
	b := newBench(t, []turn{{call("1", "broken", `{}`), call("2", "fine", `{}`), tools}}, broken, fine)
	all, err := b.run(t.Context())
	if !errors.Is(err, artel.Unavailable) || line(all[len(all)-1]) != "result 2 true fine" {
		t.Errorf("got %q, %v", lines(all), err)
	}
}

func TestPanicsOfToolsEndTheRun(t *testing.T) {
	b := newBench(t, []turn{{call("1", "bad", `{}`), tools}}, tool.Func("bad", "Panics.", func(context.Context, *tool.Env, struct{}) (tool.Result, error) {
		panic("at the disco")
	}))
	if _, err := b.run(t.Context()); artel.KindOf(err) != artel.Internal {
		t.Errorf("got %v", err)
	}
}

func TestLimits(t *testing.T) {
	again := turn{call("", "echo", `{"text":"x"}`), tools}
	b := newBench(t, []turn{again, again, again})
	b.in.Agent.Limits.Turns = 2
	all, err := b.run(t.Context())
	if !errors.Is(err, artel.TooLarge) || !strings.Contains(err.Error(), "2 model calls") || len(b.requests) != 2 {
		t.Errorf("turns: got %q, %v", lines(all), err)
	}
	b = newBench(t, []turn{again, {call("", "echo", `{}`), call("", "echo", `{}`), tools}})
	b.in.Agent.Limits.ToolCalls = 2
	all, err = b.run(t.Context())
	if !errors.Is(err, artel.TooLarge) || !strings.Contains(err.Error(), "2 tool calls") || len(b.requests) != 2 {
		t.Errorf("tool calls: got %q, %v", lines(all), err)
	}
	for _, p := range all[5:] {
		if p.EventType() == artel.EventToolStarted && p.(artel.ToolStarted).Name == "echo" && strings.Contains(string(p.(artel.ToolStarted).Arguments), "{}") {
			t.Error("a call over the limit was started")
		}
	}
}

func brokenStream() error {
	return &artel.Error{Kind: artel.Unavailable, Err: &model.CallError{Message: "the stream broke off", Transient: true}}
}

func TestBrokenStreamKeepsItsText(t *testing.T) {
	b := newBench(t, []turn{{say("Half an "), call("c", "echo", `{"text":"x"}`), say("ans"), brokenStream()}})
	all, err := b.run(t.Context())
	want := []string{"agent_started", "delta Half an ", "delta \n\nans", "message Half an \n\nans (partial)", "usage 1, estimated"}
	if diff := cmp.Diff(want, lines(all)); diff != "" || !errors.Is(err, artel.Unavailable) {
		t.Errorf("%v\n%s", err, diff)
	}
	b = newBench(t, []turn{{model.ReasoningDelta("so far"), brokenStream()}})
	if all, err = b.run(t.Context()); !errors.Is(err, artel.Unavailable) || lines(all)[2] != "message (so far) (partial)" {
		t.Errorf("broken off while it reasons: got %q, %v", lines(all), err)
	}
	b = newBench(t, []turn{{say("Half"), model.Finish{Reason: model.StopLength}}})
	if all, err = b.run(t.Context()); err != nil || lines(all)[2] != "message Half (partial)" {
		t.Errorf("cut at the output limit: got %q, %v", lines(all), err)
	}
	b = newBench(t, []turn{{call("c", "echo", `{"text":"x"}`), brokenStream()}})
	if all, err = b.run(t.Context()); err == nil || len(all) != 2 || all[1].(artel.UsageReported).Usage.OutputTokens < 5 {
		t.Errorf("a broken call: got %q, %v", lines(all), err)
	}
	b = newBench(t, []turn{{brokenStream()}, {say("Better."), end}})
	if all, err = b.run(t.Context()); err != nil || len(b.requests) != 2 {
		t.Errorf("a stream that breaks before it begins is tried again: got %q, %v", lines(all), err)
	}
}

func TestEmptyAnswers(t *testing.T) {
	for _, tt := range []struct {
		turn turn
		kind artel.Kind
	}{
		{turn{end}, artel.Unavailable},
		{turn{model.ReasoningDelta("hm"), end}, artel.Unavailable},
		{turn{say(""), end}, artel.Unavailable},
		{turn{model.ReasoningDelta("hm"), model.Finish{Reason: model.StopLength}}, artel.TooLarge},
		{turn{model.Finish{Reason: model.StopRefusal}}, artel.Denied},
	} {
		b := newBench(t, []turn{tt.turn})
		all, err := b.run(t.Context())
		if artel.KindOf(err) != tt.kind {
			t.Errorf("%v: got %v, want kind %s", tt.turn, err, tt.kind)
		}
		if last := all[len(all)-1]; last.EventType() != artel.EventUsage {
			t.Errorf("%v: what it took is not told: %q", tt.turn, lines(all))
		}
		if _, thought := tt.turn[0].(model.ReasoningDelta); thought != slices.Contains(lines(all), "message (hm) (partial)") {
			t.Errorf("%v: what it thought is kept as %q", tt.turn, lines(all))
		}
	}
}

func TestCallsGetIDsOfTheirOwn(t *testing.T) {
	long := strings.Repeat("x", artel.MaxIDLength+1)
	b := newBench(t, []turn{
		{call("", "echo", `{"text":"a"}`), call("c", "echo", `{"text":"b"}`), call("c", "echo", `{"text":"c"}`), call(long, "echo", `{"text":"d"}`), call("old", "echo", `{"text":"e"}`), tools},
		{call("c", "echo", `{"text":"f"}`), call("nested", "echo", `{"text":"g"}`), tools},
		{say("ok"), end},
	})
	b.in.Nested = []artel.Message{{Role: artel.RoleAssistant, Parts: artel.Parts{artel.ToolCall{ID: "nested", Name: "echo"}}}}
	old := b.in.History[0]
	old.ID, old.Run, old.Role = artel.NewMessageID(time.Now()), "", artel.RoleAssistant
	old.Parts = artel.Parts{artel.ToolCall{ID: "old", Name: "echo"}}
	b.in.History[0].Parent = old.ID
	b.in.History = []artel.Message{old, b.in.History[0]}
	all, err := b.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[artel.CallID]string{"old": "before", "nested": "of a subagent that is not resumed yet"}
	var order []string
	for _, p := range all {
		if c, ok := p.(artel.ToolCompleted); ok {
			r := c.Message.Parts[0].(artel.ToolResult)
			if seen[c.Call] != "" || c.Call == "" || len(c.Call) > artel.MaxIDLength || r.CallID != c.Call {
				t.Errorf("%q came for %s and %s", c.Call, seen[c.Call], r.Content)
			}
			seen[c.Call] = r.Content
			order = append(order, r.Content)
		}
	}
	if want := []string{"echo a", "echo b", "echo c", "echo d", "echo e", "echo f", "echo g"}; !slices.Equal(order, want) {
		t.Errorf("got %q", order)
	}
}

// TestResume cuts a run after every stored message and lets it go on.
func TestResume(t *testing.T) {
	turns := []turn{
		{say("One."), call("c1", "echo", `{"text":"a"}`), call("c2", "echo", `{"text":"b"}`), tools},
		{call("c3", "echo", `{"text":"c"}`), tools},
		{say("Done."), end},
	}
	first := newBench(t, turns)
	all, err := first.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var stored []artel.Message
	for _, p := range all {
		switch p := p.(type) {
		case artel.MessageCompleted:
			stored = append(stored, p.Message)
		case artel.ToolCompleted:
			stored = append(stored, p.Message)
		}
	}
	calls := 0 // model calls that the history holds
	for n, m := range stored[:len(stored)-1] {
		if m.Role == artel.RoleAssistant {
			calls++
		}
		b := newBench(t, turns[calls:])
		b.in.Run = first.in.Run
		b.in.History = append(slices.Clone(first.in.History), stored[:n+1]...)
		rest, err := b.run(t.Context())
		if err != nil || len(b.requests) != len(turns)-calls {
			t.Errorf("after %d messages: %d model calls, want %d; %v", n+1, len(b.requests), len(turns)-calls, err)
		}
		var results []string
		for _, p := range rest {
			if c, ok := p.(artel.ToolCompleted); ok {
				results = append(results, string(c.Call))
			}
		}
		var want []string
		for _, m := range stored[n+1:] {
			if r, ok := m.Parts[0].(artel.ToolResult); ok {
				want = append(want, string(r.CallID))
			}
		}
		if !slices.Equal(results, want) {
			t.Errorf("after %d messages: the tools %q were run, want %q", n+1, results, want)
		}
	}
}

func TestCallsOfOtherRunsStayUnanswered(t *testing.T) {
	b := newBench(t, []turn{{say("Hello."), end}})
	old := b.in.History[0]
	old.ID, old.Run, old.Role = artel.NewMessageID(time.Now()), "run_other", artel.RoleAssistant
	old.Parts = artel.Parts{artel.ToolCall{ID: "x", Name: "echo", Arguments: json.RawMessage(`{"text":"a"}`)}}
	b.in.History[0].Parent = old.ID
	b.in.History = []artel.Message{old, b.in.History[0]}
	b.want(t, "agent_started", "delta Hello.", "message Hello.", "usage 1/10/2")
}

// TestBreaking breaks the loop at every payload: nothing more is done.
func TestBreaking(t *testing.T) {
	ran := 0
	count := tool.Func("count", "Counts.", func(context.Context, *tool.Env, struct{}) (tool.Result, error) {
		ran++
		return tool.Result{Content: "counted"}, nil
	})
	turns := []turn{
		{say("a"), say("b"), call("1", "count", `{}`), call("2", "count", `{}`), tools},
		{say("c"), end},
	}
	all, err := newBench(t, turns, count).run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for stop := range all {
		b := newBench(t, turns, count)
		n := 0
		ran = 0
		finished, asked := 0, 0
		for p, err := range b.engine.Run(t.Context(), b.in) {
			if err != nil {
				t.Fatal(err)
			}
			switch p.(type) {
			case artel.ToolCompleted:
				finished++
			case artel.AgentStarted:
				asked = len(b.requests)
			}
			if n == stop {
				break
			}
			n++
		}
		if ran != finished || stop == 0 && asked != 0 {
			t.Errorf("stopped at %s: %d tools ran, %d were told of", line(all[stop]), ran, finished)
		}
	}
}

func TestCancelInsideTheStream(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("a person")
	b := newBench(t, []turn{{say("Half"), func() { cancel(why) }, make(chan struct{})}})
	all, err := b.run(ctx)
	if artel.KindOf(err) != artel.Canceled || line(all[len(all)-2]) != "message Half (partial)" || line(all[len(all)-1]) != "usage 1, estimated" {
		t.Errorf("got %q, %v", lines(all), err)
	}
}

func TestCancelInsideATool(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t, []turn{{call("1", "slow", `{}`), call("2", "echo", `{"text":"x"}`), tools}},
		tool.Func("slow", "Waits.", func(ctx context.Context, _ *tool.Env, _ struct{}) (tool.Result, error) {
			cancel()
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		}))
	all, err := b.run(ctx)
	if artel.KindOf(err) != artel.Canceled || line(all[len(all)-1]) != "start 1 slow" {
		t.Errorf("got %q, %v", lines(all), err)
	}
}

func TestAgentHasOnlyItsTools(t *testing.T) {
	other := tool.Func("other", "Is not offered.", echo)
	b := newBench(t, []turn{{call("1", "other", `{"text":"x"}`), tools}, {say("ok"), end}}, other)
	b.in.Agent.Tools = []string{"echo"}
	b.want(t, "agent_started", "message  call:1", "usage 1/5/1", "start 1 other", "result 1 false there is no tool other; the tools are ec…",
		"delta ok", "message ok", "usage 1/10/2")
	if specs := b.requests[0].Tools; len(specs) != 1 || specs[0].Name != "echo" {
		t.Errorf("got %+v", specs)
	}
	b = newBench(t, []turn{{say("ok"), end}}, other)
	b.in.Agent.Tools = nil
	if _, err := b.run(t.Context()); err != nil || len(b.requests[0].Tools) != 0 {
		t.Errorf("an agent without tools: got %+v, %v", b.requests[0].Tools, err)
	}
}
