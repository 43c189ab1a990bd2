// SPDX-License-Identifier: Apache-2.0

// Package schedules starts runs at the times of cron expressions.
//
// Begin with [New]. [Schedules.Create] makes a schedule, and [Schedules.Run] starts its runs.
// A time of a schedule is taken by one of the processes that share a database, in a
// transaction that also stores the start with the id of its run. A process that dies before it has started the run
// leaves it to another one, which starts none if there is a run of this id.
package schedules

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/robfig/cron/v3"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// Options are what may be left out.
type Options struct {
	Every time.Duration    // how often what is due is looked for; 0: 1 s
	Lease time.Duration    // after which another process may make a start that one has taken; 0: 30 s
	Log   *slog.Logger     // nil: slog.Default
	Now   func() time.Time // nil: time.Now
}

// A Starter starts runs of the user of a context.
type Starter interface {
	// Check refuses an agent or a conversation that does not exist.
	Check(ctx context.Context, s store.Schedule) error
	// Start makes the conversation of a start if the schedule has none, and starts the run
	// with the id of the start. It does nothing if there is this run.
	Start(ctx context.Context, s store.Schedule, st store.Start) error
	// Active reports whether a run has not ended.
	Active(ctx context.Context, run artel.RunID) (bool, error)
}

// Limits of schedules.
const (
	MaxSchedules = 50     // of a user
	maxName      = 100    // code points
	maxText      = 20_000 // code points
	maxCron      = 200    // bytes
	kept         = 200    // starts in the log of a schedule
)

// Schedules are the use cases of schedules. They are safe for concurrent use.
type Schedules struct {
	store   store.Store
	starter Starter
	o       Options
	wake    chan struct{} // has a value when something may be due
}

// New returns the schedules of a deployment.
func New(s store.Store, starter Starter, o Options) *Schedules {
	o.Every, o.Lease = cmp.Or(o.Every, time.Second), cmp.Or(o.Lease, 30*time.Second)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Schedules{store: s, starter: starter, o: o, wake: make(chan struct{}, 1)}
}

// times are the times of an expression in a zone.
type times struct {
	schedule cron.Schedule
	zone     *time.Location
}

// parse reads an expression of five fields, or one such as @daily.
func parse(expression, zone string) (t times, err error) {
	const op = "schedules"
	if zone == "Local" || zone == "" {
		return t, artel.Errorf(artel.Invalid, op, "zone", "want the name of a time zone, such as UTC or Europe/Berlin")
	}
	if t.zone, err = time.LoadLocation(zone); err != nil {
		return t, artel.Errorf(artel.Invalid, op, "zone", "%q is not the name of a time zone, such as UTC or Europe/Berlin", artel.Shorten(strings.ToValidUTF8(zone, "?"), 60))
	}
	if len(expression) > maxCron || strings.ContainsAny(expression, "=\r\n") || strings.HasPrefix(expression, "@every") || !utf8.ValidString(expression) {
		err = artel.Errorf(artel.Invalid, op, "cron", "five fields, or @hourly, @daily, @weekly, @monthly or @yearly")
	} else {
		t.schedule, err = cron.ParseStandard(expression)
	}
	if err != nil {
		return t, artel.Errorf(artel.Invalid, op, "cron", "%q is not a cron expression, such as \"30 8 * * 1-5\" (minute, hour, day, month, weekday): %v", artel.Shorten(strings.ToValidUTF8(expression, "?"), 80), err)
	}
	if t.next(time.Unix(0, 0)).IsZero() {
		return t, artel.Errorf(artel.Invalid, op, "cron", "%q never comes", artel.Shorten(expression, 80))
	}
	return t, nil
}

// next returns the first time after one; zero: none in the next years.
func (t times) next(after time.Time) time.Time {
	if n := t.schedule.Next(after.In(t.zone)); !n.IsZero() {
		return n.UTC()
	}
	return time.Time{}
}

// Next returns the next n times of an expression after now.
func (ss *Schedules) Next(expression, zone string, n int) (all []time.Time, err error) {
	t, err := parse(expression, zone)
	if err != nil {
		return nil, err
	}
	for at := ss.now(); len(all) < n; {
		if at = t.next(at); at.IsZero() {
			break
		}
		all = append(all, at)
	}
	return all, nil
}

// check refuses what a schedule cannot have, and sets its next time.
func (ss *Schedules) check(ctx context.Context, s *store.Schedule) error {
	const op = "schedules"
	s.Cron = strings.Join(strings.Fields(s.Cron), " ")
	switch {
	case strings.TrimSpace(s.Name) == "" || !utf8.ValidString(s.Name) || utf8.RuneCountInString(s.Name) > maxName || strings.ContainsAny(s.Name, "\r\n"):
		return artel.Errorf(artel.Invalid, op, "name", "want one line of 1 to %d characters", maxName)
	case strings.TrimSpace(s.Text) == "" || !utf8.ValidString(s.Text):
		return artel.Errorf(artel.Invalid, op, "text", "want the message that the agent gets")
	case utf8.RuneCountInString(s.Text) > maxText:
		return artel.Errorf(artel.TooLarge, op, "text", "has %d characters; want at most %d", utf8.RuneCountInString(s.Text), maxText)
	}
	t, err := parse(s.Cron, s.Zone)
	if err != nil {
		return err
	}
	s.NextAt = time.Time{}
	if !s.Paused {
		s.NextAt = t.next(ss.now())
	}
	return ss.starter.Check(ctx, *s)
}

