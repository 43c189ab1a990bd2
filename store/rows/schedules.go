// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type schedules struct{ *Tx }

const scheduleColumns = `SELECT id, "user", created_at, coalesce(next_at, 0), name, cron, zone, agent, conversation, message, paused FROM schedules s`

func scanSchedule(rows Row, s *store.Schedule) error {
	var next int64
	err := rows.Scan(&s.ID, &s.User, (*timeColumn)(&s.CreatedAt), &next, &s.Name, &s.Cron, &s.Zone, &s.Agent, &s.Conversation, &s.Text, &s.Paused)
	s.NextAt = optionalMicros(next)
	return err
}

func (t schedules) Create(s store.Schedule) error {
	const op = "store.Schedules.Create"
	if err := checkText(op, s.ID, s.ID, string(s.User), s.Name, s.Cron, s.Zone, string(s.Agent), string(s.Conversation), s.Text); err != nil {
		return err
	}
	_, err := t.change(op, s.ID, `INSERT INTO schedules (id, "user", created_at, next_at, name, cron, zone, agent, conversation, message, paused) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		s.ID, string(s.User), micros(s.CreatedAt), optional(s.NextAt), s.Name, s.Cron, s.Zone, string(s.Agent), string(s.Conversation), s.Text, s.Paused)
	return err
}

func (t schedules) Get(id string) (store.Schedule, error) {
	const op = "store.Schedules.Get"
	found, err := list(t.Tx, op, artel.Shorten(id, 80), scheduleColumns+" WHERE id = ?", []any{id}, scanSchedule)
	if err == nil && len(found) == 0 {
		err = artel.Errorf(artel.NotFound, op, artel.Shorten(id, 80), "no such schedule")
	}
	if err != nil {
		return store.Schedule{}, err
	}
	return found[0], nil
}

func (t schedules) List(user artel.Owner) ([]store.Schedule, error) {
	return list(t.Tx, "store.Schedules.List", string(user), scheduleColumns+` WHERE "user" = ? ORDER BY n`, []any{string(user)}, scanSchedule)
}

func (t schedules) Update(s store.Schedule) error {
	const op = "store.Schedules.Update"
	if err := checkText(op, s.ID, s.Name, s.Cron, s.Zone, string(s.Agent), string(s.Conversation), s.Text); err != nil {
		return err
	}
	n, err := t.change(op, s.ID, `UPDATE schedules SET next_at = ?, name = ?, cron = ?, zone = ?, agent = ?, conversation = ?, message = ?, paused = ? WHERE "user" = ? AND id = ?`,
		optional(s.NextAt), s.Name, s.Cron, s.Zone, string(s.Agent), string(s.Conversation), s.Text, s.Paused, string(s.User), s.ID)
	return present(op, s.ID, "schedule", n, err)
}

func (t schedules) Advance(id string, from, to time.Time) (bool, error) {
	n, err := t.change("store.Schedules.Advance", id, "UPDATE schedules SET next_at = ? WHERE id = ? AND next_at = ?", optional(to), id, micros(from))
	return n == 1, err
}

func (t schedules) Delete(user artel.Owner, id string) error {
	const op = "store.Schedules.Delete"
	if id == "" {
		_, err := t.change(op, string(user), `DELETE FROM schedules WHERE "user" = ?`, string(user))
		return err
	}
	n, err := t.change(op, id, `DELETE FROM schedules WHERE "user" = ? AND id = ?`, string(user), id)
	return present(op, id, "schedule", n, err)
}

type starts struct{ *Tx }

const startColumns = "SELECT n, schedule, planned_at, created_at, missed, manual, conversation, run, state, error, coalesce(until, 0) FROM schedule_runs"

func scanStart(rows Row, s *store.Start) error {
	var until int64
	err := rows.Scan(&s.Number, &s.Schedule, (*timeColumn)(&s.PlannedAt), (*timeColumn)(&s.CreatedAt), &s.Missed, &s.Manual, &s.Conversation, &s.Run, &s.State, &s.Error, &until)
	s.Until = optionalMicros(until)
	return err
}

func (t starts) Add(s store.Start) error {
	const op = "store.Starts.Add"
	if err := checkText(op, s.Schedule, string(s.Conversation), string(s.Run), s.Error); err != nil {
		return err
	}
	_, err := t.change(op, s.Schedule, "INSERT INTO schedule_runs (schedule, planned_at, created_at, missed, manual, conversation, run, state, error, until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		s.Schedule, micros(s.PlannedAt), micros(s.CreatedAt), s.Missed, s.Manual, string(s.Conversation), string(s.Run), string(s.State), s.Error, optional(s.Until))
	return err
}

func (t starts) List(q store.StartQuery) (items []store.Start, next string, err error) {
	const op, kind = "store.Starts.List", "starts"
	limit, err := pageLimit(op, q.Page)
	if err != nil {
		return nil, "", err
	}
	query, args := startColumns+" WHERE schedule = ?", []any{q.Schedule}
	if q.State != "" {
		query, args = query+" AND state = ?", append(args, string(q.State))
	}
	if q.Cursor != "" {
		before, _, err := parseCursor(op, kind, q.Cursor)
		if err != nil {
			return nil, "", err
		}
		query, args = query+" AND n < ?", append(args, before)
	}
	items, err = list(t.Tx, op, q.Schedule, query+" ORDER BY n DESC LIMIT ?", append(args, limit+1), scanStart)
	if len(items) > limit {
		items = items[:limit]
		next = cursor(kind, items[limit-1].Number, "")
	}
	return items, next, err
}

func (t starts) Due(now time.Time) ([]store.Schedule, error) {
	return list(t.Tx, "store.Starts.Due", "", scheduleColumns+` WHERE next_at <= ? AND paused = 0 AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id = s."user" AND u.disabled <> 0) ORDER BY n`,
		[]any{micros(now)}, scanSchedule)
}

func (t starts) Take(now, until time.Time, limit int) (taken []store.Start, err error) {
	const op = "store.Starts.Take"
	due, err := list(t.Tx, op, "", startColumns+" WHERE until <= ? ORDER BY n LIMIT ?", []any{micros(now), limit}, scanStart)
	for _, s := range due {
		n, err := t.change(op, s.Schedule, "UPDATE schedule_runs SET until = ? WHERE n = ? AND until = ?", micros(until), s.Number, micros(s.Until))
		if err != nil {
			return nil, err
		}
		if n == 1 {
			s.Until = until
			taken = append(taken, s)
		}
	}
	return taken, err
}

func (t starts) Report(s store.Start) error {
	const op = "store.Starts.Report"
	if err := checkText(op, s.Schedule, s.Error); err != nil {
		return err
	}
	n, err := t.change(op, s.Schedule, "UPDATE schedule_runs SET state = ?, error = ?, until = ? WHERE schedule = ? AND n = ?", string(s.State), s.Error, optional(s.Until), s.Schedule, s.Number)
	return present(op, s.Schedule, "start", n, err)
}

func (t starts) Trim(schedule string, newest int) error {
	_, err := t.change("store.Starts.Trim", schedule, "DELETE FROM schedule_runs WHERE schedule = ?1 AND n <= (SELECT n FROM schedule_runs WHERE schedule = ?1 ORDER BY n DESC LIMIT 1 OFFSET ?2)", schedule, newest)
	return err
}
