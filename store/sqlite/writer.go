// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store/rows"
)

// Limits of a batch.
const (
	batchUpdates = 256
	batchTime    = 5 * time.Millisecond
)

// A writer serializes updates on the one writing connection.
//
// Turns are taken in order of arrival. The caller holding the turn runs its
// update in the open batch and passes the turn to the next caller in the queue,
// which continues the same batch. If the queue is empty or the batch is full,
// the caller commits the batch, which wakes every caller in it. Before it commits
// less than the last batch had, it lets the callers of that one run once, which
// are awake now and may make their next updates.
type writer struct {
	store      *Store
	maxUpdates int           // per batch
	maxTime    time.Duration // of an open batch

	// Used by the holder of the turn.
	session      *session      // nil: must be reopened
	batch        *batch        // nil: no open batch
	last         int           // updates of the last batch
	checkpointer *checkpointer // nil in memory

	mu    sync.Mutex // guards the fields below
	busy  bool       // the turn is taken
	queue []chan struct{}
}

// A batch is one transaction with updates of several callers.
type batch struct {
	updates int
	yielded bool // others were let run
	began   time.Time
	done    chan struct{} // closed when err is set
	err     error
}

func newWriter(s *Store) (*writer, error) {
	c, err := s.openSession()
	if err != nil {
		return nil, err
	}
	w := &writer{store: s, session: c, maxUpdates: batchUpdates, maxTime: batchTime}
	if s.path == Memory {
		w.maxUpdates = 1 // views use the same connection and must see only committed state
	} else {
		w.checkpointer = newCheckpointer(s)
	}
	return w, nil
}

// update runs fn in a batch and waits for its commit, also if fn fails: it may have
// failed by what it read of others in the batch, who may not be committed.
func (w *writer) update(ctx context.Context, owner artel.Owner, fn func(*rows.Tx) error) error {
	b, err := w.run(ctx, owner, fn)
	if b == nil {
		return err
	}
	<-b.done
	return cmp.Or(b.err, err)
}

// run waits for the turn, runs fn in the open batch and returns the batch. With an
// error, the batch is that of other updates, or nil if there are none.
func (w *writer) run(ctx context.Context, owner artel.Owner, fn func(*rows.Tx) error) (_ *batch, err error) {
	const op = "store.Update"
	if err := w.acquire(ctx, op); err != nil {
		return nil, err
	}
	defer w.release()
	b, err := w.open()
	if err != nil {
		return nil, failure(op, "", err)
	}
	turn := &turn{session: w.session, shared: b.updates > 0}
	t := rows.Begin(ctx, turn, rows.Options{Owner: owner, Write: true, Dialect: w.store.dialect, Numbers: &w.session.numbers, Lineage: w.store.lineage})
	ok := false // stays false if fn panics or calls runtime.Goexit
	defer func() {
		t.End()
		if broken := t.Broken(); !ok || broken != nil {
			w.rollBack(turn, broken)
		}
	}()
	if err := fn(t); err != nil {
		if b.updates == 0 {
			b = nil
		}
		return b, err
	}
	if err := t.Broken(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, rows.Canceled(op, err)
	}
	if turn.saved {
		if _, err := w.session.exec("RELEASE one"); err != nil {
			return nil, t.Break(failure(op, "", err))
		}
	}
	b.updates++
	ok = true
	return b, nil
}

// alone runs fn while no update runs. It is only for a database in memory, whose
// batches have one update, so that no batch is open.
func (w *writer) alone(ctx context.Context, op string, fn func(*session) error) error {
	if err := w.acquire(ctx, op); err != nil {
		return err
	}
	defer w.release()
	return fn(w.session)
}

// open returns the open batch, ready for one more update.
func (w *writer) open() (*batch, error) {
	if w.session == nil {
		c, err := w.store.openSession()
		if err != nil {
			return nil, err
		}
		w.session = c
	}
	if w.batch == nil {
		if _, err := w.session.exec("BEGIN IMMEDIATE"); err != nil {
			w.closeSession()
			return nil, err
		}
		w.batch = &batch{began: time.Now(), done: make(chan struct{})}
		if err := w.session.refreshNumbers(); err != nil {
			w.abort(failure("store.Update", "", err))
			return nil, err
		}
	}
	return w.batch, nil
}

// rollBack removes the last update from the batch. If the database has failed, that
// ends the batch.
func (w *writer) rollBack(t *turn, broken error) {
	switch {
	case broken != nil:
		w.abort(broken)
	case !t.shared:
		w.abort(nil)
	default:
		w.session.numbers.Forget()
		if err := t.undo(); err != nil {
			w.abort(failure("store.Update", "", err))
		}
	}
}

// commit commits the batch and wakes its callers.
func (w *writer) commit() {
	if _, err := w.session.exec("COMMIT"); err != nil {
		w.abort(&artel.Error{Op: "store.Update", Subject: w.store.path, Kind: artel.Unavailable, Err: err})
		return
	}
	w.last = w.batch.updates
	close(w.batch.done)
	w.batch = nil
	if w.checkpointer != nil {
		w.checkpointer.committed(w.last)
	}
}

// abort rolls the batch back; its callers get err.
func (w *writer) abort(err error) {
	w.session.numbers.Forget()
	if _, rerr := w.session.exec("ROLLBACK"); rerr != nil || err != nil {
		w.closeSession()
	}
	w.batch.err = err
	close(w.batch.done)
	w.batch = nil
}

// closeSession drops a connection that may be damaged. It keeps that of a
// database in memory, which would be lost.
func (w *writer) closeSession() {
	if w.store.path == Memory {
		return
	}
	_ = w.session.close()
	w.session = nil
}

// acquire waits for the turn.
func (w *writer) acquire(ctx context.Context, op string) error {
	w.mu.Lock()
	if !w.busy {
		w.busy = true
		w.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	w.queue = append(w.queue, turn)
	w.mu.Unlock()
	select {
	case <-turn:
		if ctx.Err() == nil {
			return nil
		}
		w.release()
		return rows.Canceled(op, ctx.Err())
	case <-ctx.Done():
	}
	w.mu.Lock()
	i := slices.Index(w.queue, turn)
	if i >= 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
	}
	w.mu.Unlock()
	if i < 0 { // the turn was given to this caller meanwhile
		w.release()
	}
	return rows.Canceled(op, ctx.Err())
}

// release passes the turn on. It commits first if the batch must not wait for the
// next caller.
func (w *writer) release() {
	w.mu.Lock()
	if b := w.batch; b != nil && len(w.queue) == 0 && b.updates < w.last && !b.yielded {
		b.yielded = true
		w.mu.Unlock()
		runtime.Gosched()
		w.mu.Lock()
	}
	if b := w.batch; b != nil && (len(w.queue) == 0 || b.updates >= w.maxUpdates || time.Since(b.began) >= w.maxTime) {
		w.mu.Unlock()
		w.commit()
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		w.busy = false
		return
	}
	close(w.queue[0])
	w.queue = slices.Delete(w.queue, 0, 1)
}
