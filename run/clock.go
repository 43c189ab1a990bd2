// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"sync"
	"time"
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
