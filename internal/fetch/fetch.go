// SPDX-License-Identifier: Apache-2.0

// Package fetch provides the HTTP client for all requests that leave the process.
//
// Begin with [NewClient]. The client refuses to connect to loopback, private,
// link-local (including cloud metadata), multicast and reserved addresses. It
// checks the address of each connection after names are resolved, so neither a
// redirect nor a name that resolves differently the second time reaches an inner
// network. [ReadAll] reads a body with a limit.
//
// The creator of a client decides whether it may reach the private network.
package fetch

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/artelhq/artel"
)

// Options configure a client.
type Options struct {
	AllowPrivate    bool                                  // loopback, private and shared (CGNAT) addresses too, for endpoints that the operator named; false: public ones only
	Proxy           func(*http.Request) (*url.URL, error) // as in [http.Transport]; the guard then sees the proxy's address, and targets given as names are the proxy's to judge; nil: none, whatever the environment says
	Resolver        *net.Resolver                         // nil: the system's
	DialTimeout     time.Duration                         // for connecting, and again for the TLS handshake; 0: 10 s
	ResponseTimeout time.Duration                         // from the request sent to the response's header; 0: none, only the context
	MaxRedirects    int                                   // 0: 5; [SameOrigin]; otherwise negative: redirects are returned, not followed
	IdlePerHost     int                                   // connections to a host that are kept for the next request; 0: 16
}

// SameOrigin in Options.MaxRedirects follows up to 5 redirects of GET and HEAD to
// the same scheme, host and port, and refuses others, so that a service cannot
// send requests and their keys elsewhere.
const SameOrigin = -2

// NewClient returns a guarded client. It has no total timeout, because
// responses may be streams: bound calls by their contexts. It is safe for
// concurrent use; idle connections are closed after 90 s, or by
// CloseIdleConnections.
//
// A refused address is an [*artel.Error] of kind Denied inside the
// [*url.Error].
func NewClient(o Options) *http.Client {
	if o.DialTimeout <= 0 {
		o.DialTimeout = 10 * time.Second
	}
	if o.MaxRedirects == 0 {
		o.MaxRedirects = maxRedirects
	}
	dialer := &net.Dialer{
		Timeout:   o.DialTimeout,
		KeepAlive: 30 * time.Second,
		Resolver:  o.Resolver,
		Control:   guard{o.AllowPrivate}.control,
	}
	return &http.Client{
		Transport: &schemes{&http.Transport{
			Proxy:                 o.Proxy,
			DialContext:           dialer.DialContext,
			ForceAttemptHTTP2:     true,
			TLSHandshakeTimeout:   o.DialTimeout,
			ResponseHeaderTimeout: o.ResponseTimeout,
			ExpectContinueTimeout: time.Second,
			IdleConnTimeout:       90 * time.Second,
			MaxIdleConns:          max(100, 4*o.IdlePerHost),
			MaxIdleConnsPerHost:   cmp.Or(o.IdlePerHost, 16),
		}},
		CheckRedirect: redirects(o.MaxRedirects).check,
	}
}

// schemes refuses requests that are not plain HTTP.
type schemes struct{ *http.Transport }

func (t *schemes) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper must close it, also on errors
		}
		return nil, artel.Errorf(artel.Denied, "fetch.Do", artel.Shorten(r.URL.Redacted(), 200), "only http and https addresses are fetched")
	}
	return t.Transport.RoundTrip(r)
}

type redirects int

const maxRedirects = 5 // unless Options say otherwise

// keyHeaders carry API keys. The standard library drops Authorization and
// Cookie when a redirect leaves the host, but does not know these.
var keyHeaders = []string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

func (limit redirects) check(r *http.Request, via []*http.Request) error {
	first, most := via[0], int(limit)
	if limit == SameOrigin {
		most = maxRedirects
	}
	switch {
	case limit < 0 && limit != SameOrigin:
		return http.ErrUseLastResponse
	case len(via) > most:
		return artel.Errorf(artel.Denied, "fetch.Redirect", first.URL.Host, "more than %d redirects", most)
	case limit == SameOrigin && (origin(r.URL) != origin(first.URL) || first.Method != http.MethodGet && first.Method != http.MethodHead):
		return artel.Errorf(artel.Denied, "fetch.Redirect", first.URL.Host, "it redirects to %s, which is not followed; if it has moved there, set its baseURL to that", artel.Shorten(r.URL.Redacted(), 200))
	case via[len(via)-1].URL.Scheme == "https" && r.URL.Scheme != "https":
		return artel.Errorf(artel.Denied, "fetch.Redirect", first.URL.Host, "redirected from https to %s", r.URL.Scheme)
	}
	if r.URL.Host != first.URL.Host || r.URL.Scheme != first.URL.Scheme {
		for _, h := range keyHeaders {
			r.Header.Del(h)
		}
	}
	return nil
}

// origin returns the scheme, host and port of a URL.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// ReadAll reads r to its end. More than limit bytes are an error of kind
// TooLarge; the rest is not read.
func ReadAll(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		kind := artel.Unavailable
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			kind = artel.Canceled
		}
		return nil, artel.Errorf(kind, "fetch.ReadAll", "", "the response broke off: %w", err)
	case int64(len(b)) > limit:
		return nil, artel.Errorf(artel.TooLarge, "fetch.ReadAll", "", "the response has more than %d bytes", limit)
	}
	return b, nil
}

// Unreachable reports whether err means that no connection was made: nothing
// listens, or the name is unknown. An address refused by the guard does not
// count.
func Unreachable(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial" && !errors.Is(err, artel.Denied)
}
