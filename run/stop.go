// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// A stopError is the cause for which the runs of an owner end.
type stopError struct{ why string }

// Error implements error.
func (e *stopError) Error() string { return e.why }

// Stop interrupts the runs of an owner whose further runs [Config.MayWork] refuses, and
// discards those in the queue. Each has the reason in its log. It waits until those of
// this process have ended, or ctx has; other processes are asked to end theirs, and
// [Runs.Recover] ends those without a process.
func Stop(ctx context.Context, rs *Runs, owner artel.Owner, why string) error {
	for _, a := range rs.of(owner) {
		a.cancel(&stopError{why})
		select {
		case <-a.done:
		case <-ctx.Done():
			return artel.Errorf(artel.Canceled, "run.Stop", string(a.id), "the run has not ended in time: %w", ctx.Err())
		}
	}
	leases, err := rs.config.Store.Overdue(ctx, rs.leaseNow().Add(forever))
	if err != nil {
		return err
	}
	queues := map[artel.ConversationID]bool{}
	for _, l := range leases {
		if l.Owner != owner {
			continue
		}
		if l.Holder != "" && !rs.isActive(l.Run) {
			if err := rs.askToStop(ctx, l.Owner, l.Run, l.Conversation, stopNote{Why: why}); err != nil {
				return err
			}
		}
		if !queues[l.Conversation] {
			queues[l.Conversation] = true
			rs.startNext(context.WithoutCancel(ctx), owner, l.Conversation) // discards them
		}
	}
	return nil
}

// of returns the active runs of an owner.
func (rs *Runs) of(owner artel.Owner) (all []*activeRun) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, a := range rs.active {
		if artel.OwnerOf(a.ctx) == owner {
			all = append(all, a)
		}
	}
	return all
}

// mayWork returns why no run may be started for an owner, of kind Denied.
func (rs *Runs) mayWork(ctx context.Context, owner artel.Owner) error {
	if rs.config.MayWork == nil {
		return nil
	}
	return rs.config.MayWork(ctx, owner)
}

// admit is register for a run that is not at work yet, whose owner is checked. The check
// follows the registration, so that [Stop] either finds the run or has been preceded by
// the check's refusal.
func (rs *Runs) admit(ctx context.Context, id artel.RunID) (*activeRun, error) {
	a, err := rs.register(ctx, id)
	if err != nil {
		return nil, err
	}
	err = rs.mayWork(ctx, artel.OwnerOf(ctx))
	if err == nil {
		a.others, err = rs.atWorkElsewhere(ctx, artel.OwnerOf(ctx))
	}
	if err != nil {
		rs.unregister(a)
		return nil, err
	}
	return a, nil
}

// discardStopped ends a queued run whose owner may not have it done any more.
func (rs *Runs) discardStopped(ctx context.Context, owner artel.Owner, r artel.Run, why error) error {
	if e, ok := errors.AsType[*artel.Error](why); ok {
		why = e.Err
	}
	r.Error = &artel.RunError{Kind: artel.Unavailable, Message: why.Error()}
	return rs.discardQueued(ctx, owner, r, artel.RunInterrupted)
}

// refused returns why a run of l's owner may not be resumed; nil: it may.
func (rs *Runs) refused(ctx context.Context, l store.Lease) (why, err error) {
	err = rs.mayWork(ctx, l.Owner)
	if e, ok := errors.AsType[*artel.Error](err); ok && e.Kind == artel.Denied {
		return e.Err, nil
	}
	return nil, err
}

// noteStop is the note by which a process asks the one that has the lease of a run to end
// it. Its id is that of the run and a word. Body: stopNote.
const noteStop = "stop"

// stopNote is the body of its note.
type stopNote struct {
	Why string `json:"why,omitempty"` // of a [stopError]; "": a person has cancelled the run
}

// stopSubject is what the process with the lease of a run listens to.
func stopSubject(id artel.RunID) artel.ConversationID { return artel.ConversationID("stop " + id) }

// askToStop asks the process with the lease of a run to end it, and the next one to have the
// lease if there is none.
func (rs *Runs) askToStop(ctx context.Context, owner artel.Owner, id artel.RunID, c artel.ConversationID, s stopNote) error {
	err := rs.config.Store.Update(ctx, owner, func(tx store.Tx) error {
		r, err := tx.Runs.Get(id)
		if err != nil || r.State.Final() {
			return err
		}
		return putNote(tx, store.Note{ID: string(id) + " stop", Conversation: c, Run: id, Kind: noteStop, Open: true, CreatedAt: rs.config.Now()}, s)
	})
	if err == nil {
		rs.config.notifier().Notify(stopSubject(id))
	}
	return err
}

// stopAsked returns why a run has to end, if another process has asked for that.
func stopAsked(tx store.Tx, r artel.Run) (why, err error) {
	list, err := tx.Notes.List(store.NoteQuery{Conversation: r.Conversation, Kind: noteStop, Run: r.ID, Open: true})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	s, err := bodyOf[stopNote](list[0])
	if err != nil || s.Why != "" {
		return &stopError{s.Why}, err
	}
	return errCancelled, nil
}

// cancelElsewhere has the process with the lease of a run cancel it, and waits for that.
func (rs *Runs) cancelElsewhere(ctx context.Context, r artel.Run) (artel.Run, error) {
	if err := rs.askToStop(ctx, artel.OwnerOf(ctx), r.ID, r.Conversation, stopNote{}); err != nil {
		return r, err
	}
	l := rs.config.notifier().Listen(r.Conversation)
	defer l.Close()
	end := time.Now().Add(2 * leaseTime) // a process that has died is replaced in that time
	for time.Now().Before(end) {
		wait, stop := context.WithTimeout(ctx, time.Second)
		_, _ = l.Wait(wait)
		stop()
		var err error
		if r, err = rs.Find(ctx, r.ID); err != nil || r.State.Final() || ctx.Err() != nil {
			return r, cmp.Or(err, ctx.Err())
		}
	}
	return r, artel.Errorf(artel.Unavailable, "run.Runs.Cancel", string(r.ID), "the process that works on the run was asked to end it, and has not yet; look again")
}
