// SPDX-License-Identifier: Apache-2.0

// Package mcpproxy stands between an MCP host and a server, and keeps what floods the
// context of a model out of it.
//
// Begin with [New], and [Proxy.Serve] a host. The proxy passes messages of JSON-RPC in both
// directions unchanged, in every version of the protocol, with these exceptions:
//
//   - The result of a tool or a resource whose texts exceed [Options.Limit] becomes a preview
//     with a ref. Encoded bytes become refs; pictures are also shown, once.
//   - Refs in the arguments of a call become what they stand for.
//   - The list of tools has a tool more, which reads refs. Beyond [toolindex.Budget] tokens
//     of schemas, only tools that find and call the others are listed.
//
// Refs are digests, and texts have no times and no counters: equal results are equal byte by
// byte, so that the prompt cache of the host holds.
//
// A [Guard] decides which methods and tools a host may use; a [Handler] serves hosts over
// HTTP.
//
// Messages are read in parts, and long ones are in temporary files: the memory does not grow
// with them.
package mcpproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/gatewaylog"
)

// DefaultLimit is the most bytes of text in one result.
const DefaultLimit = 4096

// The smallest and largest limits. A preview needs the smallest.
const (
	SmallestLimit = 1024
	LargestLimit  = 1 << 20
)

// Options complete a proxy.
type Options struct {
	Name  string           // of the server, for errors
	Limit int              // bytes of text in a result; 0: [DefaultLimit]
	Defer Defer            // whether tools are listed or found
	Count func(string) int // of tokens
	Log   *slog.Logger
	Guard Guard // decides what the host may do; nil: everything

	// OnCall gets an entry about every call of a tool, task and resource, after the answer and
	// before the host gets it; nil: none is made. It must return at once. An entry names what
	// was kept back by ref and has no content. A server passes [gatewaylog.Log.Add].
	OnCall func(context.Context, gatewaylog.GatewayEntry)
}

// Defer says when only tools that find and call other tools are listed.
type Defer string

// The values of Defer.
const (
	DeferAuto Defer = "auto" // beyond [toolindex.Budget] tokens of schemas
	DeferOn   Defer = "on"
	DeferOff  Defer = "off"
)

// ParseDefer reads a value of Defer; "" is auto.
func ParseDefer(s string) (Defer, error) {
	switch d := cmp.Or(Defer(s), DeferAuto); d {
	case DeferAuto, DeferOn, DeferOff:
		return d, nil
	}
	return "", artel.Errorf(artel.Invalid, "mcpproxy", artel.Shorten(s, 40), "want auto, on or off")
}

// A Proxy serves one host.
type Proxy struct {
	options Options
	keeper  *keeper
	up      *upstream
	front   link

	answering sync.WaitGroup
	slots     chan struct{} // of long messages that are rewritten at the same time

	mu       sync.Mutex
	names    names
	pictures map[artel.Digest]bool // that were shown
	listed   *listing              // nil: not known
	host     client
	serving  map[string]func() // by id: ends a request that the proxy itself answers
	asking   map[string]chan *message
	agreed   []string // states of calls to which the user has agreed
	forget   bool     // pictures are shown each time: the host has no session
}

// An Upstream is a server to wrap.
type Upstream interface {
	// connect starts the server or connects to it.
	connect(ctx context.Context) (link, error)
}

// New makes a proxy for a server.
func New(u Upstream, s Store, o Options) *Proxy {
	o.Limit = cmp.Or(o.Limit, DefaultLimit)
	o.Defer = cmp.Or(o.Defer, DeferAuto)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &Proxy{
		options: o, keeper: newKeeper(s), names: names{}.orDefault(nil), slots: make(chan struct{}, 2),
		pictures: map[artel.Digest]bool{}, serving: map[string]func(){}, asking: map[string]chan *message{},
	}
	p.up = newUpstream(u, o, p.received)
	return p
}

// ServeLines serves the host whose messages are the lines of in, and returns after its last,
// when the server has ended.
func (p *Proxy) ServeLines(ctx context.Context, in io.Reader, out io.Writer) error {
	return p.serve(ctx, newLines(in, out, func(s string) { p.options.Log.Warn("the host: " + s) }, func() error { return nil }))
}

