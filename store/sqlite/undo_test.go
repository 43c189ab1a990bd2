// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

// TestBatchUndo lets updates fail in one batch after they have appended to the
// journal, before and after they wrote something else: nothing of them stays, and
// everything of the others.
func TestBatchUndo(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "data.db"), sqlite.Options{})
	c := conversation(t, s)
	sqlite.Patient(s)
	add := func(tx store.Tx, author string) error {
		_, err := tx.Journal.Append(c, "doc", artel.Version{Author: author}, nil)
		return err
	}
	event := func(tx store.Tx, author string) error {
		_, err := tx.Events.Append(c, artel.Event{Agent: artel.AgentName(author)})
		return err
	}
	update(t, s, func(tx store.Tx) error { return add(tx, "first") })
	errUndo := errors.New("undo")
	undone := func(tx store.Tx) error { return errUndo }
	panics := func(store.Tx) error { panic("in fn") }
	author := func(write func(store.Tx, string) error, name string) func(store.Tx) error {
		return func(tx store.Tx) error { return write(tx, name) }
	}
	steps := [][]func(store.Tx) error{
		{author(add, "a")},
		{author(add, "lost"), author(add, "lost"), undone},
		{author(add, "b"), author(event, "b")},
		{author(add, "lost"), author(event, "lost"), author(add, "lost"), undone},
		{author(event, "c"), author(add, "c")},
		{author(add, "lost"), panics},
		{author(event, "lost"), author(add, "lost"), panics},
		{undone},
		{author(add, "d")},
	}
	hold := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Update(t.Context(), artel.Local, func(tx store.Tx) error { <-hold; return add(tx, "opens the batch") }); err != nil {
			t.Error(err)
		}
	})
	for sqlite.InLine(s) < 0 {
		runtime.Gosched()
	}
	for i, step := range steps { // they stand in line in this order
		wg.Go(func() {
			defer func() { _ = recover() }()
			err := s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
				for _, do := range step {
					if err := do(tx); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil && !errors.Is(err, errUndo) {
				t.Errorf("update %d: %v", i, err)
			}
		})
		for sqlite.InLine(s) < i+1 {
			runtime.Gosched()
		}
	}
	close(hold)
	wg.Wait()
	update(t, s, func(tx store.Tx) error { return add(tx, "last") })
	var got, events []string
	if err := s.View(t.Context(), artel.Local, func(tx store.Tx) error {
		edits, err := tx.Journal.Edits(c, store.EditQuery{Artifact: "doc"})
		for i, e := range edits {
			got = append(got, e.Author)
			if e.Number != i+1 {
				t.Errorf("edit %d has number %d", i+1, e.Number)
			}
		}
		if err != nil {
			return err
		}
		list, err := tx.Events.Read(c, 0, 100)
		for _, e := range list {
			events = append(events, string(e.Agent))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"first", "opens the batch", "a", "b", "c", "d", "last"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("edits (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"b", "c"}, events); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}
