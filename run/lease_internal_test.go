// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/store"
)

// A silent store renews some leases, then does not answer any more, whatever the context says.
type silent struct {
	store.Store
	left    int // renewals
	last    time.Time
	release chan struct{}
}

func (s *silent) Update(context.Context, artel.Owner, func(store.Tx) error) error {
	if s.left--; s.left >= 0 {
		s.last = time.Now()
		return nil
	}
	<-s.release
	return errors.New("gone")
}

// TestGivesUpBeforeItsLeaseEnds: a process whose database does not answer stops working on a run
// while the run is still its own, and not before.
func TestGivesUpBeforeItsLeaseEnds(t *testing.T) {
	for _, renewals := range []int{0, 1, 5} {
		synctest.Test(t, func(t *testing.T) {
			s := &silent{left: renewals, last: time.Now(), release: make(chan struct{})}
			rs := New(Config{Store: s, Logger: slog.New(slog.DiscardHandler), Events: EventWriter{Log: event.NewLog(s, event.NewNotifier())}})
			rs.clock.read, rs.clock.at = time.Now(), time.Now()
			x := execution{runs: rs, config: rs.config, owner: artel.Local, run: artel.Run{ID: "run_1"}}
			x.begin(0)
			ctx, cancel := context.WithCancelCause(t.Context())
			go x.renewLease(ctx, cancel)
			<-ctx.Done()
			if context.Cause(ctx) != errLeaseLost {
				t.Errorf("got %v", context.Cause(ctx))
			}
			if after := time.Since(s.last); after >= leaseTime || after <= leaseRenew {
				t.Errorf("after %d renewals it stopped %s after the last", renewals, after)
			}
			close(s.release)
		})
	}
}
