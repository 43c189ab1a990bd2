// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type notes struct{ *Tx }

const noteColumns = "id, conversation, run, message, kind, open, body, created_at"

func (t notes) Put(n store.Note) error {
	const op = "store.Notes.Put"
	if err := t.requireConversation(op, n.Conversation); err != nil {
		return err
	}
	if err := checkText(op, n.ID, n.ID, string(n.Run), string(n.Message), n.Kind); err != nil {
		return err
	}
	if n.Body == nil {
		return artel.Errorf(artel.Invalid, op, n.ID, "has no body")
	}
	if err := checkJSON(op, n.ID, n.Body); err != nil {
		return err
	}
	changed, err := t.change(op, n.ID, "UPDATE notes SET run = ?, message = ?, kind = ?, open = ?, body = ? WHERE owner = ? AND id = ? AND conversation = ?",
		n.Run, n.Message, n.Kind, n.Open, string(n.Body), t.owner, n.ID, n.Conversation)
	if err != nil || changed > 0 {
		return err
	}
	_, err = t.change(op, n.ID, "INSERT INTO notes (owner, "+noteColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		t.owner, n.ID, n.Conversation, n.Run, n.Message, n.Kind, n.Open, string(n.Body), micros(n.CreatedAt))
	return err
}

func (t notes) Get(id string) (store.Note, error) {
	const op = "store.Notes.Get"
	if err := t.lock(op, "notes", id); err != nil {
		return store.Note{}, err
	}
	found, err := t.list(op, id, "owner = ? AND id = ?"+notDeleted("notes"), t.owner, id)
	if err == nil && len(found) == 0 {
		err = noNote(op, id)
	}
	if err != nil {
		return store.Note{}, err
	}
	return found[0], nil
}

func (t notes) List(q store.NoteQuery) ([]store.Note, error) {
	const op = "store.Notes.List"
	if err := t.requireConversation(op, q.Conversation); err != nil {
		return nil, err
	}
	where := "owner = ? AND conversation = ?"
	args := []any{t.owner, q.Conversation}
	if q.Kind != "" {
		where += " AND kind = ?"
		args = append(args, q.Kind)
	}
	if q.Run != "" {
		where += " AND run = ?"
		args = append(args, q.Run)
	}
	if q.Open {
		where += " AND open = 1"
	}
	return t.list(op, string(q.Conversation), where, args...)
}

func (t notes) Delete(id string) error {
	const op = "store.Notes.Delete"
	if err := t.lock(op, "notes", id); err != nil {
		return err
	}
	n, err := t.change(op, id, "DELETE FROM notes WHERE owner = ? AND id = ?"+notDeleted("notes"), t.owner, id)
	if err == nil && n == 0 {
		err = noNote(op, id)
	}
	return err
}

func noNote(op, id string) error {
	return artel.Errorf(artel.NotFound, op, artel.Shorten(id, 80), "no such note")
}

func (t notes) list(op, subject, where string, args ...any) ([]store.Note, error) {
	return list(t.Tx, op, subject, "SELECT "+noteColumns+" FROM notes WHERE "+where+" ORDER BY n", args, func(rows Row, n *store.Note) error {
		return rows.Scan(&n.ID, &n.Conversation, &n.Run, &n.Message, &n.Kind, &n.Open, (*jsonColumn)(&n.Body), (*timeColumn)(&n.CreatedAt))
	})
}
