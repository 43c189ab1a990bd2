// SPDX-License-Identifier: Apache-2.0

package peer_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/artelhq/artel/internal/peer"
)

func parse(t *testing.T, networks ...string) peer.Trusted {
	t.Helper()
	trusted, err := peer.ParseTrusted(networks)
	if err != nil {
		t.Fatal(err)
	}
	return trusted
}

// request comes from an address with a header, whose fields stand in pairs.
func request(from string, fields ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr, r.Host = from, "artel.example"
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

func TestRead(t *testing.T) {
	trusted := parse(t, "10.0.0.0/8", "192.0.2.1", "2001:db8:1::/48", "::1")
	const proxy = "10.0.0.1:4711"
	direct := peer.Peer{Address: "10.0.0.1", Scheme: "http", Host: "artel.example"}
	from := func(address string) peer.Peer { p := direct; p.Address = address; return p }
	xff := "X-Forwarded-For"
	tests := map[string]struct {
		r    *http.Request
		want peer.Peer
	}{
		"no header":                      {request(proxy), direct},
		"one hop":                        {request(proxy, xff, "203.0.113.7"), from("203.0.113.7")},
		"a port":                         {request(proxy, xff, "203.0.113.7:99"), from("203.0.113.7")},
		"IPv6":                           {request(proxy, xff, "2001:db8::7"), from("2001:db8::7")},
		"IPv6 with brackets":             {request(proxy, xff, "[2001:db8::7]"), from("2001:db8::7")},
		"IPv6 with a port":               {request(proxy, xff, "[2001:db8::7]:99"), from("2001:db8::7")},
		"IPv6 with a zone":               {request(proxy, xff, "fe80::1%eth0"), from("fe80::1")},
		"IPv4 in IPv6":                   {request(proxy, xff, "::ffff:203.0.113.7"), from("203.0.113.7")},
		"an IPv6 proxy":                  {request("[2001:db8:1::2]:1", xff, "203.0.113.7"), from("203.0.113.7")},
		"a proxy as IPv4 in IPv6":        {request("[::ffff:10.0.0.1]:1", xff, "203.0.113.7"), from("203.0.113.7")},
		"a chain of proxies":             {request(proxy, xff, "203.0.113.7, 192.0.2.1,10.9.9.9"), from("203.0.113.7")},
		"a chain in several lines":       {request(proxy, xff, "203.0.113.7", xff, "10.9.9.9"), from("203.0.113.7")},
		"an invented beginning":          {request(proxy, xff, "1.2.3.4, 203.0.113.7"), from("203.0.113.7")},
		"an invented proxy":              {request(proxy, xff, "1.2.3.4, 10.0.0.9, 203.0.113.7"), from("203.0.113.7")},
		"only proxies":                   {request(proxy, xff, "10.0.0.3, 10.0.0.2"), from("10.0.0.3")},
		"garbage before a client":        {request(proxy, xff, "'; drop, 203.0.113.7"), from("203.0.113.7")},
		"garbage":                        {request(proxy, xff, "1.2.3.4, unknown"), direct},
		"garbage behind a proxy":         {request(proxy, xff, "1.2.3.4, _hidden, 10.0.0.2"), from("10.0.0.2")},
		"an empty entry":                 {request(proxy, xff, "1.2.3.4,"), direct},
		"an empty header":                {request(proxy, xff, ""), direct},
		"a name":                         {request(proxy, xff, "localhost"), direct},
		"a long list of proxies":         {request(proxy, xff, "203.0.113.7"+strings.Repeat(",10.0.0.2", 10_000)), from("10.0.0.2")},
		"a long list of clients":         {request(proxy, xff, strings.Repeat("1.2.3.4,", 10_000)+"203.0.113.7"), from("203.0.113.7")},
		"a foreign sender":               {request("203.0.113.9:1", xff, "1.2.3.4", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "evil.example", "Forwarded", "for=1.2.3.4;host=evil.example"), from("203.0.113.9")},
		"a foreign IPv6 sender":          {request("[2001:db8:2::1]:1", xff, "1.2.3.4"), from("2001:db8:2::1")},
		"a sender without an IP address": {request("@", xff, "1.2.3.4"), from("@")},
		"scheme and host":                {request(proxy, "X-Forwarded-Proto", "https", "X-Forwarded-Host", "a.example:8443"), peer.Peer{Address: "10.0.0.1", Scheme: "https", Host: "a.example:8443"}},
		"the last scheme and host":       {request(proxy, "X-Forwarded-Proto", "http, HTTPS", "X-Forwarded-Host", "evil.example, a.example"), peer.Peer{Address: "10.0.0.1", Scheme: "https", Host: "a.example"}},
		"another scheme":                 {request(proxy, "X-Forwarded-Proto", "javascript"), direct},
		"a bad host":                     {request(proxy, "X-Forwarded-Host", "a.example/x?"), direct},
		"a long host":                    {request(proxy, "X-Forwarded-Host", strings.Repeat("a", 300)), direct},
		"Forwarded":                      {request(proxy, "Forwarded", `for=203.0.113.7;proto=https;host="a.example:8443";by=10.0.0.1`), peer.Peer{Address: "203.0.113.7", Scheme: "https", Host: "a.example:8443"}},
		"Forwarded with IPv6":            {request(proxy, "Forwarded", `For="[2001:db8::7]:4711"`), from("2001:db8::7")},
		"Forwarded as a chain":           {request(proxy, "Forwarded", `for=1.2.3.4, for=203.0.113.7;proto=http, for=10.0.0.9;proto=https`), peer.Peer{Address: "203.0.113.7", Scheme: "https", Host: "artel.example"}},
		"Forwarded in several lines":     {request(proxy, "Forwarded", "for=1.2.3.4", "Forwarded", "for=203.0.113.7"), from("203.0.113.7")},
		"Forwarded with an open quote":   {request(proxy, "Forwarded", `for="1.2.3.4, for=203.0.113.7`), direct},
		"Forwarded with garbage":         {request(proxy, "Forwarded", "for=1.2.3.4, ;;=,"), direct},
		"Forwarded, hidden":              {request(proxy, "Forwarded", "for=1.2.3.4, for=_x"), direct},
		"Forwarded twice in one":         {request(proxy, "Forwarded", "for=1.2.3.4;for=203.0.113.7"), direct},
		"a long Forwarded":               {request(proxy, "Forwarded", strings.Repeat("for=1.2.3.4,", 10_000)+"for=203.0.113.7"), from("203.0.113.7")},
		"both agree":                     {request(proxy, xff, "203.0.113.7", "Forwarded", "for=203.0.113.7"), from("203.0.113.7")},
		"both differ":                    {request(proxy, xff, "203.0.113.7", "Forwarded", "for=1.2.3.4"), direct},
		"both differ in the host":        {request(proxy, "X-Forwarded-Host", "a.example", "Forwarded", "for=10.0.0.1;host=b.example"), direct},
	}
	for what, c := range tests {
		if got := trusted.Read(c.r); got != c.want {
			t.Errorf("%s: got %+v, want %+v", what, got, c.want)
		}
		if got, want := peer.Trusted(nil).Read(c.r), peer.Of(c.r); got != want {
			t.Errorf("%s, without trust: got %+v, want %+v", what, got, want)
		}
	}
}

func TestParseTrusted(t *testing.T) {
	for network, covers := range map[string]string{
		"10.1.2.3/8": "10.9.9.9", "127.0.0.1": "127.0.0.1", "::ffff:10.0.0.0/104": "10.9.9.9", "fd00::/8": "fd12::1", "::ffff:10.0.0.1": "10.0.0.1",
	} {
		r := request(netip.AddrPortFrom(netip.MustParseAddr(covers), 1).String(), "X-Forwarded-For", "203.0.113.7")
		if got := parse(t, network).Read(r).Address; got != "203.0.113.7" {
			t.Errorf("%s does not trust %s: %s", network, covers, got)
		}
	}
	for _, bad := range []string{"", "proxy.example", "10.0.0.0/33", "0.0.0.0/0", "::/0", "::ffff:0.0.0.0/96", "fe80::1%eth0", "10.0.0.0-10.0.0.9"} {
		if _, err := peer.ParseTrusted([]string{bad}); err == nil {
			t.Errorf("%q is taken as a network", bad)
		}
	}
}

func TestOf(t *testing.T) {
	r := request("203.0.113.7:1", "X-Forwarded-Proto", "https")
	if got := peer.Of(r).URL(); got != "http://artel.example" {
		t.Errorf("got %s without TLS", got)
	}
	r.TLS = &tls.ConnectionState{}
	if got := peer.Of(r); got.URL() != "https://artel.example" || got.Address != "203.0.113.7" {
		t.Errorf("got %+v with TLS", got)
	}
	want := peer.Peer{Address: "::1", Scheme: "https", Host: "x", Prefix: "/artel"}
	if got := peer.Of(peer.With(r, want)); got != want || got.URL() != "https://x/artel" {
		t.Errorf("got %+v", got)
	}
	if peer.IsForwarded(request("x")) || !peer.IsForwarded(r) || !peer.IsForwarded(request("x", "Via", "1.1 x")) {
		t.Error("IsForwarded is wrong")
	}
}

func TestSameOrigin(t *testing.T) {
	p := peer.Peer{Scheme: "https", Host: "artel.example"}
	for origin, want := range map[string]bool{
		"https://artel.example": true, "https://Artel.Example": true, "https://artel.example:443": true,
		"http://artel.example": false, "https://artel.example:80": false, "https://artel.example:8443": false, "https://artel.example.evil": false,
		"null": false, "": false, "artel.example": false, "https://x@artel.example": false, "https://artel.example/": false,
	} {
		if got := p.SameOrigin(origin); got != want {
			t.Errorf("%q: got %v", origin, got)
		}
	}
	if p.Host = "artel.example:443"; !p.SameOrigin("https://artel.example") {
		t.Error("a proxy that names the default port makes the origin another one")
	}
}

func TestPrefix(t *testing.T) {
	for _, good := range []string{"", "/", "/artel", "/artel/", "/a/b-c_d"} {
		if got, err := peer.ParsePrefix(good); err != nil || got != strings.TrimSuffix(good, "/") {
			t.Errorf("%q: got %q, %v", good, got, err)
		}
	}
	for _, bad := range []string{"artel", "//evil.example", "/a//b", "/a/../b", "/a b", "/a%2fb", "/ä", `/"`, "https://x/artel", "/a?x", "/a;b"} {
		if got, err := peer.ParsePrefix(bad); err == nil {
			t.Errorf("%q is taken as %q", bad, got)
		}
	}
	for path, want := range map[string]string{
		"/artel/c/1": "/c/1", "/artel/": "/", "/c/1": "/c/1", "/artelx/c": "/artelx/c", "/artel": "/artel",
		"/artel/a%2Fb": "/a%2Fb", "/%61rtel/c": "/%61rtel/c", "/artel//x": "//x",
	} {
		r := httptest.NewRequest(http.MethodGet, "http://x"+path, nil)
		if got := peer.Strip(r, "/artel"); got.URL.EscapedPath() != want || r.URL.EscapedPath() != path {
			t.Errorf("%s: got %s, want %s", path, got.URL.EscapedPath(), want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("203.0.113.7, 10.0.0.1", `for="[::1]:1";proto=https`, "https", "a.example")
	trusted, err := peer.ParseTrusted([]string{"10.0.0.0/8"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, xff, std, proto, host string) {
		p := trusted.Read(request("10.0.0.1:1", "X-Forwarded-For", xff, "Forwarded", std, "X-Forwarded-Proto", proto, "X-Forwarded-Host", host))
		if _, err := netip.ParseAddr(p.Address); err != nil || p.Scheme != "http" && p.Scheme != "https" || p.Host == "" || strings.ContainsAny(p.Host, "/@\r\n \"<") {
			t.Errorf("got %+v", p)
		}
	})
}
