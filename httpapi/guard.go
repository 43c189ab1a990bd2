// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/internal/peer"
)

// Guard refuses requests of foreign web pages to a server on this machine: the
// Host must be a loopback address or one of hosts (against DNS rebinding), and
// a request that a browser marks as coming from another site is refused unless
// it follows a link (against cross-site requests, and against pictures and
// frames that would take the browser's few connections to this server).
// Programs send no Origin and pass. The unspecified address among hosts stands for
// all addresses, which no foreign name can be made to point to.
//
// Reading a file with a signature is allowed from everywhere, so that a CDN and
// pages of other sites can use the address; app checks the signature (see
// app.Files.OpenSigned).
func Guard(next http.Handler, hosts ...string) http.Handler {
	return GuardAllowing(next, func(*http.Request) bool { return false }, hosts...)
}

// GuardAllowing is [Guard] that lets requests of pages of other sites pass if allowed
// reports true.
func GuardAllowing(next http.Handler, allowed func(*http.Request) bool, hosts ...string) http.Handler {
	known := make([]string, len(hosts))
	for i, h := range hosts {
		known[i] = strings.ToLower(strings.Trim(h, "[]"))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if signed(r) {
			next.ServeHTTP(w, r)
			return
		}
		p := peer.Of(r)
		if !knownHost(p.Host, known) {
			writeProblem(w, newProblem(http.StatusForbidden, "host_denied", "this server does not answer to the host "+strings.ToValidUTF8(p.Host, "�")))
			return
		}
		origin := r.Header.Get("Origin")
		if (origin != "" && !p.SameOrigin(origin) || foreign(r)) && !allowed(r) {
			detail := "requests from pages of other sites are refused"
			if strings.EqualFold(origin, "https://"+p.Host) {
				detail += "; the request came here without TLS: if a proxy ends it, its address is missing in trusted_proxies, or it does not send X-Forwarded-Proto"
			}
			writeProblem(w, newProblem(http.StatusForbidden, "origin_denied", detail))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// foreign reports whether a browser says that a page of another site caused r,
// otherwise than by a link in a window of its own.
func foreign(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "cross-site" && site != "same-site" {
		return false
	}
	dest := r.Header.Get("Sec-Fetch-Dest")
	return r.Method != http.MethodGet && r.Method != http.MethodHead || dest != "" && dest != "document"
}

// signed reports whether r reads a file and has a signature, which is not yet
// checked.
func signed(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	p := r.URL.EscapedPath()
	sig, err := signatureOf(r.URL.RawQuery)
	return strings.HasPrefix(p, Base+"/files/") && isClean(p) && err == nil && sig != ""
}

// signatureOf returns the value of sig in a query, or "" if it has none. It is
// the only reader of sig: with two that differ, Guard would let a request pass
// whose signature the handler does not see. Queries that readers could take for
// different things are refused: malformed ones, and those with an empty or a
// second sig.
func signatureOf(query string) (string, error) {
	values, err := url.ParseQuery(query)
	sig := values["sig"]
	switch {
	case err != nil, len(sig) > 1, len(sig) == 1 && sig[0] == "":
		return "", artel.Errorf(artel.Invalid, "httpapi", "sig", "the query must be well-formed, with at most one sig, which is not empty; use the address from POST …/sign unchanged")
	case len(sig) == 0:
		return "", nil
	}
	return sig[0], nil
}

// Inert keeps a browser from using answers of next as anything but data, because
// models and documents wrote what is in them: no destination of a fetch that
// runs them or applies them as a style, no other type than the declared one, no
// page of another site. Pictures, sound and frames are files only, or the pages of apps, so that an
// address in a text cannot hold a connection with an event stream. Handlers may
// replace the headers.
func Inert(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-DNS-Prefetch-Control", "off") // names of links are not looked up before a click
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Add("Vary", "Sec-Fetch-Dest") // a cached picture must not be reused for a script
		switch dest := r.Header.Get("Sec-Fetch-Dest"); dest {
		case "", "empty", "document":
		case "image", "audio", "video", "track", "iframe", "frame", "embed", "object":
			if !isFile(r.URL.Path) && (dest != "iframe" || !isAppPage(r.URL.Path)) {
				writeProblem(w, newProblem(http.StatusForbidden, string(artel.Denied), "only files are served as "+dest))
				return
			}
		default:
			writeProblem(w, newProblem(http.StatusForbidden, string(artel.Denied),
				"answers are not served as "+strings.ToValidUTF8(dest, "�")+": what people and models made never runs on this page"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isFile reports whether the bytes of a file, a version or the picture of an agent
// are read at path.
func isFile(path string) bool {
	return strings.HasPrefix(path, Base+"/files/") || strings.HasSuffix(path, "/raw") ||
		strings.HasPrefix(path, Base+"/agents/") && strings.HasSuffix(path, "/picture")
}

func knownHost(hostport string, hosts []string) bool {
	if access.IsLoopback(hostport) {
		return true
	}
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	_, err := netip.ParseAddr(host)
	return slices.Contains(hosts, host) || err == nil && slices.ContainsFunc(hosts, isUnspecified)
}

// isUnspecified reports whether a host of a configuration stands for all addresses
// of this machine.
func isUnspecified(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsUnspecified()
}
