// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"sync"
)

// readers are the sessions of views. The one used last is taken first, since it has its
// statements prepared and its pages in memory; another is opened only for views at the
// same time.
type readers struct {
	free chan struct{} // an element for each view that may begin

	mu     sync.Mutex // guards opened
	opened []*session // those in no view, the one used last at the end
}

func newReaders(n int) *readers {
	r := &readers{free: make(chan struct{}, n)}
	for range n {
		r.free <- struct{}{}
	}
	return r
}

// take returns a session that no view uses; nil: the caller opens one. The caller must
// call put.
func (r *readers) take(ctx context.Context) (c *session, err error) {
	select {
	case <-r.free:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.opened); n > 0 {
		c = r.opened[n-1]
		r.opened = r.opened[:n-1]
	}
	return c, nil
}

// put gives back a session; nil: it was closed, or not opened.
func (r *readers) put(c *session) {
	if c != nil {
		r.mu.Lock()
		r.opened = append(r.opened, c)
		r.mu.Unlock()
	}
	r.free <- struct{}{}
}

// close closes the sessions. No view may run any more.
func (r *readers) close() {
	for _, c := range r.opened {
		_ = c.close()
	}
	r.opened = nil
}
