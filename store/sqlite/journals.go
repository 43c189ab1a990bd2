// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// journalsQuery looks at the artifacts one by one; the edits of each are close
// together in the index.
const journalsQuery = `SELECT a.owner, a.conversation, a.id, EXISTS (SELECT 1 FROM edits e
		WHERE e.owner = a.owner AND e.conversation = a.conversation AND e.folded = 1 AND e.artifact = a.id AND e.created_at < ?
		AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.owner = e.owner AND v.conversation = e.conversation AND v.artifact = e.artifact AND v.number = e.number))
		AND EXISTS (SELECT 1 FROM conversations c WHERE c.owner = a.owner AND c.id = a.conversation AND c.deleted_at IS NULL)
	FROM artifacts a WHERE (a.owner, a.conversation, a.id) > (?, ?, ?) ORDER BY a.owner, a.conversation, a.id LIMIT ?`

// Journals implements [store.Store].
func (s *Store) Journals(ctx context.Context, before time.Time, after store.Journal, limit int) (found []store.Journal, last store.Journal, err error) {
	const op = "store.Journals"
	err = s.read(ctx, op, func(c *session) error {
		t := &tx{session: c, ctx: ctx}
		defer t.end()
		n := 0
		err := t.rows(op, "", journalsQuery, []any{micros(before), after.Owner, after.Conversation, after.Artifact, limit}, func(rows *sql.Rows) error {
			var j store.Journal
			var there bool
			if err := rows.Scan(&j.Owner, &j.Conversation, &j.Artifact, &there); err != nil {
				return err
			}
			if there {
				found = append(found, j)
			}
			n, last = n+1, j
			return ctx.Err()
		})
		if n < limit {
			last = store.Journal{}
		}
		return err
	})
	if err != nil {
		return nil, store.Journal{}, err
	}
	return found, last, nil
}

func (t versions) Condense(c artel.ConversationID, id artel.ArtifactID, gone []int, kept []store.Edit) error {
	const op = "store.Versions.Condense"
	if err := t.known(op, c); err != nil {
		return err
	}
	if err := t.used(op, c, id); err != nil {
		return err
	}
	var newest int
	if _, err := t.row(op, string(id), newestNumber, []any{t.owner, c, id}, &newest); err != nil {
		return err
	}
	if slices.Contains(gone, newest) {
		return artel.Errorf(artel.Conflict, op, string(id), "edit %d is the newest, whose number is needed", newest)
	}
	const one = " WHERE owner = ? AND conversation = ? AND folded = 1 AND artifact = ? AND number = ?"
	for _, e := range kept {
		row, err := newVersionRow(op, id, e.Version, e.Text)
		if err != nil {
			return err
		}
		n, err := t.change(op, string(id), "UPDATE edits SET parent = ?, changes = ?, text = ?"+one, e.Parent, row.changes, e.Text, t.owner, c, id, e.Number)
		if err == nil && n == 0 {
			err = notFolded(op, id, e.Number)
		}
		if err != nil {
			return err
		}
	}
	for _, number := range gone {
		n, err := t.change(op, string(id), "DELETE FROM edits"+one, t.owner, c, id, number)
		if err == nil && n == 0 {
			err = notFolded(op, id, number)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func notFolded(op string, id artel.ArtifactID, number int) error {
	return artel.Errorf(artel.Conflict, op, string(id), "there is no folded edit %d", number)
}
