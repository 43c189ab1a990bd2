// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"context"
	"errors"
	"io"
)

// A window is the part of a text that is looked at. What lies before pos is
// decided, and goes out when more is read; offsets count from pos.
type window struct {
	ctx  context.Context
	read func([]byte) (int, error)
	emit func([]byte) error

	buf            []byte
	mark, pos, end int // buf[mark:pos] is decided and not out yet; buf[pos:end] is not decided
	eof            bool
	err            error // of reading or emitting; it stays

	past    []byte // the end of what went out
	scratch []byte

	letters, head, room []byte // of the payload that is read, one after the other
}

const (
	windowSize = 128 << 10
	pastSize   = 1 << 10 // what may be looked back at
)

// whole makes all of a text the window.
func (w *window) whole(text []byte) { w.buf, w.end, w.eof = text, len(text), true }

// ahead is what is there of the text, from pos.
func (w *window) ahead() []byte { return w.buf[w.pos:w.end] }

// need reports whether n bytes are there from pos, after reading where it has
// to.
func (w *window) need(n int) bool {
	for w.end-w.pos < n {
		if !w.fill() {
			return false
		}
	}
	return true
}

// fill reads more, and reports whether there was more.
func (w *window) fill() bool {
	if w.eof || w.err != nil {
		return false
	}
	w.flush()
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err != nil {
		return false
	}
	if w.end == len(w.buf) {
		if w.pos > len(w.buf)/2 || w.pos > 0 && w.end-w.pos < windowSize {
			w.end = copy(w.buf, w.buf[w.pos:w.end])
		} else {
			grown := make([]byte, max(windowSize, 2*len(w.buf)))
			w.end = copy(grown, w.buf[w.pos:w.end])
			w.buf = grown
		}
		w.mark, w.pos = 0, 0
	}
	for range 100 { // readers may return nothing, though not for ever
		n, err := w.read(w.buf[w.end:])
		w.end += n
		if errors.Is(err, io.EOF) {
			w.eof = true
		} else if err != nil {
			w.err = err
		}
		if n > 0 || err != nil {
			return n > 0
		}
	}
	w.err = io.ErrNoProgress
	return false
}

// pass decides that the next n bytes stay as they are.
func (w *window) pass(n int) { w.pos += n }

// drop takes the next n bytes out. What is before them has to be out.
func (w *window) drop(n int) {
	w.pos += n
	w.mark = w.pos
}

// flush lets go of what is decided.
func (w *window) flush() {
	if w.mark < w.pos {
		w.out(w.buf[w.mark:w.pos])
		w.mark = w.pos
	}
}

// put writes text that was not in the input.
func (w *window) put(s string) {
	w.flush()
	w.out([]byte(s))
}

func (w *window) out(p []byte) {
	if w.err == nil {
		w.err = w.emit(p)
	}
	if len(p) >= pastSize {
		w.past = append(w.past[:0], p[len(p)-pastSize:]...)
		return
	}
	if over := len(w.past) + len(p) - pastSize; over > 0 {
		w.past = w.past[:copy(w.past, w.past[over:])]
	}
	w.past = append(w.past, p...)
}

// before returns the last bytes of the output that ends at pos, at most n of
// them. They are good until the window moves.
func (w *window) before(n int) []byte {
	pending := w.buf[w.mark:w.pos]
	if len(pending) >= n {
		return pending[len(pending)-n:]
	}
	rest := min(n-len(pending), len(w.past))
	if rest == 0 {
		return pending
	}
	w.scratch = append(append(w.scratch[:0], w.past[len(w.past)-rest:]...), pending...)
	return w.scratch
}
