// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
)

// A Wrapped is a server for one user, as a [Handler] serves it.
type Wrapped struct {
	Owner   string        // a session belongs to its owner
	Key     string        // of the server and the settings; a session belongs to one
	Program bool          // each session starts a program
	Slowest time.Duration // in which a request is answered

	// Open begins a session: it returns what [New] takes. left is closed when the session has
	// to end, closed is called after its end.
	Open func() (u Upstream, s Store, o Options, left <-chan struct{}, closed func(), err error)
}

// A Handler serves hosts over streamable HTTP: those that begin with "initialize" get a
// session with a connection of its own, as a proxy on standard input and output has it. The
// requests of a user without a session (2026-07-28 and later) share one.
type Handler struct {
	find func(*http.Request) (Wrapped, error)
	log  *slog.Logger
	base context.Context // ends with Close
	end  context.CancelFunc

	running  sync.WaitGroup
	mu       sync.Mutex
	sessions map[string]*session // with a session, by its id
	alone    map[string]*session // without one, by owner and key
}

// NewHandler returns a handler of the servers that find returns. The context of a request
// says who asks; its end ends what the request has begun if the cause is of kind
// Unauthenticated, or if it has no session. Close the handler after the last request.
func NewHandler(find func(*http.Request) (Wrapped, error), log *slog.Logger) *Handler {
	h := &Handler{find: find, log: log, sessions: map[string]*session{}, alone: map[string]*session{}}
	h.base, h.end = context.WithCancel(context.Background())
	h.running.Go(h.sweep)
	return h
}

// A session is a host that is served over HTTP.
type session struct {
	*webLink
	Wrapped
	id   string // "": without a session
	stop context.CancelFunc
	done chan struct{}

	// Guarded by the mutex of the handler:
	used time.Time // at the end of the last request
	busy int       // requests at work, streams included
}

// Limits of sessions. A host whose session ended gets 404 and begins another.
const (
	maxSessions = 64             // of one user
	maxPrograms = 16             // of one user
	allPrograms = 256            // of all users
	maxIdle     = 12 * time.Hour // of a session
	idleProgram = time.Hour      // of a session with a program
	idleAlone   = 10 * time.Minute
	sweepEvery  = time.Minute
)

// maxBody is the most bytes of a request.
const maxBody = 64 << 20

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t, err := h.find(r)
	if err != nil {
		refuse(w, statusOf(err), err.Error())
		return
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r, t)
	case http.MethodGet, http.MethodDelete:
		s, ok := h.inSession(w, r, t)
		if !ok {
			return
		}
		defer h.leave(s)
		if r.Method == http.MethodDelete {
			h.remove(s)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		s.listen(w, r)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		refuse(w, http.StatusMethodNotAllowed, "use POST; see https://modelcontextprotocol.io/specification")
	}
}

