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

// SessionCookie is the name of the cookie of a session without TLS. With TLS it has a
// prefix by which browsers refuse one of a neighbouring host or without TLS (RFC
// 6265bis, 4.1.3), and is Secure. Without TLS, browsers would not keep a Secure cookie.
const SessionCookie = "artel_session"

// cookieOf returns the name of the cookie for requests such as r, and whether it is
// Secure.
func cookieOf(p peer.Peer) (name string, secure bool) {
	switch {
	case p.Scheme != "https":
		return SessionCookie, false
	case p.Prefix == "":
		return "__Host-" + SessionCookie, true
	}
	return "__Secure-" + SessionCookie, true // the other prefix needs the path /
}

// Cookie returns the cookie with the secret of a session; an empty secret removes
// it. Scripts cannot read it, requests that other sites cause do not carry it
// unless they follow a link, and browsers send one that was set with TLS only with TLS.
func Cookie(r *http.Request, secret string, expires time.Time) *http.Cookie {
	p := peer.Of(r)
	name, secure := cookieOf(p)
	c := &http.Cookie{Name: name, Value: secret, Path: p.Prefix + "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: secure, Expires: expires}
	if secret == "" {
		c.MaxAge, c.Expires = -1, time.Time{}
	}
	return c
}

// SessionOf returns the secret in the cookie of a request, or "".
func SessionOf(r *http.Request) string {
	name, _ := cookieOf(peer.Of(r))
	c, err := r.Cookie(name)
	if err != nil || !strings.HasPrefix(c.Value, sessionPrefix) {
		return ""
	}
	return c.Value
}

// LoginOf returns a login by a request, which replaces the session of its cookie.
func LoginOf(r *http.Request, email, password string) Login {
	return Login{Email: email, Password: password, Client: r.UserAgent(), Previous: SessionOf(r)}
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
