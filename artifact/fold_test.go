// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/store"
)

// longRun makes edits here and there in a text of a megabyte.
func longRun(t *testing.T, b *bench, run artel.RunID, edits int) string {
	t.Helper()
	var text strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&text, "<%d> a line of some length\n", i)
	}
	want := text.String()
	w := b.workspace(run, b.a)
	must[artel.Artifact](t)(b.workspace("", b.a).Create(t.Context(), "doc", "", want, ""))
	for i := range edits {
		line := (i * 7919) % 40_000
		old, repl := fmt.Sprintf("<%d> a line", line), fmt.Sprintf("<%d> line", line)
		update(t, w, "doc", old, repl)
		want = strings.Replace(want, old, repl, 1)
	}
	return want
}

// No update of a long run reads the text or the journal, its end included, and what
// a live reader replays does not grow with the run. The store of the bench fails the
// test otherwise.
func TestLongRunHoldsTheWriterShortly(t *testing.T) {
	const edits = 700
	b := newBench(t, "")
	want := longRun(t, b, "run_1", edits)
	b.text(t, "doc", b.a, edits+1, want)
	err := b.store.View(t.Context(), artel.Local, func(tx store.Tx) error {
		r, err := tx.Journal.Replay(b.conv, "doc", edits+1)
		if r.Edits > 150 {
			t.Errorf("a reader of the head replays %d edits", r.Edits)
		}
		whole := 0
		list, _ := tx.Journal.Edits(b.conv, store.EditQuery{Artifact: "doc", Unfolded: true})
		for _, e := range list {
			if e.Text != nil {
				whole++
			}
		}
		if whole != 1 {
			t.Errorf("the journal has %d whole texts", whole)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.fold(t, "run_1")
	b.text(t, "doc", b.a, edits+1, want)
	if list := b.visible(t, "doc"); len(list) != 2 || list[1].Parent != 1 || len(list[1].Changes) != edits {
		t.Errorf("%d versions, %d changes in the last", len(list), len(list[1].Changes))
	}
	err = b.store.View(t.Context(), artel.Local, func(tx store.Tx) error {
		list, err := tx.Journal.Edits(b.conv, store.EditQuery{Artifact: "doc"})
		for _, e := range list {
			if e.Text != nil {
				t.Errorf("edit %d still has a whole text", e.Number)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 300, edits} {
		if _, err := b.collection().Versions.Text(t.Context(), artel.Local, b.conv, "doc", n); err != nil {
			t.Errorf("state %d: %v", n, err)
		}
	}
}

// A fold that was interrupted anywhere, or that finds an edit which came after its
// plan, leads to the same version as one that was not.
func TestFoldInterrupted(t *testing.T) {
	const edits = 700
	b := newBench(t, "")
	want := longRun(t, b, "run_1", edits)
	rows := b.store
	errCut := errors.New("cut")
	for k := range 3 { // after k of the updates of the fold
		var begun atomic.Int64 // updates run beside each other
		b.store = cut{rows, func() error {
			if begun.Add(1) > int64(k) {
				return errCut
			}
			return nil
		}}
		if err := b.foldRun("run_1"); !errors.Is(err, errCut) {
			t.Fatalf("%d: %v", k, err)
		}
		b.store = rows
		b.text(t, "doc", b.a, edits+1+k, want)
		old, repl := fmt.Sprintf("<%d> ", 2*k+1), fmt.Sprintf("<%d>: ", 2*k+1)
		w := b.workspace("run_1", b.a) // taken over
		update(t, w, "doc", old, repl)
		want = strings.Replace(want, old, repl, 1)
	}
	calls := 0
	err := artifact.FoldRun(t.Context(), b.store, artel.Local, b.conv, "run_1", func(fold func(store.Tx) error) error {
		if calls++; calls == 1 {
			update(t, b.workspace("run_1", b.a), "doc", "<39999> ", "<39999>: ")
			want = strings.Replace(want, "<39999> ", "<39999>: ", 1)
		}
		return b.store.Update(t.Context(), artel.Local, fold)
	})
	if err != nil || calls != 2 {
		t.Fatalf("%d calls, %v", calls, err)
	}
	b.text(t, "doc", b.a, edits+5, want)
	list := b.visible(t, "doc")
	if diff := cmp.Diff([]int{1, edits + 5}, []int{list[0].Number, list[1].Number}); diff != "" || list[1].Parent != 1 || len(list[1].Changes) != edits+4 {
		t.Errorf("%s: parent %d, %d changes", diff, list[1].Parent, len(list[1].Changes))
	}
}

// cut is a store whose updates may fail.
type cut struct {
	store.Store
	next func() error
}

func (c cut) Update(ctx context.Context, o artel.Owner, fn func(store.Tx) error) error {
	if err := c.next(); err != nil {
		return err
	}
	return c.Store.Update(ctx, o, fn)
}

// TestFoldBesideAnother: another process folds the run between the plan of this one and
// its first update. The text of the version that it has made stays.
func TestFoldBesideAnother(t *testing.T) {
	b := newBench(t, "")
	w := b.workspace("run_1", b.a)
	must[artel.Artifact](t)(b.workspace("", b.a).Create(t.Context(), "doc", "", strings.Repeat("a line\n", 100)+"end 0", ""))
	last, stored := 0, false
	for i := 0; !stored && i < 1000; i++ { // until the newest edit has a text that follows from its changes
		last = update(t, w, "doc", fmt.Sprintf("end %d", i), fmt.Sprintf("end %d", i+1)).Version
		err := b.store.View(t.Context(), artel.Local, func(tx store.Tx) error {
			list, err := tx.Journal.Edits(b.conv, store.EditQuery{Artifact: "doc", Number: last})
			stored = len(list) == 1 && list[0].Text != nil && len(list[0].Changes) > 0
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !stored {
		t.Fatal("no edit stores a text")
	}
	beside := &meanwhile{Store: b.store, do: func() { b.fold(t, "run_1") }}
	err := artifact.FoldRun(t.Context(), beside, artel.Local, b.conv, "run_1", func(fold func(store.Tx) error) error {
		return beside.Update(t.Context(), artel.Local, fold)
	})
	if err != nil {
		t.Fatal(err)
	}
	err = b.store.View(t.Context(), artel.Local, func(tx store.Tx) error {
		_, err := tx.Versions.Text(b.conv, "doc", last)
		return err
	})
	if err != nil {
		t.Errorf("the text of the newest version: %v", err)
	}
}

// A meanwhile is a store before whose first update something happens.
type meanwhile struct {
	store.Store
	once sync.Once
	do   func()
}

func (m *meanwhile) Update(ctx context.Context, o artel.Owner, fn func(store.Tx) error) error {
	m.once.Do(m.do)
	return m.Store.Update(ctx, o, fn)
}
