// SPDX-License-Identifier: Apache-2.0

// Package httpapi serves the JSON API and server-sent events under /api/v1,
// described by an OpenAPI 3.1 document at /api/v1/openapi.json.
//
// [New] returns the handler, [Guard] refuses requests of foreign web pages, and
// [Client] calls the API with the same types. A handler decodes the request,
// calls package app once and encodes the result; it decides nothing.
//
// Bodies are JSON in UTF-8 with snake_case names; unknown fields are refused.
// Errors are RFC 9457 problem details ([Problem]). Lists are
// {"items": […], "next_cursor"?}. What is missing and what belongs to another
// owner are both 404. A POST that creates something honours Idempotency-Key.
//
// Events are a stream as the WHATWG specifies it: "id" is the number in the
// conversation's log, "event" the type, "data" one line of JSON; frames without
// id are live only. A client that reconnects with Last-Event-ID misses nothing.
package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/health"
)

// Options configure the handler; all are optional.
type Options struct {
	Version   string        // shown in the OpenAPI document; "": "dev"
	Heartbeat time.Duration // of silence on an event stream before a comment is sent; 0: 15 s
	Log       *slog.Logger  // nil: slog.Default
	// Ready returns why the server is not ready; empty if it is. nil: it always is.
	Ready func(context.Context) []health.Cause
	// ContentHost is where files are shown; "": on the same host.
	ContentHost ContentHost
}

// Base is the path prefix of everything but the health check.
const Base = "/api/v1"

// DocsPath is the path of the reference, which the page renders from the OpenAPI
// document.
const DocsPath = Base + "/docs"

// New returns a handler for [Base], for /healthz, which answers as long as the
// process lives, and for /readyz, which says why the server cannot do its work. The operations and their
// schemas are made for the first request below Base, since they take longer than
// the rest of the start of a server.
func New(a *app.App, o Options) http.Handler {
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	state := http.NewServeMux()
	state.HandleFunc("GET /readyz", readiness(o.Ready))
	state.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"ok"}`+"\n")
	})
	states := problems(state)
	operations := sync.OnceValue(func() http.Handler { return problems(newServer(a, o).mux) })
	return Inert(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
			states.ServeHTTP(w, r)
			return
		}
		operations().ServeHTTP(w, r)
	}))
}

// newServer registers all operations of the API.
func newServer(a *app.App, o Options) *server {
	mux := http.NewServeMux()
	f := &server{app: a, api: humago.New(mux, config(o.Version)), mux: mux, o: o}
	f.api.UseMiddleware(knownQuery)
	f.conversations()
	f.runs()
	f.control()
	f.tree()
	f.summaries()
	f.replays()
	f.events()
	f.artifacts()
	f.exports()
	f.imports()
	f.files()
	f.storage()
	f.tools()
	f.toolResults()
	f.apps()
	f.models()
	f.storedServices()
	f.toolEntries()
	f.mcpAccounts()
	f.library()
	f.agents()
	f.books()
	f.skills()
	f.mechanisms()
	f.pipeline()
	f.settings()
	f.contexts()
	f.plugins()
	f.tokens()
	f.people()
	f.rules()
	f.gateway()
	f.gatewayKeys()
	f.webhooks()
	f.schedules()
	f.usage()
	f.audit()
	addExamples(f.api.OpenAPI())
	return f
}

// A server has what the handlers share.
type server struct {
	app *app.App
	api huma.API
	mux *http.ServeMux
	o   Options

	frames frameCache
}

func config(version string) huma.Config {
	c := huma.DefaultConfig("Artel", version)
	c.Info.Description = "Artifacts, conversations and routed content for agents."
	c.OpenAPIPath = Base + "/openapi"
	c.DocsPath, c.SchemasPath = "", ""
	c.CreateHooks = nil // no $schema fields in answers
	c.Formats = map[string]huma.Format{"application/json": strictJSON, "json": strictJSON}
	c.Transformers = []huma.Transformer{toProblem}
	return c
}

// Limits of JSON bodies, in bytes. Package app limits the texts in them.
const (
	smallBody = 4 << 20
	textBody  = 64 << 20 // 20 MB of text, escaped
)

// op describes an operation. Bodies have no read timeout (the server limits
// slow headers), and errors are problems.
func (f *server) op(method, path, id, summary string, status int, changes ...func(*huma.Operation)) huma.Operation {
	o := huma.Operation{
		Method: method, Path: Base + path, OperationID: id, Summary: summary, DefaultStatus: status,
		MaxBodyBytes: smallBody, BodyReadTimeout: -1,
		Responses: map[string]*huma.Response{"default": f.problemResponse()},
	}
	for _, change := range changes {
		change(&o)
	}
	return o
}

func maxBody(n int64) func(*huma.Operation) {
	return func(o *huma.Operation) { o.MaxBodyBytes = n }
}

// strictJSON refuses what encoding/json would silently repair: bytes that are
// not UTF-8, and escapes of lone surrogates.
var strictJSON = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	},
	Unmarshal: func(data []byte, v any) error {
		if !utf8.Valid(data) {
			return errors.New("the body is not UTF-8")
		}
		if loneSurrogate(data) {
			return errors.New(`the body holds a lone surrogate (\ud800 to \udfff without its other half)`)
		}
		return json.Unmarshal(data, v)
	},
}

// loneSurrogate reports whether data has a \u escape of half a surrogate pair.
// Escapes outside strings are left to the parser.
func loneSurrogate(data []byte) bool {
	for i := 0; i+5 < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		if data[i+1] != 'u' {
			i++
			continue
		}
		switch r := hex4(data[i+2:]); {
		case r >= 0xdc00 && r <= 0xdfff:
			return true
		case r >= 0xd800 && r <= 0xdbff:
			if i+11 >= len(data) || data[i+6] != '\\' || data[i+7] != 'u' {
				return true
			}
			if low := hex4(data[i+8:]); low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 11
		default:
			i += 5
		}
	}
	return false
}

func hex4(b []byte) int {
	n := 0
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | int(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			n = n<<4 | int(c|0x20-'a'+10)
		default:
			return -1
		}
	}
	return n
}

// A List is a page of a list.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next_cursor,omitempty" doc:"ask again with ?cursor= this for the next page"`
}

