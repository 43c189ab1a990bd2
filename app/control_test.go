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
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
)

// A gated model answers each call with "answer" and what it was last told, and
// waits before each answer until it may go on.
type gated struct {
	mu    sync.Mutex
	calls []*model.Request
	came  chan struct{} // one for each call
	may   chan struct{}
}

// working makes a bench with a run whose first model call waits at the gate.
func working(t *testing.T, text string, changes ...func(*app.Config)) (*gated, *bench, artel.ConversationID, artel.Run) {
	t.Helper()
	g := newGated()
	b := newBench(t, provide(g.generate), changes...)
	c := b.conversation()
	r := b.send(c, run.Input{Text: text})
	<-g.came
	return g, b, c, r
}

func newGated() *gated { return &gated{came: make(chan struct{}, 100), may: make(chan struct{}, 100)} }

func (g *gated) generate(ctx context.Context, r *model.Request, yield func(model.Delta, error) bool) {
	g.mu.Lock()
	g.calls = append(g.calls, r)
	g.mu.Unlock()
	g.came <- struct{}{}
	select {
	case <-g.may:
	case <-ctx.Done():
		yield(nil, ctx.Err())
		return
	}
	_ = yield(model.TextDelta("answer to "+lastSaid(r)), nil) && yield(model.Finish{Reason: model.StopEnd}, nil)
}

// lastSaid is the last line that a person wrote.
func lastSaid(r *model.Request) string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role != artel.RoleUser {
			continue
		}
		text, _, _ := strings.Cut(artel.TextOf(m.Parts), "<system-reminder>")
		if lines := strings.Split(strings.TrimSpace(text), "\n"); lines[0] != "" {
			return lines[len(lines)-1]
		}
	}
	return ""
}

