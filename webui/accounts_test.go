// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/internal/oauth/oauthtest"
	"github.com/artelhq/artel/model/provider/demo"
)

// TestConnectAccount: an administrator adds a server with accounts; a run without one shows
// the way to connect it; the user allows it at the authorization server, and the next
// message uses it; a refusal and an end of the access are said in words.
func TestConnectAccount(t *testing.T) {
	t.Parallel()
	mail := oauthtest.New(t)
	script, err := demo.ParseScenario([]byte("-- turn 1 --\n@call mail_connect {}\n-- turn 2 --\n@call mail_whoami {}\n-- turn 3 --\nThat is all.\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := newSiteOf(t, setup{demo: demo.Options{Scenario: script}})
	b := openTab(t, 1280, 900)
	b.Do(chromedp.Navigate(s.URL+"/tools/mcp/new"), see("#name"))
	b.Script(`document.querySelector("#name").value = "mail"; document.querySelector("#address").value = "` + mail.URL + `"; document.querySelector("details:has(#timeout)").open = true; document.querySelector("input[name=oauth]").checked = true`)
	b.Says("main", "Each user connects it", s.URL+"/auth/mcp/callback")
	b.picture("tool-mcp-oauth")
	b.Do(click("#do-check"))
	b.Until(`!!document.querySelector("#save-service.primary")`)
	b.Do(click("#save-service"), see("#t-mcp-mail"))
	b.Says("#t-mcp-mail", "each user connects it")
	b.Says("#a-mail", "not connected", "Connect")

	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.send("Read my mail.")
	b.rest()
	b.Says("#messages", "needs an account of yours", "That is all.")
	b.picture("account-needed")
	b.Do(click(`#messages a[href$="/accounts/mail"]`), see("#a-mail"))
	b.picture("account-connect")

	mail.Browser("") // a person who refuses
	b.Forgive("403")
	b.Do(click("#a-mail a.button"))
	b.Until(`location.pathname === "/auth/mcp/callback" && document.querySelector("[role=alert]") !== null`)
	b.Says("main", "Access was not granted.", "access_denied", "Connect")
	b.picture("account-refused")
	mail.Browser("ann")
	b.Do(click("#a-mail a.button"))
	b.Until(`location.pathname === "/tools" && document.querySelector("#a-mail") !== null`)
	b.Says("#toasts", "mail is connected")
	b.Says("#a-mail", "connected as ann@mail.example", mail.Issuer, "Disconnect")
	b.picture("account-connected")

	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.Script(`document.querySelector("nav a[href*='/c/'], #conversations a[href*='/c/']")?.click()`)
	b.Until(`location.pathname.startsWith("/c/") && document.querySelector("#composer") !== null`)
	b.send("Read my mail now.")
	b.rest()
	b.Until(`document.querySelector("#messages").textContent.includes("the mail of ann")`)

	b.Do(chromedp.Navigate(s.URL+"/tools"), see("#a-mail form"))
	b.Do(click("#a-mail form button"))
	b.Until(`document.querySelector("#a-mail .badge")?.textContent === "not connected"`)
	b.Says("#toasts", "mail is disconnected, and the access is revoked")
	if n := mail.Count("revoke"); n != 2 || mail.Valid() != 0 {
		t.Errorf("%d revocations, %d valid tokens", n, mail.Valid())
	}
	for _, act := range []string{"mcp_account_connected", "mcp_account_disconnected"} {
		if page := s.open(t, "/audit?action="+act).body; !strings.Contains(page, "mail") {
			t.Errorf("the audit page lacks %s", act)
		}
	}
}

// TestAccountPages: the pages work without script; an answer without a request, a foreign
// link and an unknown server are refused with words, and authorization servers can read
// who this is.
func TestAccountPages(t *testing.T) {
	t.Parallel()
	mail := oauthtest.New(t)
	s := newSiteOf(t, setup{})
	if a := s.post(t, "/tools/mcp", "name", "mail", "address", mail.URL, "oauth", "1"); a.path != "/tools" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for path, want := range map[string]string{
		"/accounts/mail":                    "not connected",
		"/auth/mcp/callback?state=x&code=y": "This answer belongs to no request that waits",
		"/accounts/none":                    "",
		"/auth/mcp/start?server=none":       "",
		"/auth/mcp/client.json":             `"token_endpoint_auth_method":"none"`,
	} {
		a := s.open(t, path)
		if !strings.Contains(a.body, want) || want == "" && a.status != http.StatusNotFound {
			t.Errorf("%s: %d %.300s", path, a.status, a.body)
		}
	}
	mail.Describe(func(m map[string]any) { delete(m, "registration_endpoint") })
	if a := s.open(t, "/auth/mcp/start?server=mail"); !strings.Contains(a.body, "An administrator has to register it there") || !strings.Contains(a.body, "/auth/mcp/callback") {
		t.Errorf("%d %.2000s", a.status, a.body)
	}
	mail.Describe(nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/auth/mcp/start?server=mail", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	r.Header.Set("Accept", "text/html")
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for site, want := range map[string]string{"cross-site": s.URL + "/accounts/mail", "same-origin": mail.Issuer + "/authorize"} {
		r.Header.Set("Sec-Fetch-Site", site)
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if to, _ := resp.Location(); to == nil || to.Scheme+"://"+to.Host+to.Path != want {
			t.Errorf("from %s: %s to %v", site, resp.Status, to)
		}
	}
	// What is configured is kept by the form.
	if a := s.post(t, "/tools/mcp", "stored", "mail", "address", mail.URL, "oauth", "1", "client-id", "artel-1", "client-secret", "secret-0123456789abcdef", "scopes", "mail send"); a.path != "/tools" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	form := s.open(t, "/tools/mcp/mail/edit").body
	if !strings.Contains(form, `value="artel-1"`) || !strings.Contains(form, `value="mail send"`) || strings.Contains(form, "secret-0123456789") || !strings.Contains(form, "A value is stored") {
		t.Errorf("the form: %s", form)
	}
}
