// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/store"
)

const accountPassword = "a long password"

// inhabited returns a site with an administrator, ann@example.org, who has to log in.
func inhabited(t *testing.T) *site {
	t.Helper()
	s := newSiteOf(t, setup{login: true, storage: 5 << 30})
	_, err := s.app.Access.Users.Setup(apptest.Context(t), access.Setup{Name: "Ann", Email: "ann@example.org", Password: accountPassword})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A reader sends forms as a browser without script does.
type reader struct {
	t      *testing.T
	site   *site
	client *http.Client
	lang   string
}

// enter logs a reader in.
func (s *site) enter(t *testing.T, email, password, lang string) *reader {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{t, s, &http.Client{Transport: s.Client().Transport, Jar: jar}, lang}
	if status, text := r.post("/login", "email", email, "password", password, "next", "/account"); status != http.StatusOK || !strings.Contains(text, `action="/account/password"`) {
		t.Fatalf("login: %d %s", status, text)
	}
	return r
}

func (r *reader) do(method, path string, form url.Values) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.site.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		r.t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", r.site.URL)
	}
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Accept-Language", r.lang)
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func (r *reader) get(path string) string {
	r.t.Helper()
	status, text := r.do(http.MethodGet, path, nil)
	if status != http.StatusOK {
		r.t.Fatalf("%s: %d %s", path, status, text)
	}
	return text
}

// post sends a form of pairs of names and values.
func (r *reader) post(path string, pairs ...string) (int, string) {
	r.t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return r.do(http.MethodPost, path, form)
}

// shows fails unless a text is in what was answered.
func (r *reader) shows(what string, status, want int, text, part string) {
	r.t.Helper()
	if status != want || !strings.Contains(text, part) {
		r.t.Errorf("%s: got %d, want %d with %q in\n%.4000s", what, status, want, part, text)
	}
}

// TestAccountForms: users change their account, and see a secret once, without script.
func TestAccountForms(t *testing.T) {
	t.Parallel()
	s := inhabited(t)
	r := s.enter(t, "ann@example.org", accountPassword, "en")
	if home := r.get("/"); !strings.Contains(home, `<bdi class="clip">Ann</bdi>`) || !strings.Contains(home, `action="/logout"`) {
		t.Error("the sidebar does not say who is logged in")
	}
	status, text := r.post("/account", "name", "Anna")
	r.shows("a name", status, 200, text, `value="Anna"`)
	status, text = r.post("/account/tokens", "token", "ci", "scope", "read", "days", "90")
	secret := regexp.MustCompile(`artel_[A-Z2-7]+`).FindString(text)
	r.shows("a token", status, 200, text, "The token “ci” was made")
	if secret == "" || strings.Contains(r.get("/account"), secret) {
		t.Errorf("the secret %q is shown never or twice", secret)
	}
	status, text = r.post("/account/tokens", "token", "none")
	r.shows("a token without scopes", status, 422, text, `role="alert"`)
	id := regexp.MustCompile(`name="id" value="(tok[A-Z2-7]+)"`).FindStringSubmatch(text)
	if id == nil {
		t.Fatal("the token is not listed")
	}
	status, text = r.post("/account/tokens/revoke", "id", id[1])
	r.shows("a revoked token", status, 200, text, "No tokens.")
	other := s.enter(t, "ann@example.org", accountPassword, "zh")
	status, text = other.post("/account/password", "old", "wrong password", "password", "another password")
	r.shows("a wrong password", status, 422, text, phrase.Chinese.Say(phrase.PagePasswordWrong, nil))
	if strings.Contains(other.get("/account"), "keep_keys") {
		t.Error("who has no keys is asked whether to keep them")
	}
	keys := s.app.Access.Keys
	admin := access.With(t.Context(), access.Actor{Owner: artel.Local, Role: store.Admin})
	if _, _, err := keys.Create(admin, store.GatewayKey{Name: "laptop"}); err != nil {
		t.Fatal(err)
	}
	if text := other.get("/account"); !strings.Contains(text, `name="keep_keys"`) || !strings.Contains(text, "1 个网关密钥") {
		t.Error("a user with a key is not asked whether to keep it")
	}
	status, text = other.post("/account/password", "old", accountPassword, "password", "a second password", "keep", "1", "keep_keys", "1")
	r.shows("a new password", status, 200, text, phrase.Chinese.Say(phrase.PageSaved, nil))
	if all, err := keys.List(admin); err != nil || len(all) != 1 {
		t.Errorf("a key that is kept: %d keys, %v", len(all), err)
	}
	status, text = other.post("/account/password", "old", "a second password", "password", "another password")
	r.shows("a new password", status, 200, text, phrase.Chinese.Say(phrase.PageSaved, nil))
	if all, err := keys.List(admin); err != nil || len(all) != 0 {
		t.Errorf("a key that is not kept: %d keys, %v", len(all), err)
	}
	if status, text := r.do(http.MethodGet, "/account", nil); status != 200 || !strings.Contains(text, `autocomplete="current-password"`) || strings.Contains(text, "/account/password") {
		t.Errorf("another session after a new password: %d", status)
	}
	status, text = other.post("/account/sessions")
	r.shows("the end of all sessions", status, 200, text, `action="/login"`)
}

