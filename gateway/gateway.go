// SPDX-License-Identifier: Apache-2.0

// Package gateway lets existing SDKs ask any model in the dialect that they
// speak. It is plain net/http, because its errors are those of the dialects.
//
// Begin with [New]. A request goes one of two ways. Where the client and the
// service speak one dialect, what the client wrote is sent on: the text of its
// JSON is changed in single places where a rule demands it, and everything else,
// unknown fields included, stays byte for byte; the answer is passed on as it
// comes. Else the request is decoded, its media take the form that the service
// takes, the call is made as those of runs are, and the answer is told in the
// client's dialect.
//
// Before either, the request loses what no model is to read as text: refs are
// replaced by what they mean, base64 in the results of tools becomes media, and
// results that are too long are kept and shown in part. Both ways end in one
// form for media, ask again where a service is busy, ask once more with less
// where it refuses what the request carries, and go to the service's fallbacks
// where it is not available.
//
// The same request gives the same bytes to the service. Memory does not grow
// with media. An answer that breaks off ends with the dialect's error, never as
// if it were whole. [Entry] tells the log what was done to a request and why; it
// names bytes by refs and holds nothing of what was said.
package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/gemini"
)

// Options are what a gateway works with beside the application.
type Options struct {
	// Forwarders send requests on as clients wrote them; a dialect that has none
	// is always decoded.
	Forwarders map[model.Dialect]provider.Forwarder
	// OnRequest is told of every request when it is over; nil: nobody. It is called
	// by many goroutines at once, with the context of the request, and returns soon.
	OnRequest func(context.Context, Entry)
	Log       *slog.Logger // nil: slog.Default

	Backend backend.Options
}

// What the log is told.
type (
	// An Entry is what the log keeps of one request.
	Entry = gatewaylog.GatewayEntry
	// A Change is what was done to one part of a request, and why.
	Change = gatewaylog.GatewayChange
)

// What is done to parts beside the steps of the ladder.
const (
	DidResolve = "resolved"  // a ref became the bytes that it means
	DidFetch   = "fetched"   // an address became the bytes behind it
	DidCarry   = "carried"   // media of a tool's result went into a message after it
	DidMove    = "moved"     // a tool's result went to the others of its group
	DidKeep    = "kept"      // a file got an id
	DidAddress = "addressed" // media went as an address of this server's, where the service fetches them
	DidRemind  = "reminded"  // media went by the id that the server had got with them before, and not again
	DidName    = "named"     // media went by the name that the service has for them, and not again
)

type server struct {
	backend *backend.Backend
	o       Options
	counts  *countLimiter
	buffers bufferPool
}

// New returns the handler of the endpoints of all dialects, which lie under /v1/
// and /v1beta/.
func New(a *app.App, o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.OnRequest == nil {
		o.OnRequest = func(context.Context, Entry) {}
	}
	return &server{backend: backend.New(a, o.Backend), o: o, counts: &countLimiter{last: map[artel.ServiceID]time.Time{}}}
}

// Serves reports whether a path belongs to the gateway.
func Serves(path string) bool {
	return strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/v1beta/")
}

// ServeHTTP implements [http.Handler].
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if rest, ok := strings.CutPrefix(path, "/v1beta/"); ok {
		s.serveGemini(w, r, rest)
		return
	}
	d := dialectOf(r)
	switch {
	case path == "/v1/chat/completions":
		s.generate(w, r, chat{})
	case path == "/v1/responses":
		s.generate(w, r, responsesAPI{})
	case path == "/v1/responses/input_tokens":
		s.countTokens(w, r, responsesAPI{}, func(n int) any { return map[string]any{"object": "response.input_tokens", "input_tokens": n} })
	case path == "/v1/messages":
		s.generate(w, r, messages{})
	case path == "/v1/messages/count_tokens":
		s.countTokens(w, r, messages{}, func(n int) any { return map[string]int{"input_tokens": n} })
	case path == "/v1/models" || strings.HasPrefix(path, "/v1/models/"):
		s.serveModels(w, r, d, strings.TrimPrefix(strings.TrimPrefix(path, "/v1/models"), "/"))
	case path == "/v1/files" || strings.HasPrefix(path, "/v1/files/"):
		s.serveFiles(w, r, d, strings.TrimPrefix(path, "/v1/files"))
	default:
		s.notFound(w, r, d)
	}
}

// gemini serves what lies under /v1beta.
func (s *server) serveGemini(w http.ResponseWriter, r *http.Request, path string) {
	d := generateContent{}
	_, method, ok := gemini.Target(r.URL.Path)
	switch {
	case ok && (method == "generateContent" || method == "streamGenerateContent"):
		s.generate(w, r, d)
	case ok && method == "countTokens":
		s.countTokens(w, r, d, func(n int) any { return map[string]int{"totalTokens": n} })
	case !ok && (path == "models" || strings.HasPrefix(path, "models/")):
		s.serveModels(w, r, d, strings.TrimPrefix(strings.TrimPrefix(path, "models"), "/"))
	default:
		s.notFound(w, r, d)
	}
}

func (s *server) notFound(w http.ResponseWriter, r *http.Request, d dialect) {
	s.newExchange(w, r, d).finish(&fault{status: http.StatusNotFound, message: "Invalid URL (" + r.Method + " " + artel.Shorten(r.URL.Path, 200) + ")"})
}

// spoken is the dialect of a request under /v1 whose path says nothing.
func dialectOf(r *http.Request) dialect {
	if r.Header.Get(anthropic.VersionHeader) != "" {
		return messages{}
	}
	return chat{}
}

// generate answers a request for an answer of a model.
func (s *server) generate(w http.ResponseWriter, r *http.Request, d dialect) {
	x := s.newExchange(w, r, d)
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		x.finish(notAllowed(r))
		return
	}
	x.finish(x.run())
}
