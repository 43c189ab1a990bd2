// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
)

// A Responder answers a request. It has the contract of [model.Provider]'s
// Generate. Media of the request have the digest, type and size of the received
// bytes, which are in Options.Blobs if that is set.
type Responder func(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error]

// Options configure a server.
type Options struct {
	// Key is the required key; empty: any key, but requests must have one.
	Key string
	// Open accepts requests without a key.
	Open bool
	// Models are the ids that the server lists and accepts; none: it lists "fake-1"
	// and accepts any.
	Models []string
	// Responder makes the answers; nil: [Echo].
	Responder Responder
	// Blobs stores the bytes of media for the responder; nil: they are dropped.
	Blobs blob.Store
	// Behavior is the initial behavior.
	Behavior Behavior
	// Now is the clock; nil: [time.Now].
	Now func() time.Time
}

// keepRequests is how many of the newest requests are recorded.
const keepRequests = 100

// A Request is the record of one call of an endpoint that generates answers.
type Request struct {
	Time   time.Time       `json:"time"`
	Path   string          `json:"path"`
	Header http.Header     `json:"header,omitempty"` // without keys
	Status int             `json:"status"`           // of the response
	Error  string          `json:"error,omitempty"`  // the refusal
	Body   json.RawMessage `json:"body,omitempty"`   // with payloads replaced by digest and size; absent if it was not JSON
	Media  []Media         `json:"media,omitempty"`
	// Fetched are the media that the server fetched by URL.
	Fetched []Media `json:"fetched,omitempty"`
}

// Media is one payload of a request.
type Media struct {
	Digest artel.Digest `json:"digest"`
	Size   int64        `json:"size"` // bytes
}

// A Server is a fake of a model API. Beside the endpoints of its dialect it
// serves
//
//	GET  /_fake/requests     the recorded requests: a list of [Request], oldest first
//	POST /_fake/behave       sets the [Behavior] for later requests
//
// It is safe for concurrent use and has no goroutines of its own.
type Server struct {
	options Options
	dialect dialect
	mux     *http.ServeMux

	mu       sync.Mutex
	behavior Behavior
	requests []Request
	answers  int
	files    []*storedFile
	knownIDs map[string]bool // media ids of received media
	client   *http.Client    // fetches media by URL; nil: they are not fetched
}

// A dialect is the server's description of an API. The constructor adds its
// endpoints; those that generate answers are served by [Server.converse].
type dialect struct {
	// key is the key that a request carries; empty: none.
	key func(*http.Request) string
	// problem returns the API's error body of a failure. The message is for failures
	// without a text of the API's own.
	problem func(t failure, message string) *problem
	// models are the answers of GET /models, and of GET /models/{id} for each id.
	models func(ids []string) (list any, each map[string]any)
	// unfetched is the API's message for a URL that cannot be fetched; %s: the URL.
	unfetched string
	// oddities are the supported ones.
	oddities []Oddity
	// waits says that the body has the time to wait, not a header.
	waits bool
}

// A failure is a kind of error that occurs in any dialect.
type failure struct {
	status int
	what   string
}

// The failures for which APIs have their own texts. Others have only a status.
var (
	noKey       = failure{http.StatusUnauthorized, "no key"}
	wrongKey    = failure{http.StatusUnauthorized, "wrong key"}
	noModel     = failure{http.StatusNotFound, "no such model"}     // the message is its id
	noPath      = failure{http.StatusNotFound, "no such path"}      // the message is method and path
	rateLimited = failure{http.StatusTooManyRequests, "rate limit"} // the message is the seconds to wait; the behavior
	broken      = failure{http.StatusInternalServerError, "broken"} // the behavior
	overloaded  = failure{http.StatusServiceUnavailable, "overload"}
)

// A problem is a refusing response.
type problem struct {
	status  int
	message string // for the record
	body    []byte // JSON
	header  http.Header
}

// A call is a valid request to generate an answer.
type call struct {
	request *model.Request
	stream  bool
	// whole returns the answer in one piece, as JSON.
	whole func(iter.Seq2[model.Delta, error]) ([]byte, error)
	// write streams the answer, including an error of the deltas.
	write func(w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error
	// streamType is the media type of the streamed answer; empty: text/event-stream.
	streamType string
	// header has further headers of the answer.
	header http.Header
}

// newServer returns a server with only the endpoints under /_fake.
func newServer(o Options, d dialect) *Server {
	if o.Responder == nil {
		o.Responder = Echo
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{options: o, dialect: d, mux: http.NewServeMux(), behavior: o.Behavior}
	s.mux.HandleFunc("GET /_fake/requests", s.listRequests)
	s.mux.HandleFunc("POST /_fake/behave", s.behave)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, d.problem(noPath, r.Method+" "+r.URL.Path))
	})
	return s
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Requests returns the recorded requests, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Behave sets the behavior for later requests.
func (s *Server) Behave(b Behavior) error {
	if err := b.check(s.dialect); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behavior = b
	return nil
}

// now returns the behavior without counting a request.
func (s *Server) now() Behavior {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behavior
}

// take returns the behavior for one request and counts it.
func (s *Server) take() Behavior {
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

// begin starts the record of r.
func (s *Server) begin(r *http.Request) Request {
	header := r.Header.Clone()
	for _, secret := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Cookie"} {
		header.Del(secret)
	}
	return Request{Time: s.options.Now().UTC(), Path: r.URL.Path, Header: header, Status: http.StatusOK}
}

