// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/artelhq/artel"
)

// upstream is the wrapped server, which is started again if it ends.
type upstream struct {
	server  Upstream
	options Options
	take    func(context.Context, *message) // requests and notifications of the server

	starting sync.Mutex // held while the server is started
	reading  sync.WaitGroup
	alive    context.Context // of all connections; ended by close
	end      context.CancelFunc

	mu          sync.Mutex
	link        link // nil: not connected
	generation  int  // of link
	waiting     map[string]waiting
	asked       int
	initialize  []byte // the params of the host's initialize
	initialized []byte // those of its notification after that
	answered    bool   // the server has answered something, ever
	failures    int    // starts since its last answer
	why         error  // of its last end
	closed      bool
}

// waiting is a request that the server has not answered.
type waiting struct {
	generation int
	done       chan *message // of one
}

func newUpstream(s Upstream, o Options, take func(context.Context, *message)) *upstream {
	u := &upstream{server: s, options: o, take: take, waiting: map[string]waiting{}}
	u.alive, u.end = context.WithCancel(context.Background())
	return u
}

// maxStarts is how often the server is started without answering anything.
const maxStarts = 4

// connected returns the connection, which it makes if there is none.
func (u *upstream) connected(ctx context.Context) (link, int, error) {
	u.starting.Lock()
	defer u.starting.Unlock()
	u.mu.Lock()
	l, generation, again, closed, starts, why := u.link, u.generation, u.initialize, u.closed, u.failures, u.why
	u.mu.Unlock()
	switch {
	case closed:
		return nil, 0, artel.Errorf(artel.Unavailable, "mcpproxy", u.options.Name, "the proxy ends")
	case l != nil:
		return l, generation, nil
	case starts >= maxStarts:
		return nil, 0, artel.Errorf(artel.Unavailable, "mcpproxy", u.options.Name, "it ended %d times without an answer and is not started again: %w", starts, why)
	}
	l, err := u.server.connect(u.alive)
	u.mu.Lock()
	u.failures++
	if err != nil {
		err = u.hidden(err)
		u.why = err
		u.mu.Unlock()
		return nil, 0, err
	}
	u.generation++
	generation = u.generation
	u.link = l
	u.mu.Unlock()
	u.reading.Go(func() { u.read(u.alive, l, generation) })
	if generation > 1 && again != nil {
		u.options.Log.Warn("the server was started again", "server", u.options.Name)
		if err := u.greet(ctx, l, generation, again); err != nil {
			return nil, 0, err
		}
	}
	return l, generation, nil
}

