// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// A moment is where in an update a process dies.
type moment string

// The moments.
const (
	insideUpdate moment = "inside" // all was written, nothing committed
	afterUpdate  moment = "after"  // committed, and nobody was told
)

// mortal is a store of a process that dies in one of its updates.
type mortal struct {
	store.Store
	mu   sync.Mutex
	left int // updates until then
	when moment
	dead bool
	died chan struct{}
}

var errDead = artel.Errorf(artel.Internal, "test", "", "the process is dead")

func (s *mortal) Update(ctx context.Context, o artel.Owner, fn func(store.Tx) error) error {
	s.mu.Lock()
	dead, last := s.dead, s.left == 0
	s.left--
	s.dead = dead || last
	s.mu.Unlock()
	if last {
		defer close(s.died)
	}
	switch {
	case dead:
		return errDead
	case last && s.when == insideUpdate:
		return s.Store.Update(ctx, o, func(tx store.Tx) error {
			if err := fn(tx); err != nil {
				return err
			}
			return errDead
		})
	}
	err := s.Store.Update(ctx, o, fn)
	if last {
		return errDead
	}
	return err
}

// A step is a call of the model, and what the document is when it is done.
type step struct {
	tool string
	args m
	want string // "": there is none
}

func crashSteps() []step {
	return []step{
		{"create_artifact", m{"id": "doc", "title": "Doc", "content": "one two"}, "one two"},
		{"update_artifact", m{"id": "doc", "old_str": "one", "new_str": "1"}, "1 two"},
		{"rename_artifact", m{"id": "doc", "title": "Renamed"}, "1 two"},
		{"rewrite_artifact", m{"id": "doc", "content": "three"}, "three"},
		{"delete_artifact", m{"id": "doc"}, ""},
		{"restore_artifact", m{"id": "doc", "version": 2}, "1 two"},
		{"update_artifact", m{"id": "doc", "old_str": "two", "new_str": "2"}, "1 2"},
	}
}

// following is a provider whose answers follow from what it is sent: the play
// for each number of results that are there. paid counts the calls of each.
func following(paid []int, play ...func() model.Delta) model.Provider {
	var mu sync.Mutex
	return provide(func(_ context.Context, r *model.Request, yield func(model.Delta, error) bool) {
		n := 0
		for _, m := range r.Messages {
			for _, p := range m.Parts {
				if _, ok := p.(artel.ToolResult); ok {
					n++
				}
			}
		}
		mu.Lock()
		paid[n]++
		d := play[n]()
		mu.Unlock()
		_ = yield(d, nil) && yield(model.Finish{}, nil)
	})
}

// TestCrashAtEveryUpdate kills a process at every update of a run, inside it
// and after it by turns; [TestDeathAtEveryStep] has both of each. Another goes
// on: every step is done once, no answer that was kept is paid for again, and
// the log tells of every edit.
func TestCrashAtEveryUpdate(t *testing.T) {
	survived := false
	for k := 0; !survived; k++ {
		when := []moment{insideUpdate, afterUpdate}[k%2]
		t.Run(fmt.Sprintf("%s %d", when, k), func(t *testing.T) { survived = crashAt(t, when, k) })
		if k > 1000 {
			t.Fatal("the run has no end")
		}
	}
}

// crashAt reports whether the run was over before the process could die.
func crashAt(t *testing.T, when moment, k int) (survived bool) {
	steps := crashSteps()
	plays := make([]func() model.Delta, 0, len(steps)+1)
	for _, s := range steps {
		plays = append(plays, func() model.Delta { return call(s.tool, s.args) })
	}
	plays = append(plays, func() model.Delta { return model.TextDelta("Done.") })
	s := &mortal{left: 1 << 30, when: when, died: make(chan struct{})}
	paid := make([]int, len(plays))
	b := newBench(t, following(paid, plays...), func(c *app.Config) { s.Store = c.Store; c.Store = s })
	c := b.conversation()
	survived = b.dieAt(s, c, "Go.", k)
	b.config.Store = s.Store
	b.App = b.open()
	kept := answersIn(b.events(c))
	if _, err := b.Recover(apptest.Context(t), true); err != nil {
		t.Fatal(err)
	}
	b.afterCrash(c, steps)
	if slices.Contains(paid[:kept], 0) || slices.ContainsFunc(paid[:kept], func(n int) bool { return n > 1 }) {
		t.Errorf("%d answers were kept, and the calls were paid for %v times", kept, paid)
	}
	return survived
}

func answersIn(events []artel.Event) (n int) {
	for _, e := range events {
		if e.Type == artel.EventMessageCompleted {
			n++
		}
	}
	return n
}

// afterCrash waits for the end of the run, if one was begun, and wants each of
// its steps once.
func (b *bench) afterCrash(c artel.ConversationID, steps []step) {
	b.t.Helper()
	for _, m := range b.messages(c)[:min(1, len(b.messages(c)))] {
		r, err := b.Runs.Find(apptest.Context(b.t), m.Run)
		if err != nil {
			b.t.Fatal(err)
		}
		if r = b.ended(r); r.State != artel.RunDone || r.Usage.Calls != len(steps)+1 {
			b.t.Fatalf("the run is %+v", r)
		}
	}
	all := b.events(c)
	if len(all) == 0 { // it died before anything was acknowledged
		return
	}
	if got := b.text(c, "doc", ""); got != steps[len(steps)-1].want {
		b.t.Errorf("the document is %q", got)
	}
	journal, err := b.Versions.History(apptest.Context(b.t), c, "doc", artifact.Journal)
	if err != nil || len(journal) != len(steps) {
		b.t.Fatalf("%d edits are journalled: %v", len(journal), err)
	}
	for i, e := range journal {
		if e.Live || e.Visible != (i == len(journal)-1) || e.Number != i+1 {
			b.t.Errorf("edit %d of %d: %+v", i+1, len(journal), e)
		}
	}
	edits, done := 0, 0
	for _, e := range all {
		switch e.Type {
		case artel.EventArtifactCreated, artel.EventArtifactUpdated:
			edits++
		case artel.EventToolCompleted:
			done++
		}
	}
	if edits != len(steps) || done != len(steps) || answersIn(all) != len(steps)+1 {
		b.t.Errorf("the log tells of %d edits, %d results and %d answers, want %d", edits, done, answersIn(all), len(steps))
	}
	if n := len(b.messages(c)); n != 2*len(steps)+2 {
		b.t.Errorf("there are %d messages", n)
	}
}
