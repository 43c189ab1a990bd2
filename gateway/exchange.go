// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// smallBody is the size up to which a request is read in one call.
const smallBody = 64 << 10

// An exchange is one request and its response.
type exchange struct {
	gw    *server
	w     http.ResponseWriter
	r     *http.Request
	d     dialect
	began time.Time
	entry Entry

	key        backend.Key
	request    *backend.Request
	extraction *provider.Extraction
	text       string // the request's JSON, rewritten
	head       head
	headText   string  // the text that head was read from
	layout     *layout // of layoutText; nil: not scanned yet
	layoutText string
	call       call // the decoded request; nil: not decoded
	fetched    bool // addresses in the request were replaced by their bytes
	started    bool // the response has begun
	aborted    bool // the response cannot be completed

	namedMu sync.Mutex
	named   []Change // media of the last call that were sent by name
}

func (s *server) newExchange(w http.ResponseWriter, r *http.Request, d dialect) *exchange {
	now := time.Now()
	return &exchange{gw: s, w: w, r: r, d: d, began: now, entry: Entry{Time: now.UTC(), Inbound: d.name(), Endpoint: r.URL.Path, Status: http.StatusOK}}
}

// finish sends err to the client, unless the response has begun, and logs the
// request.
func (x *exchange) finish(err error) {
	if err != nil {
		f := faultOf(err)
		if clientLeft(x.r.Context()) {
			f.status = statusClientGone
		}
		x.entry.Status, x.entry.Error = f.status, artel.Shorten(f.message, 500)
		if artel.KindOf(err) == artel.Internal && f.status == http.StatusInternalServerError {
			x.gw.o.Log.Error("a request of the gateway failed", "endpoint", x.entry.Endpoint, "service", x.entry.Service, "err", err)
		}
		if !x.started && f.status != statusClientGone {
			x.fail(f)
		}
	}
	x.namedMu.Lock()
	x.entry.Changes = append(x.entry.Changes, x.named...)
	x.namedMu.Unlock()
	x.entry.Millis = float64(time.Since(x.began).Microseconds()) / 1000
	x.gw.o.OnRequest(x.r.Context(), x.entry)
	if x.aborted {
		panic(http.ErrAbortHandler) // an incomplete response must not look complete
	}
}

// fail writes an error response.
func (x *exchange) fail(f *fault) {
	x.started = true
	body := x.d.errorBody(f)
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if f.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((f.retryAfter+time.Second-1)/time.Second)))
	}
	x.entry.BytesOut = int64(len(body))
	x.w.WriteHeader(f.status)
	_, _ = x.w.Write(body) // the client may have left
}

// secret returns the client's key from the header or parameter of any dialect.
func secret(r *http.Request) string {
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
	x.key, leave, err = x.gw.backend.Admit(x.r.Context(), secret(x.r))
	x.entry.Key = x.key.Name
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
	s, err := x.gw.backend.Service(ctx, x.head.model, x.key)
	if err != nil {
		return modelNotFound(x.head.model)
	}
	if err := x.rewrite(ctx); err != nil {
		return err
	}
	err = x.askService(ctx, s)
	for _, other := range x.fallbacks(ctx, s) {
		if err == nil || x.started || clientLeft(ctx) || artel.KindOf(err) != artel.Unavailable {
			break
		}
		x.gw.o.Log.Warn("a service is not available, its fallback is asked", "service", s.ID, "fallback", other.ID, "err", err)
		err = x.askService(ctx, other)
	}
	return err
}

func (x *exchange) fallbacks(ctx context.Context, s model.Service) []model.Service {
	if len(s.Fallbacks) == 0 {
		return nil
	}
	return x.gw.backend.Fallbacks(ctx, s, x.key)
}