// said returns the texts of the active branch, root first.
func (b *bench) said(c artel.ConversationID) string {
	b.t.Helper()
	found, err := b.Conversations.Find(apptest.Context(b.t), c)
	if err != nil {
		b.t.Fatal(err)
	}
	branch, err := b.Messages.Branch(apptest.Context(b.t), c, found.Leaf, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	var texts []string
	for _, m := range branch {
		if text := artel.TextOf(m.Parts); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, " | ")
}

func TestQueue(t *testing.T) {
	g, b, c, first := working(t, "one")
	if _, err := b.Runs.Send(apptest.Context(t), c, run.Input{Text: "two"}); artel.CodeOf(err) != run.CodeRunActive {
		t.Errorf("without queueing: got %v", err)
	}
	second := b.send(c, run.Input{Text: "two", Queue: true})
	third := b.send(c, run.Input{Text: "three", Queue: true})
	fourth := b.send(c, run.Input{Text: "four", Queue: true})
	for _, r := range []artel.Run{second, third, fourth} {
		if found, err := b.Runs.Find(apptest.Context(t), r.ID); err != nil || found.State != artel.RunQueued || r.State != artel.RunQueued {
			t.Errorf("got %+v, %v; want a queued run", found, err)
		}
	}
	w, err := b.Runs.Waiting(apptest.Context(t), c)
	if err != nil || len(w.Queued) != 3 || w.Queued[0].Text != "two" || w.Queued[2].Run != fourth.ID || w.Queued[0].Message != second.Message {
		t.Errorf("got %+v, %v", w, err)
	}
	if r, err := b.Runs.Cancel(apptest.Context(t), third.ID); err != nil || r.State != artel.RunCancelled {
		t.Errorf("got %+v, %v", r, err)
	}
	for range 3 {
		g.may <- struct{}{}
	}
	for _, r := range []artel.Run{first, second, fourth} {
		if r = b.ended(r); r.State != artel.RunDone {
			t.Errorf("%s ended as %s", r.ID, r.State)
		}
	}
	if got, want := b.said(c), "one | answer to one | two | answer to two | four | answer to four"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if w, err = b.Runs.Waiting(apptest.Context(t), c); err != nil || len(w.Queued) != 0 {
		t.Errorf("got %+v, %v", w, err)
	}
	if _, err := b.Runs.Cancel(apptest.Context(t), third.ID); !errors.Is(err, artel.Conflict) {
		t.Errorf("cancelled twice: %v", err)
	}
	if n := strings.Count(typesOf(b.events(c)), "message_queued"); n != 3 {
		t.Errorf("%d events of queued messages, want 3", n)
	}
}

// TestQueueGoesOnAfterCancelling: the next message's turn comes also when the
// run before it ends badly.
func TestQueueGoesOnAfterCancelling(t *testing.T) {
	g, b, c, first := working(t, "one")
	second := b.send(c, run.Input{Text: "two", Queue: true})
	if _, err := b.Runs.Cancel(apptest.Context(t), first.ID); err != nil {
		t.Fatal(err)
	}
	g.may <- struct{}{}
	if r := b.ended(second); r.State != artel.RunDone {
		t.Errorf("it ended as %s", r.State)
	}
}

// TestQueueSurvivesRestart: what waits when the server stops is begun with by
// the next one.
func TestQueueSurvivesRestart(t *testing.T) {
	g, b, c, _ := working(t, "one")
	second := b.send(c, run.Input{Text: "two", Queue: true})
	if err := b.Close(apptest.Context(t)); err != nil {
		t.Fatal(err)
	}
	b.App = b.open()
	if r, err := b.Runs.Find(apptest.Context(t), second.ID); err != nil || r.State != artel.RunQueued {
		t.Fatalf("got %+v, %v", r, err)
	}
	for range 4 {
		g.may <- struct{}{}
	}
	if _, err := b.Recover(apptest.Context(t), true); err != nil {
		t.Fatal(err)
	}
	if r := b.ended(second); r.State != artel.RunDone {
		t.Errorf("it ended as %s", r.State)
	}
	if got := b.said(c); !strings.HasSuffix(got, "two | answer to two") {
		t.Errorf("got %q", got)
	}
}

func TestInject(t *testing.T) {
	g, b, c, r := working(t, "one")
	for _, text := range []string{"also this", "and that"} {
		if i, err := b.Runs.Inject(apptest.Context(t), r.ID, text); err != nil || i.Text != text || i.Run != r.ID {
			t.Fatalf("got %+v, %v", i, err)
		}
	}
	if w, err := b.Runs.Waiting(apptest.Context(t), c); err != nil || len(w.Injections) != 2 {
		t.Errorf("got %+v, %v", w, err)
	}
	g.may <- struct{}{} // the answer comes, and the run does not end
	<-g.came
	g.may <- struct{}{}
	if r = b.ended(r); r.State != artel.RunDone {
		t.Errorf("it ended as %s: %+v", r.State, r.Error)
	}
	if got, want := b.said(c), "one | answer to one | also this | and that | answer to and that"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := b.Runs.Inject(apptest.Context(t), r.ID, "late"); artel.CodeOf(err) != run.CodeRunNotActive {
		t.Errorf("into a run that has ended: %v", err)
	}
	if _, err := b.Runs.Inject(apptest.Context(t), r.ID, " "); !errors.Is(err, artel.Invalid) {
		t.Errorf("nothing: %v", err)
	}
}

// TestInjectedIsKept: what was said to a run that ends badly stands in the
// conversation all the same.
func TestInjectedIsKept(t *testing.T) {
	g, b, c, r := working(t, "one")
	if _, err := b.Runs.Inject(apptest.Context(t), r.ID, "also this"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Runs.Cancel(apptest.Context(t), r.ID); err != nil {
		t.Fatal(err)
	}
	if got, want := b.said(c), "one | also this"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	g.may <- struct{}{}
	b.ask(c, "two")
	if got, want := b.said(c), "one | also this | two | answer to two"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// asks has an agent that makes notes, and has to ask for it.
const asks = `
-- turn 1 --
@call create_artifact {"id": "note", "title": "Note", "content": "one"}
@call list_artifacts {}
-- turn 2 --
Done.
-- turn 3 --
@call create_artifact {"id": "second", "title": "Note", "content": "two"}
-- turn 4 --
Done again.
`

func withPermissions(p agent.Permissions) func(*app.Config) {
	return func(c *app.Config) { c.Permissions = p }
}

// question waits for the next question of a run.
func (b *bench) question(r artel.Run) artel.PermissionRequested {
	b.t.Helper()
	e := b.until(r.Conversation, func(e artel.Event) bool { return e.Type == artel.EventPermissionRequested && e.Run == r.ID })
	return payload[artel.PermissionRequested](b.t, e)
}

func (b *bench) decide(r artel.Run, q artel.PermissionRequested, d artel.Decision) {
	b.t.Helper()
	if p, err := b.Permissions.Decide(apptest.Context(b.t), r.ID, q.Permission, d, ""); err != nil || p.Decision != d {
		b.t.Fatalf("got %+v, %v", p, err)
	}
}

func TestPermissions(t *testing.T) {
	for _, d := range []artel.Decision{artel.Allow, artel.Deny, artel.Always} {
		t.Run(string(d), func(t *testing.T) {
			b := newBench(t, play(t, asks), withPermissions(agent.Permissions{"create_artifact": agent.Ask}))
			c := b.conversation()
			r := b.send(c, run.Input{Text: "Go."})
			q := b.question(r)
			if found, err := b.Runs.Find(apptest.Context(t), r.ID); err != nil || found.State != artel.RunWaiting {
				t.Errorf("got %+v, %v", found, err)
			}
			if w, err := b.Runs.Waiting(apptest.Context(t), c); err != nil || len(w.Permissions) != 1 || w.Permissions[0].ID != q.Permission {
				t.Errorf("got %+v, %v", w, err)
			}
			if q.Name != "create_artifact" || !strings.Contains(string(q.Arguments), "note") {
				t.Errorf("got %+v", q)
			}
			b.decide(r, q, d)
			if _, err := b.Permissions.Decide(apptest.Context(t), r.ID, q.Permission, d, ""); !errors.Is(err, artel.Conflict) {
				t.Errorf("answered twice: %v", err)
			}
			if r = b.ended(r); r.State != artel.RunDone {
				t.Fatalf("it ended as %s: %+v", r.State, r.Error)
			}
			_, _, err := b.Artifacts.Find(apptest.Context(t), c, "note", "")
			if made := err == nil; made != (d != artel.Deny) {
				t.Errorf("the note is there: %v", made)
			}
			r = b.send(c, run.Input{Text: "More."})
			if d != artel.Always {
				b.decide(r, b.question(r), d)
			}
			if r = b.ended(r); r.State != artel.RunDone {
				t.Errorf("it ended as %s: %+v", r.State, r.Error)
			}
			asked := strings.Count(typesOf(b.events(c)), "permission_requested")
			if want := map[artel.Decision]int{artel.Always: 1, artel.Allow: 2, artel.Deny: 2}[d]; asked != want {
				t.Errorf("asked %d times, want %d", asked, want)
			}
		})
	}
}

// TestPermissionAlwaysHoldsOnItsBranch: on another branch it is asked again.
// The model is told why somebody said no, and the log tells it too.
func TestPermissionComment(t *testing.T) {
	b := newBench(t, play(t, asks), withPermissions(agent.Permissions{"create_artifact": agent.Ask}))
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	q := b.question(r)
	for comment, kind := range map[string]artel.Kind{
		strings.Repeat("x", 4001): artel.TooLarge,
		"data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7": artel.Invalid,
	} {
		if _, err := b.Permissions.Decide(apptest.Context(t), r.ID, q.Permission, artel.Deny, comment); !errors.Is(err, kind) {
			t.Errorf("%.20q: got %v, want kind %s", comment, err, kind)
		}
	}
	const why = "Put it into the report instead."
	if p, err := b.Permissions.Decide(apptest.Context(t), r.ID, q.Permission, artel.Deny, " "+why+"\n"); err != nil || p.Comment != why {
		t.Fatalf("got %+v, %v", p, err)
	}
	b.ended(r)
	told := false
	for _, e := range b.events(c) {
		switch e.Type {
		case artel.EventPermissionResolved:
			if p := payload[artel.PermissionResolved](t, e); p.Comment != why {
				t.Errorf("the log tells %+v", p)
			}
		case artel.EventToolCompleted:
			for _, part := range payload[artel.ToolCompleted](t, e).Message.Parts {
				res, ok := part.(artel.ToolResult)
				told = told || ok && strings.Contains(res.Content, why)
			}
		}
	}
	if !told {
		t.Error("the model was not told why")
	}
	list, err := b.Permissions.List(apptest.Context(t), c)
	if err != nil || len(list) != 1 || list[0].ID != q.Permission || list[0].Decision != artel.Deny || list[0].Comment != why {
		t.Errorf("the questions of the conversation are %+v, %v", list, err)
	}
}

func TestPermissionAlwaysHoldsOnItsBranch(t *testing.T) {
	b := newBench(t, play(t, asks), withPermissions(agent.Permissions{agent.AnyTool: agent.Ask, "list_artifacts": agent.Auto}))
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	b.decide(r, b.question(r), artel.Always)
	b.ended(r)
	root := artel.MessageID("")
	r = b.send(c, run.Input{Text: "Elsewhere.", Parent: &root})
	b.decide(r, b.question(r), artel.Deny)
	b.ended(r)
}

// TestPermissionTimeout: silence denies.
func TestPermissionTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, play(t, asks), withPermissions(agent.Permissions{"create_artifact": agent.Ask}))
		c := b.conversation()
		began := time.Now()
		r, err := b.Runs.Send(apptest.Context(t), c, run.Input{Text: "Go."})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(299 * time.Second)
		synctest.Wait()
		if found, err := b.Runs.Find(apptest.Context(t), r.ID); err != nil || found.State != artel.RunWaiting {
			t.Errorf("after %v: %+v, %v", time.Since(began), found, err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if found, err := b.Runs.Find(apptest.Context(t), r.ID); err != nil || found.State != artel.RunDone {
			t.Errorf("after %v: %+v, %v", time.Since(began), found, err)
		}
		for _, e := range b.events(c) {
			if e.Type == artel.EventPermissionResolved {
				if p := payload[artel.PermissionResolved](t, e); p.Decision != artel.Deny || p.Reason != artel.ResolvedByTimeout {
					t.Errorf("got %+v", p)
				}
				return
			}
		}
		t.Error("the question was not answered")
	})
}

// TestPermissionSurvivesRestart: the question stays, and so does its answer.
func TestPermissionSurvivesRestart(t *testing.T) {
	b := newBench(t, play(t, asks), withPermissions(agent.Permissions{"create_artifact": agent.Ask}))
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	q := b.question(r)
	if err := b.Close(apptest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if found, err := b.Runs.Find(apptest.Context(t), r.ID); err != nil || found.State != artel.RunWaiting {
		t.Fatalf("got %+v, %v", found, err)
	}
	b.App = b.open()
	if _, err := b.Recover(apptest.Context(t), true); err != nil {
		t.Fatal(err)
	}
	b.decide(r, q, artel.Allow)
	if r = b.ended(r); r.State != artel.RunDone {
		t.Errorf("it ended as %s: %+v", r.State, r.Error)
	}
	if _, _, err := b.Artifacts.Find(apptest.Context(t), c, "note", ""); err != nil {
		t.Error(err)
	}
	if n := strings.Count(typesOf(b.events(c)), "permission_requested"); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestPermissionEndsWithItsRun: a run that is cancelled leaves no open
// question.
func TestPermissionEndsWithItsRun(t *testing.T) {
	b := newBench(t, play(t, asks), withPermissions(agent.Permissions{"create_artifact": agent.Ask}))
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	q := b.question(r)
	if r, err := b.Runs.Cancel(apptest.Context(t), r.ID); err != nil || r.State != artel.RunCancelled {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := b.Permissions.Decide(apptest.Context(t), r.ID, q.Permission, artel.Allow, ""); !errors.Is(err, artel.Conflict) {
		t.Errorf("got %v", err)
	}
	if w, err := b.Runs.Waiting(apptest.Context(t), c); err != nil || len(w.Permissions) != 0 {
		t.Errorf("got %+v, %v", w, err)
	}
}

// TestPermissionDeny: a model is not told of a tool that it may never call.
func TestPermissionDeny(t *testing.T) {
	g := newGated()
	g.may <- struct{}{}
	b := newBench(t, provide(g.generate), withPermissions(agent.Permissions{agent.AnyTool: agent.Deny, "read_artifact": agent.Auto}))
	b.ask(b.conversation(), "Go.")
	if tools := g.calls[0].Tools; len(tools) != 1 || tools[0].Name != "read_artifact" {
		t.Errorf("it was told of %d tools", len(tools))
	}
}

// TestCancelInATool: a run is cancelled while a tool hangs. What it had done
// stays, the call that was cut off has a result, and the next message is answered.
func TestCancelInATool(t *testing.T) {
	begun := make(chan struct{})
	hang := tool.Func("hang", "Hangs.", func(ctx context.Context, _ *tool.Env, _ struct{}) (tool.Result, error) {
		close(begun)
		<-ctx.Done()
		return tool.Result{}, context.Cause(ctx)
	})
	b := newBench(t, play(t, "-- message 1 --\nGo.\n-- turn 1 --\n@call create_artifact {\"id\":\"note\",\"title\":\"Note\",\"content\":\"one\"}\n@call hang {}\n-- message 2 --\nAgain.\n-- turn 1 --\nYes.\n"),
		func(c *app.Config) {
			c.Tools = []tool.Tool{hang}
			c.Agents = []agent.Definition{{Name: agent.Lead, Prompt: "You try.", Tools: []string{"create_artifact", "hang"}}}
		})
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	<-begun
	if r, err := b.Runs.Cancel(apptest.Context(t), r.ID); err != nil || r.State != artel.RunCancelled {
		t.Errorf("got %+v, %v", r, err)
	}
	if got := b.text(c, "note", ""); got != "one" {
		t.Errorf("the note reads %q", got)
	}
	if r := b.ended(b.send(c, run.Input{Text: "Again."})); r.State != artel.RunDone {
		t.Errorf("the next run: %+v", r)
	}
}

// TestCancelTakesEffectAtOnce: in a stream that hangs.
func TestCancelTakesEffectAtOnce(t *testing.T) {
	b := newBench(t, play(t, "-- turn 1 --\nHalf\n@hang\n"))
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	b.until(c, ofType(artel.EventMessageDelta))
	if r, err := b.Runs.Cancel(apptest.Context(t), r.ID); err != nil || r.State != artel.RunCancelled {
		t.Errorf("got %+v, %v", r, err)
	}
	if got := b.said(c); got != "Go. | Half" {
		t.Errorf("got %q", got)
	}
}
