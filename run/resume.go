// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/run/record"
	"github.com/artelhq/artel/store"
)

// A run whose process died continues at the end of its log, which has every
// completed step: messages with their calls, tool results, edits. An unfinished
// model call is made again, and so is a tool call if the tool may be repeated;
// for other tools the model receives that the outcome is unknown.

// maxCrashes is how often a run may be resumed after a crash without completing a
// step. A run beyond it is assumed to crash the server. A stop of the server is no
// crash: it releases the lease, which then names no holder.
const maxCrashes = 5

// forever is later than every lease.
const forever = 100 * 365 * 24 * time.Hour

// Recover takes over the runs that no process works on, and returns how many
// those were. With exclusive set, no other process can be working on them.
func (rs *Runs) Recover(ctx context.Context, exclusive bool) (int, error) {
	if err := rs.setClock(ctx); err != nil {
		return 0, err
	}
	now := rs.leaseNow()
	if exclusive {
		now = now.Add(forever)
	}
	leases, err := rs.config.Store.Overdue(ctx, now)
	if err != nil {
		return 0, err
	}
	n := 0
	var failed []error
	waiting := map[store.Lease]bool{} // conversations in which messages may wait for their turn
	defer func() {
		for l := range waiting {
			rs.startNext(context.WithoutCancel(ctx), l.Owner, l.Conversation)
		}
	}()
	for _, l := range leases {
		if rs.isActive(l.Run) {
			continue
		}
		waiting[store.Lease{Owner: l.Owner, Conversation: l.Conversation}] = true
		if queued, err := rs.isQueued(ctx, l); err != nil || queued { // then startNext starts it
			if err != nil && !errors.Is(err, artel.NotFound) {
				failed = append(failed, err)
			}
			continue
		}
		switch err := rs.resume(artel.WithOwner(ctx, l.Owner), l, now); {
		case err == nil:
			n++
		case !errors.Is(err, errLeaseLost) && !errors.Is(err, errQueued): // otherwise another process was faster, or startNext starts it
			failed = append(failed, err)
		}
	}
	return n, errors.Join(failed...)
}

// isQueued reports whether a run waits for its turn. It keeps [Runs.Recover] from
// writing for each queued run.
func (rs *Runs) isQueued(ctx context.Context, l store.Lease) (queued bool, err error) {
	err = rs.config.Store.View(ctx, l.Owner, func(tx store.Tx) error {
		r, err := tx.Runs.Get(l.Run)
		queued = r.State == artel.RunQueued
		return err
	})
	return queued, err
}

// resume takes over one run whose lease has ended at now.
func (rs *Runs) resume(ctx context.Context, l store.Lease, now time.Time) error {
	job := execution{runs: rs, config: rs.config, owner: l.Owner, workedBefore: l.Worked}
	active, err := rs.register(ctx, l.Run)
	switch {
	case errors.Is(err, errRegistered):
		return errLeaseLost // to another caller in this process
	case err != nil:
		return err
	}
	rs.keepSlot(active)
	stopped, err := rs.refused(ctx, l)
	if err != nil {
		rs.unregister(active)
		return err
	}
	var unfit error
	released := l.Holder == ""
	err = rs.config.updateRead(ctx, l.Owner, func(tx store.Tx) (err error) {
		unfit = nil
		if job.run, err = tx.Runs.Get(l.Run); err != nil {
			return err
		}
		if job.run.State == artel.RunQueued {
			return errQueued
		}
		if err := tx.Runs.Renew(job.begin(l.Term), now); err != nil {
			return leaseLost(err)
		}
		last, err := tx.Events.Last(l.Conversation)
		if err != nil {
			return err
		}
		t, err := job.resumeState(last)
		if err != nil {
			return err
		}
		job.interrupted, job.completed = t.interrupted, t.completed
		if job.continuesAfter, err = job.newestMessage(tx); err != nil {
			return err
		}
		if job.clock.Seed, err = seedOf(tx, job.run); err != nil {
			return err
		}
		asked, err := stopAsked(tx, job.run)
		if err != nil {
			return err
		}
		if unfit = cmp.Or(stopped, asked, job.restore(tx, !released && t.crashes >= maxCrashes)); unfit != nil {
			return nil
		}
		if job.run.State == artel.RunWaiting { // Permit looks for the answer
			job.run.State = artel.RunRunning
			if err := tx.Runs.Update(job.run); err != nil {
				return err
			}
		}
		return job.appendEvents(tx, artel.RunResumed{Attempt: t.resumed + 1, Planned: released})
	})
	if err != nil {
		rs.unregister(active)
		return err
	}
	if unfit != nil {
		defer rs.unregister(active)
		state := artel.RunInterrupted
		if errors.Is(unfit, errCancelled) {
			state = artel.RunCancelled
		}
		return job.finish(context.WithoutCancel(active.ctx), state, unfit)
	}
	job.ending = nil // the log has moved on
	rs.config.notifier().Discard(l.Conversation, "")
	rs.config.notifier().Notify(l.Conversation)
	go func() {
		defer rs.unregister(active)
		job.execute(active.ctx)
	}()
	return nil
}

