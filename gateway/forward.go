// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// prepareForward prepares a request for a service of the same dialect.
func (x *exchange) prepareForward(ctx context.Context, f provider.Forwarder, s *model.Service, refused map[artel.Digest]bool) (prepared, error) {
	text, p, err := x.conform(ctx, s, refused)
	if err != nil {
		return prepared{}, err
	}
	if len(x.head.Models) > 0 {
		text = x.withModel(text, s)
	}
	text = x.withCacheMark(text, s)
	out := outgoing{forwarder: f, request: p.request, text: text}
	x.hidesUsage = false
	if _, refused := x.gw.noUsage.Load(s.ID); x.head.Stream && !s.Quirks().NoUsage && !refused {
		out.text, x.hidesUsage = x.d.AskUsage(text)
	}
	send := func() error {
		err := x.forward(ctx, s, out)
		if c, ok := errors.AsType[*model.CallError](err); !ok || !x.hidesUsage || c.Status/100 != 4 || !strings.Contains(c.Message, "stream_options") {
			return err
		}
		x.hidesUsage, out.text = false, text
		if err = x.forward(ctx, s, out); err == nil { // otherwise something else was wrong
			x.gw.noUsage.Store(s.ID, true)
		}
		return err
	}
	return prepared{request: p.request, changes: p.changes, send: send}, nil
}

// An outgoing request is forwarded: its JSON text, with the marks of payloads,
// and the media that the marks stand for.
type outgoing struct {
	forwarder provider.Forwarder
	request   *model.Request // has the media
	text      string
}

// send makes one call. Media that were uploaded to the service are sent by
// name.
func (x *exchange) send(ctx context.Context, s *model.Service, o outgoing) (*http.Response, error) {
	send := func(r *model.Request) (*http.Response, error) {
		body := x.extraction.Body([]byte(x.withUploads(o.text, r)), x.gw.backend.Blobs())
		return o.forwarder.Forward(ctx, s, body, x.head.Stream, x.forwardedHeaders())
	}
	h, ok := o.forwarder.(provider.Uploader)
	if !ok || len(o.request.Messages) == 0 { // there are no media
		return send(o.request)
	}
	r := *o.request
	r.OnNames = x.noteNames(&r)
	return h.SendWithUploads(ctx, &r, send)
}

// forward sends a request and passes the response back.
func (x *exchange) forward(ctx context.Context, s *model.Service, o outgoing) error {
	var err error
	if o.text, err = x.charge(s, o.text, paidMedia(o.request), byLimit); err != nil {
		return err
	}
	defer x.settle()
	caller := x.caller()
	var a *response
	leave, tries, err := caller.Try(ctx, *s, func() (err error) {
		a, err = x.start(ctx, s, o, silenceLimitsOf(caller, s))
		return err
	})
	x.entry.Tries += tries
	if err != nil {
		return err
	}
	x.started = true
	defer leave()
	defer a.close()
	if x.head.Stream {
		return x.relayStream(a)
	}
	return x.passBody(a)
}

// A response of a service, read far enough to know that it is not an error.
type response struct {
	resp     *http.Response
	failures provider.Failures
	silence  *silenceTimer
	events   *eventReader
	buffers  *bufferPool
	buf      *[bufferSize]byte // of events; may be nil
	first    []byte            // the first events, or the beginning of the body
	complete bool              // first is the whole body
}

func (a *response) close() {
	_ = a.resp.Body.Close() // nothing more is read
	a.silence.stop()
	if a.buf != nil {
		a.buffers.put(a.buf)
		a.buf = nil
	}
}

// maxInspected is how much of a body is inspected before any of it is passed
// on. Most bodies are shorter.
const maxInspected = 1 << 20

