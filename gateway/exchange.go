// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/meter"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/internal/peer"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// An exchange is one request and its response.
type exchange struct {
	gw    *server
	w     *clientWriter
	r     *http.Request
	body  *clientBody // of r
	d     provider.Editor
	began time.Time
	entry Entry

	key          backend.Key
	service      *model.Service // that was asked last; nil: none
	request      *backend.Request
	extraction   *provider.Extraction
	text         string // the request's JSON, rewritten
	head         provider.Head
	headText     string           // the text that head was read from
	layout       *provider.Layout // of layoutText; nil: not scanned yet
	layoutText   string
	call         provider.ServerCall  // the decoded request; nil: not decoded
	fetched      bool                 // addresses in the request were replaced by their bytes
	list         *listWriter          // of a stream that is a JSON list; nil: events
	aborted      bool                 // the response cannot be completed
	lastTry      bool                 // no other service behind the same alias is left to ask
	lastFilter   bool                 // no other service is left to ask if a content filter refuses
	stopNoted    bool                 // it was logged that a content filter stopped the answer
	charged      func(model.Spent)    // ends the charge of the last call; nil: there is none
	paid         model.PaidCall       // of charged
	started      bool                 // that call is answered
	conversation artel.ConversationID // that stores the request; "": none does
	keep         *storedRequest       // its answer is stored when it is complete; nil: it is not
	hidesUsage   bool                 // the service was asked for its usage, and the client did not ask

	namedMu sync.Mutex
	named   []Change // media of the last call that were sent by name
	dropped []Change // fields that did not reach a service
}

func (s *server) newExchange(w http.ResponseWriter, r *http.Request, d provider.Editor) *exchange {
	now := time.Now()
	rc := http.NewResponseController(w)
	x := &exchange{
		gw: s, d: d, began: now, entry: Entry{Time: now.UTC(), Inbound: d.Dialect(), Endpoint: r.URL.Path, Status: http.StatusOK},
		w:    &clientWriter{ResponseWriter: w, rc: rc},
		r:    r,
		body: &clientBody{ReadCloser: r.Body, rc: rc},
	}
	x.r.Body = x.body
	return x
}

// finish sends err to the client, unless the answer has begun, and logs the
// request.
func (x *exchange) finish(err error) {
	x.w.stop()
	if err != nil && x.body.late {
		err = slowClient() // whatever its reader has made of it
	}
	if err != nil {
		refusal := access.Refusal(x.r.Context())
		if refusal != nil {
			err = refusal
		}
		f := faultOf(err)
		if refusal == nil && clientLeft(x.r.Context()) && !x.body.late {
			f.Status = statusClientGone
		}
		x.entry.Status, x.entry.Error = f.Status, artel.Shorten(f.Message, 500)
		if artel.KindOf(err) == artel.Internal && f.Status == http.StatusInternalServerError {
			x.gw.o.Log.ErrorContext(x.r.Context(), "a request of the gateway failed", "endpoint", x.entry.Endpoint, "service", x.entry.Service, "err", err)
		}
		if f.Status != statusClientGone && !x.w.hasSent() {
			x.fail(f)
		}
	}
	if x.list != nil {
		x.list.end()
	}
	x.entry.BytesOut = x.w.count()
	x.namedMu.Lock()
	x.entry.Changes = append(append(x.entry.Changes, x.named...), x.dropped...)
	x.namedMu.Unlock()
	if model.Reported(x.entry.Usage) {
		x.entry.Usage.Cost = x.service.Cost(x.entry.Usage)
	}
	x.entry.Millis = float64(time.Since(x.began).Microseconds()) / 1000
	x.gw.o.OnRequest(x.r.Context(), x.entry)
	if x.aborted {
		panic(http.ErrAbortHandler) // an incomplete response must not look complete
	}
}

// fail writes an error response, or the error of a stream that has begun with
// keep-alives. The error response of a service of the same dialect is passed on.
func (x *exchange) fail(f *provider.Fault) {
	if x.w.begun() {
		x.writeErrorEvent(f, nil, nil)
		return
	}
	body := x.d.ErrorBody(*f)
	var header http.Header
	if c := f.Call; c != nil && c.Dialect == x.d.Dialect() {
		header = c.Header
		if c.Status == f.Status && x.d.IsError(c.Body) {
			body = c.Body
		}
	}
	x.w.begin(f.Status, func(h http.Header) {
		maps.Copy(h, header)
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(body)))
		if f.RetryAfter > 0 && h.Get("Retry-After") == "" {
			h.Set("Retry-After", strconv.Itoa(int((f.RetryAfter+time.Second-1)/time.Second)))
		}
	})
	_, _ = x.w.Write(body) // the client may have left
}

