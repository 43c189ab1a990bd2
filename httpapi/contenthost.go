// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/peer"
)

// A ContentHost is another name of the server, which serves what people and models
// made for display, and nothing else. So even a page that escaped its sandbox would be
// of an origin that has no cookies, no API and no page. "" is none.
type ContentHost string

// ParseContentHost checks a host name, which may have a port.
func ParseContentHost(s string) (ContentHost, error) {
	u, err := url.Parse("//" + s)
	if err != nil || u.Host != s || u.Hostname() == "" || u.User != nil || strings.ContainsAny(s, "*;, '\"") {
		return "", fmt.Errorf("%q is no host name: want one such as usercontent.example", artel.Shorten(s, 80))
	}
	return ContentHost(strings.ToLower(s)), nil
}

// is reports whether a request was sent to this host.
func (c ContentHost) is(p peer.Peer) bool {
	host := strings.ToLower(p.Host)
	if c.hasPort() {
		return host == string(c)
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".") == strings.Trim(string(c), "[]")
}

func (c ContentHost) hasPort() bool {
	_, _, err := net.SplitHostPort(string(c))
	return err == nil
}

// origin is that of this host for a client of the server: with its scheme, and its port
// unless the host has one.
func (c ContentHost) origin(p peer.Peer) string {
	host := string(c)
	if _, port, err := net.SplitHostPort(p.Host); err == nil && !c.hasPort() {
		host += ":" + port
	}
	return p.Scheme + "://" + host
}

// Sources are this host in a policy for content; empty if there is none.
func (c ContentHost) Sources() string {
	switch {
	case c == "":
		return ""
	case c.hasPort():
		return " " + string(c)
	}
	return " " + string(c) + " " + string(c) + ":*"
}

// Handler returns next for the other hosts of the server. On this host it lets only
// signed addresses of files pass, without credentials; addresses of that kind are redirected here
// from the other hosts.
func (c ContentHost) Handler(next http.Handler) http.Handler {
	if c == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := peer.Of(r)
		switch is := c.is(p); {
		case is && !signed(r):
			writeProblem(w, newProblem(http.StatusForbidden, "host_denied", "this host serves signed files alone; page and API have another name"))
		case is:
			r = r.Clone(r.Context())
			for _, name := range []string{"Cookie", "Authorization", "X-Api-Key", "X-Goog-Api-Key"} {
				r.Header.Del(name)
			}
			next.ServeHTTP(w, r)
		case signed(r):
			moveTo(w, c.origin(p)+p.Prefix+r.URL.EscapedPath()+"?"+r.URL.RawQuery)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// moveTo redirects to the address of a file on another host. It is not kept, because
// its signature ends.
func moveTo(w http.ResponseWriter, address string) {
	h := w.Header()
	h.Set("Location", address)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Access-Control-Allow-Origin", "*")
	w.WriteHeader(http.StatusFound)
}

// previewTime is how long the address of a preview on the content host is valid: a
// viewer of PDFs reads further pages as they are looked at.
const previewTime = time.Hour

// preview answers with a redirect to the content host for a file that is to be shown.
// ref is what was asked for.
func (f *server) preview(ctx context.Context, ref artel.Ref, file app.File) (*huma.StreamResponse, error) {
	if ref.IsBlob() {
		ref = artel.BlobRef(file.Digest)
	} else {
		ref.Version = file.Content.Version.Number
	}
	path, err := f.app.Files.SignedPath(ctx, ref, previewTime)
	if err = errors.Join(err, file.Content.Close()); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		r, w := humago.Unwrap(hc)
		p := peer.Of(r)
		moveTo(w, f.o.ContentHost.origin(p)+p.Prefix+path+"&preview=true")
	}}, nil
}
