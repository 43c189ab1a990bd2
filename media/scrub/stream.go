// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"context"
	"io"
	"iter"
)

// NewStream begins a stream. keep is called while [Stream.Write] or
// [Stream.Close] is.
func NewStream(ctx context.Context, keep Sink) *Stream {
	st := &Stream{s: newScanner(ctx, keep)}
	st.s.w.emit = func(p []byte) error {
		st.out.Write(p)
		return nil
	}
	// The scanner asks for more where it stands, and goes on there when more
	// has come: a coroutine, not a goroutine.
	st.next, st.stop = iter.Pull(func(wait func(struct{}) bool) {
		st.s.w.read = func(p []byte) (int, error) {
			for st.in == "" {
				if st.last {
					return 0, io.EOF
				}
				if !wait(struct{}{}) {
					return 0, io.ErrClosedPipe // stopped
				}
			}
			n := copy(p, st.in)
			st.in = st.in[n:]
			return n, nil
		}
		st.err = st.s.run()
		st.done = true
	})
	return st
}

// Write takes the next piece and returns what is certain of the text so far and
// was not returned before. It may be empty while a hit goes on, or while what
// came may yet become one.
func (st *Stream) Write(piece string) (string, error) {
	if piece == "" || st.done {
		return "", st.err
	}
	st.in = piece
	st.next()
	return st.take(), st.err
}

// Close ends the text and returns the rest of it. Closing again returns
// nothing.
func (st *Stream) Close() (string, error) {
	if !st.done {
		st.last = true
		st.next()
		st.stop()
		st.done = true
	}
	return st.take(), st.err
}

// Stop ends the text where it is not closed, and drops what was held back. Of
// a stream that was closed it changes nothing.
func (st *Stream) Stop() {
	st.stop()
	st.done = true
}

func (st *Stream) take() string {
	s := st.out.String()
	st.out.Reset()
	return s
}