// Secret returns the client's key from the header or parameter of any dialect.
func Secret(r *http.Request) string {
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key"} {
		if key := r.Header.Get(name); key != "" {
			return key
		}
	}
	return r.URL.Query().Get("key")
}

// admit checks the client's key and its limits.
func (x *exchange) admit() (leave func(), err error) {
	x.key, leave, err = x.gw.backend.Admit(x.r.Context(), Secret(x.r))
	x.entry.Key = x.key.Name
	if err == nil {
		x.r = x.r.WithContext(meter.With(x.r.Context(), meter.Client{ID: x.key.ID, Name: x.key.Name, Limits: x.key.Limits}))
	}
	return leave, err
}

// run answers a request for generation.
func (x *exchange) run() error {
	leave, err := x.admit()
	if err != nil {
		return err
	}
	defer leave()
	ctx := x.r.Context()
	if err := x.readRequest(ctx); err != nil {
		return err
	}
	targets, err := x.findTargets(ctx)
	if err != nil {
		return err
	}
	if x.runs() {
		if err := x.rewrite(ctx); err != nil {
			return err
		}
		return x.askStored(ctx, targets[0])
	}
	if x.keeps(targets[0]) {
		if err := x.beginKeeping(ctx); err != nil {
			return err
		}
	}
	if x.head.Stream {
		x.startKeepAlive()
		ctx = x.r.Context()
	}
	if x.keep == nil {
		if err := x.rewrite(ctx); err != nil {
			return err
		}
	}
	return x.askTargets(ctx, targets, x.askService)
}

// readRequest reads the request, moves its media into the blob store, and reads
// its head.
func (x *exchange) readRequest(ctx context.Context) error {
	x.request = x.gw.backend.NewRequest(ctx, x.key)
	x.request.Beginning = x.beginning
	x.request.Origin = peer.Of(x.r).URL()
	if err := x.readRewriting(); err != nil {
		return err
	}
	decoded, err := x.decodeBody()
	if err != nil {
		return err
	}
	defer decoded()
	var body io.Reader = x.r.Body
	if n := x.r.ContentLength; n > 0 && n < bufferSize {
		pooled := x.gw.readers.get(body)
		defer x.gw.readers.put(pooled) // extraction copies
		body = pooled
	}
	l, err := provider.Extract(ctx, body, x.d.Payloads, provider.DecodeOptions{Sink: x.request.Store, Size: max(0, x.r.ContentLength)})
	if err != nil {
		return unread(err)
	}
	x.extraction = l
	x.text = string(l.JSON())
	x.entry.BytesIn = int64(len(x.text))
	h, ok := provider.Head{}, gjson.Valid(x.text)
	if ok {
		h, ok = provider.ReadHead(x.text)
	}
	if from, said := x.d.Target(x.r); said {
		h = from
	}
	if !ok {
		return provider.InvalidRequest("We could not parse the JSON body of your request. The API expects a JSON payload, but what was sent was not valid JSON.")
	}
	for _, m := range l.Payloads() {
		if m.Bad {
			return provider.InvalidRequest("Invalid base64 in the request: a payload could not be decoded.")
		}
	}
	for _, m := range h.Models {
		if len(h.Models) > 1 && provider.TextAt(x.text, m) != h.Model {
			return provider.InvalidRequest("The request names more than one model.")
		}
	}
	if h.Model == "" {
		f := provider.InvalidRequest("you must provide a model parameter")
		f.Param = "model"
		return f
	}
	x.head, x.headText = h, x.text
	x.entry.Model, x.entry.Stream = artel.Shorten(h.Model, 200), h.Stream
	return nil
}

// unread returns the error of a body that cannot be read.
func unread(err error) error {
	if f, ok := errors.AsType[*provider.Fault](err); ok {
		return f
	}
	if _, ok := errors.AsType[*artel.Error](err); ok {
		return err
	}
	return provider.InvalidRequest("The body of the request could not be read: %v", err)
}

