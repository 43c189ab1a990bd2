// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/artelhq/artel/app/access"
)

// TestContentHost: previews and signed addresses are on the host for content alone, which
// takes no credentials and serves nothing else; without the setting nothing moves.
func TestContentHost(t *testing.T) {
	const name = "usercontent.example"
	g := newGuarded(t, access.Options{Mode: access.Required}, func(c *config) { c.ContentHost = name })
	cookie := g.setUp()
	as := []string{"Cookie", cookie, "Origin", g.http.URL}
	_, token := g.token(cookie, `["read"]`)
	var c, made struct{ ID string }
	g.must(&c, "POST", "/api/v1/conversations", "{}", as...)
	g.must(&made, "POST", "/api/v1/conversations/"+c.ID+"/artifacts?filename=a.html", "<!doctype html><p>Hi", append(as, "Content-Type", "text/html")...)
	raw := "/api/v1/conversations/" + c.ID + "/artifacts/a.html/raw"
	file := "/api/v1/files/" + url.PathEscape("artifact:"+c.ID+"/a.html")
	main, err := url.Parse(g.http.URL)
	if err != nil {
		t.Fatal(err)
	}
	// there asks the host for content.
	there := func(method, path string, header ...string) (*http.Response, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, g.http.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = name + ":" + main.Port()
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := g.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp, string(b)
	}
	for _, path := range []string{raw, file} {
		resp, text := g.ask("GET", path+"?preview=true", "", as...)
		to, err := url.Parse(resp.Header.Get("Location"))
		if resp.StatusCode != http.StatusFound || err != nil || to.Host != name+":"+main.Port() || to.Query().Get("sig") == "" || resp.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("a preview: %s to %s: %s", resp.Status, to, text)
		}
		resp, text = there("GET", to.RequestURI())
		if resp.StatusCode != http.StatusOK || !strings.Contains(text, "Hi") || !strings.HasPrefix(resp.Header.Get("Content-Security-Policy"), "sandbox;") || len(resp.Cookies()) > 0 {
			t.Errorf("on the host for content: %s %v %s", resp.Status, resp.Header, text)
		}
		// The signature opens this file alone.
		if resp, _ := there("GET", strings.Replace(to.RequestURI(), "a.html", "b.html", 1)); resp.StatusCode == http.StatusOK {
			t.Error("the signature opens another file")
		}
		// The same address of the first host leads there.
		if resp, _ := g.ask("GET", to.RequestURI(), ""); resp.StatusCode != http.StatusFound || resp.Header.Get("Location") != to.String() {
			t.Errorf("a signed address of the first host: %s to %s", resp.Status, resp.Header.Get("Location"))
		}
	}
	// Files that are not shown stay.
	if resp, text := g.ask("GET", raw, "", as...); resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Disposition"), "attachment") || !strings.Contains(text, "Hi") {
		t.Errorf("a download: %s", resp.Status)
	}
	var signed struct{ URL string }
	g.must(&signed, "POST", file+"/sign", "{}", as...)
	if !strings.HasPrefix(signed.URL, "http://"+name+":"+main.Port()+"/api/v1/files/") {
		t.Errorf("a signed address: %s", signed.URL)
	}
	// Nothing else is there, for any client.
	for _, path := range []string{"/", "/login", "/api/v1/me", "/api/v1/conversations", raw + "?preview=true", file, "/v1/models", "/healthz", "/metrics", "/static/style.css"} {
		for _, credentials := range [][]string{nil, {"Cookie", cookie}, {"Authorization", "Bearer " + token}} {
			if resp, text := there("GET", path, credentials...); resp.StatusCode != http.StatusForbidden || !strings.Contains(text, "host_denied") {
				t.Errorf("%s: %s %s", path, resp.Status, text)
			}
		}
	}
	if resp, _ := there("POST", "/api/v1/login"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a login: %s", resp.Status)
	}
	if resp, _ := there("GET", file+"?sig=forged", "Cookie", cookie); resp.StatusCode == http.StatusOK {
		t.Error("a forged signature with a session opens a file")
	}
}

func TestContentHostNames(t *testing.T) {
	for name, ok := range map[string]bool{"usercontent.example": true, "u.example:8443": true, "u.example/path": false, "https://u.example": false, "u example": false, "*.example": false, "u;script-src": false, "user@u.example": false} {
		var c config
		c.ContentHost = name
		if err := c.check(); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	both := config{ContentHost: "artel.example", Hosts: []string{"Artel.example"}}
	if err := both.check(); err == nil {
		t.Error("a host of the page is taken as that for content")
	}
}
