// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type runs struct{ *Tx }

const (
	runColumns = "id, conversation, message, reply, state, service, agent, usage, error, started_at, finished_at, purpose"
	unfinished = "state IN ('queued', 'running', 'waiting')" // must match the condition of the indexes
	atWork     = "state IN ('running', 'waiting')"           // likewise
)

func (t runs) Create(r artel.Run, l store.Lease) error {
	const op = "store.Runs.Create"
	row, err := newRunRow(op, r)
	if err != nil {
		return err
	}
	if err := checkText(op, string(r.ID), l.Holder); err != nil {
		return err
	}
	if err := t.requireConversation(op, r.Conversation); err != nil {
		return err
	}
	if r.State.Active() {
		if err := t.free(op, r); err != nil {
			return err
		}
	}
	_, err = t.change(op, string(r.ID), "INSERT INTO runs (owner, "+runColumns+", holder, term, lease_until, worked) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		t.owner, r.ID, r.Conversation, r.Message, r.Reply, r.State, r.Service, r.Agent,
		row.usage, row.error, row.started, row.finished, r.Purpose, l.Holder, l.Term, micros(l.Until), l.Worked.Microseconds())
	return err
}

func (t runs) Get(id artel.RunID) (artel.Run, error) {
	const op = "store.Runs.Get"
	if err := t.lock(op, "runs", string(id)); err != nil {
		return artel.Run{}, err
	}
	r, found, err := t.one(op, string(id), "WHERE owner = ? AND id = ?"+notDeleted("runs"), t.owner, id)
	if err == nil && !found {
		err = noRun(op, id)
	}
	return r, err
}

func (t runs) Update(r artel.Run) error {
	const op = "store.Runs.Update"
	row, err := newRunRow(op, r)
	if err != nil {
		return err
	}
	if err := t.lock(op, "runs", string(r.ID)); err != nil {
		return err
	}
	n, err := t.change(op, string(r.ID), `UPDATE runs SET reply = ?, state = ?, service = ?, agent = ?, usage = ?, error = ?, finished_at = ?
		WHERE owner = ? AND id = ?`+notDeleted("runs"), r.Reply, r.State, r.Service, r.Agent, row.usage, row.error, row.finished, t.owner, r.ID)
	if errors.Is(err, artel.Conflict) { // from the index runs_active
		if old, failed := t.Get(r.ID); failed == nil {
			err = cmp.Or(t.free(op, old), err)
		}
	}
	if err == nil && n == 0 {
		err = noRun(op, r.ID)
	}
	return err
}

func (t runs) Active(c artel.ConversationID) (artel.Run, error) {
	const op = "store.Runs.Active"
	if err := t.requireConversation(op, c); err != nil {
		return artel.Run{}, err
	}
	r, found, err := t.one(op, string(c), "WHERE owner = ? AND conversation = ? AND "+atWork, t.owner, c)
	if err == nil && !found {
		err = artel.Errorf(artel.NotFound, op, string(c), "no run is active")
	}
	return r, err
}

func (t runs) Usage(c artel.ConversationID) (sum artel.Usage, err error) {
	const op = "store.Runs.Usage"
	if err := t.requireConversation(op, c); err != nil {
		return sum, err
	}
	err = t.rows(op, string(c), "SELECT usage FROM runs WHERE owner = ? AND conversation = ?", []any{t.owner, c}, func(r Row) error {
		var raw string
		var u artel.Usage
		err := r.Scan(&raw)
		if err == nil {
			err = json.Unmarshal([]byte(raw), &u)
		}
		sum = sum.Add(u)
		return err
	})
	return sum, err
}

func (t runs) Renew(l store.Lease, now time.Time) error {
	const op = "store.Runs.Renew"
	if err := checkText(op, string(l.Run), l.Holder); err != nil {
		return err
	}
	if err := t.lock(op, "runs", string(l.Run)); err != nil {
		return err
	}
	if !l.Until.IsZero() {
		n, err := t.change(op, string(l.Run), `UPDATE runs SET holder = ?, term = ?, lease_until = ?, worked = ?
			WHERE owner = ? AND id = ? AND `+unfinished+` AND (holder = ? AND term = ? OR lease_until <= ? AND term < ?)`+notDeleted("runs"),
			l.Holder, l.Term, micros(l.Until), l.Worked.Microseconds(), t.owner, l.Run, l.Holder, l.Term, micros(now), l.Term)
		if err != nil || n == 1 {
			return err
		}
	}
	var holder string
	var term, until int64
	var state artel.RunState
	found, err := t.row(op, string(l.Run), "SELECT holder, term, lease_until, state FROM runs WHERE owner = ? AND id = ?"+notDeleted("runs"),
		[]any{t.owner, l.Run}, &holder, &term, &until, &state)
	switch {
	case err != nil:
		return err
	case !found:
		return noRun(op, l.Run)
	case state.Final():
		return artel.Errorf(artel.Conflict, op, string(l.Run), "the run has ended: it is %s", state)
	case l.Until.IsZero() && holder == l.Holder && term == l.Term:
		return nil
	}
	return artel.Errorf(artel.Conflict, op, string(l.Run), "%q holds the run in term %d until %s", holder, term, fromMicros(until).Format(time.RFC3339Nano))
}

