// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type audit struct{ *Tx }

func (t audit) Add(entries ...store.AuditEntry) error {
	const op = "store.Audit.Add"
	for _, e := range entries {
		if e.Action == "" {
			return artel.Errorf(artel.Invalid, op, "", "an entry without an action")
		}
		if err := checkText(op, e.Action, string(e.Actor), e.Action, e.Target, e.Detail, e.Address); err != nil {
			return err
		}
		_, err := t.change(op, e.Action, "INSERT INTO audit (time, actor, action, target, detail, address) VALUES (?, ?, ?, ?, ?, ?)",
			micros(e.Time), string(e.Actor), e.Action, e.Target, e.Detail, e.Address)
		if err != nil {
			return err
		}
	}
	return nil
}

// Audit implements [store.Unowned].
func (s Store) Audit() store.AuditLog { return auditLog{s} }

type auditLog struct{ Store }

func (s auditLog) List(ctx context.Context, q store.AuditQuery) (items []store.AuditEntry, next string, err error) {
	const op, cursors = "store.AuditLog.List", "audit"
	limit, err := pageLimit(op, q.Page)
	if err != nil {
		return nil, "", err
	}
	query, args := "SELECT n, time, actor, action, target, detail, address FROM audit WHERE TRUE", []any(nil)
	and := func(condition string, value any) {
		query += " AND " + condition
		args = append(args, value)
	}
	if q.Cursor != "" {
		before, _, err := parseCursor(op, cursors, q.Cursor)
		if err != nil {
			return nil, "", err
		}
		and("n < ?", before)
	}
	if q.Actor != "" {
		and("actor = ?", string(q.Actor))
	}
	if q.Action != "" {
		and("action = ?", q.Action)
	}
	if !q.Since.IsZero() {
		and("time >= ?", micros(q.Since))
	}
	if !q.Until.IsZero() {
		and("time < ?", micros(q.Until))
	}
	err = s.db.Read(ctx, op, Deployment, func(t *Tx) (err error) {
		items, err = list(t, op, "", query+" ORDER BY n DESC LIMIT ?", append(args, limit+1), func(rows Row, e *store.AuditEntry) error {
			return rows.Scan(&e.Number, (*timeColumn)(&e.Time), &e.Actor, &e.Action, &e.Target, &e.Detail, &e.Address)
		})
		return err
	})
	if err != nil {
		return nil, "", err
	}
	if len(items) > limit {
		items = items[:limit]
		next = cursor(cursors, items[limit-1].Number, "")
	}
	return items, next, nil
}

// prunedTogether is the number of entries that one update removes.
const prunedTogether = 1000

func (s auditLog) Prune(ctx context.Context, before time.Time) (int, error) {
	const op = "store.AuditLog.Prune"
	total := 0
	for {
		var n int64
		err := s.db.Write(ctx, Deployment, func(t *Tx) (err error) {
			n, err = t.change(op, "", "DELETE FROM audit WHERE n IN (SELECT n FROM audit WHERE time < ? ORDER BY time LIMIT ?)", micros(before), prunedTogether)
			return err
		})
		if err != nil {
			return total, err
		}
		if total += int(n); n < prunedTogether {
			return total, nil
		}
	}
}