func statusOf(err error) int {
	switch artel.KindOf(err) {
	case artel.NotFound:
		return http.StatusNotFound
	case artel.Denied:
		return http.StatusForbidden
	case artel.Invalid:
		return http.StatusBadRequest
	case artel.TooLarge:
		return http.StatusRequestEntityTooLarge
	case artel.Conflict: // with other requests of the user
		return http.StatusTooManyRequests
	case artel.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// refuse answers with an error of JSON-RPC that belongs to no message.
func refuse(w http.ResponseWriter, status int, text string) {
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": codeRefused, "message": text}})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// post serves a message.
func (h *Handler) post(w http.ResponseWriter, r *http.Request, t Wrapped) {
	accepts := strings.Join(r.Header.Values("Accept"), ",")
	if !strings.Contains(accepts, "*/*") && (!strings.Contains(accepts, "application/json") || !strings.Contains(accepts, "text/event-stream")) {
		refuse(w, http.StatusNotAcceptable, "the header Accept has to name application/json and text/event-stream")
		return
	}
	m, err := read(w, r)
	if err != nil {
		status, text := http.StatusBadRequest, "the body is no message of JSON-RPC: "+err.Error()
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			status, text = http.StatusRequestEntityTooLarge, "a request has at most 64 MB; pass a ref in the place of long content"
		}
		refuse(w, status, text)
		return
	}
	defer m.Close() //nolint:errcheck // a temporary file
	version, id := r.Header.Get(versionHeader), r.Header.Get(sessionHeader)
	if id == "" && m.method == "initialize" && version < statelessFrom {
		h.initialize(w, r, t, m)
		return
	}
	if id != "" && version < statelessFrom {
		s, ok := h.inSession(w, r, t)
		if ok {
			defer h.leave(s)
			s.take(w, r, m)
		}
		return
	}
	if text := m.mismatch(r.Header); version >= statelessFrom && text != "" {
		deliverHTTP(w, http.StatusBadRequest, failure(orNull(m.id), codeHeader, text))
		return
	}
	s, err := h.shared(t)
	if err != nil {
		refuse(w, statusOf(err), err.Error())
		return
	}
	defer h.leave(s)
	s.take(w, r, m)
}

// codeHeader is the code of a request whose header says something else than its body.
const codeHeader = -32020

func orNull(id string) string {
	if id == "" {
		return "null"
	}
	return id
}

// mismatch says how the header of a request without a session differs from its body, which
// what stands between client and server relies on; "": it does not.
func (m *message) mismatch(h http.Header) string {
	if v := m.version(); v != "" && v != h.Get(versionHeader) {
		return "the header " + versionHeader + " is not the version in _meta"
	}
	if got := h.Get(methodHeader); got != "" && got != m.method {
		return "the header " + methodHeader + " is not the method of the message"
	}
	key := "name"
	switch m.method {
	case "resources/read":
		key = "uri"
	case "tools/call", "prompts/get":
	default:
		return ""
	}
	if got, name := h.Get(nameHeader), m.word(m.member(m.params, key)); got != "" && got != name && got != headerValue(name) {
		return "the header " + nameHeader + " is not the " + key + " in the message"
	}
	return ""
}

// read reads the message of a request.
func read(w http.ResponseWriter, r *http.Request) (*message, error) {
	s := &spool{}
	_, err := io.Copy(s, http.MaxBytesReader(w, r.Body, maxBody))
	var m *message
	if err == nil {
		m, err = parse(s)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return m, nil
}

// begin starts a session. h.mu is held.
func (h *Handler) begin(t Wrapped, id string) (*session, error) {
	if h.base.Err() != nil {
		return nil, artel.Errorf(artel.Unavailable, "mcpproxy", "", "the server stops")
	}
	u, store, o, left, closed, err := t.Open()
	if err != nil {
		return nil, err
	}
	p := New(u, store, o)
	p.forget = id == ""
	ctx, stop := context.WithCancel(h.base)
	s := &session{webLink: newWebLink(ctx, h.log, t.Slowest, id == ""), Wrapped: t, id: id, stop: stop, done: make(chan struct{}), used: time.Now(), busy: 1}
	h.running.Go(func() {
		defer close(s.done)
		defer closed()
		if err := p.serve(ctx, s.webLink); err != nil {
			h.log.Warn("an MCP server behind the proxy ended", "server", o.Name, "err", err)
		}
		s.drain()
	})
	h.running.Go(func() {
		select {
		case <-left:
			h.remove(s)
		case <-s.done:
		}
	})
	return s, nil
}

// initialize serves the message that begins a session.
func (h *Handler) initialize(w http.ResponseWriter, r *http.Request, t Wrapped, m *message) {
	id := rand.Text()
	h.mu.Lock()
	err := h.room(t)
	var s *session
	if err == nil {
		s, err = h.begin(t, id)
	}
	if err == nil {
		h.sessions[id] = s
	}
	h.mu.Unlock()
	if err != nil {
		refuse(w, statusOf(err), err.Error())
		return
	}
	defer h.leave(s)
	w.Header().Set(sessionHeader, id)
	if !s.take(w, r, m) {
		h.remove(s) // the server refused it
	}
}

// room ends unused sessions so that another can begin: those that were idle for long, and the
// oldest of a user that has too many. h.mu is held.
func (h *Handler) room(t Wrapped) error {
	h.endIdle()
	own, programs, all := 0, 0, 0
	var oldest, oldestProgram *session
	for _, s := range h.each() {
		if s.Program {
			all++
		}
		if s.Owner != t.Owner {
			continue
		}
		own++
		if s.busy == 0 && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
		if !s.Program {
			continue
		}
		programs++
		if s.busy == 0 && (oldestProgram == nil || s.used.Before(oldestProgram.used)) {
			oldestProgram = s
		}
	}
	full := func(n int, what string) error {
		return artel.Errorf(artel.Conflict, "mcpproxy", "", "there are %d %s with requests at work; end some of them", n, what)
	}
	switch {
	case t.Program && (programs >= maxPrograms || all >= allPrograms):
		if oldestProgram == nil {
			return full(programs, "sessions of this user with servers that are programs")
		}
		h.drop(oldestProgram)
	case own >= maxSessions:
		if oldest == nil {
			return full(own, "MCP sessions of this user")
		}
		h.drop(oldest)
	}
	return nil
}

// each returns all sessions. h.mu is held.
func (h *Handler) each() []*session {
	out := make([]*session, 0, len(h.sessions)+len(h.alone))
	for _, s := range h.sessions {
		out = append(out, s)
	}
	for _, s := range h.alone {
		out = append(out, s)
	}
	return out
}

// shared returns what serves the requests of a user without a session.
func (h *Handler) shared(t Wrapped) (*session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := t.Owner + "\n" + t.Key
	if s := h.alone[key]; s != nil {
		s.busy++
		return s, nil
	}
	if err := h.room(t); err != nil {
		return nil, err
	}
	s, err := h.begin(t, "")
	if err == nil {
		h.alone[key] = s
	}
	return s, err
}

// inSession returns the session that a request names. That of another user is not there.
func (h *Handler) inSession(w http.ResponseWriter, r *http.Request, t Wrapped) (*session, bool) {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		refuse(w, http.StatusBadRequest, "the header "+sessionHeader+" is missing; begin with the message initialize, or use version "+statelessFrom)
		return nil, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[id]
	if s == nil || s.Owner != t.Owner || s.Key != t.Key {
		refuse(w, http.StatusNotFound, "there is no such session; begin another with the message initialize")
		return nil, false
	}
	s.busy++
	return s, true
}

func (h *Handler) leave(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.busy--
	s.used = time.Now()
}

func (h *Handler) remove(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(s)
}

// drop ends a session. h.mu is held.
func (h *Handler) drop(s *session) {
	if s.id != "" {
		delete(h.sessions, s.id)
	} else if key := s.Owner + "\n" + s.Key; h.alone[key] == s {
		delete(h.alone, key)
	}
	s.stop()
}

// endIdle ends sessions that were idle for long. h.mu is held.
func (h *Handler) endIdle() {
	for _, s := range h.each() {
		limit := maxIdle
		switch {
		case s.id == "":
			limit = idleAlone
		case s.Program:
			limit = idleProgram
		}
		if s.busy == 0 && time.Since(s.used) > limit {
			h.drop(s)
		}
	}
}

// sweep ends idle sessions from time to time.
func (h *Handler) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-h.base.Done():
			return
		case <-tick.C:
			h.mu.Lock()
			h.endIdle()
			h.mu.Unlock()
		}
	}
}

// Close ends all sessions with their connections and programs.
func (h *Handler) Close() {
	h.mu.Lock()
	h.end()
	h.mu.Unlock()
	h.running.Wait()
}
