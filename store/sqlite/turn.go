// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strconv"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store/rows"
)

// dialect returns what SQLite has of its own. Updates are serial, so nothing is locked.
func dialect() *rows.Dialect {
	return &rows.Dialect{
		Position: "instr",
		InJSON:   "IN (SELECT value FROM json_each(?))",
		Bytes:    "CAST(% AS BLOB)", // which the driver scans without a copy
		Number:   "(SELECT coalesce(max(number), 0) + 1 FROM conversations)",
		Some: func(table, where string) string {
			return "rowid IN (SELECT rowid FROM " + table + " WHERE " + where + ")"
		},
		Columns: "SELECT name FROM pragma_table_info(?)",
		Grams:   grams{},
	}
}

// A turn runs the statements of one view or update on a session. It implements
// [rows.Conn].
type turn struct {
	*session
	shared   bool    // the transaction has updates of others, which must survive a failure of this one
	saved    bool    // the savepoint is set
	appended []int64 // rows of edits inserted before it
}

// Exec implements [rows.Conn]. Updates that only append to journals have no savepoint,
// which would take a twentieth of their time: undo deletes the rows.
func (t *turn) Exec(query string, args ...any) (int64, error) {
	r, err := t.run(query, args)
	if err != nil {
		return 0, err
	}
	if query == rows.InsertEdit && t.shared && !t.saved {
		row, err := r.LastInsertId()
		if err != nil {
			return 0, err
		}
		t.appended = append(t.appended, row)
	}
	return r.RowsAffected()
}

// Insert implements [rows.Conn]. The column n is the rowid.
func (t *turn) Insert(query string, args ...any) (int64, error) {
	r, err := t.run(query, args)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

func (t *turn) run(query string, args []any) (driver.Result, error) {
	if t.shared && !t.saved && query != rows.InsertEdit {
		if _, err := t.exec("SAVEPOINT one"); err != nil {
			return nil, err
		}
		t.saved = true
	}
	return t.exec(query, args...)
}

// undo takes back what a shared update has written.
func (t *turn) undo() error {
	if t.saved {
		if _, err := t.exec("ROLLBACK TO one"); err != nil {
			return err
		}
		if _, err := t.exec("RELEASE one"); err != nil {
			return err
		}
	}
	for _, row := range t.appended {
		if _, err := t.exec("DELETE FROM edits WHERE rowid = ?", row); err != nil {
			return err
		}
	}
	return nil
}

// Row implements [rows.Conn].
func (t *turn) Row(query string, args []any, dest ...any) (found bool, err error) {
	st, err := t.prepare(query)
	if err == nil {
		err = st.QueryRowContext(context.Background(), args...).Scan(dest...)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Rows implements [rows.Conn].
func (t *turn) Rows(query string, args []any, scan func(rows.Row) error) error {
	rows, err := t.query(query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Values implements [rows.Conn].
func (t *turn) Values(query string, args []any, columns int, scan func([]driver.Value) error) error {
	return t.values(query, args, make([]driver.Value, columns), scan)
}

// Failure implements [rows.Conn].
func (t *turn) Failure(op, subject string, err error) error { return failure(op, subject, err) }

// grams is an index of FTS5, which has one number for a message: that of its
// conversation and of its row, with 32 bits each.
type grams struct{}

func (grams) Add(c rows.Conn, _ artel.Owner, at rows.Place, grams string) error {
	_, err := c.Exec("INSERT INTO grams (rowid, text) VALUES (?, ?)", at.Conversation<<32|at.Message, grams)
	return err
}

func (grams) Remove(c rows.Conn, at rows.Place) error {
	_, err := c.Exec("DELETE FROM grams WHERE rowid = ?", at.Conversation<<32|at.Message)
	return err
}

// Find reads all rowids as one value, which is several times faster than one row each.
func (grams) Find(c rows.Conn, _ artel.Owner, grams []string) ([]rows.Place, error) {
	var list *string
	found, err := c.Row("SELECT group_concat(rowid) FROM grams WHERE grams MATCH ?", []any{`"` + strings.Join(grams, `" AND "`) + `"`}, &list)
	if err != nil || !found || list == nil {
		return nil, err
	}
	ids := make([]int64, 0, strings.Count(*list, ",")+1)
	for id := range strings.SplitSeq(*list, ",") {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return nil, err
		}
		ids = append(ids, n)
	}
	slices.Sort(ids)
	places := make([]rows.Place, len(ids))
	for i, id := range ids {
		places[i] = rows.Place{Conversation: id >> 32, Message: id & 0xffffffff}
	}
	return places, nil
}

// failure converts a driver error into an error of the contract.
func failure(op, subject string, err error) error {
	if e, ok := errors.AsType[*artel.Error](err); ok {
		return e
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return rows.Canceled(op, err)
	}
	kind := artel.Internal
	why := ""
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() {
		case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
			return artel.Errorf(artel.Conflict, op, subject, "already exists")
		case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
			return artel.Errorf(artel.NotFound, op, subject, "no such conversation")
		}
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_TOOBIG:
			return artel.Errorf(artel.TooLarge, op, subject, "larger than a row can be: 1,000,000,000 bytes")
		case sqlite3.SQLITE_FULL:
			kind, why = artel.Unavailable, "the disk of the database is full"
		case sqlite3.SQLITE_READONLY:
			kind, why = artel.Unavailable, "the database is read-only"
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			kind, why = artel.Unavailable, "another process keeps the database busy"
		case sqlite3.SQLITE_NOTADB:
			kind, why = artel.Unavailable, "the file is not a database"
		case sqlite3.SQLITE_CORRUPT:
			kind, why = artel.Unavailable, "the database is damaged"
		case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
			kind, why = artel.Unavailable, "the database cannot be opened"
		case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_NOLFS, sqlite3.SQLITE_PROTOCOL:
			kind, why = artel.Unavailable, "the database cannot be read or written"
		case sqlite3.SQLITE_INTERRUPT:
			kind, why = artel.Unavailable, "the database was interrupted"
		}
	}
	if why == "" {
		return artel.Errorf(kind, op, subject, "%w", err)
	}
	return artel.Errorf(kind, op, subject, "%s: %w", why, err)
}
