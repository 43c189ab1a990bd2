// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"path"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/health"
	"github.com/artelhq/artel/app/meter"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
)

// A Problem is an RFC 9457 error with a code for programs.
type Problem struct {
	Type   string       `json:"type"`
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Detail string       `json:"detail"`
	Code   string       `json:"code"`
	Errors []FieldError `json:"errors,omitempty" doc:"what is wrong with single fields"`

	Causes []health.Cause `json:"causes,omitempty" doc:"of /readyz: why the server is not ready"`

	Storage *app.StorageUse `json:"storage,omitempty" doc:"with the code storage_limit: what you store, and may store"`

	// Of a missing artifact, as in the results of tools.
	Missing string `json:"error,omitempty"`
	Ref     string `json:"ref,omitempty"`

	// Of a write for another version than the newest.
	Base    int             `json:"base,omitempty" doc:"the version that If-Match named"`
	Current *artel.Artifact `json:"current,omitempty" doc:"what is there now"`
	Merge   *Merge          `json:"merge,omitempty"`
}

// A FieldError is an error in one field of the body (a JSON pointer) or in one
// parameter.
type FieldError struct {
	Pointer   string `json:"pointer,omitempty"`
	Parameter string `json:"parameter,omitempty"`
	Detail    string `json:"detail"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return problemType }

const problemType = "application/problem+json"

// statuses maps kinds to HTTP statuses.
var statuses = map[artel.Kind]int{
	artel.Invalid:         http.StatusUnprocessableEntity,
	artel.NotFound:        http.StatusNotFound,
	artel.Conflict:        http.StatusConflict,
	artel.Denied:          http.StatusForbidden,
	artel.Unauthenticated: http.StatusUnauthorized,
	artel.TooLarge:        http.StatusRequestEntityTooLarge,
	artel.Unsupported:     http.StatusUnsupportedMediaType,
	artel.Unavailable:     http.StatusServiceUnavailable,
	artel.Canceled:        499, // the client has left
	artel.Internal:        http.StatusInternalServerError,
}

func newProblem(status int, code, detail string) *Problem {
	title := http.StatusText(status)
	if title == "" {
		title = "Client Closed Request"
	}
	return &Problem{Type: "about:blank", Title: title, Status: status, Code: code, Detail: detail}
}

// problem converts err for the client. Internal errors are logged under an id;
// the client gets only the id. What a revocation cut short is refused.
func (f *server) problem(ctx context.Context, err error) error {
	if refusal := access.Refusal(ctx); refusal != nil {
		err = refusal
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if s, ok := err.(huma.StatusError); ok {
		return s
	}
	if d, ok := errors.AsType[*access.Delay](err); ok {
		return huma.ErrorWithHeaders(newProblem(http.StatusTooManyRequests, access.CodeTooManyLogins, d.Error()), http.Header{"Retry-After": {d.Seconds()}})
	}
	if e, ok := errors.AsType[*meter.Exceeded](err); ok {
		seconds := strconv.Itoa(int((e.After + time.Second - 1) / time.Second))
		return huma.ErrorWithHeaders(newProblem(http.StatusTooManyRequests, e.Code, e.Error()), http.Header{"Retry-After": {seconds}})
	}
	if e, ok := errors.AsType[*artifact.Full](err); ok {
		return fullProblem(e)
	}
	kind, code := artel.KindOf(err), artel.CodeOf(err)
	if kind == artel.Internal {
		id := rand.Text()[:8]
		f.o.Log.ErrorContext(ctx, "a request failed", "error_id", id, "err", err)
		return newProblem(http.StatusInternalServerError, string(kind), "internal error "+id+"; the log says more")
	}
	p := newProblem(statuses[kind], code, err.Error())
	if flaws, ok := errors.AsType[agent.Flaws](err); ok {
		p.Errors = flawViews(flaws, "")
	}
	if flaws, ok := errors.AsType[model.Flaws](err); ok {
		for _, one := range flaws {
			p.Errors = append(p.Errors, FieldError{Pointer: "/" + strings.ReplaceAll(strings.NewReplacer("~", "~0", "/", "~1").Replace(one.Key), ".", "/"), Detail: one.String()})
		}
	}
	switch code {
	case run.CodeRunLimit:
		return newProblem(http.StatusTooManyRequests, code, err.Error())
	case form.CodeMalformed:
		p = newProblem(http.StatusBadRequest, code, err.Error())
	case app.CodeStale:
		p = staleProblem(err)
	case artifact.CodeMarkers:
		p.Detail += "; ?conflict_markers=keep saves it with them"
	case artel.CodeArtifactNotFound:
		p.Missing = code
		if e, ok := errors.AsType[*artel.Error](err); ok {
			p.Ref = e.Subject
		}
	}
	return p
}

// fullProblem says how much storage is left.
func fullProblem(e *artifact.Full) error {
	p := newProblem(http.StatusRequestEntityTooLarge, artifact.CodeStorage, e.Error())
	p.Storage = &app.StorageUse{Used: e.Used, Limit: e.Limit}
	if e.RetryAfter() == 0 {
		return p
	}
	if e.Reserved {
		p.Status, p.Title = http.StatusTooManyRequests, http.StatusText(http.StatusTooManyRequests)
	}
	return huma.ErrorWithHeaders(p, http.Header{"Retry-After": {strconv.Itoa(int(e.RetryAfter() / time.Second))}})
}

// toProblem converts the errors that huma makes itself.
func toProblem(_ huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	code := "invalid"
	switch m.Status {
	case http.StatusBadRequest:
		code = "malformed"
	case http.StatusRequestEntityTooLarge:
		code = string(artel.TooLarge)
	case http.StatusUnsupportedMediaType:
		code = string(artel.Unsupported)
	case http.StatusNotAcceptable:
		code = "not_acceptable"
	}
	p := newProblem(m.Status, code, m.Detail)
	for _, e := range m.Errors {
		p.Errors = append(p.Errors, fieldError(e))
	}
	switch {
	case len(p.Errors) == 0:
	case m.Status == http.StatusUnprocessableEntity:
		p.Detail = "the request does not fit the schema: " + p.Errors[0].where() + " " + p.Errors[0].Detail
	case m.Status == http.StatusBadRequest:
		p.Detail, p.Errors = "malformed JSON: "+p.Errors[0].Detail, nil
	default:
		p.Detail, p.Errors = p.Errors[0].Detail, nil
	}
	return p, nil
}

func (e FieldError) where() string {
	if e.Parameter != "" {
		return e.Parameter
	}
	return e.Pointer
}

// fieldError turns "body.items[3].name" into the pointer "/items/3/name".
func fieldError(e *huma.ErrorDetail) FieldError {
	where, rest, _ := strings.Cut(e.Location, ".")
	if where != "body" {
		if rest == "" {
			rest = where
		}
		return FieldError{Parameter: rest, Detail: artel.Shorten(e.Message, 300)}
	}
	// The error of a missing property points to where it would be.
	if missing, ok := strings.CutPrefix(e.Message, "expected required property "); ok {
		rest += "." + strings.TrimSuffix(missing, " to be present")
	}
	pointer := ""
	for name := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	if pointer == "" {
		pointer = "/"
	}
	return FieldError{Pointer: pointer, Detail: artel.Shorten(e.Message, 300)}
}

// problemResponse describes problems in the OpenAPI document.
func (f *server) problemResponse() *huma.Response {
	schema := f.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "Problem")
	return &huma.Response{Description: "Problem", Content: map[string]*huma.MediaType{problemType: {Schema: schema}}}
}

// problems answers unknown paths and methods with problems instead of the plain
// text of the mux.
func problems(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" && isClean(r.URL.EscapedPath()) {
			mux.ServeHTTP(w, r)
			return
		}
		probe := &routeProbe{header: http.Header{}}
		mux.ServeHTTP(probe, r)
		status, code, detail := http.StatusNotFound, "not_found", "there is nothing at this path"
		if probe.status == http.StatusMethodNotAllowed {
			status, code, detail = probe.status, "method_not_allowed", r.Method+" is not served here; there is: "+probe.header.Get("Allow")
			w.Header().Set("Allow", probe.header.Get("Allow"))
		}
		writeProblem(w, newProblem(status, code, detail))
	})
}

// isClean reports whether the mux would not redirect to another spelling of
// the path.
func isClean(p string) bool { return path.Clean(p) == p }

// A routeProbe records the response of the mux.
type routeProbe struct {
	header http.Header
	status int
}

func (p *routeProbe) Header() http.Header         { return p.header }
func (p *routeProbe) Write(b []byte) (int, error) { return len(b), nil }
func (p *routeProbe) WriteHeader(status int)      { p.status = status }

func writeProblem(w http.ResponseWriter, p *Problem) {
	w.Header().Set("Content-Type", problemType)
	w.Header().Set("Content-Length", strconv.Itoa(jsonSize(p)))
	w.WriteHeader(p.Status)
	_ = strictJSON.Marshal(w, p)
}

func jsonSize(v any) int {
	var n counter
	_ = strictJSON.Marshal(&n, v)
	return int(n)
}

type counter int

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }
