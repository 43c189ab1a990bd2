// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// journalTwins are those of the clauses about condensing.
func journalTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"versions/outline": nouns(func(tx *store.Tx) { // with the changes
			real := tx.Journal
			tx.Journal = brokenJournal{Journal: real, edits: func(c artel.ConversationID, q store.EditQuery) ([]store.Edit, error) {
				q.Outline = false
				return real.Edits(c, q)
			}}
		}),
		"versions/fold in parts": nouns(func(tx *store.Tx) { // the first edit too
			real := tx.Journal
			tx.Journal = brokenJournal{Journal: real, inner: func(c artel.ConversationID, id artel.ArtifactID, run artel.RunID, after, before, limit int) (int, error) {
				return real.FoldInner(c, id, run, after-1, before, limit)
			}}
		}),
		"versions/replay": nouns(func(tx *store.Tx) { // of all edits, also those of other branches
			real := tx.Journal
			tx.Journal = brokenJournal{Journal: real, replay: func(c artel.ConversationID, id artel.ArtifactID, n int) (store.Replay, error) {
				r, err := real.Replay(c, id, n)
				if err == nil && n > 1 && r.Edits > 0 {
					r.Changes = nil
					var edits []store.Edit
					edits, err = real.Edits(c, store.EditQuery{Artifact: id, After: n - r.Edits - 1})
					for _, e := range edits {
						if e.Number <= n {
							r.Changes = append(r.Changes, e.Changes...)
						}
					}
				}
				return r, err
			}}
		}),
		"versions/condense": nouns(func(tx *store.Tx) { // what is left stays as it was
			real := tx.Journal
			tx.Journal = brokenJournal{Journal: real, condense: func(c artel.ConversationID, id artel.ArtifactID, gone []int, _ []store.Edit) error {
				return real.Compact(c, id, gone, nil)
			}}
		}),
		"store/journals": func(t *twin) { // those made at the time are older too
			t.journals = func(ctx context.Context, before time.Time, after store.JournalKey, limit int) ([]store.JournalKey, store.JournalKey, error) {
				return t.Store.Journals(ctx, before.Add(time.Microsecond), after, limit)
			}
		},
	}
}
