// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/model/provider/openai"
)

const providerKey = "sk-0123456789abcd4f2a"

// unconnected is a site without a model but the demo, and a provider beside it.
func unconnected(t *testing.T) (s *site, providerURL string) {
	t.Helper()
	client := fetch.NewClient(fetch.Options{AllowPrivate: true})
	t.Cleanup(client.CloseIdleConnections)
	blobs := blob.NewMemory()
	api := httptest.NewServer(fake.OpenAI(fake.Options{
		Key: providerKey, Models: []string{"alpha", "beta", "gamma"}, Blobs: blobs, Responder: fake.Sees(blobs, demo.New(blobs, demo.Options{}).Generate),
	}))
	t.Cleanup(api.Close)
	s = newSiteOf(t, setup{openai: func(b blob.Store) model.Provider { return openai.New(provider.Options{Client: client, Blobs: b}) }})
	return s, api.URL + "/v1"
}

// TestConnectAModel: who opens the page without a model connects one, is told what is wrong
// with the key, chooses models, and gets an answer, without a restart.
func TestConnectAModel(t *testing.T) {
	t.Parallel()
	s, provider := unconnected(t)
	b := openTab(t, 1280, 900)
	b.Do(chromedp.Navigate(s.URL), see("#connect"))
	b.picture("connect-home")
	b.Do(click(`.providers a[href$="provider=openai"]`), see("#key"))
	b.on("#key") // the first thing to do
	b.picture("connect-form")
	b.Do(click(".connect summary"), see("#address"))
	b.Script(`document.querySelector("#address").value = ` + "`" + provider + "`")
	b.Script(`document.querySelector("#key").value = "sk-of-another-provider"`)
	b.Do(click("#do-check"))
	b.Until(`document.querySelectorAll("#check li.bad").length === 1 && !document.querySelector("#do-check").hasAttribute("aria-disabled")`)
	b.Says("#check", "Key: The server refuses the key", "not tried", "does not work yet")
	b.picture("connect-refused")
	b.Script(`document.querySelector("#key").value = "` + providerKey + `"`)
	b.Do(click("#do-check"))
	b.Until(`document.querySelectorAll("#check li.good").length === 5`)
	b.Until(`document.activeElement.id === "save-service"`)
	b.Says("#check", "It works.", "alpha", "beta", "gamma")
	b.picture("connect-works")
	b.Do(click(`#check input[value="beta"]`), click("#save-service"), see("#composer"))
	b.Says("#toasts", "OpenAI", "is connected")
	b.Until(`document.querySelector("#connect") === null`)
	b.picture("connect-done")
	b.send("Hello")
	b.rest()
	b.Says("#messages", "alpha (OpenAI)")
	b.Do(chromedp.Navigate(s.URL+"/services"), see("#s-openai"))
	b.Says("#s-openai", "OpenAI", provider, "alpha, beta")
	b.picture("services")
	b.Do(click(`#s-openai a[href$="/edit"]`), see("#save-service"))
	b.Says("#key-hint", "ends with 4f2a")
	b.picture("service-edit")
	if strings.Contains(eval[string](b, `document.documentElement.outerHTML`), providerKey) {
		t.Error("the page shows the key")
	}
	b.Do(click("#save-service"), see("#s-openai")) // the key stays
	if stored := s.app.Models.Services(apptest.Context(t))[0]; stored.APIKey != providerKey {
		t.Errorf("after a change without a key: %+v", stored.ID)
	}
}

