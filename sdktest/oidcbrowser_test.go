// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/sdktest/program"
	"github.com/artelhq/artel/webui/webuitest"
)

// A gate stands before a provider: it can be shut, and keeps the address to which a
// browser was sent back.
type gate struct {
	http.Handler

	mu   sync.Mutex
	shut bool
	back string
}

func (g *gate) behind(h http.Handler) http.Handler {
	g.Handler = h
	return g
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
}

func (g *gate) sentBack() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.back
}

// ServeHTTP implements [http.Handler].
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	shut := g.shut && strings.Contains(r.URL.Path, "token")
	g.mu.Unlock()
	if shut {
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}
	g.Handler.ServeHTTP(w, r)
	if to := w.Header().Get("Location"); strings.Contains(to, "/auth/oidc/callback?") {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.back = to
	}
}

// TestProviderInBrowser: in Chromium, people log in at a provider through the button of
// the page and come back logged in; who may not, reads why in both languages.
func TestProviderInBrowser(t *testing.T) {
	z := newZitadel(t)
	listening, setup := program.StartAt(t, "..", z.config(), "0.0.0.0:0")
	at, err := url.Parse(listening)
	if err != nil {
		t.Fatal(err)
	}
	site := "http://127.0.0.1:" + at.Port()
	g := &gate{}
	z.serve(site, g)
	code, err := url.Parse(setup)
	if err != nil {
		t.Fatal(err)
	}
	newVisitor(t, site).ask(nil, "POST", "/api/v1/setup", `{"code":"`+code.Query().Get("code")+`","name":"Ann","email":"ann@example.org","password":"a long password"}`)

	browsers := webuitest.NewBrowsers(1)
	t.Cleanup(browsers.Quit)
	b := browsers.Open(t, 5*time.Minute, 1280, 800)
	b.Forgive("localhost", "favicon.ico") // of the provider
	press := func(from string) {          // the button, up to the form of the provider
		t.Helper()
		b.Do(chromedp.Navigate(site+from), chromedp.WaitVisible(chromedp.CSS("form.login .or a")), chromedp.Click(chromedp.CSS("form.login .or a")))
		b.Until(fmt.Sprintf(`location.origin === %q && document.querySelector("form[action='/login/username']")`, z.issuer))
	}
	login := func(name string) {
		t.Helper()
		b.Script(fmt.Sprintf(`document.getElementById("username").value = %q; document.getElementById("password").value = "verysecure"`, name))
		b.Do(chromedp.Click(chromedp.CSS("button[type=submit]")))
		b.Until(fmt.Sprintf(`location.origin === %q`, site))
	}
	// refused looks at the alert of the login page in both languages.
	refused := func(what, code, en, zh string) {
		t.Helper()
		b.Until(fmt.Sprintf(`location.pathname === "/login" && location.search.includes(%q)`, code))
		for language, text := range map[string]string{"en": en, "zh": zh} {
			b.Do(webuitest.Command(network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": language}}))
			b.Do(chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS("form.login [role=alert]")))
			if got := b.Text("form.login [role=alert]"); got != text {
				t.Errorf("%s, %s: the page says %q", what, language, got)
			}
			if lang := webuitest.Eval[string](b, `document.documentElement.lang`); lang != language {
				t.Errorf("%s: the page is in %s", what, lang)
			}
		}
		b.Do(chromedp.WaitVisible(chromedp.CSS("form.login .or a"))) // to begin again
	}

	press("/agents") // leads to the login, and back to where the browser wanted to go
	login("test-user2")
	b.Until(`location.pathname === "/agents" && document.getElementById("sidebar")`)
	if who := webuitest.Eval[string](b, `fetch("/api/v1/me").then(r => r.json()).then(u => u.email + " " + u.role)`); who != "test-user2@zitadel.ch member" {
		t.Errorf("logged in as %s", who)
	}
	if seen := webuitest.Eval[string](b, `document.cookie`); strings.Contains(seen, "artel") {
		t.Errorf("scripts see the cookies %q", seen)
	}

	b.Do(chromedp.Navigate(g.sentBack())) // the same state and code once more
	refused("a used state", "login_expired", "This login took too long, or was used already. Begin again.", "本次登录已超时或已被使用。请重新开始。")

	press("/login")
	g.set(true)
	login("test-user2")
	refused("a provider that is down", "provider_unreachable", "The provider of single sign-on cannot be reached. Try again in a moment, or log in with your password.", "无法连接单点登录服务。请稍后重试，或使用密码登录。")
	g.set(false)

	press("/login")
	login("stranger")
	refused("a foreign domain", "not_invited", "You have no account here. Ask an administrator for an invitation.", "你在这里没有账户。请向管理员索取邀请。")
}
