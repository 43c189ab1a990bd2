// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"sync"

	"github.com/artelhq/artel"
)

// A Lineage remembers which messages are on which branches, so that a branch of many
// thousand messages is not walked again for an artifact of its beginning. Messages keep
// their parents, and their ids are never used again, so what was true of committed rows
// stays true; the row of a branch's end is checked by its id, because rows are used again.
// A nil Lineage remembers nothing.
type Lineage struct {
	mu    sync.Mutex
	known map[lineKey]line
}

// A lineKey names a message by its row.
type lineKey struct {
	owner        artel.Owner
	conversation artel.ConversationID
	row          int64
}

// A line says whether a message is on the branch that ends in leaf.
type line struct {
	leaf    artel.MessageID
	leafRow int64
	on      bool
}

// maxLines bounds the lines that are remembered.
const maxLines = 10_000

func (l *Lineage) get(k lineKey) line {
	if l == nil {
		return line{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[k]
}

func (l *Lineage) put(k lineKey, to line) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || len(l.known) >= maxLines {
		l.known = map[lineKey]line{}
	}
	l.known[k] = to
}

// An ascent walks a branch from its end towards its root, by the rows of its
// messages. A message has a higher row than its parent.
type ascent struct {
	*Tx
	conversation artel.ConversationID
	end          artel.MessageID
	leaf         int64 // the row of end; 0: the branch is empty
	at           int64 // how far it has come; 0: not begun
}

// ascend returns the ascent of the branch of c that ends in at, which may be "".
func (t *Tx) ascend(op string, c artel.ConversationID, at artel.MessageID) (ascent, error) {
	w := ascent{Tx: t, conversation: c, end: at}
	if at == "" {
		return w, nil
	}
	var found bool
	var err error
	if w.leaf, found, err = t.in(op, c, at); err == nil && !found {
		err = noMessage(op, at)
	}
	return w, err
}

// passes reports whether a row is on the branch. It continues from where it is if the
// row is further up, as those of older states usually are, and ends at the end of a
// branch of which the answer is known.
func (w *ascent) passes(op string, row int64) (bool, error) {
	if w.leaf <= row {
		return w.leaf == row, nil
	}
	key := lineKey{w.owner, w.conversation, row}
	known := w.lineage.get(key)
	if known.leaf == w.end {
		return known.on, nil
	}
	if w.at == 0 || w.at < row {
		w.at = w.leaf
	}
	on := false
	if r := known.leafRow; known.leaf != "" && r > row && r <= w.at {
		var id artel.MessageID
		if err := w.climb(op, r); err != nil {
			return false, err
		}
		if w.at == r {
			if _, err := w.row(op, "", "SELECT id FROM messages WHERE owner = ? AND n = ?", []any{w.owner, r}, &id); err != nil {
				return false, err
			}
		}
		if id == known.leaf {
			w.remember(key, known.on)
			return known.on, nil
		}
	}
	err := w.climb(op, row)
	if on = w.at == row; err == nil {
		w.remember(key, on)
	}
	return on, err
}

// climb goes up the branch to a row, or to the last one above it if it is on another branch.
func (w *ascent) climb(op string, row int64) error {
	if w.at <= row {
		return nil
	}
	_, err := w.Tx.row(op, "", `WITH RECURSIVE path (n) AS (
		SELECT CAST(?2 AS BIGINT) UNION ALL
		SELECT m.parent_n FROM path JOIN messages m ON m.n = path.n AND m.owner = ?1 AND m.parent_n >= ?3
		) SELECT min(n) FROM path`, []any{w.owner, w.at, row}, &w.at)
	return err
}

// remember keeps what views have found: an update may have read what is never committed.
func (w *ascent) remember(k lineKey, on bool) {
	if !w.write {
		w.lineage.put(k, line{w.end, w.leaf, on})
	}
}
