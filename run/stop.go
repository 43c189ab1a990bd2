// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// A stopError is the cause for which the runs of an owner end.
type stopError struct{ why string }

// Error implements error.
func (e *stopError) Error() string { return e.why }

// Stop interrupts the runs of an owner whose further runs [Config.MayWork] refuses, and
// discards those in the queue. Each has the reason in its log. It waits until those of
// this process have ended, or ctx has; those without a process are ended by
// [Runs.Recover].
func Stop(ctx context.Context, rs *Runs, owner artel.Owner, why string) error {
	for _, a := range rs.of(owner) {
		a.cancel(&stopError{why})
		select {
		case <-a.done:
		case <-ctx.Done():
			return artel.Errorf(artel.Canceled, "run.Stop", string(a.id), "the run has not ended in time: %w", ctx.Err())
		}
	}
	leases, err := rs.config.Store.Overdue(ctx, rs.config.Now().Add(forever))
	if err != nil {
		return err
	}
	queues := map[artel.ConversationID]bool{}
	for _, l := range leases {
		if l.Owner == owner && !queues[l.Conversation] {
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
	if err := rs.mayWork(ctx, artel.OwnerOf(ctx)); err != nil {
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
