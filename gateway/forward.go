// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
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
	"github.com/artelhq/artel/internal/sse"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// prepare makes a request ready to be sent on in the client's own words.
func (x *exchange) prepare(ctx context.Context, f provider.Forwarder, s model.Service, refused map[artel.Digest]bool) (prepared, error) {
	text, p, err := x.place(ctx, s, refused)
	if err != nil {
		return prepared{}, err
	}
	if len(x.head.models) > 0 {
		text = x.named(text, s)
	}
	out := outgoing{forwarder: f, request: p.request, text: text}
	return prepared{request: p.request, changes: p.changes, send: func() error { return x.forward(ctx, s, out) }}, nil
}

// An outgoing request is sent on as its text says it.
type outgoing struct {
	forwarder provider.Forwarder
	request   *model.Request // its media
	text      string
}

// send makes one call. Media that the service holds go by their names there.
func (x *exchange) send(ctx context.Context, s model.Service, o outgoing) (*http.Response, error) {
	send := func(r *model.Request) (*http.Response, error) {
		body := x.lifting.Body([]byte(x.withNames(o.text, r)), x.backend.Blobs())
		return o.forwarder.Forward(ctx, s, body, x.head.stream, x.onward())
	}
	h, ok := o.forwarder.(provider.Uploader)
	if !ok || len(o.request.Messages) == 0 { // there are no media
		return send(o.request)
	}
	r := *o.request
	r.OnHeld = x.noteHeld(&r)
	return h.SendWithUploads(ctx, &r, send)
}

// forward sends a request on and passes the answer back.
func (x *exchange) forward(ctx context.Context, s model.Service, o outgoing) error {
	caller := x.backend.Caller()
	var a *answer
	leave, tries, err := caller.Try(ctx, s, func() (err error) {
		a, err = x.open(ctx, s, o, newSilence(caller, s))
		return err
	})
	x.entry.Tries += tries
	if err != nil {
		return err
	}
	defer leave()
	defer a.close()
	if x.head.stream {
		return x.relay(a)
	}
	return x.pass(a)
}

// An answer is that of a service, up to where it shows whether it is one.
type answer struct {
	resp     *http.Response
	failures provider.Failures
	quiet    *quiet
	events   *events
	shelf    *shelf
	buf      *[bufferSize]byte // of events; nil: there are none
	first    []byte            // the first events, or the beginning of the body
	all      bool              // first is all of it
}

func (a *answer) close() {
	_ = a.resp.Body.Close() // it was read as far as it is wanted
	a.quiet.stop()
	if a.buf != nil {
		a.shelf.put(a.buf)
		a.buf = nil
	}
}

// wholeLimit is how much of an answer is looked at before any of it is passed
// on: most answers are shorter.
const wholeLimit = 1 << 20

// open makes one call, and reads as much of the answer as shows that it is one.
func (x *exchange) open(ctx context.Context, s model.Service, o outgoing, silence silence) (*answer, error) {
	call, cancel := context.WithCancelCause(ctx)
	a := &answer{failures: provider.Failures{Op: "gateway.Forward", Service: s}, quiet: newQuiet(silence, cancel)}
	resp, err := x.send(call, s, o)
	if err != nil {
		err = a.quiet.blame(ctx, a.failures, err)
		a.quiet.stop()
		return nil, err
	}
	a.resp = resp
	if x.head.stream {
		err = x.openStream(ctx, a)
	} else {
		err = x.openWhole(ctx, a)
	}
	if err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// onward are the headers of the client that go on to the service.
func (x *exchange) onward() http.Header {
	header := http.Header{}
	for name, values := range x.r.Header {
		if forwarded(name) {
			header[name] = values
		}
	}
	return header
}

// forwarded reports whether a header of a client is the service's business.
func forwarded(name string) bool {
	switch name {
	case "Anthropic-Beta", "Anthropic-Version", "Openai-Beta", "Idempotency-Key":
		return true
	}
	return false
}

func (x *exchange) openStream(ctx context.Context, a *answer) error {
	kind, _, _ := mime.ParseMediaType(a.resp.Header.Get("Content-Type"))
	if kind == "text/html" {
		return a.failures.Wrong("the answer is a web page, not the API's; check the base URL")
	}
	if kind == "application/json" {
		data, err := io.ReadAll(io.LimitReader(a.quiet.reader(a.resp.Body), wholeLimit))
		if err == nil && gjson.GetBytes(data, "error").Exists() {
			return a.failures.Reported(data)
		}
		return a.failures.Wrong("the service answered a request for a stream without one")
	}
	a.shelf, a.buf = &x.shelf, x.shelf.take()
	a.events = newEvents(a.quiet.reader(a.resp.Body), a.buf)
	run, err := a.events.next()
	if err != nil {
		return x.torn(ctx, a, err)
	}
	event := firstOf(run)
	if v := x.d.sees(event); v.failed || v.erred {
		return a.failures.Reported(dataOf(event))
	}
	if data := dataOf(event); len(data) > 0 && data[0] == '{' && !gjson.ValidBytes(data) {
		return a.failures.Broken("the stream has an event that is not valid JSON")
	}
	a.first = run
	return nil
}

// torn says why a stream or a body ended before its end.
func (x *exchange) torn(ctx context.Context, a *answer, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return a.failures.Broken("the stream broke off")
	}
	return a.quiet.blame(ctx, a.failures, a.failures.Transport(ctx, err))
}

