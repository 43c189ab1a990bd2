// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/store"
)

// A moment is a time of a history, and of its reference.
type moment struct {
	clock time.Time
	order int
}

// condense lets go of what was made up to a moment: of all states but those
// that are visible, live, or what one of these, or something newer, was made
// from.
func (h *history) condense(t *rapid.T) {
	for _, w := range h.writers[1:] { // most of the runs have ended
		if rapid.IntRange(0, 4).Draw(t, "goes on") > 0 {
			h.endRun(t, w)
		}
	}
	until := h.moments[len(h.moments)-1]
	if rapid.Bool().Draw(t, "some time ago") {
		until = rapid.SampledFrom(h.moments).Draw(t, "until")
	}
	for id, rows := range h.ref.rows {
		stays := map[int]bool{len(rows): true}
		for _, s := range rows {
			switch {
			case s.gone:
			case s.visible:
				stays[s.number], stays[s.first] = true, true
				if s.deleted() {
					stays[s.parent] = true
				}
			}
			if !s.gone && (s.live || s.order > until.order) {
				stays[s.number], stays[s.parent] = true, true
			}
		}
		n := 0
		for i := range rows {
			if s := &rows[i]; !s.gone && !stays[s.number] {
				s.gone = true
				n++
			}
		}
		for i := range rows {
			for s := &rows[i]; s.parent > 0 && rows[s.parent-1].gone; {
				s.parent = rows[s.parent-1].parent
			}
		}
		j := store.JournalKey{Owner: artel.Local, Conversation: h.conv, Artifact: id}
		if got, err := h.c.CompactJournal(background, j, until.clock.Add(time.Microsecond)); err != nil || got != n {
			t.Fatalf("%d edits of %s are gone, %v; want %d", got, id, err, n)
		}
	}
}

// burst is what a run does that goes over a text again and again, while
// somebody else may come between.
func (h *history) burst(t *rapid.T) {
	for range rapid.IntRange(2, 6).Draw(t, "edits") {
		w := h.writers[1]
		if rapid.IntRange(0, 4).Draw(t, "somebody else") == 0 {
			w = rapid.SampledFrom(h.writers[:3]).Draw(t, "writer")
		}
		head, there := h.ref.head("one", w.at)
		if !there || head.text == "" {
			h.update(t)
			continue
		}
		old, text := head.text, []rune(head.text)
		if n := len(text); n > 4 && rapid.Bool().Draw(t, "a part") {
			old = string(text[n/3 : n-1])
		}
		h.updateBy(t, w, "one", head, there, []edit.Edit{{Old: old, New: "x" + someText(t, "new")}})
	}
}

// TestCondenseLongRun takes more edits out of a journal than one update does:
// spans, whole texts among them, titles, and a deletion that can be undone.
func TestCondenseLongRun(t *testing.T) {
	b := newBench(t, "")
	text := strings.Repeat("0123456789abcde\n", 100)
	must[artel.Artifact](t)(b.workspace("", b.a).Create(t.Context(), "doc", "", text+"<0>", ""))
	edits := 0
	for run := range 4 {
		name := artel.RunID(fmt.Sprintf("run_%d", run))
		b.beginRun(t, name, b.a)
		w := b.workspace(name, b.a)
		for range 90 {
			update(t, w, "doc", fmt.Sprintf("<%d>", edits), fmt.Sprintf("<%d>", edits+1))
			edits++
		}
		switch run {
		case 1:
			must[artel.Artifact](t)(w.Edit.Rename(t.Context(), "doc", "Another", 0))
		case 2:
			must[artel.Artifact](t)(w.Edit.Rewrite(t.Context(), "doc", strings.Repeat("new\n", 300)+fmt.Sprintf("<%d>", edits), 0))
			update(t, w, "doc", fmt.Sprintf("<%d>", edits), fmt.Sprintf("<%d>", edits+1))
			edits++
		case 3:
			must[artel.Artifact](t)(w.Edit.Delete(t.Context(), "doc", 0))
		}
		b.fold(t, name)
	}
	texts := func() (all []string) {
		for _, v := range b.visible(t, "doc") {
			s, err := b.collection().Versions.Text(t.Context(), artel.Local, b.conv, "doc", v.Number)
			if err != nil {
				t.Fatalf("version %d: %v", v.Number, err)
			}
			all = append(all, fmt.Sprintf("%d %s %d changes: %s", v.Number, v.Title, len(v.Changes), s))
		}
		return all
	}
	before := texts()
	j := store.JournalKey{Owner: artel.Local, Conversation: b.conv, Artifact: "doc"}
	if n := must[int](t)(b.collection().CompactJournal(t.Context(), j, start)); n != 0 {
		t.Errorf("%d edits are gone that are not older", n)
	}
	// Beside the edits there are a title, a new text and a deletion. Four of all
	// are visible, and one is what the deletion was made from.
	if n := must[int](t)(b.collection().CompactJournal(t.Context(), j, start.Add(time.Hour*1e5))); n != edits+3-4-1 {
		t.Errorf("%d edits are gone", n)
	}
	if after := texts(); strings.Join(before, "\n") != strings.Join(after, "\n") {
		t.Error("the versions have changed")
	}
	if found, _, err := b.store.Journals(t.Context(), start.Add(time.Hour*1e5), store.JournalKey{}, 10); err != nil || len(found) != 1 {
		t.Errorf("what a deletion was made from stays: %v, %v", found, err)
	}
	a := must[artel.Artifact](t)(b.workspace("", b.a).Edit.Restore(t.Context(), "doc", 0, 0))
	b.text(t, "doc", b.a, a.Version, strings.Repeat("new\n", 300)+fmt.Sprintf("<%d>", edits))
}

// TestCondenseWaitsForRuns: a run may name whatever it was told.
func TestCondenseWaitsForRuns(t *testing.T) {
	b := newBench(t, "")
	w := b.workspace("run_1", b.a)
	must[artel.Artifact](t)(w.Create(t.Context(), "doc", "", "a", ""))
	update(t, w, "doc", "a", "b")
	b.fold(t, "run_1")
	next := artel.Run{ID: artel.NewRunID(start), Conversation: b.conv, Message: b.a, State: artel.RunRunning, StartedAt: start}
	if err := b.store.Update(t.Context(), artel.Local, func(tx store.Tx) error { return tx.Runs.Create(next, store.Lease{}) }); err != nil {
		t.Fatal(err)
	}
	j, later := store.JournalKey{Owner: artel.Local, Conversation: b.conv, Artifact: "doc"}, start.Add(time.Hour*1e5)
	if n := must[int](t)(b.collection().CompactJournal(t.Context(), j, later)); n != 0 {
		t.Errorf("%d edits are gone during a run", n)
	}
	next.State = artel.RunDone
	if err := b.store.Update(t.Context(), artel.Local, func(tx store.Tx) error { return tx.Runs.Update(next) }); err != nil {
		t.Fatal(err)
	}
	if n := must[int](t)(b.collection().CompactJournal(t.Context(), j, later)); n != 1 {
		t.Errorf("%d edits are gone after it", n)
	}
	if _, err := b.collection().Versions.Text(t.Context(), artel.Local, b.conv, "doc", 1); artel.KindOf(err) != artel.NotFound {
		t.Errorf("what is gone: %v", err)
	}
	if n := must[int](t)(b.collection().CompactJournal(t.Context(), store.JournalKey{Owner: "other", Conversation: b.conv, Artifact: "doc"}, later)); n != 0 {
		t.Errorf("%d edits of somebody else are gone", n)
	}
}
