// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/artelhq/artel/app/access"
)

// viaProxy is the header of a request that a proxy with TLS passes on for a client.
func viaProxy(client string, more ...string) []string {
	return append([]string{"X-Forwarded-For", client, "X-Forwarded-Proto", "https", "X-Forwarded-Host", "artel.example"}, more...)
}

// limited fails to log in, each time with another account and from the address that
// from returns, until a login has to wait.
func (g *guarded) limited(from func(n int) string) {
	g.t.Helper()
	for n := range 1000 {
		resp, _ := g.ask("POST", "/api/v1/login", `{"email":"`+strconv.Itoa(n)+`@example.org","password":"wrong"}`, viaProxy(from(n))...)
		if resp.StatusCode == http.StatusTooManyRequests {
			return
		}
	}
	g.t.Fatal("no login has to wait")
}

// TestTrustedProxy: addresses, schemes and hosts are those of the client that a
// trusted proxy names.
func TestTrustedProxy(t *testing.T) {
	g := newGuarded(t, access.Options{Exposed: true}, func(c *config) {
		c.TrustedProxies, c.Hosts = []string{"127.0.0.1", "10.0.0.0/8"}, []string{"artel.example"}
	})
	admin := g.setUp()
	login := `{"email":"ann@example.org","password":"` + testPassword + `"}`
	resp := g.must(nil, "POST", "/api/v1/login", login, viaProxy("198.51.100.1, 203.0.113.7, 10.0.0.9")...)
	cookie := resp.Cookies()[0]
	if !cookie.Secure || cookie.Path != "/" {
		t.Errorf("got the cookie %s", cookie)
	}
	passed := cookie.Name + "=" + cookie.Value
	var sessions struct{ Items []struct{ Address string } }
	g.must(&sessions, "GET", "/api/v1/sessions", "", "Cookie", admin)
	if len(sessions.Items) != 2 || sessions.Items[0].Address != "203.0.113.7" {
		t.Errorf("got the sessions %+v", sessions.Items)
	}
	for origin, want := range map[string]int{
		"https://artel.example": http.StatusCreated, "http://artel.example": http.StatusForbidden, "https://evil.example": http.StatusForbidden, g.http.URL: http.StatusForbidden,
	} {
		if resp, text := g.ask("POST", "/api/v1/conversations", "{}", viaProxy("203.0.113.7", "Cookie", passed, "Origin", origin)...); resp.StatusCode != want {
			t.Errorf("from %s: %s %s", origin, resp.Status, text)
		}
	}
	var invited struct {
		InviteURL string `json:"invite_url"`
	}
	g.must(&invited, "POST", "/api/v1/users", `{"name":"Bob","email":"bob@example.org"}`, viaProxy("203.0.113.7", "Cookie", passed, "Origin", "https://artel.example")...)
	if !strings.HasPrefix(invited.InviteURL, "https://artel.example/invite?code=") {
		t.Errorf("got %s", invited.InviteURL)
	}
	if resp, text := g.ask("GET", "/api/v1/me", "", "X-Forwarded-For", "203.0.113.7", "X-Forwarded-Host", "evil.example", "Cookie", admin); resp.StatusCode != http.StatusForbidden || !strings.Contains(text, "host_denied") {
		t.Errorf("another host: %s %s", resp.Status, text)
	}
	if resp, text := g.ask("GET", "/metrics", "", "X-Forwarded-For", "127.0.0.1", "X-Forwarded-Host", "localhost"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("the proxy gave metrics: %s %.100s", resp.Status, text)
	}

	g.limited(func(int) string { return "198.51.100.9" })
	if resp, text := g.ask("POST", "/api/v1/login", login, viaProxy("203.0.113.8")...); resp.StatusCode != http.StatusOK {
		t.Errorf("another client has to wait: %s %s", resp.Status, text)
	}
}

