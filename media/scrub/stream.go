// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"context"
	"io"
	"iter"
)

// NewStream begins a stream. sink is called during [Stream.Write] and
// [Stream.Close].
func NewStream(ctx context.Context, keep Sink) *Stream {
	st := &Stream{s: newScanner(ctx, keep)}
	st.s.w.emit = func(p []byte) error {
		st.out.Write(p)
		return nil
	}
	// The scanner is a coroutine: its read function suspends it until the next
	// piece arrives.
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

// Write takes the next piece and returns the scrubbed text that is final and was
// not returned before. It is empty inside of a possible match.
func (st *Stream) Write(piece string) (string, error) {
	if piece == "" || st.done {
		return "", st.err
	}
	st.in = piece
	st.next()
	return st.take(), st.err
}

// Close ends the text and returns the rest. Closing again returns "".
func (st *Stream) Close() (string, error) {
	if !st.done {
		st.last = true
		st.next()
		st.stop()
		st.done = true
	}
	return st.take(), st.err
}

// Stop drops the rest of the text. It does nothing after Close.
func (st *Stream) Stop() {
	st.stop()
	st.done = true
}

func (st *Stream) take() string {
	s := st.out.String()
	st.out.Reset()
	return s
}
