// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// Followers near the end of one conversation's log share their reads: an event
// that wakes a thousand of them is read once. Followers further behind read on
// their own.

// Limits of a tail. The newest batch is always kept whole.
const (
	tailEvents = 256
	tailBytes  = 1 << 20
)

type tailKey struct {
	owner        artel.Owner
	conversation artel.ConversationID
}

// tails holds the tails of all followed logs. It is safe for concurrent use.
type tails struct {
	mu sync.Mutex
	of map[tailKey]*tail
}

// A tail caches the end of one log.
type tail struct {
	followers int // guarded by tails.mu

	mu      sync.Mutex
	last    artel.Seq     // end of the log at the last read
	events  []artel.Event // the newest events; never changed in place
	running *reading      // in progress
	next    *reading      // starts after running; later callers share it
}

// A reading is one read of the new events of a log.
type reading struct {
	done chan struct{}
	err  error
}

func (ts *tails) join(k tailKey, last artel.Seq) *tail {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.of[k]
	if t == nil {
		t = &tail{last: last}
		ts.of[k] = t
	}
	t.followers++
	t.mu.Lock()
	defer t.mu.Unlock()
	if last > t.last && t.running == nil && t.next == nil { // the cache ends before the log
		t.last, t.events = last, nil
	}
	return t
}

func (ts *tails) leave(k tailKey, t *tail) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t.followers--; t.followers == 0 {
		delete(ts.of, k)
	}
}

// after returns the events after number n, from a reading that began after the
// call did. near is false if n is older than the cached events. The returned
// slice is shared.
func (t *tail) after(ctx context.Context, s store.Store, k tailKey, n artel.Seq) (events []artel.Event, near bool, err error) {
	t.mu.Lock()
	if !t.reaches(n) {
		t.mu.Unlock()
		return nil, false, nil
	}
	r, lead := t.next, false
	if r == nil {
		r, lead = &reading{done: make(chan struct{})}, true
		t.next = r
	}
	before := t.running
	t.mu.Unlock()
	if lead {
		t.read(ctx, s, k, r, before)
	} else {
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, true, ctx.Err()
		}
	}
	if r.err != nil {
		return nil, true, r.err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.reaches(n) {
		return nil, false, nil
	}
	return t.events[len(t.events)-int(t.last-n):], true, nil
}

// reaches reports whether the tail has all events after n. The caller holds mu.
func (t *tail) reaches(n artel.Seq) bool { return n <= t.last && t.last-n <= artel.Seq(len(t.events)) }

// read performs r after the reading before it. It continues when ctx ends,
// because other followers wait for r.
func (t *tail) read(ctx context.Context, s store.Store, k tailKey, r, before *reading) {
	if before != nil {
		<-before.done
	}
	t.mu.Lock()
	t.running, t.next = r, nil
	last := t.last
	t.mu.Unlock()
	for {
		var batch []artel.Event
		if r.err = s.View(context.WithoutCancel(ctx), k.owner, func(tx store.Tx) (err error) {
			batch, err = tx.Events.Read(k.conversation, last, batchSize)
			return err
		}); r.err != nil {
			break
		}
		if len(batch) > 0 {
			last = batch[len(batch)-1].Seq
		}
		t.mu.Lock()
		t.add(batch)
		t.mu.Unlock()
		if !store.MayContinue(batch, batchSize) {
			break
		}
	}
	t.mu.Lock()
	t.running = nil
	t.mu.Unlock()
	close(r.done)
}

// add appends events and drops the oldest beyond the limits.
func (t *tail) add(more []artel.Event) {
	if len(more) == 0 {
		return
	}
	t.last = more[len(more)-1].Seq
	all := append(t.events[:len(t.events):len(t.events)], more...)
	bytes, first := 0, len(all)
	for first > 0 && len(all)-first < tailEvents && bytes < tailBytes {
		first--
		bytes += len(all[first].Data)
	}
	t.events = all[min(first, len(all)-len(more)):]
}