func (s *Server) record(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests = append(s.requests, r); len(s.requests) > keepRequests {
		s.requests = slices.Delete(s.requests, 0, len(s.requests)-keepRequests)
	}
}

// fail answers with p and records it.
func (s *Server) fail(w http.ResponseWriter, rec Request, p *problem) {
	rec.Status, rec.Error = p.status, p.message
	s.record(rec)
	refuse(w, p)
}

// admit answers with p, unless it is nil, or as the behavior wants; it reports
// whether the request is left to be answered. The request is recorded in any case.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, rec Request, p *problem) (Behavior, bool) {
	if p != nil {
		s.fail(w, rec, p)
		return Behavior{}, false
	}
	b := s.take()
	rec.Status = s.status(b)
	s.record(rec)
	return b, !s.before(b, w, r)
}

// nextID returns the id of the next answer.
func (s *Server) nextID(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers++
	return fmt.Sprintf("%sfake%06d", prefix, s.answers)
}

// authorize checks the key of r; nil: it is accepted.
func (s *Server) authorize(r *http.Request) *problem {
	key := s.dialect.key(r)
	switch {
	case key != "" && (s.options.Key == "" || key == s.options.Key), s.options.Open && s.options.Key == "":
		return nil
	case key == "":
		return s.dialect.problem(noKey, "")
	}
	return s.dialect.problem(wrongKey, "")
}

// hasModel checks whether the server answers for a model.
func (s *Server) hasModel(id string) *problem {
	if len(s.options.Models) > 0 && !slices.Contains(s.options.Models, id) {
		return s.dialect.problem(noModel, id)
	}
	return nil
}

// sink returns the destination of media; nil: they are hashed and dropped.
func (s *Server) sink() func(context.Context, io.Reader) (artel.Digest, int64, error) {
	if s.options.Blobs == nil {
		return nil
	}
	return func(ctx context.Context, r io.Reader) (artel.Digest, int64, error) {
		info, err := s.options.Blobs.Put(ctx, r, 0)
		return info.Digest, info.Size, err
	}
}

// converse serves an endpoint that generates answers. read checks the request after
// its key, and records its body and media.
func (s *Server) converse(read func(r *http.Request, rec *Request, b Behavior) (*call, *problem)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rec := s.begin(r)
		p := s.authorize(r)
		var c *call
		if p == nil {
			c, p = read(r, &rec, s.now())
		}
		if p != nil {
			s.fail(w, rec, p)
			return
		}
		if p := s.fetch(r.Context(), &rec); p != nil {
			s.fail(w, rec, p)
			return
		}
		b := s.take()
		if p := s.refuses(r.Context(), b, c.request); p != nil {
			s.fail(w, rec, p)
			return
		}
		distorted, tokens := s.distort(r.Context(), b, c.request)
		rec.Status = s.status(b)
		s.record(rec)
		if s.before(b, w, r) {
			return
		}
		deltas := s.alter(b, charge(s.options.Responder(r.Context(), distorted), tokens), c.stream)
		for name, values := range c.header {
			w.Header()[name] = values
		}
		if c.stream {
			s.stream(w, c, deltas)
			return
		}
		body, err := c.whole(deltas)
		if err != nil {
			refuse(w, s.dialect.problem(failure{status: http.StatusInternalServerError}, err.Error()))
			return
		}
		if b.Mode == HalfStream {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			body = body[:len(body)/2]
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // the client may have left
	}
}

func (s *Server) stream(w http.ResponseWriter, c *call, deltas iter.Seq2[model.Delta, error]) {
	w.Header().Set("Content-Type", cmp.Or(c.streamType, "text/event-stream; charset=utf-8"))
	w.Header().Set("Cache-Control", "no-cache")
	_ = c.write(w, http.NewResponseController(w).Flush, deltas) // the error is in the stream, or the client has left
}

// listing serves GET /models.
func (s *Server) listing(w http.ResponseWriter, r *http.Request) {
	if p := s.authorize(r); p != nil {
		refuse(w, p)
		return
	}
	list, _ := s.dialect.models(s.ids())
	s.reply(w, list)
}

// entry serves GET /models/{id}.
func (s *Server) entry(w http.ResponseWriter, r *http.Request) {
	if p := s.authorize(r); p != nil {
		refuse(w, p)
		return
	}
	_, each := s.dialect.models(s.ids())
	one, ok := each[r.PathValue("id")]
	if !ok {
		refuse(w, s.dialect.problem(noModel, r.PathValue("id")))
		return
	}
	s.reply(w, one)
}

func (s *Server) ids() []string {
	if len(s.options.Models) == 0 {
		return []string{"fake-1"}
	}
	return s.options.Models
}

func (s *Server) listRequests(w http.ResponseWriter, _ *http.Request) {
	list := s.Requests()
	if list == nil {
		list = []Request{}
	}
	s.reply(w, list)
}

func (s *Server) behave(w http.ResponseWriter, r *http.Request) {
	var b Behavior
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
	d.DisallowUnknownFields()
	err := d.Decode(&b)
	if err == nil {
		err = s.Behave(b)
	}
	if err != nil {
		refuse(w, s.dialect.problem(failure{status: http.StatusBadRequest}, err.Error()))
		return
	}
	s.reply(w, b)
}

// refuse writes p.
func refuse(w http.ResponseWriter, p *problem) {
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.status)
	_, _ = w.Write(p.body) // the client may have left
}

// reply writes v as JSON.
func (s *Server) reply(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		refuse(w, s.dialect.problem(failure{status: http.StatusInternalServerError}, err.Error()))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the client may have left
}
