// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"database/sql"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type artifacts struct{ *tx }

// What a branch sees of the artifacts: states without a message, and those whose
// message is on the path.
const onBranch = " AND (message = '' OR message IN (SELECT id FROM path))"

// newestOfAll finds the newest state of every artifact of a branch.
const newestOfAll = "WITH RECURSIVE " + pathTable + `,
	head AS (SELECT artifact, max(number) AS number, live FROM (
		SELECT artifact, number, 0 AS live FROM versions WHERE owner = ?1 AND conversation = ?2` + onBranch + `
		UNION ALL
		SELECT artifact, number, 1 FROM edits WHERE owner = ?1 AND conversation = ?2 AND folded = 0` + onBranch + `)
		GROUP BY artifact) -- in SQLite live comes from the row that has the max()
	`

// headColumns are those of an artifact, without the changes that led to it.
const (
	headNames   = "number, parent, message, run, author, update_type, title, filename, source, media, digest, in_blob, created_at"
	headColumns = "v.number, v.parent, v.message, v.run, v.author, v.update_type, v.title, v.filename, v.source, v.media, v.digest, v.in_blob, v.created_at"
)

const headsQuery = newestOfAll + `
	SELECT h.artifact, h.live, a.created_at, ` + headColumns + fromHead + `versions v ON h.live = 0` + atHead + `
	UNION ALL
	SELECT h.artifact, h.live, a.created_at, ` + headColumns + fromHead + `edits v ON h.live = 1` + atHead + `
	ORDER BY 1`

const (
	fromHead = " FROM head h JOIN artifacts a ON a.owner = ?1 AND a.conversation = ?2 AND a.id = h.artifact JOIN "
	atHead   = " AND v.owner = ?1 AND v.conversation = ?2 AND v.artifact = h.artifact AND v.number = h.number"
)

const beginningsQuery = newestOfAll + `
	SELECT h.artifact, h.number, substr(CAST(v.text AS BLOB), 1, 4 * ?4) FROM head h JOIN versions v ON h.live = 0` + atHead + `
	WHERE v.text IS NOT NULL ORDER BY 1`

// liveQuery finds the newest unfolded edits.
const liveQuery = "WITH RECURSIVE " + pathTable + `,
	head AS (SELECT artifact, max(number) AS number, 1 AS live FROM edits WHERE owner = ?1 AND conversation = ?2 AND folded = 0` + onBranch + `
		GROUP BY artifact)
	SELECT h.artifact, h.live, a.created_at, ` + headColumns + fromHead + `edits v ON v.folded = 0` + atHead + `
	ORDER BY 1`

// oneHead finds that of artifact ?4: each table is read from its newest row
// backwards until one is on the branch.
const oneHead = "WITH RECURSIVE " + pathTable + `
	SELECT a.id, v.live, a.created_at, ` + headColumns + ` FROM (
		SELECT * FROM (SELECT 0 AS live, ` + headNames + " FROM versions WHERE owner = ?1 AND conversation = ?2 AND artifact = ?4" + newestOnBranch + `)
		UNION ALL
		SELECT * FROM (SELECT 1, ` + headNames + " FROM edits WHERE owner = ?1 AND conversation = ?2 AND folded = 0 AND artifact = ?4" + newestOnBranch + `)
	) v JOIN artifacts a ON a.owner = ?1 AND a.conversation = ?2 AND a.id = ?4
	ORDER BY v.number DESC LIMIT 1`

const newestOnBranch = onBranch + " ORDER BY number DESC LIMIT 1"

func (t artifacts) Heads(c artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error) {
	const op = "store.Artifacts.Heads"
	if err := t.branch(op, c, at); err != nil {
		return nil, err
	}
	return t.heads(op, headsQuery, c, t.owner, c, at)
}

