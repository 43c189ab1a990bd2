// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"database/sql"
	"iter"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// bytesQuery finds the rows whose content is a blob.
const bytesQuery = `SELECT owner, conversation, digest, '' FROM versions WHERE in_blob = 1
	UNION ALL SELECT owner, conversation, digest, '' FROM edits WHERE in_blob = 1
	UNION ALL SELECT owner, '', digest, '' FROM files
	UNION ALL SELECT owner, '', digest, source FROM renditions`

// textsQueries find the texts that may contain a digest. As bytes they are scanned
// without a copy.
func (t *Tx) textsQueries() []string {
	query := func(columns, text, table string) string {
		return "SELECT " + columns + ", " + t.asBytes(text) + " FROM " + table + " WHERE " + text + " IS NOT NULL"
	}
	return []string{
		query("owner, conversation", "parts", "messages"),
		query("owner, conversation", "data", "events") + otherEvents,
		query("owner, conversation", "text", "versions"), query("owner, conversation", "changes", "versions"),
		query("owner, conversation", "text", "edits"), query("owner, conversation", "changes", "edits"),
		"SELECT owner, conversation, body FROM segments",
		"SELECT owner, '', body FROM answers WHERE body IS NOT NULL",
	}
}

// Digests implements [store.Store].
func (s Store) Digests(ctx context.Context) iter.Seq2[store.Use, error] {
	const op = "store.Digests"
	return func(yield func(store.Use, error) bool) {
		ended := false // the caller ended the loop: yield must not be called again
		err := s.db.Read(ctx, op, Deployment, func(t *Tx) error {
			send := func(u store.Use) error {
				if ended = !yield(u, nil); ended {
					return errStop
				}
				return ctx.Err()
			}
			err := t.rows(op, "", bytesQuery, nil, func(rows Row) error {
				u := store.Use{Bytes: true}
				if err := rows.Scan(&u.Owner, &u.Conversation, &u.Digest, &u.Of); err != nil {
					return err
				}
				return send(u)
			})
			for _, query := range t.textsQueries() {
				if err != nil || ended {
					return err
				}
				err = t.rows(op, "", query, nil, func(rows Row) error {
					var u store.Use
					var text sql.RawBytes
					if err := rows.Scan(&u.Owner, &u.Conversation, &text); err != nil {
						return err
					}
					for hex := range sums(text) {
						u.Digest = artel.Digest("sha256-" + string(hex))
						if err := send(u); err != nil {
							return err
						}
					}
					return ctx.Err()
				})
			}
			return err
		})
		if err != nil && !ended {
			yield(store.Use{}, err)
		}
	}
}

// sumDigits is the length of a SHA-256 in hexadecimal.
const sumDigits = 64

// sums yields the runs of 64 hexadecimal digits in text. Of a longer run it
// yields the first and the last 64 digits, because an escaped character next to
// the digest may end in digits: "%2f", "\u002d".
func sums(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := sumDigits - 1; i < len(text); i += sumDigits {
			// Each run of 64 has a digit at one of these positions.
			if !isDigit(text[i]) {
				continue
			}
			begin, end := i, i+1
			for begin > 0 && isDigit(text[begin-1]) {
				begin--
			}
			for end < len(text) && isDigit(text[end]) {
				end++
			}
			if end-begin >= sumDigits && !yield(text[begin:begin+sumDigits]) {
				return
			}
			if end-begin > sumDigits && !yield(text[end-sumDigits:end]) {
				return
			}
			i = end - 1 // continue after the run
		}
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }
