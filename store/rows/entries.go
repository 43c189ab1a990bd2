// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type entries struct{ *Tx }

const entryColumns = "SELECT kind, id, fields, secrets, disabled, created_at, updated_at FROM entries"

func scanEntry(rows Row, e *store.Entry) error {
	var fields string
	err := rows.Scan(&e.Kind, &e.ID, &fields, &e.Secrets, &e.Disabled, (*timeColumn)(&e.CreatedAt), (*timeColumn)(&e.UpdatedAt))
	e.Fields = []byte(fields)
	return err
}

// secretColumn is a column of bytes that may be empty.
func secretColumn(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

func (t entries) Create(e store.Entry) error {
	const op = "store.Entries.Create"
	if err := checkText(op, e.ID, string(e.Kind), e.ID, string(e.Fields)); err != nil {
		return err
	}
	_, err := t.change(op, e.ID, "INSERT INTO entries (kind, id, fields, secrets, disabled, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
		string(e.Kind), e.ID, string(e.Fields), secretColumn(e.Secrets), e.Disabled, micros(e.CreatedAt), micros(e.UpdatedAt))
	return err
}

func (t entries) Get(kind store.EntryKind, id string) (store.Entry, error) {
	const op = "store.Entries.Get"
	found, err := list(t.Tx, op, artel.Shorten(id, 80), entryColumns+" WHERE kind = ? AND id = ?", []any{string(kind), id}, scanEntry)
	if err == nil && len(found) == 0 {
		err = artel.Errorf(artel.NotFound, op, artel.Shorten(id, 80), "no such entry")
	}
	if err != nil {
		return store.Entry{}, err
	}
	return found[0], nil
}

func (t entries) List(kind store.EntryKind) ([]store.Entry, error) {
	return list(t.Tx, "store.Entries.List", string(kind), entryColumns+" WHERE kind = ? ORDER BY n", []any{string(kind)}, scanEntry)
}

func (t entries) Update(e store.Entry) error {
	const op = "store.Entries.Update"
	if err := checkText(op, e.ID, string(e.Fields)); err != nil {
		return err
	}
	n, err := t.change(op, e.ID, "UPDATE entries SET fields = ?, secrets = ?, disabled = ?, updated_at = ? WHERE kind = ? AND id = ?",
		string(e.Fields), secretColumn(e.Secrets), e.Disabled, micros(e.UpdatedAt), string(e.Kind), e.ID)
	return present(op, e.ID, "entry", n, err)
}

func (t entries) Delete(kind store.EntryKind, id string) error {
	const op = "store.Entries.Delete"
	n, err := t.change(op, id, "DELETE FROM entries WHERE kind = ? AND id = ?", string(kind), id)
	return present(op, id, "entry", n, err)
}