// serve serves a host until its last message. The error says why the server ended, if it
// never answered anything.
func (p *Proxy) serve(ctx context.Context, front link) error {
	p.front = front
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer p.keeper.close()
	type arrival struct {
		m   *message
		err error
	}
	arrivals := make(chan arrival)
	go func() { // ends with the input of the host
		for {
			m, err := front.receive(ctx)
			select {
			case arrivals <- arrival{m, err}:
			case <-ctx.Done():
				if m != nil {
					_ = m.Close()
				}
				return
			}
			if err != nil {
				return
			}
		}
	}()
	var err error
	for err == nil {
		select {
		case a := <-arrivals:
			if err = a.err; err == nil {
				p.fromHost(ctx, a.m)
			}
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if errors.Is(err, io.EOF) {
		p.finish(ctx)
	}
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		err = nil
	}
	stop()
	p.up.close()
	p.answering.Wait()
	return errors.Join(err, p.up.never())
}

// lastAnswers is how long requests are answered after the last message of the host.
const lastAnswers = 10 * time.Second

// finish waits for the answers to what the host has asked.
func (p *Proxy) finish(ctx context.Context) {
	done := make(chan struct{})
	go func() { p.answering.Wait(); close(done) }() // ends with serve
	select {
	case <-done:
	case <-ctx.Done():
	case <-time.After(lastAnswers):
	}
}

// fromHost takes a message of the host.
func (p *Proxy) fromHost(ctx context.Context, m *message) {
	switch {
	case m.method == "" && p.answered(m):
	case m.method == "": // an answer to a question of the server
		p.up.pass(ctx, m)
		_ = m.Close()
	case m.id == "":
		p.notified(ctx, m)
		_ = m.Close()
	default:
		p.answer(ctx, m)
	}
}

// notified takes a notification of the host.
func (p *Proxy) notified(ctx context.Context, m *message) {
	if m.method == "notifications/cancelled" {
		id, _ := m.bytes(m.member(m.params, "requestId"), maxID)
		p.mu.Lock()
		end := p.serving[string(id)]
		p.mu.Unlock()
		if p.up.has(string(id)) { // otherwise it never got the request
			p.up.pass(ctx, m)
		}
		if end != nil {
			end()
		}
		return
	}
	p.up.pass(ctx, m)
}

// answer answers a request of the host, or passes it on.
func (p *Proxy) answer(ctx context.Context, m *message) {
	ctx, end := context.WithCancel(m.in(ctx))
	p.mu.Lock()
	p.serving[m.id] = end
	p.mu.Unlock()
	p.answering.Go(func() {
		defer end()
		defer m.Close() //nolint:errcheck // a temporary file
		reply, err := p.reply(ctx, m)
		if err != nil {
			reply = failure(m.id, codeInternal, p.up.hide(err.Error()))
		}
		p.mu.Lock()
		delete(p.serving, m.id)
		p.mu.Unlock()
		if reply != nil {
			p.toHost(ctx, reply)
		}
	})
}

// toHost sends a message to the host and closes it.
func (p *Proxy) toHost(ctx context.Context, m *message) {
	if err := p.front.send(context.WithoutCancel(ctx), m); err != nil {
		p.options.Log.Warn("the host did not take a message", "err", err)
	}
	_ = m.Close()
}

// reply returns the answer to a request; nil: the request was cancelled, and there is none.
func (p *Proxy) reply(ctx context.Context, m *message) (*message, error) {
	if refusal := p.guarded(ctx, m); refusal != nil {
		return refusal, nil
	}
	switch m.method {
	case "tools/list":
		return p.toolsList(ctx, m)
	case "tools/call":
		name := m.word(m.member(m.params, "name"))
		return p.recorded(ctx, m, name, func(ctx context.Context) (*message, error) { return p.toolsCall(ctx, m, name) })
	case "resources/read":
		return p.recorded(ctx, m, m.word(m.member(m.params, "uri")), func(ctx context.Context) (*message, error) { return p.passed(ctx, m) })
	case "tasks/result":
		return p.recorded(ctx, m, m.word(m.member(m.params, "taskId")), func(ctx context.Context) (*message, error) { return p.passed(ctx, m) })
	case "initialize":
		host := m.client(m.member(m.params, "clientInfo"))
		p.mu.Lock()
		p.host = host
		p.mu.Unlock()
	}
	return p.passed(ctx, m)
}

// passed passes a request on and returns the server's answer.
func (p *Proxy) passed(ctx context.Context, m *message) (*message, error) {
	got, err := p.up.ask(ctx, m, m.id)
	if got == nil || err != nil {
		return got, err
	}
	recordOf(ctx).returned(got.size)
	if got.failed {
		return got, nil
	}
	return p.rewritten(ctx, got, func() (*message, error) {
		switch m.method {
		case "initialize", "server/discover":
			return p.withTools(got)
		case "resources/read":
			return p.resourceResult(ctx, got)
		case "tasks/result":
			return p.callResult(ctx, got, "")
		}
		return got, nil
	})
}

// rewritten runs a function that rewrites an answer, few at a time if it is long.
func (p *Proxy) rewritten(ctx context.Context, got *message, do func() (*message, error)) (*message, error) {
	if got.file != nil {
		select {
		case p.slots <- struct{}{}:
			defer func() { <-p.slots }()
		case <-ctx.Done():
			_ = got.Close()
			return nil, nil
		}
	}
	out, err := do()
	if out != got {
		_ = got.Close()
	}
	switch {
	case ctx.Err() != nil:
		if out != nil {
			_ = out.Close()
		}
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the answer of %s could not be shortened: %w", p.options.Name, err)
	}
	return out, nil
}

// received takes a request or notification of the server.
func (p *Proxy) received(ctx context.Context, m *message) {
	if m.method == "notifications/tools/list_changed" {
		p.mu.Lock()
		p.listed = nil
		p.mu.Unlock()
	}
	p.toHost(ctx, m)
}

// withTools makes sure that the host asks for tools: there is always one.
func (p *Proxy) withTools(m *message) (*message, error) {
	at := m.member(m.result, "capabilities")
	if m.kind(at) != '{' || !m.member(at, "tools").empty() {
		return m, nil
	}
	out := &spool{}
	rest := span{at.from + 1, m.size}
	comma := ","
	if m.kind(rest) == '}' {
		comma = ""
	}
	_, err := io.Copy(out, m.reader(span{0, at.from + 1}))
	if err == nil {
		_, err = out.WriteString(`"tools":{}` + comma)
	}
	if err == nil {
		_, err = io.Copy(out, m.reader(rest))
	}
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return parse(out)
}
