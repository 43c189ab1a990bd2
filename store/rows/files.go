// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"database/sql"
	"encoding/json"
	"math"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type files struct{ *Tx }

const (
	fileColumns = "id, holder, digest, filename, purpose, info, created_at, expires_at"
	unexpired   = " AND (expires_at IS NULL OR expires_at > ?)"
)

func (t files) Create(f store.File) error {
	const op = "store.Files.Create"
	subject := artel.Shorten(f.ID, 80)
	if err := checkText(op, subject, f.ID, f.Holder, string(f.Digest), f.Filename, f.Purpose); err != nil {
		return err
	}
	info, err := encode(op, subject, f.Info)
	if err != nil {
		return err
	}
	expires := sql.NullInt64{Int64: micros(f.ExpiresAt), Valid: !f.ExpiresAt.IsZero()}
	n, err := t.change(op, subject, "INSERT INTO files (owner, "+fileColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
		t.owner, f.ID, f.Holder, f.Digest, f.Filename, f.Purpose, info, micros(f.CreatedAt), expires)
	if err == nil && n == 0 {
		err = artel.Errorf(artel.Conflict, op, subject, "a file of this id is there")
	}
	return err
}

func (t files) Get(id string, now time.Time) (f store.File, err error) {
	const op = "store.Files.Get"
	err = t.rows(op, artel.Shorten(id, 80), "SELECT "+fileColumns+" FROM files WHERE owner = ? AND id = ?"+unexpired,
		[]any{t.owner, id, micros(now)}, func(rows Row) error { return scanFile(op, rows, &f) })
	if err == nil && f.ID == "" {
		err = noFile(op, id)
	}
	return f, err
}

func noFile(op, id string) error {
	return artel.Errorf(artel.NotFound, op, artel.Shorten(id, 80), "no such file")
}

func (t files) List(q store.FileQuery) ([]store.File, error) {
	const op = "store.Files.List"
	order, before := "DESC", "<"
	us, tie := int64(math.MaxInt64), ""
	if q.Oldest {
		order, before, us = "ASC", ">", math.MinInt64
	}
	if q.After != "" {
		tie = q.After
		found, err := t.row(op, artel.Shorten(q.After, 80), "SELECT created_at FROM files WHERE owner = ? AND holder = ? AND id = ?", []any{t.owner, q.Holder, q.After}, &us)
		if err == nil && !found {
			err = artel.Errorf(artel.Invalid, op, artel.Shorten(q.After, 80), "there is no such file that others could come after")
		}
		if err != nil {
			return nil, err
		}
	}
	return list(t.Tx, op, "", "SELECT "+fileColumns+" FROM files WHERE owner = ? AND holder = ? AND (created_at, id) "+before+" (?, ?)"+unexpired+
		" ORDER BY created_at "+order+", id "+order+" LIMIT ?", []any{t.owner, q.Holder, us, tie, micros(q.Now), max(q.Limit, 1)}, func(rows Row, f *store.File) error { return scanFile(op, rows, f) })
}

func (t files) Delete(id string, now time.Time) error {
	const op = "store.Files.Delete"
	n, err := t.change(op, artel.Shorten(id, 80), "DELETE FROM files WHERE owner = ? AND id = ?"+unexpired, t.owner, id, micros(now))
	if err == nil && n == 0 {
		err = noFile(op, id)
	}
	return err
}

func (t files) Purge(now time.Time) error {
	_, err := t.change("store.Files.Purge", "", "DELETE FROM files WHERE owner = ? AND expires_at <= ?", t.owner, micros(now))
	return err
}

func scanFile(op string, rows Row, f *store.File) error {
	var info string
	var expires sql.NullInt64
	if err := rows.Scan(&f.ID, &f.Holder, &f.Digest, &f.Filename, &f.Purpose, &info, (*timeColumn)(&f.CreatedAt), &expires); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(info), &f.Info); err != nil {
		return artel.Errorf(artel.Internal, op, f.ID, "the row is damaged: %w", err)
	}
	if expires.Valid {
		f.ExpiresAt = fromMicros(expires.Int64)
	}
	return nil
}
