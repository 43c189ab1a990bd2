// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"time"
)

// counted counts what is written, and remembers why it could not be.
type counted struct {
	w   io.Writer
	n   *int64
	err error
}

// Write implements [io.Writer].
func (c *counted) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	*c.n += int64(n)
	if err != nil {
		c.err = err
	}
	return n, err
}

func deadline(after time.Duration) time.Time { return time.Now().Add(after) }
