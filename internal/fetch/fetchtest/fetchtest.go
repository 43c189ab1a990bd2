// SPDX-License-Identifier: Apache-2.0

// Package fetchtest is a network in memory for tests of HTTP clients and servers.
// Reads and writes on its connections let the clock of a testing/synctest bubble
// advance; those on sockets do not.
package fetchtest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Serve serves h in memory until the test ends. The client reaches it under
// every address; the server's URL is "http://127.0.0.1:80".
func Serve(t testing.TB, h http.Handler) (*httptest.Server, *http.Client) {
	l := &listener{accept: make(chan net.Conn), closed: make(chan struct{})}
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	client := &http.Client{Transport: &http.Transport{DialContext: l.dial}}
	t.Cleanup(client.CloseIdleConnections)
	return s, client
}

// A listener accepts the connections that dial opens.
type listener struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.accept <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements [net.Listener].
func (*listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }
