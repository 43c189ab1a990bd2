// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

// logged is a configuration whose edits go to the conversation's log.
func logged(b *bench, run artel.RunID, author string) artifact.WorkspaceConfig {
	return artifact.WorkspaceConfig{
		Owner: artel.Local, Conversation: b.conv, Run: run, Message: b.a, Author: author,
		OnEdit: func(tx store.Tx, p artel.Payload) error {
			e, err := artel.NewEvent(run, "", start, p)
			if err == nil {
				_, err = tx.Events.Append(b.conv, e)
			}
			return err
		},
	}
}

func events(t testing.TB, b *bench) []artel.Event {
	t.Helper()
	var all []artel.Event
	err := b.store.View(t.Context(), artel.Local, func(tx store.Tx) error {
		var err error
		all, err = tx.Events.Read(b.conv, 0, 10_000)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryEditHasItsEvent(t *testing.T) {
	b := newBench(t, "")
	w := b.collection().Workspace(logged(b, "run_1", "lead_agent"))
	created := must[artel.Artifact](t)(w.Create(t.Context(), "doc", "Title", "a b", ""))
	updated := update(t, w, "doc", "b", "B")
	rewritten := must[artel.Artifact](t)(w.Edit.Rewrite(t.Context(), "doc", strings.Repeat("x", artel.SnapshotLimit), 0))
	large, result, err := w.Edit.Update(t.Context(), "doc", []edit.Edit{{Old: "x", New: "y", ReplaceAll: true}}, artifact.UpdateOptions{IfVersion: rewritten.Version})
	if err != nil || result.Hits[0].Count != artel.SnapshotLimit {
		t.Fatal(err)
	}
	want := []artel.Payload{
		artel.ArtifactCreated{Artifact: created},
		artel.ArtifactUpdated{
			ID: "doc", Version: 2, BaseVersion: 1, Update: artel.UpdateExact, Artifact: updated,
			Spans: []artel.Change{{Layer: artel.LayerExact, Start: 2, End: 3, Old: "b", New: "B"}},
		},
		artel.ArtifactUpdated{ID: "doc", Version: 3, BaseVersion: 2, Update: artel.UpdateRewrite, Artifact: rewritten, ContentOmitted: true},
		artel.ArtifactUpdated{ID: "doc", Version: 4, BaseVersion: 3, Update: artel.UpdateExact, Artifact: large, ContentOmitted: true},
	}
	for i, e := range events(t, b) {
		data, err := json.Marshal(want[i])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(data), string(e.Data)); diff != "" || e.Type != want[i].EventType() {
			t.Errorf("event %d (-want +got):\n%s", i, diff)
		}
	}
	b.text(t, "doc", b.a, 4, strings.Repeat("y", artel.SnapshotLimit))
	b.fold(t, "run_1")
	b.text(t, "doc", b.a, 4, strings.Repeat("y", artel.SnapshotLimit))
}

func TestEditWithoutEventIsUndone(t *testing.T) {
	b := newBench(t, "")
	must[artel.Artifact](t)(b.workspace("", b.a).Create(t.Context(), "doc", "", "a", ""))
	gone := errors.New("the log is full")
	w := b.collection().Workspace(artifact.WorkspaceConfig{
		Owner: artel.Local, Conversation: b.conv, Message: b.a, Author: artifact.AuthorUser,
		OnEdit: func(store.Tx, artel.Payload) error { return gone },
	})
	if _, _, err := w.Edit.Update(t.Context(), "doc", swap("a", "b"), artifact.UpdateOptions{}); !errors.Is(err, gone) {
		t.Errorf("update: %v", err)
	}
	if _, err := w.Create(t.Context(), "new", "", "b", ""); !errors.Is(err, gone) {
		t.Errorf("create: %v", err)
	}
	if text, _, err := w.Text(t.Context(), "doc", 0); text != "a" || err != nil {
		t.Errorf("the workspace remembers what never was: %q, %v", text, err)
	}
	b.text(t, "doc", b.a, 1, "a")
	if list := must[[]artel.Artifact](t)(w.List(t.Context())); len(list) != 1 {
		t.Errorf("left over: %+v", list)
	}
}

// Two runs and a person edit one text at once: nothing is lost, the log tells
// the journal in order, and its spans lead to the text.
func TestWritersAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, rowstest.Address(t))
	const each = 25
	names := []string{"x", "y", "z"}
	var text strings.Builder
	for _, name := range names {
		for i := range each {
			fmt.Fprintf(&text, "<%s%d>\n", name, i)
		}
	}
	must[artel.Artifact](t)(b.workspace("", b.a).Create(t.Context(), "doc", "", text.String(), ""))
	runs := []artel.RunID{"run_1", "run_2", ""}
	var wg sync.WaitGroup
	for i, name := range names {
		w := b.collection().Workspace(logged(b, runs[i], name))
		for half := range 2 { // a workspace is safe for concurrent use
			wg.Go(func() {
				for n := half; n < each; n += 2 {
					if _, _, err := w.Edit.Update(t.Context(), "doc", swap(fmt.Sprintf("<%s%d>", name, n), name), artifact.UpdateOptions{}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	want := ""
	for _, name := range names {
		want += strings.Repeat(name+"\n", each)
	}
	last := 1 + each*len(names)
	b.text(t, "doc", b.a, last, want)
	b.fold(t, "run_1")
	b.fold(t, "run_2")
	b.text(t, "doc", b.a, last, want)

	replay, number := text.String(), 1
	for _, e := range events(t, b) {
		var u artel.ArtifactUpdated
		if err := json.Unmarshal(e.Data, &u); err != nil {
			t.Fatal(err)
		}
		if u.BaseVersion != number || u.Version != number+1 {
			t.Fatalf("after version %d comes %d on %d", number, u.Version, u.BaseVersion)
		}
		number = u.Version
		var err error
		if replay, err = edit.ApplyChanges(replay, u.Spans); err != nil {
			t.Fatal(err)
		}
	}
	if replay != want || number != last {
		t.Errorf("the log leads to version %d: %q", number, replay)
	}
}

// Of writers that all want the same version, one wins.
func TestIfVersionHasOneWinner(t *testing.T) {
	b := newBench(t, rowstest.Address(t))
	must[artel.Artifact](t)(b.workspace("", b.a).Create(t.Context(), "doc", "", "a", ""))
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 8 {
		w := b.workspace("", b.a)
		wg.Go(func() {
			_, err := w.Edit.Rewrite(t.Context(), "doc", fmt.Sprint(i), 1)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if !errors.Is(err, artel.Conflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if a := must[artel.Artifact](t)(b.workspace("", b.a).Get(t.Context(), "doc")); won != 1 || a.Version != 2 {
		t.Errorf("%d won, the artifact is at version %d", won, a.Version)
	}
}

// A run and a person count in one text, at once, again and again: no step is
// lost, and of two saves for one version one is refused.
func TestTwoWritersManyTimes(t *testing.T) {
	t.Parallel()
	const rounds = 100 // and twenty times as many in make soak
	b := newBench(t, "")
	must[artel.Artifact](t)(b.workspace("", b.a).Create(t.Context(), "doc", "", "run <0>\nperson <0>\n", ""))
	must[artel.Artifact](t)(b.workspace("", b.a).Create(t.Context(), "saved", "", "0", ""))
	run, person := b.workspace("run_1", b.a), b.workspace("", b.a)
	saved := 1
	for i := range rounds {
		var wg sync.WaitGroup
		count := func(w *artifact.Workspace, name string) {
			wg.Go(func() {
				if _, _, err := w.Edit.Update(t.Context(), "doc", swap(fmt.Sprintf("%s <%d>", name, i), fmt.Sprintf("%s <%d>", name, i+1)), artifact.UpdateOptions{}); err != nil {
					t.Error(err)
				}
			})
		}
		count(run, "run")
		count(person, "person")
		var won [2]error
		for k, w := range []*artifact.Workspace{run, person} {
			wg.Go(func() {
				text := fmt.Sprintf("%d of %d", k, i)
				_, won[k] = w.Edit.Save(t.Context(), "saved", saved, artifact.Draft{Text: &text})
			})
		}
		wg.Wait()
		if (won[0] == nil) == (won[1] == nil) {
			t.Fatalf("round %d: %v, %v", i, won[0], won[1])
		}
		for _, err := range won {
			if err != nil && artel.CodeOf(err) != artifact.CodeStale {
				t.Fatal(err)
			}
		}
		saved++
		if t.Failed() {
			return
		}
		if i%40 == 39 {
			b.fold(t, "run_1")
		}
	}
	b.text(t, "doc", b.a, 1+2*rounds, fmt.Sprintf("run <%d>\nperson <%d>\n", rounds, rounds))
	if a := must[artel.Artifact](t)(person.Get(t.Context(), "saved")); a.Version != saved {
		t.Errorf("saved %d times, the artifact is at version %d", saved-1, a.Version)
	}
}

// What a workspace remembers stays within bounds, and forgetting is harmless.
func TestLargeTexts(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	w := b.workspace("run_1", b.a)
	filler := strings.Repeat("0123456789abcde\n", 15<<20/16)
	for i := range 6 {
		id := artel.ArtifactID(fmt.Sprint("doc", i))
		must[artel.Artifact](t)(w.Create(t.Context(), id, "", filler+"end", ""))
	}
	for i := range 6 {
		update(t, w, artel.ArtifactID(fmt.Sprint("doc", i)), "end", fmt.Sprint(i))
	}
	b.text(t, "doc3", b.a, 2, filler+"3")
}

func BenchmarkUpdate(b *testing.B) {
	for _, size := range []int{10_000, 1_000_000, 20_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			bench := newBench(b, filepath.Join(b.TempDir(), "rows.db"))
			w := bench.workspace("run_1", bench.a)
			must[artel.Artifact](b)(w.Create(b.Context(), "doc", "", strings.Repeat("x\n", size/2)+"a", ""))
			b.SetBytes(int64(size))
			n := 0
			for b.Loop() {
				update(b, w, "doc", string(rune('a'+n%2)), string(rune('a'+(n+1)%2)))
				n++
			}
		})
	}
}