func (x *exchange) openWhole(ctx context.Context, a *answer) error {
	body := a.quiet.reader(a.resp.Body)
	size := int64(wholeLimit)
	if n := a.resp.ContentLength; n >= 0 && n < size {
		size = n
	}
	first, err := io.ReadAll(io.LimitReader(body, size))
	if err == nil && int64(len(first)) == size && size < wholeLimit {
		a.all = true
	} else if err == nil && len(first) < wholeLimit {
		a.all = a.resp.ContentLength < 0
		if !a.all {
			err = io.ErrUnexpectedEOF
		}
	}
	if err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return a.failures.Broken("the answer broke off")
		}
		return x.torn(ctx, a, err)
	}
	a.first = first
	if !a.all {
		return nil
	}
	if strings.HasPrefix(strings.TrimSpace(string(first[:min(len(first), 64)])), "<") {
		return a.failures.Wrong("the answer is a web page, not the API's; check the base URL")
	}
	if !gjson.ValidBytes(first) {
		return a.failures.Broken("the answer is not valid JSON")
	}
	usage, ok := x.d.whole(first)
	if !ok {
		return a.failures.Reported(first)
	}
	x.entry.Usage = usage
	return nil
}

// pass passes an answer on that is not streamed.
func (x *exchange) pass(a *answer) error {
	x.head200(a, "application/json")
	if n := a.resp.ContentLength; n >= 0 {
		x.w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
	} else if a.all {
		x.w.Header().Set("Content-Length", strconv.Itoa(len(a.first)))
	}
	x.w.WriteHeader(http.StatusOK)
	x.told = true
	n, err := x.w.Write(a.first)
	x.entry.BytesOut += int64(n)
	if err != nil || a.all {
		return clientGone(err)
	}
	rest, err := io.Copy(x.w, a.quiet.reader(a.resp.Body))
	x.entry.BytesOut += rest
	if err != nil {
		x.cut = true
		return x.torn(x.r.Context(), a, err)
	}
	return nil
}

func clientGone(err error) error {
	if err == nil {
		return nil
	}
	return artel.Errorf(artel.Canceled, "gateway", "", "the client did not take the answer: %w", err)
}

// head200 begins the header of a good answer.
func (x *exchange) head200(a *answer, kind string) {
	h := x.w.Header()
	for name, values := range a.resp.Header {
		if returned(name) {
			h[name] = values
		}
	}
	if t := a.resp.Header.Get("Content-Type"); t != "" {
		kind = t
	}
	h.Set("Content-Type", kind)
}

// returned reports whether a header of a service is the client's business.
func returned(name string) bool {
	switch name {
	case "X-Request-Id", "Request-Id":
		return true
	}
	return strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "Anthropic-Ratelimit-") || strings.HasPrefix(name, "Openai-")
}

