// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Guard refuses requests of foreign web pages to a server on this machine: the
// Host must be a loopback address or one of hosts (against DNS rebinding), and
// a request that a browser marks as coming from another site is refused
// (against cross-site requests). Programs send no Origin and pass.
//
// Reading a file with a signature is allowed from everywhere, so that a CDN and
// pages of other sites can use the address; app checks the signature (see
// app.Files.OpenSigned).
func Guard(next http.Handler, hosts ...string) http.Handler {
	known := make([]string, len(hosts))
	for i, h := range hosts {
		known[i] = strings.ToLower(strings.Trim(h, "[]"))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if signed(r) {
			next.ServeHTTP(w, r)
			return
		}
		if !knownHost(r.Host, known) {
			writeProblem(w, newProblem(http.StatusForbidden, "host_denied", "this server does not answer to the host "+strings.ToValidUTF8(r.Host, "�")))
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			u, err := url.Parse(origin)
			if err != nil || u.Host != r.Host {
				writeProblem(w, newProblem(http.StatusForbidden, "origin_denied", "requests from pages of other sites are refused"))
				return
			}
		}
		if site := r.Header.Get("Sec-Fetch-Site"); r.Method != http.MethodGet && r.Method != http.MethodHead && (site == "cross-site" || site == "same-site") {
			writeProblem(w, newProblem(http.StatusForbidden, "origin_denied", "requests from pages of other sites are refused"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// signed reports whether r reads a file and has a signature, which is not yet
// checked.
func signed(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	p := r.URL.EscapedPath()
	return strings.HasPrefix(p, Base+"/files/") && isClean(p) && r.URL.Query().Get("sig") != ""
}

func knownHost(hostport string, hosts []string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(hosts, host) {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
