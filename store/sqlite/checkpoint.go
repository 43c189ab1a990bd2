// SPDX-License-Identifier: Apache-2.0

package sqlite

import "sync/atomic"

const (
	// checkpointAfter is how many updates there are from one checkpoint to the
	// next: with edits of two kilobytes, four megabytes of the log.
	checkpointAfter = 256

	// mostPages is how long the log may get, in pages of 4 KB, before an
	// update has to see to it itself.
	mostPages = 4096
)

// A checkpointer carries what was committed from the log into the database
// file, while others write. Left to itself, SQLite lets the update do that
// which finds the log long: it and all who wait behind it would wait for the
// disk, twice.
type checkpointer struct {
	store   *Store
	updates int         // since the last time; used by who has the writer's turn
	busy    atomic.Bool // at work
	session *session    // used by who is at work; nil: to be opened
}

// committed counts updates in. Who calls it is inside a call that the store
// waits for.
func (c *checkpointer) committed(updates int) {
	c.updates += updates
	if c.updates < checkpointAfter || c.store.path == Memory || !c.busy.CompareAndSwap(false, true) {
		return
	}
	c.updates = 0
	c.store.calls.Go(func() {
		defer c.busy.Store(false)
		c.work()
	})
}

// work fails silently: the next checkpoint does what this one did not.
func (c *checkpointer) work() {
	if c.session == nil {
		s, err := c.store.openSession()
		if err != nil {
			return
		}
		c.session = s
	}
	if _, err := c.session.exec("PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
		_ = c.session.close()
		c.session = nil
	}
}
