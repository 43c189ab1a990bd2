// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/artelhq/artel"
)

type artifacts struct{ *Tx }

// onBranch selects the states visible on a branch: those without a message, and
// those whose message is on the path.
const onBranch = " AND (message = '' OR message IN (SELECT id FROM path))"

// headTable finds the newest state of every artifact on a branch.
const headTable = "WITH RECURSIVE " + pathTable + `,
	head AS (SELECT artifact, max(number) AS number, max(2 * number + live) % 2 AS live FROM (
		SELECT artifact, number, 0 AS live FROM versions WHERE owner = ?1 AND conversation = ?2` + onBranch + `
		UNION ALL
		SELECT artifact, number, 1 FROM edits WHERE owner = ?1 AND conversation = ?2 AND folded = 0` + onBranch + `) AS state
		GROUP BY artifact) -- live is that of the greatest number
	`

// headColumns are the columns of a head, without its changes.
const headColumns = "v.number, v.parent, v.message, v.run, v.author, v.update_type, v.title, v.filename, v.source, v.media, v.digest, v.in_blob, v.created_at"

const headsQuery = headTable + `
	SELECT h.artifact, h.live, a.created_at, ` + headColumns + fromHead + `versions v ON h.live = 0` + atHead + `
	UNION ALL
	SELECT h.artifact, h.live, a.created_at, ` + headColumns + fromHead + `edits v ON h.live = 1` + atHead + `
	ORDER BY 1`

const (
	fromHead = " FROM head h JOIN artifacts a ON a.owner = ?1 AND a.conversation = ?2 AND a.id = h.artifact JOIN "
	atHead   = " AND v.owner = ?1 AND v.conversation = ?2 AND v.artifact = h.artifact AND v.number = h.number"
)

// liveQuery finds the newest unfolded edits.
const liveQuery = "WITH RECURSIVE " + pathTable + `,
	head AS (SELECT artifact, max(number) AS number, 1 AS live FROM edits WHERE owner = ?1 AND conversation = ?2 AND folded = 0` + onBranch + `
		GROUP BY artifact)
	SELECT h.artifact, h.live, a.created_at, ` + headColumns + fromHead + `edits v ON v.folded = 0` + atHead + `
	ORDER BY 1`

// statesQuery lists ?5 states of artifact ?3 before number ?4 from the newest to the
// oldest, each with the row of its message; NULL: it has none.
const statesQuery = "SELECT a.id, 0, a.created_at, " + headColumns + ", m.n, v.number AS newest FROM versions v" + ofState + `
	UNION ALL
	SELECT a.id, 1, a.created_at, ` + headColumns + ", m.n, v.number FROM edits v" + ofState + ` AND v.folded = 0
	ORDER BY newest DESC LIMIT ?5`

const ofState = ` JOIN artifacts a ON a.owner = ?1 AND a.conversation = ?2 AND a.id = ?3
	LEFT JOIN messages m ON m.owner = ?1 AND m.id = v.message
	WHERE v.owner = ?1 AND v.conversation = ?2 AND v.artifact = ?3 AND v.number < ?4`

// fewOlder is the maximum number of older heads that are looked up one by one;
// more are read by headsQuery.
const fewOlder = 16

func (t artifacts) Heads(c artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error) {
	const op = "store.Artifacts.Heads"
	if err := t.branch(op, c, at); err != nil {
		return nil, err
	}
	all, of, err := t.headRows(op, c)
	if err != nil {
		return nil, err
	}
	onPath, err := t.onPath(op, c, at, of)
	if err != nil {
		return nil, err
	}
	heads := all[:0]
	var older []int // heads whose newest version is not on this branch
	for i, b := range of {
		here := b.message == "" || onPath[b.message]
		if !here && !b.mixed {
			continue
		}
		if !here {
			older = append(older, len(heads))
		}
		if len(heads) < i { // avoid copying large values onto themselves
			all[len(heads)] = all[i]
		}
		heads = all[:len(heads)+1]
	}
	if len(older) > fewOlder {
		return t.heads(op, headsQuery, c, t.owner, c, at)
	}
	for _, i := range slices.Backward(older) {
		a, err := t.Head(c, heads[i].ID, at)
		switch {
		case artel.KindOf(err) == artel.NotFound:
			heads = slices.Delete(heads, i, i+1)
		case err != nil:
			return nil, err
		default:
			heads[i] = a
		}
	}
	live, err := t.heads(op, liveQuery, c, t.owner, c, at)
	if err != nil || len(live) == 0 {
		return heads, err
	}
	return newer(heads, live), nil
}

// newer merges two lists sorted by id; it keeps the newer state of an artifact
// that is in both.
func newer(a, b []artel.Artifact) []artel.Artifact {
	out := make([]artel.Artifact, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch d := cmp.Compare(a[0].ID, b[0].ID); {
		case d < 0 || d == 0 && a[0].Version >= b[0].Version:
			out, a = append(out, a[0]), a[1:]
			if d == 0 {
				b = b[1:]
			}
		default:
			out, b = append(out, b[0]), b[1:]
			if d == 0 {
				a = a[1:]
			}
		}
	}
	return append(append(out, a...), b...)
}

