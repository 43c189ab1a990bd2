// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"crypto/rand"
	"net/http"
	"time"

	"github.com/artelhq/artel"
)

// A session is what versions of the protocol before 2026-07-28 keep of a client.
type session struct {
	owner  artel.Owner
	server *server
	used   time.Time // at the end of its last request
	busy   int       // requests at work, streams included
}

// Limits of sessions. A client whose session ended gets 404 and begins another.
const (
	maxSessions = 64 // of one user
	maxIdle     = 12 * time.Hour
)

// openSession serves "initialize".
func (h *Handler) openSession(w http.ResponseWriter, r *http.Request) {
	id, owner := rand.Text(), artel.OwnerOf(r.Context())
	s := &session{owner: owner, server: h.newServer(id), busy: 1}
	if !h.add(id, s) {
		writeError(w, http.StatusTooManyRequests, "this user has 64 MCP sessions with requests at work; end some of them")
		return
	}
	h.stateful.ServeHTTP(w, with(r, s.server))
	h.leave(s)
	for range s.server.mcp.Sessions() {
		return
	}
	h.remove(id) // the SDK refused it
}

// add registers a session, and ends unused ones: those that were idle for
// long, and the oldest of a user that has too many.
func (h *Handler) add(id string, s *session) bool {
	h.mu.Lock()
	var ended []*session
	own, oldest := 0, ""
	for other, o := range h.sessions {
		if o.busy == 0 && time.Since(o.used) > maxIdle {
			ended = append(ended, o)
			delete(h.sessions, other)
			continue
		}
		if o.owner != s.owner {
			continue
		}
		own++
		if o.busy == 0 && (oldest == "" || o.used.Before(h.sessions[oldest].used)) {
			oldest = other
		}
	}
	ok := h.base.Err() == nil
	if own >= maxSessions {
		ok = ok && oldest != ""
		if ok {
			ended = append(ended, h.sessions[oldest])
			delete(h.sessions, oldest)
		}
	}
	if ok {
		h.sessions[id] = s
	}
	h.mu.Unlock()
	for _, o := range ended {
		o.server.close()
	}
	return ok
}

func (h *Handler) leave(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.busy--
	s.used = time.Now()
}

func (h *Handler) remove(id string) {
	h.mu.Lock()
	s := h.sessions[id]
	delete(h.sessions, id)
	h.mu.Unlock()
	if s != nil {
		s.server.close()
	}
}

// inSession serves a request of a session. That of another user is not there.
func (h *Handler) inSession(w http.ResponseWriter, r *http.Request, id string) {
	h.mu.Lock()
	s := h.sessions[id]
	if s != nil && s.owner == artel.OwnerOf(r.Context()) {
		s.busy++
	} else {
		s = nil
	}
	h.mu.Unlock()
	switch {
	case id == "":
		writeError(w, http.StatusBadRequest, "the header Mcp-Session-Id is missing; begin with the message initialize, or use version "+stateless20260728)
		return
	case s == nil:
		writeError(w, http.StatusNotFound, "there is no such session; begin another with the message initialize")
		return
	}
	defer h.leave(s)
	if r.Method == http.MethodGet {
		end := s.server.open(r)
		defer end()
	}
	h.stateful.ServeHTTP(w, with(r, s.server))
	if r.Method == http.MethodDelete {
		h.remove(id)
	}
}

// close ends the connections of a server.
func (s *server) close() {
	for ss := range s.mcp.Sessions() {
		_ = ss.Close()
	}
}

// Close ends all sessions and what is at work in them.
func (h *Handler) Close() {
	h.end()
	h.mu.Lock()
	all := h.sessions
	h.sessions = map[string]*session{}
	h.mu.Unlock()
	for _, s := range all {
		s.server.close()
	}
}
