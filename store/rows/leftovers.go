// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// maxLeftovers is the size of a batch of candidates. Each batch reads all texts
// once.
const maxLeftovers = 10_000

// leftoversQuery finds candidates: artifacts with one version and no other edit,
// in a conversation that is not deleted and has no unfinished run.
const leftoversQuery = `SELECT v.rowid, v.created_at, v.owner, v.conversation, v.artifact, v.number, v.digest, v.media
	FROM versions v JOIN conversations c ON c.owner = v.owner AND c.id = v.conversation
	WHERE v.source = 'tool_result' AND v.run = '' AND v.created_at < ?1 AND (v.created_at, v.rowid) > (?2, ?3) AND c.deleted_at IS NULL
	AND NOT EXISTS (SELECT 1 FROM versions o WHERE o.owner = v.owner AND o.conversation = v.conversation AND o.artifact = v.artifact AND o.number <> v.number)
	AND NOT EXISTS (SELECT 1 FROM edits e WHERE e.owner = v.owner AND e.conversation = v.conversation AND e.folded IN (0, 1) AND e.artifact = v.artifact AND e.number <> v.number)
	AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.owner = v.owner AND r.conversation = v.conversation AND r.state IN ('queued', 'running', 'waiting'))
	ORDER BY v.created_at, v.rowid LIMIT ?4`

// namingQueries find the texts that may name an artifact, with the artifact that
// they belong to. Events about artifacts are left out: they name an artifact
// without using it.
func (t *Tx) namingQueries() []string {
	query := func(artifact, text, table, where string) string {
		return "SELECT owner, conversation, " + artifact + ", " + t.asBytes(text) + " FROM " + table + " WHERE " + text + " IS NOT NULL" + where
	}
	return []string{
		query("''", "parts", "messages", ""),
		query("''", "data", "events", otherEvents),
		query("artifact", "text", "versions", ""), query("artifact", "changes", "versions", ""),
		query("artifact", "text", "edits", ""), query("artifact", "changes", "edits", ""),
	}
}

const otherEvents = " AND type NOT LIKE 'artifact%'"

// An orphan is a candidate: it is a leftover if no text names it.
type orphan struct {
	store.Leftover
	row, created int64
	key          []byte // part of its id that has no escapes
	named        bool
}

// A conversationKey names a conversation of an owner.
type conversationKey struct {
	owner artel.Owner
	conv  artel.ConversationID
}

// A digestKey names the bytes of an owner.
type digestKey struct {
	owner artel.Owner
	hex   string
}

