// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type ledger struct{ *Tx }

// dayOf numbers the days in UTC since 1970.
func dayOf(t time.Time) int64 { return t.UTC().Truncate(24*time.Hour).Unix() / (24 * 60 * 60) }

func (t ledger) Add(rows ...store.UsageRow) error {
	const op = "store.Ledger.Add"
	for _, r := range rows {
		if err := checkText(op, "", r.Key, string(r.Service), r.Model, string(r.Agent), r.Source); err != nil {
			return err
		}
		c := r.Counts
		_, err := t.change(op, "", `INSERT INTO usage (day, "user", key, service, model, agent, source, calls, input, cached, output, reasoning, cost, unknown)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (day, "user", key, service, model, agent, source) DO UPDATE SET calls = usage.calls + excluded.calls, input = usage.input + excluded.input, cached = usage.cached + excluded.cached,
output = usage.output + excluded.output, reasoning = usage.reasoning + excluded.reasoning, cost = usage.cost + excluded.cost, unknown = usage.unknown + excluded.unknown`,
			dayOf(r.Day), string(r.User), r.Key, string(r.Service), r.Model, string(r.Agent), r.Source, c.Calls, c.Input, c.Cached, c.Output, c.Reasoning, c.Cost, c.Unknown)
		if err != nil {
			return err
		}
	}
	return nil
}

func (t ledger) Sum(q store.UsageQuery) ([]store.UsageRow, error) {
	const op = "store.Ledger.Sum"
	known := map[store.UsageField]string{store.ByDay: "day", store.ByUser: `"user"`, store.ByKey: "key", store.ByService: "service", store.ByModel: "model", store.ByAgent: "agent"}
	var by []string
	for _, f := range q.By {
		column, ok := known[f]
		if !ok {
			return nil, artel.Errorf(artel.Invalid, op, "by", "rows cannot be grouped by %q", artel.Shorten(string(f), 40))
		}
		by = append(by, column)
	}
	where, args := []string{"TRUE"}, []any{}
	limit := func(condition string, arg any) { where, args = append(where, condition), append(args, arg) }
	if !q.From.IsZero() {
		limit("day >= ?", dayOf(q.From))
	}
	if !q.To.IsZero() {
		limit("day <= ?", dayOf(q.To))
	}
	if q.User != "" {
		limit(`"user" = ?`, string(q.User))
	}
	if q.Key != "" {
		limit("key = ?", q.Key)
	}
	columns := strings.Join(by, ", ")
	var sums []string // of numbers that fit into a column, though databases may have larger types for sums
	for _, count := range []string{"calls", "input", "cached", "output", "reasoning", "cost", "unknown"} {
		sums = append(sums, "CAST(sum("+count+") AS BIGINT)")
	}
	query := "SELECT " + strings.Join(slices.Concat(by, sums), ", ") +
		" FROM usage WHERE " + strings.Join(where, " AND ")
	if columns == "" {
		query += " HAVING count(*) > 0"
	} else {
		query += " GROUP BY " + columns + " ORDER BY " + columns
	}
	return list(t.Tx, op, "", query, args, func(rows Row, r *store.UsageRow) error {
		var day int64 = -1
		places := map[string]any{"day": &day, `"user"`: &r.User, "key": &r.Key, "service": &r.Service, "model": &r.Model, "agent": &r.Agent}
		var into []any
		for _, column := range by {
			into = append(into, places[column])
		}
		c := &r.Counts
		err := rows.Scan(append(into, &c.Calls, &c.Input, &c.Cached, &c.Output, &c.Reasoning, &c.Cost, &c.Unknown)...)
		if day >= 0 {
			r.Day = time.Unix(day*24*60*60, 0).UTC()
		}
		return err
	})
}

func (t ledger) Mark(subject string) (store.UsageMark, error) {
	m := store.UsageMark{Subject: subject}
	_, err := t.row("store.Ledger.Mark", artel.Shorten(subject, 80), "SELECT began, amount FROM usage_marks WHERE subject = ?", []any{subject}, (*timeColumn)(&m.Begin), &m.Amount)
	return m, err
}

func (t ledger) SetMark(m store.UsageMark) error {
	_, err := t.change("store.Ledger.SetMark", artel.Shorten(m.Subject, 80), "INSERT INTO usage_marks (subject, began, amount) VALUES (?, ?, ?) ON CONFLICT (subject) DO UPDATE SET began = excluded.began, amount = excluded.amount", m.Subject, micros(m.Begin), m.Amount)
	return err
}
