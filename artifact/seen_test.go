// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"errors"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

// A process that takes over a run has seen what the run has seen: what was there
// at the beginning and what the run wrote. Times play no part; all clocks stand.
func TestResumedRunHasSeenWhatItSaw(t *testing.T) {
	address := rowstest.Address(t)
	b := newBench(t, address)
	b.options.Now = func() time.Time { return start }
	person := b.workspace("", b.a)
	for _, id := range []artel.ArtifactID{"doc", "own", "shared", "given"} {
		must[artel.Artifact](t)(person.Create(t.Context(), id, "", "first\nline\n", ""))
	}
	b.beginRun(t, "run_1", b.a)
	first := b.workspace("run_1", b.a)
	for _, id := range []artel.ArtifactID{"own", "shared"} {
		update(t, first, id, "first", "1st")
	}
	must[artel.Artifact](t)(first.Create(t.Context(), "made", "", "by the run", ""))
	must[artel.Artifact](t)(first.Edit.Rewrite(t.Context(), "given", "whole", 0))
	for _, id := range []artel.ArtifactID{"doc", "shared"} {
		update(t, person, id, "line", "a person's line")
	}
	update(t, first, "shared", "1st", "one") // merged with the person's, which the run has not read
	must[artel.Artifact](t)(person.Create(t.Context(), "new", "", "by a person meanwhile", ""))

	taken := rowstest.At(t, address) // another process
	second := artifact.New(taken, b.blobs, b.options).Workspace(artifact.WorkspaceConfig{
		Owner: artel.Local, Conversation: b.conv, Run: "run_1", Message: b.a, Author: "lead_agent",
	})
	for _, id := range []artel.ArtifactID{"doc", "shared", "new"} {
		if _, err := second.Edit.Rewrite(t.Context(), id, "rewritten", 0); !errors.Is(err, artel.Conflict) || artel.CodeOf(err) != artifact.CodeStale {
			t.Errorf("a rewrite of %s, which a person has changed: %v", id, err)
		}
		if _, err := second.Edit.Delete(t.Context(), id, 0); artel.CodeOf(err) != artifact.CodeStale {
			t.Errorf("a deletion of %s, which a person has changed: %v", id, err)
		}
	}
	b.text(t, "doc", b.a, 2, "first\na person's line\n")
	if _, _, err := second.Edit.Update(t.Context(), "doc", swap("first", "1st"), artifact.UpdateOptions{}); err != nil {
		t.Error(err)
	}
	b.text(t, "doc", b.a, 3, "1st\na person's line\n") // merged
	for _, id := range []artel.ArtifactID{"own", "made", "given"} {
		if _, err := second.Edit.Rewrite(t.Context(), id, "rewritten", 0); err != nil {
			t.Errorf("a rewrite of %s, which only the run has changed: %v", id, err)
		}
	}
	if _, _, err := second.Text(t.Context(), "shared", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Edit.Rewrite(t.Context(), "shared", "rewritten", 0); err != nil {
		t.Errorf("a rewrite of what it has read: %v", err)
	}
	b.fold(t, "run_1")
	err := b.store.View(t.Context(), artel.Local, func(tx store.Tx) error {
		notes, err := tx.Notes.List(store.NoteQuery{Conversation: b.conv})
		if err == nil && len(notes) != 0 {
			t.Errorf("the end of the run has left %+v", notes)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
