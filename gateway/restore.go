// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"mime"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// restorer returns the restorer of what was taken out of the results of tools; nil
// if nothing was. Each ref that is replaced is logged once.
func (x *exchange) restorer(s artel.ServiceID) *backend.Restorer {
	logged := map[artel.Ref]bool{}
	return x.request.Texts.Restorer(func(ref artel.Ref) {
		if !logged[ref] {
			logged[ref] = true
			x.logChange(Change{Did: string(backend.Restored), Ref: ref, Service: s})
		}
	})
}

// restoreDeltas replaces the refs in the arguments of calls, in the deltas of a
// translated answer, by the texts that they stand for.
func (x *exchange) restoreDeltas(s artel.ServiceID, deltas iter.Seq2[model.Delta, error]) iter.Seq2[model.Delta, error] {
	r := x.restorer(s)
	if r == nil {
		return deltas
	}
	return func(yield func(model.Delta, error) bool) {
		held := map[artel.CallID]string{}
		for d, err := range deltas {
			switch v := d.(type) {
			case model.CallPiece:
				v.Text, held[v.ID] = r.Piece(held[v.ID]+v.Text, true)
				d = v
			case model.CallDelta: // with the end that was held
				v.Arguments = json.RawMessage(r.Whole(string(v.Arguments), true))
				d = v
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// restoreBody does the same in the body of a forwarded answer.
func (x *exchange) restoreBody(s *model.Service, a *response) {
	r := x.restorer(s.ID)
	if r == nil {
		return
	}
	// Two readers measure silence: that of this body and that of the next reader.
	body := a.silence.reader(a.resp.Body)
	kind, _, _ := mime.ParseMediaType(a.resp.Header.Get("Content-Type"))
	var restored io.Reader
	switch {
	case !x.head.Stream:
		a.resp.ContentLength = -1
		restored = &wholeReader{read: func() ([]byte, error) { return x.restoreWhole(r, a.failures, body) }}
	case kind == "application/json", kind == "text/html": // an error
		return
	default:
		restored = &eventRestorer{d: x.d, r: r, in: newEventReader(body, new([bufferSize]byte)), held: map[string]string{}, begun: map[string]bool{}}
	}
	a.resp.Body = restoredBody{restored, a.resp.Body}
}

type restoredBody struct {
	io.Reader
	io.Closer
}

// restoreWhole reads an answer that is not a stream.
func (x *exchange) restoreWhole(r *backend.Restorer, f provider.Failures, body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, provider.MaxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(data) > provider.MaxAnswer {
		return nil, f.Wrong("the answer is larger than 64 MiB")
	}
	text := string(data)
	var edits []provider.Edit
	for _, c := range x.d.GotCalls(text) {
		edits = append(edits, provider.Edit{Span: c.Span, With: restored(c, text, r)})
	}
	return []byte(provider.ApplyEdits(text, edits)), nil
}

// restored returns the JSON of the value at c with refs replaced.
func restored(c provider.CallText, text string, r *backend.Restorer) string {
	switch c.Form {
	case provider.JSONText, provider.PlainText:
		before := provider.TextAt(text, c.Span)
		if after := r.Whole(before, c.Form == provider.JSONText); after != before {
			return provider.QuoteJSON(after)
		}
		return c.Of(text)
	}
	return r.Whole(c.Of(text), true)
}

// A wholeReader reads what a function returns.
type wholeReader struct {
	read func() ([]byte, error)
	rest *bytes.Reader
}

// Read implements [io.Reader].
func (w *wholeReader) Read(p []byte) (int, error) {
	if w.rest == nil {
		data, err := w.read()
		if err != nil {
			return 0, err
		}
		w.rest = bytes.NewReader(data)
	}
	return w.rest.Read(p)
}

// An eventRestorer reads a stream of events and replaces refs in them. An event whose
// piece of a call may end within a ref waits, with those after it, until the ref is
// complete or is none.
type eventRestorer struct {
	d   provider.Editor
	r   *backend.Restorer
	in  *eventReader
	out []byte // to be read
	err error  // after out

	held    map[string]string // the end of the last piece, by callText.stream
	begun   map[string]bool   // the streams of pieces so far
	waiting []waitingEvent
}

// A waitingEvent is an event that is not passed on yet.
type waitingEvent struct {
	event []byte
	data  string
	texts []provider.CallText
	with  []string // the texts of the pieces, in the order of texts; JSON where a text is not a piece
}

// Read implements [io.Reader].
func (e *eventRestorer) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		run, err := e.in.next()
		for len(run) > 0 {
			event := firstOf(run)
			run = run[len(event):]
			e.add(event)
		}
		if err != nil {
			e.err = err
			e.release()
		}
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

// add takes the next event.
func (e *eventRestorer) add(event []byte) {
	data := string(provider.EventData(event))
	w := waitingEvent{event: bytes.Clone(event), data: data, texts: e.d.GotCalls(data)}
	isPiece := func(c provider.CallText) bool { return c.Stream != "" }
	if !slices.ContainsFunc(w.texts, isPiece) && data != "" && !e.d.IsPing(event) {
		e.endIn(e.d.Choices(data))
	}
	e.endBefore(w.texts)
	for _, c := range w.texts {
		if c.Stream == "" {
			w.with = append(w.with, restored(c, data, e.r))
			continue
		}
		e.begun[c.Stream] = true
		done, held := e.r.Piece(e.held[c.Stream]+provider.TextAt(data, c.Span), c.Form == provider.JSONText)
		if delete(e.held, c.Stream); held != "" {
			e.held[c.Stream] = held
		}
		w.with = append(w.with, done)
	}
	e.waiting = append(e.waiting, w)
	e.pass(e.certain())
}

// certain returns how many of the waiting events will not change: those before the
// last event of each call of which text is held.
func (e *eventRestorer) certain() int {
	n := len(e.waiting)
	for stream := range e.held {
		for i, w := range slices.Backward(e.waiting) {
			if slices.ContainsFunc(w.texts, func(c provider.CallText) bool { return c.Stream == stream }) {
				n = min(n, i)
				break
			}
		}
	}
	return n
}

// endBefore ends the calls of which text is held if texts begin another call of the same
// choice and do not continue them. JSON never ends with the beginning of a ref: such a
// call continues.
func (e *eventRestorer) endBefore(texts []provider.CallText) {
	for _, w := range e.waiting {
		for _, held := range w.texts {
			begins := func(c provider.CallText) bool {
				return c.Stream != "" && c.Choice == held.Choice && !e.begun[c.Stream]
			}
			continues := func(c provider.CallText) bool { return c.Stream == held.Stream }
			if held.Form != provider.JSONText && slices.ContainsFunc(texts, begins) && !slices.ContainsFunc(texts, continues) {
				e.end(held.Stream)
			}
		}
	}
}

// endIn ends the calls of choices, because an event says something else of them; of all
// choices if it names none.
func (e *eventRestorer) endIn(choices []string) {
	if len(choices) == 0 {
		e.release()
		return
	}
	for _, w := range e.waiting {
		for _, c := range w.texts {
			if slices.Contains(choices, c.Choice) {
				e.end(c.Stream)
			}
		}
	}
}

// end puts what is held of a call back unchanged: it was no ref.
func (e *eventRestorer) end(stream string) {
	text := e.held[stream]
	delete(e.held, stream)
	for _, w := range slices.Backward(e.waiting) {
		for i, c := range slices.Backward(w.texts) {
			if c.Stream == stream {
				w.with[i] += text
				return
			}
		}
	}
}

// release passes the waiting events on, because no call continues.
func (e *eventRestorer) release() {
	for stream := range e.held {
		e.end(stream)
	}
	e.pass(len(e.waiting))
}

// pass passes the first n waiting events on.
func (e *eventRestorer) pass(n int) {
	for _, w := range e.waiting[:n] {
		var edits []provider.Edit
		for j, c := range w.texts {
			with := w.with[j]
			if c.Stream != "" {
				if with == provider.TextAt(w.data, c.Span) {
					continue
				}
				with = provider.QuoteJSON(with)
			}
			if with != c.Of(w.data) {
				edits = append(edits, provider.Edit{Span: c.Span, With: with})
			}
		}
		if len(edits) > 0 {
			w.event = withData(w.event, provider.ApplyEdits(w.data, edits))
		}
		e.out = append(e.out, w.event...)
	}
	e.waiting = slices.Delete(e.waiting, 0, n)
}

// withData returns an event with other data.
func withData(event []byte, data string) []byte {
	var out []byte
	written := false
	for line := range bytes.Lines(event) {
		text := bytes.TrimRight(line, "\r\n")
		if !bytes.HasPrefix(text, []byte("data:")) {
			out = append(out, line...)
			continue
		}
		if written {
			continue
		}
		written = true
		for part := range strings.SplitSeq(data, "\n") {
			out = append(append(append(out, "data: "...), part...), line[len(text):]...)
		}
	}
	return out
}
