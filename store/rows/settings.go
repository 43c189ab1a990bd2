// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type settings struct{ *Tx }

// revision returns the newest revision of a name, and whether it has a value.
func (t settings) revision(op, name string) (n int, set bool, err error) {
	_, err = t.row(op, artel.Shorten(name, 80), "SELECT revision, value IS NOT NULL FROM settings WHERE owner = ? AND name = ?"+t.locked(), []any{t.owner, name}, &n, &set)
	return n, set, err
}

// expect returns the newest revision, and Conflict if it is not the given one.
func (t settings) expect(op, name string, revision int) (newest int, set bool, err error) {
	newest, set, err = t.revision(op, name)
	now := newest
	if !set {
		now = 0
	}
	if err == nil && revision != now {
		err = artel.Errorf(artel.Conflict, op, artel.Shorten(name, 80), "revision %d is there, not %d", now, revision)
	}
	return newest, set, err
}

func (t settings) Get(name string) (store.Setting, error) {
	const op = "store.Settings.Get"
	s := store.Setting{Name: name}
	found, err := t.row(op, artel.Shorten(name, 80), "SELECT revision, value, updated_at FROM settings WHERE owner = ? AND name = ? AND value IS NOT NULL",
		[]any{t.owner, name}, &s.Revision, (*jsonColumn)(&s.Value), (*timeColumn)(&s.UpdatedAt))
	if err == nil && !found {
		err = noSetting(op, name)
	}
	if err != nil {
		return store.Setting{}, err
	}
	return s, nil
}

func noSetting(op, name string) error {
	return artel.Errorf(artel.NotFound, op, artel.Shorten(name, 80), "nothing is set under this name")
}

func (t settings) List(prefix string) ([]store.Setting, error) {
	const op = "store.Settings.List"
	return list(t.Tx, op, artel.Shorten(prefix, 80), "SELECT name, revision, value, updated_at FROM settings WHERE owner = ? AND substr(name, 1, length(?)) = ? AND value IS NOT NULL ORDER BY name",
		[]any{t.owner, prefix, prefix}, func(rows Row, s *store.Setting) error {
			return rows.Scan(&s.Name, &s.Revision, (*jsonColumn)(&s.Value), (*timeColumn)(&s.UpdatedAt))
		})
}

func (t settings) Put(s store.Setting) (int, error) {
	const op = "store.Settings.Put"
	if err := checkText(op, s.Name, s.Name); err != nil {
		return 0, err
	}
	if s.Value == nil {
		return 0, artel.Errorf(artel.Invalid, op, artel.Shorten(s.Name, 80), "a setting without a value")
	}
	if err := checkJSON(op, artel.Shorten(s.Name, 80), s.Value); err != nil {
		return 0, err
	}
	newest, _, err := t.expect(op, s.Name, s.Revision)
	if err != nil {
		return 0, err
	}
	query := "UPDATE settings SET revision = ?, value = ?, updated_at = ? WHERE owner = ? AND name = ?"
	if newest == 0 {
		query = "INSERT INTO settings (revision, value, updated_at, owner, name) VALUES (?, ?, ?, ?, ?)"
	}
	_, err = t.change(op, artel.Shorten(s.Name, 80), query, newest+1, string(s.Value), micros(s.UpdatedAt), t.owner, s.Name)
	return newest + 1, err
}

func (t settings) Delete(name string, revision int, at time.Time) error {
	const op = "store.Settings.Delete"
	_, set, err := t.revision(op, name)
	if err == nil && !set {
		err = noSetting(op, name)
	}
	if err == nil {
		_, _, err = t.expect(op, name, revision)
	}
	if err != nil {
		return err
	}
	_, err = t.change(op, artel.Shorten(name, 80), "UPDATE settings SET value = NULL, revision = revision + 1, updated_at = ? WHERE owner = ? AND name = ?", micros(at), t.owner, name)
	return err
}
