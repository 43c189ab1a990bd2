// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/fetch/fetchtest"
)

// A drip sends one byte of a body after the other.
type drip struct {
	n     int // bytes
	pause time.Duration
}

// Read implements [io.Reader].
func (d *drip) Read(p []byte) (int, error) {
	if d.n == 0 {
		return 0, io.EOF
	}
	time.Sleep(d.pause)
	n := min(len(p), d.n, 4<<10)
	if d.pause > time.Second {
		n = 1
	}
	clear(p[:n])
	d.n -= n
	return n, nil
}

// TestSlowBodies: one byte and then silence held a connection for as long as the
// sender liked. Long uploads and long answers take as long as they need.
func TestSlowBodies(t *testing.T) {
	for _, tt := range []struct {
		name string
		body io.Reader
		ok   bool
	}{
		{"silence", &drip{2, time.Hour}, false},
		{"a byte now and then", &drip{1000, 20 * time.Second}, false},
		{"an hour of upload", &drip{3600 * (8 << 10), 500 * time.Millisecond}, true},
		{"a short body and a long answer", strings.NewReader("x"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := httpapi.Paced(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						w.WriteHeader(http.StatusBadRequest)
						return
					}
					time.Sleep(10 * time.Minute)
					if r.Context().Err() != nil {
						w.WriteHeader(http.StatusInternalServerError)
					}
					_, _ = io.WriteString(w, "done")
				}))
				s, client := fetchtest.Serve(t, h)
				begin := time.Now()
				resp, err := client.Post(s.URL, "text/plain", tt.body)
				if err == nil {
					defer resp.Body.Close()
				}
				took := time.Since(begin)
				defer time.Sleep(24 * time.Hour) // of the bubble: the sender notices that it is cut off
				switch {
				case tt.ok && (err != nil || resp.StatusCode != 200):
					t.Errorf("got %v, %v", resp, err)
				case !tt.ok && (err == nil && resp.StatusCode == 200 || took > 3*time.Hour):
					t.Errorf("after %v: got %v, %v", took, resp, err)
				}
			})
		})
	}
}
