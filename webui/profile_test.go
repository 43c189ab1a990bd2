// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/pipeline"
)

// What somebody says about themselves is kept, rules and all, and its language
// is that of the page at once.
func TestProfile(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	rules := json.RawMessage(`{"rules":[{"find":"a"}]}`)
	if _, err := s.app.Profiles.Set(apptest.Context(t), pipeline.Profile{Rules: rules, Language: "pt-BR"}, 0); err != nil {
		t.Fatal(err)
	}
	if page := s.ask(t, "GET", "/me", "", nil).body; !strings.Contains(page, "<option selected lang=\"\">pt-BR</option>") {
		t.Error("a language that the page does not speak is not shown")
	}
	post := func(fields url.Values, header ...string) answer {
		return s.ask(t, "POST", "/me", "application/x-www-form-urlencoded", strings.NewReader(fields.Encode()), header...)
	}
	a := post(url.Values{"name": {" Ada "}, "persona": {"one\r\ntwo"}, "language": {"zh"}, "revision": {"1"}}, "Cookie", "artel=language=en&theme=dark")
	if a.StatusCode != 303 || a.Header.Get("Location") != "/me?saved" || strings.Contains(a.Header.Get("Set-Cookie"), "language") || !strings.Contains(a.Header.Get("Set-Cookie"), "theme=dark") {
		t.Errorf("status %d, %v", a.StatusCode, a.Header)
	}
	p, err := s.app.Profiles.Find(apptest.Context(t))
	if err != nil || p.Name != "Ada" || p.Persona != "one\ntwo" || p.Language != "zh" || string(p.Rules) != string(rules) {
		t.Errorf("%+v, %v", p, err)
	}
	if a = post(url.Values{"name": {"Eve"}, "revision": {"1"}}); a.StatusCode != 409 || !strings.Contains(a.body, "未作更改") || !strings.Contains(a.body, `value="Ada"`) {
		t.Errorf("an older revision: status %d", a.StatusCode)
	}
	if a = post(url.Values{"name": {strings.Repeat("x", 201)}, "revision": {"2"}}); a.StatusCode != 413 || !strings.Contains(a.body, "200") || !strings.Contains(a.body, "aria-invalid") {
		t.Errorf("a long name: status %d", a.StatusCode)
	}
	checkPage(t, "/me", s.ask(t, "GET", "/me", "", nil, "Accept-Language", "zh").body, "zh")
}

// The language of the page is that of the profile, wherever it was set; what the
// page does not speak leaves the choice to the browser, and stays.
func TestLanguageOfProfile(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	set := func(language string) {
		t.Helper()
		if _, err := s.app.Profiles.Set(apptest.Context(t), pipeline.Profile{Name: "Ada", Language: language}, settings.AnyRevision); err != nil {
			t.Fatal(err)
		}
	}
	speaks := func(want string, header ...string) {
		t.Helper()
		if page := s.ask(t, "GET", "/settings", "", nil, header...).body; !strings.Contains(page, `<html lang="`+want+`"`) {
			t.Errorf("the page does not speak %s: %.80s", want, page)
		}
	}
	choose := func(fields, cookie string) {
		t.Helper()
		if a := s.ask(t, "POST", "/settings", "application/x-www-form-urlencoded", strings.NewReader(fields), "Cookie", cookie); a.StatusCode != 303 || strings.Contains(a.Header.Get("Set-Cookie"), "language=zh") {
			t.Fatalf("status %d, %s", a.StatusCode, a.Header)
		}
	}
	is := func(want string) {
		t.Helper()
		if p, err := s.app.Profiles.Find(apptest.Context(t)); err != nil || p.Language != want || p.Name != "Ada" {
			t.Errorf("the profile is %+v, %v; want the language %q", p, err, want)
		}
	}
	speaks("en", "Accept-Language", "en")
	speaks("zh", "Cookie", "artel=language=zh") // of a time when the browser had it
	set("zh-Hans-CN")
	speaks("zh", "Accept-Language", "en")
	speaks("zh", "Cookie", "artel=language=en")
	choose("language=zh&theme=dark", "artel=theme=light")
	is("zh-Hans-CN") // it was not touched
	choose("language=en&theme=dark", "artel=language=zh")
	is("en")
	speaks("en", "Accept-Language", "zh")
	choose("language=", "artel=language=zh")
	is("")
	speaks("zh", "Accept-Language", "zh")
	set("pt-BR")
	speaks("zh", "Accept-Language", "zh")
	choose("language=&theme=dark", "")
	is("pt-BR")
}

