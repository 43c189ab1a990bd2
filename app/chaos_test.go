// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// moody answers at random: with texts, calls, calls of subagents, failures, half answers,
// or not until its call ends. When it is calm, it answers with a text.
type moody struct {
	mu   sync.Mutex
	r    *rand.Rand
	calm atomic.Bool
	n    atomic.Int64
	tick chan struct{} // lets slow answers go on
}

func (m *moody) dice(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.r.IntN(n)
}

func (m *moody) generate(ctx context.Context, r *model.Request, yield func(model.Delta, error) bool) {
	n := m.n.Add(1)
	call := func(i int64, name, args string) bool {
		return yield(model.CallDelta(artel.ToolCall{ID: artel.CallID(fmt.Sprintf("call_%d", i)), Name: name, Arguments: []byte(args)}), nil)
	}
	down := artel.Errorf(artel.Unavailable, "test", "", "the service is down")
	mood := m.dice(20)
	if m.calm.Load() {
		mood = 0
	}
	switch {
	case mood < 8 || len(r.Tools) == 0:
		_ = yield(model.TextDelta(fmt.Sprint("text ", n)), nil) && yield(model.Finish{}, nil)
	case mood < 11:
		_ = call(1, "create_artifact", fmt.Sprintf(`{"id":"a%d","title":"A","content":"one"}`, n)) && call(2, "list_artifacts", `{}`) && yield(model.Finish{}, nil)
	case mood < 14:
		_ = call(1, "call_subagent", `{"agent":"writer","instruction":"write"}`) && call(2, "call_subagent", `{"agent":"writer","instruction":"write more"}`) && yield(model.Finish{}, nil)
	case mood < 15:
		_ = call(1, "rewrite_artifact", `{"id":"shared","content":"whole"}`) && call(1, "update_artifact", `{"id":"shared","old_str":"whole","new_str":"part"}`) && yield(model.Finish{}, nil)
	case mood < 17:
		yield(nil, down)
	case mood < 18:
		_ = yield(model.TextDelta("half "), nil) && yield(nil, down)
	default:
		if !yield(model.TextDelta("slow "), nil) {
			return
		}
		select {
		case <-ctx.Done():
			yield(nil, ctx.Err())
		case <-m.tick:
			_ = yield(model.TextDelta("answer"), nil) && yield(model.Finish{}, nil)
		}
	}
}

// TestChaos has users do everything at once, with requests that break off and servers that
// start again. In the end nothing is open, and each beginning has one end.
func TestChaos(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { chaos(t, seed) })
	}
}

func chaos(t *testing.T, seed uint64) {
	const users, acts, restart = 6, 250, 150 // the server starts again after restart acts
	m := &moody{r: rand.New(rand.NewPCG(seed, 7)), tick: make(chan struct{}, 10)}
	b := newBench(t, provide(m.generate), func(c *app.Config) {
		ask := agent.Permissions{"create_artifact": agent.Ask}
		c.Agents = []agent.Definition{
			{Name: agent.Lead, Prompt: "You lead.", Subagents: []artel.AgentName{"writer"}, Tools: []string{"create_artifact", "list_artifacts", "rewrite_artifact", "update_artifact"}, Permissions: ask},
			{Name: "writer", Prompt: "You write.", Tools: []string{"create_artifact", "list_artifacts"}, Permissions: ask},
		}
		c.UserRuns = int(seed) * 2
	})
	var current atomic.Pointer[app.App]
	current.Store(b.App)
	ctx := apptest.Context(t)
	all := []artel.ConversationID{b.conversation(), b.conversation(), b.conversation()}
	var wg sync.WaitGroup
	var done atomic.Int64
	var starting sync.Mutex
	for range users {
		wg.Go(func() {
			for range acts {
				of, stop := ctx, context.CancelFunc(func() {})
				if m.dice(4) == 0 {
					of, stop = context.WithTimeout(ctx, time.Duration(m.dice(3000))*time.Microsecond)
				}
				m.act(of, current.Load(), all[m.dice(len(all))])
				stop()
				if done.Add(1)%restart != 0 {
					continue
				}
				starting.Lock()
				if err := current.Load().Close(ctx); err != nil {
					t.Error(err)
				}
				next := b.open()
				current.Store(next)
				if _, err := next.Recover(ctx, true); err != nil {
					t.Error(err)
				}
				starting.Unlock()
			}
		})
	}
	wg.Wait()
	m.calm.Store(true)
	close(m.tick)
	b.App = current.Load()
	for _, c := range all {
		if !b.quiet(c) {
			b.until(c, func(artel.Event) bool { return b.quiet(c) })
		}
		b.whole(c)
	}
}

// quiet denies what runs ask, and reports whether nothing of a conversation is open.
func (b *bench) quiet(c artel.ConversationID) bool {
	ctx := apptest.Context(b.t)
	w, err := b.Runs.Waiting(ctx, c)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, p := range w.Permissions {
		_, _ = b.Permissions.Decide(ctx, p.Run, p.ID, artel.Deny, "")
	}
	_, err = b.Runs.Active(ctx, c)
	return errors.Is(err, artel.NotFound) && len(w.Queued)+len(w.Injections)+len(w.Permissions) == 0 && !w.Compaction
}

