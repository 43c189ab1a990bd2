// SPDX-License-Identifier: Apache-2.0

package access

import (
	"strconv"
	"sync"
	"time"
)

// Bounds of a limiter.
const (
	firstDelay = time.Second
	maxDelay   = time.Minute
	forgetting = time.Hour // after the last try
	maxLimited = 10_000    // names
)

// A limiter delays tries that failed before. After some free ones, each try makes
// the next wait twice as long.
type limiter struct {
	now  func() time.Time
	free int

	mu    sync.Mutex
	tries map[string]*tries
}

type tries struct {
	n     int
	until time.Time // the next try
}

func newLimiter(now func() time.Time, free int) *limiter {
	return &limiter{now: now, free: free, tries: map[string]*tries{}}
}

// enter counts a try under a name, or returns how long it has to wait. A try
// counts as failed until [limiter.forget], so that tries at the same time count too.
func (l *limiter) enter(name string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	t := l.tries[name]
	if t == nil {
		l.shrink(now)
		t = &tries{}
		l.tries[name] = t
	}
	if wait := t.until.Sub(now); wait > 0 {
		return wait
	}
	if now.Sub(t.until) > forgetting && !t.until.IsZero() {
		t.n = 0
	}
	t.n++
	t.until = now
	if over := t.n - l.free; over >= 0 {
		t.until = now.Add(min(maxDelay, firstDelay<<min(over, 10)))
	}
	return 0
}

// forget drops what was counted under a name.
func (l *limiter) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tries, name)
}

// shrink makes room for one more name.
func (l *limiter) shrink(now time.Time) {
	if len(l.tries) < maxLimited {
		return
	}
	for name, t := range l.tries {
		if now.Sub(t.until) > forgetting {
			delete(l.tries, name)
		}
	}
	for name := range l.tries { // any, if all are recent
		if len(l.tries) < maxLimited {
			return
		}
		delete(l.tries, name)
	}
}

// CodeTooManyLogins is the error code of a login that has to wait; the error is an
// [*artel.Error] around a [*Delay].
const CodeTooManyLogins = "too_many_logins"

// A Delay is the error of a login that has to wait.
type Delay struct{ After time.Duration }

// Error implements error.
func (d *Delay) Error() string {
	return "too many logins have failed; try again in " + d.Seconds() + " seconds"
}

// Seconds returns the whole seconds to wait, for the header Retry-After.
func (d *Delay) Seconds() string { return strconv.Itoa(int((d.After + time.Second - 1) / time.Second)) }
