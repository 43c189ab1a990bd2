// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/sse"
)

// A deadlineWriter counts bytes and remembers the error. Each write has its own
// deadline: the model may think longer than a client may take to read.
type deadlineWriter struct {
	w   io.Writer
	rc  *http.ResponseController
	n   *int64
	err error
}

// Write implements [io.Writer].
func (c *deadlineWriter) Write(b []byte) (int, error) {
	_ = c.rc.SetWriteDeadline(time.Now().Add(sse.WriteTimeout)) // not every connection supports it
	n, err := c.w.Write(b)
	*c.n += int64(n)
	if err != nil {
		c.err = err
	}
	return n, err
}

// A statusWriter records the status and the size of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
	n      int64
}

// WriteHeader implements [http.ResponseWriter].
func (c *statusWriter) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (c *statusWriter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n += int64(n)
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
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.started = true
	n, err := x.w.Write(body)
	x.entry.BytesOut = int64(n)
	return writeError(err)
}
