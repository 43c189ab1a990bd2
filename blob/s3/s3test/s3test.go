// SPDX-License-Identifier: Apache-2.0

// Package s3test runs a server of buckets for tests, and a proxy before it that
// fails as networks and servers do.
//
// Begin with [Start]. The server is versitygw, which scripts/setup installs. It
// keeps objects as files and does not sync them.
package s3test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// The credentials of the server.
const (
	Key    = "test"
	Secret = "test-secret"
)

// version is that of versitygw in scripts/setup.
const version = "v1.8.0"

// Program returns the path of versitygw.
func Program() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "artel", "versitygw-"+version)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("versitygw is not installed; run scripts/setup: %w", err)
	}
	return path, nil
}

// A Server is a running versitygw.
type Server struct {
	Endpoint string // http://127.0.0.1:PORT
	dir      string
}

// Start runs a server until the test ends.
func Start(tb testing.TB) *Server {
	tb.Helper()
	program, err := Program()
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{dir: tb.TempDir()}
	for range 5 { // another process may take the port first
		if err = s.run(tb, program); err == nil {
			return s
		}
	}
	tb.Fatal(err)
	return nil
}

func (s *Server) run(tb testing.TB, program string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	cmd := exec.Command(program, "--port", address, "--quiet", "--keep-alive", "posix", "--disableotmp", s.dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+Key, "ROOT_SECRET_KEY="+Secret)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	s.Endpoint = "http://" + address
	for {
		if r, err := http.Get(s.Endpoint); err == nil {
			_ = r.Body.Close()
			break
		}
		select {
		case err := <-ended:
			return fmt.Errorf("versitygw ended: %w", errors.Join(err))
		case <-time.After(10 * time.Millisecond):
		}
	}
	tb.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		_ = cmd.Process.Kill()
		<-ended
	})
	return nil
}

// Bucket makes a bucket unless it is there, and returns its folder, in which each
// object is a file.
func (s *Server) Bucket(tb testing.TB, name string) string {
	tb.Helper()
	dir := filepath.Join(s.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// Address returns the address of a bucket, or of a prefix in it, at an endpoint:
// that of the server or of a proxy.
func Address(endpoint, bucket string) string {
	return "s3://" + Key + ":" + Secret + "@" + bucket + "?region=us-east-1&endpoint=" + url.QueryEscape(endpoint)
}

// A Fault answers a request, or passes it on to next.
type Fault func(w http.ResponseWriter, r *http.Request, next http.Handler)

// A Proxy passes requests on to a server, with faults.
type Proxy struct {
	Endpoint string

	mu    sync.Mutex
	fault Fault
}

// Proxy runs a proxy before the server until the test ends.
func (s *Server) Proxy(tb testing.TB) *Proxy {
	tb.Helper()
	target, err := url.Parse(s.Endpoint)
	if err != nil {
		tb.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true}
	next := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host // the Host is part of the signature
		},
		Transport:    transport,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     nil,
	}
	p := &Proxy{}
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		fault := p.fault
		p.mu.Unlock()
		if fault == nil {
			next.ServeHTTP(w, r)
			return
		}
		fault(w, r, next)
	}))
	front.Start()
	p.Endpoint = front.URL
	tb.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		transport.CloseIdleConnections()
	})
	return p
}

// Set replaces the fault; nil: none.
func (p *Proxy) Set(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// First applies a fault to the first n requests of a method, "" for all of them.
func First(n int, method string, f Fault) Fault {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		mu.Lock()
		hit := n > 0 && (method == "" || r.Method == method)
		if hit {
			n--
		}
		mu.Unlock()
		if hit {
			f(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	}
}

// Status answers with a status and no more.
func Status(code int) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(code) }
}

// LoseAnswer lets the server work and loses its answer.
func LoseAnswer(w http.ResponseWriter, r *http.Request, next http.Handler) {
	next.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// Away ends the connection without an answer.
func Away(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// Stall reads the request and answers nothing until the client gives up.
func Stall(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
	_, _ = io.Copy(io.Discard, r.Body) // otherwise the end of the connection is not seen
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// Cut breaks answers off after n bytes.
func Cut(n int) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(&cutWriter{w, n}, r)
	}
}

type cutWriter struct {
	http.ResponseWriter
	left int
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if len(p) <= w.left {
		w.left -= len(p)
		return w.ResponseWriter.Write(p)
	}
	_, _ = w.ResponseWriter.Write(p[:w.left])
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// Slow passes an answer on in small pieces, with a pause after each.
func Slow(piece int, pause time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(&slowWriter{w, piece, pause}, r)
	}
}

type slowWriter struct {
	http.ResponseWriter
	piece int
	pause time.Duration
}

func (w *slowWriter) Write(p []byte) (int, error) {
	for n := 0; n < len(p); {
		k, err := w.ResponseWriter.Write(p[n:min(len(p), n+w.piece)])
		if n += k; err != nil {
			return n, err
		}
		if err := http.NewResponseController(w.ResponseWriter).Flush(); err != nil {
			return n, err
		}
		time.Sleep(w.pause)
	}
	return len(p), nil
}
