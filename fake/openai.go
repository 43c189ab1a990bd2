// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/provider/openai"
)

// A Responder answers a request. It has the form of [model.Provider]'s
// Generate, and the same promises. Media of the request have the digest, type
// and size of what was sent; their bytes are in Options.Blobs, if anywhere.
type Responder func(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error]

// Options are what a fake server works with.
type Options struct {
	// Key is the bearer token that requests must carry; empty: any token, but
	// one must be there.
	Key string
	// Open lets requests without a token in.
	Open bool
	// Models are the ids that the server lists and answers for; none: "fake-1",
	// and any other is answered for too.
	Models []string
	// Responder makes the answers; nil: [Echo].
	Responder Responder
	// Blobs keeps the bytes of media, so that the responder can open them; nil:
	// they are dropped.
	Blobs blob.Store
	// Behavior is how the server behaves at first; zero: well.
	Behavior Behavior
	// Now is the clock; nil: [time.Now].
	Now func() time.Time
}

// keepRequests is how many requests are recorded: the newest.
const keepRequests = 100

// A Request is one recorded call of an endpoint that models answer.
type Request struct {
	Time   time.Time       `json:"time"`
	Status int             `json:"status"`          // of the answer's head
	Error  string          `json:"error,omitempty"` // what the answer refused
	Body   json.RawMessage `json:"body,omitempty"`  // with payloads replaced by digest and size; absent if it was no JSON
	Media  []Media         `json:"media,omitempty"`
}

// Media is one payload of a request.
type Media struct {
	Digest artel.Digest `json:"digest"`
	Size   int64        `json:"size"` // bytes
}

// An OpenAIServer is a fake of the Chat Completions API. It serves
//
//	POST /v1/chat/completions
//	POST /v1/audio/transcriptions, which hears [Transcript] in every recording
//	GET  /v1/models, /v1/models/{id}
//	GET  /_fake/requests     what was asked: a list of [Request], oldest first
//	POST /_fake/behave       a [Behavior], which holds from now on
//
// and the first four without /v1 too, and under /v1beta/openai, where Google
// has them. It is safe for concurrent use and has no goroutines of its own.
type OpenAIServer struct {
	options Options
	mux     *http.ServeMux

	mu       sync.Mutex
	behavior Behavior
	requests []Request
	answers  int
}

// OpenAI returns a server.
func OpenAI(o Options) *OpenAIServer {
	if o.Responder == nil {
		o.Responder = Echo
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &OpenAIServer{options: o, mux: http.NewServeMux(), behavior: o.Behavior}
	for _, base := range []string{"/v1", "", "/v1beta/openai"} {
		s.mux.HandleFunc("POST "+base+"/chat/completions", s.completions)
		s.mux.HandleFunc("POST "+base+"/audio/transcriptions", s.transcriptions)
		s.mux.HandleFunc("GET "+base+"/models", s.models)
		s.mux.HandleFunc("GET "+base+"/models/{id...}", s.model)
	}
	s.mux.HandleFunc("GET /_fake/requests", s.listRequests)
	s.mux.HandleFunc("POST /_fake/behave", s.behave)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		e := openai.Bad("", "", "Invalid URL (%s %s)", r.Method, r.URL.Path)
		e.Status = http.StatusNotFound
		refuse(w, e)
	})
	return s
}

