// SPDX-License-Identifier: Apache-2.0

// Package gateway serves the APIs of model providers, so that existing SDKs can
// call any service in their own dialect. It is plain net/http, because errors
// have the shape of each dialect.
//
// Begin with [New]. Every request is rewritten first: refs become the media they
// mean, base64 in the results of tools becomes media, and results that are too
// long are stored and shown in part. Then it takes one of two paths:
//
//   - If client and service speak the same dialect, the request is forwarded
//     (forward.go): its JSON text is edited only where a rule demands it; all
//     other bytes, unknown fields included, are unchanged, as is the response.
//   - Otherwise it is translated (translate.go): decoded, called as runs call
//     models, and answered in the client's dialect.
//
// Both paths give media the form that the service takes, retry a busy service,
// retry with less if the service refuses the media, and go to the fallbacks of a
// service that is not available.
//
// Invariants: the same request gives the same bytes to the service; memory does
// not grow with media; a response that breaks off ends with the dialect's error,
// never as if it were complete. An [Entry] of the log names media by ref and holds
// no content.
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

// Options configure a gateway.
type Options struct {
	// Forwarders send requests without decoding them. Requests in a dialect
	// without a forwarder are always translated.
	Forwarders map[model.Dialect]provider.Forwarder
	// OnRequest is called after every request, with its context, by many
	// goroutines at once. It must not block. May be nil.
	OnRequest func(context.Context, Entry)
	Log       *slog.Logger // nil: slog.Default

	Backend backend.Options
}

// The types of the log.
type (
	// An Entry describes one request.
	Entry = gatewaylog.GatewayEntry
	// A Change describes what was done to one part of a request, and why.
	Change = gatewaylog.GatewayChange
)

// Values of Change.Did, beside the steps of routing and [backend.Action].
const (
	DidResolve = "resolved"  // a ref was replaced by its bytes
	DidFetch   = "fetched"   // an address was replaced by the bytes behind it
	DidCarry   = "carried"   // media of a tool's result were sent in a message after it
	DidMove    = "moved"     // a tool's result was moved to the others of its group
	DidKeep    = "kept"      // a file was uploaded
	DidAddress = "addressed" // media were sent as an address of this server that the service fetches
	DidRemind  = "reminded"  // media were sent by the id under which the server had stored them
	DidName    = "named"     // media were sent by the id of a file that the service has
)

type server struct {
	backend *backend.Backend
	o       Options
	counts  *countLimiter
	buffers bufferPool
}

// New returns the handler of the endpoints of all dialects, under /v1/ and
// /v1beta/.
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

// serveGemini serves the paths under /v1beta.
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

// dialectOf returns the dialect of a request under /v1 whose path does not tell
// it.
func dialectOf(r *http.Request) dialect {
	if r.Header.Get(anthropic.VersionHeader) != "" {
		return messages{}
	}
	return chat{}
}

// generate serves a request for an answer of a model.
func (s *server) generate(w http.ResponseWriter, r *http.Request, d dialect) {
	x := s.newExchange(w, r, d)
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		x.finish(notAllowed(r))
		return
	}
	x.finish(x.run())
}
