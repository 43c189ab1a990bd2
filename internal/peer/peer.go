// SPDX-License-Identifier: Apache-2.0

// Package peer says from where a request came and which address of this server it was
// sent to: directly, or as trusted proxies report it.
//
// Begin with [Of]. It believes the headers X-Forwarded-* and Forwarded only after
// [Trusted.Read], and that only if the connection comes from a trusted proxy. Nothing
// else in the program reads these headers.
package peer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// A Peer is the client of a request.
type Peer struct {
	Address string // of the client, without port; as the connection has it if it is no IP address
	Scheme  string // http or https, as the client used it
	Host    string // with port, as in the Host that the client sent
	Prefix  string // of the paths of this server, such as /artel; may be empty
}

// Origin returns scheme, host and port under which the client reached this server.
func (p Peer) Origin() string { return p.Scheme + "://" + p.Host }

// URL returns the address of this server as the client reached it, without a slash at
// its end.
func (p Peer) URL() string { return p.Origin() + p.Prefix }

// SameOrigin reports whether the value of a header Origin names this server. Ports
// that a scheme has by default may be left out.
func (p Peer) SameOrigin(origin string) bool {
	scheme, host, ok := strings.Cut(origin, "://")
	return ok && strings.EqualFold(scheme, p.Scheme) && strings.EqualFold(withoutDefaultPort(p.Scheme, host), withoutDefaultPort(p.Scheme, p.Host))
}

func withoutDefaultPort(scheme, host string) string {
	return strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[scheme])
}

type key struct{}

// With returns r with p as the result of [Of].
func With(r *http.Request, p Peer) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), key{}, p))
}

// Of returns the client of r: the one of [With], or else the one of the connection.
func Of(r *http.Request) Peer {
	if p, ok := r.Context().Value(key{}).(Peer); ok {
		return p
	}
	p := Peer{Address: r.RemoteAddr, Scheme: "http", Host: r.Host}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		p.Address = host
	}
	if r.TLS != nil {
		p.Scheme = "https"
	}
	return p
}

// Headers by which proxies report what they pass on.
const (
	forwarded      = "Forwarded"
	forwardedFor   = "X-Forwarded-For"
	forwardedProto = "X-Forwarded-Proto"
	forwardedHost  = "X-Forwarded-Host"
)

// IsForwarded reports whether a header says that a proxy passes r on. A client can send
// such a header too, so true is no proof of a proxy.
func IsForwarded(r *http.Request) bool {
	return slices.ContainsFunc([]string{forwarded, forwardedFor, forwardedProto, forwardedHost, "X-Real-Ip", "Via"},
		func(name string) bool { return len(r.Header.Values(name)) > 0 })
}

// Trusted are the networks of the proxies whose headers are believed.
type Trusted []netip.Prefix

// ParseTrusted reads networks such as 10.0.0.0/8, and single addresses. A network of
// all addresses is refused, because every client could name any address.
func ParseTrusted(networks []string) (Trusted, error) {
	out := make(Trusted, 0, len(networks))
	for _, s := range networks {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			a, bad := netip.ParseAddr(s)
			if bad != nil || a.Zone() != "" {
				return nil, fmt.Errorf("%q is no network: want one such as 10.0.0.0/8, or an IP address", s)
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		if p.Bits() == 0 {
			return nil, fmt.Errorf("%q trusts every client: want the networks of the proxies alone", s)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

func (t Trusted) has(a netip.Addr) bool {
	return slices.ContainsFunc(t, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Read returns the client of r. If the connection comes from a trusted proxy, the client
// is the rightmost address in X-Forwarded-For or Forwarded that is not a trusted proxy,
// and scheme and host are the last ones reported. Values that cannot be read, and two
// headers that name different clients, count as not sent; then the client is the last
// address that is known.
func (t Trusted) Read(r *http.Request) Peer {
	p := Of(r)
	at, ok := addressOf(p.Address)
	if !ok || !t.has(at) {
		return p
	}
	plain, hasPlain := t.client(at, plainHops(r.Header.Values(forwardedFor)))
	elements := standardHops(r.Header.Values(forwarded))
	standard, hasStandard := t.client(at, func(yield func(string) bool) {
		for _, e := range slices.Backward(elements) {
			if !yield(e["for"]) {
				return
			}
		}
	})
	switch {
	case hasPlain && hasStandard && plain != standard:
	case hasPlain:
		p.Address = plain.String()
	case hasStandard:
		p.Address = standard.String()
	}
	scheme, host := last(r.Header.Values(forwardedProto)), last(r.Header.Values(forwardedHost))
	if len(elements) > 0 {
		e := elements[len(elements)-1]
		scheme, host = either(scheme, e["proto"]), either(host, e["host"])
	}
	if scheme = strings.ToLower(scheme); scheme == "http" || scheme == "https" {
		p.Scheme = scheme
	}
	if isHost(host) {
		p.Host = host
	}
	return p
}

// either returns a, or b if a is empty; two that differ count as none.
func either(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "" || strings.EqualFold(a, b):
		return a
	}
	return ""
}

// maxHops bounds the addresses of one request that are looked at.
const maxHops = 32

// client follows the hops before the one at from, nearest first, to the first that is not
// trusted. ok is false if there are none.
func (t Trusted) client(from netip.Addr, hops func(func(string) bool)) (client netip.Addr, ok bool) {
	client, n := from, 0
	for hop := range hops {
		ok = true
		a, valid := addressOf(hop)
		if n++; !valid || n > maxHops {
			break
		}
		if client = a; !t.has(a) {
			break
		}
	}
	return client, ok
}

// plainHops yields the entries of X-Forwarded-For, nearest first.
func plainHops(values []string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, v := range slices.Backward(values) {
			for more := true; more; {
				i := strings.LastIndexByte(v, ',')
				hop := strings.TrimSpace(v[i+1:])
				if more = i >= 0; more {
					v = v[:i]
				}
				if !yield(hop) {
					return
				}
			}
		}
	}
}

// standardHops returns the parameters of the last maxHops+1 elements of the header
// Forwarded (RFC 7239). An element that cannot be read has none.
func standardHops(values []string) []map[string]string {
	var out []map[string]string
	for _, v := range values {
		for _, element := range split(v, ',') {
			pairs := map[string]string{}
			for _, pair := range split(element, ';') {
				name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
				name = strings.ToLower(name)
				if _, twice := pairs[name]; !ok || twice {
					pairs = nil
					break
				}
				pairs[name] = strings.ReplaceAll(strings.Trim(value, `"`), `\`, "")
			}
			if out = append(out, pairs); len(out) > maxHops+1 {
				out = out[1:]
			}
		}
	}
	return out
}

// split splits s at a separator outside of quotes.
func split(s string, separator byte) (parts []string) {
	begin, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == separator && !quoted:
			parts = append(parts, s[begin:i])
			begin = i + 1
		}
	}
	return append(parts, s[begin:])
}

// last returns the last entry of a header with a list.
func last(values []string) string {
	if len(values) == 0 {
		return ""
	}
	v := values[len(values)-1]
	return strings.TrimSpace(v[strings.LastIndexByte(v, ',')+1:])
}

// addressOf reads an IP address with or without port, brackets and zone.
func addressOf(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	if err != nil {
		at, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}, false
		}
		a = at.Addr()
	}
	return a.Unmap().WithZone(""), true
}

// isHost reports whether s can be the Host of a request. Its port is not checked.
func isHost(s string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]"
	return s != "" && len(s) <= 262 && strings.Trim(s, allowed) == ""
}
