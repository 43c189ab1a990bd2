// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/artelhq/artel"
)

// A Flaw is something wrong in rows, which no program of this project writes.
type Flaw struct {
	Subject string // as the ref of a version, or a conversation
	Detail  string
}

// Flaws calls yield with what is wrong in the rows of a store: events whose numbers have gaps,
// and, with deep, texts that are not those of their digests. far may be nil.
func Flaws(ctx context.Context, s Store, deep bool, far func(table string, rows int64), yield func(Flaw)) error {
	const op = "store.Flaws"
	return s.db.Read(ctx, op, Deployment, func(t *Tx) error {
		err := t.rows(op, "events", "SELECT conversation, count(*), max(seq) FROM events GROUP BY owner, conversation HAVING count(*) <> max(seq)", nil, func(r Row) error {
			var c artel.ConversationID
			var n, last int64
			err := r.Scan(&c, &n, &last)
			yield(Flaw{string(c), fmt.Sprintf("it has %d events, and the last one has the number %d", n, last)})
			return err
		})
		if err != nil || !deep {
			return err
		}
		for _, table := range []string{"versions", "edits"} {
			n := int64(0)
			err := t.rows(op, table, "SELECT conversation, artifact, number, digest, text FROM "+table+" WHERE text IS NOT NULL AND digest <> ''", nil, func(r Row) error {
				var ref artel.Ref
				var digest artel.Digest
				var text string
				if err := r.Scan(&ref.Conversation, &ref.Artifact, &ref.Version, &digest, &text); err != nil {
					return err
				}
				if n++; far != nil && n%copyRows == 0 {
					far(table, n)
				}
				if artel.NewDigest(sha256.Sum256([]byte(text))) != digest {
					yield(Flaw{ref.String(), "its text is not the one that was stored: the digest differs (" + table + ")"})
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Reindex makes the search index of all messages anew.
func Reindex(ctx context.Context, s Store) error { return s.reindex(ctx) }