// TestConnectWithoutScript: the same by forms alone; then the service is switched off and
// on, and deleted.
func TestConnectWithoutScript(t *testing.T) {
	t.Parallel()
	s, provider := unconnected(t)
	post := func(path string, fields url.Values) answer {
		t.Helper()
		return s.ask(t, "POST", path, "application/x-www-form-urlencoded", strings.NewReader(fields.Encode()))
	}
	fields := url.Values{"provider": {"other"}, "dialect": {"openai"}, "address": {strings.TrimSuffix(provider, "/v1") + "/api"}, "key": {providerKey}}
	if a := post("/services/check", fields); a.StatusCode != 200 || !strings.Contains(a.body, "Try "+provider) || !strings.Contains(a.body, "does not work yet") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	fields.Set("address", provider)
	if a := post("/services/check", fields); a.StatusCode != 200 || !strings.Contains(a.body, "It works.") || strings.Count(a.body, `name="model"`) != 4 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	fields.Set("address", "file:///etc/passwd")
	for _, path := range []string{"/services/check", "/services"} {
		if a := post(path, fields); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "baseURL is not an address") {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
	fields.Set("address", provider)
	fields["model"] = []string{"*"}
	a := post("/services", fields)
	if to := a.Header.Get("Location"); a.StatusCode != http.StatusSeeOther || to != "/?connected=127.0.0.1" {
		t.Fatalf("%d to %s: %s", a.StatusCode, to, a.body)
	}
	callable := func() (n int) {
		for _, one := range s.app.Models.Services(apptest.Context(t)) {
			if !one.Demo() {
				n++
			}
		}
		return n
	}
	if callable() != 3 {
		t.Errorf("%d services, want one for each model", callable())
	}
	host := strings.TrimSuffix(strings.TrimPrefix(provider, "http://"), "/v1")
	if a := s.ask(t, "GET", "/services?kept=127.0.0.1", "", nil); !strings.Contains(a.body, host+" is saved") {
		t.Errorf("the toast does not name %s: %s", host, a.body)
	}
	for _, step := range []struct {
		path, to string
		want     int
	}{{"/switch", "off", 0}, {"/switch", "on", 3}, {"/delete", "", 0}} {
		if a := post("/services/127.0.0.1"+step.path, url.Values{"to": {step.to}}); a.StatusCode != http.StatusSeeOther || callable() != step.want {
			t.Errorf("%s %s: %d, %d services, want %d", step.path, step.to, a.StatusCode, callable(), step.want)
		}
	}
}

// TestPricesOfAService: the form of a service has its prices, shows what was typed if it is
// refused, and budgets count with them.
func TestPricesOfAService(t *testing.T) {
	t.Parallel()
	s, provider := unconnected(t)
	post := func(path string, fields url.Values) answer {
		t.Helper()
		return s.ask(t, "POST", path, "application/x-www-form-urlencoded", strings.NewReader(fields.Encode()))
	}
	fields := url.Values{"provider": {"other"}, "dialect": {"openai"}, "address": {provider}, "key": {providerKey}, "manual": {"alpha"}}
	if a := post("/services", fields); a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d: %s", a.StatusCode, a.body)
	}
	budget := url.Values{"name": {"crew"}, "usd": {"5"}, "period": {"month"}, "days": {"0"}, "service": {"127.0.0.1"}}
	if a := post("/keys", budget); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "/services") {
		t.Errorf("a budget without prices: %d %s", a.StatusCode, a.body)
	}
	fields.Set("stored", "127.0.0.1")
	for _, wrong := range []string{"1,25", "-1", "NaN", ""} {
		fields.Set("price_input", wrong)
		fields.Set("price_output", "10")
		if a := post("/services", fields); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "US dollars for a million tokens") || !strings.Contains(a.body, `name="price_output" value="10"`) {
			t.Errorf("%q: %d %s", wrong, a.StatusCode, a.body)
		}
	}
	fields.Set("price_input", "1.25")
	if a := post("/services", fields); a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d: %s", a.StatusCode, a.body)
	}
	price := func() model.Fact[model.Price] { return s.app.Models.Services(apptest.Context(t))[0].Capabilities.Price }
	if got := price().Value; got != (model.Price{Input: 1.25, Output: 10, CacheRead: 1.25, CacheWrite: 1.25}) {
		t.Errorf("%+v", got)
	}
	if a := s.ask(t, "GET", "/services/127.0.0.1/edit", "", nil); !strings.Contains(a.body, `name="price_input" value="1.25"`) {
		t.Errorf("the form without the price: %s", a.body)
	}
	if a := post("/keys", budget); a.StatusCode != http.StatusOK {
		t.Errorf("a budget with prices: %d %s", a.StatusCode, a.body)
	}
	fields.Del("price_input")
	fields.Del("price_output")
	if a := post("/services", fields); a.StatusCode != http.StatusSeeOther || price().Source != model.FromNothing {
		t.Errorf("prices that were emptied: %d %+v", a.StatusCode, price())
	}
}

// The pages of services keep the rules of axe-core.
func TestAccessibleServices(t *testing.T) {
	t.Parallel()
	s, provider := unconnected(t)
	if _, err := s.app.Services.Create(apptest.Context(t), map[string]any{"id": "team", "baseURL": provider, "apiKey": providerKey, "model": "alpha"}); err != nil {
		t.Fatal(err)
	}
	visit(t, []state{
		{name: "services", url: s.URL + "/services"},
		{name: "service", url: s.URL + "/services/new?provider=anthropic"},
		{name: "service of another server", url: s.URL + "/services/new?provider=other"},
		{name: "stored service", url: s.URL + "/services/team/edit"},
		{name: "checked service", url: s.URL + "/services/team/edit", then: steps(click("#do-check"), see("#check li.good:last-child"))},
	}, 1440, 390)
}
