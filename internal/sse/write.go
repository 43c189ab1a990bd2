// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"net/http"
	"strings"
	"time"

	"github.com/artelhq/artel"
)

// Append appends e to b as one frame. Line breaks in Data become LF; Name and
// ID must have none. [Events] reads the frame as e.
func Append(b []byte, e Event) []byte {
	if e.ID != "" {
		b = append(append(append(b, "id: "...), e.ID...), '\n')
	}
	if e.Name != "" {
		b = append(append(append(b, "event: "...), e.Name...), '\n')
	}
	data := e.Data
	if strings.Contains(data, "\r") {
		data = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(data)
	}
	for line := range strings.SplitSeq(data, "\n") {
		b = append(append(append(b, "data: "...), line...), '\n')
	}
	return append(b, '\n')
}

// WriteTimeout is how long one write may take. A slower reader is disconnected
// and can resume.
const WriteTimeout = time.Minute

// A Writer sends a stream to one HTTP client. It is used by one goroutine.
type Writer struct {
	w   http.ResponseWriter
	out *http.ResponseController
	buf []byte
	at  time.Time // when the write deadline was last set
}

// NewWriter begins the response: status 200 and headers against caching and
// buffering.
func NewWriter(w http.ResponseWriter) (*Writer, error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx
	s := &Writer{w: w, out: http.NewResponseController(w)}
	w.WriteHeader(http.StatusOK)
	return s, s.flush()
}

// Send sends one event at once, after what was gathered.
func (s *Writer) Send(e Event) error {
	s.buf = Append(s.buf, e)
	return s.Flush()
}

// gathered is how many bytes a Writer gathers before it sends them.
const gathered = 32 << 10

// Gather adds a frame, as Append makes it, to what the next Flush, Send or
// KeepAlive sends.
func (s *Writer) Gather(frame []byte) error {
	s.buf = append(s.buf, frame...)
	if len(s.buf) < gathered {
		return nil
	}
	return s.Flush()
}

// Flush sends what was gathered in one write.
func (s *Writer) Flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	err := s.write()
	if s.buf = s.buf[:0]; cap(s.buf) > gathered/8 {
		s.buf = nil // silent connections hold no memory
	}
	return err
}

// KeepAlive sends a comment, which readers ignore, so that proxies do not take
// the silence for the end.
func (s *Writer) KeepAlive() error {
	s.buf = append(s.buf, ": keep-alive\n\n"...)
	return s.Flush()
}

func (s *Writer) write() error {
	if now := time.Now(); now.Sub(s.at) > WriteTimeout/10 { // setting it costs as much as a short write, so it is not exact
		_ = s.out.SetWriteDeadline(now.Add(WriteTimeout)) // not every connection supports it
		s.at = now
	}
	if _, err := s.w.Write(s.buf); err != nil {
		return gone(err)
	}
	return s.flush()
}

func (s *Writer) flush() error {
	if err := s.out.Flush(); err != nil {
		return gone(err)
	}
	return nil
}

func gone(err error) error {
	return artel.Errorf(artel.Canceled, "sse.Writer", "", "the reader has gone: %w", err)
}
