// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
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

// TestCrashAtEveryUpdate kills a process at every update of a run, inside it
// and after it. What the model was told of is there afterwards, in
// one version of the run, and the log tells of every edit.
func TestCrashAtEveryUpdate(t *testing.T) {
	for _, when := range []moment{insideUpdate, afterUpdate} {
		survived := false
		for k := 0; !survived; k++ {
			t.Run(fmt.Sprintf("%s %d", when, k), func(t *testing.T) { survived = crashAt(t, when, k) })
			if k > 1000 {
				t.Fatal("the run has no end")
			}
		}
	}
}

// crashAt reports whether the run was over before the process could die.
func crashAt(t *testing.T, when moment, k int) (survived bool) {
	told := 0 // steps that the model knows to be done
	steps := crashSteps()
	plays := make([]func() model.Delta, 0, len(steps)+1)
	for i, s := range steps {
		plays = append(plays, func() model.Delta { told = i; return call(s.tool, s.args) })
	}
	plays = append(plays, func() model.Delta { told = len(steps); return model.TextDelta("Done.") })
	s := &mortal{left: 1 << 30, when: when, died: make(chan struct{})}
	b := newBench(t, turns(plays...), func(c *app.Config) { s.Store = c.Store; c.Store = s })
	c := b.conversation()
	s.mu.Lock()
	s.left = k
	s.mu.Unlock()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-s.died:
			stop()
		case <-ctx.Done():
		}
	})
	if _, err := b.Runs.Send(t.Context(), c, app.Input{Text: "Go."}); err == nil {
		for e, err := range b.Events.Follow(ctx, c, 0, 0) {
			if survived = err == nil && e.Type == artel.EventRunFinished; survived {
				break
			}
		}
	}
	stop()
	wg.Wait()
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.config.Store = s.Store
	b.App = b.open()
	if _, err := b.Recover(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	b.afterCrash(c, steps, told)
	return survived
}

// afterCrash holds a conversation to what the model was told.
func (b *bench) afterCrash(c artel.ConversationID, steps []step, told int) {
	b.t.Helper()
	wants := []string{""}
	for _, s := range steps {
		wants = append(wants, s.want)
	}
	wants = wants[told:min(told+2, len(wants))] // the step after it may be done, and nobody was told
	got := ""
	if _, text, err := b.Artifacts.Find(b.t.Context(), c, "doc", ""); err == nil {
		got = *text
	} else if artel.KindOf(err) != artel.NotFound {
		b.t.Fatal(err)
	}
	if !slices.Contains(wants, got) {
		b.t.Errorf("the model was told of %d steps, and the document is %q, want one of %q", told, got, wants)
	}
	journal, err := b.Artifacts.History(b.t.Context(), c, "doc", app.Journal)
	if err != nil && artel.KindOf(err) != artel.NotFound {
		b.t.Fatal(err)
	}
	if len(journal) < told || len(journal) > told+1 {
		b.t.Errorf("%d edits are journalled, and the model was told of %d", len(journal), told)
	}
	for i, e := range journal {
		if e.Live || e.Visible != (i == len(journal)-1) || e.Number != i+1 {
			b.t.Errorf("edit %d of %d: %+v", i+1, len(journal), e)
		}
	}
	events := 0
	for _, e := range b.events(c) {
		if e.Type == artel.EventArtifactCreated || e.Type == artel.EventArtifactUpdated {
			events++
		}
	}
	if events != len(journal) {
		b.t.Errorf("the log tells of %d edits, the journal has %d", events, len(journal))
	}
	for _, m := range b.messages(c) {
		if r, err := b.Runs.Find(b.t.Context(), m.Run); err != nil || !r.State.Final() {
			b.t.Errorf("the run is %+v, %v", r, err)
		}
	}
}
