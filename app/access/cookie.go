// SPDX-License-Identifier: Apache-2.0

package access

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/artelhq/artel/internal/peer"
)

// SessionCookie is the name of the cookie of a session.
const SessionCookie = "artel_session"

// Cookie returns the cookie with the secret of a session; an empty secret removes
// it. Scripts cannot read it, requests that other sites cause do not carry it
// unless they follow a link, and browsers send it without TLS to this machine only.
func Cookie(r *http.Request, secret string, expires time.Time) *http.Cookie {
	p := peer.Of(r)
	c := &http.Cookie{Name: SessionCookie, Value: secret, Path: p.Prefix + "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: p.Scheme == "https" || !IsLoopback(p.Host), Expires: expires}
	if secret == "" {
		c.MaxAge, c.Expires = -1, time.Time{}
	}
	return c
}

// LoginOf returns a login by a request, which replaces the session of its cookie.
func LoginOf(r *http.Request, email, password string) Login {
	l := Login{Email: email, Password: password, Client: r.UserAgent()}
	if old, err := r.Cookie(SessionCookie); err == nil {
		l.Previous = old.Value
	}
	return l
}

// IsLoopback reports whether a host, with or without a port, is this machine.
func IsLoopback(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
