// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/artelhq/artel/internal/secret"
)

// The sessions of MCP, which versions of the protocol before 2026-07-28 have, are in the memory
// of one process: questions to the client wait there for its answers. A proxy in front of
// replicas sends each request to any of them. So the id of a session that a client gets names
// the replica that has it, encrypted with the key that all replicas have, and another replica
// passes the request on. If that replica is gone, its sessions are, and the client
// gets the same answer as after the end of a session: it begins another.

const sessionHeader = "Mcp-Session-Id"

// sessionPurpose is of the encryption of ids of sessions.
const sessionPurpose = "mcp session"

// sessionPeers passes requests on to the replica that has their session.
type sessionPeers struct {
	box   *secret.Box
	self  string // address of this replica: http://HOST:PORT; set before the first request
	proxy *httputil.ReverseProxy
}

// peerKey is the key of the context value with the address of the other replica, and what to
// do when it is gone.
type peerKey struct{}

type peerOf struct {
	address *url.URL
	gone    func(http.ResponseWriter, *http.Request)
}

func newSessionPeers(box *secret.Box, logger *slog.Logger) *sessionPeers {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.DialContext = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	return &sessionPeers{box: box, proxy: &httputil.ReverseProxy{
		FlushInterval: -1, Transport: transport, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			to := r.In.Context().Value(peerKey{}).(peerOf).address
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, r.In.Host
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} { // Rewrite has removed them
				if v, ok := r.In.Header[name]; ok {
					r.Out.Header[name] = v
				}
			}
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				logger.WarnContext(r.Context(), "the server with an MCP session cannot be reached; the session has ended", "err", err)
			}
			r.Context().Value(peerKey{}).(peerOf).gone(w, r)
		},
	}}
}

// of wraps a handler of MCP, named for the encryption.
func (p *sessionPeers) of(name string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Get(sessionHeader)
		if given == "" {
			next.ServeHTTP(&sessionWriter{ResponseWriter: w, seal: func(id string) string { return p.seal(name, id) }}, r)
			return
		}
		same := &sessionWriter{ResponseWriter: w, seal: func(string) string { return given }}
		id, at := p.open(name, given)
		local := r.Clone(r.Context())
		local.Header.Set(sessionHeader, id)
		if at == nil || at.String() == p.self {
			next.ServeHTTP(same, local)
			return
		}
		gone := func(http.ResponseWriter, *http.Request) {
			local.Body = http.NoBody
			next.ServeHTTP(same, local) // which does not know the session
		}
		p.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), peerKey{}, peerOf{at, gone})))
	})
}

// seal returns the id of a session as clients get it.
func (p *sessionPeers) seal(name, id string) string {
	sealed, err := p.box.Seal(sessionPurpose, name, []byte(p.self+"\x00"+id))
	if err != nil {
		return id // which only this replica knows
	}
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// open returns the id of a session and the address of the replica that has it; nil if it was
// not made by seal.
func (p *sessionPeers) open(name, given string) (id string, at *url.URL) {
	sealed, err := base64.RawURLEncoding.DecodeString(given)
	if err != nil {
		return given, nil
	}
	plain, err := p.box.Open(sessionPurpose, name, sealed)
	if err != nil {
		return given, nil
	}
	address, id, _ := strings.Cut(string(plain), "\x00")
	if at, err = url.Parse(address); err != nil {
		return given, nil
	}
	return id, at
}

// A sessionWriter seals the id of a session in the header of an answer.
type sessionWriter struct {
	http.ResponseWriter
	seal  func(id string) string
	wrote bool
}

// Unwrap is for [http.ResponseController].
func (w *sessionWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (w *sessionWriter) WriteHeader(status int) {
	w.header()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *sessionWriter) Write(b []byte) (int, error) {
	w.header()
	return w.ResponseWriter.Write(b)
}

// Flush implements [http.Flusher].
func (w *sessionWriter) Flush() {
	w.header()
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *sessionWriter) header() {
	if id := w.ResponseWriter.Header().Get(sessionHeader); id != "" && !w.wrote {
		w.ResponseWriter.Header().Set(sessionHeader, w.seal(id))
	}
	w.wrote = true
}
