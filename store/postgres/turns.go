// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/artelhq/artel"
)

// turns let the updates of one process to one conversation begin one after the other. The
// database does so too, by the lock of a row; but transactions that wait for such a lock
// hold a connection each, and are woken at a high price.
type turns struct {
	mu  sync.Mutex
	all map[place]*turn
}

// A place is a conversation of an owner.
type place struct {
	owner        artel.Owner
	conversation artel.ConversationID
}

// A turn is free while its channel has a value.
type turn struct {
	free  chan struct{}
	users int // that hold it or wait for it
}

// overtake is how long an update waits while it holds what another one may wait for. Then
// it continues without the turn, and the database finds out whether they wait in a circle.
const overtake = 100 * time.Millisecond

// take waits for the turn, and returns the function that ends it; nil if the context has
// ended, or if it has waited long enough; holds reports that it must not wait for ever.
func (ts *turns) take(ctx context.Context, at place, holds bool) (end func()) {
	ts.mu.Lock()
	t := ts.all[at]
	if t == nil {
		t = &turn{free: make(chan struct{}, 1)}
		t.free <- struct{}{}
		ts.all[at] = t
	}
	t.users++
	ts.mu.Unlock()
	leave := func() {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(ts.all, at)
		}
	}
	var late <-chan time.Time
	if holds {
		timer := time.NewTimer(overtake)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-t.free:
		return func() {
			t.free <- struct{}{}
			leave()
		}
	case <-late:
	case <-ctx.Done():
	}
	leave()
	return nil
}
