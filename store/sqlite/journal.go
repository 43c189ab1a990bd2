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

// journalsQuery examines the artifacts one by one; the edits of each are
// adjacent in the index.
const journalsQuery = `SELECT a.owner, a.conversation, a.id, EXISTS (SELECT 1 FROM edits e
		WHERE e.owner = a.owner AND e.conversation = a.conversation AND e.folded = 1 AND e.artifact = a.id AND e.created_at < ?
		AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.owner = e.owner AND v.conversation = e.conversation AND v.artifact = e.artifact AND v.number = e.number))
		AND EXISTS (SELECT 1 FROM conversations c WHERE c.owner = a.owner AND c.id = a.conversation AND c.deleted_at IS NULL)
	FROM artifacts a WHERE (a.owner, a.conversation, a.id) > (?, ?, ?) ORDER BY a.owner, a.conversation, a.id LIMIT ?`

// Journals implements [store.Store].
func (s *Store) Journals(ctx context.Context, before time.Time, after store.JournalKey, limit int) (found []store.JournalKey, last store.JournalKey, err error) {
	const op = "store.Journals"
	err = s.read(ctx, op, func(c *session) error {
		t := &tx{session: c, ctx: ctx}
		defer t.end()
		n := 0
		err := t.rows(op, "", journalsQuery, []any{micros(before), after.Owner, after.Conversation, after.Artifact, limit}, func(rows *sql.Rows) error {
			var j store.JournalKey
			var compactable bool
			if err := rows.Scan(&j.Owner, &j.Conversation, &j.Artifact, &compactable); err != nil {
				return err
			}
			if compactable {
				found = append(found, j)
			}
			n, last = n+1, j
			return ctx.Err()
		})
		if n < limit {
			last = store.JournalKey{}
		}
		return err
	})
	if err != nil {
		return nil, store.JournalKey{}, err
	}
	return found, last, nil
}

type journal struct{ *tx }

const (
	// One index step each for folded and unfolded edits.
	newestNumberQuery = `SELECT max(
		coalesce((SELECT max(number) FROM edits WHERE owner = ?1 AND conversation = ?2 AND artifact = ?3 AND folded = 0), 0),
		coalesce((SELECT max(number) FROM edits WHERE owner = ?1 AND conversation = ?2 AND artifact = ?3 AND folded = 1), 0))`

	insertEdit    = "INSERT INTO edits (owner, conversation, artifact, folded, " + versionNames + ", text) VALUES (?, ?, ?, 0" + fifteenMarks + ")"
	insertFolded  = "INSERT INTO edits (owner, conversation, artifact, folded, " + versionNames + ", text) VALUES (?, ?, ?, 1" + fifteenMarks + ")"
	insertVersion = "INSERT INTO versions (owner, conversation, artifact, " + versionNames + ", text) VALUES (?, ?, ?" + fifteenMarks + ")"
)

func (t journal) Append(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) (int, error) {
	const op = "store.Journal.Append"
	row, err := newVersionRow(op, id, v, text)
	if err != nil {
		return 0, err
	}
	// Every number was appended to the journal, so the newest is there.
	if err := t.newestNumber(op, c, id, &row.v.Number); err != nil {
		return 0, err
	}
	if row.v.Number++; row.v.Number == 1 {
		if _, err := t.change(op, string(id), "INSERT INTO artifacts (owner, conversation, id, created_at) VALUES (?, ?, ?, ?)",
			t.owner, c, id, row.created); err != nil {
			return 0, err
		}
	}
	_, err = t.change(op, string(id), insertEdit, append([]any{t.owner, c, id}, row.values(text)...)...)
	if err != nil {
		return 0, err
	}
	return row.v.Number, nil
}

// newestNumber reads the newest number of an artifact, 0 if it has none, and checks
// that the conversation exists. Appends are the most frequent update, and one query
// takes less time than two.
func (t journal) newestNumber(op string, c artel.ConversationID, id artel.ArtifactID, number *int) error {
	if c == t.lastConv || c == t.importing {
		if err := t.requireConversation(op, c); err != nil {
			return err
		}
		_, err := t.row(op, string(id), newestNumberQuery, []any{t.owner, c, id}, number)
		return err
	}
	var conversation *int64
	_, err := t.row(op, string(id), "SELECT ("+newestNumberQuery+"), (SELECT number FROM conversations WHERE owner = ?1 AND id = ?2 AND deleted_at IS NULL)",
		[]any{t.owner, c, id}, number, &conversation)
	switch {
	case err != nil:
		return err
	case conversation == nil:
		return noConversation(op, c)
	}
	t.lastConv, t.lastNumber = c, *conversation
	return nil
}

