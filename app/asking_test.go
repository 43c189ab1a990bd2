// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/run"
)

// askers are a lead who gives work to two at once, of whom one gives it on to a
// third; the second and the third write, and have to ask.
func askers(c *app.Config) {
	write := agent.Permissions{"create_artifact": agent.Ask}
	c.Agents = []agent.Definition{
		{Name: agent.Lead, Prompt: "You lead.", Subagents: []artel.AgentName{"middle", "writer"}, Tools: []string{"create_artifact"}},
		{Name: "middle", Prompt: "You pass it on.", Subagents: []artel.AgentName{"deep"}},
		{Name: "writer", Prompt: "You write.", Tools: []string{"create_artifact"}, Permissions: write},
		{Name: "deep", Prompt: "You write.", Tools: []string{"create_artifact"}, Permissions: write},
	}
}

const bothAsk = `-- message 1 --
-- turn 1 --
@call call_subagent {"agent": "middle", "instruction": "go deep"}
@call call_subagent {"agent": "writer", "instruction": "write b"}
-- turn 2 --
Done.
-- message 2 --
-- turn 1 --
@call call_subagent {"agent": "writer", "instruction": "write c"}
-- turn 2 --
Done again.
-- asked go deep --
-- turn 1 --
@call call_subagent {"agent": "deep", "instruction": "write a"}
-- turn 2 --
It is deep.
-- asked write a --
-- turn 1 --
@call create_artifact {"id": "a", "title": "A", "content": "one"}
-- turn 2 --
I have written a.
-- asked write b --
-- turn 1 --
@call create_artifact {"id": "b", "title": "B", "content": "two"}
-- turn 2 --
I have written b.
-- asked write c --
-- turn 1 --
@call create_artifact {"id": "c", "title": "C", "content": "three"}
-- turn 2 --
I have written c.
`

// openQuestions waits for the question with a number of a conversation, and
// returns those that are open then, which is two, by who asks.
func (b *bench) openQuestions(c artel.ConversationID, number int) map[artel.AgentName]run.Permission {
	b.t.Helper()
	seen := 0
	b.until(c, func(e artel.Event) bool {
		if e.Type == artel.EventPermissionRequested {
			seen++
		}
		return seen == number
	})
	w, err := b.Runs.Waiting(apptest.Context(b.t), c)
	if err != nil || len(w.Permissions) != 2 {
		b.t.Fatalf("want two questions, got %+v, %v", w, err)
	}
	by := map[artel.AgentName]run.Permission{}
	for _, p := range w.Permissions {
		by[p.Agent] = p
	}
	return by
}

