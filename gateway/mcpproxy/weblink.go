// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
)

// A webLink is the link to a host that sends each message in an HTTP request. The proxy
// knows requests by ids of the link, because hosts without sessions may use the same ones at
// the same time. A webLink is safe for concurrent use.
type webLink struct {
	ctx     context.Context // ends with the session
	log     *slog.Logger
	slowest time.Duration
	alone   bool // without a session
	arrived chan *message

	mu      sync.Mutex
	asked   int
	routes  map[string]*route // of open requests, by the ids of the link
	stream  *outbox           // of messages that belong to no request; nil: the host does not listen
	waiting []*message        // for a stream
}

// A route is a request of the host that is not answered yet.
type route struct {
	id    string // of the host
	token []byte // of its progress, as JSON; nil: none
	order int
	out   *outbox
}

func newWebLink(ctx context.Context, log *slog.Logger, slowest time.Duration, alone bool) *webLink {
	return &webLink{ctx: ctx, log: log, slowest: slowest, alone: alone, arrived: make(chan *message), routes: map[string]*route{}}
}

// receive implements [link].
func (l *webLink) receive(ctx context.Context) (*message, error) {
	select {
	case m := <-l.arrived:
		return m, nil
	case <-l.ctx.Done():
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *webLink) close() error { return nil }

// An outbox holds the messages of one HTTP answer until they are written. The one who puts a
// message in never waits for a slow reader.
type outbox struct {
	mu    sync.Mutex
	all   []*message
	gone  bool
	ready chan struct{} // of one
}

func newOutbox() *outbox { return &outbox{ready: make(chan struct{}, 1)} }

// maxOutbox is how many notifications wait for a slow reader.
const maxOutbox = 1000

// put takes a message over, and reports whether it does. Answers are always taken.
func (b *outbox) put(m *message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone || m.method != "" && len(b.all) >= maxOutbox {
		return false
	}
	b.all = append(b.all, m)
	select {
	case b.ready <- struct{}{}:
	default:
	}
	return true
}

func (b *outbox) next() *message {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.all) == 0 {
		return nil
	}
	m := b.all[0]
	b.all = b.all[1:]
	return m
}

func (b *outbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = true
	for _, m := range b.all {
		_ = m.Close()
	}
	b.all = nil
}

// An edit puts bytes in the place of a span.
type edit struct {
	at span
	to []byte
}

// edited copies a message with edits.
func (m *message) edited(edits ...edit) (*message, error) {
	out := &spool{}
	from := int64(0)
	var err error
	for from < m.size && err == nil {
		next := edit{at: span{m.size, m.size}}
		for _, e := range edits {
			if e.at.from >= from && !e.at.empty() && e.at.from < next.at.from {
				next = e
			}
		}
		err = m.copyTo(out, span{from, next.at.from})
		if err == nil {
			_, err = out.Write(next.to)
		}
		from = next.at.to
	}
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	made, err := parse(out)
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	made.asker = m.asker
	return made, nil
}

// take serves a message of the host. It reports whether a request was answered without an
// error.
func (l *webLink) take(w http.ResponseWriter, r *http.Request, m *message) bool {
	m.asker = r.Context()
	if m.id == "" || m.method == "" {
		l.takeOther(w, m)
		return true
	}
	at, out, err := l.open(m)
	if err == nil {
		defer l.leave(at, out)
		err = l.pass(r.Context(), m, at)
	}
	if err != nil {
		w.Header().Del(sessionHeader)
		deliverHTTP(w, http.StatusOK, failure(m.id, codeInternal, err.Error()))
		return false
	}
	return l.write(w, r, m, at, out)
}

// open makes the route of a request.
func (l *webLink) open(m *message) (at string, out *outbox, err error) {
	token, err := m.bytes(m.member(m.member(m.params, "_meta"), "progressToken"), maxID)
	if err != nil {
		return "", nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.routes) >= maxOpen {
		return "", nil, artel.Errorf(artel.Conflict, "mcpproxy", "", "%d requests are at work; wait for some of them", len(l.routes))
	}
	l.asked++
	at = `"host:` + strconv.Itoa(l.asked) + `"`
	out = newOutbox()
	l.routes[at] = &route{id: m.id, token: token, order: l.asked, out: out}
	return at, out, nil
}

// maxOpen is how many requests of one host are at work at the same time.
const maxOpen = 256

// pass gives a request to the proxy.
func (l *webLink) pass(ctx context.Context, m *message, at string) error {
	token := m.member(m.member(m.params, "_meta"), "progressToken")
	sent, err := m.edited(edit{m.member(m.all(), "id"), []byte(at)}, edit{token, []byte(at)})
	if err != nil {
		return err
	}
	return l.arrive(ctx, sent)
}

