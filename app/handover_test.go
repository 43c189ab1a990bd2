// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// TestPlannedRestarts hands a run over by orderly stops of the server: those are
// no crashes, so it is not given up.
func TestPlannedRestarts(t *testing.T) {
	b, c, r := crash(t, holds)
	for range 12 {
		b.App = b.open()
		if n, err := b.Recover(apptest.Context(t), true); err != nil || n != 1 {
			t.Fatalf("got %d, %v", n, err)
		}
		if err := b.Close(apptest.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
	b.plays(play(t, writes))
	b.App = b.open()
	if n, err := b.Recover(apptest.Context(t), true); err != nil || n != 1 {
		t.Fatalf("got %d, %v", n, err)
	}
	if r = b.ended(r); r.State != artel.RunDone {
		t.Fatalf("got %+v, %+v", r, r.Error)
	}
	all := b.events(c)
	n := 0
	for _, e := range all {
		if e.Type != artel.EventRunResumed {
			continue
		}
		n++
		if got, want := decode[artel.RunResumed](t, e), (artel.RunResumed{Attempt: n, Planned: n > 1}); got != want {
			t.Errorf("got %+v, want %+v: only the first process died", got, want)
		}
	}
	if n != 13 {
		t.Errorf("it was resumed %d times", n)
	}
}

// TestSubagentsAnswerIsSentOnce connects a listener when the answer of a subagent
// is in the log and its run still works: it must not receive the answer as text
// that is being written.
func TestSubagentsAnswerIsSentOnce(t *testing.T) {
	b := newBench(t, play(t, `
-- turn 1 --
I ask.
@call call_subagent {"agent": "research_agent", "instruction": "Find out who was it."}
-- turn 2 --
Half of it
@hang
-- asked who was it --
-- turn 1 --
It was Ann.
`))
	c := b.conversation()
	b.send(c, run.Input{Text: "Go."})
	said := "" // a listener that is quick gets the text in pieces
	b.until(c, func(e artel.Event) bool {
		if e.Type == artel.EventMessageDelta && e.Within == "" {
			said += payload[artel.MessageDelta](t, e).Text
		}
		return strings.HasSuffix(said, "Half of it")
	})
	l := b.config.Notifier.Listen(c)
	defer l.Close()
	seen := map[artel.CallPath]string{}
	for range 2 { // answers take turns
		b.config.Notifier.Notify(c)
		n, err := l.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen[n.Within] += n.Text
	}
	if len(seen) != 1 || !strings.Contains(seen[""], "Half of it") {
		t.Errorf("a new listener receives %v", seen)
	}
}

// TestQueueWaitsWithoutWriting looks for runs to continue while messages wait in a
// queue: nothing can be started, so nothing may be written.
func TestQueueWaitsWithoutWriting(t *testing.T) {
	var updates atomic.Int32
	g, b, c, first := working(t, "one", func(config *app.Config) { config.Store = counting{config.Store, &updates} })
	second := b.send(c, run.Input{Text: "two", Queue: true})
	third := b.send(c, run.Input{Text: "three", Queue: true})
	before := updates.Load()
	for range 5 {
		if n, err := b.Recover(apptest.Context(t), false); err != nil || n != 0 {
			t.Fatalf("got %d, %v", n, err)
		}
	}
	if n := updates.Load() - before; n != 0 {
		t.Errorf("looking for runs five times made %d updates", n)
	}
	for range 3 {
		g.may <- struct{}{}
	}
	for _, r := range []artel.Run{first, second, third} {
		if r = b.ended(r); r.State != artel.RunDone {
			t.Errorf("got %+v", r)
		}
	}
}

// counting counts updates.
type counting struct {
	store.Store
	n *atomic.Int32
}

func (s counting) Update(ctx context.Context, o artel.Owner, fn func(store.Tx) error) error {
	s.n.Add(1)
	return s.Store.Update(ctx, o, fn)
}
