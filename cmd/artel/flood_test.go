// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// idleStreams are as many as one client tries to keep open.
const idleStreams = 2_000

// A flooder is a client of HTTP/2 that writes its frames itself.
type flooder struct {
	*http2.Framer
	conn   *tls.Conn
	header []byte // of a request, with HPACK
	resets int
	ended  chan struct{} // the server ended the connection, if the answers are read

	refused chan struct{} // all streams but maxStreams of idleStreams were refused
	least   atomic.Int64  // streams that the server allows at once
}

// newFlooder connects. Without reads, the answers of the server are left unread.
func newFlooder(t *testing.T, address string, roots *x509.CertPool, method string, reads bool) *flooder {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if !reads {
		if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
	}
	f := &flooder{conn: tls.Client(c, &tls.Config{RootCAs: roots, ServerName: "artel.example", NextProtos: []string{"h2"}}), ended: make(chan struct{}), refused: make(chan struct{})}
	if _, err := io.WriteString(f.conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	f.Framer = http2.NewFramer(f.conn, f.conn)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, field := range [][2]string{{":method", method}, {":scheme", "https"}, {":authority", "artel.example"}, {":path", "/readyz"}, {"origin", "https://artel.example"}} {
		_ = e.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	f.header = b.Bytes()
	if !reads {
		return f
	}
	go func() {
		defer close(f.ended)
		for {
			frame, err := f.ReadFrame()
			if _, stream := errors.AsType[http2.StreamError](err); stream {
				continue
			}
			if err != nil {
				return
			}
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if n, ok := frame.Value(http2.SettingMaxConcurrentStreams); ok {
					f.least.Store(int64(n))
				}
			case *http2.RSTStreamFrame:
				if f.resets++; f.resets == idleStreams-maxStreams {
					close(f.refused)
				}
			}
		}
	}()
	return f
}

// TestFloodsOfHTTP2: a server with TLS ends or bounds what a client of HTTP/2 without a login
// can send without end, and answers others afterwards.
func TestFloodsOfHTTP2(t *testing.T) {
	addresses, roots := servingTLS(t)
	url := addresses[0]
	address := strings.TrimPrefix(url, "https://")
	before := runtime.NumGoroutine()
	bounded := func(what string) {
		t.Helper()
		if n := runtime.NumGoroutine() - before; n > 3*maxStreams {
			t.Errorf("%s: %d goroutines more", what, n)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		t.Logf("%s: %d goroutines more, %d MB of heap", what, runtime.NumGoroutine()-before, m.HeapAlloc>>20)
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
		defer client.CloseIdleConnections()
		resp, err := client.Get(url + "/readyz")
		if err != nil || resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
			t.Fatalf("after %s: %v %v", what, resp, err)
		}
		_ = resp.Body.Close()
	}
	open := func(f *flooder, stream uint32, end bool) error {
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: f.header, EndHeaders: true, EndStream: end})
	}

	// Requests that are taken back at once, without waiting.
	f := newFlooder(t, address, roots, "GET", true)
	for n := uint32(0); n < 20_000; n++ {
		if open(f, 2*n+1, true) != nil || f.WriteRSTStream(2*n+1, http2.ErrCodeCancel) != nil {
			break // ended by the server
		}
	}
	bounded("rapid resets")

	// Headers without an end.
	f = newFlooder(t, address, roots, "GET", true)
	var big bytes.Buffer
	_ = hpack.NewEncoder(&big).WriteField(hpack.HeaderField{Name: "x-long", Value: strings.Repeat("\x00", 4000)})
	err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.header})
	for n := 0; n < 10_000 && err == nil; n++ {
		err = f.WriteContinuation(1, false, big.Bytes())
	}
	if err == nil {
		t.Error("40 MB of headers were taken")
	}
	bounded("CONTINUATION frames")

	// Frames that want an answer, which is never read. Answers to SETTINGS frames are one for
	// all that came meanwhile.
	f = newFlooder(t, address, roots, "GET", false)
	err = nil
	for n := 0; n < 2_000_000 && err == nil; n++ {
		err = f.WritePing(false, [8]byte{})
	}
	if err == nil {
		t.Error("PING frames were taken without end")
	}
	bounded("PING frames")
	f = newFlooder(t, address, roots, "GET", true)
	for n := 0; n < 20_000 && f.WriteSettings() == nil; n++ {
	}
	bounded("SETTINGS frames")

	// Requests whose bodies never come.
	f = newFlooder(t, address, roots, "POST", true)
	for n := uint32(0); n < idleStreams; n++ {
		if open(f, 2*n+1, false) != nil {
			break
		}
	}
	select { // the streams beyond the limit are refused, or the connection is
	case <-f.ended:
	case <-f.refused:
	case <-t.Context().Done():
		t.Fatal("thousands of streams are open")
	}
	if n := f.least.Load(); n != maxStreams {
		t.Errorf("a client may have %d streams at once, want %d", n, maxStreams)
	}
	bounded("idle streams")
}
