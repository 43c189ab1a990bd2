// SPDX-License-Identifier: Apache-2.0

// Package gateway serves the APIs of model providers, so that existing SDKs can
// call any service in their own dialect. It is plain net/http, because errors
// have the shape of each dialect.
//
// Begin with [New]. Every request is rewritten first: refs become the media they
// mean, base64 in the results of tools becomes media (results.go), which is put back
// into calls of the answer (restore.go), and results over a limit, if there is one,
// are stored and shown in part. Then it takes one of two paths:
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
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/toolindex"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
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
	Origins   Origins      // of other sites whose pages may call the gateway
	Unstored  bool         // responses are stored only if their requests say so

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
	DidResolve  = "resolved"   // a ref was replaced by its bytes
	DidFetch    = "fetched"    // an address was replaced by the bytes behind it
	DidCarry    = "carried"    // media of a tool's result were sent in a message after it
	DidMove     = "moved"      // a tool's result was moved to the others of its group
	DidSign     = "signed"     // a tool call got the signature back that its service had given it
	DidKeep     = "kept"       // a file was uploaded
	DidAddress  = "addressed"  // media were sent as an address of this server that the service fetches
	DidRemind   = "reminded"   // media were sent by the id under which the server had stored them
	DidRelabel  = "relabelled" // media were sent under the type of their bytes, not the declared one
	DidDrop     = "dropped"    // a field of the request did not reach the service
	DidCache    = "cached"     // a cache mark was added
	DidFallBack = "fell_back"  // another service was asked; Service is the one that did not answer
	DidDefer    = "deferred"   // tools were left out of a list, to be found by words; Field has their number
	DidName     = "named"      // media were sent by the id of a file that the service has
)

type server struct {
	backend *backend.Backend
	o       Options
	counts  *countLimiter
	buffers bufferPool
	readers readerPool
	// deferrals are what services get in place of tools.
	deferrals toolindex.Cache
	noUsage   sync.Map // the ids of services that refuse to be asked for the usage of a stream
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

// generate serves a request for an answer of a model.
func (s *server) generate(w http.ResponseWriter, r *http.Request, d provider.Editor) {
	x := s.newExchange(w, r, d)
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		x.finish(notAllowed(r))
		return
	}
	x.finish(x.run())
}
