// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/store"
)

// TestCondense lets go of edits in more conversations than are looked at in one
// step, of which some are younger.
func TestCondense(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	b := newBench(t, nil, func(c *app.Config) { c.Options.Now = func() time.Time { return now } })
	list := artifact.New(b.config.Store, b.config.Blobs, artifact.Options{Now: func() time.Time { return now }})
	// work makes documents that one run edits twice each.
	work := func(c artel.ConversationID, documents int) {
		err := b.config.Store.Update(apptest.Context(t), artel.Local, func(tx store.Tx) error {
			for i := range documents {
				for n, text := range []string{"one two", "1 two", "1 2"} {
					v := artel.Version{Parent: n, Run: "run_1", Digest: artel.NewDigest([32]byte{1}), MediaInfo: artel.MediaInfo{Kind: artel.KindText, Size: int64(len(text))}, CreatedAt: now}
					if _, err := tx.Journal.Append(c, artel.ArtifactID(fmt.Sprintf("doc_%d", i)), v, &text); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err == nil {
			err = artifact.FoldRun(apptest.Context(t), b.config.Store, artel.Local, c, "run_1", func(fold func(store.Tx) error) error {
				return b.config.Store.Update(apptest.Context(t), artel.Local, fold)
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const many = 260 // in each of two conversations, so that there is a second step
	first, second := b.conversation(), b.conversation()
	work(first, many)
	work(second, many)
	now = now.Add(24 * time.Hour)
	young := b.conversation()
	work(young, 1)
	for _, want := range []int{many * 2 * 2, 0} {
		if n, err := b.Condense(apptest.Context(t), 23*time.Hour); err != nil || n != want {
			t.Fatalf("%d edits are gone, %v; want %d", n, err, want)
		}
	}
	for c, id := range map[artel.ConversationID]artel.ArtifactID{first: "doc_0", second: "doc_259", young: "doc_0"} {
		if got := b.text(c, id, ""); got != "1 2" {
			t.Errorf("the text is %q", got)
		}
		_, err := list.Versions.Text(apptest.Context(t), artel.Local, c, id, 1)
		if c == young && err != nil || c != young && artel.KindOf(err) != artel.NotFound {
			t.Errorf("the first edit: %v", err)
		}
	}
}
