// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// Followers of one conversation that are near its end share what they read: a
// thousand of them that are woken by one event read it once. Whoever is further
// behind reads alone.

// What a tail keeps at most; the newest read stays whole.
const (
	tailEvents = 256
	tailBytes  = 1 << 20
)

type tailKey struct {
	owner        artel.Owner
	conversation artel.ConversationID
}

// tails are those that somebody follows. It is safe for concurrent use.
type tails struct {
	mu sync.Mutex
	of map[tailKey]*tail
}

// A tail is the end of one log.
type tail struct {
	users int // guarded by tails

	mu      sync.Mutex
	last    artel.Seq     // of the log, when it was last read
	events  []artel.Event // the newest of them; never changed in place
	running *reading      // is at work
	next    *reading      // will begin when that is done; whoever comes meanwhile waits for it
}

// A reading looks once for what a log has more.
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
	t.users++
	t.mu.Lock()
	defer t.mu.Unlock()
	if last > t.last && t.running == nil && t.next == nil { // nobody has read that far
		t.last, t.events = last, nil
	}
	return t
}

func (ts *tails) leave(k tailKey, t *tail) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(ts.of, k)
	}
}

// after returns what the log has after a number, from a reading that began
// after the call did; near is false where the tail does not reach back to it.
// The events are shared.
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

// reaches reports whether the tail has all after a number. The caller holds mu.
func (t *tail) reaches(n artel.Seq) bool { return n <= t.last && t.last-n <= artel.Seq(len(t.events)) }

// read does r when the reading before it is done. Others wait for it, so that
// it does not end with ctx.
func (t *tail) read(ctx context.Context, s store.Store, k tailKey, r, before *reading) {
	if before != nil {
		<-before.done
	}
	t.mu.Lock()
	t.running, t.next = r, nil
	last := t.last
	t.mu.Unlock()
	var more []artel.Event
	for {
		var batch []artel.Event
		if r.err = s.View(context.WithoutCancel(ctx), k.owner, func(tx store.Tx) (err error) {
			batch, err = tx.Events.Read(k.conversation, last, batchSize)
			return err
		}); r.err != nil {
			break
		}
		more = append(more, batch...)
		if len(batch) > 0 {
			last = batch[len(batch)-1].Seq
		}
		if len(batch) < batchSize {
			break
		}
	}
	t.mu.Lock()
	t.keep(more)
	t.running = nil
	t.mu.Unlock()
	close(r.done)
}

// keep adds what was read, and drops the oldest.
func (t *tail) keep(more []artel.Event) {
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
