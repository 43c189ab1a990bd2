// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/storetest"
)

// An interposed store passes its transactions to functions that may replace their
// repositories.
type interposed struct {
	store.Store
	inView, inUpdate func(*store.Tx)
	afterView        func()
}

func (s *interposed) View(ctx context.Context, o artel.Owner, fn func(store.Tx) error) error {
	err := s.Store.View(ctx, o, func(tx store.Tx) error {
		if s.inView != nil {
			s.inView(&tx)
		}
		return fn(tx)
	})
	if s.afterView != nil {
		s.afterView()
	}
	return err
}

func (s *interposed) Update(ctx context.Context, o artel.Owner, fn func(store.Tx) error) error {
	return s.Store.Update(ctx, o, func(tx store.Tx) error {
		if s.inUpdate != nil {
			s.inUpdate(&tx)
		}
		return fn(tx)
	})
}

type listedNotes struct {
	store.Notes
	list func(store.NoteQuery)
}

func (x listedNotes) List(q store.NoteQuery) ([]store.Note, error) {
	x.list(q)
	return x.Notes.List(q)
}

type putNotes struct {
	store.Notes
	put func(store.Note) error
}

func (x putNotes) Put(n store.Note) error {
	if err := x.put(n); err != nil {
		return err
	}
	return x.Notes.Put(n)
}

type createdMessages struct {
	store.Messages
	create func(artel.Message) error
}

func (x createdMessages) Create(m artel.Message) error {
	if err := x.create(m); err != nil {
		return err
	}
	return x.Messages.Create(m)
}

// TestQueueAfterFailedInjection: a run that cannot take the injection which keeps it
// from ending fails, and the message behind it starts at once.
func TestQueueAfterFailedInjection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var first artel.RunID
		answered, looked, injected, failed := false, false, false, false
		queued := make(chan struct{})
		begun := make(chan struct{}, 9)
		s := &interposed{}
		b := newBench(t, provide(func(_ context.Context, _ *model.Request, yield func(model.Delta, error) bool) {
			begun <- struct{}{}
			<-queued
			mu.Lock()
			answered = true
			mu.Unlock()
			_ = yield(model.TextDelta("Done."), nil) && yield(model.Finish{}, nil)
		}), func(c *app.Config) { s.Store, c.Store = c.Store, s })
		c := b.conversation()
		s.inView = func(tx *store.Tx) {
			tx.Notes = listedNotes{tx.Notes, func(q store.NoteQuery) {
				mu.Lock()
				defer mu.Unlock()
				looked = looked || answered && q.Run == first && q.Kind == "" // for injections after the answer
			}}
		}
		s.afterView = func() {
			mu.Lock()
			now := looked && !injected
			injected = injected || now
			mu.Unlock()
			if now {
				if _, err := b.Runs.Inject(apptest.Context(t), first, "And this."); err != nil {
					t.Error(err)
				}
			}
		}
		s.inUpdate = func(tx *store.Tx) {
			tx.Notes = putNotes{tx.Notes, func(n store.Note) error {
				mu.Lock()
				defer mu.Unlock()
				if n.Run == first && !n.Open && !failed && injected {
					failed = true
					return artel.Errorf(artel.Internal, "test", "", "the disk is broken")
				}
				return nil
			}}
		}
		r := b.send(c, run.Input{Text: "one"})
		mu.Lock()
		first = r.ID
		mu.Unlock()
		<-begun
		next := b.send(c, run.Input{Text: "two", Queue: true})
		close(queued)
		if r := b.ended(r); r.State != artel.RunFailed {
			t.Errorf("the first run ended as %s", r.State)
		}
		synctest.Wait()
		if next, err := b.Runs.Find(apptest.Context(t), next.ID); err != nil || next.State != artel.RunDone {
			t.Errorf("the queued run is %s, %v", next.State, err)
		}
	})
}

// TestSubagentAnswerSurvivesFailedCommit: the answer of a subagent that could not be
// stored is stored at the end of its run, with its usage and results of its calls.
func TestSubagentAnswerSurvivesFailedCommit(t *testing.T) {
	s := &scriptedModel{turns: [][]model.Delta{
		{model.CallDelta{ID: "out", Name: agent.SubagentTool, Arguments: []byte(`{"agent":"payer","instruction":"Pay."}`)}},
		{model.TextDelta("I note it."), calling("in0", "note")},
	}}
	data := &interposed{}
	b := newBench(t, provide(s.generate), func(c *app.Config) {
		data.Store, c.Store = c.Store, data
		c.Tools = paying(nil)
		c.Agents = []agent.Definition{
			{Name: agent.Lead, Prompt: "You lead.", Subagents: []artel.AgentName{"payer"}},
			{Name: "payer", Description: "Pays.", Prompt: "You pay.", Tools: []string{"note"}},
		}
	})
	var mu sync.Mutex
	failed := false
	data.inUpdate = func(tx *store.Tx) {
		tx.Messages = createdMessages{tx.Messages, func(m artel.Message) error {
			mu.Lock()
			defer mu.Unlock()
			if m.Within != "" && m.Role == artel.RoleAssistant && !failed {
				failed = true
				return artel.Errorf(artel.Internal, "test", "", "the disk is broken")
			}
			return nil
		}}
	}
	c := b.conversation()
	r := b.ask(c, "Pay Bob.")
	if r.State != artel.RunFailed || r.Usage.Calls != 2 {
		t.Errorf("it ended as %s after %d calls", r.State, r.Usage.Calls)
	}
	want := "subagent_started message_completed usage tool_completed"
	var got []string
	for _, e := range b.events(c) {
		if e.Within != "" && e.Type != artel.EventAgentStarted {
			got = append(got, string(e.Type))
		}
	}
	if strings.Join(got, " ") != want {
		t.Errorf("the log of the subagent is %q, want %q", got, want)
	}
	said, result := "", ""
	b.store(func(tx store.Tx) error {
		nested, err := tx.Messages.Nested(c, r.ID)
		for _, m := range nested {
			if m.Role == artel.RoleAssistant {
				said = artel.TextOf(m.Parts)
			}
			for _, p := range artel.ResultsOf(m.Parts) {
				result = p.Content
			}
		}
		return err
	})
	if said != "I note it." || !strings.Contains(result, "not called") {
		t.Errorf("the subagent said %q, its call has the result %q", said, result)
	}
}