// act does one thing at random. Its errors are those of the moment.
func (m *moody) act(ctx context.Context, a *app.App, c artel.ConversationID) {
	select {
	case m.tick <- struct{}{}:
	default:
	}
	switch m.dice(12) {
	case 0, 1, 2:
		_, _ = a.Runs.Send(ctx, c, run.Input{Text: "message", Queue: m.dice(3) > 0})
	case 3, 4:
		if r, err := a.Runs.Active(ctx, c); err == nil {
			_, _ = a.Runs.Inject(ctx, r.ID, "by the way")
		}
	case 5:
		if r, err := a.Runs.Active(ctx, c); err == nil {
			_, _ = a.Runs.Cancel(ctx, r.ID)
		}
	case 6:
		_, _ = a.Runs.Compact(ctx, c, "")
	case 7, 8:
		if w, err := a.Runs.Waiting(ctx, c); err == nil {
			for _, p := range w.Permissions {
				d := []artel.Decision{artel.Allow, artel.Deny, artel.Always}[m.dice(3)]
				_, _ = a.Permissions.Decide(ctx, p.Run, p.ID, d, "")
			}
			if len(w.Queued) > 0 && m.dice(3) == 0 {
				_, _ = a.Runs.Cancel(ctx, w.Queued[m.dice(len(w.Queued))].Run)
			}
		}
	case 9:
		if list, _, err := a.Messages.List(ctx, c, store.Page{Limit: 500}); err == nil && len(list) > 0 {
			_, _ = a.Runs.Edit(ctx, c, list[m.dice(len(list))].ID, run.Edit{Queue: m.dice(2) == 0})
		}
	case 10:
		if list, _, err := a.Messages.List(ctx, c, store.Page{Limit: 500}); err == nil && len(list) > 0 {
			_, _ = a.Conversations.Switch(ctx, c, list[m.dice(len(list))].ID)
		}
	case 11:
		_, _ = a.Recover(ctx, false)
	}
}

// whole checks that nothing of a conversation is open or there twice.
func (b *bench) whole(c artel.ConversationID) {
	b.t.Helper()
	ctx := apptest.Context(b.t)
	begun, ended := map[string]int{}, map[string]int{}
	states := map[artel.RunID]artel.RunState{}
	var events []artel.Event
	for {
		page, err := b.Events.Page(ctx, c, artel.Seq(len(events)), 500)
		if err != nil {
			b.t.Fatal(err)
		}
		if events = append(events, page...); len(page) == 0 {
			break
		}
	}
	for i, e := range events {
		if e.Seq != artel.Seq(i+1) {
			b.t.Errorf("event %d has the number %d", i+1, e.Seq)
		}
		key := func(what string, id any) string { return fmt.Sprint(what, " ", id) }
		switch e.Type {
		case artel.EventRunStarted:
			begun[key("run", e.Run)] = 1
		case artel.EventMessageQueued:
			begun[key("run", e.Run)] = 1
		case artel.EventRunFinished:
			ended[key("run", e.Run)]++
			states[e.Run] = payload[artel.RunFinished](b.t, e).State
		case artel.EventPermissionRequested:
			begun[key("question", payload[artel.PermissionRequested](b.t, e).Permission)]++
		case artel.EventPermissionResolved:
			ended[key("question", payload[artel.PermissionResolved](b.t, e).Permission)]++
		case artel.EventInjectionReceived:
			begun[key("injection", payload[artel.InjectionReceived](b.t, e).Injection)]++
		case artel.EventMessageInjected:
			ended[key("injection", payload[artel.MessageInjected](b.t, e).Injection)]++
		case artel.EventSubagentStarted:
			begun[key("subagent "+string(e.Run), e.Within)]++
		case artel.EventSubagentCompleted:
			ended[key("subagent "+string(e.Run), e.Within)]++
		}
	}
	for k, n := range begun {
		if n != 1 || ended[k] != 1 && !(k[:3] == "sub" && ended[k] == 0) {
			b.t.Errorf("%s: %s begun %d times, ended %d times", c, k, n, ended[k])
		}
	}
	for k, n := range ended {
		if begun[k] != 1 {
			b.t.Errorf("%s: %s ended %d times, and never began", c, k, n)
		}
	}
	for id, state := range states {
		r, err := b.Runs.Find(ctx, id)
		if err != nil || r.State != state {
			b.t.Errorf("run %s ended as %s and is %s: %v", id, state, r.State, err)
		}
	}
	var list []artel.Message
	for cursor := ""; ; {
		page, next, err := b.Messages.List(ctx, c, store.Page{Limit: 500, Cursor: cursor})
		if err != nil {
			b.t.Fatal(err)
		}
		if list, cursor = append(list, page...), next; cursor == "" {
			break
		}
	}
	known := map[artel.MessageID]bool{"": true}
	results := map[string]int{}
	for _, m := range list {
		known[m.ID] = true
		for _, r := range artel.ResultsOf(m.Parts) {
			results[fmt.Sprint(m.Run, m.Within, r.CallID)]++
		}
	}
	for _, m := range list {
		if !known[m.Parent] {
			b.t.Errorf("message %s has no parent", m.ID)
		}
		for _, call := range artel.CallsOf(m.Parts) {
			if n := results[fmt.Sprint(m.Run, m.Within, call.ID)]; n != 1 {
				b.t.Errorf("call %s of %s in %s has %d results; run %s %s", call.ID, m.ID, m.Within, n, m.Run, states[m.Run])
			}
		}
	}
	heads, err := b.Artifacts.List(ctx, c, "")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, a := range heads {
		rows, err := b.Versions.History(ctx, c, a.ID, artifact.Journal)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, r := range rows {
			if r.Live {
				b.t.Errorf("version %d of %s is live", r.Number, a.ID)
			}
		}
	}
}
