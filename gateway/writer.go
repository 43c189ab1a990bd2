// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/sse"
	"github.com/artelhq/artel/model/provider"
)

const (
	// clientTimeout is how long a client may take to read writePiece of an answer,
	// or to send bodyPiece of a request.
	clientTimeout = sse.WriteTimeout
	writePiece    = 256 << 10 // bytes
	bodyPiece     = 64 << 10  // bytes
	// aliveEvery is the silence after which a stream gets a keep-alive. Clients such
	// as Claude Code give up after 20 seconds without a byte.
	aliveEvery = 15 * time.Second
)

// A clientWriter writes one response. A write that the client does not take
// within clientTimeout ends the request. A stream in which nothing is written for
// aliveEvery gets keep-alives, also before the answer begins.
//
// Keep-alives come from another goroutine; the mutex keeps every write whole.
type clientWriter struct {
	http.ResponseWriter
	rc    *http.ResponseController
	leave context.CancelCauseFunc // ends the request if a keep-alive cannot be written

	mu      sync.Mutex
	status  int       // 0: the header is not written
	sent    bool      // a part of the answer was written: no other service can answer
	n       int64     // bytes of the body
	err     error     // of the first write that failed
	limited time.Time // when the write deadline was last set
	wrote   time.Time // when anything was last written
	alive   keepAlive
}

// A KeepAlive is what a silent stream gets.
type keepAlive struct {
	header func(http.Header) // of a response that begins with it
	ping   []byte
	timer  *time.Timer // nil: no keep-alives
}

// Unwrap is for [http.ResponseController].
func (c *clientWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// begin writes the header, set by set, unless a keep-alive did it before.
func (c *clientWriter) begin(status int, set func(http.Header)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == 0 {
		set(c.Header())
		c.status = status
		c.ResponseWriter.WriteHeader(status)
	}
}

// WriteHeader implements [http.ResponseWriter].
func (c *clientWriter) WriteHeader(status int) { c.begin(status, func(http.Header) {}) }

// Write implements [http.ResponseWriter].
func (c *clientWriter) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = true
	return c.write(b)
}

// write writes b in pieces. The deadline of the last write may have passed while
// the model was thinking. Setting it costs as much as a write, so it is not exact.
func (c *clientWriter) write(b []byte) (n int, err error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	for c.err == nil {
		c.wrote = time.Now()
		if c.wrote.Sub(c.limited) > clientTimeout/10 {
			_ = c.rc.SetWriteDeadline(c.wrote.Add(clientTimeout)) // not every connection has one
			c.limited = c.wrote
		}
		k, err := c.ResponseWriter.Write(b[n:min(len(b), n+writePiece)])
		n, c.n, c.err = n+k, c.n+int64(k), err
		if n == len(b) {
			break
		}
	}
	return n, c.err
}

// FlushError sends what was written. [http.ResponseController] calls it.
func (c *clientWriter) FlushError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flush()
}

func (c *clientWriter) flush() error {
	if c.err == nil {
		c.err = c.rc.Flush()
		if errors.Is(c.err, http.ErrNotSupported) {
			c.err = nil
		}
	}
	return c.err
}

// hasSent reports whether a part of the answer was written.
func (c *clientWriter) hasSent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent
}

// begun reports whether the header was written.
func (c *clientWriter) begun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status != 0
}

// count returns the bytes of the body so far.
func (c *clientWriter) count() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// failure returns the error of the first write that failed.
func (c *clientWriter) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// KeepAlive starts the keep-alives.
func (c *clientWriter) keepAlive(k keepAlive) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrote, c.alive = time.Now(), k
	c.alive.timer = time.AfterFunc(aliveEvery, c.ping)
}

// stop ends the keep-alives; when it returns, none is being written.
func (c *clientWriter) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alive.timer != nil {
		c.alive.timer.Stop()
		c.alive.timer = nil
	}
}

func (c *clientWriter) ping() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alive.timer == nil || c.err != nil {
		return
	}
	if wait := aliveEvery - time.Since(c.wrote); wait > 0 {
		c.alive.timer.Reset(wait)
		return
	}
	if c.status == 0 {
		c.alive.header(c.Header())
		c.status = http.StatusOK
		c.ResponseWriter.WriteHeader(c.status)
	}
	_, err := c.write(c.alive.ping)
	if err == nil {
		err = c.flush()
	}
	if err != nil {
		c.leave(writeError(err))
		return
	}
	c.alive.timer.Reset(aliveEvery)
}

func writeError(err error) error {
	if err == nil {
		return nil
	}
	return artel.Errorf(artel.Canceled, "gateway", "", "the client did not take the answer: %w", err)
}

// A clientBody reads the body of a request. The client must send each bodyPiece
// of it within clientTimeout.
type clientBody struct {
	io.ReadCloser
	rc      *http.ResponseController
	limited bool  // the deadline is set
	n       int64 // bytes since it was set
	late    bool  // the client was too slow
}

// slowClient is the error of a body that did not arrive in time.
func slowClient() *provider.Fault {
	return &provider.Fault{
		Status: http.StatusRequestTimeout, Code: "request_timeout",
		Message: fmt.Sprintf("The body of the request did not arrive: the client sent less than %d KiB in %v.", bodyPiece>>10, clientTimeout),
	}
}

// Read implements [io.Reader].
func (c *clientBody) Read(b []byte) (int, error) {
	if !c.limited {
		_ = c.rc.SetReadDeadline(time.Now().Add(clientTimeout)) // not every connection has one
		c.limited, c.n = true, 0
	}
	n, err := c.ReadCloser.Read(b)
	if c.n += int64(n); c.n >= bodyPiece {
		c.limited = false
	}
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.late = true
		err = slowClient()
	default:
		// The server watches the connection while the request is answered.
		_ = c.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}

// writeJSON responds with v as JSON.
func (x *exchange) writeJSON(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return artel.Errorf(artel.Internal, "gateway", x.entry.Endpoint, "%w", err)
	}
	return x.writeBody(body)
}

// writeBody responds with JSON.
func (x *exchange) writeBody(body []byte) error {
	x.w.begin(http.StatusOK, func(h http.Header) {
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(body)))
		x.nameConversation(h)
	})
	_, err := x.w.Write(body)
	return writeError(err)
}
