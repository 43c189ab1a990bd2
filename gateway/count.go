// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"net/http"
	"time"

	"github.com/artelhq/artel/internal/sse"
)

// counted counts what is written, and remembers why it could not be. Each write
// has its own time: the model may think for longer than a reader may take.
type counted struct {
	w   io.Writer
	rc  *http.ResponseController
	n   *int64
	err error
}

// Write implements [io.Writer].
func (c *counted) Write(b []byte) (int, error) {
	_ = c.rc.SetWriteDeadline(time.Now().Add(sse.WriteTimeout)) // not every connection has one
	n, err := c.w.Write(b)
	*c.n += int64(n)
	if err != nil {
		c.err = err
	}
	return n, err
}