// TestLoginWithoutTLS: on an address without TLS, a browser keeps the cookie of a login and
// is warned before; with TLS, by a trusted proxy, the plain cookie is no login.
func TestLoginWithoutTLS(t *testing.T) {
	g := newGuarded(t, access.Options{Exposed: true}, func(c *config) {
		c.TrustedProxies, c.Hosts = []string{"127.0.0.1"}, []string{"artel.example"}
	})
	g.setUp()
	plain := []string{"X-Forwarded-For", "203.0.113.7", "X-Forwarded-Proto", "http", "X-Forwarded-Host", "artel.example"}
	login := `{"email":"ann@example.org","password":"` + testPassword + `"}`
	cookie := g.must(nil, "POST", "/api/v1/login", login, plain...).Cookies()[0]
	if cookie.Secure || cookie.Name != access.SessionCookie || !cookie.HttpOnly {
		t.Errorf("got the cookie %s", cookie)
	}
	session := cookie.Name + "=" + cookie.Value
	g.must(nil, "GET", "/api/v1/me", "", append(plain, "Cookie", session)...)
	if resp, text := g.ask("GET", "/api/v1/me", "", viaProxy("203.0.113.7", "Cookie", session)...); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("with TLS, the plain cookie: %s %s", resp.Status, text)
	}
	for _, c := range []struct {
		headers []string
		want    bool
	}{{plain, true}, {viaProxy("203.0.113.7"), false}, {nil, false}} {
		if _, page := g.ask("GET", "/login", "", append(c.headers, "Accept", "text/html")...); strings.Contains(page, "has no TLS") != c.want {
			t.Errorf("%v: the page of the login warns: %v, want %v", c.headers, !c.want, c.want)
		}
	}
}

// TestForgedProxy: nothing in the headers of a client that is no trusted proxy has an
// effect.
func TestForgedProxy(t *testing.T) {
	for _, trusted := range [][]string{nil, {"10.0.0.0/8", "::1"}} {
		g := newGuarded(t, access.Options{Exposed: true}, func(c *config) {
			c.TrustedProxies, c.Hosts = trusted, []string{"artel.example"}
		})
		admin := g.setUp()
		login := `{"email":"ann@example.org","password":"` + testPassword + `"}`
		forged := viaProxy("10.0.0.9", "Forwarded", "for=10.0.0.9;proto=https;host=artel.example", "X-Real-IP", "10.0.0.9")
		resp := g.must(nil, "POST", "/api/v1/login", login, forged...)
		if resp.Cookies()[0].Secure { // the request came to loopback without TLS
			t.Errorf("%v: got the cookie %s", trusted, resp.Cookies()[0])
		}
		var sessions struct{ Items []struct{ Address string } }
		g.must(&sessions, "GET", "/api/v1/sessions", "", "Cookie", admin)
		if len(sessions.Items) != 2 || strings.HasPrefix(sessions.Items[0].Address, "10.") {
			t.Errorf("%v: got the sessions %+v", trusted, sessions.Items)
		}
		resp, text := g.ask("POST", "/api/v1/conversations", "{}", append(forged, "Cookie", admin, "Origin", "https://artel.example")...)
		if resp.StatusCode != http.StatusForbidden || !strings.Contains(text, "origin_denied") {
			t.Errorf("%v: %s %s", trusted, resp.Status, text)
		}
		var invited struct {
			InviteURL string `json:"invite_url"`
		}
		g.must(&invited, "POST", "/api/v1/users", `{"name":"Bob","email":"bob@example.org"}`, append(forged, "Cookie", admin, "Origin", g.http.URL)...)
		if !strings.HasPrefix(invited.InviteURL, g.http.URL+"/invite?code=") {
			t.Errorf("%v: got %s", trusted, invited.InviteURL)
		}
		if trusted == nil {
			continue // the same again
		}
		g.limited(func(n int) string { return "192.0.2." + strconv.Itoa(n%250) })
	}
}

func TestProxiesAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"trusted_proxies: [proxy.example]": "proxy.example", "trusted_proxies: [0.0.0.0/0]": "trusts every client",
		"base_path: artel": "want a path such as /artel", "base_path: /a/../b": "want a path such as /artel", "base_path: /c/x": "paths of Artel itself", "base_pat: /x": `nearest is "base_path"`,
	} {
		var c config
		if err := c.parse("artel.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
