// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"io"
	"net/http"
	"time"
)

// The least pace of a request body: a sender that is waited for longer than
// bodyPatience, and longer than its bytes take at bodyRate, is cut off. Uploads
// of any length pass on any usable network, and a byte now and then does not
// hold a connection.
const (
	bodyPatience = time.Minute
	bodyRate     = 4 << 10 // bytes per second
)

// Paced ends requests whose body comes too slowly. Only the time in which next
// waits for the sender counts, and next may take any time. It also ends answers on
// streams of HTTP/2 that the client does not take; [PacedListener] does so for
// connections.
func Paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = &pacedBody{ReadCloser: r.Body, control: http.NewResponseController(w), left: bodyPatience}
		}
		if r.ProtoMajor >= 2 {
			s := &pacedStream{w, http.NewResponseController(w)}
			defer s.allow(0)
			w = s
		}
		next.ServeHTTP(w, r)
	})
}

// A pacedBody sets a deadline for each read.
type pacedBody struct {
	io.ReadCloser
	control *http.ResponseController
	left    time.Duration // that the sender may still be waited for
	ended   bool
}

// Read implements [io.Reader].
func (b *pacedBody) Read(p []byte) (int, error) {
	if b.ended {
		return b.ReadCloser.Read(p)
	}
	begin := time.Now()
	_ = b.control.SetReadDeadline(begin.Add(b.left)) // not supported by recorders of tests
	n, err := b.ReadCloser.Read(p)
	b.left += time.Duration(n)*time.Second/bodyRate - time.Since(begin)
	b.left = max(b.left, time.Millisecond)
	if err != nil {
		b.ended = true
	}
	if err == io.EOF { // from here on the server watches whether the client leaves
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
