// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/artelhq/artel"
)

// conversationLocks let the updates of one process to one conversation run one after the
// other. The database does so too, by the lock of a row; but transactions that wait for such a
// lock hold a connection each, and are woken at a high price.
type conversationLocks struct {
	mu  sync.Mutex
	all map[conversationKey]*conversationLock
}

// A conversationKey names a conversation of an owner.
type conversationKey struct {
	owner        artel.Owner
	conversation artel.ConversationID
}

// A conversationLock is free while its channel has a value.
type conversationLock struct {
	free  chan struct{}
	users int // that hold it or wait for it
}

// lockWait is how long an update waits while it holds what another one may wait for. Then it
// continues without the lock, and the database finds out whether they wait in a circle.
const lockWait = 100 * time.Millisecond

// lock waits for a lock, and returns the function that releases it; nil if the context has
// ended, or if it has waited long enough. holds reports that it must not wait for ever.
func (ls *conversationLocks) lock(ctx context.Context, key conversationKey, holds bool) (release func()) {
	ls.mu.Lock()
	l := ls.all[key]
	if l == nil {
		l = &conversationLock{free: make(chan struct{}, 1)}
		l.free <- struct{}{}
		ls.all[key] = l
	}
	l.users++
	ls.mu.Unlock()
	leave := func() {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(ls.all, key)
		}
	}
	var late <-chan time.Time
	if holds {
		timer := time.NewTimer(lockWait)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-l.free:
		return func() {
			l.free <- struct{}{}
			leave()
		}
	case <-late:
	case <-ctx.Done():
	}
	leave()
	return nil
}