// TestUpdatesReadNoThread: the updates that resume and end a run read as much after
// many calls of a subagent as after few, but for the segments by which records of calls
// are compared.
func TestUpdatesReadNoThread(t *testing.T) {
	const few, many = 5, 100
	short, long := threadReads(t, few), threadReads(t, many)
	if long.rows > short.rows+(many-few)/2 {
		t.Errorf("after many calls, an update reads %d rows, most by %s; after few, none reads more than %d", long.rows, long.most, short.rows)
	}
}

func threadReads(t *testing.T, calls int) (count readCount) {
	var mu sync.Mutex
	s := &scriptedModel{turns: [][]model.Delta{{model.CallDelta{ID: "out", Name: agent.SubagentTool, Arguments: []byte(`{"agent":"payer","instruction":"Pay."}`)}}}}
	for n := range calls {
		s.turns = append(s.turns, []model.Delta{calling(artel.CallID(fmt.Sprint("n", n)), "note")})
	}
	s.turns = append(s.turns, []model.Delta{calling("p0", "pay")}, []model.Delta{calling("p1", "pay")})
	begun := make(chan string, 9)
	b := newBench(t, provide(s.generate), func(c *app.Config) {
		c.Tools = paying(begun)
		limits := agent.Limits{Turns: 1000, ToolCalls: 1000}
		c.Agents = []agent.Definition{
			{Name: agent.Lead, Prompt: "You lead.", Subagents: []artel.AgentName{"payer"}, Limits: limits},
			{Name: "payer", Description: "Pays.", Prompt: "You pay.", Tools: []string{"note", "pay"}, Limits: limits},
		}
		c.Store = storetest.Counted(c.Store, func(rows, _ int, most string) {
			mu.Lock()
			defer mu.Unlock()
			if rows > count.rows {
				count = readCount{rows, most}
			}
		})
	})
	r := b.send(b.conversation(), run.Input{Text: "Pay Bob."})
	<-begun
	if err := b.Close(apptest.Context(t)); err != nil {
		t.Fatal(err)
	}
	b.App = b.open()
	if n, err := b.Recover(apptest.Context(t), true); err != nil || n != 1 {
		t.Fatalf("recovered %d, %v", n, err)
	}
	<-begun
	r, err := b.Runs.Cancel(apptest.Context(t), r.ID)
	if err != nil || r.State != artel.RunCancelled {
		t.Errorf("it ended as %s: %+v, %v", r.State, r.Error, err)
	}
	if got := outcomes(s.last()); !strings.Contains(got["p0"], "outcome unknown") {
		t.Errorf("the interrupted call has the result %q", got["p0"])
	}
	mu.Lock()
	defer mu.Unlock()
	return count
}

// TestAttachmentIsRestoredFromView: the update that sends an edited message does not
// read the text of the attachment that the new branch gets.
func TestAttachmentIsRestoredFromView(t *testing.T) {
	const size = 100_000
	var mu sync.Mutex
	largest, call := 0, ""
	b := newBench(t, provide(answering().generate), func(c *app.Config) {
		c.Store = storetest.Counted(c.Store, func(_, bytes int, most string) {
			mu.Lock()
			defer mu.Unlock()
			if bytes > largest {
				largest, call = bytes, most
			}
		})
	})
	c := b.conversation()
	content := strings.Repeat("x", size)
	note, other := b.upload(c, "note.txt", content), b.upload(c, "other.txt", "other")
	first := b.ended(b.send(c, run.Input{Text: "Read.", Attachments: []string{string(note.ID), string(other.ID)}}))
	words := "Read it well."
	second := b.edited(c, first.Message, run.Edit{Text: &words})
	if b.text(c, note.ID, second.Message) != content || b.text(c, other.ID, second.Message) != "other" {
		t.Error("the new branch has other texts")
	}
	mu.Lock()
	defer mu.Unlock()
	if largest >= size {
		t.Errorf("an update reads %d bytes, most by %s", largest, call)
	}
}