// relay passes a stream on: whole events, each as soon as it has come. A stream
// that does not come to its end gets the dialect's error in its place.
func (x *exchange) relay(a *answer) error {
	x.head200(a, "text/event-stream")
	h := x.w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	x.w.WriteHeader(http.StatusOK)
	x.told = true
	rc := http.NewResponseController(x.w)
	first := bytes.Clone(firstOf(a.first))
	var last []byte
	var final bool
	var reported error
	var limited time.Time // when the time of a write was limited last
	run := a.first
	for {
		var v verdict
		rest := run
		if x.d.plain(run) {
			rest = nil
		}
		last = append(last[:0], a.events.last()...)
		for len(rest) > 0 && !v.ended && !v.failed {
			event := firstOf(rest)
			rest = rest[len(event):]
			v = x.d.sees(event)
			if v.usage {
				x.entry.Usage = x.d.usage(dataOf(event), x.entry.Usage)
			}
			if v.erred || v.failed {
				reported = a.failures.Reported(dataOf(event))
			}
			final = final || v.final
			if v.ended || v.failed {
				run = run[:len(run)-len(rest)]
			}
		}
		// Before the write, which may be too long for any buffer: the deadline of
		// the last one may have passed while the model was thinking. It need not be
		// exact, and costs as much as a write.
		if now := time.Now(); now.Sub(limited) > sse.WriteTimeout/10 {
			_ = rc.SetWriteDeadline(now.Add(sse.WriteTimeout)) // not every connection has one
			limited = now
		}
		n, err := x.w.Write(run)
		x.entry.BytesOut += int64(n)
		if err == nil && (!v.ended || a.events.err == nil) { // else it goes with the end of the answer
			err = rc.Flush()
		}
		switch {
		case err != nil:
			return clientGone(err)
		case v.failed:
			return reported
		case v.ended && a.events.err != nil:
			return nil
		case v.ended:
			a.quiet.limit(restTime)
			_, _ = io.Copy(io.Discard, io.LimitReader(a.resp.Body, 64<<10)) // so that the connection can be used again
			return nil
		}
		run, err = a.events.next()
		switch {
		case err == nil:
		case reported != nil:
			return reported
		case final && errors.Is(err, io.EOF):
			return nil
		default:
			return x.breakOff(x.torn(x.r.Context(), a, err), rc, first, last)
		}
	}
}

// restTime is how long an answer may take to end after its last event.
const restTime = 250 * time.Millisecond

// breakOff ends a stream with an error.
func (x *exchange) breakOff(err error, rc *http.ResponseController, first, last []byte) error {
	if gone(x.r.Context()) {
		return err
	}
	n, _ := x.w.Write(x.d.broken(faultOf(err), first, last)) // a client that has gone is no concern
	x.entry.BytesOut += int64(n)
	_ = rc.Flush()
	return err
}

// silence is how long a service may say nothing.
type silence struct{ first, between time.Duration }

func newSilence(c *model.Caller, s model.Service) silence {
	return silence{c.First(s), c.Silence(s)}
}

// quiet ends a call that says nothing for too long.
type quiet struct {
	after  time.Duration // from now on
	then   time.Duration // once something was heard
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

var errQuiet = errors.New("silence")

func newQuiet(s silence, cancel context.CancelCauseFunc) *quiet {
	q := &quiet{after: s.first, then: s.between, cancel: cancel}
	q.timer = time.AfterFunc(q.after, func() { cancel(errQuiet) })
	return q
}

func (q *quiet) stop() {
	q.timer.Stop()
	q.cancel(nil)
}

// limit lets the call go on for so long at most.
func (q *quiet) limit(d time.Duration) { q.timer.Reset(d) }

// blame says whether silence was the reason of err.
func (q *quiet) blame(ctx context.Context, f provider.Failures, err error) error {
	if ctx.Err() == nil && artel.KindOf(err) == artel.Canceled {
		return f.Broken(fmt.Sprintf("the service said nothing for %v", q.after))
	}
	return err
}

// reader reads r, and each time the silence begins anew.
func (q *quiet) reader(r io.Reader) io.Reader { return heard{q, r} }

type heard struct {
	q *quiet
	r io.Reader
}

// Read implements [io.Reader].
func (h heard) Read(b []byte) (int, error) {
	h.q.timer.Reset(h.q.after)
	n, err := h.r.Read(b)
	h.q.timer.Stop() // the client may take its time
	if n > 0 {
		h.q.after = h.q.then
	}
	return n, err
}
