// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/artelhq/artel"
)

// key identifies a rendition.
type key struct {
	owner  artel.Owner
	source artel.Digest
	form   string
}

// A job is a running production. Before done is closed, only the goroutine that
// runs it may access the other fields.
type job struct {
	done chan struct{}
	made Rendition
	err  error
}

// A failure is a cached error.
type failure struct {
	key   key
	err   error
	until time.Time
}

// Lifetimes of cached failures: those caused by the bytes, which would recur, and
// those of a service or the storage, which may be short.
const (
	rememberBytes   = 10 * time.Minute
	rememberService = 30 * time.Second
	maxFailures     = 1000
)

// jobs holds the running jobs and the recent failures.
type jobs struct {
	now func() time.Time

	mu      sync.Mutex
	running map[key]*job
	failed  map[key]*list.Element // of failure
	order   *list.List            // the newest in front
}

func newJobs(now func() time.Time) *jobs {
	return &jobs{now: now, running: map[key]*job{}, failed: map[key]*list.Element{}, order: list.New()}
}

// once runs produce, or waits for a running job with the same key. If that job's
// caller cancels, one of the waiting callers runs produce.
func (m *jobs) once(ctx context.Context, k key, produce func(context.Context) (Rendition, error)) (Rendition, error) {
	for {
		g, mine, err := m.startOrJoin(k)
		if err != nil {
			return Rendition{}, err
		}
		if mine {
			m.run(ctx, k, g, produce)
			return g.made, g.err
		}
		select {
		case <-g.done:
			if artel.KindOf(g.err) != artel.Canceled || ctx.Err() != nil {
				return g.made, g.err
			}
		case <-ctx.Done():
			return Rendition{}, artel.Errorf(artel.Canceled, "rendition.Maker", string(k.source), "%w", context.Cause(ctx))
		}
	}
}

// startOrJoin returns the running job of k, or a new one that the caller has to run,
// or the cached failure.
func (m *jobs) startOrJoin(k key) (g *job, mine bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.failed[k]; ok {
		f := e.Value.(failure)
		if m.now().Before(f.until) {
			return nil, false, f.err
		}
		m.forget(e)
	}
	if g, ok := m.running[k]; ok {
		return g, false, nil
	}
	g = &job{done: make(chan struct{})}
	m.running[k] = g
	return g, true, nil
}

func (m *jobs) run(ctx context.Context, k key, g *job, produce func(context.Context) (Rendition, error)) {
	g.err = artel.Errorf(artel.Internal, "rendition.Maker", string(k.source), "the production panicked") // replaced unless produce panics
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.running, k)
		if keep := retention(g.err); keep > 0 && ctx.Err() == nil {
			m.failed[k] = m.order.PushFront(failure{k, g.err, m.now().Add(keep)})
			if m.order.Len() > maxFailures {
				m.forget(m.order.Back())
			}
		}
		close(g.done)
	}()
	g.made, g.err = produce(ctx)
	if g.err != nil && ctx.Err() != nil {
		g.err = artel.Errorf(artel.Canceled, "rendition.Maker", string(k.source), "%w", context.Cause(ctx))
	}
}

func (m *jobs) forget(e *list.Element) { delete(m.failed, m.order.Remove(e).(failure).key) }

// retention returns for how long an error is cached.
func retention(err error) time.Duration {
	switch artel.KindOf(err) {
	case artel.Invalid, artel.Unsupported, artel.TooLarge:
		return rememberBytes
	case artel.Denied, artel.Unavailable:
		return rememberService
	}
	return 0 // no error, or missing bytes, which may arrive
}
