// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
)

// Notifier returns n with its listeners counted.
func (m *Metrics) Notifier(n event.Notifier) event.Notifier { return countedNotifier{n, m.followers} }

type countedNotifier struct {
	event.Notifier
	followers prometheus.Gauge
}

// Listen implements [event.Notifier].
func (n countedNotifier) Listen(c artel.ConversationID) event.Listener {
	n.followers.Inc()
	return &countedListener{Listener: n.Notifier.Listen(c), followers: n.followers}
}

type countedListener struct {
	event.Listener
	followers prometheus.Gauge
	once      sync.Once
}

// Close implements [event.Listener].
func (l *countedListener) Close() {
	l.Listener.Close()
	l.once.Do(l.followers.Dec)
}

// httpMetrics are those of requests.
type httpMetrics struct {
	seconds *prometheus.HistogramVec // face
	total   *prometheus.CounterVec   // face, status
	open    prometheus.Gauge

	mu    sync.RWMutex
	known map[httpKey]prometheus.Counter
}

type httpKey struct {
	face   string
	status int // 0: broken off before it
}

func newHTTPMetrics(m *Metrics) *httpMetrics {
	return &httpMetrics{
		seconds: m.histogram("artel_http_request_seconds", "Time of requests that are answered whole; streams of events are not timed.", callSeconds[:], "face"),
		total:   m.counter("artel_http_requests_total", "Answered requests.", "face", "status"),
		open:    m.gauge("artel_http_requests_open", "Requests that are being answered.", nil),
		known:   map[httpKey]prometheus.Counter{},
	}
}

// HTTP times the requests of next. face says to which part of the server a
// request goes, in few words.
func (m *Metrics) HTTP(next http.Handler, face func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		m.http.open.Inc()
		rec := &statusWriter{ResponseWriter: w}
		status := 0
		served, ended := m.begin(r, face)
		defer func() { // also of a handler that breaks its answer off with a panic
			m.http.open.Dec()
			f, status := face(r), cmp.Or(rec.status, status)
			if ended != nil {
				ended(status)
			}
			m.http.counter(httpKey{f, status}).Inc()
			if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
				m.http.seconds.WithLabelValues(f).Observe(time.Since(began).Seconds())
			}
		}()
		next.ServeHTTP(rec, served)
		status = http.StatusOK // unless it was written
	})
}

// begin calls onRequest, if there is one; ended is nil without.
func (m *Metrics) begin(r *http.Request, face func(*http.Request) string) (served *http.Request, ended func(status int)) {
	if m.onRequest == nil {
		return r, nil
	}
	return m.onRequest(r, face(r))
}

func (h *httpMetrics) counter(k httpKey) prometheus.Counter {
	h.mu.RLock()
	c := h.known[k]
	h.mu.RUnlock()
	if c == nil {
		status := strconv.Itoa(k.status)
		if k.status == 0 {
			status = "aborted"
		}
		c = h.total.WithLabelValues(k.face, status)
		h.mu.Lock()
		h.known[k] = c
		h.mu.Unlock()
	}
	return c
}

// A statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// ReadFrom implements [io.ReaderFrom], so that files are sent by the operating
// system.
func (w *statusWriter) ReadFrom(r io.Reader) (int64, error) { return io.Copy(w.ResponseWriter, r) }

// Unwrap is for [http.ResponseController].
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