// TestPeopleForms: an administrator invites, changes and removes users without script; a
// member sees nothing of that.
func TestPeopleForms(t *testing.T) {
	t.Parallel()
	s := inhabited(t)
	r := s.enter(t, "ann@example.org", accountPassword, "en")
	status, text := r.post("/people", "name", "Bob <b>", "email", "bob@example.org", "role", "member")
	link := regexp.MustCompile(regexp.QuoteMeta(s.URL) + `(/invite\?code=[A-Z2-7]+)`).FindStringSubmatch(text)
	if status != 200 || link == nil || strings.Contains(text, "<b>b") {
		t.Fatalf("an invitation: %d %s", status, text)
	}
	r.shows("before the password", 200, 200, text, "Has not set a password yet")
	guest := &reader{t, s, &http.Client{Transport: s.Client().Transport}, "en"}
	_, code, _ := strings.Cut(link[1], "code=")
	guest.post("/invite", "code", code, "password", accountPassword)
	bob := s.enter(t, "bob@example.org", accountPassword, "en")
	if text := bob.get("/account"); strings.Contains(text, `href="/people"`) || strings.Contains(text, `value="admin"`) {
		t.Error("a member is offered what only administrators may")
	}
	if status, _ := bob.do(http.MethodGet, "/people", nil); status != http.StatusForbidden {
		t.Errorf("a member reads the people: %d", status)
	}
	text = r.get("/people")
	for _, tab := range []string{`href="/services"`, `href="/people" aria-current="page"`} {
		if !strings.Contains(text, tab) {
			t.Errorf("the page of people has no tab %s", tab)
		}
	}
	person := regexp.MustCompile(`action="(/people/usr_[A-Z2-7]+)"`).FindStringSubmatch(text)
	if person == nil {
		t.Fatal("the user is not listed")
	}
	status, text = r.post(person[1], "name", "Robert", "email", "bob@example.org", "role", "viewer")
	r.shows("a change", status, 200, text, "Robert")
	status, text = r.post(person[1], "do", "disable")
	r.shows("disabled", status, 200, text, "Disabled")
	if status, text := bob.do(http.MethodGet, "/account", nil); strings.Contains(text, "/account/password") {
		t.Errorf("a disabled user reads the account: %d", status)
	}
	status, text = r.post(person[1], "do", "enable")
	r.shows("enabled", status, 200, text, "Robert")
	status, text = r.post(person[1]+"/reset", "email", "bob@example.org")
	r.shows("a reset", status, 200, text, "/invite?code=")
	status, text = r.post(person[1] + "/delete")
	if status != 200 || strings.Contains(text, "Robert") {
		t.Errorf("removed: %d", status)
	}
	for _, form := range [][]string{{"/people/local", "do", "disable"}, {"/people/local/delete"}} {
		status, text = r.post(form[0], form[1:]...)
		r.shows("the last administrator", status, 409, text, "No administrator would be left")
	}
}

// TestAccessibleAccount: both pages keep the rules of axe-core, wide and narrow, light and
// dark, also with a secret and with an error.
func TestAccessibleAccount(t *testing.T) {
	t.Parallel()
	s, open := inhabited(t), newSiteOf(t, setup{})
	r := s.enter(t, "ann@example.org", accountPassword, "en")
	r.post("/people", "name", "Bob", "email", "bob@example.org", "role", "viewer")
	r.post("/account/tokens", "token", "ci", "scope", "read", "days", "0")
	b := openTab(t, 1440, 900)
	b.Forgive("409")
	axe := newChecker(t, b)
	submit := func(form string) chromedp.Action[chromedp.Void] { return click(form + " button") }
	b.Do(chromedp.Navigate(s.URL+"/login?next=/account"), see("#email"), fill("#email", "ann@example.org"), fill("#password", accountPassword), submit("form.login"), see("#tokens"))
	check := func(name string) {
		t.Helper()
		b.Prefer("light", true)
		axe.check("html", allRules, name, "light")
		b.picture("account-" + name)
		b.Prefer("dark", true)
		axe.check("html", colorRules, name, "dark")
		resize(b, 390, 900)
		axe.check("html", otherRules, name, "narrow")
		if wide := eval[bool](b, `document.documentElement.scrollWidth > innerWidth`); wide {
			t.Errorf("%s is wider than the window", name)
		}
		b.Prefer("light", true)
		resize(b, 1440, 900)
	}
	check("account")
	b.Do(fill("#token", "laptop"), submit(`form[action="/account/tokens"]`), see("figure.code code"))
	check("secret")
	b.Do(chromedp.Navigate(s.URL+"/people"), see("#invite-title"), click(".door:first-child > summary"), see(".door[open] > div > .entry"))
	check("people")
	b.Do(click(`.door[open] button[value="disable"]`), see(".note.bad"))
	check("refused")
	b.Do(fill("#name", "Eve"), fill("#email", "eve@example.org"), submit(`form[action="/people"]`), see("figure.code code"))
	check("invited")
	b.Do(chromedp.Navigate(open.URL+"/account"), see("#open-title"))
	check("open")
}
