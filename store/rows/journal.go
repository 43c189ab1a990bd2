// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"database/sql/driver"
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
func (s Store) Journals(ctx context.Context, before time.Time, after store.JournalKey, limit int) (found []store.JournalKey, last store.JournalKey, err error) {
	const op = "store.Journals"
	err = s.db.Read(ctx, op, Deployment, func(t *Tx) error {
		n := 0
		err := t.rows(op, "", journalsQuery, []any{micros(before), after.Owner, after.Conversation, after.Artifact, limit}, func(rows Row) error {
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

type journal struct{ *Tx }

const (
	// One index step each for folded and unfolded edits.
	// Written with LIMIT, since PostgreSQL reads all rows for max where it expects few.
	newestNumberQuery = `SELECT coalesce(max(number), 0) FROM (
		SELECT * FROM (SELECT number FROM edits WHERE owner = ?1 AND conversation = ?2 AND artifact = ?3 AND folded = 0 ORDER BY number DESC LIMIT 1) AS open
		UNION ALL SELECT * FROM (SELECT number FROM edits WHERE owner = ?1 AND conversation = ?2 AND artifact = ?3 AND folded = 1 ORDER BY number DESC LIMIT 1) AS closed) AS newest`

	// No row if the conversation is missing. It is used where updates are serial, and
	// written for SQLite, whose max takes two values.
	newestIfConversation = `SELECT max(
		coalesce((SELECT max(number) FROM edits WHERE owner = ? AND conversation = ? AND artifact = ? AND folded = 0), 0),
		coalesce((SELECT max(number) FROM edits WHERE owner = ? AND conversation = ? AND artifact = ? AND folded = 1), 0))
		WHERE ? OR EXISTS (SELECT 1 FROM conversations WHERE owner = ? AND id = ? AND deleted_at IS NULL)`

	// InsertEdit is the statement that appends to a journal, the most frequent one.
	InsertEdit    = "INSERT INTO edits (owner, conversation, artifact, folded, " + versionNames + ", text) VALUES (?, ?, ?, 0" + fifteenMarks + ")"
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
	if err := t.later(op, string(id), InsertEdit, append([]any{t.owner, c, id}, row.values(text)...)...); err != nil {
		return 0, err
	}
	if t.importing == "" {
		t.numbers.put(numberKey{t.owner, c, id}, row.v.Number)
	}
	return row.v.Number, nil
}

// newestNumber reads the newest number of an artifact, 0 if it has none, and checks
// that the conversation exists. Appends are the most frequent update, and one query
// takes less time than two.
func (t journal) newestNumber(op string, c artel.ConversationID, id artel.ArtifactID, number *int) error {
	if err := t.usable(op, false); err != nil {
		return err
	}
	if n := t.numbers.get(numberKey{t.owner, c, id}); n > 0 && t.write {
		*number = n
		return nil
	}
	if t.locked() != "" { // the number must be read after the lock was got
		if err := t.requireLater(op, c); err != nil {
			return err
		}
		_, err := t.row(op, string(id), newestNumberQuery, []any{t.owner, c, id}, number)
		return err
	}
	known := c == t.importing || c == t.lastConv && c != ""
	found := false
	err := t.values(op, string(id), newestIfConversation, []any{t.owner, c, id, t.owner, c, id, known, t.owner, c}, 1, func(row []driver.Value) error {
		n, ok := row[0].(int64)
		*number, found = int(n), ok
		return nil
	})
	if err == nil && !found {
		err = noConversation(op, c)
	}
	return err
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

func (t journal) FoldInner(c artel.ConversationID, id artel.ArtifactID, run artel.RunID, after, before, limit int) (int, error) {
	const op = "store.Journal.FoldInner"
	if err := t.requireConversation(op, c); err != nil {
		return 0, err
	}
	n, err := t.change(op, string(id), "UPDATE edits SET folded = 1 WHERE "+t.Some("edits", `owner = ? AND conversation = ? AND folded = 0
		AND artifact = ? AND number > ? AND number < ? AND run = ? ORDER BY number DESC LIMIT ?`), t.owner, c, id, after, before, run, limit)
	return int(n), err
}

func (t journal) DropText(c artel.ConversationID, id artel.ArtifactID, number int) error {
	const op = "store.Journal.DropText"
	if err := t.requireConversation(op, c); err != nil {
		return err
	}
	n, err := t.change(op, string(id), "UPDATE edits SET text = NULL WHERE owner = ? AND conversation = ? AND folded = 0 AND artifact = ? AND number = ?",
		t.owner, c, id, number)
	if err != nil || n > 0 {
		return err
	}
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
	switch {
	case q.Spans:
		columns = "v.number, v.parent, v.run, v.update_type, v.changes"
	case q.NoText:
		columns = "NULL, " + versionColumns
	case q.Outline:
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
	query += " ORDER BY v.artifact, v.number"
	if q.Spans {
		return t.spans(op, c, query, args)
	}
	var edits []store.Edit
	err := t.rows(op, string(c), query, args, func(rows Row) error {
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

// spans returns edits with their changes and little else, of which a fold reads
// thousands.
func (t journal) spans(op string, c artel.ConversationID, query string, args []any) ([]store.Edit, error) {
	var edits []store.Edit
	err := t.values(op, string(c), query, args, 7, func(row []driver.Value) error {
		e := store.Edit{Artifact: artel.ArtifactID(row[0].(string)), Folded: row[1].(int64) != 0}
		e.Number, e.Parent = int(row[2].(int64)), int(row[3].(int64))
		e.Run, e.Update = artel.RunID(row[4].(string)), artel.UpdateType(row[5].(string))
		var r versionRow
		if s, ok := row[6].(string); ok {
			r.changes = &s
		}
		var err error
		e.Changes, err = r.decodeChanges()
		edits = append(edits, e)
		return err
	})
	return edits, err
}

// replayQuery walks from an edit up to the nearest one with a text, newest first.
// Column stored says where that text is. CROSS JOIN makes SQLite look up each parent
// instead of reading all edits of the artifact.
const replayQuery = `WITH RECURSIVE chain (number, parent, step, stored, changes) AS (
		SELECT e.number, e.parent, 0, ` + storedText + `, e.changes FROM edits e
		WHERE e.owner = ?1 AND e.conversation = ?2 AND e.folded IN (0, 1) AND e.artifact = ?3 AND e.number = ?4
	UNION ALL
		SELECT e.number, e.parent, c.step + 1, ` + storedText + `, e.changes FROM chain c CROSS JOIN edits e
		WHERE e.owner = ?1 AND e.conversation = ?2 AND e.folded IN (0, 1) AND e.artifact = ?3 AND e.number = c.parent
		AND c.stored = 0 AND c.parent < c.number
	) SELECT number, stored, CASE WHEN stored = 0 THEN changes END FROM chain ORDER BY step`

const (
	storedNowhere = iota
	storedInVersion
	storedInEdit
	storedText = `CASE WHEN e.folded = 1 AND EXISTS (SELECT 1 FROM versions v WHERE v.owner = ?1 AND v.conversation = ?2 AND v.artifact = ?3
		AND v.number = e.number AND v.text IS NOT NULL) THEN 1 WHEN e.text IS NOT NULL THEN 2 ELSE 0 END`
)

func (t journal) Replay(c artel.ConversationID, id artel.ArtifactID, number int) (store.Replay, error) {
	const op = "store.Journal.Replay"
	if err := t.requireConversation(op, c); err != nil {
		return store.Replay{}, err
	}
	const one = " WHERE owner = ?1 AND conversation = ?2 AND artifact = ?3 AND number = ?4"
	var text *string
	// Most reads are of a version whose text is stored.
	if _, err := t.row(op, string(id), "SELECT text FROM versions"+one, []any{t.owner, c, id, number}, &text); err != nil {
		return store.Replay{}, err
	}
	if text != nil {
		return store.Replay{Base: number, Text: *text}, nil
	}
	var steps [][]artel.Change // newest first
	base, stored := 0, storedNowhere
	err := t.rows(op, string(id), replayQuery, []any{t.owner, c, id, number}, func(rows Row) error {
		var r versionRow
		if err := rows.Scan(&base, &stored, &r.changes); err != nil || stored != storedNowhere {
			return err
		}
		step, err := r.decodeChanges()
		steps = append(steps, step)
		return err
	})
	switch {
	case err != nil:
		return store.Replay{}, err
	case base == 0:
		return store.Replay{}, versions(t).absent(op, c, id, number)
	case stored == storedNowhere:
		return store.Replay{}, artel.Errorf(artel.NotFound, op, string(id), "no text is stored for edit %d or before it", base)
	}
	table := "versions" + one
	if stored == storedInEdit {
		table = "edits" + one + " AND folded IN (0, 1)"
	}
	if _, err := t.row(op, string(id), "SELECT text FROM "+table, []any{t.owner, c, id, base}, &text); err != nil {
		return store.Replay{}, err
	}
	r := store.Replay{Base: base, Text: *text, Edits: len(steps)}
	for _, changes := range slices.Backward(steps) {
		r.Changes = append(r.Changes, changes...)
	}
	return r, nil
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
