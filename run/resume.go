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

// A run that its process has left goes on where the log ends. What was
// completed is there: messages with their calls, results of tools, edits. A
// model call that was not completed is made again, and so is a call of a tool
// where that is right; of others the model is told that the outcome is unknown.

// maxResumes is how often a run may be taken over without completing a step,
// before it counts as what brings the server down.
const maxResumes = 5

// forever is later than every lease.
const forever = 100 * 365 * 24 * time.Hour

// Recover takes over the runs that no process works on, and returns how many
// those were. With exclusive set, no other process can be working on them.
func (rs *Runs) Recover(ctx context.Context, exclusive bool) (int, error) {
	now := rs.config.Now()
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
			rs.next(context.WithoutCancel(ctx), l.Owner, l.Conversation)
		}
	}()
	for _, l := range leases {
		if rs.isActive(l.Run) {
			continue
		}
		waiting[store.Lease{Owner: l.Owner, Conversation: l.Conversation}] = true
		switch err := rs.resume(artel.WithOwner(ctx, l.Owner), l, now); {
		case err == nil:
			n++
		case !errors.Is(err, errLeaseLost) && !errors.Is(err, errQueued): // else somebody was quicker, or its turn comes
			failed = append(failed, err)
		}
	}
	return n, errors.Join(failed...)
}

// resume takes one run over, if its lease has ended at now.
func (rs *Runs) resume(ctx context.Context, l store.Lease, now time.Time) error {
	job := execution{runs: rs, owner: l.Owner, worked: l.Worked}
	runCtx, err := rs.admit(ctx, l.Run)
	if err != nil {
		return err
	}
	var unfit error
	err = rs.config.update(ctx, func(tx store.Tx) (err error) {
		unfit = nil
		if job.run, err = tx.Runs.Get(l.Run); err != nil {
			return err
		}
		if job.run.State == artel.RunQueued {
			return errQueued
		}
		l.Holder, l.Until = rs.holder, rs.config.Now().Add(leaseTime)
		if err := tx.Runs.Renew(l, now); err != nil {
			return leaseLost(err)
		}
		t, err := trailOf(tx, job.run)
		if err != nil {
			return err
		}
		job.cut = t.cut
		if job.from, err = job.tip(tx); err != nil {
			return err
		}
		if job.clock.Seed, err = seedOf(tx, job.run); err != nil {
			return err
		}
		if unfit = job.fit(tx, t); unfit != nil {
			return nil
		}
		if job.run.State == artel.RunWaiting { // the answer may have come, and is looked for
			job.run.State = artel.RunRunning
			if err := tx.Runs.Update(job.run); err != nil {
				return err
			}
		}
		return job.appendEvents(tx, artel.RunResumed{Attempt: t.resumed + 1})
	})
	if err != nil {
		rs.dismiss(l.Run)
		return err
	}
	if unfit != nil {
		defer rs.dismiss(l.Run)
		return job.finish(runCtx, artel.RunInterrupted, unfit)
	}
	rs.config.notifier().Discard(l.Conversation)
	rs.config.notifier().Notify(l.Conversation)
	go func() {
		defer rs.dismiss(l.Run)
		job.execute(runCtx)
	}()
	return nil
}

// fit finds the agent and the service of a run that is to go on. The error
// says why it cannot.
func (x *execution) fit(tx store.Tx, t trail) error {
	if t.resumed >= maxResumes {
		return errStuck
	}
	if _, ok := x.runs.config.Services.Lookup(x.run.Service); !ok {
		return artel.Errorf(artel.NotFound, "app.Runs.resume", string(x.run.Service), "the service is not configured any more; send a message to go on with another")
	}
	c, err := tx.Conversations.Get(x.run.Conversation)
	if err != nil {
		return err
	}
	return x.choose(tx, c, Input{Agent: x.run.Agent, Service: x.run.Service})
}

// errQueued says that a run has not begun.
var errQueued = errors.New("the run waits for its turn")

// leaseLost is err, or says that somebody else has the run.
func leaseLost(err error) error {
	if errors.Is(err, artel.Conflict) || errors.Is(err, artel.NotFound) {
		return errLeaseLost
	}
	return err
}

// lease is that of this process on the run.
func (x *execution) lease(until time.Time) store.Lease {
	return store.Lease{Owner: x.owner, Run: x.run.ID, Conversation: x.run.Conversation, Holder: x.runs.holder, Until: until, Worked: x.atWork()}
}

