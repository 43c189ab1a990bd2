// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/pipeline/rule"
)

func (s *site) ownRules(t *testing.T) settings.RuleLayer {
	t.Helper()
	l, err := s.app.Rules.Layer(apptest.Context(t), settings.RulePlace{Level: settings.RulesOfUser})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func names(rules []rule.Rule) string {
	var out []string
	for _, r := range rules {
		out = append(out, r.ID)
	}
	return strings.Join(out, " ")
}

// Without script, rules are written, refused, moved, switched, deleted and
// brought back, imported and exported, and each page is whole in both
// languages.
func TestRulesByForms(t *testing.T) {
	t.Parallel()
	s := inspected(t)
	post := func(path string, status int, fields ...string) answer {
		t.Helper()
		v := url.Values{}
		for i := 0; i+1 < len(fields); i += 2 {
			v.Add(fields[i], fields[i+1])
		}
		a := s.ask(t, "POST", path, "application/x-www-form-urlencoded", strings.NewReader(v.Encode()))
		if a.StatusCode != status {
			t.Fatalf("%s %v: status %d, want %d: %.400s", path, fields, a.StatusCode, status, a.body)
		}
		return a
	}
	own := func(more ...string) []string {
		return append([]string{"level", "user", "revision", strconv.Itoa(s.ownRules(t).Revision)}, more...)
	}
	whole := []string{"name", "new one", "find", "a <b> (\\d+)", "replace", "$1", "role_of", "user", "stage_of", "request", "min", "1", "max", "", "trim", " \r\n\t", "expand", "none", "on", "1"}
	post("/rules/edit", http.StatusSeeOther, own(whole...)...)
	got := s.ownRules(t).Config.Rules
	if names(got) != "rule-1 rule-2 rule-3 new one" || got[3].Find != "a <b> (\\d+)" || *got[3].Depth.Min != 1 || got[3].Depth.Max != nil || len(got[3].Trim) != 2 || len(got[3].Stages) != 1 {
		t.Fatalf("kept %+v", got)
	}
	if a := post("/rules/edit", http.StatusUnprocessableEntity, own("rule", "3", "find", "(", "role_of", "user", "stage_of", "display")...); !strings.Contains(a.body, "not valid") {
		t.Error("nothing says what is wrong with a pattern")
	}
	post("/rules/edit", http.StatusUnprocessableEntity, own("find", "x", "stage_of", "display")...)
	post("/rules/edit", http.StatusConflict, append([]string{"level", "user", "revision", "1"}, whole...)...)
	post("/rules/edit", http.StatusForbidden, append([]string{"level", "deployment"}, whole...)...)
	post("/rules/edit", http.StatusNotFound, append([]string{"level", "agent", "id", "nobody"}, whole...)...)
	post("/rules/change", http.StatusSeeOther, own("do", "up", "rule", "3")...)
	post("/rules/change", http.StatusSeeOther, own("do", "move", "rule", "0", "to", "9")...)
	post("/rules/change", http.StatusSeeOther, own("do", "down", "rule", "3")...) // it is the last
	post("/rules/change", http.StatusSeeOther, own("do", "switch", "rule", "0")...)
	if got := s.ownRules(t).Config.Rules; names(got) != "rule-2 new one rule-3 rule-1" || *got[0].Enabled {
		t.Errorf("after moves %+v", got)
	}
	removed, err := json.Marshal(s.ownRules(t).Config.Rules[1])
	if err != nil {
		t.Fatal(err)
	}
	post("/rules/change", http.StatusSeeOther, own("do", "delete", "rule", "1")...)
	post("/rules/change", http.StatusSeeOther, own("do", "insert", "rule", "1", "value", string(removed))...)
	if got := s.ownRules(t).Config.Rules; names(got) != "rule-2 new one rule-3 rule-1" || got[1].Replace != "$1" {
		t.Errorf("after an undo %+v", got)
	}
	for _, bad := range [][]string{{"do", "junk", "rule", "0"}, {"do", "insert", "value", "junk"}, {"do", "preset_insert", "value", "junk"}} {
		post("/rules/change", http.StatusUnprocessableEntity, own(bad...)...)
	}
	for _, gone := range [][]string{{"do", "up", "rule", "77"}, {"do", "up", "preset", "7", "rule", "0"}, {"do", "preset_switch", "preset", "7"}} {
		post("/rules/change", http.StatusNotFound, own(gone...)...)
	}

	// Scripts of SillyTavern are read, told of, and kept as a preset.
	contentType, body := form(t, nil, map[string]string{"thoughts.json": `{"scriptName":"Hide <i>thoughts</i>","findRegex":"/<think>.*?<\\/think>/gs","replaceString":"","placement":[2,5],"promptOnly":true,"mystery":1}`})
	a := s.ask(t, "POST", "/rules/import", contentType, body)
	checkPage(t, "/rules/import", a.body, "en")
	config := regexp.MustCompile(`name="config" value="([^"]*)"`).FindStringSubmatch(a.body)
	if config == nil || !strings.Contains(a.body, "world info") || !strings.Contains(a.body, "mystery") || strings.Contains(a.body, "<i>thoughts") {
		t.Fatalf("what was read: %.600s", a.body)
	}
	post("/rules/keep", http.StatusSeeOther, "place", "user/", "config", strings.NewReplacer("&#34;", `"`, "&lt;", "<", "&gt;", ">", "&amp;", "&", "&#39;", "'", "&#43;", "+").Replace(config[1]))
	presets := s.ownRules(t).Config.Presets
	if len(presets) != 1 || presets[0].Name != "thoughts" || len(presets[0].Rules) != 1 {
		t.Fatalf("kept %+v", presets)
	}
	post("/rules/change", http.StatusSeeOther, own("do", "preset_save", "preset", "0", "name", "Thoughts", "priority", "50")...)
	post("/rules/change", http.StatusSeeOther, own("do", "preset_switch", "preset", "0")...)
	export := s.ask(t, "GET", "/rules/export?level=user", "", nil)
	if c, err := rule.ParseConfig([]byte(export.body)); err != nil || len(c.Rules) != 4 || *c.Presets[0].Priority != 50 || *c.Presets[0].Enabled {
		t.Errorf("exported %s, %v", export.body, err)
	}
	contentType, body = form(t, nil, map[string]string{"ours.json": export.body})
	if a := s.ask(t, "POST", "/rules/import", contentType, body); a.StatusCode != 200 || !strings.Contains(a.body, "rule-3") {
		t.Errorf("our own file: %d", a.StatusCode)
	}
	post("/rules/change", http.StatusSeeOther, own("do", "preset_delete", "preset", "0")...)
	for _, file := range []string{"", "junk", "{}", `{"rules":[]}`} {
		contentType, body := form(t, nil, map[string]string{"bad.json": file})
		if a := s.ask(t, "POST", "/rules/import", contentType, body); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "bad.json") {
			t.Errorf("%q: %d", file, a.StatusCode)
		}
	}

	for _, path := range []string{
		"/rules", "/rules?text=the+secret+number", "/rules?agent=lead_agent&stage=display&role=assistant&depth=2", "/rules/import", "/macros", "/macros?text=%7B%7Bnope%7D%7D%7B%7Bsetvar::a::%3Ci%3E%7D%7D&now=junk",
		"/rules/edit?level=user&rule=1", "/rules/edit?level=user", "/rules/edit?level=agent&id=lead_agent",
	} {
		for _, language := range []string{"en", "zh"} {
			a := s.ask(t, "GET", path, "", nil, "Accept-Language", language)
			if a.StatusCode != http.StatusOK {
				t.Errorf("%s: status %d", path, a.StatusCode)
			}
			checkPage(t, path, a.body, language)
			if strings.Contains(a.body, "page.") && regexp.MustCompile(`>page\.\w+<`).MatchString(a.body) {
				t.Errorf("%s: a text is missing: %s", path, regexp.MustCompile(`>page\.\w+<`).FindString(a.body))
			}
		}
	}
	for path, want := range map[string]int{"/rules?agent=nobody": 422, "/rules?service=none": 422, "/rules/edit?level=deployment": 403, "/rules/edit?level=user&rule=99": 404, "/rules/export?level=junk": 404} {
		if a := s.ask(t, "GET", path, "", nil); a.StatusCode != want && !(want == 422 && a.StatusCode >= 400 && a.StatusCode < 500) {
			t.Errorf("%s: status %d, want %d", path, a.StatusCode, want)
		}
	}
	if a := s.ask(t, "GET", "/rules?text=The+secret+number+is+7", "", nil); !strings.Contains(a.body, "<mark>secret number</mark>") || !strings.Contains(a.body, "[a number that is kept back]") {
		t.Error("the tester does not show what rule-3 does")
	}
}

