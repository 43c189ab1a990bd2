// SPDX-License-Identifier: Apache-2.0

package schedules

import (
	"context"
	"errors"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

const (
	atOnce    = 16               // starts that a process takes
	patience  = 10 * time.Minute // how long a start is repeated that failed for no lasting reason
	maxMissed = 1000             // times that are counted
)

// Run starts the runs of schedules until ctx ends. Several processes may run it with one
// database.
func (ss *Schedules) Run(ctx context.Context) {
	tick := time.NewTicker(ss.o.Every)
	defer tick.Stop()
	for {
		if err := errors.Join(ss.plan(ctx), ss.start(ctx)); err != nil && ctx.Err() == nil {
			ss.o.Log.WarnContext(ctx, "runs of schedules cannot be started", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-ss.wake:
		}
	}
}

// plan stores a start for each schedule whose time has come, and its next time. Times that
// passed while no process was running are one start.
func (ss *Schedules) plan(ctx context.Context) error {
	now := ss.now()
	var due []store.Schedule
	if err := ss.store.People().View(ctx, func(tx store.PeopleTx) (err error) { due, err = tx.Starts.Due(now); return err }); err != nil {
		return err
	}
	var errs []error
	for _, s := range due {
		st := newStart(s, s.NextAt, now)
		t, err := parse(s.Cron, s.Zone)
		next := time.Time{}
		if err != nil { // the zone is gone from the database of time zones
			st.State, st.Error, st.Until = store.StartFailed, err.Error(), time.Time{}
		} else {
			next = t.next(now)
			for at := t.next(s.NextAt); !at.IsZero() && !at.After(now) && st.Missed < maxMissed; at = t.next(at) {
				st.Missed++
			}
		}
		errs = append(errs, ss.store.People().Update(ctx, func(tx store.PeopleTx) error {
			mine, err := tx.Schedules.Advance(s.ID, s.NextAt, next)
			if err != nil || !mine {
				return err
			}
			return tx.Starts.Add(st)
		}))
	}
	return errors.Join(errs...)
}

// start takes what is to be started, and starts it.
func (ss *Schedules) start(ctx context.Context) error {
	var taken []store.Start
	err := ss.store.People().Update(ctx, func(tx store.PeopleTx) (err error) {
		now := ss.now()
		taken, err = tx.Starts.Take(now, now.Add(ss.o.Lease), atOnce)
		return err
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, st := range taken {
		errs = append(errs, ss.startOne(ctx, st))
	}
	if len(taken) == atOnce {
		ss.poke()
	}
	return errors.Join(errs...)
}

// startOne starts a run, and stores what came of it.
func (ss *Schedules) startOne(ctx context.Context, st store.Start) error {
	var s store.Schedule
	var before []store.Start
	err := ss.store.People().View(ctx, func(tx store.PeopleTx) (err error) {
		if s, err = tx.Schedules.Get(st.Schedule); err != nil {
			return err
		}
		before, _, err = tx.Starts.List(store.StartQuery{Schedule: s.ID, State: store.StartDone, Page: store.Page{Limit: 1}})
		return err
	})
	if artel.KindOf(err) == artel.NotFound {
		return nil // the schedule was deleted, with its starts
	}
	if err != nil {
		return err
	}
	as := artel.WithOwner(ctx, s.User)
	active := false
	if len(before) > 0 {
		if active, err = ss.starter.Active(as, before[0].Run); err != nil {
			return err
		}
	}
	st.Until = time.Time{}
	if active {
		st.State, st.Error = store.StartSkipped, "the run that this schedule started before has not ended"
	} else if err = ss.starter.Start(as, s, st); err == nil {
		st.State = store.StartDone
	} else {
		kind := artel.KindOf(err)
		if ctx.Err() != nil || (kind == artel.Unavailable || kind == artel.Internal) && ss.now().Sub(st.CreatedAt) < patience {
			return err // it is taken again
		}
		st.State, st.Error = store.StartFailed, artel.Shorten(err.Error(), 500)
	}
	return ss.store.People().Update(context.WithoutCancel(ctx), func(tx store.PeopleTx) error {
		if err := tx.Starts.Report(st); err != nil && artel.KindOf(err) != artel.NotFound {
			return err
		}
		return tx.Starts.Trim(s.ID, kept)
	})
}
