// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/oidc/oidctest"
)

// newProvider returns a server whose users log in at a provider.
func newProvider(t *testing.T, change func(*config)) (*guarded, *oidctest.Provider) {
	t.Helper()
	at := oidctest.New(t, nil)
	t.Setenv("PROVIDER_SECRET", oidctest.ClientSecret)
	g := newGuarded(t, access.Options{Mode: access.Required}, func(c *config) {
		c.Auth.OIDC.Issuer, c.Auth.OIDC.ClientID, c.Auth.OIDC.ClientSecret = at.URL, oidctest.ClientID, "${PROVIDER_SECRET}"
		c.Auth.OIDC.AllowedDomains = []string{"example.org"}
		if change != nil {
			change(c)
		}
	})
	return g, at
}

// begins starts a login and lets the provider answer; it returns the cookie of the
// browser and the path to which it is sent back.
func (g *guarded) begins(at *oidctest.Provider, next string) (cookie, back string) {
	g.t.Helper()
	resp, text := g.ask("GET", "/auth/oidc/start?"+url.Values{"next": {next}}.Encode(), "")
	if resp.StatusCode != http.StatusSeeOther {
		g.t.Fatalf("%s %s", resp.Status, text)
	}
	for _, c := range resp.Cookies() {
		if c.Name == "artel_oidc" {
			cookie = c.Name + "=" + c.Value
			if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/auth/oidc" || c.MaxAge != 600 {
				g.t.Errorf("got the cookie %s", c)
			}
		}
	}
	u := at.Authorize(g.t, resp.Header.Get("Location"))
	if !strings.HasPrefix(u.String(), g.http.URL+"/auth/oidc/callback?") {
		g.t.Fatalf("sent back to %s", u)
	}
	return cookie, u.RequestURI()
}

// TestLoginAtProvider: a second person logs in at a provider, and what does not belong
// to the login leads to the login page, which says why.
func TestLoginAtProvider(t *testing.T) {
	g, at := newProvider(t, nil)
	admin := g.setUp()
	fails := func(what, cookie, back, want string) {
		t.Helper()
		resp, _ := g.ask("GET", back, "", "Cookie", cookie)
		location := resp.Header.Get("Location")
		if resp.StatusCode != http.StatusSeeOther || !strings.HasPrefix(location, "/login?failed=") || strings.Contains(resp.Header.Get("Set-Cookie"), access.SessionCookie+"=") {
			t.Fatalf("%s: %s to %s, %v", what, resp.Status, location, resp.Header)
		}
		for language, text := range map[string]string{"en": want, "zh": "。"} {
			_, page := g.ask("GET", location, "", "Accept-Language", language)
			if !strings.Contains(page, `role="alert"`) || !strings.Contains(page, text) || !strings.Contains(page, "/auth/oidc/start?") {
				t.Errorf("%s: the page in %s has no %q: %s", what, language, text, page)
			}
		}
	}
	at.Say(map[string]any{"sub": "7", "email": "bob@example.org", "email_verified": true, "name": "Bob"})
	cookie, back := g.begins(at, "/agents")
	fails("without the cookie", "", back, "Begin again")
	fails("with the session of another browser", admin, back, "Begin again")
	resp, text := g.ask("GET", back, "", "Cookie", cookie, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "document", "User-Agent", "Firefox")
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/agents" || resp.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Fatalf("%s %v %s", resp.Status, resp.Header, text)
	}
	bob := sessionOf(t, resp)
	var me struct{ Name, Email, Role string }
	g.must(&me, "GET", "/api/v1/me", "", "Cookie", bob)
	if me.Name != "Bob" || me.Email != "bob@example.org" || me.Role != "member" {
		t.Errorf("got %+v", me)
	}
	fails("the same answer again", cookie, back, "Begin again")

	var c struct{ ID string }
	g.must(&c, "POST", "/api/v1/conversations", "{}", "Cookie", bob, "Origin", g.http.URL)
	if resp, _ := g.ask("GET", "/api/v1/conversations/"+c.ID, "", "Cookie", admin); resp.StatusCode != http.StatusNotFound {
		t.Errorf("the administrator sees what is bob's: %s", resp.Status)
	}

	at.Say(map[string]any{"sub": "8", "email": "eve@evil.example", "email_verified": true})
	cookie, back = g.begins(at, "/")
	fails("not invited", cookie, back, "invitation")
	at.Say(map[string]any{"sub": "8", "email": "ann@example.org", "email_verified": false})
	cookie, back = g.begins(at, "/")
	fails("not verified", cookie, back, "not verified")
	at.Say(map[string]any{"sub": "7", "nonce": "x"})
	cookie, back = g.begins(at, "/")
	fails("a foreign nonce", cookie, back, "cannot be trusted")
	cookie, back = g.begins(at, "/")
	state := back[strings.Index(back, "state="):]
	fails("the provider refuses", cookie, "/auth/oidc/callback?error=access_denied&"+state, "refused")

	at.Say(map[string]any{"sub": "7"})
	at.SayOf(map[string]any{"sub": "7"})
	for _, next := range []string{"https://evil.example/", "//evil.example", `/\evil.example`, "javascript:alert(1)", "/\t/evil.example", "evil"} {
		cookie, back := g.begins(at, next)
		if resp, _ := g.ask("GET", back, "", "Cookie", cookie); resp.Header.Get("Location") != "/" {
			t.Errorf("next %q leads to %q", next, resp.Header.Get("Location"))
		}
	}
	_, page := g.ask("GET", "/login?failed=<script>&next=//evil.example", "")
	if strings.Contains(page, `role="alert"`) || strings.Contains(page, "evil.example") && !strings.Contains(page, `value="//evil.example"`) {
		t.Errorf("an unknown code has a message, or next is a link: %s", page)
	}

	var invited struct{ Items []struct{ ID, Email string } }
	g.must(&invited, "GET", "/api/v1/users", "", "Cookie", admin)
	for _, u := range invited.Items {
		if u.Email == "bob@example.org" {
			g.must(nil, "PATCH", "/api/v1/users/"+u.ID, `{"disabled":true}`, "Cookie", admin, "Origin", g.http.URL)
		}
	}
	cookie, back = g.begins(at, "/")
	fails("a disabled user", cookie, back, "disabled")
}

func TestProviderIsChecked(t *testing.T) {
	for text, want := range map[string]string{
		"auth: {oidc: {client_id: x}}":                                                                  "auth.oidc.issuer",
		"auth: {oidc: {issuer: 'https://id.example'}}":                                                  "client_id is missing",
		"auth: {oidc: {issuer: 'http://id.example', client_id: x}}":                                     "want https",
		"auth: {oidc: {issuer: 'https://id.example', client_id: x, allowed_domains: ['@example.org']}}": "no domain",
		"auth: {oidc: {isuer: x}}":                                                                      `nearest is "auth.oidc.issuer"`,
	} {
		var c config
		if err := c.parse("artel.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	g := newGuarded(t, access.Options{Mode: access.Required}, nil)
	if _, page := g.ask("GET", "/login", ""); strings.Contains(page, "/auth/oidc") {
		t.Error("the login page of a server without a provider names one")
	}
}
