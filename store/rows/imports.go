// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"time"

	"github.com/artelhq/artel"
)

type imports struct{ *Tx }

func (t imports) Begin(c artel.Conversation, at time.Time) error {
	const op = "store.Imports.Begin"
	if err := conversations(t).create(op, c); err != nil {
		return err
	}
	_, err := t.change(op, string(c.ID), "UPDATE conversations SET importing = 1, deleted_at = ? WHERE owner = ? AND id = ?", micros(at), t.owner, c.ID)
	if err != nil {
		return err
	}
	return t.open(op, c.ID)
}

func (t imports) Continue(id artel.ConversationID, at time.Time) error {
	const op = "store.Imports.Continue"
	n, err := t.change(op, string(id), "UPDATE conversations SET deleted_at = ? WHERE owner = ? AND id = ? AND importing = 1 AND purging = 0", micros(at), t.owner, id)
	if err != nil {
		return err
	}
	if n == 0 {
		return noImport(op, id)
	}
	return t.open(op, id)
}

// open lets the rest of the transaction write to a hidden conversation.
func (t imports) open(op string, id artel.ConversationID) error {
	_, err := t.row(op, string(id), "SELECT number FROM conversations WHERE owner = ? AND id = ?", []any{t.owner, id}, &t.importingNumber)
	if err == nil {
		t.importing = id
	}
	return err
}

func (t imports) Version(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error {
	const op = "store.Imports.Version"
	row, err := newVersionRow(op, id, v, text)
	if err != nil {
		return err
	}
	if t.importing != c || c == "" {
		return noImport(op, c)
	}
	var newest int
	if _, err := t.row(op, string(id), newestNumberQuery, []any{t.owner, c, id}, &newest); err != nil {
		return err
	}
	if v.Number <= newest || v.Number < 1 {
		return artel.Errorf(artel.Conflict, op, string(id), "version %d comes after version %d", v.Number, newest)
	}
	if newest == 0 {
		if _, err := t.change(op, string(id), "INSERT INTO artifacts (owner, conversation, id, created_at) VALUES (?, ?, ?, ?)",
			t.owner, c, id, row.created); err != nil {
			return err
		}
	}
	edit := v
	edit.Parent, edit.Changes = 0, nil
	journal, err := newVersionRow(op, id, edit, nil)
	if err != nil {
		return err
	}
	key := []any{t.owner, c, id}
	if _, err := t.change(op, string(id), insertFolded, append(key, journal.values(nil)...)...); err != nil {
		return err
	}
	if _, err := t.change(op, string(id), insertVersion, append(key, row.values(text)...)...); err != nil {
		return err
	}
	return artifacts(t).foldHead(op, c, id, v)
}

func (t imports) Finish(id artel.ConversationID) error {
	const op = "store.Imports.Finish"
	n, err := t.change(op, string(id), "UPDATE conversations SET importing = 0, deleted_at = NULL WHERE owner = ? AND id = ? AND importing = 1 AND purging = 0", t.owner, id)
	if err == nil && n == 0 {
		err = noImport(op, id)
	}
	return err
}

func noImport(op string, id artel.ConversationID) error {
	return artel.Errorf(artel.NotFound, op, string(id), "no such conversation is being imported, or it was left for too long")
}