// arrive gives a message to the proxy, which owns it from then on.
func (l *webLink) arrive(ctx context.Context, m *message) error {
	select {
	case l.arrived <- m:
		return nil
	case <-l.ctx.Done():
		_ = m.Close()
		return errors.New("the session has ended; begin another")
	case <-ctx.Done():
		_ = m.Close()
		return ctx.Err()
	}
}

// takeOther takes a notification or an answer of the host.
func (l *webLink) takeOther(w http.ResponseWriter, m *message) {
	var edits []edit
	switch {
	case l.alone && m.method == "":
		refuse(w, http.StatusBadRequest, "an answer without a session answers nothing")
		return
	case m.method == "notifications/cancelled":
		id := m.member(m.params, "requestId")
		raw, err := m.bytes(id, maxID)
		at := l.routeOf(string(raw))
		if err != nil || at == "" || l.alone { // without a session, a host that leaves cancels
			w.WriteHeader(http.StatusAccepted)
			return
		}
		edits = append(edits, edit{id, []byte(at)})
	}
	sent, err := m.edited(edits...)
	if err == nil {
		err = l.arrive(m.asker, sent)
	}
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// routeOf returns the link's id of a request of the host.
func (l *webLink) routeOf(id string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, r := range l.routes {
		if r.id == id {
			return at
		}
	}
	return ""
}

// leave ends the route of a request.
func (l *webLink) leave(at string, out *outbox) {
	l.mu.Lock()
	delete(l.routes, at)
	l.mu.Unlock()
	out.close()
}

// cancel cancels a request at the server.
func (l *webLink) cancel(at, why string) {
	m, err := parse(spoolOf(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":%s}}`, at, quoted(why))))
	if err == nil {
		_ = l.arrive(context.Background(), m) // a session that has ended has ended its requests
	}
}

// How an answer is written: as one message if it comes soon and is all, and otherwise as a
// stream, in which comments keep the connection open.
const (
	soon      = 2 * time.Second
	keepAlive = 15 * time.Second
)

// write answers a request. It reports whether the answer is no error.
func (l *webLink) write(w http.ResponseWriter, r *http.Request, m *message, at string, out *outbox) bool {
	var limit <-chan time.Time
	if l.slowest > 0 && m.method != "subscriptions/listen" {
		t := time.NewTimer(l.slowest)
		defer t.Stop()
		limit = t.C
	}
	tick := time.NewTimer(soon)
	defer tick.Stop()
	stream := &sseWriter{w: w}
	for {
		for got := out.next(); got != nil; got = out.next() {
			last := got.method == ""
			var err error
			switch {
			case last && !stream.begun:
				if got.failed {
					w.Header().Del(sessionHeader)
				}
				deliverHTTP(w, http.StatusOK, got)
			default:
				err = stream.message(got)
			}
			ok := !got.failed
			_ = got.Close()
			if last {
				return ok
			}
			if err != nil {
				break
			}
		}
		select {
		case <-out.ready:
		case <-tick.C:
			if stream.comment() == nil {
				tick.Reset(keepAlive)
			}
		case <-limit:
			l.cancel(at, "it took too long")
			limit = nil
			_ = out.put(failure(m.id, codeInternal, fmt.Sprintf("no answer came within %v, and the request was cancelled; it may have done a part of its work", l.slowest)))
		case <-l.ctx.Done():
			if !stream.begun {
				w.Header().Del(sessionHeader)
				refuse(w, http.StatusNotFound, "the session has ended; begin another with the message initialize")
			}
			return false
		case <-r.Context().Done():
			if l.alone || artel.KindOf(context.Cause(r.Context())) == artel.Unauthenticated {
				l.cancel(at, "the client has left")
			} else {
				l.log.Debug("a host has left before the answer to its request", "method", m.method)
			}
			return false
		}
	}
}

// deliverHTTP answers with one message, and closes it.
func deliverHTTP(w http.ResponseWriter, status int, m *message) {
	defer m.Close() //nolint:errcheck // a temporary file
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.FormatInt(m.size, 10))
	w.WriteHeader(status)
	_ = m.copyTo(w, m.all()) // a host that has left is noticed by its request
}

// An sseWriter writes messages as server-sent events.
type sseWriter struct {
	w     http.ResponseWriter
	begun bool
}

func (s *sseWriter) begin() {
	if s.begun {
		return
	}
	s.begun = true
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	s.w.WriteHeader(http.StatusOK)
}

func (s *sseWriter) message(m *message) error {
	s.begin()
	if _, err := io.WriteString(s.w, "event: message\ndata: "); err != nil {
		return err
	}
	if _, err := io.Copy(s.w, withoutBreaks{m.reader(m.all())}); err != nil {
		return err
	}
	if _, err := io.WriteString(s.w, "\n\n"); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}

func (s *sseWriter) comment() error {
	s.begin()
	if _, err := io.WriteString(s.w, ": \n\n"); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}

// listen serves the stream of messages that belong to no request.
func (l *webLink) listen(w http.ResponseWriter, r *http.Request) {
	if accepts := strings.Join(r.Header.Values("Accept"), ","); !strings.Contains(accepts, "text/event-stream") && !strings.Contains(accepts, "*/*") {
		refuse(w, http.StatusNotAcceptable, "the header Accept has to name text/event-stream")
		return
	}
	out := newOutbox()
	l.mu.Lock()
	if l.stream != nil {
		l.mu.Unlock()
		refuse(w, http.StatusConflict, "the session has a stream already")
		return
	}
	l.stream = out
	for _, m := range l.waiting {
		_ = out.put(m)
	}
	l.waiting = nil
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.stream = nil
		l.mu.Unlock()
		out.close()
	}()
	stream := &sseWriter{w: w}
	stream.begin()
	err := http.NewResponseController(w).Flush()
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for err == nil {
		for m := out.next(); m != nil && err == nil; m = out.next() {
			err = stream.message(m)
			_ = m.Close()
		}
		select {
		case <-out.ready:
		case <-tick.C:
			err = stream.comment()
		case <-l.ctx.Done():
			return
		case <-r.Context().Done():
			return
		}
	}
}

// maxWaiting is how many messages wait for a stream.
const maxWaiting = 100

// send implements [link]: it routes a message to the answer of the request that it belongs
// to. m stays the caller's.
func (l *webLink) send(_ context.Context, m *message) error {
	at, edits := l.belongs(m)
	l.mu.Lock()
	var out *outbox
	to := l.routes[at]
	switch {
	case to != nil && m.method == "":
		edits = append(edits, edit{m.member(m.all(), "id"), []byte(to.id)})
		out = to.out
	case to != nil:
		out = to.out
	case m.method == "":
		l.mu.Unlock()
		return nil // of a request whose host has left
	default:
		out = l.free(m)
	}
	for i, e := range edits {
		switch {
		case e.to != nil:
		case to == nil:
			edits[i] = edit{}
		case m.method == "notifications/progress":
			edits[i].to = to.token
		default:
			edits[i].to = []byte(to.id)
		}
	}
	l.mu.Unlock()
	sent, err := m.edited(edits...)
	if err != nil {
		return err
	}
	if out != nil {
		if out.put(sent) {
			return nil
		}
		_ = sent.Close()
		return fmt.Errorf("%s was left out: the host does not read", m.method)
	}
	if l.alone {
		_ = sent.Close()
		l.log.Debug("a message of a server for no request was left out, as the host has no session", "method", m.method)
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, sent)
	if len(l.waiting) > maxWaiting {
		first := l.waiting[0]
		l.waiting = l.waiting[1:]
		err = fmt.Errorf("%s was left out: the host has no stream and makes no request", first.method)
		_ = first.Close()
	}
	return err
}

// belongs returns the link's id of the request that a message belongs to, and where the
// message repeats it.
func (l *webLink) belongs(m *message) (at string, edits []edit) {
	repeated := func(where span) {
		if raw, err := m.bytes(where, maxID); err == nil && strings.HasPrefix(string(raw), `"host:`) {
			at = string(raw)
			edits = append(edits, edit{at: where})
		}
	}
	switch m.method {
	case "":
		repeated(m.member(m.member(m.result, "_meta"), metaSubscription))
		return m.id, edits
	case "notifications/progress":
		repeated(m.member(m.params, "progressToken"))
	default:
		repeated(m.member(m.member(m.params, "_meta"), metaSubscription))
	}
	return at, edits
}

// free returns the stream for a message that belongs to no request as far as is known; nil:
// there is none. Questions and lines of a log go with the oldest request if there is one, as
// they are most likely about it. l.mu is held.
func (l *webLink) free(m *message) *outbox {
	if m.id != "" || m.method == "notifications/message" || l.stream == nil {
		var oldest *route
		for _, r := range l.routes {
			if oldest == nil || r.order < oldest.order {
				oldest = r
			}
		}
		if oldest != nil && (!l.alone || len(l.routes) == 1) {
			return oldest.out
		}
	}
	return l.stream
}

// drain closes what waits at the end of the session.
func (l *webLink) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.waiting {
		_ = m.Close()
	}
	l.waiting = nil
}
