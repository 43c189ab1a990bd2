// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// maxEvent is the largest event of a stream that is passed on, in bytes: one may
// hold a picture.
const maxEvent = 96 << 20

// bufferSize is what a stream's buffer begins with. Few answers need a larger one,
// so that buffers of this size are used again.
const bufferSize = 16 << 10

// A shelf keeps buffers for the next stream, or the next request.
type bufferPool struct{ pool sync.Pool }

// take returns a buffer of [bufferSize] bytes, which hold anything.
func (s *bufferPool) get() *[bufferSize]byte {
	if b, ok := s.pool.Get().(*[bufferSize]byte); ok {
		return b
	}
	return new([bufferSize]byte)
}

// put takes a buffer back, of which nobody looks at any part from now on.
func (s *bufferPool) put(b *[bufferSize]byte) { s.pool.Put(b) }

var errEventTooLarge = errors.New("the service sent an event of more than 96 MiB")

// events cuts a stream of server-sent events into runs of whole ones, whose bytes
// stay as they are.
type eventReader struct {
	r        io.Reader
	buf      []byte
	from, to int // what is read and not handed out
	tail     int // where the last event begins that was handed out
	scanned  int // of it, up to which no end of an event is
	err      error
}

// newEventReader reads r into a buffer, which it leaves where an event is larger.
func newEventReader(r io.Reader, b *[bufferSize]byte) *eventReader {
	return &eventReader{r: r, buf: b[:]}
}

// last is the last event of the run that next returned, and as long good.
func (e *eventReader) last() []byte { return e.buf[e.tail:e.from] }

// next returns all events that have come whole, at least one, each with the
// blank line that ends it. They are good until next is called again. At the end
// of r, what is no whole event is dropped, and the error is
// [io.ErrUnexpectedEOF].
func (e *eventReader) next() ([]byte, error) {
	for {
		if n := e.complete(); n > 0 {
			run := e.buf[e.from : e.from+n]
			e.from += n
			e.scanned = 0
			return run, nil
		}
		switch {
		case e.err == io.EOF && len(bytes.TrimSpace(e.buf[e.from:e.to])) > 0:
			return nil, io.ErrUnexpectedEOF
		case e.err != nil:
			return nil, e.err
		}
		if err := e.fill(); err != nil {
			return nil, err
		}
	}
}

// whole is the length of the events that are there.
func (e *eventReader) complete() int {
	b := e.buf[e.from:e.to]
	n := 0
	for {
		k := eventEnd(b[n:], e.scanned)
		if k <= 0 {
			if e.scanned = -k; n > 0 {
				e.scanned = 0
			}
			return n
		}
		e.tail = e.from + n
		n += k
		e.scanned = 0
	}
}

// eventEnd is the length of the event that b begins with. Where it is not whole,
// it is the negative of how far b was looked at; seen is what that was before.
func eventEnd(b []byte, seen int) int {
	i := seen
	for {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			break
		}
		next := i + n + 1
		if more := lineEnd(b[next:]); more > 0 {
			return next + more
		}
		if next == len(b) || b[next] == '\r' {
			return -i // what follows is not there yet
		}
		i = next
	}
	if i > 0 || bytes.IndexByte(b, '\r') < 0 {
		return -i
	}
	return crEnd(b)
}

// firstOf returns the first of a run of whole events.
func firstOf(run []byte) []byte {
	if n := eventEnd(run, 0); n > 0 {
		return run[:n]
	}
	return run // lines end in CR alone, and what follows the last one is not here
}

// crEnd is eventEnd for streams whose lines end in CR alone.
func crEnd(b []byte) int {
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '\r' && b[i+1] == '\r' && b[i+2] != '\n' {
			return i + 2
		}
	}
	return 0
}

// lineEnd is the length of the line end that b begins with; 0: there is none,
// or it is not certain where it ends.
func lineEnd(b []byte) int {
	switch {
	case len(b) == 0:
		return 0
	case b[0] == '\n':
		return 1
	case b[0] != '\r' || len(b) == 1:
		return 0
	case b[1] == '\n':
		return 2
	}
	return 1
}

func (e *eventReader) fill() error {
	if e.to == len(e.buf) {
		switch {
		case e.from > 0:
			e.to = copy(e.buf, e.buf[e.from:e.to])
			e.from = 0
		case len(e.buf) >= maxEvent:
			return errEventTooLarge
		default:
			grown := make([]byte, min(2*len(e.buf), maxEvent))
			e.to = copy(grown, e.buf[:e.to])
			e.buf = grown
		}
	}
	n, err := e.r.Read(e.buf[e.to:])
	e.to += n
	e.err = err
	return nil
}
