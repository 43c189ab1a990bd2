// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"sync"
	"time"
)

// A callClock ends a call that shows no sign of progress for a limit, or takes many times
// as long. It stands still while a person is asked.
type callClock struct {
	limit time.Duration
	late  func() // ends the call

	mu      sync.Mutex
	stopped int           // by so many
	left    time.Duration // of the whole time, at since
	since   time.Time
	silence *time.Timer
	whole   *time.Timer
}

func newCallClock(limit time.Duration, late func()) *callClock {
	c := &callClock{limit: limit, late: late, left: progressFactor * limit}
	c.start()
	return c
}

// start starts the timers. c.mu is held, except for a new c.
func (c *callClock) start() {
	c.since = time.Now()
	c.silence, c.whole = time.AfterFunc(c.limit, c.late), time.AfterFunc(c.left, c.late)
}

// progressed is called at each sign of progress.
func (c *callClock) progressed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped == 0 {
		c.silence.Reset(c.limit)
	}
}

// pause stops the clock until resume is called as often.
func (c *callClock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped++; c.stopped == 1 {
		c.silence.Stop()
		c.whole.Stop()
		c.left -= time.Since(c.since)
	}
}

func (c *callClock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped--; c.stopped == 0 {
		c.start()
	}
}

// stop ends the clock.
func (c *callClock) stop() {
	c.pause()
}
