// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/run"
)

// TestCrashInSubagents kills a process at every update of a run that gives work
// to three subagents, two of them at once, inside the update and after it by
// turns. Another goes on inside of them: each has said and done everything once.
func TestCrashInSubagents(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "testdata", "scenario", "delegation.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	survived := false
	for k := 0; !survived; k++ {
		when := []moment{insideUpdate, afterUpdate}[k%2]
		t.Run(fmt.Sprintf("%s %d", when, k), func(t *testing.T) { survived = crashInSubagents(t, string(raw), when, k) })
		if k > 200 {
			t.Fatal("the run has no end")
		}
	}
}

func crashInSubagents(t *testing.T, scenario string, when moment, k int) (survived bool) {
	s := &mortal{left: 1 << 30, when: when, died: make(chan struct{})}
	b := newBench(t, play(t, scenario), func(c *app.Config) { s.Store = c.Store; c.Store = s })
	c := b.conversation()
	survived = b.dieAt(s, c, "Who painted the crane, and when?", k)
	r, ok := b.revive(s, c)
	if !ok {
		return survived
	}
	if r = b.ended(r); r.State != artel.RunDone || r.Usage.Calls != 8 {
		t.Fatalf("the run is %+v", r)
	}
	if got := b.text(c, "crane_notes", ""); got != "Painted by Ann, certainly." {
		t.Errorf("the notes read %q", got)
	}
	journal, err := b.Versions.History(apptest.Context(t), c, "crane_notes", artifact.Journal)
	if err != nil || len(journal) != 2 {
		t.Errorf("%d edits are journalled: %v", len(journal), err)
	}
	type thread struct {
		within artel.CallPath
		kind   artel.EventType
	}
	told := map[artel.EventType]int{}
	begun := map[thread]int{}
	for _, e := range b.events(c) {
		told[e.Type]++
		if e.Type == artel.EventSubagentStarted {
			begun[thread{e.Within, e.Type}]++
		}
	}
	for kind, want := range map[artel.EventType]int{
		artel.EventMessageCompleted: 8, artel.EventToolCompleted: 5, artel.EventSubagentStarted: 3, artel.EventSubagentCompleted: 3, artel.EventArtifactCreated: 1, artel.EventArtifactUpdated: 1,
	} {
		if told[kind] != want {
			t.Errorf("the log tells of %s %d times, want %d", kind, told[kind], want)
		}
	}
	if len(begun) != 3 {
		t.Errorf("the threads are %v", begun)
	}
	return survived
}

// dieAt sends a text to a process that dies at its update k from now, and waits
// until nothing of it is left. It reports whether the run was over before.
func (b *bench) dieAt(s *mortal, c artel.ConversationID, text string, k int) (survived bool) {
	b.t.Helper()
	s.mu.Lock()
	s.left = k
	s.mu.Unlock()
	ctx, stop := context.WithTimeout(apptest.Context(b.t), 5*time.Minute)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-s.died:
			stop()
		case <-ctx.Done():
		}
	})
	if _, err := b.Runs.Send(apptest.Context(b.t), c, run.Input{Text: text}); err == nil {
		for e, err := range b.Events.Follow(ctx, c, 0, 0) {
			if survived = err == nil && e.Type == artel.EventRunFinished; survived {
				break
			}
		}
	}
	stop()
	wg.Wait()
	if err := b.Close(apptest.Context(b.t)); err != nil {
		b.t.Fatal(err)
	}
	return survived
}

// revive opens another process on what the dead one has left, and returns the
// run of the first message; false: it died before anything was acknowledged.
func (b *bench) revive(s *mortal, c artel.ConversationID) (r artel.Run, ok bool) {
	b.t.Helper()
	b.config.Store = s.Store
	b.App = b.open()
	if _, err := b.Recover(apptest.Context(b.t), true); err != nil {
		b.t.Fatal(err)
	}
	all := b.messages(c)
	if len(all) == 0 {
		return r, false
	}
	r, err := b.Runs.Find(apptest.Context(b.t), all[0].Run)
	if err != nil {
		b.t.Fatal(err)
	}
	return r, true
}