// listOf returns a page; its items are never null.
func listOf[T any](items []T, next string) List[T] {
	if items == nil {
		items = []T{}
	}
	return List[T]{items, next}
}

type body[T any] struct{ Body T }

func answer[T any](v T, err error) (*body[T], error) {
	if err != nil {
		return nil, err
	}
	return &body[T]{v}, nil
}

// answerFor parses an id and answers with what do returns for it.
func answerFor[K, T any](ctx context.Context, parse func() (K, error), do func(context.Context, K) (T, error)) (*body[T], error) {
	id, err := parse()
	if err != nil {
		return nil, err
	}
	return answer(do(ctx, id))
}

// listFor is answerFor for a list without pages.
func listFor[K, T any](ctx context.Context, parse func() (K, error), do func(context.Context, K) ([]T, error)) (*body[List[T]], error) {
	id, err := parse()
	if err != nil {
		return nil, err
	}
	items, err := do(ctx, id)
	return answer(listOf(items, ""), err)
}

// A RawRequest gives a handler the body as a stream.
type RawRequest struct{ request *http.Request }

// Resolve implements huma.Resolver.
func (in *RawRequest) Resolve(ctx huma.Context) []error {
	in.request, _ = humago.Unwrap(ctx)
	return nil
}

// describeBody documents the body of a registered operation. huma reads a body
// that is documented earlier before it calls the handler.
func (f *server) describeBody(op huma.Operation, content map[string]*huma.MediaType) {
	path := f.api.OpenAPI().Paths[op.Path]
	documented := path.Post
	if op.Method == http.MethodPut {
		documented = path.Put
	}
	documented.RequestBody = &huma.RequestBody{Required: true, Content: content}
}

// sendText writes a text in the place of JSON.
func sendText(hc huma.Context, mediaType, text string) {
	hc.SetHeader("Content-Type", mediaType+"; charset=utf-8")
	_, err := hc.BodyWriter().Write([]byte(text))
	abortOn(err)
}

// sendJSON writes v.
func sendJSON(hc huma.Context, v any) {
	hc.SetHeader("Content-Type", "application/json")
	abortOn(strictJSON.Marshal(hc.BodyWriter(), v))
}

type none struct{}

// A PageQuery asks for a page of a list.
type PageQuery struct {
	Cursor string `query:"cursor" maxLength:"512"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

// register is huma.Register with errors converted to problems.
func register[I, O any](f *server, op huma.Operation, handler func(context.Context, *I) (*O, error)) {
	huma.Register(f.api, op, func(ctx context.Context, in *I) (out *O, err error) {
		defer func() {
			if p := recover(); p != nil {
				out, err = nil, f.problem(ctx, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		if out, err = handler(ctx, in); err != nil {
			return nil, f.problem(ctx, err)
		}
		return out, nil
	})
}
