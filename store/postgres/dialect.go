// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store/rows"
)

// dialect returns what PostgreSQL has of its own.
func dialect() *rows.Dialect {
	return &rows.Dialect{
		Lock:     " FOR NO KEY UPDATE",
		Position: "strpos",
		InJSON:   "IN (SELECT value::bigint FROM jsonb_array_elements_text(?::jsonb) AS every (value))",
		Bytes:    "%",
		Now:      "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
		Number:   "DEFAULT",
		Some: func(table, where string) string {
			return "ctid = ANY (ARRAY(SELECT ctid FROM " + table + " WHERE " + where + "))"
		},
		Turn:    "SELECT 1::bigint FROM pg_advisory_xact_lock" + turnKey,
		Beside:  "SELECT 1::bigint FROM pg_advisory_xact_lock_shared" + turnKey,
		Columns: "SELECT column_name::text FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = ?",
		CountOn: func(table, column string) string {
			return "SELECT setval(pg_get_serial_sequence('" + table + "', '" + column + "'), greatest(1, coalesce((SELECT max(" + column + ") FROM " + table + "), 1)))"
		},
		Grams: grams{},
	}
}

// turnKey is the key of a lock for an owner. A schema has its own, since locks are those
// of the database.
const turnKey = "(hashtextextended(current_schema() || '/' || ?, 0))"

// grams is an index of arrays. The first element is the owner, so that the search of one
// owner does not read the messages of all.
type grams struct{}

func ownerGram(owner artel.Owner) string { return "=" + string(owner) }

func (grams) Add(c rows.Conn, owner artel.Owner, at rows.Place, grams string) error {
	list := append([]string{ownerGram(owner)}, strings.Fields(grams)...)
	_, err := c.Exec("INSERT INTO grams (n, number, list) VALUES (?, ?, ?)", at.Message, at.Conversation, list)
	return err
}

func (grams) Remove(c rows.Conn, at rows.Place) error {
	_, err := c.Exec("DELETE FROM grams WHERE n = ?", at.Message)
	return err
}

func (grams) Find(c rows.Conn, owner artel.Owner, grams []string) (found []rows.Place, err error) {
	err = c.Rows("SELECT number, n FROM grams WHERE list @> ? ORDER BY number, n", []any{append([]string{ownerGram(owner)}, grams...)}, func(row rows.Row) error {
		var at rows.Place
		err := row.Scan(&at.Conversation, &at.Message)
		found = append(found, at)
		return err
	})
	return found, err
}