// greet repeats the host's handshake with a server that was started again.
func (u *upstream) greet(ctx context.Context, l link, generation int, params []byte) error {
	m := request(u.newID(), "initialize", params)
	defer m.Close() //nolint:errcheck // in memory
	got, err := u.exchange(ctx, l, generation, m)
	if err != nil {
		return err
	}
	if got == nil {
		return ctx.Err()
	}
	_ = got.Close()
	u.mu.Lock()
	params = u.initialized
	u.mu.Unlock()
	if params == nil {
		return nil
	}
	n, err := parse(spoolOf(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/initialized","params":%s}`, params)))
	if err != nil {
		return err
	}
	defer n.Close() //nolint:errcheck // in memory
	return l.send(ctx, n)
}

// newID returns an id for a request of the proxy itself.
func (u *upstream) newID() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked++
	return `"artel:` + strconv.Itoa(u.asked) + `"`
}

// maxHandshake is the most bytes of a handshake that is repeated.
const maxHandshake = 1 << 20

// remember keeps the handshake for a server that is started again.
func (u *upstream) remember(m *message) {
	if m.method != "initialize" && m.method != "notifications/initialized" {
		return
	}
	params := []byte("{}")
	if !m.params.empty() {
		var err error
		if params, err = m.bytes(m.params, maxHandshake); err != nil {
			return
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if m.method == "initialize" {
		u.initialize = params
	} else {
		u.initialized = params
	}
}

// ask sends a request and returns its answer with that id; nil if ctx ended first. A server
// that ends before it answers is an error that says how.
func (u *upstream) ask(ctx context.Context, m *message, id string) (*message, error) {
	if m.method == "initialize" { // a host that begins again needs no repetition
		u.mu.Lock()
		u.initialize, u.initialized = nil, nil
		u.mu.Unlock()
	}
	for {
		l, generation, err := u.connected(ctx)
		if errors.Is(err, errUnsent) {
			continue // likewise
		}
		if err != nil {
			return nil, err
		}
		u.remember(m)
		got, err := u.exchange(ctx, l, generation, m)
		switch {
		case errors.Is(err, errUnsent): // starts are counted, so this ends
			continue
		case err != nil || got == nil || got.id == id:
			return got, err
		}
		return got, errors.New("an answer with another id")
	}
}

// errUnsent reports a request to a program that had ended before it could read it.
var errUnsent = errors.New("the server had ended")

// exchange sends a request over a connection and waits for its answer.
func (u *upstream) exchange(ctx context.Context, l link, generation int, m *message) (*message, error) {
	done := make(chan *message, 1)
	u.mu.Lock()
	if _, taken := u.waiting[m.id]; taken {
		u.mu.Unlock()
		return nil, fmt.Errorf("the id %s is used by another request", m.id)
	}
	if u.generation != generation || u.link == nil {
		u.mu.Unlock()
		return nil, errUnsent
	}
	u.waiting[m.id] = waiting{generation, done}
	u.mu.Unlock()
	defer u.forget(m.id)
	if err := l.send(ctx, m); err != nil && ctx.Err() == nil {
		if _, program := l.(*lines); !program {
			return nil, fmt.Errorf("the server %s did not take the request: %w", u.options.Name, u.hidden(err))
		}
		// It has closed its input, so that it ends or has ended, and no call has begun.
		_ = l.close() // its end is reported by read
		select {
		case got, ok := <-done:
			if ok {
				return got, nil
			}
			return nil, errUnsent
		case <-ctx.Done():
			return nil, nil
		}
	}
	select {
	case got, ok := <-done:
		if ok {
			return got, nil
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		return nil, u.lost()
	case <-ctx.Done():
		return nil, nil
	}
}

// lost says how the server ended. u.mu is held.
func (u *upstream) lost() error {
	if u.closed {
		return fmt.Errorf("the server %s was stopped", u.options.Name)
	}
	return fmt.Errorf("the server %s ended before it answered: %w; the next request starts it again", u.options.Name, u.why)
}

func (u *upstream) forget(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.waiting, id)
}

// has reports whether the server has a request of that id to answer.
func (u *upstream) has(id string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.waiting[id]
	return ok
}

// pass sends a notification or an answer of the host.
func (u *upstream) pass(ctx context.Context, m *message) {
	u.remember(m)
	u.mu.Lock()
	l := u.link
	u.mu.Unlock()
	if l == nil {
		return // the server that it was for has ended
	}
	if err := l.send(ctx, m); err != nil {
		u.options.Log.Warn("the server did not take a message", "server", u.options.Name, "method", m.method, "err", u.hidden(err))
	}
}

// read takes the messages of a connection until it ends.
func (u *upstream) read(ctx context.Context, l link, generation int) {
	for {
		m, err := l.receive(ctx)
		if err != nil {
			if cerr := l.close(); cerr != nil && (errors.Is(err, io.EOF) || ctx.Err() == nil) {
				err = cerr // how the process ended
			}
			u.ended(generation, err)
			return
		}
		m, err = u.clean(m)
		if err != nil {
			u.options.Log.Warn("a message of the server was left out", "server", u.options.Name, "err", u.hidden(err))
			if m == nil {
				continue
			}
			id := m.id
			_ = m.Close()
			if m.method != "" || id == "" {
				continue
			}
			m = failure(id, codeInternal, "the answer could not be read")
		}
		if m.method != "" {
			u.take(ctx, m)
			continue
		}
		u.mu.Lock()
		w, ok := u.waiting[m.id]
		delete(u.waiting, m.id)
		u.answered, u.failures = true, 0
		u.mu.Unlock()
		if !ok {
			_ = m.Close() // cancelled
			continue
		}
		w.done <- m
	}
}

// ended fails all requests of a connection.
func (u *upstream) ended(generation int, err error) {
	if errors.Is(err, io.EOF) {
		err = errors.New("it closed the connection")
	}
	err = u.hidden(err)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.link = nil
	if !u.closed {
		u.why = err
	}
	for id, w := range u.waiting {
		if w.generation == generation {
			close(w.done)
			delete(u.waiting, id)
		}
	}
	if !u.closed {
		u.options.Log.Warn("the server ended", "server", u.options.Name, "err", err)
	}
}

// close ends the server.
func (u *upstream) close() {
	u.mu.Lock()
	u.closed = true
	l := u.link
	u.mu.Unlock()
	if l != nil {
		_ = l.close() // how it ends is of no use
	}
	u.starting.Lock() // a start in progress ends first
	u.mu.Lock()
	l = u.link
	u.mu.Unlock()
	u.starting.Unlock()
	if l != nil {
		_ = l.close()
	}
	u.end()
	u.reading.Wait()
}

// never returns why the server ended, if it has not answered anything.
func (u *upstream) never() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.answered || u.why == nil || u.failures == 0 {
		return nil
	}
	return artel.Errorf(artel.Unavailable, "mcpproxy", u.options.Name, "the server ended before it answered: %w", u.why)
}