// readRequest reads the request, moves its media into the blob store, and reads
// its head.
func (x *exchange) readRequest(ctx context.Context) error {
	x.request = x.gw.backend.NewRequest(ctx)
	var body io.Reader = x.r.Body
	if n := x.r.ContentLength; n > 0 && n <= smallBody {
		var b []byte
		if n <= bufferSize {
			pooled := x.gw.buffers.get()
			defer x.gw.buffers.put(pooled) // extraction copies
			b = pooled[:n]
		} else {
			b = make([]byte, n)
		}
		if _, err := io.ReadFull(body, b); err != nil {
			return invalid("The body of the request could not be read: %v", err)
		}
		body = bytes.NewReader(b)
	}
	l, err := provider.Extract(ctx, body, x.d.payloads, provider.DecodeOptions{Sink: x.request.Store})
	if err != nil {
		if _, ok := errors.AsType[*artel.Error](err); !ok {
			return invalid("The body of the request could not be read: %v", err)
		}
		return err
	}
	x.extraction = l
	x.text = string(l.JSON())
	x.entry.BytesIn = int64(len(x.text))
	h, ok := head{}, gjson.Valid(x.text)
	if ok {
		h, ok = readHead(x.text)
	}
	if from, said := x.d.target(x.r); said {
		h = from
	}
	if !ok {
		return invalid("We could not parse the JSON body of your request. The API expects a JSON payload, but what was sent was not valid JSON.")
	}
	for _, m := range l.Payloads() {
		if m.Bad {
			return invalid("Invalid base64 in the request: a payload could not be decoded.")
		}
	}
	for _, m := range h.models {
		if len(h.models) > 1 && textOf(x.text, m) != h.model {
			return invalid("The request names more than one model.")
		}
	}
	if h.model == "" {
		f := invalid("you must provide a model parameter")
		f.param = "model"
		return f
	}
	x.head, x.headText = h, x.text
	x.entry.Model, x.entry.Stream = artel.Shorten(h.model, 200), h.stream
	return nil
}

// askService calls one service, by forwarding or by translating.
func (x *exchange) askService(ctx context.Context, s model.Service) error {
	x.entry.Service, x.entry.Outbound = s.ID, s.Dialect
	var again model.RefusalPolicy
	refused := map[artel.Digest]bool{}
	if f := x.gw.o.Forwarders[s.Dialect]; f != nil && s.Dialect == x.d.name() && !x.head.asList {
		return x.retryWithLess(ctx, s, &again, refused, func(s model.Service) (prepared, error) { return x.prepareForward(ctx, f, s, refused) })
	}
	return x.retryWithLess(ctx, s, &again, refused, func(s model.Service) (prepared, error) { return x.prepareTranslation(ctx, s, refused) })
}

// A prepared request can be sent.
type prepared struct {
	request *model.Request // has at least the media
	changes []Change
	send    func() error
}

// retryWithLess prepares and sends a request. If the service refuses its media,
// it lowers what the refusal names and sends again; see [model.RefusalPolicy].
func (x *exchange) retryWithLess(ctx context.Context, s model.Service, again *model.RefusalPolicy, refused map[artel.Digest]bool, prepare func(model.Service) (prepared, error)) error {
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
			if marks := again.Learned(s); len(marks) > 0 {
				x.gw.backend.Learn(marks)
			}
			x.compareCount(ctx, s)
			return nil
		}
		if x.started || clientLeft(ctx) {
			return err
		}
		lower, describe, ok := again.Next(p.request, err)
		if !ok {
			return err
		}
		x.entry.Relents++
		s = s.Lowered(lower)
		for _, d := range describe {
			refused[d] = true
		}
		x.gw.o.Log.Warn("a service refused a request, which is made again with less", "service", s.ID, "err", err)
	}
}

// scan returns the layout of a text. The last one is cached: most requests are
// scanned again unchanged.
func (x *exchange) scan(text string) layout {
	if x.layout == nil || x.layoutText != text {
		l := x.d.scan(text)
		x.layout, x.layoutText = &l, text
	}
	return *x.layout
}

// logChange records a change that was made before a service was asked.
func (x *exchange) logChange(c Change) { x.entry.Changes = append(x.entry.Changes, c) }

