// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/storetest"
)

var errStep = errors.New("the disk has failed")

// TestEveryStepFails lets every step of every write fail, one after the other:
// before and after each call of the transaction, before the commit and after
// it. What failed has left nothing, what was committed is there whole, and the
// same workspaces go on to the end that there is without failures.
func TestEveryStepFails(t *testing.T) {
	b := newBench(t, "")
	clock := start
	b.options.Now = func() time.Time { clock = clock.Add(time.Second); return clock }
	rows := b.store
	for _, op := range stepOperations(b) {
		if err := op.run(); err != nil {
			t.Fatalf("%s: %v", op.name, err)
		}
	}
	whole := outline(t, b)

	b.begin(t)
	left, failed := 0, "" // steps until one fails; the one that did
	b.store = &storetest.Steps{Store: rows, At: func(step string) error {
		if left--; left == -1 {
			failed = step
			return errStep
		}
		return nil
	}}
	names := map[string]bool{}
	for _, op := range stepOperations(b) {
		before := dump(t, b, rows)
		for k := 0; ; k++ {
			left, failed = k, ""
			err := op.run()
			if failed == "" && err == nil {
				break // it has no more steps
			}
			if !errors.Is(err, errStep) {
				t.Fatalf("%s, step %d, %s: %v", op.name, k, failed, err)
			}
			names[failed] = true
			after := dump(t, b, rows)
			if failed == "commit after" { // nobody was told, and it is done
				if after == before {
					t.Errorf("%s was committed and is not there", op.name)
				}
				break
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Fatalf("%s, step %d, %s: it left something (-before +after):\n%s", op.name, k, failed, diff)
			}
		}
	}
	left = -1
	if end := outline(t, b); end != whole {
		t.Errorf("the end is\n%s\nand without failures\n%s", end, whole)
	}
	for _, name := range []string{"Journal.Append", "Journal.Fold", "Journal.DropText", "Versions.Claim", "Journal.Compact", "Events.Append", "Artifacts.Head", "commit"} {
		if !names[name+" before"] || !names[name+" after"] {
			t.Errorf("%s has not failed", name)
		}
	}
}

// A stepOperation is one thing that people and runs do.
type stepOperation struct {
	name string
	run  func() error
}

// stepOperations are all kinds of writes, by a run and a person in turns.
func stepOperations(b *bench) []stepOperation {
	run := b.collection().Workspace(logged(b, "run_1", "lead_agent"))
	person := b.collection().Workspace(logged(b, "", artifact.AuthorUser))
	write := func(_ artel.Artifact, err error) error { return err }
	edited := func(w *artifact.Workspace, old, repl string) func() error {
		return func() error {
			_, _, err := w.Edit.Update(background, "doc", swap(old, repl), artifact.UpdateOptions{})
			return err
		}
	}
	upload := func() error {
		var all []artifact.Staged
		for _, name := range []string{"a.txt", "b.txt"} {
			s, err := b.collection().Uploads.Stage(background, strings.NewReader("uploaded "+name), media.Hint{Filename: name})
			if err != nil {
				return err
			}
			all = append(all, s)
		}
		_, err := b.collection().Uploads.Add(background, artel.Local, b.conv, all)
		return err
	}
	fold := func() error {
		return b.foldRun("run_1")
	}
	claim := func() error {
		return b.store.Update(background, artel.Local, func(tx store.Tx) error {
			return tx.Versions.Claim(b.conv, []artel.ArtifactID{"a.txt"}, b.a)
		})
	}
	condense := func() error {
		_, err := b.collection().CompactJournal(background, store.JournalKey{Owner: artel.Local, Conversation: b.conv, Artifact: "doc"}, start.Add(time.Hour*1e5))
		return err
	}
	text := "one two three four five, saved"
	return []stepOperation{
		{"create", func() error { return write(run.Create(background, "doc", "Doc", "one two three four five", "")) }},
		{"update", edited(run, "one", "1")},
		{"update by a person", edited(person, "two", "2")},
		{"update after it", edited(run, "three", "3")},
		{"create another", func() error { return write(run.Create(background, "note", "", "note", "")) }},
		{"rename", func() error { return write(run.Edit.Rename(background, "doc", "Document", 0)) }},
		{"fold", fold},
		{"upload", upload},
		{"claim", claim},
		{"save", func() error { return write(person.Edit.Save(background, "doc", 0, artifact.Draft{Text: &text})) }},
		{"rewrite", func() error { return write(person.Edit.Rewrite(background, "note", "another note", 0)) }},
		{"delete", func() error { return write(person.Edit.Delete(background, "doc", 0)) }},
		{"restore", func() error { return write(person.Edit.Restore(background, "doc", 0, 0)) }},
		{"condense", condense},
	}
}

// dump is every row of the conversation that artifacts have written.
func dump(t *testing.T, b *bench, s store.Store) string {
	t.Helper()
	var out []any
	err := s.View(t.Context(), artel.Local, func(tx store.Tx) error {
		out = nil
		edits, err := tx.Journal.Edits(b.conv, store.EditQuery{})
		if err != nil {
			return err
		}
		events, err := tx.Events.Read(b.conv, 0, 10_000)
		if err != nil {
			return err
		}
		heads, err := tx.Artifacts.Heads(b.conv, b.a)
		if err != nil {
			return err
		}
		out = append(out, edits, events, heads)
		ids, err := tx.Versions.Artifacts(b.conv)
		for _, id := range ids {
			list, err := tx.Versions.List(b.conv, id)
			if err != nil {
				return err
			}
			for _, v := range list {
				text, err := tx.Versions.Text(b.conv, id, v.Number)
				out = append(out, v, text, artel.KindOf(err))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// outline is what there is in the end, but for times.
func outline(t *testing.T, b *bench) string {
	t.Helper()
	var out strings.Builder
	for _, a := range must[[]artel.Artifact](t)(b.collection().List(t.Context(), artel.Local, b.conv, b.a)) {
		text, v, err := b.collection().Text(t.Context(), artel.Local, b.conv, a.ID, 0, b.a)
		fmt.Fprintf(&out, "%s %d %q %q %v %v\n", a.ID, a.Version, a.Title, text, v.Update, err)
		for _, e := range must[[]artifact.Entry](t)(b.collection().Versions.History(t.Context(), artel.Local, b.conv, a.ID, artifact.Journal)) {
			fmt.Fprintf(&out, "\t%d after %d, %s, visible %v\n", e.Number, e.Parent, e.Update, e.Visible)
		}
	}
	fmt.Fprintf(&out, "%d events\n", len(events(t, b)))
	return out.String()
}