// Leftovers implements [store.Upkeep].
func (s Store) Leftovers(ctx context.Context, before time.Time, remove bool) ([]store.Leftover, error) {
	const op = "store.Leftovers"
	var last orphan
	for {
		var page, left []*orphan
		// Without the writer first: usually all candidates are named.
		err := s.db.Read(ctx, op, Deployment, func(t *Tx) (err error) {
			if page, err = t.orphans(op, before, last); err == nil {
				left, err = t.unnamed(op, page)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(left) == 0 && len(page) == maxLeftovers {
			last = *page[len(page)-1]
			continue
		}
		if remove && len(left) > 0 {
			left, err = s.removeLeftovers(ctx, op, before, left)
		}
		out := make([]store.Leftover, len(left))
		for i, c := range left {
			out[i] = c.Leftover
		}
		return out, err
	}
}

// removeLeftovers checks the candidates again, in an update of each owner, while nothing
// of that owner is written, and removes those that are still unnamed.
func (s Store) removeLeftovers(ctx context.Context, op string, before time.Time, found []*orphan) (gone []*orphan, err error) {
	wanted := map[artel.Owner]map[int64]bool{}
	for _, c := range found {
		if wanted[c.Owner] == nil {
			wanted[c.Owner] = map[int64]bool{}
		}
		wanted[c.Owner][c.row] = true
	}
	first := *found[0]
	first.row-- // the query is exclusive, so include the first
	for _, owner := range slices.Sorted(maps.Keys(wanted)) {
		var left []*orphan
		err := s.db.Write(ctx, owner, func(t *Tx) error {
			if err := t.turn(op); err != nil {
				return err
			}
			page, err := t.orphans(op, before, first)
			if err != nil {
				return err
			}
			page = slices.DeleteFunc(page, func(c *orphan) bool { return !wanted[owner][c.row] })
			if left, err = t.unnamed(op, page); err != nil {
				return err
			}
			for _, c := range left {
				if err := t.removeLeftover(op, c); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return gone, err
		}
		gone = append(gone, left...)
	}
	slices.SortFunc(gone, func(a, b *orphan) int { return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.row, b.row)) })
	return gone, nil
}

// removeLeftover keeps the row of the artifact, so that its id stays taken, and
// an edit without content, so that its numbers stay taken.
func (t *Tx) removeLeftover(op string, c *orphan) error {
	for _, query := range []string{
		"DELETE FROM versions WHERE owner = ? AND conversation = ? AND artifact = ?",
		"UPDATE edits SET digest = '', in_blob = 0, text = NULL, changes = NULL WHERE owner = ? AND conversation = ? AND folded IN (0, 1) AND artifact = ?",
		"UPDATE artifacts SET newest = '' WHERE owner = ? AND conversation = ? AND id = ?",
	} {
		if _, err := t.change(op, string(c.Artifact), query, c.Owner, c.Conversation, c.Artifact); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) orphans(op string, before time.Time, after orphan) (page []*orphan, err error) {
	err = t.rows(op, "", leftoversQuery, []any{micros(before), after.created, after.row, maxLeftovers}, func(rows Row) error {
		c := &orphan{}
		var media string
		if err := rows.Scan(&c.row, &c.created, &c.Owner, &c.Conversation, &c.Artifact, &c.Number, &c.Digest, &media); err != nil {
			return err
		}
		r := versionRow{media: media}
		v, err := r.version()
		c.Size, c.MediaType, c.key = v.Size, v.MediaType, keyOf(c.Artifact)
		page = append(page, c)
		return err
	})
	return page, err
}

// keyOf returns the longest run of ASCII in an id. Other characters may be
// escaped in texts.
func keyOf(id artel.ArtifactID) []byte {
	key := ""
	for run := range strings.FieldsFuncSeq(string(id), func(r rune) bool { return r >= 0x80 }) {
		if len(run) > len(key) {
			key = run
		}
	}
	return []byte(key)
}

// minKey is the minimum length of a key that can be searched for.
const minKey = 3

// unnamed reads every text, or those of the transaction's owner, and returns the orphans
// of a page that none names.
func (t *Tx) unnamed(op string, page []*orphan) (left []*orphan, err error) {
	if len(page) == 0 {
		return nil, nil
	}
	here, meant := map[conversationKey][]*orphan{}, map[digestKey][]*orphan{}
	for _, c := range page {
		c.named = len(c.key) < minKey
		p, m := conversationKey{c.Owner, c.Conversation}, digestKey{c.Owner, c.Digest.Hex()}
		here[p], meant[m] = append(here[p], c), append(meant[m], c)
	}
	var args []any
	if t.owner != Deployment {
		args = append(args, t.owner)
	}
	for _, query := range t.namingQueries() {
		if t.owner != Deployment {
			query += " AND owner = ?"
		}
		err := t.rows(op, "", query, args, func(rows Row) error {
			var p conversationKey
			var of artel.ArtifactID
			var text sql.RawBytes
			if err := rows.Scan(&p.owner, &p.conv, &of, &text); err != nil {
				return err
			}
			for hex := range sums(text) {
				for _, c := range meant[digestKey{p.owner, string(hex)}] {
					c.named = c.named || of != c.Artifact || p.conv != c.Conversation
				}
			}
			nameIDs(here[p], text, of)
			for conv := range conversationsIn(text) {
				if conv != string(p.conv) {
					nameIDs(here[conversationKey{p.owner, artel.ConversationID(conv)}], text, "")
				}
			}
			return t.ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	for _, c := range page {
		if !c.named {
			left = append(left, c)
		}
	}
	return left, nil
}

// nameIDs marks the orphans whose ids occur in a text. The text's own artifact,
// of, does not count.
func nameIDs(list []*orphan, text []byte, of artel.ArtifactID) {
	for _, c := range list {
		c.named = c.named || of != c.Artifact && bytes.Contains(text, c.key)
	}
}

// conversationsIn yields the substrings that look like a conversation id.
func conversationsIn(text []byte) func(yield func(string) bool) {
	const begin, length = "cnv_", 30
	return func(yield func(string) bool) {
		for {
			i := bytes.Index(text, []byte(begin))
			if i < 0 || len(text) < i+length {
				return
			}
			if text = text[i:]; !yield(string(text[:length])) {
				return
			}
			text = text[len(begin):]
		}
	}
}
