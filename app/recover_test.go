// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// holds writes two edits and then waits for good.
var holds = strings.Replace(writes, "-- turn 4 --", "-- turn 4 --\nHalf a\n@hang\n-- turn 5 --", 1)

// crash makes the state that a killed process leaves: an unfinished run whose
// edits are in the journal. The app that made it goes on in a world of its own.
func crash(t *testing.T, scenario string) (b *bench, c artel.ConversationID, r artel.Run) {
	t.Helper()
	dead := &watched{}
	b = newBench(t, play(t, scenario), func(c *app.Config) { dead.Store = c.Store; c.Store = dead })
	c = b.conversation()
	r = b.send(c, run.Input{Text: "Go."})
	b.until(c, ofType(artel.EventMessageDelta))
	b.until(c, func(e artel.Event) bool {
		return e.Type == artel.EventMessageDelta && strings.Contains(string(e.Data), "Half")
	})
	gone := artel.Errorf(artel.Internal, "test", "", "the process is dead")
	dead.die(gone)
	if err := b.Close(apptest.Context(t)); err != nil {
		t.Fatal(err)
	}
	b.config.Store = dead.Store
	return b, c, r
}

// die makes every update from now on fail.
func (w *watched) die(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = func() error { return err }
}

func TestRecover(t *testing.T) {
	b, c, r := crash(t, holds)
	if found, err := b.Runs.Find(apptest.Context(t), r.ID); err != nil || found.State != artel.RunRunning {
		t.Fatalf("got %+v, %v", found, err)
	}
	if got := b.text(c, "note", ""); got != "1 2 three" {
		t.Errorf("what was journalled reads %q", got)
	}
	var asked atomic.Int32
	b.plays(counted(&asked, play(t, writes)))
	b.App = b.open()
	if n, err := b.Recover(apptest.Context(t), false); err != nil || n != 0 {
		t.Errorf("while the lease lasts: got %d, %v", n, err)
	}
	if n, err := b.Recover(apptest.Context(t), true); err != nil || n != 1 {
		t.Fatalf("got %d, %v", n, err)
	}
	if r = b.ended(r); r.State != artel.RunDone || r.Error != nil || r.Usage.Calls != 4 || asked.Load() != 1 {
		t.Errorf("after %d more calls: got %+v", asked.Load(), r)
	}
	versions, err := b.Versions.List(apptest.Context(t), c, "note")
	if err != nil || len(versions) != 1 || versions[0].Number != 3 || b.text(c, "note", "") != "1 2 three" {
		t.Errorf("got %+v, %v", versions, err)
	}
	all := b.events(c)
	if got, want := typesOf(all[len(all)-5:]), "run_resumed agent_started message_completed usage run_finished"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n, err := b.Recover(apptest.Context(t), true); err != nil || n != 0 {
		t.Errorf("again: got %d, %v", n, err)
	}
	b.send(c, run.Input{Text: "Go on."})
}

// plays has apps that are opened from now on ask p.
func (b *bench) plays(p model.Provider) {
	b.config.Providers = map[model.Dialect]model.Provider{model.Demo: p}
}

// counted counts the calls of p.
func counted(n *atomic.Int32, p model.Provider) model.Provider {
	return provide(func(ctx context.Context, r *model.Request, yield func(model.Delta, error) bool) {
		n.Add(1)
		for d, err := range p.Generate(ctx, r) {
			if !yield(d, err) {
				return
			}
		}
	})
}

// TestSendTakesOver finds a run in the way whose process is gone.
func TestSendTakesOver(t *testing.T) {
	b, c, r := crash(t, holds)
	now := time.Now()
	b.config.Options.Now, b.config.Store = func() time.Time { return now }, local{b.config.Store}
	b.plays(play(t, writes))
	b.App = b.open()
	if _, err := b.Runs.Send(apptest.Context(t), c, run.Input{Text: "x"}); artel.CodeOf(err) != "run_active" {
		t.Errorf("while the lease lasts: got %v", err)
	}
	if n := len(b.events(c)); strings.Contains(typesOf(b.events(c)), "run_resumed") {
		t.Errorf("it was taken over while its lease lasted: %d events", n)
	}
	now = now.Add(time.Minute)
	next, err := b.Runs.Send(apptest.Context(t), c, run.Input{Text: "x"})
	if r = b.ended(r); r.State != artel.RunDone {
		t.Errorf("got %+v", r)
	}
	switch {
	case err == nil: // it had ended by then
		b.ended(next)
	case artel.CodeOf(err) != "run_active":
		t.Errorf("while it goes on: got %v", err)
	}
	b.send(c, run.Input{Text: "Go on."})
}

// TestTakenOver takes a run over while its process works on it: that one writes
// nothing any more, and every step is there once.
func TestTakenOver(t *testing.T) {
	step := make(chan struct{})
	turns := play(t, writes)
	slow := provide(func(ctx context.Context, r *model.Request, yield func(model.Delta, error) bool) {
		select {
		case <-step:
		case <-ctx.Done():
		}
		for d, err := range turns.Generate(ctx, r) {
			if !yield(d, err) {
				return
			}
		}
	})
	b := newBench(t, slow)
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	step <- struct{}{}
	b.until(c, ofType(artel.EventArtifactCreated))
	other := b.open()
	if n, err := other.Recover(apptest.Context(t), true); err != nil || n != 1 {
		t.Fatalf("got %d, %v", n, err)
	}
	close(step)
	r = b.ended(r)
	for end := time.Now().Add(5 * time.Minute); !strings.Contains(b.log.String(), "taken over") && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // until the first process has noticed
	}
	if err := b.Close(apptest.Context(t)); err != nil {
		t.Fatal(err)
	}
	all := typesOf(b.events(c))
	if r.State != artel.RunDone || strings.Count(all, "artifact_") != 3 || strings.Count(all, "message_completed") != 4 || strings.Count(all, "run_finished") != 1 {
		t.Errorf("got %+v and %s", r, all)
	}
	if !strings.Contains(b.log.String(), "taken over") {
		t.Error("the log does not say that the run was taken over")
	}
	if v, err := other.Versions.List(apptest.Context(t), c, "note"); err != nil || len(v) != 1 {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, play(t, hangs))
		c := b.conversation()
		r := b.send(c, run.Input{Text: "Go."})
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n, err := b.open().Recover(apptest.Context(t), false); err != nil || n != 0 {
			t.Errorf("a run that lives was ended: %d, %v", n, err)
		}
		// Another process takes the lease: this one lets go.
		err := b.config.Store.Update(apptest.Context(t), artel.Local, func(tx store.Tx) error {
			later := time.Now().Add(time.Hour)
			return tx.Runs.Renew(store.Lease{Owner: artel.Local, Run: r.ID, Conversation: c, Holder: "other", Term: 2, Until: later.Add(time.Hour)}, later)
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := b.Close(apptest.Context(t)); err != nil {
			t.Fatal(err)
		}
		if r, err := b.Runs.Find(apptest.Context(t), r.ID); err != nil || r.State != artel.RunRunning {
			t.Errorf("the run of another process was ended: %+v, %v", r, err)
		}
		_ = b.config.Store.Close()
	})
}

// failing makes updates that end a run fail: n times, or always for n < 0.
type failing struct {
	store.Store
	err error

	mu sync.Mutex
	n  int
}

func (f *failing) Update(ctx context.Context, o artel.Owner, fn func(store.Tx) error) error {
	return f.Store.Update(ctx, o, func(tx store.Tx) error {
		tx.Runs = endings{tx.Runs, f}
		return fn(tx)
	})
}

func (f *failing) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n = 0
}

type endings struct {
	store.Runs
	f *failing
}

func (e endings) Update(r artel.Run) error {
	e.f.mu.Lock()
	defer e.f.mu.Unlock()
	if r.State.Final() && e.f.n != 0 {
		e.f.n--
		return e.f.err
	}
	return e.Runs.Update(r)
}

func TestEndIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := artel.Errorf(artel.Unavailable, "store", "", "the disk is full")
		broken := &failing{err: full, n: 3}
		b := newBench(t, play(t, writes), func(c *app.Config) { broken.Store = c.Store; c.Store = broken })
		c := b.conversation()
		if r := b.ask(c, "Go."); r.State != artel.RunDone || r.Reply == "" {
			t.Errorf("after three failures: got %+v", r)
		}

		broken.mu.Lock()
		broken.n = 7 // all attempts with the versions, and two without
		broken.mu.Unlock()
		c = b.conversation()
		r := b.ask(c, "Go.")
		if r.State != artel.RunFailed || r.Error == nil || !strings.Contains(r.Error.Message, "full") || r.Reply == "" {
			t.Errorf("when folding fails: got %+v, %+v", r, r.Error)
		}
		if v, err := b.Versions.List(apptest.Context(t), c, "note"); err != nil || len(v) != 0 || b.text(c, "note", "") != "1 2 three" {
			t.Errorf("when folding fails: got %+v, %v", v, err)
		}
		if m := b.messages(c); artel.TextOf(m[len(m)-1].Parts) != "Done: artifact:note" {
			t.Errorf("the reply is lost: %+v", m[len(m)-1])
		}
		b.ask(c, "Again.")
		if v, err := b.Versions.List(apptest.Context(t), c, "note"); err != nil || len(v) < 1 || v[0].Number != 3 || v[0].Run != r.ID {
			t.Errorf("the next run folds: got %+v, %v", v, err)
		}

		broken.mu.Lock()
		broken.n = -1
		broken.mu.Unlock()
		c = b.conversation()
		r = b.send(c, run.Input{Text: "Go."})
		time.Sleep(time.Minute)
		synctest.Wait()
		if found, err := b.Runs.Find(apptest.Context(t), r.ID); err != nil || found.State != artel.RunRunning {
			t.Errorf("when nothing can be written: got %+v, %v", found, err)
		}
		broken.heal()
		time.Sleep(time.Minute)
		if n, err := b.Recover(apptest.Context(t), false); err != nil || n != 1 {
			t.Errorf("when it can be written again: got %d, %v", n, err)
		}
		if r = b.ended(r); r.State != artel.RunDone {
			t.Errorf("when it can be written again: got %+v", r)
		}
		if err := b.Close(apptest.Context(t)); err != nil {
			t.Error(err)
		}
		_ = b.config.Store.Close()
	})
}

// TestStoreFailsInside lets single updates in the middle of a run fail: the
// run ends as failed, and whatever was told is there.
func TestStoreFailsInside(t *testing.T) {
	for at := 3; at < 14; at += 3 {
		w := &watched{}
		b := newBench(t, play(t, writes), func(c *app.Config) { w.Store = c.Store; c.Store = w })
		c := b.conversation()
		n := 1
		w.mu.Lock()
		w.before = func() error {
			if n++; n == at {
				return artel.Errorf(artel.Unavailable, "store", "", "out of order")
			}
			return nil
		}
		w.mu.Unlock()
		r := b.ask(c, "Go.")
		if r.State != artel.RunFailed || r.Error == nil || !strings.Contains(r.Error.Message, "out of order") {
			t.Errorf("update %d: got %s, %+v", at, r.State, r.Error)
		}
		told := 0
		for _, e := range b.events(c) {
			switch e.Type {
			case artel.EventArtifactCreated, artel.EventArtifactUpdated:
				told++
			}
		}
		want := []string{"", "one two three", "1 two three", "1 2 three"}[told]
		if told > 0 && b.text(c, "note", "") != want {
			t.Errorf("update %d: %d edits were told, and it reads %q", at, told, b.text(c, "note", ""))
		}
		if v, err := b.Versions.List(apptest.Context(t), c, "note"); told > 0 && (err != nil || len(v) != 1 || v[0].Number != told) {
			t.Errorf("update %d: got %+v, %v", at, v, err)
		}
	}
}

// TestRecoverBesideQueue: many callers look for runs to continue while the runs of
// queued messages start and end; each message is answered once.
func TestRecoverBesideQueue(t *testing.T) {
	g, b, c, first := working(t, "one")
	var runs []artel.Run
	want := "one | answer to one"
	for i := range 12 {
		text := fmt.Sprint("next ", i)
		runs = append(runs, b.send(c, run.Input{Text: text, Queue: true}))
		want += " | " + text + " | answer to " + text
	}
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := b.Recover(apptest.Context(t), false); err != nil {
					t.Errorf("recovering: %v", err)
				}
			}
		})
	}
	for range len(runs) + 1 {
		g.may <- struct{}{}
	}
	for _, r := range append([]artel.Run{first}, runs...) {
		if r = b.ended(r); r.State != artel.RunDone {
			t.Errorf("%s ended as %s: %v", r.ID, r.State, r.Error)
		}
	}
	close(stop)
	callers.Wait()
	if got := b.said(c); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
