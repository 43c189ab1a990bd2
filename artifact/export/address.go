// SPDX-License-Identifier: Apache-2.0

package export

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/idna"
)

// maxURL is the longest address that Word takes for a link, in bytes.
const maxURL = 2048

// cleanURL returns an address as RFC 3986 wants it, as an office program may
// refuse a whole document for one that is not. ok is false where there is
// none, and for all schemes but http, https and mailto. relative also takes a
// path that stays below the folder that the file lies beside.
func cleanURL(s string, relative bool) (to string, ok bool) {
	if s == "" || len(s) > maxURL {
		return "", false
	}
	u, err := url.Parse(s)
	if err != nil {
		return "", false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		if u.Host, ok = cleanHost(u); !ok || u.Opaque != "" {
			return "", false
		}
	case "mailto":
		if u.Opaque == "" {
			return "", false
		}
		u.Opaque = escaped(u.Opaque)
	case "":
		if !relative || u.Host != "" || u.Path == "" || u.Path[0] == '/' || strings.Contains(u.Path, `\`) {
			return "", false
		}
	default:
		return "", false
	}
	u.RawPath, u.RawQuery, u.RawFragment = escaped(u.RawPath), escaped(u.RawQuery), escaped(u.RawFragment)
	to = u.String()
	return to, len(to) <= maxURL
}

// cleanHost returns the host and port of u in ASCII.
func cleanHost(u *url.URL) (host string, ok bool) {
	host = u.Hostname()
	port := u.Port()
	if port != "" {
		port = ":" + port
	}
	if strings.Contains(host, ":") {
		ip, err := netip.ParseAddr(host)
		return "[" + host + "]" + port, err == nil && ip.Zone() == ""
	}
	if asciiHost.MatchString(host) {
		return host + port, true
	}
	host, err := idna.Lookup.ToASCII(host)
	return host + port, err == nil && asciiHost.MatchString(host)
}

// asciiHost is wider than what names of hosts may be: private networks have
// names with underscores.
var asciiHost = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// escaped percent-encodes what must not be in a query or an opaque part, and
// the percent signs that encode nothing.
func escaped(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]),
			'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			strings.IndexByte("-._~!$&'()*+,;=:@/?", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
