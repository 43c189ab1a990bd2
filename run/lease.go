// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// A leaseClock tells the time by which leases begin and end: that of the database, if
// processes on several machines share it, since their clocks may differ. It is read now and
// then, and the time that has passed since is measured by a clock that is never set.
type leaseClock struct {
	mu    sync.Mutex
	known bool
	read  time.Time // what the database said; zero: the processes share a machine
	at    time.Time // when it said so
}

// setClock reads the clock of the database.
func (rs *Runs) setClock(ctx context.Context) error {
	began := time.Now()
	read, err := rs.config.Store.Clock(ctx)
	if err != nil {
		return err
	}
	c := &rs.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.read, c.at = true, read, began // so that a lease of this process seems to end too early
	return nil
}

// knowClock reads the clock of the database, unless that was done.
func (rs *Runs) knowClock(ctx context.Context) error {
	rs.clock.mu.Lock()
	known := rs.clock.known
	rs.clock.mu.Unlock()
	if known {
		return nil
	}
	return rs.setClock(ctx)
}

// leaseNow returns the time for leases.
func (rs *Runs) leaseNow() time.Time {
	c := &rs.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read.IsZero() {
		return rs.config.Now()
	}
	return c.read.Add(time.Since(c.at))
}

// shared reports whether processes on other machines may use the database.
func (c *leaseClock) shared() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.read.IsZero()
}

// leaseLost turns the errors of a lost lease into errLeaseLost.
func leaseLost(err error) error {
	if errors.Is(err, artel.Conflict) || errors.Is(err, artel.NotFound) {
		return errLeaseLost
	}
	return err
}

// lease returns the lease of this process on the run.
func (x *execution) lease(until time.Time) store.Lease {
	return store.Lease{Owner: x.owner, Run: x.run.ID, Conversation: x.run.Conversation, Holder: x.runs.holder, Term: x.term, Until: until, Worked: x.atWork()}
}

// checkLease fails the transaction if this process has lost the run's lease, so
// that it writes nothing any more.
func (x *execution) checkLease(tx store.Tx) error {
	return leaseLost(tx.Runs.Renew(x.lease(time.Time{}), time.Time{}))
}

// releaseLease lets the next process continue the run at once. The lease names no
// holder then, so that the next process knows that this one has not crashed.
func (x *execution) releaseLease(ctx context.Context) {
	now := x.runs.leaseNow()
	err := x.retry(ctx, func(tx store.Tx) error {
		if x.hasPending() { // a whole answer: the next process continues after it
			if err := x.writePending(tx); err != nil {
				return err
			}
			if err := tx.Runs.Update(x.run); err != nil {
				return err
			}
		}
		if err := x.checkLease(tx); err != nil {
			return err
		}
		released := x.lease(now)
		released.Holder, released.Term = "", x.term+1
		return leaseLost(tx.Runs.Renew(released, now.Add(forever))) // this process holds the lease, whenever that ends
	})
	if err != nil && !errors.Is(err, errLeaseLost) {
		x.config.Logger.WarnContext(ctx, "a run's lease could not be given back; it ends by itself", "run", x.run.ID, "err", err)
	}
	x.config.notifier().Discard(x.run.Conversation, "")
}

// leaseMargin is how long before the end of its lease a process gives a run up.
const leaseMargin = leaseRenew

// begin returns a lease that begins now, after the term of the last one.
func (x *execution) begin(last int64) store.Lease {
	x.leased, x.term = time.Now(), last+1
	return x.lease(x.runs.leaseNow().Add(leaseTime))
}

// renewLease renews the run's lease until ctx ends, and cancels the run if the
// lease is lost, if it may end while the database does not answer, or if
// another process asks for the end of the run.
func (x *execution) renewLease(ctx context.Context, cancel context.CancelCauseFunc) {
	asked := x.config.notifier().Listen(stopSubject(x.run.ID))
	defer asked.Close()
	_, _ = asked.Wait(ctx) // the first one returns at once
	// By a clock that is never set, and beside the renewals, since a database that cannot be
	// reached may keep one waiting.
	giveUp := time.AfterFunc(time.Until(x.leased.Add(leaseTime-leaseMargin)), func() {
		if x.runs.clock.shared() {
			cancel(errLeaseLost) // before another process works on it
		}
	})
	defer giveUp.Stop()
	for {
		wait, stop := context.WithTimeout(ctx, leaseRenew)
		_, _ = asked.Wait(wait)
		stop()
		if ctx.Err() != nil {
			return
		}
		lease, began := x.lease(x.runs.leaseNow().Add(leaseTime)), time.Now()
		var why error
		err := x.config.Store.Update(ctx, x.owner, func(tx store.Tx) (err error) {
			if err = tx.Runs.Renew(lease, time.Time{}); err == nil {
				why, err = stopAsked(tx, x.run)
			}
			return err
		})
		switch {
		case errors.Is(err, artel.Conflict), errors.Is(err, artel.NotFound):
			cancel(errLeaseLost)
			return
		case err == nil && why != nil:
			cancel(why)
			return
		case err == nil:
			x.leased = began
			giveUp.Reset(time.Until(began.Add(leaseTime - leaseMargin)))
		case ctx.Err() == nil:
			x.config.Logger.WarnContext(ctx, "a run's lease could not be renewed", "run", x.run.ID, "err", err)
		}
	}
}
