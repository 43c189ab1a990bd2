// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/model/provider"
)

// streamHeader sets the header of a stream.
func (x *exchange) streamHeader(h http.Header) {
	h.Set("Content-Type", "text/event-stream")
	if x.head.AsList {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	x.nameConversation(h)
}

// startKeepAlive sends keep-alives while the stream is silent.
func (x *exchange) startKeepAlive() {
	ctx, leave := context.WithCancelCause(x.r.Context())
	x.r, x.w.leave = x.r.WithContext(ctx), leave
	k := keepAlive{header: x.streamHeader, ping: x.d.KeepAlive()}
	if x.head.AsList {
		k.ping = []byte("\r\n") // white space between the elements
	}
	x.w.keepAlive(k)
}

// events returns the writer of the events of a stream.
func (x *exchange) events() io.Writer {
	if !x.head.AsList {
		return x.w
	}
	if x.list == nil {
		x.list = &listWriter{w: x.w}
	}
	return x.list
}

// A listWriter writes server-sent events as the elements of a JSON list, as Gemini
// streams without alt=sse.
type listWriter struct {
	w     io.Writer
	begun bool
}

// Write writes a run of complete events.
func (l *listWriter) Write(run []byte) (int, error) {
	var out []byte
	for rest := run; len(rest) > 0; {
		event := firstOf(rest)
		rest = rest[len(event):]
		data := provider.EventData(event)
		if len(data) == 0 {
			continue
		}
		if l.begun {
			out = append(out, ",\r\n"...)
		} else {
			out = append(out, '[')
		}
		l.begun = true
		out = append(out, data...)
	}
	if len(out) == 0 {
		return len(run), nil
	}
	_, err := l.w.Write(out)
	return len(run), err
}

// End writes the end of the list, if it has begun.
func (l *listWriter) end() {
	if l.begun {
		_, _ = l.w.Write([]byte("]")) // the client may have left
	}
}

const garbage = "the stream has an event that is not valid JSON"

// isData reports whether the data of an event can be of an API: JSON, nothing, or
// the mark of the end.
func isData(data []byte) bool {
	return len(data) == 0 || gjson.ValidBytes(data) || bytes.Equal(data, []byte("[DONE]"))
}

// A relay passes the stream of a service on.
type relay struct {
	x        *exchange
	a        *response
	first    []byte // the first event
	last     []byte // the last one
	final    bool   // the stream may end here
	reported error  // that the service reported
}

// Inspect inspects a run of complete events, and returns the part of it to pass on;
// the events after the end of the stream are none. garbled reports that an event
// after that part is no event of an API.
func (r *relay) inspect(run []byte) (pass []byte, v provider.EventInfo, garbled bool) {
	plain := r.x.d.Skippable(run)
	event := run[:0]
	var kept []byte // of run, if an event is hidden
	defer func() {
		if kept != nil {
			pass = kept
		}
	}()
	for rest := run; len(rest) > 0 && !v.End && !v.Failed; {
		next := firstOf(rest)
		data := provider.EventData(next)
		if !isData(data) {
			r.keep(event)
			return run[:len(run)-len(rest)], v, true
		}
		event, rest = next, rest[len(next):]
		if !plain {
			v = r.x.d.Inspect(event)
		}
		switch hidden := v.UsageOnly && r.x.hidesUsage; {
		case hidden && kept == nil:
			kept = bytes.Clone(run[:len(run)-len(rest)-len(event)])
		case !hidden && kept != nil:
			kept = append(kept, event...)
		}
		if plain {
			continue
		}
		if v.Usage {
			r.x.entry.Usage = r.x.d.Usage(data, r.x.entry.Usage)
		}
		if v.States {
			r.x.rememberCalls(data)
		}
		r.x.noteFilterStop(data)
		if v.ErrorBegins || v.Failed {
			r.reported = r.a.failures.Reported(data)
		}
		r.final = r.final || v.MayEnd
		if v.End || v.Failed {
			run = run[:len(run)-len(rest)]
		}
	}
	r.keep(event)
	return run, v, false
}

// rememberCalls remembers the states of the calls in an answer, or in an event.
func (x *exchange) rememberCalls(data []byte) {
	if d, ok := x.d.(provider.TurnEditor); ok {
		for _, c := range d.CallStates(data) {
			x.request.RememberCall(x.r.Context(), x.entry.Service, c)
		}
	}
}

// keep records the last event. Its bytes are valid until more are read.
func (r *relay) keep(event []byte) {
	if len(event) > 0 {
		r.last = append(r.last[:0], event...)
	}
}

// relayStream passes complete events on as soon as they arrive. A stream that
// breaks off ends with the dialect's error.
func (x *exchange) relayStream(a *response) error {
	x.w.begin(http.StatusOK, func(h http.Header) {
		x.streamHeader(h)
		kind := h.Get("Content-Type")
		copyHeader(h, a, kind)
		if x.head.AsList {
			h.Set("Content-Type", kind)
		}
	})
	r := relay{x: x, a: a, first: bytes.Clone(firstOf(a.first))}
	to := x.events()
	run := a.first
	a.first = nil // it may be large, and the stream long
	for {
		pass, v, garbled := r.inspect(run)
		if v.End {
			x.settle()
		}
		var err error
		if len(pass) > 0 {
			_, err = to.Write(pass)
		}
		if err == nil && (!v.End || a.events.err == nil) { // otherwise the end of the response flushes it
			err = x.w.FlushError()
		}
		switch {
		case err != nil:
			return writeError(err)
		case garbled:
			return x.endWithError(a.failures.Broken(garbage), r.first, r.last)
		case v.Failed:
			return r.reported
		case v.End && a.events.err != nil:
			return r.reported
		case v.End:
			a.silence.reset(drainTime)
			_, _ = io.Copy(io.Discard, io.LimitReader(a.resp.Body, 64<<10)) // so that the connection can be used again
			return r.reported
		}
		run, err = a.events.next()
		switch {
		case err == nil:
		case r.reported != nil:
			return r.reported
		case r.final && errors.Is(err, io.EOF):
			return nil
		default:
			return x.endWithError(x.readError(x.r.Context(), a, err), r.first, r.last)
		}
	}
}

// drainTime is how long a response may take to end after its last event.
const drainTime = 250 * time.Millisecond

// endWithError ends a stream with an error.
func (x *exchange) endWithError(err error, first, last []byte) error {
	if refusal := access.Refusal(x.r.Context()); refusal != nil {
		err = refusal
	} else if clientLeft(x.r.Context()) {
		return err
	}
	x.writeErrorEvent(faultOf(err), first, last)
	return err
}

// writeErrorEvent ends a stream with an error; first and last are its first and
// its last event.
func (x *exchange) writeErrorEvent(f *provider.Fault, first, last []byte) {
	_, _ = x.events().Write(x.d.ErrorEvent(*f, first, last)) // the client may have left
	_ = x.w.FlushError()
}
