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