func (t artifacts) Head(c artel.ConversationID, id artel.ArtifactID, at artel.MessageID) (artel.Artifact, error) {
	const op = "store.Artifacts.Head"
	if err := t.branch(op, c, at); err != nil {
		return artel.Artifact{}, err
	}
	heads, err := t.heads(op, oneHead, c, t.owner, c, at, id)
	if err == nil && len(heads) == 0 {
		err = noArtifact(op, id)
	}
	if err != nil {
		return artel.Artifact{}, err
	}
	return heads[0], nil
}

func (t artifacts) Live(c artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error) {
	const op = "store.Artifacts.Live"
	if err := t.branch(op, c, at); err != nil {
		return nil, err
	}
	return t.heads(op, liveQuery, c, t.owner, c, at)
}

func (t artifacts) Changed(c artel.ConversationID, after int64) (ids []artel.ArtifactID, mark int64, err error) {
	const op = "store.Artifacts.Changed"
	if err := t.known(op, c); err != nil {
		return nil, 0, err
	}
	_, err = t.row(op, string(c), "SELECT coalesce(max(mark), 0) FROM artifacts WHERE owner = ? AND conversation = ?", []any{t.owner, c}, &mark)
	if err != nil || mark <= after {
		return nil, mark, err
	}
	err = t.rows(op, string(c), "SELECT id FROM artifacts WHERE owner = ? AND conversation = ? AND mark > ? ORDER BY id", []any{t.owner, c, max(after, 0)},
		func(rows *sql.Rows) error {
			var id artel.ArtifactID
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		})
	return ids, mark, err
}

// mark says that versions of an artifact have changed.
func (t artifacts) mark(op string, c artel.ConversationID, id artel.ArtifactID) error {
	_, err := t.change(op, string(id), `UPDATE artifacts SET mark = 1 + (SELECT max(mark) FROM artifacts WHERE owner = ?1 AND conversation = ?2)
		WHERE owner = ?1 AND conversation = ?2 AND id = ?3`, t.owner, c, id)
	return err
}

func (t artifacts) Beginnings(c artel.ConversationID, at artel.MessageID, chars int) ([]store.Beginning, error) {
	const op = "store.Artifacts.Beginnings"
	if err := t.branch(op, c, at); err != nil {
		return nil, err
	}
	var list []store.Beginning
	err := t.rows(op, string(c), beginningsQuery, []any{t.owner, c, at, max(chars, 0)}, func(rows *sql.Rows) error {
		var b store.Beginning
		var bytes []byte // at least chars code points, and perhaps a part of one more
		err := rows.Scan(&b.Artifact, &b.Number, &bytes)
		b.Text = firstChars(bytes, chars)
		list = append(list, b)
		return err
	})
	return list, err
}

// firstChars returns the first n code points of s, or all of it.
func firstChars(s []byte, n int) string {
	size := 0
	for ; n > 0 && size < len(s); n-- {
		_, w := utf8.DecodeRune(s[size:])
		size += w
	}
	return string(s[:size])
}

func (t artifacts) heads(op, query string, c artel.ConversationID, args ...any) ([]artel.Artifact, error) {
	var heads []artel.Artifact
	err := t.rows(op, string(c), query, args, func(rows *sql.Rows) error {
		var (
			id      artel.ArtifactID
			live    bool
			created int64
			r       versionRow
		)
		if err := rows.Scan(append([]any{&id, &live, &created}, r.head()...)...); err != nil {
			return err
		}
		v, err := r.version()
		if err != nil {
			return err
		}
		a := v.Artifact(c, id, moment(created))
		a.Live = live
		heads = append(heads, a)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return heads, nil
}

func (t artifacts) Exists(c artel.ConversationID, id artel.ArtifactID) (bool, error) {
	const op = "store.Artifacts.Exists"
	if err := t.known(op, c); err != nil {
		return false, err
	}
	var one int
	return t.row(op, string(id), "SELECT 1 FROM artifacts WHERE owner = ? AND conversation = ? AND id = ?", []any{t.owner, c, id}, &one)
}

func noArtifact(op string, id artel.ArtifactID) error {
	err := artel.Errorf(artel.NotFound, op, string(id), "no such artifact here")
	err.Code = artel.CodeArtifactNotFound
	return err
}