// leases implements what [store.Upkeep] says of leases.
type leases struct{ db DB }

// Overdue implements [store.Store].
func (s leases) Overdue(ctx context.Context, now time.Time) ([]store.Lease, error) {
	const op = "store.Overdue"
	var leases []store.Lease
	err := s.db.Read(ctx, op, Deployment, func(t *Tx) (err error) {
		leases, err = list(t, op, "", "SELECT owner, id, conversation, holder, term, lease_until, worked FROM runs WHERE "+unfinished+
			" AND lease_until < ?"+notDeleted("runs")+" ORDER BY lease_until, id", []any{micros(now)}, func(rows Row, l *store.Lease) error {
			var worked int64
			err := rows.Scan(&l.Owner, &l.Run, &l.Conversation, &l.Holder, &l.Term, (*timeColumn)(&l.Until), &worked)
			l.Worked = time.Duration(worked) * time.Microsecond
			return err
		})
		return err
	})
	return leases, err
}

// Clock implements [store.Store].
func (s leases) Clock(ctx context.Context) (now time.Time, err error) {
	const op = "store.Clock"
	err = s.db.Read(ctx, op, Deployment, func(t *Tx) (err error) {
		if t.Now != "" {
			now, err = t.now(op)
		}
		return err
	})
	return now, err
}

// free returns Conflict if another run of r's conversation is running or waiting.
// The index runs_active guarantees the same.
func (t runs) free(op string, r artel.Run) error {
	var active artel.RunID
	found, err := t.row(op, string(r.ID), "SELECT id FROM runs WHERE owner = ? AND conversation = ? AND "+atWork,
		[]any{t.owner, r.Conversation}, &active)
	if err != nil || !found || active == r.ID {
		return err
	}
	return &artel.Error{
		Op: op, Subject: string(r.Conversation), Kind: artel.Conflict, Code: "run_active",
		Err: artel.Errorf(artel.Conflict, op, string(active), "this run has not ended: wait for it or cancel it"),
	}
}

func (t runs) one(op, subject, where string, args ...any) (artel.Run, bool, error) {
	var row runRow
	found, err := t.row(op, subject, "SELECT "+runColumns+" FROM runs "+where, args, row.dest()...)
	if err != nil || !found {
		return artel.Run{}, false, err
	}
	r, err := row.run()
	if err != nil {
		return artel.Run{}, false, t.fail(op, subject, err)
	}
	return r, true, nil
}

func noRun(op string, id artel.RunID) error {
	return artel.Errorf(artel.NotFound, op, string(id), "no such run")
}

// A runRow scans and holds the columns of runColumns.
type runRow struct {
	r        artel.Run
	usage    string
	error    *string
	started  int64
	finished *int64
}

func newRunRow(op string, r artel.Run) (*runRow, error) {
	row := &runRow{started: micros(r.StartedAt)}
	if err := checkText(op, string(r.ID), string(r.ID), string(r.Conversation), string(r.Message), string(r.Reply),
		string(r.State), string(r.Service), string(r.Agent), string(r.Purpose)); err != nil {
		return nil, err
	}
	var err error
	if row.usage, err = encode(op, string(r.ID), r.Usage); err != nil {
		return nil, err
	}
	if r.Error != nil {
		if err := checkText(op, string(r.ID), string(r.Error.Kind), r.Error.Message); err != nil {
			return nil, err
		}
		s, err := encode(op, string(r.ID), r.Error)
		if err != nil {
			return nil, err
		}
		row.error = &s
	}
	if r.FinishedAt != nil {
		us := micros(*r.FinishedAt)
		row.finished = &us
	}
	return row, nil
}

func (row *runRow) dest() []any {
	r := &row.r
	return []any{
		&r.ID, &r.Conversation, &r.Message, &r.Reply, &r.State, &r.Service, &r.Agent,
		&row.usage, &row.error, &row.started, &row.finished, &r.Purpose,
	}
}

func (row *runRow) run() (artel.Run, error) {
	r := row.r
	r.StartedAt = fromMicros(row.started)
	if row.finished != nil {
		at := fromMicros(*row.finished)
		r.FinishedAt = &at
	}
	if err := json.Unmarshal([]byte(row.usage), &r.Usage); err != nil {
		return artel.Run{}, err
	}
	if row.error != nil {
		if err := json.Unmarshal([]byte(*row.error), &r.Error); err != nil {
			return artel.Run{}, err
		}
	}
	return r, nil
}
