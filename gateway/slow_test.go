// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/internal/sse"
	"github.com/artelhq/artel/model"
)

// exact is how old the time for a write may be.
const exact = sse.WriteTimeout / 10

// slowly is a connection whose time for a write passes while the model thinks.
type slowly struct {
	*httptest.ResponseRecorder
	limited time.Time // when the time of a write was limited last
	late    int
}

// SetWriteDeadline is what [http.ResponseController] calls.
func (s *slowly) SetWriteDeadline(time.Time) error {
	s.limited = time.Now()
	return nil
}

// Write implements [http.ResponseWriter].
func (s *slowly) Write(b []byte) (int, error) {
	if time.Since(s.limited) > exact {
		s.late++
	}
	return s.ResponseRecorder.Write(b)
}

// Flush implements [http.Flusher].
func (s *slowly) Flush() {}

// TestThinksLongerThanAWriteMayTake: the time that a client has for taking a
// piece begins when there is a piece, on both ways.
func TestThinksLongerThanAWriteMayTake(t *testing.T) {
	synctest.Test(t, testThinksLong)
}

func testThinksLong(t *testing.T) {
	b := newBench(t, setup{bubble: true})
	think := func() { time.Sleep(exact + 50*time.Millisecond) }
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 2 {
			if i > 0 {
				think()
			}
			_, _ = io.WriteString(w, "data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one\"}}]}\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	})
	b.answer = func(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			if !yield(model.TextDelta("one"), nil) {
				return
			}
			think()
			_ = yield(model.TextDelta("two"), nil) && yield(model.Finish{Reason: model.StopEnd}, nil)
		}
	}
	var both sync.WaitGroup
	for _, service := range []string{"chat", "other"} {
		both.Go(func() {
			w := &slowly{ResponseRecorder: httptest.NewRecorder()}
			r := httptest.NewRequestWithContext(apptest.Context(t), http.MethodPost, "/v1/chat/completions", strings.NewReader(asks(service, `,"stream":true`)))
			b.handler.ServeHTTP(w, r)
			if w.Code != 200 || !strings.HasSuffix(w.Body.String(), "data: [DONE]\n\n") || w.late > 0 {
				t.Errorf("%s: %d %q, %d writes without a time of their own", service, w.Code, w.Body, w.late)
			}
		})
	}
	both.Wait()
}
