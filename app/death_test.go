// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store/sqlite"
	"github.com/artelhq/artel/store/sqlite/sqlitetest"
	"github.com/artelhq/artel/store/storetest"
)

// A death is what is on the disk at one moment.
type death struct {
	step    string
	db, log []byte // the file, and the log of what was committed since
}

// A coroner keeps what each moment would leave, if the process died in it.
type coroner struct {
	path string

	mu     sync.Mutex
	deaths []death
	seen   map[[32]byte]bool
	steps  map[string]int
	err    error
}

// at is called with the turn to write, so that the files stand still.
func (c *coroner) at(step string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps[step]++
	db, err := os.ReadFile(c.path)
	if err != nil {
		c.err = err
	}
	log, err := os.ReadFile(c.path + "-wal")
	if err != nil && !os.IsNotExist(err) {
		c.err = err
	}
	d := death{step, db, log}
	// What a commit appends to the log may have been written in part.
	if n := len(c.deaths); n > 0 && step == "commit after" {
		if before := len(c.deaths[n-1].log); before < len(log) {
			cut := before + (len(log)-before)/2
			if n%2 == 0 {
				cut = len(log) - 1
			}
			c.keep(death{"in the commit", db, log[:cut]})
		}
	}
	c.keep(d)
	return nil
}

func (c *coroner) keep(d death) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%x %x", sha256.Sum256(d.db), sha256.Sum256(d.log)))
	if !c.seen[sum] {
		c.seen[sum] = true
		c.deaths = append(c.deaths, d)
	}
}

// TestDeathAtEveryStep keeps what is on the disk at every step of every update
// of a run: before and after each call of the transaction, before and after the
// commit, and with half of it written. From each of them another process goes
// on: what the model was told of is there, and nothing half.
func TestDeathAtEveryStep(t *testing.T) {
	c := &coroner{path: filepath.Join(t.TempDir(), "data.db"), seen: map[[32]byte]bool{}, steps: map[string]int{}}
	steps := crashSteps()
	plays := make([]func() model.Delta, 0, len(steps)+1)
	for _, s := range steps {
		plays = append(plays, func() model.Delta { return call(s.tool, s.args) })
	}
	plays = append(plays, func() model.Delta { return model.TextDelta("Done.") })
	for range 2 { // the second finds all in the file
		s, err := sqlite.Open(apptest.Context(t), c.path, sqlite.Options{})
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	watched := &storetest.Steps{At: func(string) error { return nil }}
	b := newBench(t, following(make([]int, len(plays)), plays...), func(config *app.Config) {
		s := sqlitetest.Open(t, c.path)
		watched.Store, config.Store = s, watched
	})
	conv := b.conversation()
	watched.At = c.at
	ctx, stop := context.WithTimeout(apptest.Context(t), 5*time.Minute)
	defer stop()
	if _, err := b.Runs.Send(ctx, conv, run.Input{Text: "Go."}); err != nil {
		t.Fatal(err)
	}
	for e, err := range b.Events.Follow(ctx, conv, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == artel.EventRunFinished {
			break
		}
	}
	if err := b.Close(apptest.Context(t)); err != nil || c.err != nil {
		t.Fatal(err, c.err)
	}
	for _, name := range []string{"Journal.Append", "Journal.Fold", "Events.Append", "Messages.Create", "Runs.Update", "commit"} {
		if c.steps[name+" before"] == 0 || c.steps[name+" after"] == 0 {
			t.Errorf("%s was no step of the run", name)
		}
	}
	t.Logf("%d moments in %d steps", len(c.deaths), len(c.steps))
	for i, d := range c.deaths {
		t.Run(fmt.Sprintf("%d %s", i, d.step), func(t *testing.T) { goOn(t, b, conv, steps, d) })
	}
}

// after begins anew with what a death has left.
func after(t *testing.T, b *bench, d death) *bench {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data.db")
	for name, content := range map[string][]byte{path: d.db, path + "-wal": d.log} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := sqlitetest.Open(t, path)
	next := &bench{t: t, config: b.config, log: b.log, spool: b.spool}
	next.config.Store = s
	next.App = next.open()
	return next
}

// goOn has another process go on with the run.
func goOn(t *testing.T, b *bench, conv artel.ConversationID, steps []step, d death) {
	next := after(t, b, d)
	if _, err := next.Recover(apptest.Context(t), true); err != nil {
		t.Fatal(err)
	}
	next.afterCrash(conv, steps)
}