// setService notes which service is asked.
func (x *exchange) setService(s *model.Service) {
	x.service, x.entry.Service, x.entry.Outbound = s, s.ID, s.Dialect
}

// askService calls one service, by forwarding or by translating.
func (x *exchange) askService(ctx context.Context, s *model.Service) error {
	x.setService(s)
	var again model.RefusalPolicy
	refused := map[artel.Digest]bool{}
	d, err := x.deferral(ctx, s)
	if err != nil {
		return err
	}
	if f := x.gw.o.Forwarders[s.Dialect]; f != nil && s.Dialect == x.d.Dialect() && d == nil && x.keep == nil {
		return x.retryWithLess(ctx, s, &again, refused, func(s *model.Service) (prepared, error) { return x.prepareForward(ctx, f, s, refused) })
	}
	return x.retryWithLess(ctx, s, &again, refused, func(s *model.Service) (prepared, error) { return x.prepareTranslation(ctx, s, refused, d) })
}

// A prepared request can be sent.
type prepared struct {
	request *model.Request // has at least the media
	changes []Change
	send    func() error
}

// retryWithLess prepares and sends a request. If the service refuses its media, it
// lowers what the refusal names and sends again; see [model.RefusalPolicy].
func (x *exchange) retryWithLess(ctx context.Context, s *model.Service, again *model.RefusalPolicy, refused map[artel.Digest]bool, prepare func(*model.Service) (prepared, error)) error {
	before := -1
	for {
		p, err := prepare(s)
		if err != nil {
			return err
		}
		if before < 0 {
			before = len(x.entry.Changes)
		}
		if !again.Changes(p.request) {
			for _, d := range again.DescribeAll(p.request) {
				refused[d] = true
			}
			if p, err = prepare(s); err != nil {
				return err
			}
		}
		x.entry.Changes = append(x.entry.Changes[:before:before], p.changes...)
		x.clearNamed()
		err = p.send()
		if err == nil {
			if marks := again.Learned(*s, x.key.Holder(artel.OwnerOf(ctx))); len(marks) > 0 {
				x.gw.backend.Learn(marks)
			}
			x.compareCount(ctx, s, model.MediaIn(p.request))
			return nil
		}
		if x.w.hasSent() || clientLeft(ctx) {
			return err
		}
		lower, describe, ok := again.Next(p.request, err)
		if !ok {
			return err
		}
		x.entry.Relents++
		lowered := s.Lowered(lower)
		s = &lowered
		for _, d := range describe {
			refused[d] = true
		}
		x.gw.o.Log.WarnContext(ctx, "a service refused a request, which is made again with less", "service", s.ID, "err", err)
	}
}

// Scan returns the layout of a text. The last one is cached: most requests are
// scanned again unchanged.
func (x *exchange) scan(text string) provider.Layout {
	if x.layout == nil || x.layoutText != text {
		l := x.d.Scan(text)
		x.layout, x.layoutText = &l, text
	}
	return *x.layout
}

// logChange records a change that was made before a service was asked.
func (x *exchange) logChange(c Change) { x.entry.Changes = append(x.entry.Changes, c) }

// mediaAt returns the media at a place whose value is the mark of a payload.
func (x *exchange) mediaAt(ctx context.Context, m provider.Medium) (known artel.Media, mislabeled, ok bool) {
	p, ok := x.extraction.Find(m.Value)
	if !ok {
		return artel.Media{}, false, false
	}
	known, mislabeled = x.request.Media(ctx, p.Digest, x.declared(m), m.Filename)
	return known, mislabeled, true
}

// Declared returns the media type that the request states; "": none.
func (x *exchange) declared(m provider.Medium) string {
	if p, _ := x.extraction.Find(m.Value); p.MediaType() != "" {
		return p.MediaType()
	}
	return m.Declared
}

// addPayload returns a function that adds media to the payloads of the request
// and returns their mark.
func (x *exchange) addPayload(m artel.Media) func(head string) string {
	return func(head string) string { return x.extraction.Add(head, m.Ref.Digest, m.Size) }
}

