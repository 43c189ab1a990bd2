// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// A twice store runs each update two times, as a store may whose commit failed:
// only the second is kept.
type twice struct{ store.Store }

var errAgain = errors.New("again")

func (s twice) Update(ctx context.Context, o artel.Owner, fn func(store.Tx) error) error {
	err := s.Store.Update(ctx, o, func(tx store.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return errAgain
	})
	if !errors.Is(err, errAgain) {
		return err
	}
	return s.Store.Update(ctx, o, fn)
}

func inTwice(c *app.Config) { c.Store = twice{c.Store} }

// TestUpdatesThatRunTwice: what waits gets its turn, whatever the store does
// with an update.
func TestUpdatesThatRunTwice(t *testing.T) {
	g, b, c, first := working(t, "one", inTwice)
	second := b.send(c, run.Input{Text: "two", Queue: true})
	if _, err := b.Runs.Inject(apptest.Context(t), first.ID, "this too"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		g.may <- struct{}{}
	}
	for _, r := range []artel.Run{first, second} {
		if r = b.ended(r); r.State != artel.RunDone {
			t.Errorf("%s ended as %s: %+v", r.ID, r.State, r.Error)
		}
	}
	if got, want := b.said(c), "one | answer to one | this too | answer to this too | two | answer to two"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A frozen store keeps updates waiting, as a process does that was stopped for
// a while and wakes up.
type frozen struct {
	store.Store
	mu   sync.RWMutex
	came chan struct{} // one for each update that waits
}

func (s *frozen) Update(ctx context.Context, o artel.Owner, fn func(store.Tx) error) error {
	if !s.mu.TryRLock() {
		select {
		case s.came <- struct{}{}:
		default:
		}
		s.mu.RLock()
	}
	defer s.mu.RUnlock()
	return s.Store.Update(ctx, o, fn)
}

// TestTakenOverWhileWaiting: a process that wakes up after its run was taken
// over, and ended, does not bring the run back to life.
func TestTakenOverWhileWaiting(t *testing.T) {
	cold := &frozen{came: make(chan struct{}, 1)}
	b := newBench(t, play(t, asks), withPermissions(agent.Permissions{"create_artifact": agent.Ask}), func(c *app.Config) {
		cold.Store, c.Store = c.Store, cold
	})
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	q := b.question(r)
	cold.mu.Lock()

	b.config.Store = local{cold.Store}
	b.config.Options.Now = func() time.Time { return time.Now().Add(time.Minute) }
	other := b.open()
	if n, err := other.Recover(apptest.Context(t), false); err != nil || n != 1 {
		t.Fatalf("got %d, %v", n, err)
	}
	if _, err := other.Permissions.Decide(apptest.Context(t), r.ID, q.Permission, artel.Allow, ""); err != nil {
		t.Fatal(err)
	}
	if r = b.ended(r); r.State != artel.RunDone {
		t.Fatalf("it ended as %s: %+v", r.State, r.Error)
	}
	<-cold.came // it has seen the answer, too, or shows that it lives
	cold.mu.Unlock()
	for end := time.Now().Add(5 * time.Minute); !strings.Contains(b.log.String(), "taken over by another process"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it has not noticed that the run is not its own")
		}
	}
	if err := b.Close(apptest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if found, err := other.Runs.Find(apptest.Context(t), r.ID); err != nil || found.State != artel.RunDone {
		t.Errorf("got %+v, %v", found, err)
	}
	b.App = other
	r = b.send(c, run.Input{Text: "And now?"})
	b.decide(r, b.question(r), artel.Allow)
	if r = b.ended(r); r.State != artel.RunDone {
		t.Errorf("it ended as %s: %+v", r.State, r.Error)
	}
}