// A person follows with the keyboard what a rule does while it is written,
// keeps it, puts it in another place, deletes it and takes that back; tries a
// macro; and sees by the composer what a message will take, and all of it beside
// the thread.
func TestRules(t *testing.T) {
	t.Parallel()
	s := inspected(t)
	b := openTab(t, 1440, 900)
	axe := newChecker(t, b)
	look := func(name string) { look(t, b, axe, name, true) }

	// A rule, as it is written.
	b.Do(chromedp.Navigate(s.URL+"/rules"), see("#rules .rule"))
	b.Says("#user", "rule-1", "rule-2", "rule-3")
	b.Do(click("#user a[href*='/rules/edit']:not([href*='rule=0'])"), see("#rule-check"))
	b.Do(fill("input[name=name]", "digits"), fill("textarea[name=find]", "(\\d"))
	b.Until(`document.getElementById("rule-check").innerText.includes("not valid")`)
	b.Do(fill("textarea[name=find]", "(\\d)(?=\\d)"), fill("textarea[name=replace]", "#"), fill("#trial", "Call 555 now"))
	b.Until(`document.querySelector("#tried mark") !== null && [...document.querySelectorAll("#tried pre")].at(-1).innerText.includes("Call ##5 now")`)
	b.Says("#rule-check", "slower engine")
	b.Says("#tried", "the rule you are editing", "2 matches", "ms")
	look("rule-editor")
	b.Do(click(".rule-editor button.primary"), see("#rules"))
	b.Says("#user", "digits")

	// Its place, and away and back.
	last := `[...document.querySelectorAll("#user .rule")].at(-1)`
	b.Script(last + `.querySelector("[value=up]").focus()`)
	b.Do(press("\r"))
	b.Until(`document.activeElement.value === "up" && document.activeElement.closest(".rule") === [...document.querySelectorAll("#user .rule")].at(-2) && document.activeElement.closest(".rule").innerText.includes("digits")`)
	b.Do(press("\r"))
	b.Until(`document.activeElement.closest(".rule") === [...document.querySelectorAll("#user .rule")].at(-3) && document.activeElement.closest(".rule").innerText.includes("digits")`)
	b.Script(`document.activeElement.closest(".rule").querySelector("[role=switch]").focus()`)
	b.Do(press(" "))
	b.Until(`document.activeElement.getAttribute("aria-checked") === "false"`)
	b.Do(press(" "))
	b.Until(`document.activeElement.getAttribute("aria-checked") === "true"`)
	b.Script(`document.activeElement.closest(".rule").querySelector("[value=delete]").click()`)
	b.Until(`document.querySelectorAll("#user .rule").length === 3 && document.querySelector("#toast-rule") !== null`)
	b.Do(click("#toast-rule form button"))
	b.Until(`document.querySelectorAll("#user .rule").length === 4 && document.querySelector("#toast-rule") === null`)
	b.Script(`{
		const all = document.querySelectorAll("#user .rule"), dataTransfer = new DataTransfer();
		const tell = (rule, type) => rule.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer }));
		tell(all[0], "dragstart"), tell(all[2], "dragover"), tell(all[2], "drop"), tell(all[0], "dragend");
	}`)
	b.Until(`[...document.querySelectorAll("#user .rule b")].map((b) => b.innerText).join() === "digits,rule-2,rule-1,rule-3"`)
	b.Do(fill("#trial", "The secret number is 77."))
	b.Until(`document.getElementById("tried").innerText.includes("[a number that is kept back]")`)
	b.Script(`document.getElementById("try").scrollIntoView()`)
	look("rules")

	// A macro.
	b.Do(chromedp.Navigate(s.URL+"/macros"), see("#expanded pre"))
	b.Do(fill("#macro-text", "Hello {{user}}. {{nope}} "))
	b.Until(`document.getElementById("expanded").innerText.includes("Hello Ada.") && document.getElementById("expanded").innerText.includes("no macro has this name")`)
	b.Script(`document.querySelector("[data-insert='{{date_ymd}}']").click()`)
	b.Until(`document.getElementById("macro-text").value.endsWith("{{date_ymd}}") && /Ada.*20\d\d-/s.test(document.getElementById("expanded").innerText)`)
	b.Script(`document.getElementById("main").querySelector(".page").scrollTo(0, 0)`)
	look("macros")

	// The message that is being written.
	b.Do(chromedp.Navigate(s.URL), see("#composer"), write("A secret word"), choose(sample(t, "notes.md")))
	b.Until(`document.getElementById("window").innerText.includes("tokens")`)
	b.Do(click("[data-glance]"))
	b.Until(`document.getElementById("glance").innerText.includes("[a word that is kept back]")`)
	b.Says("#glance", "regex-processor", "notes.md")
	look("glance")
	b.Do(press("\u001b"))
	b.Until(`document.getElementById("glance-panel").hidden && document.activeElement.id === "text"`)
	b.Do(click(".send"), see("#messages .message.user"))
	b.rest()
	b.Until(`!document.getElementById("window").innerText.includes("tokens")`)
	b.Do(write("Another secret word"))
	b.Until(`document.getElementById("window").innerText.includes("tokens")`)
}
