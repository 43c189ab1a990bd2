// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"context"
	"errors"
	"io"
)

// A window is the buffered part of a text. Bytes before pos are final and are
// emitted when more is read; offsets count from pos.
type window struct {
	ctx  context.Context
	read func([]byte) (int, error)
	emit func([]byte) error

	buf            []byte
	mark, pos, end int // buf[mark:pos] is final and not emitted; buf[pos:end] is undecided
	eof            bool
	err            error // of reading or emitting; sticky

	past    []byte // the last emitted bytes
	scratch []byte

	letters, head, room []byte // reused buffers of base64Reader
}

const (
	windowSize = 128 << 10
	pastSize   = 1 << 10 // bytes available to before
)

// whole makes the window hold a complete text.
func (w *window) whole(text []byte) { w.buf, w.end, w.eof = text, len(text), true }

// ahead returns the buffered bytes from pos.
func (w *window) ahead() []byte { return w.buf[w.pos:w.end] }

// need reports whether n bytes from pos are available, reading more if necessary.
func (w *window) need(n int) bool {
	for w.end-w.pos < n {
		if !w.fill() {
			return false
		}
	}
	return true
}

// fill reads more and reports whether there was more.
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
	for range 100 { // readers may return 0 bytes, but not forever
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

// pass keeps the next n bytes unchanged.
func (w *window) pass(n int) { w.pos += n }

// drop removes the next n bytes. The bytes before must have been emitted.
func (w *window) drop(n int) {
	w.pos += n
	w.mark = w.pos
}

// flush emits the final bytes.
func (w *window) flush() {
	if w.mark < w.pos {
		w.out(w.buf[w.mark:w.pos])
		w.mark = w.pos
	}
}

// put emits a replacement.
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

// before returns up to n bytes of the output before pos. They are valid until the
// window moves.
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
