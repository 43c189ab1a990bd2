// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/artelhq/artel/app/meter"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// processes are meters that share a database.
func (b *bench) processes(n int) (all []*meter.Meter) {
	for range n {
		all = append(all, meter.New(meter.Config{People: b.db.People(), User: b.user, Log: slog.New(slog.DiscardHandler), Now: b.clock, Shared: true}))
	}
	b.t.Cleanup(func() {
		for _, m := range all {
			if err := m.Close(context.Background()); err != nil {
				b.t.Error(err)
			}
		}
	})
	return all
}

// together has each process make calls until it is refused, several times, in less than a
// minute; one returns whether it was admitted. Between, it gives back what it does not need.
func (b *bench) together(all []*meter.Meter, one func(*meter.Meter) bool) {
	round := func(m *meter.Meter) {
		for one(m) {
		}
		if err := m.Flush(context.Background()); err != nil {
			b.t.Error(err)
		}
		b.pass(time.Second) // then it asks again what others have left
	}
	var wg sync.WaitGroup
	for _, m := range all {
		wg.Go(func() {
			for range 5 {
				round(m)
			}
		})
	}
	wg.Wait()
	for _, m := range all {
		round(m)
	}
}

// TestLimitsOfSeveralProcesses: processes share a limit: they never use more together, and
// what one has taken and not used, the others get.
func TestLimitsOfSeveralProcesses(t *testing.T) {
	for name, c := range map[string]struct {
		user meter.UserLimits
		key  store.KeyLimits
	}{
		"budget of a key":       {key: budget(1, store.PerDay)},
		"monthly budget":        {key: budget(1, store.PerMonth)},
		"dollars of a user":     {user: meter.UserLimits{USD: 1}},
		"tokens of a user":      {user: meter.UserLimits{Tokens: 1000}},
		"tokens per minute":     {key: store.KeyLimits{Tokens: 1000}},
		"more than one of them": {key: store.KeyLimits{Tokens: 1000, Budget: store.Budget{USD: 2, Period: store.PerDay}}, user: meter.UserLimits{Tokens: 1010}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.user)
			b.pass(-3 * time.Hour) // many seconds of the day are left
			ctx := b.as(c.key)
			var used atomic.Int64
			b.together(b.processes(3), func(m *meter.Meter) bool {
				charge, err := m.Charge(ctx, model.PaidCall{Service: service(), Input: 5, Output: 40, Fixed: true})
				var e *meter.Exceeded
				if err != nil && !errors.As(err, &e) {
					t.Error(err)
				}
				if err != nil {
					return false
				}
				charge.End(usage(5, 5)) // much less than was reserved
				used.Add(10)
				return true
			})
			if n := used.Load(); n > 1000 || n < 900 {
				t.Errorf("%d tokens were used together, of 1000", n)
			}
		})
	}
}

// TestRequestsOfSeveralProcesses: they make as many requests in a minute as one may, and
// as many again in the next.
func TestRequestsOfSeveralProcesses(t *testing.T) {
	b := newBench(t, meter.UserLimits{})
	all := b.processes(3)
	for range 2 {
		var made atomic.Int64
		b.together(all, func(m *meter.Meter) bool {
			after, err := m.Request(t.Context(), "k", 50)
			if err != nil {
				t.Error(err)
			}
			if after == 0 && err == nil {
				made.Add(1)
			}
			return after == 0 && err == nil
		})
		if made.Load() != 50 {
			t.Errorf("%d requests were made in a minute, of 50", made.Load())
		}
		b.pass(b.clock().Truncate(time.Minute).Add(time.Minute).Sub(b.clock()))
	}
}
