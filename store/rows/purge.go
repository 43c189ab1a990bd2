// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"time"

	"github.com/artelhq/artel"
)

// A purgeable is a conversation that Purge has begun to remove.
type purgeable struct {
	owner artel.Owner
	id    artel.ConversationID
}

// purgeTime is the approximate duration of one transaction of Purge.
const purgeTime = 10 * time.Millisecond

// purgeQueries remove some rows of a conversation, referring rows before the rows
// they refer to. Rows that may hold whole documents are removed a few at a time.
func (t *Tx) purgeQueries() []string {
	piece := func(table, rows string) string {
		return "DELETE FROM " + table + " WHERE " + t.Some(table, "owner = ? AND conversation = ? LIMIT "+rows)
	}
	return []string{
		piece("events", "100"), piece("edits", "10"), piece("versions", "10"), piece("messages", "20"),
		piece("contexts", "20"), piece("segments", "20"), piece("variables", "20"), piece("notes", "20"),
		"DELETE FROM runs WHERE owner = ?1 AND conversation = ?2 AND id IN (SELECT id FROM runs WHERE owner = ?1 AND conversation = ?2 LIMIT 100)",
		"DELETE FROM artifacts WHERE owner = ?1 AND conversation = ?2 AND id IN (SELECT id FROM artifacts WHERE owner = ?1 AND conversation = ?2 LIMIT 100)",
		"DELETE FROM conversations WHERE owner = ? AND id = ?",
	}
}

// Purge implements [store.Store].
func (s Store) Purge(ctx context.Context, before time.Time) (int, error) {
	const op = "store.Purge"
	var list []purgeable
	err := s.db.Write(ctx, Deployment, func(t *Tx) error {
		list = nil
		if _, err := t.change(op, "", "UPDATE conversations SET purging = 1 WHERE deleted_at < ? AND purging = 0", micros(before)); err != nil {
			return err
		}
		return t.rows(op, "", "SELECT owner, id FROM conversations WHERE deleted_at IS NOT NULL AND purging = 1 ORDER BY deleted_at, owner, id", nil, func(rows Row) error {
			var d purgeable
			err := rows.Scan(&d.owner, &d.id)
			list = append(list, d)
			return err
		})
	})
	if err != nil {
		return 0, err
	}
	gone := 0
	for _, d := range list {
		for done := false; !done; {
			err := s.db.Write(ctx, d.owner, func(t *Tx) (err error) {
				done, err = t.purge(op, d.id)
				return err
			})
			if err != nil {
				return gone, err
			}
		}
		gone++
	}
	return gone, nil
}

// purge removes rows of a conversation for about purgeTime. done reports that no
// rows are left.
func (t *Tx) purge(op string, id artel.ConversationID) (done bool, err error) {
	end := time.Now().Add(purgeTime)
	for _, query := range t.purgeQueries() {
		for n := int64(1); n > 0; {
			if n, err = t.change(op, string(id), query, t.owner, id); err != nil {
				return false, err
			}
			if n > 0 && time.Now().After(end) {
				return false, nil
			}
		}
	}
	return true, nil
}