// ServeHTTP implements [http.Handler].
func (s *OpenAIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Requests returns what was asked, oldest first.
func (s *OpenAIServer) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Behave changes how the server behaves from the next request on.
func (s *OpenAIServer) Behave(b Behavior) error {
	if err := b.check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behavior = b
	return nil
}

// now returns the behavior without counting a request.
func (s *OpenAIServer) now() Behavior {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behavior
}

// take returns the behavior for one request and counts it.
func (s *OpenAIServer) take() Behavior {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.behavior
	if b.Times > 0 {
		if s.behavior.Times--; s.behavior.Times == 0 {
			s.behavior = Behavior{}
		}
	}
	return b
}

func (s *OpenAIServer) record(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests = append(s.requests, r); len(s.requests) > keepRequests {
		s.requests = slices.Delete(s.requests, 0, len(s.requests)-keepRequests)
	}
}

func (s *OpenAIServer) completions(w http.ResponseWriter, r *http.Request) {
	rec := Request{Time: s.options.Now().UTC(), Status: http.StatusOK}
	req, err := s.accept(r, &rec)
	if err != nil {
		rec.Status, rec.Error = err.Status, err.Message
		s.record(rec)
		refuse(w, err)
		return
	}
	b := s.take()
	neutral := req.Neutral()
	if err := s.refuses(r.Context(), b, neutral); err != nil {
		rec.Status, rec.Error = err.Status, err.Message
		s.record(rec)
		refuse(w, err)
		return
	}
	if b.Blind || b.ToolMedia == ToolMediaLost {
		neutral = blind(neutral, b.Blind)
	}
	rec.Status = b.status()
	s.record(rec)
	if b.before(w, r) {
		return
	}
	a := openai.Answer{
		ID: s.nextID(), Model: req.Model, Created: s.options.Now(),
		IncludeUsage: req.StreamOptions != nil && req.StreamOptions.IncludeUsage,
	}
	deltas := s.options.Responder(r.Context(), neutral)
	w.Header().Set("X-Request-Id", "req_"+a.ID)
	if req.Stream {
		s.stream(w, a, b, deltas)
		return
	}
	resp, failure := a.Whole(deltas)
	if failure != nil {
		refuse(w, serverError(failure.Error()))
		return
	}
	body, failure := json.Marshal(resp)
	if failure != nil {
		refuse(w, serverError(failure.Error()))
		return
	}
	if b.Mode == HalfStream {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		body = body[:len(body)/2]
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // a client that has gone is no concern
}

func (s *OpenAIServer) stream(w http.ResponseWriter, a openai.Answer, b Behavior, deltas iter.Seq2[model.Delta, error]) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	rc := http.NewResponseController(w)
	if b.Mode == HalfStream {
		deltas = firstHalf(deltas)
	}
	_ = a.Stream(w, rc.Flush, deltas) // an error has been written to the stream, or nobody reads it
	if b.Mode == HalfStream {
		_ = rc.Flush()
		panic(http.ErrAbortHandler) // net/http's way to break a connection off
	}
}

// accept reads and checks a request.
func (s *OpenAIServer) accept(r *http.Request, rec *Request) (*openai.Request, *openai.APIError) {
	if err := s.authorize(r); err != nil {
		return nil, err
	}
	req, err := openai.Decode(r.Context(), r.Body, s.decoding())
	if err != nil {
		if e, ok := errors.AsType[*openai.APIError](err); ok {
			return nil, e
		}
		return nil, openai.Bad("", "", "The body could not be read: %v", err)
	}
	rec.Body = req.Elided()
	for _, m := range req.Payloads() {
		rec.Media = append(rec.Media, Media{Digest: m.Digest, Size: m.Size})
	}
	if err := req.ValidateBy(openai.Rules{ToolMedia: s.now().ToolMedia != ToolMediaRefused}); err != nil {
		if e, ok := errors.AsType[*openai.APIError](err); ok {
			return nil, e
		}
		return nil, openai.Bad("", "", "%v", err)
	}
	if len(s.options.Models) > 0 && !slices.Contains(s.options.Models, req.Model) {
		return nil, noModel(req.Model)
	}
	return req, nil
}

// decoding says where the media of a request go.
func (s *OpenAIServer) decoding() openai.DecodeOptions {
	if s.options.Blobs == nil {
		return openai.DecodeOptions{}
	}
	return openai.DecodeOptions{Sink: func(ctx context.Context, r io.Reader) (artel.Digest, int64, error) {
		info, err := s.options.Blobs.Put(ctx, r, 0)
		return info.Digest, info.Size, err
	}}
}

func (s *OpenAIServer) authorize(r *http.Request) *openai.APIError {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if ok && token != "" && (s.options.Key == "" || token == s.options.Key) || s.options.Open && s.options.Key == "" {
		return nil
	}
	if token == "" {
		e := openai.Bad("", "", "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).")
		e.Status = http.StatusUnauthorized
		return e
	}
	e := openai.Bad("", "invalid_api_key", "Incorrect API key provided.")
	e.Status = http.StatusUnauthorized
	return e
}

func (s *OpenAIServer) nextID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers++
	return fmt.Sprintf("chatcmpl-fake%06d", s.answers)
}

// modelEntry is an element of GET /v1/models. OpenAI does not say what a model
// takes; this says it as OpenRouter does, so that clients who ask learn it.
type modelEntry struct {
	ID           string       `json:"id"`
	Object       string       `json:"object"`
	Created      int64        `json:"created"`
	OwnedBy      string       `json:"owned_by"`
	Architecture architecture `json:"architecture"`
}

type architecture struct {
	Input  []string `json:"input_modalities"`
	Output []string `json:"output_modalities"`
}

func (s *OpenAIServer) list() []modelEntry {
	ids := s.options.Models
	if len(ids) == 0 {
		ids = []string{"fake-1"}
	}
	var out []modelEntry
	takes := architecture{Input: []string{"text", "image", "file"}, Output: []string{"text"}}
	for _, id := range ids {
		out = append(out, modelEntry{ID: id, Object: "model", Created: 1700000000, OwnedBy: "artel-fake", Architecture: takes})
	}
	return out
}

func (s *OpenAIServer) models(w http.ResponseWriter, r *http.Request) {
	if err := s.authorize(r); err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusOK, map[string]any{"object": "list", "data": s.list()})
}

func (s *OpenAIServer) model(w http.ResponseWriter, r *http.Request) {
	if err := s.authorize(r); err != nil {
		refuse(w, err)
		return
	}
	for _, m := range s.list() {
		if m.ID == r.PathValue("id") {
			reply(w, http.StatusOK, m)
			return
		}
	}
	refuse(w, noModel(r.PathValue("id")))
}

func noModel(id string) *openai.APIError {
	e := openai.Bad("model", "model_not_found", "The model `%s` does not exist or you do not have access to it.", artel.Shorten(id, 200))
	e.Status = http.StatusNotFound
	return e
}

func (s *OpenAIServer) listRequests(w http.ResponseWriter, _ *http.Request) {
	list := s.Requests()
	if list == nil {
		list = []Request{}
	}
	reply(w, http.StatusOK, list)
}

func (s *OpenAIServer) behave(w http.ResponseWriter, r *http.Request) {
	var b Behavior
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
	d.DisallowUnknownFields()
	err := d.Decode(&b)
	if err == nil {
		err = s.Behave(b)
	}
	if err != nil {
		refuse(w, openai.Bad("", "", "%v", err))
		return
	}
	reply(w, http.StatusOK, b)
}

func serverError(message string) *openai.APIError {
	return &openai.APIError{Status: http.StatusInternalServerError, Message: message, Type: "server_error"}
}

func refuse(w http.ResponseWriter, e *openai.APIError) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_, _ = w.Write(e.MarshalBody()) // a client that has gone is no concern
}

func reply(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		refuse(w, serverError(err.Error()))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone is no concern
}
