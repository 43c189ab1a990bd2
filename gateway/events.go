// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// maxEvent is the size of the largest event that is passed on, in bytes. An
// event may hold a picture; it is in memory as a whole.
const maxEvent = 32 << 20

// bufferSize is the initial size of read buffers. Few responses need a larger
// one, so buffers of this size are pooled.
const bufferSize = 16 << 10

// A bufferPool recycles read buffers.
type bufferPool struct{ pool sync.Pool }

// get returns a buffer of [bufferSize] bytes with arbitrary content.
func (s *bufferPool) get() *[bufferSize]byte {
	if b, ok := s.pool.Get().(*[bufferSize]byte); ok {
		return b
	}
	return new([bufferSize]byte)
}

// put returns a buffer to the pool; the caller must not use it any more.
func (s *bufferPool) put(b *[bufferSize]byte) { s.pool.Put(b) }

// A readerPool recycles readers with a buffer of [bufferSize] bytes.
type readerPool struct{ pool sync.Pool }

// get returns a reader of r.
func (s *readerPool) get(r io.Reader) *bufio.Reader {
	if b, ok := s.pool.Get().(*bufio.Reader); ok {
		b.Reset(r)
		return b
	}
	return bufio.NewReaderSize(r, bufferSize)
}

// put returns a reader to the pool; the caller must not use it any more.
func (s *readerPool) put(b *bufio.Reader) {
	b.Reset(nil)
	s.pool.Put(b)
}

var errEventTooLarge = errors.New("the service sent an event of more than 32 MiB")

// An eventReader splits a stream of server-sent events into runs of complete
// events, without changing a byte.
type eventReader struct {
	r        io.Reader
	buf      []byte
	from, to int // unread part of buf
	tail     int // start of the last event that next returned
	scanned  int // bytes of the unread part that hold no end of an event
	err      error
}

// newEventReader reads r into b, and into a larger buffer if an event needs
// one.
func newEventReader(r io.Reader, b *[bufferSize]byte) *eventReader {
	return &eventReader{r: r, buf: b[:]}
}

// last returns the last event of the run that next returned, valid as long as
// the run.
func (e *eventReader) last() []byte { return e.buf[e.tail:e.from] }

// next returns all complete events that have arrived, at least one, each with
// the blank line that ends it. They are valid until the following call. At the
// end of r an incomplete event is dropped and the error is
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

// complete returns the length of the complete events in the buffer.
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

// eventEnd returns the length of the first event in b. If it is incomplete, the
// result is minus the number of bytes that were scanned; scanned is that of the
// call before.
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

// firstOf returns the first of a run of complete events.
func firstOf(run []byte) []byte {
	if n := eventEnd(run, 0); n > 0 {
		return run[:n]
	}
	return run // lines end in CR alone, and the byte after the last one is missing
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

// lineEnd returns the length of the line end at the start of b; 0 if there is
// none or it may be incomplete.
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

// fill reads once. It never moves what the last run holds while that is in use:
// the run ended with the call of next that fills.
func (e *eventReader) fill() error {
	if e.from == e.to {
		e.from, e.to = 0, 0
	}
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