// restore finds the agent and the service of a resumed run. The error says why
// the run cannot continue.
func (x *execution) restore(tx store.Tx, stuck bool) error {
	if stuck {
		return errStuck
	}
	if _, ok := x.config.Services.Lookup(x.run.Service); !ok {
		return artel.Errorf(artel.NotFound, "run.Runs.resume", string(x.run.Service), "the service is not configured any more; send a message to go on with another")
	}
	c, err := tx.Conversations.Get(x.run.Conversation)
	if err != nil {
		return err
	}
	if x.client, err = clientOf(tx, x.run.ID); err != nil {
		return err
	}
	return x.choose(tx, c, Input{Agent: x.run.Agent, Service: x.run.Service})
}

// errQueued reports that a run has not started.
var errQueued = errors.New("the run waits for its turn")

// A resumeState is read from the end of the log of an interrupted run.
type resumeState struct {
	last        artel.Seq                    // the end of the log
	nested      []artel.Message              // of the run's subagents
	resumed     int                          // how often it was resumed since its last completed step
	crashes     int                          // how often of those after a crash
	interrupted map[artel.CallID][]artel.Ref // started and unfinished tool calls, with their edits
	completed   map[artel.CallPath]artel.SubagentCompleted
}

// eventsPerRead is how many events are read at a time, from the end.
const eventsPerRead = 200

// resumeState returns the state at the end of the log, which is the event last, for an
// update. If it was not read there, the error is an [*unreadError].
func (x *execution) resumeState(last artel.Seq) (*resumeState, error) {
	if x.ending != nil && x.ending.last == last {
		return x.ending, nil
	}
	return nil, &unreadError{func(tx store.Tx) error {
		t, err := resumeStateOf(tx, x.run)
		if err == nil {
			t.nested, err = tx.Messages.Nested(x.run.Conversation, x.run.ID)
		}
		if err == nil {
			x.ending = &t
		}
		return err
	}}
}

// resumeStateOf reads the log from its end back to the newest answer of the run's
// own agent, or to the start of the run.
func resumeStateOf(tx store.Tx, r artel.Run) (resumeState, error) {
	t := resumeState{interrupted: map[artel.CallID][]artel.Ref{}, completed: map[artel.CallPath]artel.SubagentCompleted{}}
	to, err := tx.Events.Last(r.Conversation)
	t.last = to
	var events []artel.Event // newest first
	begun := false
	for err == nil && to > 0 && !begun {
		from := max(0, to-eventsPerRead)
		var page []artel.Event
		for after := from; err == nil && after < to; {
			var some []artel.Event
			if some, err = tx.Events.Read(r.Conversation, after, int(to-after)); len(some) == 0 {
				break
			}
			page, after = append(page, some...), some[len(some)-1].Seq
		}
		if err != nil {
			break
		}
		for _, e := range slices.Backward(page) {
			if e.Run != r.ID {
				continue
			}
			events = append(events, e)
			if begun = e.Type == artel.EventRunStarted || e.Type == artel.EventMessageCompleted && e.Within == ""; begun {
				break
			}
		}
		to = from
	}
	if err != nil {
		return t, err
	}
	at := map[artel.CallPath]artel.CallID{} // in each thread, the newest tool call: calls that edit run one after the other
	for _, e := range slices.Backward(events) {
		if err := t.add(e, at); err != nil {
			return t, artel.Errorf(artel.Internal, "run.Runs.resume", string(r.ID), "event %d: %w", e.Seq, err)
		}
	}
	return t, nil
}

func (t *resumeState) add(e artel.Event, at map[artel.CallPath]artel.CallID) error {
	var p struct {
		Call     artel.CallID   `json:"call_id"`
		Artifact artel.Artifact `json:"artifact"`
		Planned  bool           `json:"planned"`
	}
	switch e.Type {
	case artel.EventSubagentCompleted:
		var end artel.SubagentCompleted
		if err := json.Unmarshal(e.Data, &end); err != nil {
			return err
		}
		t.completed[e.Within] = end
		return nil
	case artel.EventRunResumed, artel.EventMessageCompleted, artel.EventToolStarted, artel.EventToolCompleted, artel.EventArtifactCreated, artel.EventArtifactUpdated,
		artel.EventCompactionCompleted, artel.EventMessageInjected:
	default:
		return nil
	}
	if err := json.Unmarshal(e.Data, &p); err != nil {
		return err
	}
	switch e.Type {
	case artel.EventRunResumed:
		if t.resumed++; !p.Planned {
			t.crashes++
		}
	case artel.EventToolStarted:
		if _, again := t.interrupted[p.Call]; !again {
			t.interrupted[p.Call] = nil
		}
		at[e.Within] = p.Call
	case artel.EventArtifactCreated, artel.EventArtifactUpdated:
		call := at[e.Within]
		if _, open := t.interrupted[call]; open {
			ref := p.Artifact.Ref
			ref.Version = p.Artifact.Version
			t.interrupted[call] = append(t.interrupted[call], ref)
		}
	default:
		delete(t.interrupted, p.Call)
		t.resumed, t.crashes = 0, 0
	}
	return nil
}

// seedOf returns the seed of the run's model calls.
func seedOf(tx store.Tx, r artel.Run) (uint64, error) {
	rows, err := tx.Contexts.List(store.ContextQuery{Conversation: r.Conversation, Run: r.ID, Limit: 1})
	if err != nil || len(rows) == 0 {
		return Input{}.clock().Seed, err
	}
	s, err := record.SummaryOf(rows[0])
	return s.Seed, err
}