func (b *bench) state(r artel.Run) artel.RunState {
	b.t.Helper()
	found, err := b.Runs.Find(apptest.Context(b.t), r.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return found.State
}

func (b *bench) answer(p run.Permission, d artel.Decision) {
	b.t.Helper()
	if _, err := b.Permissions.Decide(apptest.Context(b.t), p.Run, p.ID, d, ""); err != nil {
		b.t.Fatal(err)
	}
}

// TestSubagentsAsk: two subagents ask at once, one of them two calls deep. The
// run waits until both have an answer, and who asks is told with its thread. What
// is allowed for good holds for the next subagent, on its branch.
func TestSubagentsAsk(t *testing.T) {
	b := newBench(t, play(t, bothAsk), askers)
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	open := b.openQuestions(c, 2)
	deep, writer := open["deep"], open["writer"]
	if len(deep.Within.Split()) != 2 || len(writer.Within.Split()) != 1 {
		t.Fatalf("the questions are %+v", open)
	}
	if s := b.state(r); s != artel.RunWaiting {
		t.Errorf("while both ask, the run is %s", s)
	}
	b.answer(writer, artel.Always)
	b.until(c, func(e artel.Event) bool { return e.Type == artel.EventSubagentCompleted && e.Within == writer.Within })
	if s := b.state(r); s != artel.RunWaiting {
		t.Errorf("while one asks, the run is %s", s)
	}
	b.answer(deep, artel.Deny)
	if s := b.state(r); s == artel.RunWaiting {
		t.Error("it waits though all is answered")
	}
	if r = b.ended(r); r.State != artel.RunDone {
		t.Fatalf("it ended as %s: %+v", r.State, r.Error)
	}
	if _, _, err := b.Artifacts.Find(apptest.Context(t), c, "a", ""); !errors.Is(err, artel.NotFound) {
		t.Errorf("what was denied is there: %v", err)
	}
	if got := b.text(c, "b", ""); got != "two" {
		t.Errorf("what was allowed reads %q", got)
	}
	for _, e := range b.events(c) {
		if e.Type != artel.EventPermissionRequested && e.Type != artel.EventPermissionResolved {
			continue
		}
		p := payload[artel.PermissionResolved](t, e) // has all that is looked at of both
		want := map[artel.PermissionID]run.Permission{deep.ID: deep, writer.ID: writer}[p.Permission]
		if e.Agent != want.Agent || e.Within != want.Within || p.Call != want.Call {
			t.Errorf("%s: by %s within %q about %s, want %+v", e.Type, e.Agent, e.Within, p.Call, want)
		}
	}
	r = b.ask(c, "And another.")
	if _, _, err := b.Artifacts.Find(apptest.Context(t), c, "c", ""); err != nil || r.State != artel.RunDone {
		t.Errorf("after always: %v, %+v", err, r)
	}
	root := artel.MessageID("")
	r = b.send(c, run.Input{Text: "Elsewhere.", Parent: &root})
	b.openQuestions(c, 4)
	if _, err := b.Runs.Cancel(apptest.Context(t), r.ID); err != nil {
		t.Error(err)
	}
}

// TestQuestionsOfSubagentsSurviveRestart: both stay open, one is answered by
// another process, and neither is asked again.
func TestQuestionsOfSubagentsSurviveRestart(t *testing.T) {
	b := newBench(t, play(t, bothAsk), askers)
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	open := b.openQuestions(c, 2)
	for _, who := range []artel.AgentName{"deep", "writer"} {
		if err := b.Close(apptest.Context(t)); err != nil {
			t.Fatal(err)
		}
		if s := b.state(r); s != artel.RunWaiting {
			t.Fatalf("it was left as %s", s)
		}
		b.App = b.open()
		if _, err := b.Recover(apptest.Context(t), true); err != nil {
			t.Fatal(err)
		}
		b.answer(open[who], artel.Allow)
		b.until(c, func(e artel.Event) bool {
			return e.Type == artel.EventSubagentCompleted && e.Within == open[who].Within
		})
	}
	if r = b.ended(r); r.State != artel.RunDone {
		t.Fatalf("it ended as %s: %+v", r.State, r.Error)
	}
	for id, want := range map[artel.ArtifactID]string{"a": "one", "b": "two"} {
		if got := b.text(c, id, ""); got != want {
			t.Errorf("%s reads %q", id, got)
		}
	}
	if n := strings.Count(typesOf(b.events(c)), "permission_requested"); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

// TestQuestionsOfSubagentsEnd with the run that is cancelled.
func TestQuestionsOfSubagentsEnd(t *testing.T) {
	b := newBench(t, play(t, bothAsk), askers)
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	open := b.openQuestions(c, 2)
	if r, err := b.Runs.Cancel(apptest.Context(t), r.ID); err != nil || r.State != artel.RunCancelled {
		t.Errorf("got %+v, %v", r, err)
	}
	if w, err := b.Runs.Waiting(apptest.Context(t), c); err != nil || len(w.Permissions) != 0 {
		t.Errorf("got %+v, %v", w, err)
	}
	ends := 0
	for _, e := range b.events(c) {
		if e.Type == artel.EventPermissionResolved && payload[artel.PermissionResolved](t, e).Reason == artel.ResolvedByEnd && e.Within == open[e.Agent].Within {
			ends++
		}
	}
	if ends != 2 {
		t.Errorf("the log tells the end of %d questions", ends)
	}
}

// TestSilenceAndHaste: nobody answers a subagent, which denies; one whose own
// time is over before takes its question back, and the run goes on.
func TestSilenceAndHaste(t *testing.T) {
	for name, c := range map[string]struct {
		limits agent.Limits
		want   artel.Resolution
	}{
		"silence": {agent.Limits{}, artel.ResolvedByTimeout},
		"haste":   {agent.Limits{Seconds: 10}, artel.ResolvedByEnd},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, play(t, bothAsk), askers, func(config *app.Config) { config.Agents[1].Limits = c.limits })
				id := b.conversation()
				r := b.send(id, run.Input{Text: "Go."})
				synctest.Wait()
				if s := b.state(r); s != artel.RunWaiting {
					t.Fatalf("the run is %s", s)
				}
				open := b.openQuestions(id, 2)
				time.Sleep(11 * time.Second)
				synctest.Wait()
				b.answer(open["writer"], artel.Allow)
				time.Sleep(300 * time.Second)
				synctest.Wait()
				if s := b.state(r); s != artel.RunDone {
					t.Errorf("the run is %s", s)
				}
				list, err := b.Permissions.List(apptest.Context(t), id)
				at := slices.IndexFunc(list, func(p run.Permission) bool { return p.Agent == "deep" })
				if err != nil || at < 0 || list[at].Decision != artel.Deny || list[at].Reason != c.want {
					t.Errorf("the questions are %+v, %v", list, err)
				}
			})
		})
	}
}