func (t journal) Fold(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error {
	const op = "store.Journal.Fold"
	row, err := newVersionRow(op, id, v, text)
	if err != nil {
		return err
	}
	if err := t.requireConversation(op, c); err != nil {
		return err
	}
	n, err := t.change(op, string(id), `UPDATE edits SET folded = 1 WHERE owner = ? AND conversation = ? AND folded IN (0, 1) AND artifact = ?
		AND number = ?`, t.owner, c, id, v.Number)
	if err != nil {
		return err
	}
	if n == 0 {
		return noVersion(op, id, v.Number)
	}
	if v.Run != "" {
		if _, err := t.change(op, string(id), `UPDATE edits SET folded = 1 WHERE owner = ? AND conversation = ? AND artifact = ?
			AND folded = 0 AND number < ? AND run = ?`, t.owner, c, id, v.Number, v.Run); err != nil {
			return err
		}
	}
	_, err = t.change(op, string(id), insertVersion, append([]any{t.owner, c, id}, row.values(text)...)...)
	if err != nil {
		return err
	}
	return artifacts(t).foldHead(op, c, id, v)
}

func (t journal) DropText(c artel.ConversationID, id artel.ArtifactID, number int) error {
	const op = "store.Journal.DropText"
	v, err := versions(t).get(op, c, id, number)
	if err != nil {
		return err
	}
	if v.IsBinary() {
		return artel.Errorf(artel.Conflict, op, string(id), "version %d is binary and has no text to drop", number)
	}
	_, err = t.change(op, string(id), "UPDATE versions SET text = NULL WHERE owner = ? AND conversation = ? AND artifact = ? AND number = ?",
		t.owner, c, id, number)
	return err
}

func (t journal) Edits(c artel.ConversationID, q store.EditQuery) ([]store.Edit, error) {
	const op = "store.Journal.Edits"
	if err := t.requireConversation(op, c); err != nil {
		return nil, err
	}
	columns := "v.text, " + versionColumns
	if q.Outline {
		columns = "NULL, " + headColumns + ", NULL"
	}
	query := "SELECT v.artifact, v.folded, " + columns + " FROM edits v WHERE v.owner = ? AND v.conversation = ?"
	args := []any{t.owner, c}
	if q.Unfolded {
		query += " AND v.folded = 0"
	} else {
		query += " AND v.folded IN (0, 1)" // makes the query use the index
	}
	if q.Artifact != "" {
		query, args = query+" AND v.artifact = ?", append(args, q.Artifact)
	}
	if q.Run != "" {
		query, args = query+" AND v.run = ?", append(args, q.Run)
	}
	if q.Number > 0 {
		query, args = query+" AND v.number = ?", append(args, q.Number)
	}
	if q.After > 0 {
		query, args = query+" AND v.number > ?", append(args, q.After)
	}
	var edits []store.Edit
	err := t.rows(op, string(c), query+" ORDER BY v.artifact, v.number", args, func(rows *sql.Rows) error {
		var e store.Edit
		var r versionRow
		if err := rows.Scan(append([]any{&e.Artifact, &e.Folded, &e.Text}, r.dest()...)...); err != nil {
			return err
		}
		v, err := r.version()
		e.Version = v
		edits = append(edits, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	return edits, nil
}

func (t journal) Compact(c artel.ConversationID, id artel.ArtifactID, remove []int, rewritten []store.Edit) error {
	const op = "store.Journal.Compact"
	if err := t.requireConversation(op, c); err != nil {
		return err
	}
	if err := versions(t).used(op, c, id); err != nil {
		return err
	}
	var newest int
	if _, err := t.row(op, string(id), newestNumberQuery, []any{t.owner, c, id}, &newest); err != nil {
		return err
	}
	if slices.Contains(remove, newest) {
		return artel.Errorf(artel.Conflict, op, string(id), "edit %d is the newest: its number is needed for the next edit", newest)
	}
	const one = " WHERE owner = ? AND conversation = ? AND folded = 1 AND artifact = ? AND number = ?"
	for _, e := range rewritten {
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
	for _, number := range remove {
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
	return artel.Errorf(artel.Conflict, op, string(id), "no folded edit %d", number)
}
