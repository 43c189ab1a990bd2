// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// priced returns a site with an administrator and a service with a price.
func priced(t *testing.T) *site {
	t.Helper()
	s := newSiteOf(t, setup{login: true, services: []model.Service{{
		ID: "acme/gull", Name: "Acme Gull", Dialect: "openai", BaseURL: "http://127.0.0.1:1/v1", Model: "gull",
		Capabilities: model.Capabilities{Price: model.Fact[model.Price]{Value: model.Price{Input: 1, Output: 2}, Source: "test"}},
	}}})
	if _, err := s.app.Access.Users.Setup(apptest.Context(t), access.Setup{Name: "Ann", Email: "ann@example.org", Password: accountPassword}); err != nil {
		t.Fatal(err)
	}
	return s
}

// join adds a member to a site.
func (r *reader) join(name string) *reader {
	r.t.Helper()
	address := strings.ToLower(name) + "@example.org"
	_, text := r.post("/people", "name", name, "email", address, "role", "member")
	link := regexp.MustCompile(`/invite\?code=([A-Z2-7]+)`).FindStringSubmatch(text)
	if link == nil {
		r.t.Fatalf("no invitation in %s", text)
	}
	guest := &reader{r.t, r.site, &http.Client{Transport: r.site.Client().Transport}, "en"}
	guest.post("/invite", "code", link[1], "password", accountPassword)
	return r.site.enter(r.t, address, accountPassword, "en")
}

// spend writes what calls have used into the ledger.
func (s *site) spend(t *testing.T, rows ...store.UsageRow) {
	t.Helper()
	err := s.store.People().Update(t.Context(), func(tx store.PeopleTx) error { return tx.Ledger.Add(rows...) })
	if err != nil {
		t.Fatal(err)
	}
}

// TestKeyForms: users make, change and revoke keys without script, see a secret once, and
// nothing of the keys of others.
func TestKeyForms(t *testing.T) {
	t.Parallel()
	s := priced(t)
	ann := s.enter(t, "ann@example.org", accountPassword, "en")
	bob := ann.join("Bob")
	status, text := bob.post("/keys", "name", "laptop", "usd", "0.01", "period", "day", "requests", "5", "service", "acme/gull", "days", "30")
	bob.shows("a key", status, 200, text, "The key “laptop” was made")
	secret := regexp.MustCompile(access.KeyPrefix + `[A-Z2-7]+`).FindString(text)
	if secret == "" || strings.Count(text, secret) < 5 || !strings.Contains(text, "model=&#34;acme/gull&#34;") {
		t.Errorf("the secret %q is not in the lines for programs:\n%s", secret, text)
	}
	text = bob.get("/keys")
	id := regexp.MustCompile(`action="/keys/(key[A-Z2-7]+)"`).FindStringSubmatch(text)
	if id == nil || strings.Contains(text, secret) {
		t.Fatalf("the key is not listed, or its secret is shown twice: %s", text)
	}
	all, err := s.app.Access.Keys.List(access.With(t.Context(), access.Actor{Owner: artel.Local, Role: store.Admin}))
	if err != nil || len(all) != 1 {
		t.Fatalf("got %d keys, %v", len(all), err)
	}
	k := all[0]
	if l := k.Limits; l.Requests != 5 || l.Budget != (store.Budget{USD: 0.01, Period: store.PerDay}) || len(k.Services) != 1 || k.ExpiresAt.Before(time.Now().Add(29*24*time.Hour)) {
		t.Errorf("got %+v", k)
	}
	s.spend(t, store.UsageRow{Day: time.Now().UTC().Truncate(24 * time.Hour), User: k.User, Key: k.ID, Service: "acme/gull", Model: "gull", Source: "gateway", Counts: store.UsageCounts{Calls: 1, Input: 10, Cost: 9_000_000}})
	bob.shows("what is spent", 200, 200, bob.get("/keys"), "$0.0090 of $0.0100 used today")
	bob.shows("a budget that is nearly used up", 200, 200, bob.get("/usage"), "Budget nearly used up")

	status, text = bob.post("/keys/"+id[1], "name", "desktop", "usd", "", "tokens", "1000", "days", "keep")
	bob.shows("a change", status, 200, text, "desktop")
	all, err = s.app.Access.Keys.List(access.With(t.Context(), access.Actor{Owner: artel.Local, Role: store.Admin}))
	if err != nil || len(all) != 1 || all[0].Limits != (store.KeyLimits{Tokens: 1000}) || all[0].Services != nil || !all[0].ExpiresAt.Equal(k.ExpiresAt) {
		t.Errorf("changed: got %+v, %v", all, err)
	}
	for _, wrong := range [][]string{{"name", "x", "tokens", "many"}, {"name", "x", "usd", "NaN"}, {"name", "x", "usd", "-1"}, {"name", "", "requests", "7"}, {"name", "x", "service", "gone"}} {
		status, text = bob.post("/keys/"+id[1], wrong...)
		bob.shows(fmt.Sprint(wrong), status, 422, text, `role="alert"`)
		status, text = bob.post("/keys", wrong...)
		bob.shows(fmt.Sprint("new ", wrong), status, 422, text, `role="alert"`)
		if wrong[2] == "requests" && !strings.Contains(text, `value="7"`) {
			t.Error("what was typed is lost")
		}
	}
	status, text = bob.post("/keys/"+id[1], "do", "disable")
	bob.shows("disabled", status, 200, text, "Disabled")
	bob.shows("an administrator", 200, 200, ann.get("/keys"), "Bob")
	eve := ann.join("Eve")
	if text := eve.get("/keys"); strings.Contains(text, "desktop") {
		t.Error("a member sees the key of another")
	}
	for _, path := range []string{"", "/revoke"} {
		if status, _ := eve.post("/keys/"+id[1]+path, "name", "mine"); path == "" && status != http.StatusNotFound {
			t.Errorf("a member changes the key of another: %d", status)
		}
	}
	if text := bob.get("/keys"); !strings.Contains(text, "desktop") {
		t.Error("a member revoked the key of another")
	}
	status, text = bob.post("/keys/" + id[1] + "/revoke")
	bob.shows("revoked", status, 200, text, "No keys yet.")
}