// start makes one call and reads enough of the response to tell it from an
// error.
func (x *exchange) start(ctx context.Context, s *model.Service, o outgoing, silence silenceLimits) (*response, error) {
	call, cancel := context.WithCancelCause(ctx)
	a := &response{failures: provider.Failures{Op: "gateway.Forward", Service: s}, silence: newSilenceTimer(silence, cancel)}
	resp, err := x.send(call, s, o)
	if err != nil {
		err = a.silence.cause(ctx, a.failures, err)
		a.silence.stop()
		return nil, err
	}
	a.resp = resp
	x.restoreBody(s, a)
	if x.head.Stream {
		err = x.startStream(ctx, a)
	} else {
		err = x.startBody(ctx, a)
	}
	if err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// forwardedHeaders returns the headers of the client that the service gets.
func (x *exchange) forwardedHeaders() http.Header {
	header := http.Header{}
	for name, values := range x.r.Header {
		if isForwarded(name) || x.service.Extra.Forwards(name) {
			header[name] = values
		}
	}
	return header
}

// listedHeaders returns the headers of the client that the service gets by its list.
func (x *exchange) listedHeaders() http.Header {
	header := http.Header{}
	for name, values := range x.r.Header {
		if x.service.Extra.Forwards(name) {
			header[name] = values
		}
	}
	return header
}

// isForwarded reports whether a client's header is sent to the service.
func isForwarded(name string) bool {
	switch name {
	case "Anthropic-Beta", "Anthropic-Version", "Openai-Beta", "Idempotency-Key":
		return true
	}
	return false
}

func (x *exchange) startStream(ctx context.Context, a *response) error {
	kind, _, _ := mime.ParseMediaType(a.resp.Header.Get("Content-Type"))
	if kind == "text/html" {
		return a.failures.Wrong("the answer is a web page, not the API's; check the base URL")
	}
	if kind == "application/json" {
		data, err := io.ReadAll(io.LimitReader(a.silence.reader(a.resp.Body), maxInspected))
		if err == nil && gjson.GetBytes(data, "error").Exists() {
			return a.failures.Reported(data)
		}
		return a.failures.Wrong("the service answered a request for a stream without one")
	}
	a.buffers, a.buf = &x.gw.buffers, x.gw.buffers.get()
	a.events = newEventReader(a.silence.reader(a.resp.Body), a.buf)
	for {
		run, err := a.events.next()
		if err != nil {
			return x.readError(ctx, a, err)
		}
		answers, err := x.answers(a, run)
		if err != nil {
			return err
		}
		if a.first == nil && answers {
			a.first = run
		} else {
			a.first = append(a.first, run...)
		}
		if answers || len(a.first) > maxInspected {
			return nil
		}
	}
}

// answers reports whether the answer itself begins in a run of events, and not only
// its prelude. The error is that of an event before the answer.
func (x *exchange) answers(a *response, run []byte) (bool, error) {
	for len(run) > 0 {
		event := firstOf(run)
		run = run[len(event):]
		data := provider.EventData(event)
		if v := x.d.Inspect(event); v.Failed || v.ErrorBegins {
			return false, a.failures.Reported(data)
		}
		if !isData(data) {
			return false, a.failures.Broken(garbage)
		}
		if len(data) > 0 && !x.d.IsPrelude(event) {
			return true, x.filtered(data)
		}
	}
	return false, nil
}

// readError converts an error of reading a stream or a body.
func (x *exchange) readError(ctx context.Context, a *response, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return a.failures.Broken("the stream broke off")
	}
	return a.silence.cause(ctx, a.failures, a.failures.Transport(ctx, err))
}

func (x *exchange) startBody(ctx context.Context, a *response) error {
	body := a.silence.reader(a.resp.Body)
	size := int64(maxInspected)
	if n := a.resp.ContentLength; n >= 0 && n < size {
		size = n
	}
	first, err := io.ReadAll(io.LimitReader(body, size))
	if err == nil && int64(len(first)) == size && size < maxInspected {
		a.complete = true
	} else if err == nil && len(first) < maxInspected {
		a.complete = a.resp.ContentLength < 0
		if !a.complete {
			err = io.ErrUnexpectedEOF
		}
	}
	if err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return a.failures.Broken("the answer broke off")
		}
		return x.readError(ctx, a, err)
	}
	a.first = first
	if !a.complete {
		return nil
	}
	if strings.HasPrefix(strings.TrimSpace(string(first[:min(len(first), 64)])), "<") {
		return a.failures.Wrong("the answer is a web page, not the API's; check the base URL")
	}
	if !gjson.ValidBytes(first) {
		return a.failures.Broken("the answer is not valid JSON")
	}
	usage, ok := x.d.CheckBody(first)
	if !ok {
		return a.failures.Reported(first)
	}
	x.entry.Usage, x.started = usage, true // it is paid for, also if it is asked for elsewhere
	x.rememberCalls(first)
	return x.filtered(first)
}

