// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type gatewayLog struct{ *Tx }

// loggedTogether is the number of rows that one statement inserts, because the
// cost of a statement is higher than that of a row.
const loggedTogether = 32

// addLogged returns the statement that inserts n rows.
func addLogged(rows int) string {
	const row = "(?, ?, ?, ?, ?, ?, ?)"
	return "INSERT INTO gateway_log (owner, key, service, server, status, changed, body) VALUES " + row + strings.Repeat(", "+row, rows-1)
}

func (t gatewayLog) Add(entries ...store.GatewayEntry) error {
	const op = "store.GatewayLog.Add"
	for group := range slices.Chunk(entries, loggedTogether) {
		rows := 1 // the rest is inserted row by row, so only two statements exist
		if len(group) == loggedTogether {
			rows = loggedTogether
		}
		for some := range slices.Chunk(group, rows) {
			args := make([]any, 0, 7*rows)
			for _, e := range some {
				if err := checkLogged(op, e); err != nil {
					return err
				}
				args = append(args, t.owner, e.Key, e.Service, e.Server, e.Status, e.Changed, string(e.Body))
			}
			if _, err := t.change(op, "", addLogged(rows), args...); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkLogged(op string, e store.GatewayEntry) error {
	if err := checkText(op, "", e.Key, string(e.Service), e.Server); err != nil {
		return err
	}
	if e.Body == nil {
		return artel.Errorf(artel.Invalid, op, "", "an entry without a body")
	}
	return checkJSON(op, "", e.Body)
}

func (t gatewayLog) List(q store.GatewayQuery) (items []store.GatewayEntry, next string, err error) {
	const op, cursors = "store.GatewayLog.List", "gateway"
	limit, err := pageLimit(op, q.Page)
	if err != nil {
		return nil, "", err
	}
	query, args := "SELECT n, key, service, server, status, changed, body FROM gateway_log WHERE owner = ?", []any{t.owner}
	and := func(condition string, values ...any) {
		query += " AND " + condition
		args = append(args, values...)
	}
	if q.Cursor != "" {
		before, _, err := parseCursor(op, cursors, q.Cursor)
		if err != nil {
			return nil, "", err
		}
		and("n < ?", before)
	}
	if q.Key != "" {
		and("key = ?", q.Key)
	}
	if q.Service != "" {
		and("service = ?", q.Service)
	}
	if q.Server != "" {
		and("server = ?", q.Server)
	}
	switch q.Of {
	case store.LogOfGateway:
		and("server = ''")
	case store.LogOfMCP:
		and("server <> ''")
	}
	if q.MinStatus != 0 {
		and("status >= ?", q.MinStatus)
	}
	if q.MaxStatus != 0 {
		and("status <= ?", q.MaxStatus)
	}
	if q.Changed {
		and("changed = 1")
	}
	items, err = list(t.Tx, op, "", query+" ORDER BY n DESC LIMIT ?", append(args, limit+1), func(rows Row, e *store.GatewayEntry) error {
		return rows.Scan(&e.Number, &e.Key, &e.Service, &e.Server, &e.Status, &e.Changed, (*jsonColumn)(&e.Body))
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

func (t gatewayLog) Trim(newest int) error {
	for _, kind := range []string{"server = ''", "server <> ''"} {
		if _, err := t.change("store.GatewayLog.Trim", "", "DELETE FROM gateway_log WHERE owner = ?1 AND "+kind+` AND n <= (
			SELECT n FROM gateway_log WHERE owner = ?1 AND `+kind+" ORDER BY n DESC LIMIT 1 OFFSET ?2)", t.owner, newest); err != nil {
			return err
		}
	}
	return nil
}