// Create makes a schedule of the acting user. The fields from Name on are read; without a
// zone it is UTC.
func (ss *Schedules) Create(ctx context.Context, s store.Schedule) (store.Schedule, error) {
	const op = "schedules.Create"
	s.ID, s.User, s.CreatedAt, s.Zone = "schedule"+rand.Text(), artel.OwnerOf(ctx), ss.now(), cmp.Or(s.Zone, "UTC")
	if err := ss.check(ctx, &s); err != nil {
		return store.Schedule{}, err
	}
	err := ss.change(ctx, audit.Act{Action: audit.ScheduleCreated, Target: s.ID, Detail: s.Name}, func(tx store.PeopleTx) error {
		all, err := tx.Schedules.List(s.User)
		if err != nil {
			return err
		}
		if len(all) >= MaxSchedules {
			return artel.Errorf(artel.TooLarge, op, "", "you have %d schedules, the most that a user can have; delete some", len(all))
		}
		return tx.Schedules.Create(s)
	})
	if err != nil {
		return store.Schedule{}, err
	}
	return s, nil
}

// change runs fn in a transaction with an entry of the audit log.
func (ss *Schedules) change(ctx context.Context, act audit.Act, fn func(store.PeopleTx) error) error {
	return ss.store.People().Update(ctx, func(tx store.PeopleTx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return audit.Record(ctx, store.Tx{Audit: tx.Audit}, ss.now(), act)
	})
}

// List returns the schedules of the acting user, in order of creation.
func (ss *Schedules) List(ctx context.Context) (all []store.Schedule, err error) {
	err = ss.store.People().View(ctx, func(tx store.PeopleTx) error {
		all, err = tx.Schedules.List(artel.OwnerOf(ctx))
		return err
	})
	return all, err
}

// own returns a schedule of the acting user.
func own(ctx context.Context, tx store.PeopleTx, id string) (store.Schedule, error) {
	s, err := tx.Schedules.Get(id)
	if err == nil && s.User != artel.OwnerOf(ctx) {
		err = artel.Errorf(artel.NotFound, "schedules", artel.Shorten(id, 80), "no such schedule")
	}
	return s, err
}

// Update changes a schedule; change may set the fields from Name on. Its next time is that
// of the expression after now; none while it is paused.
func (ss *Schedules) Update(ctx context.Context, id string, change func(*store.Schedule)) (s store.Schedule, err error) {
	if err := ss.store.People().View(ctx, func(tx store.PeopleTx) error { s, err = own(ctx, tx, id); return err }); err != nil {
		return s, err
	}
	before := s
	change(&s)
	s.ID, s.User, s.CreatedAt = before.ID, before.User, before.CreatedAt
	if err := ss.check(ctx, &s); err != nil {
		return store.Schedule{}, err
	}
	err = ss.change(ctx, audit.Act{Action: audit.ScheduleChanged, Target: id, Detail: s.Name}, func(tx store.PeopleTx) error {
		return tx.Schedules.Update(s)
	})
	return s, err
}

// Delete removes a schedule with its log. Its runs and conversations stay.
func (ss *Schedules) Delete(ctx context.Context, id string) error {
	return ss.change(ctx, audit.Act{Action: audit.ScheduleDeleted, Target: id}, func(tx store.PeopleTx) error {
		if _, err := own(ctx, tx, id); err != nil {
			return err
		}
		return tx.Schedules.Delete(artel.OwnerOf(ctx), id)
	})
}

// Starts lists what a schedule has started, newest first. next is "" at the end.
func (ss *Schedules) Starts(ctx context.Context, q store.StartQuery) (items []store.Start, next string, err error) {
	err = ss.store.People().View(ctx, func(tx store.PeopleTx) error {
		if _, err := own(ctx, tx, q.Schedule); err != nil {
			return err
		}
		items, next, err = tx.Starts.List(q)
		return err
	})
	return items, next, err
}

// StartNow starts a run of a schedule at once, also while it is paused.
func (ss *Schedules) StartNow(ctx context.Context, id string) (st store.Start, err error) {
	now := ss.now()
	err = ss.store.People().Update(ctx, func(tx store.PeopleTx) error {
		s, err := own(ctx, tx, id)
		if err != nil {
			return err
		}
		st = newStart(s, now, now)
		st.Manual = true
		return tx.Starts.Add(st)
	})
	ss.poke()
	return st, err
}

// newStart is the start for a time of a schedule.
func newStart(s store.Schedule, planned, now time.Time) store.Start {
	return store.Start{
		Schedule: s.ID, PlannedAt: planned, CreatedAt: now, Conversation: cmp.Or(s.Conversation, artel.NewConversationID(now)), Run: artel.NewRunID(now),
		State: store.StartWaiting, Until: now,
	}
}

// poke makes [Schedules.Run] look for what is due.
func (ss *Schedules) poke() {
	select {
	case ss.wake <- struct{}{}:
	default:
	}
}

func (ss *Schedules) now() time.Time { return ss.o.Now().UTC().Truncate(time.Microsecond) }
