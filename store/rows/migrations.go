// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

// IndexAll is a migration of SQLite: it adds all existing messages to the search index.
func IndexAll(ctx context.Context, tx *sql.Tx) error {
	type row struct {
		n, number int64
		owner, id string
		text      string
	}
	read := func(query string, scan func(Row) error, args ...any) error {
		rows, err := tx.QueryContext(ctx, query, args...)
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
	var titles []row
	err := read("SELECT owner, id, title FROM conversations", func(rows Row) error {
		var r row
		err := rows.Scan(&r.owner, &r.id, &r.text)
		titles = append(titles, r)
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range titles {
		if _, err := tx.ExecContext(ctx, "UPDATE conversations SET folded_title = ? WHERE owner = ? AND id = ?", fold(r.text), r.owner, r.id); err != nil {
			return err
		}
	}
	const atOnce = 500
	last := int64(0)
	for {
		var messages []row
		err := read(`SELECT m.n, c.number, m.parts FROM messages m JOIN conversations c ON c.owner = m.owner AND c.id = m.conversation
			WHERE m.n > ? AND m.role IN (?, ?) AND m.parts IS NOT NULL ORDER BY m.n LIMIT ?`, func(rows Row) error {
			var r row
			var raw []byte
			var parts artel.Parts
			if err := rows.Scan(&r.n, &r.number, &raw); err != nil {
				return err
			}
			if err := json.Unmarshal(raw, &parts); err != nil {
				return err
			}
			r.text = artel.TextOf(parts)
			messages = append(messages, r)
			return nil
		}, last, artel.RoleUser, artel.RoleAssistant, atOnce)
		if err != nil {
			return err
		}
		for _, r := range messages {
			last = r.n
			if grams := gramsOf(r.text); grams != "" {
				if _, err := tx.ExecContext(ctx, "INSERT INTO grams (rowid, text) VALUES (?, ?)", r.number<<32|r.n, grams); err != nil {
					return err
				}
			}
		}
		if len(messages) < atOnce {
			return nil
		}
	}
}

// AddHeads is a migration of SQLite: it adds the column newest, which replaces the
// column mark. It reads texts one by one, and only of the newest versions.
func AddHeads(ctx context.Context, tx *sql.Tx) error {
	for _, query := range []string{
		"DROP INDEX artifacts_by_mark",
		"ALTER TABLE artifacts DROP COLUMN mark",
		"ALTER TABLE artifacts ADD COLUMN newest TEXT NOT NULL DEFAULT ''", // '': no visible version
	} {
		if _, err := tx.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	var owner, conv, id string
	for {
		n, found, err := nextHead(ctx, tx, &owner, &conv, &id)
		if err != nil || !found {
			return err
		}
		if n.ID == "" { // it has only edits
			continue
		}
		if _, err := tx.ExecContext(ctx, "UPDATE artifacts SET newest = ? WHERE owner = ? AND conversation = ? AND id = ?", encodeHead(n), owner, conv, id); err != nil {
			return err
		}
	}
}

func nextHead(ctx context.Context, tx *sql.Tx, owner, conv, id *string) (n headRow, found bool, err error) {
	var created int64
	err = tx.QueryRowContext(ctx, `SELECT owner, conversation, id, created_at FROM artifacts
		WHERE (owner, conversation, id) > (?, ?, ?) ORDER BY owner, conversation, id LIMIT 1`, *owner, *conv, *id).Scan(owner, conv, id, &created)
	if errors.Is(err, sql.ErrNoRows) {
		return n, false, nil
	}
	if err != nil {
		return n, false, err
	}
	const one = " FROM versions v WHERE v.owner = ? AND v.conversation = ? AND v.artifact = ?"
	var r versionRow
	var text []byte // enough bytes for the preview; may end inside a code point
	err = tx.QueryRowContext(ctx, "SELECT "+headColumns+", substr(CAST(v.text AS BLOB), 1, ?)"+one+" ORDER BY v.number DESC LIMIT 1",
		utf8.UTFMax*artel.PreviewChars, *owner, *conv, *id).Scan(append(r.head(), &text)...)
	if errors.Is(err, sql.ErrNoRows) {
		return n, true, nil
	}
	if err != nil {
		return n, false, err
	}
	v, err := r.version()
	if err != nil {
		return n, false, err
	}
	v.Preview = artel.Beginning(string(text), artel.PreviewChars)
	n = headRow{v.Artifact(artel.ConversationID(*conv), artel.ArtifactID(*id), fromMicros(created)), visibility{message: v.Message}}
	err = tx.QueryRowContext(ctx, "SELECT min(v.message) <> max(v.message)"+one, *owner, *conv, *id).Scan(&n.mixed)
	return n, true, err
}
