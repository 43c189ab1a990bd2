// SPDX-License-Identifier: Apache-2.0

package access

import (
	"container/heap"
	"net/netip"
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
// the next wait twice as long. Each process has its own, so n processes let n times as many
// through: a guess at an account takes a minute at each of them in the end, which is
// still too slow to find a password.
type limiter struct {
	now  func() time.Time
	free int

	mu    sync.Mutex
	tries map[string]*tries
	least byTries   // all of tries, as a heap
	swept time.Time // when old ones were last removed because there were too many
}

type tries struct {
	name  string
	n     int
	until time.Time // the next try
	index int       // in the heap
}

// byTries is a heap of those with the fewest tries.
type byTries []*tries

func (h byTries) Len() int { return len(h) }

func (h byTries) Less(i, j int) bool {
	return h[i].n < h[j].n || h[i].n == h[j].n && h[i].until.Before(h[j].until)
}

func (h byTries) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements [heap.Interface].
func (h *byTries) Push(t any) {
	t.(*tries).index = len(*h)
	*h = append(*h, t.(*tries))
}

// Pop implements [heap.Interface].
func (h *byTries) Pop() any {
	old := *h
	t := old[len(old)-1]
	*h = old[:len(old)-1]
	return t
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
		t = &tries{name: name, n: l.forgetOld(now), until: now}
		l.tries[name] = t
		heap.Push(&l.least, t)
	}
	if wait := t.until.Sub(now); wait > 0 {
		return wait
	}
	if now.Sub(t.until) > forgetting {
		t.n = 0
	}
	t.n++
	t.until = now
	if over := t.n - l.free; over >= 0 {
		t.until = now.Add(min(maxDelay, firstDelay<<min(over, 10)))
	}
	heap.Fix(&l.least, t.index)
	return 0
}

// forget drops what was counted under a name.
func (l *limiter) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.tries[name]; t != nil {
		l.drop(t)
	}
}

func (l *limiter) drop(t *tries) {
	delete(l.tries, t.name)
	heap.Remove(&l.least, t.index)
}

// forgetOld makes room for one more name, and returns how many tries the name counts as
// having had. If all names are recent, it takes over the count of the one with the
// fewest (the algorithm Space-Saving). So no count falls below the truth, however many
// names a client tries.
func (l *limiter) forgetOld(now time.Time) int {
	if len(l.tries) < maxLimited {
		return 0
	}
	if now.Sub(l.swept) > maxDelay {
		l.swept = now
		for _, t := range l.tries {
			if now.Sub(t.until) > forgetting {
				l.drop(t)
			}
		}
		if len(l.tries) < maxLimited {
			return 0
		}
	}
	least := l.least[0]
	l.drop(least)
	return least.n
}

// networkOf is what one client is assumed to have of addresses: an IPv4 address, or an
// IPv6 network of 64 bits. Other addresses are unchanged.
func networkOf(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if a = a.Unmap().WithZone(""); a.Is4() {
		return a.String()
	}
	p, _ := a.Prefix(64) // 64 is valid for IPv6
	return p.String()
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