// hold makes sure, inside a transaction, that the run is still this process's.
// Whoever was away for long enough to lose it writes nothing any more.
func (x *execution) hold(tx store.Tx) error {
	return leaseLost(tx.Runs.Renew(x.lease(time.Time{}), time.Time{}))
}

// leave lets whoever comes next go on with the run at once.
func (x *execution) leave(ctx context.Context) {
	err := x.retry(ctx, func(tx store.Tx) error {
		if x.callsTools() { // an answer that is paid, and whose calls whoever goes on makes
			if err := x.release(tx); err != nil {
				return err
			}
		}
		return leaseLost(tx.Runs.Renew(x.lease(x.runs.config.Now()), time.Time{}))
	})
	if err != nil && !errors.Is(err, errLeaseLost) {
		x.runs.config.Logger.Warn("a run's lease could not be given back; it ends by itself", "run", x.run.ID, "err", err)
	}
	x.runs.config.notifier().Discard(x.run.Conversation)
}

// A trail is what the end of the log tells of a run that was left.
type trail struct {
	resumed int                          // how often it was taken over since it has completed something
	cut     map[artel.CallID][]artel.Ref // tool calls that were begun and not completed, with their edits
}

// trailAtOnce is how many events are read at a time, from the end.
const trailAtOnce = 200

// trailOf reads the log from its end back to the newest answer of the run's own
// agent, or to the run's beginning.
func trailOf(tx store.Tx, r artel.Run) (trail, error) {
	t := trail{cut: map[artel.CallID][]artel.Ref{}}
	to, err := tx.Events.Last(r.Conversation)
	var events []artel.Event // newest first
	begun := false
	for err == nil && to > 0 && !begun {
		from := max(0, to-trailAtOnce)
		var page []artel.Event
		if page, err = tx.Events.Read(r.Conversation, from, int(to-from)); err != nil {
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
	at := map[artel.CallPath]artel.CallID{} // in each thread, the newest call of a tool that edits; such calls follow one another
	for _, e := range slices.Backward(events) {
		if err := t.take(e, at); err != nil {
			return t, artel.Errorf(artel.Internal, "app.Runs.resume", string(r.ID), "event %d: %w", e.Seq, err)
		}
	}
	return t, nil
}

func (t *trail) take(e artel.Event, at map[artel.CallPath]artel.CallID) error {
	var p struct {
		Call     artel.CallID   `json:"call_id"`
		Artifact artel.Artifact `json:"artifact"`
	}
	switch e.Type {
	case artel.EventRunResumed:
		t.resumed++
		return nil
	case artel.EventMessageCompleted, artel.EventToolStarted, artel.EventToolCompleted, artel.EventArtifactCreated, artel.EventArtifactUpdated,
		artel.EventCompactionCompleted, artel.EventMessageInjected:
	default:
		return nil
	}
	if err := json.Unmarshal(e.Data, &p); err != nil {
		return err
	}
	switch e.Type {
	case artel.EventToolStarted:
		if _, again := t.cut[p.Call]; !again {
			t.cut[p.Call] = nil
		}
		at[e.Within] = p.Call
	case artel.EventArtifactCreated, artel.EventArtifactUpdated:
		call := at[e.Within]
		if _, open := t.cut[call]; open {
			ref := p.Artifact.Ref
			ref.Version = p.Artifact.Version
			t.cut[call] = append(t.cut[call], ref)
		}
	default:
		delete(t.cut, p.Call)
		t.resumed = 0
	}
	return nil
}

// seedOf is that of the run's model calls.
func seedOf(tx store.Tx, r artel.Run) (uint64, error) {
	rows, err := tx.Contexts.List(store.ContextQuery{Conversation: r.Conversation, Run: r.ID, Limit: 1})
	if err != nil || len(rows) == 0 {
		return Input{}.clock().Seed, err
	}
	s, err := record.SummaryOf(rows[0])
	return s.Seed, err
}

// history is the branch that ends in the newest message of the run, and how
// many of its messages came before the run.
func (x *execution) history(tx store.Tx) (branch []artel.Message, before int, err error) {
	branch, err = tx.Messages.Path(x.run.Conversation, cmp.Or(x.from, x.run.Message), 0)
	before = slices.IndexFunc(branch, func(m artel.Message) bool { return m.ID == x.run.Message })
	return branch, max(0, before), err
}
