// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/artelhq/artel/httpapi"
)

// wire is a listener of connections in memory.
type wire chan net.Conn

// Accept implements [net.Listener].
func (w wire) Accept() (net.Conn, error) {
	c, ok := <-w
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close implements [net.Listener].
func (w wire) Close() error { return nil }

// Addr implements [net.Listener].
func (w wire) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (w wire) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	w <- far
	return near, nil
}

// paced serves h on connections in memory until the test ends.
func paced(t *testing.T, h http.HandlerFunc) wire {
	w := make(wire)
	s := &http.Server{Handler: httpapi.Paced(h), Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(httpapi.PacedListener(w)) }()
	t.Cleanup(func() { close(w); _ = s.Close(); <-done })
	return w
}

const answerSize = 8 << 20

// TestSlowReaders: a client that asked for a large answer and never read it held the
// handler for ever. One that reads slowly gets all.
func TestSlowReaders(t *testing.T) {
	for name, pause := range map[string]time.Duration{"silence": 24 * time.Hour, "8 kB per second": 500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wrote := make(chan error, 1)
				w := paced(t, func(w http.ResponseWriter, r *http.Request) {
					_, err := io.Copy(w, strings.NewReader(strings.Repeat("x", answerSize)))
					wrote <- err
				})
				c, _ := w.dial(t.Context(), "", "")
				defer c.Close()
				if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				enough := make(chan struct{})
				defer close(enough)
				go func() {
					p := make([]byte, 4<<10)
					for {
						select {
						case <-time.After(pause):
						case <-enough:
							return
						}
						if _, err := c.Read(p); err != nil {
							return
						}
					}
				}()
				err := <-wrote
				if slow := pause < time.Minute; slow && err != nil || !slow && (!errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) > 10*time.Minute) {
					t.Errorf("after %v: %v", time.Since(begin), err)
				}
			})
		})
	}
}

// TestLongAnswers: a handler may be silent for hours between two pieces, and before
// its last one.
func TestLongAnswers(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := paced(t, func(w http.ResponseWriter, r *http.Request) {
				for range 3 {
					_, _ = io.WriteString(w, "piece ")
					_ = http.NewResponseController(w).Flush()
					time.Sleep(3 * time.Hour)
				}
				_, _ = io.WriteString(w, "last")
				time.Sleep(3 * time.Hour)
			})
			resp, err := client(t, w, http2).Get("http://127.0.0.1/")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "piece piece piece last" || (resp.ProtoMajor == 2) != http2 {
				t.Errorf("%s: got %q, %v", resp.Proto, b, err)
			}
		})
	}
}

func client(t *testing.T, w wire, http2 bool) *http.Client {
	tr := &http.Transport{DialContext: w.dial, Protocols: new(http.Protocols)}
	tr.Protocols.SetHTTP1(!http2)
	tr.Protocols.SetUnencryptedHTTP2(http2)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// TestSlowStreams: of two answers on one connection of HTTP/2, the one that is not
// read ends, and the other one does not.
func TestSlowStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrote := make(chan error, 1)
		w := paced(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/small" {
				_, _ = io.WriteString(w, "small")
				return
			}
			_, err := io.Copy(w, bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", 2*answerSize)), 64<<10))
			wrote <- err
		})
		c := client(t, w, true)
		resp, err := c.Get("http://127.0.0.1/large")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		begin := time.Now()
		if err := <-wrote; err == nil || time.Since(begin) > time.Hour {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		small, err := c.Get("http://127.0.0.1/small")
		if err != nil {
			t.Fatal(err)
		}
		defer small.Body.Close()
		if b, err := io.ReadAll(small.Body); err != nil || string(b) != "small" {
			t.Errorf("the other stream: %q, %v", b, err)
		}
	})
}