// onPath reports which messages of the newest versions are on a branch. It reads
// the branch from its end, no further than necessary.
func (t artifacts) onPath(op string, c artel.ConversationID, at artel.MessageID, of []visibility) (map[artel.MessageID]bool, error) {
	found := map[artel.MessageID]bool{}
	for _, b := range of {
		if b.message != "" {
			found[b.message] = false
		}
	}
	if len(found) == 0 || at == "" {
		return found, nil
	}
	left, read := len(found), 0
	var reached int64
	err := t.rows(op, string(at), "WITH RECURSIVE "+pathTable+" SELECT id, n FROM path", []any{t.owner, c, at}, func(rows Row) error {
		var id artel.MessageID
		if err := rows.Scan(&id, &reached); err != nil {
			return err
		}
		if _, ok := found[id]; ok {
			found[id] = true
			left--
		}
		if read++; left == 0 || left <= maxAscents && read >= fewSteps {
			return errStop
		}
		return nil
	})
	if err != nil || left == 0 || read < fewSteps {
		return found, err
	}
	return found, t.furtherUp(op, c, at, reached, found)
}

// After fewSteps messages of a branch, up to maxAscents others are looked for one by
// one, by what is known of the branch.
const (
	fewSteps   = 256
	maxAscents = 32
)

// furtherUp looks for the messages that are not on the end of a branch, down to the row
// reached.
func (t artifacts) furtherUp(op string, c artel.ConversationID, at artel.MessageID, reached int64, found map[artel.MessageID]bool) error {
	w, err := t.ascend(op, c, at)
	if err != nil {
		return err
	}
	rows := map[int64]artel.MessageID{}
	for id, on := range found {
		n, there, err := t.in(op, c, id)
		if err != nil {
			return err
		}
		if !on && there && n < reached {
			rows[n] = id
		}
	}
	w.at = reached
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(rows))) {
		if found[rows[n]], err = w.passes(op, n); err != nil {
			return err
		}
	}
	return nil
}

// Head reads the states from the newest one on, and the branch from its end no
// further than to the messages of these.
func (t artifacts) Head(c artel.ConversationID, id artel.ArtifactID, at artel.MessageID) (head artel.Artifact, err error) {
	const op = "store.Artifacts.Head"
	if err := t.requireConversation(op, c); err != nil {
		return artel.Artifact{}, err
	}
	w, err := t.ascend(op, c, at)
	if err != nil {
		return artel.Artifact{}, err
	}
	// Usually the newest state is the head. No other statement can run while states are
	// scanned, so they are read in pages, each larger than the one before.
	before := math.MaxInt64
	for size := 1; ; size *= 8 {
		page, err := t.states(op, c, id, before, size)
		if err != nil {
			return artel.Artifact{}, err
		}
		for _, s := range page {
			found := s.free
			if s.row != nil {
				if found, err = w.passes(op, *s.row); err != nil {
					return artel.Artifact{}, err
				}
			}
			if before = s.Version; found {
				return s.Artifact, nil
			}
		}
		if len(page) < size {
			return artel.Artifact{}, noArtifact(op, id)
		}
	}
}

// A state is one of an artifact.
type state struct {
	artel.Artifact
	free bool   // visible on every branch
	row  *int64 // of its message; nil: it has none
}

func (t artifacts) states(op string, c artel.ConversationID, id artel.ArtifactID, before, limit int) ([]state, error) {
	return list(t.Tx, op, string(id), statesQuery, []any{t.owner, c, id, before, limit}, func(rows Row, s *state) error {
		var number int
		a, m, err := scanHead(rows, c, &s.row, &number)
		s.Artifact, s.free = a, m == ""
		return err
	})
}

func (t artifacts) heads(op, query string, c artel.ConversationID, args ...any) ([]artel.Artifact, error) {
	var heads []artel.Artifact
	err := t.rows(op, string(c), query, args, func(rows Row) error {
		a, _, err := scanHead(rows, c)
		heads = append(heads, a)
		return err
	})
	if err != nil {
		return nil, err
	}
	return heads, nil
}

// scanHead scans an id, live, the artifact's creation, headColumns and extra. It also
// returns the message of the state.
func scanHead(rows Row, c artel.ConversationID, extra ...any) (artel.Artifact, artel.MessageID, error) {
	var (
		id      artel.ArtifactID
		live    bool
		created int64
		r       versionRow
	)
	if err := rows.Scan(slices.Concat([]any{&id, &live, &created}, r.head(), extra)...); err != nil {
		return artel.Artifact{}, "", err
	}
	v, err := r.version()
	if err != nil {
		return artel.Artifact{}, "", err
	}
	a := v.Artifact(c, id, fromMicros(created))
	a.Live = live
	return a, v.Message, nil
}

func (t artifacts) Exists(c artel.ConversationID, id artel.ArtifactID) (bool, error) {
	const op = "store.Artifacts.Exists"
	if err := t.requireConversation(op, c); err != nil {
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