// mediaAt returns the media at a place whose value is the mark of a payload.
func (x *exchange) mediaAt(ctx context.Context, m medium) (artel.Media, bool) {
	p, ok := x.extraction.Find(m.value)
	if !ok {
		return artel.Media{}, false
	}
	declared := m.declared
	if t := p.MediaType(); t != "" {
		declared = t
	}
	return x.request.Media(ctx, p.Digest, declared, m.filename), true
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
	edits, err := x.rewriteParts(ctx, l.libraryParts)
	if err != nil {
		return err
	}
	if len(edits) > 0 {
		x.text = apply(x.text, edits)
		l, edits = x.scan(x.text), nil
	}
	for _, m := range l.media {
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
	x.text = apply(x.text, append(edits, more...))
	return nil
}

// replace returns the edit that replaces the media at m.
func (x *exchange) replace(m medium, with artel.Media) edit {
	if e, ok := x.d.replaceMedia(m, with, x.addPayload(with)); ok {
		return e
	}
	return edit{m.part, x.d.mediaPart(with, m.result >= 0, x.addPayload(with))}
}

func callOf(l layout, m medium) artel.CallID {
	if m.result < 0 {
		return ""
	}
	return l.results[m.result].call
}

// resolve finds the media that a ref or the id of an upload means. did is empty
// if m is neither.
func (x *exchange) resolve(ctx context.Context, m medium) (found artel.Media, did string, err error) {
	if !backend.IsRef(m.value) {
		if !m.id || !backend.IsUploadID(m.value) {
			return found, "", nil
		}
		switch found, err = x.request.Upload(ctx, m.value, x.key); {
		case err == nil:
			return found, DidResolve, nil
		case artel.KindOf(err) == artel.NotFound:
			return found, "", nil // an id of the service, or unknown: the service decides
		}
		return found, "", err
	}
	found, err = x.request.Resolve(ctx, m.value)
	if err != nil {
		f := faultOf(err)
		if f.status == http.StatusNotFound {
			f = invalid("%s was not found.", artel.Shorten(m.value, 200))
			f.code = "file_not_found"
		}
		return found, "", f
	}
	return found, DidResolve, nil
}

// rewriteParts replaces parts in a client library's format by parts of the
// dialect.
func (x *exchange) rewriteParts(ctx context.Context, all []libraryPart) ([]edit, error) {
	var edits []edit
	for _, o := range all {
		found, ok, err := x.request.RewritePart(ctx, o.of(x.text))
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		part, ok := x.partFor(found, o.result)
		if !ok {
			continue
		}
		edits = append(edits, edit{o.span, part})
		x.logChange(Change{Did: string(backend.Repaired), Ref: found.Media.Ref, MediaType: found.Media.MediaType, Call: o.call})
	}
	return edits, nil
}

// partFor returns the part of the dialect that holds media; false if it cannot
// hold their name.
func (x *exchange) partFor(m backend.FoundMedia, inResult bool) (string, bool) {
	if m.Name.Text == "" {
		return x.d.mediaPart(m.Media, inResult, x.addPayload(m.Media)), true
	}
	if x.d.name() == model.OpenAI && m.Name.By == model.ByFileID {
		m.Media.Kind = artel.KindDocument // the only part of Chat Completions that holds an id
	}
	empty := x.d.mediaPart(m.Media, inResult, func(string) string { return "" })
	return x.d.nameMedia(empty, m.Media, m.Name)
}

// resultPart returns the part for media found in the text of a tool's result;
// false if a result cannot hold their address.
func (x *exchange) resultPart(ctx context.Context, m backend.FoundMedia) (string, bool) {
	if m.Name.Text == "" || x.d.name() != model.Gemini {
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

// rewriteResults takes media, and text beyond the limit, out of the texts of
// results.
func (x *exchange) rewriteResults(ctx context.Context, l *layout) ([]edit, error) {
	var edits []edit
	for _, r := range l.results {
		var parts []string
		var texts []edit
		var whole *string
		for _, s := range r.texts {
			m, err := x.request.RewriteResult(ctx, textOf(x.text, s))
			if err != nil {
				return nil, fmt.Errorf("the result of tool call %s: %w", artel.Shorten(string(r.call), 80), err)
			}
			if len(m.Steps) == 0 {
				continue
			}
			for _, step := range m.Steps {
				x.logChange(Change{Did: string(step.Did), Ref: step.Ref, Call: r.call})
			}
			for _, found := range m.Media {
				if part, ok := x.resultPart(ctx, found); ok {
					parts = append(parts, part)
				} else {
					m.Text = joinTexts([]string{m.Text, found.Name.Text})
				}
			}
			if s == r.content {
				whole = &m.Text
			} else {
				texts = append(texts, edit{s, quote(m.Text)})
			}
		}
		if whole != nil || len(parts) > 0 {
			edits = append(edits, x.d.fillResult(x.text, r, whole, parts)...)
		}
		edits = append(edits, texts...)
	}
	return edits, nil
}
