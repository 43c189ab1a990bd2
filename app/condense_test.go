// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/edit"
	"github.com/artelhq/artel/store"
)

// TestCondense lets go of edits in more conversations than are looked at in one
// step, of which some are younger.
func TestCondense(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	b := newBench(t, nil, func(c *app.Config) { c.Options.Now = func() time.Time { return now } })
	list := artifact.New(b.config.Store, b.config.Blobs, artifact.Options{Now: func() time.Time { return now }})
	work := func(c artel.ConversationID, id artel.ArtifactID) {
		w := list.Workspace(artifact.WorkspaceConfig{Owner: artel.Local, Conversation: c, Run: "run_1", Author: "lead_agent"})
		_, err := w.Create(t.Context(), id, "", "one two", "")
		for _, e := range []edit.Edit{{Old: "one", New: "1"}, {Old: "two", New: "2"}} {
			if err == nil {
				_, _, err = w.Update(t.Context(), id, []edit.Edit{e}, artifact.UpdateOptions{})
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fold := func(c artel.ConversationID) {
		if err := b.config.Store.Update(t.Context(), artel.Local, func(tx store.Tx) error { return artifact.FoldRun(tx, c, "run_1") }); err != nil {
			t.Fatal(err)
		}
	}
	const many = 300 // three artifacts each, so that there is a second step
	var all []artel.ConversationID
	for range many {
		c := b.conversation()
		for i := range 3 {
			work(c, artel.ArtifactID(fmt.Sprintf("doc_%d", i)))
		}
		fold(c)
		all = append(all, c)
	}
	now = now.Add(24 * time.Hour)
	young := b.conversation()
	work(young, "doc")
	fold(young)
	for _, want := range []int{many * 3 * 2, 0} {
		if n, err := b.Condense(t.Context(), 23*time.Hour); err != nil || n != want {
			t.Fatalf("%d edits are gone, %v; want %d", n, err, want)
		}
	}
	for _, c := range []artel.ConversationID{all[0], all[many-1], young} {
		id := artel.ArtifactID("doc_2")
		if c == young {
			id = "doc"
		}
		if got := b.text(c, id, ""); got != "1 2" {
			t.Errorf("the text is %q", got)
		}
		_, err := list.TextAt(t.Context(), artel.Local, c, id, 1)
		if c == young && err != nil || c != young && artel.KindOf(err) != artel.NotFound {
			t.Errorf("the first edit: %v", err)
		}
	}
}
