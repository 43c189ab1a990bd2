// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// heapFloor is the size that the heap of a server reaches before garbage is
// collected, in bytes. A request of the gateway leaves 20 KB of garbage and little
// else, so collections at the double of what is in use, some 15 MB, took a sixth of
// the processor time.
const heapFloor = 64 << 20

// A collector sets the percentage of GOGC after each garbage collection, so that the
// next one begins when the heap has heapFloor bytes or, as without it, the double of
// what is in use, whichever is more. A memory limit (GOMEMLIMIT) stays in force.
type collector struct {
	mu      sync.Mutex
	percent int // that is set; 0: stopped
}

// raiseHeap starts a collector and returns a function that stops it. It does nothing
// if GOGC is set.
func raiseHeap() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	c := &collector{percent: usualPercent}
	c.afterCollection()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.percent = 0
		debug.SetGCPercent(usualPercent)
	}
}

// usualPercent is the default of GOGC.
const usualPercent = 100

// afterCollection adapts the percentage, and runs again after the next collection,
// which finds the object that it leaves.
func (c *collector) afterCollection() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.percent == 0 {
		return
	}
	if p := percentFor(liveHeap()); p > c.percent*9/8 || p < c.percent*7/8 { // setting it stops the world
		debug.SetGCPercent(p)
		c.percent = p
	}
	type object struct{ _ *collector }
	runtime.AddCleanup(&object{}, (*collector).afterCollection, c)
}

// percentFor returns the percentage for a heap of which live bytes are in use.
func percentFor(live uint64) int {
	const most = 1000
	return max(usualPercent, int(min(heapFloor*100/max(live, 1), 100+most))-100)
}

// liveHeap returns the bytes that the last collection found in use.
func liveHeap() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
