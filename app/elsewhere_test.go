// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// callsUntilEnd is a provider whose calls end with their context.
func callsUntilEnd(called chan<- struct{}) model.Provider {
	return provide(func(ctx context.Context, _ *model.Request, yield func(model.Delta, error) bool) {
		called <- struct{}{}
		<-ctx.Done()
		yield(nil, ctx.Err())
	})
}

// TestCancelElsewhere: a run is cancelled through another process than the one that works
// on it, and its conversation is free then.
func TestCancelElsewhere(t *testing.T) {
	called := make(chan struct{}, 1)
	b := newBench(t, callsUntilEnd(called))
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	<-called
	other := b.open()
	got, err := other.Runs.Cancel(apptest.Context(t), r.ID)
	if err != nil || got.State != artel.RunCancelled {
		t.Fatalf("got %+v, %v", got, err)
	}
	if _, err := other.Runs.Cancel(apptest.Context(t), r.ID); artel.KindOf(err) != artel.Conflict {
		t.Errorf("again: %v", err)
	}
	next := b.send(c, run.Input{Text: "Again."})
	<-called
	if _, err := b.Runs.Cancel(apptest.Context(t), next.ID); err != nil {
		t.Error(err)
	}
}

// TestStopElsewhere: the runs of a user who may not work any more end in every process.
func TestStopElsewhere(t *testing.T) {
	called := make(chan struct{}, 1)
	b := newBench(t, callsUntilEnd(called))
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	<-called
	other := b.open()
	if err := run.Stop(apptest.Context(t), other.Runs, artel.Local, "the user is disabled"); err != nil {
		t.Fatal(err)
	}
	if r = b.ended(r); r.State != artel.RunInterrupted || r.Error == nil || r.Error.Message != "the user is disabled" {
		t.Errorf("got %+v, %+v", r, r.Error)
	}
}

// TestCancelAfterCrash: a run whose process died, and that is cancelled before another one
// has taken it over, ends there.
func TestCancelAfterCrash(t *testing.T) {
	b, _, r := crash(t, holds)
	called := make(chan struct{}, 1)
	b.plays(callsUntilEnd(called))
	b.App = b.open()
	ctx := apptest.Context(t)
	cancelled := make(chan artel.Run, 1)
	go func() {
		got, err := b.Runs.Cancel(ctx, r.ID)
		if err != nil {
			t.Error(err)
		}
		cancelled <- got
	}()
	for asked := false; !asked; {
		err := b.config.Store.View(ctx, artel.Local, func(tx store.Tx) error {
			list, err := tx.Notes.List(store.NoteQuery{Conversation: r.Conversation, Run: r.ID, Kind: "stop", Open: true})
			asked = len(list) > 0
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Recover(ctx, true); err != nil {
		t.Fatal(err)
	}
	if got := <-cancelled; got.State != artel.RunCancelled {
		t.Errorf("got %+v", got)
	}
}

// A clocked store has a clock of its own, as a database has that several machines share.
type clocked struct {
	store.Store
	ahead atomic.Int64
}

func (s *clocked) Clock(context.Context) (time.Time, error) {
	return time.Now().Add(time.Duration(s.ahead.Load())), nil
}

// A local store is one of processes that share a machine, so that leases go by the clock of
// [app.Options], which a test can set.
type local struct{ store.Store }

func (local) Clock(context.Context) (time.Time, error) { return time.Time{}, nil }

// TestSkewedClocks: the clocks of two processes differ by minutes; neither takes the other's
// run while it is renewed, and a dead one's is taken over when the lease ends by the clock of
// the database.
func TestSkewedClocks(t *testing.T) {
	for _, skew := range []time.Duration{-5 * time.Minute, 5 * time.Minute} {
		called := make(chan struct{}, 2)
		s := &clocked{}
		b := newBench(t, callsUntilEnd(called))
		s.Store, b.config.Store = b.config.Store, s
		b.App = b.open()
		r := b.send(b.conversation(), run.Input{Text: "Go."})
		<-called
		b.config.Options.Now = func() time.Time { return time.Now().Add(skew) }
		other := b.open()
		if n, err := other.Recover(apptest.Context(t), false); err != nil || n != 0 {
			t.Errorf("with a clock that is off by %s: took %d runs over, %v", skew, n, err)
		}
		s.ahead.Store(int64(time.Minute))
		if n, err := other.Recover(apptest.Context(t), false); err != nil || n != 1 {
			t.Errorf("a minute later: took %d runs over, %v", n, err)
		}
		<-called
		if got, err := other.Runs.Cancel(apptest.Context(t), r.ID); err != nil || got.State != artel.RunCancelled {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

// TestRunsAtOnceElsewhere: the runs of a user in other processes count.
func TestRunsAtOnceElsewhere(t *testing.T) {
	called := make(chan struct{}, 2)
	b := newBench(t, callsUntilEnd(called), func(c *app.Config) { c.UserRuns = 1 })
	b.config.Store = &clocked{Store: b.config.Store}
	b.App = b.open()
	r := b.send(b.conversation(), run.Input{Text: "Go."})
	<-called
	other := b.open()
	c := b.conversation()
	if _, err := other.Runs.Send(apptest.Context(t), c, run.Input{Text: "Go."}); artel.CodeOf(err) != run.CodeRunLimit {
		t.Fatalf("one more: %v", err)
	}
	if _, err := other.Runs.Cancel(apptest.Context(t), r.ID); err != nil {
		t.Fatal(err)
	}
	r, err := other.Runs.Send(apptest.Context(t), c, run.Input{Text: "Go."})
	if err != nil {
		t.Fatalf("after the end of the first: %v", err)
	}
	if _, err := other.Runs.Cancel(apptest.Context(t), r.ID); err != nil {
		t.Fatal(err)
	}
}

// TestAnswerElsewhere: a question of a run is answered through another process than the one
// that works on it.
func TestAnswerElsewhere(t *testing.T) {
	b := newBench(t, play(t, asks), withPermissions(agent.Permissions{"create_artifact": agent.Ask}))
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	q := b.question(r)
	if _, err := b.open().Permissions.Decide(apptest.Context(t), r.ID, q.Permission, artel.Allow, ""); err != nil {
		t.Fatal(err)
	}
	if r = b.ended(r); r.State != artel.RunDone {
		t.Errorf("it ended as %s: %+v", r.State, r.Error)
	}
	if events := typesOf(b.events(c)); strings.Contains(events, string(artel.EventRunResumed)) {
		t.Errorf("the log has %s", events)
	}
}

// TestInjectElsewhere: a message reaches a run through another process.
func TestInjectElsewhere(t *testing.T) {
	g, b, c, first := working(t, "one")
	if _, err := b.open().Runs.Inject(apptest.Context(t), first.ID, "this too"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		g.may <- struct{}{}
	}
	if r := b.ended(first); r.State != artel.RunDone {
		t.Errorf("it ended as %s: %+v", r.State, r.Error)
	}
	if got, want := b.said(c), "one | answer to one | this too | answer to this too"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
