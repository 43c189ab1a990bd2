// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/webui/webuitest"
)

// below starts a reverse proxy that serves g under a path, which it removes or keeps,
// and nothing else.
func (g *guarded) below(prefix string, remove bool) *httptest.Server {
	g.t.Helper()
	target, err := url.Parse(g.http.URL)
	if err != nil {
		g.t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		if remove {
			r.Out.URL.Path, r.Out.URL.RawPath = strings.TrimPrefix(r.Out.URL.Path, prefix), strings.TrimPrefix(r.Out.URL.RawPath, prefix)
		}
		r.SetURL(target)
		r.SetXForwarded()
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != prefix && !strings.HasPrefix(r.URL.Path, prefix+"/") {
			http.Error(w, "this belongs to another program", http.StatusTeapot)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	g.t.Cleanup(front.Close)
	return front
}

func newBelow(t *testing.T, o access.Options) *guarded {
	return newGuarded(t, o, func(c *config) { c.BasePath, c.TrustedProxies = "/artel", []string{"127.0.0.1"} })
}

// paths are the addresses in a page that a browser asks for.
var paths = regexp.MustCompile(` (?:href|src|action|formaction|hx-get|hx-post)="(/[^"]*)"`)

// TestBelowPath: every address of the pages is below the path, the redirects and cookies
// too, whether the proxy removes the path or not.
func TestBelowPath(t *testing.T) {
	for _, remove := range []bool{false, true} {
		g := newBelow(t, access.Options{Mode: access.Required})
		front := g.below("/artel", remove)
		ask := func(method, path, body string, header ...string) *http.Response {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), method, front.URL+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", "text/html")
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			resp, err := g.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { resp.Body.Close() })
			return resp
		}
		if resp := ask("GET", "/artel/settings?x=y", ""); resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/artel/login?next=%2Fsettings%3Fx%3Dy" {
			t.Errorf("without a login: %s to %s", resp.Status, resp.Header.Get("Location"))
		}
		form := url.Values{"code": {g.server.app.Access.NewSetupCode()}, "name": {"Ann"}, "email": {"ann@example.org"}, "password": {testPassword}}
		resp := ask("POST", "/artel/setup", form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Origin", front.URL)
		cookie := sessionOf(t, resp)
		if resp.Header.Get("Location") != "/artel/" || !strings.Contains(resp.Header.Get("Set-Cookie"), "Path=/artel/;") {
			t.Errorf("set-up: %s, %v", resp.Status, resp.Header)
		}
		seen := map[string]bool{}
		for queue := []string{"/artel/"}; len(queue) > 0; queue = queue[1:] {
			resp := ask("GET", queue[0], "", "Cookie", cookie)
			if resp.StatusCode >= 400 {
				t.Errorf("%s: %s", queue[0], resp.Status)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range paths.FindAllStringSubmatch(string(body), -1) {
				path, _, _ := strings.Cut(strings.ReplaceAll(m[1], "&amp;", "&"), "#")
				if !strings.HasPrefix(path, "/artel/") {
					t.Errorf("%s leads out of the path: %s", queue[0], m[0])
				}
				bare, _, _ := strings.Cut(path, "?")
				if link := strings.Contains(m[0], "href=") || strings.Contains(m[0], "src="); link && !seen[bare] {
					seen[bare] = true
					queue = append(queue, path)
				}
			}
		}
		if len(seen) < 15 {
			t.Errorf("only %d addresses were found: %v", len(seen), seen)
		}
		var invited struct {
			InviteURL string `json:"invite_url"`
		}
		g.must(&invited, "POST", "/api/v1/users", `{"name":"Bob","email":"bob@example.org"}`, "Cookie", cookie, "Origin", front.URL, "X-Forwarded-For", "192.0.2.1", "X-Forwarded-Host", strings.TrimPrefix(front.URL, "http://"))
		if !strings.HasPrefix(invited.InviteURL, front.URL+"/artel/invite?code=") {
			t.Errorf("invited to %s", invited.InviteURL)
		}
	}
}

// TestTalkBelowPath has a conversation below a path, in a browser.
func TestTalkBelowPath(t *testing.T) {
	g := newBelow(t, access.Options{})
	front := g.below("/artel", false)
	browsers := webuitest.NewBrowsers(1)
	t.Cleanup(browsers.Quit)
	b := browsers.Open(t, 5*time.Minute, 1280, 900)
	b.Do(chromedp.Navigate(front.URL+"/artel"), chromedp.WaitVisible(chromedp.CSS("#composer textarea")))
	b.Do(chromedp.SendKeys(chromedp.CSS("#composer textarea"), "Hello there"))
	b.Script(`document.getElementById("composer").requestSubmit()`)
	b.Until(`location.pathname.startsWith("/artel/c/") && document.querySelector("article.assistant:not(.writing)") && !document.querySelector("#status.active")`)
	b.Script(`document.querySelector('a[href="/artel/settings"]').click()`)
	b.Until(`location.pathname === "/artel/settings"`)
	b.Script(`document.querySelector('a[href^="/artel/c/"]').click()`)
	b.Until(`location.pathname.startsWith("/artel/c/") && document.body.innerText.includes("Hello there")`)
}