// TestUsagePage: users see their own usage, administrators that of all, split as they ask.
func TestUsagePage(t *testing.T) {
	t.Parallel()
	s := priced(t)
	ann := s.enter(t, "ann@example.org", accountPassword, "en")
	bob := ann.join("Bob")
	if text := bob.get("/usage"); !strings.Contains(text, "No model was called") {
		t.Error("usage without calls")
	}
	users, err := s.app.Access.Users.List(access.With(t.Context(), access.Actor{Owner: artel.Local, Role: store.Admin}))
	if err != nil {
		t.Fatal(err)
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	for _, u := range users {
		for i := range 8 {
			s.spend(t, store.UsageRow{
				Day: today.AddDate(0, 0, -i), User: u.ID, Service: "acme/gull", Model: fmt.Sprint("gull-", i), Agent: "lead", Source: "run",
				Counts: store.UsageCounts{Calls: 2, Input: 1000, Cached: 250, Output: 234, Cost: 1_500_000_000, Unknown: 1},
			})
		}
	}
	text := bob.get("/usage")
	for _, want := range []string{"8,000", "1,872", "$12.00, and 8 calls of unknown cost", "25 %", "gull-7", "3 others", "<rect", today.Format(time.DateOnly), "by=model"} {
		bob.shows("of a member", 200, 200, text, want)
	}
	if strings.Contains(text, `value="user"`) {
		t.Error("a member is offered to split by user")
	}
	ann.shows("of all", 200, 200, ann.get("/usage?by=user"), "16,000")
	ann.shows("by user", 200, 200, ann.get("/usage?by=user"), `<th scope="row"><bdi>Bob</bdi></th>`)
	ann.shows("by agent", 200, 200, ann.get("/usage?by=agent"), "lead")
	ann.shows("by key", 200, 200, ann.get("/usage?by=key"), "without a key")
	ann.shows("by day", 200, 200, ann.get("/usage?by=day"), `<th scope="row"><bdi>`+today.Format(time.DateOnly))
	ann.shows("by service", 200, 200, ann.get("/usage?by=service"), "Acme Gull")
	ann.shows("a year", 200, 200, ann.get("/usage?from="+today.AddDate(0, 0, -364).Format(time.DateOnly)), "4 days a bar")
	for _, wrong := range []string{"by=moon", "from=yesterday", "from=2020-02-02&to=2020-01-01", "from=1900-01-01"} {
		status, text := ann.do(http.MethodGet, "/usage?"+wrong, nil)
		ann.shows(wrong, status, 422, text, `role="alert"`)
	}
}

// TestAccessibleKeys: the pages of keys and of usage keep the rules of axe-core, wide and
// narrow, light and dark, also with a secret and with an error.
func TestAccessibleKeys(t *testing.T) {
	t.Parallel()
	s := priced(t)
	ann := s.enter(t, "ann@example.org", accountPassword, "en")
	ann.post("/keys", "name", "laptop", "usd", "2", "period", "month", "service", "acme/gull")
	ann.post("/keys", "name", "ci", "requests", "60")
	all, err := s.app.Access.Keys.List(access.With(t.Context(), access.Actor{Owner: artel.Local, Role: store.Admin}))
	if err != nil {
		t.Fatal(err)
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	for i := range 30 {
		for j, k := range all {
			s.spend(t, store.UsageRow{
				Day: today.AddDate(0, 0, -i), User: k.User, Key: k.ID, Service: "acme/gull", Model: fmt.Sprint("gull-", j), Source: "gateway",
				Counts: store.UsageCounts{Calls: 2, Input: int64(1000 + 997*(i*7%11)), Cached: int64(100 * (i % 7)), Output: 1500, Cost: int64(1_000_000 * (100 + i*31%90))},
			})
		}
	}
	b := openTab(t, 1440, 900)
	b.Forgive("422")
	axe := newChecker(t, b)
	b.Do(chromedp.Navigate(s.URL+"/login?next=/keys"), see("#email"), fill("#email", "ann@example.org"), fill("#password", accountPassword), click("form.login button"), see("#keys-title"))
	axe.checkPage("keys")
	b.Do(click(".door:first-child > summary"), see(".door[open] > div > .entry"))
	axe.checkPage("keys-open")
	b.Do(fill("#key-name", "desk"), fill("#key-usd", "1"), click(`form[action="/keys"] button`), see("figure.code code"))
	axe.checkPage("keys-secret")
	b.Do(fill("#key-name", " "), click(`form[action="/keys"] button`), see(".note.bad"))
	axe.checkPage("keys-refused")
	b.Do(chromedp.Navigate(s.URL+"/usage"), see("#table-title"))
	axe.checkPage("usage")
	b.Do(chromedp.Navigate(s.URL+"/usage?by=key"), see("#table-title"))
	axe.checkPage("usage-key")
}
