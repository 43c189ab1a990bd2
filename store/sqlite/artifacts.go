// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"database/sql"

	"github.com/artelhq/artel"
)

type artifacts struct{ *tx }

// headQuery finds the newest states of artifacts. The tables that take part
// are narrowed by the condition which.
func headQuery(which string) string {
	seen := func(table, live, more string) string {
		return "SELECT artifact, number, " + live + " AS live FROM " + table +
			" WHERE owner = ?1 AND conversation = ?2" + which + more +
			" AND (message = '' OR message IN (SELECT id FROM path))"
	}
	state := func(table, live string) string {
		return "SELECT h.artifact, h.live, a.created_at, " + versionColumns +
			" FROM head h JOIN artifacts a ON a.owner = ?1 AND a.conversation = ?2 AND a.id = h.artifact" +
			" JOIN " + table + " v ON h.live = " + live +
			" AND v.owner = ?1 AND v.conversation = ?2 AND v.artifact = h.artifact AND v.number = h.number"
	}
	// In SQLite the other columns of a max() come from the row that has it.
	return "WITH RECURSIVE " + pathTable + `,
		head AS (SELECT artifact, max(number) AS number, live FROM (` +
		seen("versions", "0", "") + " UNION ALL " + seen("edits", "1", " AND folded = 0") + `) GROUP BY artifact) ` +
		state("versions", "0") + " UNION ALL " + state("edits", "1") + " ORDER BY 1"
}

var (
	headsQuery = headQuery("")
	oneHead    = headQuery(" AND artifact = ?4")
)

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
