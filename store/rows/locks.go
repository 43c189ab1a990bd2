// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"sync"
	"time"

	"github.com/artelhq/artel/store"
)

// Locks are locks of one process, by key. The zero value is ready to use. It is safe for
// concurrent use.
type Locks[K comparable] struct {
	mu  sync.Mutex
	all map[K]*lock
}

// A lock is free while its channel has a value.
type lock struct {
	free  chan struct{}
	users int // that hold it or wait for it
}

// Lock waits for a lock, and returns the function that releases it; nil if the context has
// ended, or if it has waited for a while that is not 0.
func (ls *Locks[K]) Lock(ctx context.Context, key K, wait time.Duration) (release func()) {
	l := ls.use(key)
	var late <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-l.free:
		return func() { ls.release(key, l) }
	case <-late:
	case <-ctx.Done():
	}
	ls.leave(key, l)
	return nil
}

// TryLock is [Locks.Lock] without waiting: nil if another one holds the lock.
func (ls *Locks[K]) TryLock(key K) (release func()) {
	l := ls.use(key)
	select {
	case <-l.free:
		return func() { ls.release(key, l) }
	default:
		ls.leave(key, l)
		return nil
	}
}

// use returns the lock of a key, and counts its user.
func (ls *Locks[K]) use(key K) *lock {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.all == nil {
		ls.all = map[K]*lock{}
	}
	l := ls.all[key]
	if l == nil {
		l = &lock{free: make(chan struct{}, 1)}
		l.free <- struct{}{}
		ls.all[key] = l
	}
	l.users++
	return l
}

func (ls *Locks[K]) release(key K, l *lock) {
	l.free <- struct{}{}
	ls.leave(key, l)
}

func (ls *Locks[K]) leave(key K, l *lock) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(ls.all, key)
	}
}

// alone implements [store.Locker] and [store.Watcher] for the goroutines of one process.
type alone struct{ locks *Locks[string] }

// Lock implements [store.Locker].
func (s alone) Lock(ctx context.Context, name string) (release func(), err error) {
	const op = "store.Lock"
	if err := checkText(op, "", name); err != nil {
		return nil, err
	}
	if release = s.locks.Lock(ctx, name, 0); release == nil {
		return nil, Canceled(op, ctx.Err())
	}
	return release, nil
}

// Watch implements [store.Watcher] for a database that one process uses.
func (alone) Watch(ctx context.Context, _ func(store.Change)) error {
	<-ctx.Done()
	return nil
}