// A file of settings says what it changes before it does, does it, and is taken
// back.
func TestSettingsFile(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	if _, err := s.app.Profiles.Set(apptest.Context(t), pipeline.Profile{Name: "Ada <b>"}, 0); err != nil {
		t.Fatal(err)
	}
	a := s.ask(t, "GET", "/me/settings", "", nil)
	if f, err := settings.ParseSettingsFile([]byte(a.body)); err != nil || f.Profile.Name != "Ada <b>" || !strings.Contains(a.Header.Get("Content-Disposition"), "attachment") {
		t.Fatalf("%v %v: %s", err, a.Header, a.body)
	}
	name := func() string {
		p, err := s.app.Profiles.Find(apptest.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		return p.Name
	}
	contentType, body := form(t, nil, map[string]string{"s.json": `{"artel_settings":1,"profile":{"name":"Eve <i>"},"order":["first-user"],"agents":{"lead_agent":[{"id":"merge-roles","enabled":false}],"nobody":[]}}`})
	a = s.ask(t, "POST", "/me/settings", contentType, body)
	for _, want := range []string{"Changes in the file", "Ada &lt;b&gt;", "Eve &lt;i&gt;", "Order of processors", "Agent lead_agent: merge-roles", "nothing is set", "unknown here"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if a.StatusCode != 200 || name() != "Ada <b>" {
		t.Fatalf("status %d, and the name is %q", a.StatusCode, name())
	}
	held := func(page string) url.Values {
		t.Helper()
		v := url.Values{}
		for _, field := range []string{"file", "tag"} {
			m := regexp.MustCompile(`<input type="hidden" name="` + field + `" value="([^"]*)"`).FindStringSubmatch(page)
			if len(m) < 2 {
				t.Fatalf("the report holds no %s", field)
			}
			v.Set(field, html.UnescapeString(m[1]))
		}
		return v
	}
	send := func(v url.Values) answer {
		return s.ask(t, "POST", "/me/settings", "application/x-www-form-urlencoded", strings.NewReader(v.Encode()))
	}
	first := held(a.body)
	if a = send(first); a.StatusCode != 200 || !strings.Contains(a.body, "Imported") || name() != "Eve <i>" {
		t.Fatalf("status %d, and the name is %q", a.StatusCode, name())
	}
	if again := send(first); again.StatusCode != 409 || !strings.Contains(again.body, "someone else has changed") {
		t.Errorf("again: status %d", again.StatusCode)
	}
	if a = send(held(a.body)); a.StatusCode != 200 || name() != "Ada <b>" {
		t.Errorf("taken back: status %d, and the name is %q", a.StatusCode, name())
	}
	for _, junk := range []string{"", "{", `{"artel_settings":2}`, `{"artel_settings":1,"order":["token-limiter"]}`} {
		if a = send(url.Values{"file": {junk}}); a.StatusCode != 422 || !strings.Contains(a.body, `role="alert"`) {
			t.Errorf("%q: status %d", junk, a.StatusCode)
		}
	}
}

// The profile by keyboard, and what was said behind what rules show.
func TestProfilePage(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	_, err := s.app.Profiles.Set(apptest.Context(t), pipeline.Profile{Rules: json.RawMessage(`{"rules":[{"find":"zebra","replace":"tiger","stages":["display"]}]}`)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	id := s.seed(t, "animals", time.Now(), "Is this a zebra?", "Yes, a **zebra**.", "And that?", "No.")
	b := openTab(t, 1440, 900)
	b.Prefer("light", true)
	axe := newChecker(t, b)
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(id)), see(".original"))
	if n := eval[int](b, `document.querySelectorAll(".original").length`); n != 2 {
		t.Errorf("%d messages have an original", n)
	}
	b.Script(`document.querySelectorAll(".original summary")[1].focus()`)
	b.Do(press("\r"), see(".original[open] pre"))
	b.Says(".original[open] pre", "Yes, a **zebra**.")
	b.Says(".message.assistant > .body", "Yes, a tiger.")
	b.Script(`document.querySelector(".original").open = true`)
	look(t, b, axe, "original", true)
	b.Do(chromedp.Navigate(s.URL+"/settings"), click(`.tabs a[href="/me"]`), fill("#name", "Ada"), fill("#persona", "Builds engines."))
	b.Script(`document.getElementById("language").value = "zh"`)
	b.Do(click(".entry button"))
	b.Until(`document.documentElement.lang === "zh" && document.querySelector("#name")?.value === "Ada"`)
	look(t, b, axe, "profile", true)
}
