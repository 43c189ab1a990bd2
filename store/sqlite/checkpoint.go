// SPDX-License-Identifier: Apache-2.0

package sqlite

import "sync"

// Limits of the write-ahead log.
const (
	// Updates after which a checkpoint begins in the background.
	checkpointAfter = 500
	// Updates after which the writer makes a checkpoint itself: the log begins anew
	// only if a checkpoint ends while no update writes.
	checkpointNow = 2000
	// Pages after which SQLite makes a checkpoint at the end of a commit, 32 MB: few
	// updates may be large.
	checkpointPages = 8000
	// Bytes that the log keeps on disk when it begins anew; a long view or a large
	// update may have made it longer.
	logBytes = 32 << 20
)

// A checkpointer copies pages from the write-ahead log to the database beside the
// writer, which otherwise does that at the end of every thousandth page, and waits
// for two syncs of the disk. Views and updates continue meanwhile.
//
// A checkpoint that fails is made again after more updates; what is committed is
// on disk in the log.
type checkpointer struct {
	store   *Store
	updates int           // since the log began anew at the earliest; used by the holder of the writer's turn
	wake    chan struct{} // capacity 1
	ended   sync.WaitGroup

	mu      sync.Mutex // held during a checkpoint; guards session
	session *session   // nil: not yet open
}

// newCheckpointer starts the goroutine. The caller must call close.
func newCheckpointer(s *Store) *checkpointer {
	c := &checkpointer{store: s, wake: make(chan struct{}, 1)}
	c.ended.Go(func() {
		for range c.wake {
			c.run()
		}
	})
	return c
}

// committed is called after each commit with the number of its updates.
func (c *checkpointer) committed(updates int) {
	before := c.updates
	c.updates += updates
	switch {
	case c.updates >= checkpointNow:
		c.run()
		c.updates = 0
	case before/checkpointAfter != c.updates/checkpointAfter:
		select {
		case c.wake <- struct{}{}:
		default: // it begins again when it has ended
		}
	}
}

// run makes one checkpoint of all that no view needs any more.
func (c *checkpointer) run() {
	c.mu.Lock()
	defer c.mu.Unlock()
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

// close waits for the checkpoint that runs. No update may run any more.
func (c *checkpointer) close() {
	close(c.wake)
	c.ended.Wait()
	if c.session != nil {
		_ = c.session.close()
	}
}
