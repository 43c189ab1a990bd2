// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// The least pace at which a client takes an answer: a piece of n bytes may take
// answerPatience and n/answerRate more.
const (
	answerPatience = time.Minute
	answerRate     = 4 << 10   // bytes per second
	answerPiece    = 256 << 10 // the most that is written at once
)

// inPieces writes p by pieces, before each of which it calls allow.
func inPieces(p []byte, allow func(n int64), write func([]byte) (int, error)) (sent int, err error) {
	for first := true; first || len(p) > sent && err == nil; first = false {
		piece := p[sent:min(len(p), sent+answerPiece)]
		allow(int64(len(piece)))
		var n int
		n, err = write(piece)
		sent += n
	}
	return sent, err
}

func answerDeadline(n int64) time.Time {
	return time.Now().Add(answerPatience + time.Duration(n)*time.Second/answerRate)
}

// PacedListener returns l with connections that end when a client does not take what
// is written to it, so that it cannot hold an answer for ever. Handlers that set a
// deadline for writing themselves keep theirs. Below TLS it also covers handshakes and
// the frames of HTTP/2; for single streams of those see [Paced].
func PacedListener(l net.Listener) net.Listener { return pacedListener{l} }

type pacedListener struct{ net.Listener }

// Accept implements [net.Listener].
func (l pacedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &pacedConn{Conn: c}, nil
}

type pacedConn struct {
	net.Conn
	set atomic.Bool // the server has set a deadline for writing
}

// SetWriteDeadline implements [net.Conn].
func (c *pacedConn) SetWriteDeadline(t time.Time) error {
	c.set.Store(!t.IsZero())
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements [net.Conn].
func (c *pacedConn) SetDeadline(t time.Time) error {
	c.set.Store(!t.IsZero())
	return c.Conn.SetDeadline(t)
}

func (c *pacedConn) allow(n int64) {
	if !c.set.Load() {
		_ = c.Conn.SetWriteDeadline(answerDeadline(n))
	}
}

// Write implements [io.Writer].
func (c *pacedConn) Write(p []byte) (int, error) {
	return inPieces(p, c.allow, c.Conn.Write)
}

// ReadFrom implements [io.ReaderFrom], so that the kernel can copy files.
func (c *pacedConn) ReadFrom(r io.Reader) (sent int64, err error) {
	left, limited := r.(*io.LimitedReader)
	for {
		piece := int64(answerPiece)
		if limited {
			piece = min(piece, left.N)
		}
		c.allow(piece)
		var n int64
		if limited { // the connection looks for a file in one such reader
			part := &io.LimitedReader{R: left.R, N: piece}
			n, err = io.Copy(c.Conn, part)
			left.N -= n
		} else {
			n, err = io.CopyN(c.Conn, r, piece)
		}
		if sent += n; err != nil || n < piece || limited && left.N <= 0 {
			if err == io.EOF {
				err = nil
			}
			return sent, err
		}
	}
}

// A pacedStream is the answer on a stream of HTTP/2, whose client may take other
// streams and not this one.
type pacedStream struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Unwrap is for [http.ResponseController].
func (s *pacedStream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Write implements [io.Writer].
func (s *pacedStream) Write(p []byte) (int, error) {
	n, err := inPieces(p, s.allow, s.ResponseWriter.Write)
	_ = s.control.SetWriteDeadline(time.Time{}) // the handler may take any time until the next write
	return n, err
}

// Flush implements [http.Flusher].
func (s *pacedStream) Flush() { _ = s.FlushError() }

// FlushError is for [http.ResponseController].
func (s *pacedStream) FlushError() error {
	s.allow(0)
	err := s.control.Flush()
	_ = s.control.SetWriteDeadline(time.Time{})
	return err
}

// allow limits the time of the next piece, or of what is left when the handler has
// returned.
func (s *pacedStream) allow(n int64) { _ = s.control.SetWriteDeadline(answerDeadline(n)) }
