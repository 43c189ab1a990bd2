// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"

	"github.com/artelhq/artel"
)

// CodeRunLimit is the error code, of kind TooLarge, of runs that are refused because
// their owner has as many at work as the deployment allows.
const CodeRunLimit = "run_limit"

// takeSlot counts a run as one of its owner's that are at work, unless there are as many
// as may be. It does nothing for a run that is counted. A refused queued run starts when
// a slot is free.
func (rs *Runs) takeSlot(a *activeRun, c artel.ConversationID, queued bool) error {
	most := rs.config.MostRuns
	owner := artel.OwnerOf(a.ctx)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if a.slot {
		return nil
	}
	n := a.others
	for _, other := range rs.active {
		if other.slot && artel.OwnerOf(other.ctx) == owner {
			n++
		}
	}
	if most > 0 && n >= most {
		if queued {
			if rs.waiting[owner] == nil {
				rs.waiting[owner] = map[artel.ConversationID]bool{}
			}
			rs.waiting[owner][c] = true
		}
		return &artel.Error{
			Op: "run.Runs.Send", Kind: artel.TooLarge, Code: CodeRunLimit,
			Err: artel.Errorf(artel.TooLarge, "run.Runs.Send", "", "%d of your runs are at work, the most at once (limits.user.runs): wait until one ends, or cancel one; a run that waits for your permission counts", n),
		}
	}
	a.slot = true
	return nil
}

// atWorkElsewhere returns how many runs of an owner other processes have at work. Two
// processes that ask at the same time may both start one: the limit is exact within a process.
func (rs *Runs) atWorkElsewhere(ctx context.Context, owner artel.Owner) (n int, err error) {
	if rs.config.MostRuns == 0 || !rs.clock.shared() {
		return 0, nil
	}
	leases, err := rs.config.Store.Overdue(ctx, rs.leaseNow().Add(forever))
	for _, l := range leases {
		if l.Owner == owner && l.Holder != "" && l.Holder != rs.holder {
			n++
		}
	}
	return n, err
}

// keepSlot counts a run that this process takes over, however many are at work.
func (rs *Runs) keepSlot(a *activeRun) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	a.slot = true
}

// freeSlot ends the counting of a run, and starts the queued runs that were refused.
func (rs *Runs) freeSlot(id artel.RunID) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if a := rs.active[id]; a != nil {
		rs.free(a)
	}
}

// free is freeSlot of a caller that holds rs.mu.
func (rs *Runs) free(a *activeRun) {
	if !a.slot {
		return
	}
	a.slot = false
	owner := artel.OwnerOf(a.ctx)
	waiting := rs.waiting[owner]
	delete(rs.waiting, owner)
	if len(waiting) == 0 || rs.closed {
		return
	}
	ctx := context.WithoutCancel(a.ctx)
	rs.wg.Go(func() {
		for c := range waiting { // those that are refused again wait again
			rs.startNext(ctx, owner, c)
		}
	})
}
