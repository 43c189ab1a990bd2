// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// A losing store loses the answer to one commit, whether the commit was made or not.
type losing struct {
	store.Store
	made bool
	mu   sync.Mutex
	left int // commits until then
	lost bool
}

var errNotMade = errors.New("not made")

func (s *losing) Update(ctx context.Context, o artel.Owner, fn func(store.Tx) error) error {
	s.mu.Lock()
	lose := s.left == 0
	s.left--
	s.lost = s.lost || lose
	s.mu.Unlock()
	if !lose {
		return s.Store.Update(ctx, o, fn)
	}
	err := s.Store.Update(ctx, o, func(tx store.Tx) error {
		if err := fn(tx); err != nil || s.made {
			return err
		}
		return errNotMade
	})
	if err != nil && !errors.Is(err, errNotMade) {
		return err
	}
	e := artel.Errorf(artel.Unavailable, "store.Update", "", "the connection was lost")
	e.Code = artel.CodeOutcomeUnknown
	return e
}

// TestOutcomeOfEveryCommit loses the answer to each commit of a run in turn, of one that was
// made and of one that was not: nothing is done twice, and nothing is missing.
func TestOutcomeOfEveryCommit(t *testing.T) {
	for _, made := range []bool{true, false} {
		lost := true
		for k := 0; lost; k++ {
			t.Run(fmt.Sprintf("made %v, %d", made, k), func(t *testing.T) { lost = loseAt(t, made, k) })
		}
	}
}

// loseAt reports whether the run had so many commits.
func loseAt(t *testing.T, made bool, k int) bool {
	steps := crashSteps()[:2]
	var plays []func() model.Delta
	for _, s := range steps {
		plays = append(plays, func() model.Delta { return call(s.tool, s.args) })
	}
	plays = append(plays, func() model.Delta { return model.TextDelta("Done.") })
	s := &losing{left: 1 << 30, made: made}
	paid := make([]int, len(plays))
	b := newBench(t, following(paid, plays...), func(c *app.Config) { s.Store = c.Store; c.Store = s })
	c := b.conversation()
	s.mu.Lock()
	s.left = k
	s.mu.Unlock()
	b.ended(b.send(c, run.Input{Text: "Go."}))
	s.mu.Lock()
	lost := s.lost
	s.left = 1 << 30
	s.mu.Unlock()
	b.afterCrash(c, steps)
	if slices.ContainsFunc(paid, func(n int) bool { return n != 1 }) {
		t.Errorf("the calls were paid for %v times", paid)
	}
	return lost
}