// TestCrashWhileSubagentsAsk kills a process at every fifth update of a run whose
// subagents ask, two at once; somebody always allows. Each is asked once, and
// has done everything once.
func TestCrashWhileSubagentsAsk(t *testing.T) {
	survived := false
	for k := 3; !survived; k += 5 {
		when := []moment{insideUpdate, afterUpdate}[k%2]
		t.Run(fmt.Sprintf("%s %d", when, k), func(t *testing.T) { survived = crashWhileAsking(t, when, k) })
		if k > 200 {
			t.Fatal("the run has no end")
		}
	}
}

func crashWhileAsking(t *testing.T, when moment, k int) (survived bool) {
	s := &mortal{left: 1 << 30, when: when, died: make(chan struct{})}
	b := newBench(t, play(t, bothAsk), askers, func(c *app.Config) { s.Store = c.Store; c.Store = s })
	c := b.conversation()
	allowed := b.allowing(c)
	survived = b.dieAt(s, c, "Go.", k)
	allowed()
	r, ok := b.revive(s, c)
	if !ok {
		return survived
	}
	defer b.allowing(c)()
	if r = b.ended(r); r.State != artel.RunDone || r.Usage.Calls != 8 {
		t.Fatalf("the run is %+v", r)
	}
	told := map[artel.EventType]int{}
	for _, e := range b.events(c) {
		told[e.Type]++
	}
	for kind, want := range map[artel.EventType]int{
		artel.EventPermissionRequested: 2, artel.EventPermissionResolved: 2, artel.EventToolCompleted: 5,
		artel.EventSubagentStarted: 3, artel.EventArtifactCreated: 2,
	} {
		if told[kind] != want {
			t.Errorf("the log tells of %s %d times, want %d", kind, told[kind], want)
		}
	}
	return survived
}

// allowing lets somebody allow whatever is asked, until done is called.
func (b *bench) allowing(c artel.ConversationID) (done func()) {
	ctx, stop := context.WithCancel(apptest.Context(b.t))
	a := b.App
	var wg sync.WaitGroup
	wg.Go(func() {
		for e, err := range a.Events.Follow(ctx, c, 0, 0) {
			if err == nil && e.Type == artel.EventPermissionRequested {
				p := payload[artel.PermissionRequested](b.t, e)
				_, _ = a.Permissions.Decide(ctx, e.Run, p.Permission, artel.Allow, "") // answered before, or the process is dead
			}
		}
	})
	return func() { stop(); wg.Wait() }
}

// A lead that has given work away has not seen what was written: it cannot replace
// it before it has read it.
func TestLeadHasNotSeenWorkOfSubagents(t *testing.T) {
	b := newBench(t, play(t, `-- message 1 --
-- turn 1 --
@call call_subagent {"agent": "writer", "instruction": "write a"}
-- turn 2 --
@call rewrite_artifact {"id": "a", "content": "mine"}
-- turn 3 --
@call read_artifact {"id": "a"}
@call rewrite_artifact {"id": "a", "content": "ours"}
-- turn 4 --
Done.
-- asked write a --
-- turn 1 --
@call create_artifact {"id": "a", "title": "A", "content": "one"}
-- turn 2 --
I have written a.
`), func(c *app.Config) {
		c.Agents = []agent.Definition{
			{Name: agent.Lead, Prompt: "You lead.", Subagents: []artel.AgentName{"writer"}, Tools: []string{"read_artifact", "rewrite_artifact"}},
			{Name: "writer", Prompt: "You write.", Tools: []string{"create_artifact"}},
		}
	})
	c := b.conversation()
	if r := b.ask(c, "Go."); r.State != artel.RunDone {
		t.Fatalf("it ended as %s: %+v", r.State, r.Error)
	}
	var rewrites []bool
	for _, e := range b.events(c) {
		if e.Type == artel.EventToolCompleted {
			if p := payload[artel.ToolCompleted](t, e); p.Name == "rewrite_artifact" {
				rewrites = append(rewrites, p.OK)
			}
		}
	}
	if !slices.Equal(rewrites, []bool{false, true}) || b.text(c, "a", "") != "ours" {
		t.Errorf("rewrites succeed: %v, want only the one after reading", rewrites)
	}
}
