// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store/rows/rowstest"
)

// TestTakenOverInVain ends a run that brings its process down at the same step
// again and again, and nothing that it had completed is lost.
func TestTakenOverInVain(t *testing.T) {
	b, c, r := crash(t, holds)
	data := b.config.Store
	for range 5 {
		dying := &watched{Store: data}
		b.config.Store = dying
		b.App = b.open()
		if n, err := b.Recover(apptest.Context(t), true); err != nil || n != 1 {
			t.Fatalf("got %d, %v", n, err)
		}
		dying.die(artel.Errorf(artel.Internal, "test", "", "the process is dead"))
		if err := b.Close(apptest.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
	b.config.Store = data
	b.App = b.open()
	if n, err := b.Recover(apptest.Context(t), true); err != nil || n != 1 {
		t.Fatalf("got %d, %v", n, err)
	}
	r = b.ended(r)
	if r.State != artel.RunInterrupted || r.Error == nil || !strings.Contains(r.Error.Message, "again and again") || b.text(c, "note", "") != "1 2 three" {
		t.Errorf("got %+v, %+v", r, r.Error)
	}
	b.plays(play(t, writes))
	b.App = b.open()
	b.ask(c, "Go on.")
}

// TestTakenOverWithoutItsAgent cannot go on, says so, and keeps what is done.
func TestTakenOverWithoutItsAgent(t *testing.T) {
	b, c, r := crash(t, holds)
	b.config.Agents = []agent.Definition{{Name: "other", Prompt: "You are another."}}
	b.App = b.open()
	if n, err := b.Recover(apptest.Context(t), true); err != nil || n != 1 {
		t.Fatalf("got %d, %v", n, err)
	}
	r = b.ended(r)
	if r.State != artel.RunInterrupted || r.Error == nil || !strings.Contains(r.Error.Message, "lead_agent") || b.text(c, "note", "") != "1 2 three" {
		t.Errorf("got %+v, %+v", r, r.Error)
	}
}

// TestTimeSpansRestarts: the limit of time counts what a run was at work before
// its process stopped or died, and not the time in which nobody worked on it.
func TestTimeSpansRestarts(t *testing.T) {
	for name, dies := range map[string]bool{"stopped": false, "died": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dead := &watched{}
				b := newBench(t, play(t, "-- turn 1 --\nHalf\n@hang\n"), func(c *app.Config) {
					dead.Store, c.Store = c.Store, dead
					c.Agents = []agent.Definition{{Name: agent.Lead, Prompt: "You hang.", Limits: agent.Limits{Seconds: 200}}}
				})
				r := b.send(b.conversation(), run.Input{Text: "Go."})
				for range 2 { // is at work for 90 seconds, and lies for an hour
					time.Sleep(90 * time.Second)
					synctest.Wait()
					if dies {
						dead.die(artel.Errorf(artel.Internal, "test", "", "the process is dead"))
					}
					if err := b.Close(apptest.Context(t)); err != nil {
						t.Fatal(err)
					}
					dead.die(nil)
					time.Sleep(time.Hour)
					b.App = b.open()
					if n, err := b.Recover(apptest.Context(t), true); err != nil || n != 1 {
						t.Fatalf("got %d, %v", n, err)
					}
				}
				time.Sleep(15 * time.Second) // of the 20 that are left
				synctest.Wait()
				if found, err := b.Runs.Find(apptest.Context(t), r.ID); err != nil || found.State != artel.RunRunning {
					t.Errorf("before its time is over: %+v, %v", found, err)
				}
				time.Sleep(15 * time.Second) // its last sign of life may have been some seconds old
				synctest.Wait()
				found, err := b.Runs.Find(apptest.Context(t), r.ID)
				if err != nil || found.State != artel.RunTimedOut || found.Error == nil || found.Error.Code != artel.CodeLimitTime {
					t.Errorf("after its time: %+v, %v", found, err)
				}
			})
		})
	}
}

// TestTwoProcesses has two of them with stores of their own on one database:
// the second takes over as soon as the lease of the first, which stands still,
// is over, and the first writes nothing when it wakes up.
func TestTwoProcesses(t *testing.T) {
	address := rowstest.Address(t)
	open := func(config *app.Config) {
		config.Store = local{rowstest.At(t, address)}
	}
	first := newBench(t, play(t, holds), open)
	c := first.conversation()
	r := first.send(c, run.Input{Text: "Go."})
	first.until(c, func(e artel.Event) bool { return strings.Contains(string(e.Data), "Half") })

	now := time.Now()
	second := newBench(t, play(t, writes), open, func(config *app.Config) {
		config.Blobs = first.config.Blobs
		config.Options.Now = func() time.Time { return now }
	})
	if n, err := second.Recover(apptest.Context(t), false); err != nil || n != 0 {
		t.Fatalf("while the first shows signs of life: got %d, %v", n, err)
	}
	now = now.Add(time.Minute) // after the lease of the first, however often it was renewed meanwhile
	if n, err := second.Recover(apptest.Context(t), false); err != nil || n != 1 {
		t.Fatalf("got %d, %v", n, err)
	}
	if r = second.ended(r); r.State != artel.RunDone {
		t.Errorf("got %+v", r)
	}
	before := typesOf(second.events(c))
	if err := first.Close(apptest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if after := typesOf(second.events(c)); after != before || strings.Count(after, "artifact_") != 3 {
		t.Errorf("got %s\nafter %s", after, before)
	}
}
