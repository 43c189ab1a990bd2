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
	"github.com/artelhq/artel/store/sqlite"
	"github.com/artelhq/artel/store/storetest"
)

// An unlucky is a store of which one step fails, and the step.
type unlucky struct {
	steps *storetest.Steps
	left  int // steps until then
	step  string
}

// mostSteps are more than any write has.
const mostSteps = 60

var errStep = errors.New("the disk has failed")

// fail makes the store of b fail at step k.
func fail(b *bench, k int) *unlucky {
	f := &unlucky{left: k}
	f.steps = &storetest.Steps{Store: b.store, At: func(step string) error {
		if f.left--; f.left == -1 {
			f.step = step
			return errStep
		}
		return nil
	}}
	b.store = f.steps
	return f
}

// TestEveryStepFails lets every step of every write fail, once each: before and
// after each call of the transaction, before the commit and after it. What
// failed has left nothing, what was committed is there whole, and the same
// workspaces go on to the same end.
func TestEveryStepFails(t *testing.T) {
	whole := ""
	names := map[string]bool{}
	for k := -1; ; k++ {
		b := newBench(t, sqlite.Memory)
		clock := start
		b.options.Now = func() time.Time { clock = clock.Add(time.Second); return clock }
		rows := b.store
		f := fail(b, k)
		for _, op := range stepOperations(b) {
			before := ""
			if f.left < mostSteps && f.step == "" { // it may be this one
				before = dump(t, b, rows)
			}
			err := op.run()
			if err == nil {
				continue
			}
			if !errors.Is(err, errStep) {
				t.Fatalf("step %d, %s: %s: %v", k, f.step, op.name, err)
			}
			if before == "" {
				t.Fatalf("%s takes more than %d steps", op.name, mostSteps)
			}
			names[f.step] = true
			after := dump(t, b, rows)
			if f.step == "commit after" {
				if after == before {
					t.Errorf("step %d: %s was committed and is not there", k, op.name)
				}
				continue // nobody was told, and it is done
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("step %d, %s: %s left something (-before +after):\n%s", k, f.step, op.name, diff)
			}
			if err := op.run(); err != nil {
				t.Fatalf("step %d, %s: %s, again: %v", k, f.step, op.name, err)
			}
		}
		end := outline(t, b)
		if k < 0 {
			whole = end
		}
		if end != whole {
			t.Errorf("step %d, %s: the end is\n%s\nand without a failure\n%s", k, f.step, end, whole)
		}
		if k >= 0 && f.step == "" { // there is no such step any more
			break
		}
	}
	for _, name := range []string{"Versions.Append", "Versions.Fold", "Versions.Thin", "Versions.Claim", "Versions.Condense", "Events.Append", "Artifacts.Head", "commit"} {
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
			_, _, err := w.Update(background, "doc", swap(old, repl), artifact.UpdateOptions{})
			return err
		}
	}
	upload := func() error {
		var all []artifact.Staged
		for _, name := range []string{"a.txt", "b.txt"} {
			s, err := b.collection().Stage(background, strings.NewReader("uploaded "+name), media.Hint{Filename: name})
			if err != nil {
				return err
			}
			all = append(all, s)
		}
		_, err := b.collection().Add(background, artel.Local, b.conv, all)
		return err
	}
	fold := func() error {
		return b.store.Update(background, artel.Local, func(tx store.Tx) error { return artifact.FoldRun(tx, b.conv, "run_1") })
	}
	claim := func() error {
		return b.store.Update(background, artel.Local, func(tx store.Tx) error {
			return tx.Versions.Claim(b.conv, []artel.ArtifactID{"a.txt"}, b.a)
		})
	}
	condense := func() error {
		_, err := b.collection().Condense(background, store.Journal{Owner: artel.Local, Conversation: b.conv, Artifact: "doc"}, start.Add(time.Hour*1e5))
		return err
	}
	text := "one two three four five, saved"
	return []stepOperation{
		{"create", func() error { return write(run.Create(background, "doc", "Doc", "one two three four five", "")) }},
		{"update", edited(run, "one", "1")},
		{"update by a person", edited(person, "two", "2")},
		{"update after it", edited(run, "three", "3")},
		{"create another", func() error { return write(run.Create(background, "note", "", "note", "")) }},
		{"rename", func() error { return write(run.Rename(background, "doc", "Document", 0)) }},
		{"fold", fold},
		{"upload", upload},
		{"claim", claim},
		{"save", func() error { return write(person.Save(background, "doc", 0, artifact.Draft{Text: &text})) }},
		{"rewrite", func() error { return write(person.Rewrite(background, "note", "another note", 0)) }},
		{"delete", func() error { return write(person.Delete(background, "doc", 0)) }},
		{"restore", func() error { return write(person.Restore(background, "doc", 0, 0)) }},
		{"condense", condense},
	}
}

// dump is every row of the conversation that artifacts have written.
func dump(t *testing.T, b *bench, s store.Store) string {
	t.Helper()
	var out []any
	err := s.View(t.Context(), artel.Local, func(tx store.Tx) error {
		out = nil
		edits, err := tx.Versions.Edits(b.conv, store.EditQuery{})
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
		for _, e := range must[[]artifact.Entry](t)(b.collection().History(t.Context(), artel.Local, b.conv, a.ID, artifact.Journal)) {
			fmt.Fprintf(&out, "\t%d after %d, %s, visible %v\n", e.Number, e.Parent, e.Update, e.Visible)
		}
	}
	fmt.Fprintf(&out, "%d events\n", len(events(t, b)))
	return out.String()
}
