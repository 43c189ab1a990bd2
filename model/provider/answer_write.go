// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// ErrNoFinish is the error of an answer whose deltas end without a [model.Finish].
var ErrNoFinish = errors.New("the model ended without a finish")

// An EventWriter writes the events of a streamed answer.
type EventWriter struct {
	W     io.Writer
	Flush func() error // called after each event; may be nil
}

// Event writes data, without line breaks, as a server-sent event. An empty name is
// left out.
func (w EventWriter) Event(name string, data []byte) error {
	if name != "" {
		name = "event: " + name + "\n"
	}
	return w.Raw([]byte(name), []byte("data: "), data, []byte("\n\n"))
}

// Raw writes the pieces of one event, and flushes.
func (w EventWriter) Raw(pieces ...[]byte) error {
	var all []byte
	for _, p := range pieces {
		all = append(all, p...)
	}
	if _, err := w.W.Write(all); err != nil || w.Flush == nil {
		return err
	}
	return w.Flush()
}

// An EventStream is an [EventWriter] that stops with the first error.
type EventStream struct {
	EventWriter
	Err error
}

// Send writes an event, unless something failed before; err is that of its data.
func (s *EventStream) Send(name string, data []byte, err error) {
	if s.Err == nil {
		s.Err = err
	}
	if s.Err == nil {
		s.Err = s.Event(name, data)
	}
}

// WriteDeltas passes each delta to write. An error among the deltas is passed to fail,
// which may be nil, and returned. Without a [model.Finish] the error is [ErrNoFinish].
func WriteDeltas(deltas iter.Seq2[model.Delta, error], write func(model.Delta) error, fail func(error) error) error {
	finished := false
	for d, err := range deltas {
		if err != nil {
			if fail != nil {
				err = errors.Join(err, fail(err))
			}
			return err
		}
		if err := write(d); err != nil {
			return err
		}
		if _, ok := d.(model.Finish); ok {
			finished = true
		}
	}
	if !finished {
		return ErrNoFinish
	}
	return nil
}

// InOrder returns deltas so that the pieces of a call and its [model.CallDelta]
// follow each other without others between them, for dialects that write one item
// after the other. What arrives while a call is open is held back until it ends.
func InOrder(deltas iter.Seq2[model.Delta, error]) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		o := ordered{yield: yield}
		for d, err := range deltas {
			if err != nil {
				yield(nil, err)
				return
			}
			if !o.add(d) {
				return
			}
		}
	}
}

// ordered is the state of [InOrder].
type ordered struct {
	yield func(model.Delta, error) bool
	open  artel.CallID // the call whose pieces are being yielded; empty: none
	held  []model.Delta
}

// add reports false if the reader stops.
func (o *ordered) add(d model.Delta) bool {
	if o.open == "" {
		if p, ok := d.(model.CallPiece); ok {
			o.open = p.ID
		}
		return o.yield(d, nil)
	}
	switch d := d.(type) {
	case model.CallPiece:
		if d.ID == o.open {
			return o.yield(d, nil)
		}
	case model.CallDelta:
		if d.ID == o.open {
			o.open = ""
			return o.yield(d, nil) && o.release()
		}
	case model.Finish: // the open call was cut off, and so were others without an end
		o.open = ""
		for len(o.held) > 0 {
			if !o.release() {
				return false
			}
			o.open = ""
		}
		return o.yield(d, nil)
	}
	o.held = append(o.held, d)
	return true
}

// release adds what was held back again. A call that has ended meanwhile needs no
// pieces.
func (o *ordered) release() bool {
	held := o.held
	o.held = nil
	ended := map[artel.CallID]bool{}
	for _, d := range held {
		if c, ok := d.(model.CallDelta); ok {
			ended[c.ID] = true
		}
	}
	for _, d := range held {
		if p, ok := d.(model.CallPiece); ok && ended[p.ID] {
			continue
		}
		if !o.add(d) {
			return false
		}
	}
	return true
}

// WithoutPieces returns deltas without the pieces of calls.
func WithoutPieces(deltas iter.Seq2[model.Delta, error]) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for d, err := range deltas {
			if _, piece := d.(model.CallPiece); !piece && !yield(d, err) {
				return
			}
		}
	}
}

// Rest returns what is still to be written of the arguments of a call whose pieces
// are sent: nothing if the pieces are no beginning of the whole, which then were
// spelled in another way.
func Rest(whole, sent string) string {
	rest, ok := strings.CutPrefix(whole, sent)
	if !ok {
		return ""
	}
	return rest
}
