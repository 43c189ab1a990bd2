// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"errors"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// mostTries is how often a call tries to get what others may take at the same time.
const mostTries = 8

// take reserves the cost of a call with every limit, also among processes.
func (m *Meter) take(ctx context.Context, limits []*limit, call model.PaidCall) (held []hold, output int64, err error) {
	const op = "meter.Meter.Charge"
	for try := 0; ; try++ {
		held, output, exceeded := m.reserve(limits, call)
		if exceeded != nil {
			if try == 0 && m.c.Shared {
				if err := m.ask(ctx, limits); err != nil {
					return nil, 0, err
				}
				continue
			}
			return nil, 0, &artel.Error{Op: op, Subject: exceeded.Limit, Kind: artel.TooLarge, Code: exceeded.Code, Err: exceeded}
		}
		err := m.mark(ctx, held)
		if err == nil {
			return held, output, nil
		}
		m.release(held, Record{}, time.Time{})
		if !errors.Is(err, errTaken) {
			return nil, 0, err
		}
		if try == mostTries {
			return nil, 0, artel.Errorf(artel.Unavailable, op, "", "other requests use up the limit at the same time; try again")
		}
	}
}

// ask reads again what other processes have taken and given back, at most once a second.
func (m *Meter) ask(ctx context.Context, limits []*limit) error {
	for _, l := range limits {
		if l.period == "" {
			continue
		}
		now := m.c.Now()
		m.mu.Lock()
		a := m.account(l)
		l.spent(m, now) // begins the period
		wait := now.Sub(a.asked) < time.Second
		if !wait {
			a.asked = now
		}
		m.mu.Unlock()
		if wait {
			continue
		}
		if err := m.askOne(ctx, l, a); err != nil {
			return err
		}
	}
	return nil
}

func (m *Meter) askOne(ctx context.Context, l *limit, a *account) error {
	a.marking.Lock()
	defer a.marking.Unlock()
	m.mu.Lock()
	begin, _, floor := a.reach()
	m.mu.Unlock()
	var spent, others int64
	err := m.c.People.View(ctx, func(tx store.PeopleTx) (err error) {
		if spent, _, err = l.read(tx, begin); err == nil {
			others, _, err = a.othersNow(tx, l.subject, begin, floor)
		}
		return err
	})
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.begin.Equal(begin) {
		a.learn(others)
		a.rest = l.period != minute && others > max(floor, spent-(a.used-others))
	}
	return nil
}

// An unneeded part of what a process has taken of an account, which is locked.
type unneeded struct {
	subject string
	account *account
	begin   time.Time
	keeps   int64
	floor   int64
}

// unneeded locks the accounts that have taken more than they need.
func (m *Meter) unneeded() (all []unneeded) {
	if !m.c.Shared {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for subject, a := range m.accounts {
		if !a.marking.TryLock() { // it is being marked
			continue
		}
		begin, keeps, floor := a.reach()
		if a.reserved > 0 {
			keeps += a.step
		}
		if begin.IsZero() || !a.since.Equal(begin) || a.stored <= keeps {
			a.marking.Unlock()
			continue
		}
		all = append(all, unneeded{subject, a, begin, keeps, floor})
	}
	return all
}

// giveBack stores that a process needs less than it has taken.
func giveBack(tx store.PeopleTx, all []unneeded) error {
	for _, u := range all {
		others, passed, err := u.account.othersNow(tx, u.subject, u.begin, u.floor)
		if err == nil && !passed {
			err = tx.Ledger.SetMark(store.UsageMark{Subject: u.subject, Begin: u.begin, Amount: others + u.keeps})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Request counts a request with a key that may make most in a minute of the clock. after is how
// long the client has to wait; 0: the request may be made.
func (m *Meter) Request(ctx context.Context, key string, most int) (after time.Duration, err error) {
	l := &limit{subject: "key:" + key + "/requests", name: "the limit of requests per minute", unit: tokens, most: int64(most), period: minute}
	if err := m.load(ctx, l); err != nil {
		return 0, err
	}
	for try := 0; ; try++ {
		now := m.c.Now()
		m.mu.Lock()
		full := m.left(l, now) < 1
		if !full {
			m.account(l).used++
		}
		m.mu.Unlock()
		switch {
		case full && try > 0:
			return l.endAt(now).Sub(now), nil
		case full:
			if err := m.ask(ctx, []*limit{l}); err != nil {
				return 0, err
			}
			continue
		}
		err := m.markOne(ctx, l, l.step())
		if err == nil {
			return 0, nil
		}
		m.mu.Lock()
		if a := m.account(l); a.begin.Equal(l.beginAt(now)) {
			a.used--
		}
		m.mu.Unlock()
		if !errors.Is(err, errTaken) {
			return 0, err
		}
	}
}

// Shared reports whether other processes use the same limits.
func (m *Meter) Shared() bool { return m.c.Shared }

// perMinute is the period of limits per minute: any minute in one process, those of the
// clock among several.
func (m *Meter) perMinute() store.Period {
	if m.c.Shared {
		return minute
	}
	return ""
}
