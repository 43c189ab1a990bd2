// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// newTransport returns a transport whose connections end when nothing moves on
// them for a while. A limit for whole requests would end long transfers.
func newTransport(stall time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: min(stall, 5*time.Second)}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &watched{c, stall}, nil
		},
		TLSHandshakeTimeout:   min(stall, 10*time.Second),
		ResponseHeaderTimeout: stall,
		ExpectContinueTimeout: time.Second,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       stall / 2,
		ReadBufferSize:        64 << 10,
		WriteBufferSize:       64 << 10,
		DisableCompression:    true, // bytes come back as they were put
	}
}

// A watched connection fails if nothing moves on it for a while. Each read or
// write moves both deadlines, since one waits while the other works.
type watched struct {
	net.Conn
	stall time.Duration
}

func (c *watched) Read(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *watched) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// A bodyGuard stops reading the body of a request when it has its response. A
// [http.Transport] may read on after an early error response, while the client
// sends the same reader again and buffers go back into their pool.
type bodyGuard struct{ *http.Transport }

func (g bodyGuard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return g.Transport.RoundTrip(r)
	}
	body := &guarded{body: r.Body}
	defer body.end()
	sent := r.Clone(r.Context())
	sent.Body = body
	return g.Transport.RoundTrip(sent)
}

// guarded is a body that can be read until end.
type guarded struct {
	mu    sync.Mutex
	body  io.ReadCloser
	ended bool
}

func (b *guarded) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.body.Read(p)
}

func (b *guarded) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.body.Close()
}

func (b *guarded) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}
