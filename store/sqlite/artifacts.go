// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"database/sql"

	"github.com/artelhq/artel"
)

type artifacts struct{ *tx }

// What a branch sees of the artifacts: states without a message, and those whose
// message is on the path.
const onBranch = " AND (message = '' OR message IN (SELECT id FROM path))"

// headsQuery finds the newest state of every artifact of a branch.
const headsQuery = "WITH RECURSIVE " + pathTable + `,
	head AS (SELECT artifact, max(number) AS number, live FROM (
		SELECT artifact, number, 0 AS live FROM versions WHERE owner = ?1 AND conversation = ?2` + onBranch + `
		UNION ALL
		SELECT artifact, number, 1 FROM edits WHERE owner = ?1 AND conversation = ?2 AND folded = 0` + onBranch + `)
		GROUP BY artifact) -- in SQLite live comes from the row that has the max()
	SELECT h.artifact, h.live, a.created_at, ` + versionColumns + fromHead + `versions v ON h.live = 0` + atHead + `
	UNION ALL
	SELECT h.artifact, h.live, a.created_at, ` + versionColumns + fromHead + `edits v ON h.live = 1` + atHead + `
	ORDER BY 1`

const (
	fromHead = " FROM head h JOIN artifacts a ON a.owner = ?1 AND a.conversation = ?2 AND a.id = h.artifact JOIN "
	atHead   = " AND v.owner = ?1 AND v.conversation = ?2 AND v.artifact = h.artifact AND v.number = h.number"
)

// oneHead finds that of artifact ?4: each table is read from its newest row
// backwards until one is on the branch.
const oneHead = "WITH RECURSIVE " + pathTable + `
	SELECT a.id, v.live, a.created_at, ` + versionColumns + ` FROM (
		SELECT * FROM (SELECT 0 AS live, ` + versionNames + " FROM versions WHERE owner = ?1 AND conversation = ?2 AND artifact = ?4" + newestOnBranch + `)
		UNION ALL
		SELECT * FROM (SELECT 1, ` + versionNames + " FROM edits WHERE owner = ?1 AND conversation = ?2 AND folded = 0 AND artifact = ?4" + newestOnBranch + `)
	) v JOIN artifacts a ON a.owner = ?1 AND a.conversation = ?2 AND a.id = ?4
	ORDER BY v.number DESC LIMIT 1`

const newestOnBranch = onBranch + " ORDER BY number DESC LIMIT 1"

func (t artifacts) Heads(c artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error) {
	const op = "store.Artifacts.Heads"
	heads, err := t.heads(op, headsQuery, c, t.owner, c, at)
	if err == nil && (len(heads) == 0 || at != "") {
		err = t.branch(op, c, at)
	}
	if err != nil {
		return nil, err
	}
	return heads, nil
}

func (t artifacts) Head(c artel.ConversationID, id artel.ArtifactID, at artel.MessageID) (artel.Artifact, error) {
	const op = "store.Artifacts.Head"
	heads, err := t.heads(op, oneHead, c, t.owner, c, at, id)
	if err == nil && (len(heads) == 0 || at != "") {
		err = t.branch(op, c, at)
	}
	if err == nil && len(heads) == 0 {
		err = noArtifact(op, id)
	}
	if err != nil {
		return artel.Artifact{}, err
	}
	return heads[0], nil
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
		if err := rows.Scan(append([]any{&id, &live, &created}, r.dest()...)...); err != nil {
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
	return heads, err
}

func (t artifacts) Exists(c artel.ConversationID, id artel.ArtifactID) (bool, error) {
	const op = "store.Artifacts.Exists"
	var one int
	found, err := t.row(op, string(id), "SELECT 1 FROM artifacts WHERE owner = ? AND conversation = ? AND id = ?", []any{t.owner, c, id}, &one)
	if err == nil && !found {
		err = t.known(op, c)
	}
	return found, err
}

func noArtifact(op string, id artel.ArtifactID) error {
	err := artel.Errorf(artel.NotFound, op, string(id), "no such artifact here")
	err.Code = artel.CodeArtifactNotFound
	return err
}