// passBody sends a response that is not a stream to the client.
func (x *exchange) passBody(a *response) error {
	x.w.begin(http.StatusOK, func(h http.Header) {
		copyHeader(h, a, "application/json")
		if n := a.resp.ContentLength; n >= 0 {
			h.Set("Content-Length", strconv.FormatInt(n, 10))
		} else if a.complete {
			h.Set("Content-Length", strconv.Itoa(len(a.first)))
		}
	})
	if a.complete {
		x.settle()
	}
	_, err := x.w.Write(a.first)
	if err != nil || a.complete {
		return writeError(err)
	}
	usage := memberScanner{names: usageMembers}
	_, _ = usage.Write(a.first)
	_, err = io.Copy(io.MultiWriter(x.w, &usage), a.silence.reader(a.resp.Body))
	x.entry.Usage = usage.usageIn(x.d)
	switch unwritten := x.w.failure(); {
	case unwritten != nil:
		return writeError(unwritten)
	case err != nil:
		x.aborted = true
		return x.readError(x.r.Context(), a, err)
	}
	return nil
}

// copyHeader sets the header of a successful response.
func copyHeader(h http.Header, a *response, kind string) {
	for name, values := range a.resp.Header {
		if provider.IsReturned(name) {
			h[name] = values
		}
	}
	if t := a.resp.Header.Get("Content-Type"); t != "" {
		kind = t
	}
	h.Set("Content-Type", kind)
}

// silenceLimits are how long a service may be silent before its first byte and
// between later ones.
type silenceLimits struct{ first, between time.Duration }

func silenceLimitsOf(c *model.Caller, s *model.Service) silenceLimits {
	return silenceLimits{c.FirstTimeout(*s), c.IdleTimeout(*s)}
}

// A silenceTimer cancels a call that is silent for too long.
type silenceTimer struct {
	limit   time.Duration // until the next byte
	between time.Duration // the limit after the first byte
	cancel  context.CancelCauseFunc
	timer   *time.Timer
}

var errSilence = errors.New("silence")

func newSilenceTimer(s silenceLimits, cancel context.CancelCauseFunc) *silenceTimer {
	q := &silenceTimer{limit: s.first, between: s.between, cancel: cancel}
	q.timer = time.AfterFunc(q.limit, func() { cancel(errSilence) })
	return q
}

func (q *silenceTimer) stop() {
	q.timer.Stop()
	q.cancel(nil)
}

// reset limits the rest of the call to d.
func (q *silenceTimer) reset(d time.Duration) { q.timer.Reset(d) }

// cause replaces err by a timeout error if the timer canceled the call.
func (q *silenceTimer) cause(ctx context.Context, f provider.Failures, err error) error {
	if ctx.Err() == nil && artel.KindOf(err) == artel.Canceled {
		return f.Broken(fmt.Sprintf("the service said nothing for %v", q.limit))
	}
	return err
}

// reader returns a reader of r during whose reads the timer runs.
func (q *silenceTimer) reader(r io.Reader) io.Reader { return timedReader{q, r} }

type timedReader struct {
	q *silenceTimer
	r io.Reader
}

// Read implements [io.Reader].
func (h timedReader) Read(b []byte) (int, error) {
	h.q.timer.Reset(h.q.limit)
	n, err := h.r.Read(b)
	h.q.timer.Stop() // a slow client is not a silent service
	if n > 0 {
		h.q.limit = h.q.between
	}
	return n, err
}

// withModel returns text, the request's JSON, with the service's name of its
// model.
func (x *exchange) withModel(text string, s *model.Service) string {
	h := x.head
	if text != x.headText {
		h, _ = provider.ReadHead(text)
	}
	name := provider.QuoteJSON(s.Model)
	var edits []provider.Edit
	for _, m := range h.Models {
		if m.Of(text) != name {
			edits = append(edits, provider.Edit{Span: m, With: name})
		}
	}
	return provider.ApplyEdits(text, edits)
}
