// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// slowly is a connection whose time for a write passes while the model thinks.
type slowly struct {
	*httptest.ResponseRecorder
	ready bool
	late  int
}

// SetWriteDeadline is what [http.ResponseController] calls.
func (s *slowly) SetWriteDeadline(time.Time) error {
	s.ready = true
	return nil
}

// Write implements [http.ResponseWriter].
func (s *slowly) Write(b []byte) (int, error) {
	if !s.ready {
		s.late++
	}
	return s.ResponseRecorder.Write(b)
}

// Flush implements [http.Flusher].
func (s *slowly) Flush() { s.ready = false }

// TestThinksLongerThanAWriteMayTake: the time that a client has for taking a
// piece begins when there is a piece, on both ways.
func TestThinksLongerThanAWriteMayTake(t *testing.T) {
	b := newBench(t)
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			_, _ = io.WriteString(w, "data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one\"}}]}\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	})
	for _, service := range []string{"chat", "other"} {
		w := &slowly{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(asks(service, `,"stream":true`)))
		b.handler.ServeHTTP(w, r)
		if w.Code != 200 || !strings.HasSuffix(w.Body.String(), "data: [DONE]\n\n") || w.late > 0 {
			t.Errorf("%s: %d %q, %d writes without a time of their own", service, w.Code, w.Body, w.late)
		}
	}
}