// rewrite replaces what only Artel or a client library understands: refs become
// media, and the results of tools hold text that models can read.
func (x *exchange) rewrite(ctx context.Context) error {
	l := x.scan(x.text)
	edits, err := x.rewriteParts(ctx, l.LibraryParts)
	if err != nil {
		return err
	}
	if len(edits) > 0 {
		x.text = provider.ApplyEdits(x.text, edits)
		l, edits = x.scan(x.text), nil
	}
	for _, m := range l.Media {
		found, did, err := x.resolve(ctx, m)
		if err != nil {
			return err
		}
		if did == "" {
			continue
		}
		edits = append(edits, x.replace(m, found))
		x.logChange(Change{Did: did, Ref: found.Ref, MediaType: found.MediaType, Call: callOf(l, m)})
	}
	more, err := x.rewriteResults(ctx, &l)
	if err != nil {
		return err
	}
	x.text = provider.ApplyEdits(x.text, append(edits, more...))
	return nil
}

// replace returns the edit that replaces the media at m.
func (x *exchange) replace(m provider.Medium, with artel.Media) provider.Edit {
	if e, ok := x.d.ReplaceMedia(m, with, x.addPayload(with)); ok {
		return e
	}
	return provider.Edit{Span: m.Part, With: x.d.MediaPart(with, m.Result >= 0, x.addPayload(with))}
}

func callOf(l provider.Layout, m provider.Medium) artel.CallID {
	if m.Result < 0 {
		return ""
	}
	return l.Results[m.Result].Call
}

// resolve finds the media that a ref or the id of an upload means. did is empty
// if m is neither.
func (x *exchange) resolve(ctx context.Context, m provider.Medium) (found artel.Media, did string, err error) {
	if !backend.IsRef(m.Value) {
		if !m.ID || !backend.IsUploadID(m.Value) {
			return found, "", nil
		}
		switch found, err = x.request.Upload(ctx, m.Value, x.key); {
		case err == nil:
			return found, DidResolve, nil
		case artel.KindOf(err) == artel.NotFound:
			return found, "", nil // an id of the service, or unknown: the service decides
		}
		return found, "", err
	}
	found, err = x.request.Resolve(ctx, m.Value)
	if err != nil {
		f := faultOf(err)
		if f.Status == http.StatusNotFound {
			f = provider.InvalidRequest("%s was not found.", artel.Shorten(m.Value, 200))
			f.Code = "file_not_found"
		}
		return found, "", f
	}
	return found, DidResolve, nil
}

// rewriteParts replaces parts in a client library's format by parts of the
// dialect.
func (x *exchange) rewriteParts(ctx context.Context, all []provider.LibraryPart) ([]provider.Edit, error) {
	var edits []provider.Edit
	for _, o := range all {
		found, ok, err := x.request.RewritePart(ctx, o.Of(x.text))
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		part, ok := x.partFor(found, o.Result)
		if !ok {
			continue
		}
		edits = append(edits, provider.Edit{Span: o.Span, With: part})
		x.logChange(Change{Did: string(backend.Repaired), Ref: found.Media.Ref, MediaType: found.Media.MediaType, Call: o.Call})
	}
	return edits, nil
}

// partFor returns the part of the dialect that holds media; false if it cannot
// hold their name.
func (x *exchange) partFor(m backend.FoundMedia, inResult bool) (string, bool) {
	if m.Name.Text == "" {
		return x.d.MediaPart(m.Media, inResult, x.addPayload(m.Media)), true
	}
	named := func() (string, bool) {
		return x.d.NameMedia(x.d.MediaPart(m.Media, inResult, func(string) string { return "" }), m.Media, m.Name)
	}
	part, ok := named()
	if !ok {
		m.Media.Kind = artel.KindDocument // in Chat Completions, no other part holds an id
		part, ok = named()
	}
	return part, ok
}

// resultPart returns the part for media found in the text of a tool's result;
// false if a result cannot hold their address.
func (x *exchange) resultPart(ctx context.Context, m backend.FoundMedia) (string, bool) {
	if m.Name.Text == "" || !x.scan(x.text).Split {
		return x.partFor(m, true)
	}
	limited, stop := context.WithTimeout(ctx, fetchTime) // results of Gemini's functions hold bytes only
	defer stop()
	found, err := x.request.Fetch(limited, m.Name.Text)
	if err != nil {
		return "", false
	}
	x.logChange(Change{Did: DidFetch, Ref: found.Ref, MediaType: found.MediaType})
	return x.partFor(backend.FoundMedia{Media: found}, true)
}
