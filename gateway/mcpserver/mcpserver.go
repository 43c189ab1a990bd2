// SPDX-License-Identifier: Apache-2.0

// Package mcpserver serves the artifacts of a user to hosts that speak the Model Context
// Protocol: the tools of GET /api/v1/tools, artifacts as resources, prompts and
// completion.
//
// Begin with [New], which returns the handler of [Path]. It speaks every version of the
// protocol that the SDK knows, as the client asks:
//
//   - Requests of 2026-07-28 and later, and of older clients that keep no session, are
//     answered each for itself.
//   - A client of an older version that begins with "initialize" gets a session
//     (session.go), which belongs to its owner.
//
// A handler finds who asks in the context of the HTTP request, also in a session
// (call.go): each request acts with its own token. Every tool call, read and change goes
// through the use cases of package app; this package knows no rows and no bytes of its own.
//
// What a model gets is small (result.go): a text of at most 4 KB with links to what it
// names. Only read_artifact answers with long text, page by page, and only get_artifact
// with pictures, scaled down for common limits.
package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app"
)

// Path is where the handler of [New] is served.
const Path = "/mcp"

// Serves reports whether r is for the handler of [New], or for a path below it.
func Serves(r *http.Request) bool {
	return r.URL.Path == Path || strings.HasPrefix(r.URL.Path, Path+"/")
}

// Options configure a server. The zero value is usable.
type Options struct {
	Version string       // of the program, for clients
	Log     *slog.Logger // nil: slog.Default

	// Progress is the time between two reports of progress of a call; 0: five seconds.
	Progress time.Duration
}

// A Handler serves [Path]. Close it after the last request.
type Handler struct {
	app     *app.App
	own     map[string]tool.Tool // of the product, by name
	options Options
	log     *slog.Logger
	base    context.Context // ends with Close
	end     context.CancelFunc

	alone     *server // answers requests without a session
	stateless *mcp.StreamableHTTPHandler
	stateful  *mcp.StreamableHTTPHandler

	calls sync.Map // of the HTTP requests at work: their call by its id

	mu       sync.Mutex // guards sessions
	sessions map[string]*session
}

// New returns a server of the artifacts of a.
func New(a *app.App, o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Progress == 0 {
		o.Progress = 5 * time.Second
	}
	h := &Handler{app: a, own: ownTools(), options: o, log: o.Log, sessions: map[string]*session{}}
	h.base, h.end = context.WithCancel(context.Background())
	h.alone = h.newServer("")
	// Host and Origin are checked for all faces before a request arrives here.
	common := mcp.StreamableHTTPOptions{DisableLocalhostProtection: true, MaxRequestBodyBytes: maxBody, Logger: slog.New(slog.DiscardHandler)}
	stateless := common
	stateless.Stateless, stateless.PropagateRequestCancellation = true, true
	h.stateless = mcp.NewStreamableHTTPHandler(serverOf, &stateless)
	h.stateful = mcp.NewStreamableHTTPHandler(serverOf, &common)
	return h
}

// maxBody is the most bytes of a request: the text of an artifact, escaped.
const maxBody = 64 << 20

type serverKey struct{}

// serverOf returns the server that [Handler.ServeHTTP] chose for a request.
func serverOf(r *http.Request) *mcp.Server {
	s, _ := r.Context().Value(serverKey{}).(*server)
	if s == nil {
		return nil
	}
	return s.mcp
}

func with(r *http.Request, s *server) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), serverKey{}, s))
}

// stateless20260728 is the first version of the protocol without sessions.
const stateless20260728 = "2026-07-28"

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != Path {
		writeError(w, http.StatusNotFound, "nothing is served at "+r.URL.Path+"; the MCP server of this deployment is at "+Path)
		return
	}
	r, end := h.begin(r)
	defer end()
	id := r.Header.Get("Mcp-Session-Id")
	switch {
	case r.Method == http.MethodPost && (id == "" || r.Header.Get("Mcp-Protocol-Version") >= stateless20260728):
		h.post(w, r)
	case r.Method == http.MethodPost || r.Method == http.MethodGet || r.Method == http.MethodDelete:
		h.inSession(w, r, id)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		writeError(w, http.StatusMethodNotAllowed, "use POST; see https://modelcontextprotocol.io/specification")
	}
}

// post serves a message without a session.
func (h *Handler) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		status, text := http.StatusBadRequest, "the body cannot be read"
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			status, text = http.StatusRequestEntityTooLarge, "a request has at most 64 MB; upload files with POST /api/v1/conversations/{id}/artifacts, or artel put"
		}
		writeError(w, status, text)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch method := methodOf(body); {
	case method == "initialize" && r.Header.Get("Mcp-Protocol-Version") < stateless20260728:
		h.openSession(w, r)
	case method == "subscriptions/listen":
		h.listen(w, r, body)
	default:
		h.alone.refresh(r.Context())
		h.stateless.ServeHTTP(w, with(r, h.alone))
	}
}

// methodOf returns the method of a single message; "" for what is none.
func methodOf(body []byte) string {
	var m struct {
		Method string `json:"method"`
	}
	_ = json.Unmarshal(body, &m) // what is no message is refused by the SDK
	return m.Method
}

// writeError answers with an error of JSON-RPC that belongs to no message.
func writeError(w http.ResponseWriter, status int, text string) {
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": codeRefused, "message": text}})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// codeRefused is the code of errors of this server that JSON-RPC has no code for.
const codeRefused = -32000

// WriteRefusal answers a request whose client may not make it.
func WriteRefusal(w http.ResponseWriter, status int, text string) { writeError(w, status, text) }
