// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/webui/webuitest"
)

// post sends a form; pairs are names and values, and headers begin with "@".
func (s *site) post(t *testing.T, path string, pairs ...string) reply {
	t.Helper()
	v, header := url.Values{}, []string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if name, ok := strings.CutPrefix(pairs[i], "@"); ok {
			header = append(header, name, pairs[i+1])
		} else {
			v.Add(pairs[i], pairs[i+1])
		}
	}
	return s.follow(t, s.ask(t, "POST", path, "application/x-www-form-urlencoded", strings.NewReader(v.Encode()), header...))
}

// A reply is a page that a form has led to.
type reply struct {
	status     int
	path, body string // no path: the form has led nowhere else
}

func (s *site) follow(t *testing.T, a answer) reply {
	t.Helper()
	if a.StatusCode != http.StatusSeeOther {
		return reply{a.StatusCode, "", a.body}
	}
	to, err := a.Location()
	if err != nil {
		t.Fatal(err)
	}
	next := s.ask(t, "GET", to.RequestURI(), "", nil)
	return reply{next.StatusCode, to.Path, next.body}
}

func (s *site) open(t *testing.T, path string) reply {
	t.Helper()
	return s.follow(t, s.ask(t, "GET", path, "", nil))
}

func (s *site) agent(t *testing.T, name artel.AgentName) settings.Agent {
	t.Helper()
	a, err := s.app.Agents.Find(apptest.Context(t), name)
	if err != nil && !errors.Is(err, artel.NotFound) {
		t.Fatal(err)
	}
	return a
}

// slot is what is said at the place of a field.
func slot(page, field string) string {
	m := regexp.MustCompile(`(?s)<div id="fault-` + field + `" class="faults">(.*?)</div>`).FindStringSubmatch(page)
	if m == nil {
		return "no place"
	}
	return html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[1], ""))
}

// A form of an agent is kept as it stands, or comes back with everything that
// is wrong with it, each where it is, in the reader's language.
func TestAgentForms(t *testing.T) {
	t.Parallel()
	known, free := textOnly, sharp // a limit of cost needs their prices
	known.Capabilities.Price.Source, free.Capabilities.Price.Source = model.FromOperator, model.FromOperator
	unknown := model.Service{ID: "unknown", Dialect: model.OpenAI, BaseURL: "http://127.0.0.1:9/v1", Model: "m", Capabilities: model.TextOnly()}
	s := newSiteOf(t, setup{services: []model.Service{known, free, unknown}})
	wrong := []string{
		"name", "two words", "description", strings.Repeat("x", 2001), "prompt", " ", "service", "gone", "tool", "raed", "subagent", "nobody",
		"permission.weather", "ask", "limits.turns", "many", "limits.cost", "-1", "limits.depth", "9", "context.max_tokens", "-5", "compaction.threshold", "101",
		"rest", `{"processors":[{"id":"token-limiter","config":{"colour":1}}]}`,
	}
	for language, wants := range map[string]map[string]string{
		"en": {
			"name": "one word", "description": "2001 characters", "prompt": "say who the agent is", "service": "there is no service gone", "tools": "there is no tool raed",
			"subagents": "there is no agent nobody", "limits-turns": "Only whole numbers", "limits-cost": "negative", "limits-depth": "at most 8",
			"context-max_tokens": "negative", "compaction-threshold": "at most 100", "file": "unknown field",
		},
		"zh": {"name": "必须是一个词", "prompt": "请写明智能体是谁", "limits-turns": "整数", "tools": "没有名为 raed 的工具", "context-max_tokens": "不能为负数"},
	} {
		for path, status := range map[string]int{"/agents/check": 200, "/agents/new": 422} {
			a := s.post(t, path, append(wrong, "@Accept-Language", language)...)
			if a.status != status {
				t.Fatalf("%s: %d: %.400s", path, a.status, a.body)
			}
			for field, want := range wants {
				if got := slot(a.body, field); !strings.Contains(got, want) {
					t.Errorf("%s in %s: at %s it says %q, want %q", path, language, field, got, want)
				}
			}
			if got := slot(a.body, "tools"); language == "en" && !strings.Contains(got, "there is no tool weather") {
				t.Errorf("a permission of no tool: %q", got)
			}
			if path == "/agents/new" && (strings.Count(a.body, `aria-invalid="true"`) < 9 || !strings.Contains(a.body, `value="many"`)) {
				t.Errorf("what was written is not there, or not marked")
			}
		}
	}
	if a := s.agent(t, "two"); a.Name != "" {
		t.Fatal("it was kept")
	}

	good := []string{
		"name", "pilot", "description", "Brings ships in.", "prompt", "You are a pilot.\r\nSteer.", "service", "sharp", "fallback", "", "fallback", "plain", "tool", "read_artifact", "tool", "put_artifact",
		"permission.put_artifact", "ask", "permission.*", "", "subagent", "research_agent", "skills", "brand, pdf", "limits.turns", "7", "limits.cost", "0.5", "context.reply_reserve", "0", "compaction.off", "1",
		"rest", `{"preset_messages":[{"id":"a","text":"Hush."}]}`,
	}
	if got := slot(s.post(t, "/agents/check", good...).body, "name"); got != "" {
		t.Errorf("a good one: %q", got)
	}
	costly := slices.Clone(good)
	costly[slices.Index(costly, "sharp")] = "unknown"
	if got := slot(s.post(t, "/agents/check", costly...).body, "limits-cost"); !strings.Contains(got, "price of the service unknown is not known") {
		t.Errorf("a limit of cost without a price: %q", got)
	}
	if a := s.post(t, "/agents/new", good...); a.status != 200 || a.path != "/agents/a/pilot" || !strings.Contains(a.body, "pilot is saved") {
		t.Fatalf("%d %s %.600s", a.status, a.path, a.body)
	}
	d := s.agent(t, "pilot")
	if d.Prompt != "You are a pilot.\nSteer." || d.Service != "sharp" || len(d.Fallbacks) != 1 || len(d.Tools) != 2 || d.Permissions["put_artifact"] != "ask" || len(d.Permissions) != 1 ||
		d.Limits.Turns != 7 || d.Limits.Cost != 0.5 || d.Context.ReplyReserve == nil || !d.Compaction.Off || len(d.Presets) != 1 || d.Subagents[0] != "research_agent" || d.Skills.String() != "brand, pdf" {
		t.Fatalf("kept: %+v", d)
	}
	if a := s.post(t, "/agents/new", good...); a.status != 422 || !strings.Contains(slot(a.body, "name"), "There is an agent of this name") {
		t.Errorf("the name is taken: %d %q", a.status, slot(a.body, "name"))
	}

	// What its form shows is what it is; the other way of writing holds the same.
	edit := s.open(t, "/agents/a/pilot/edit").body
	file := s.post(t, "/agents/a/pilot/edit", append(good, "do", "as_file", "revision", "1")...).body
	text := html.UnescapeString(regexp.MustCompile(`(?s)<textarea id="agent-file"[^>]*>\n(.*?)</textarea>`).FindStringSubmatch(file)[1])
	if text != string(d.Markdown()) {
		t.Errorf("as a file:\n%s\nwant\n%s", text, d.Markdown())
	}
	if back := s.post(t, "/agents/a/pilot/edit", "markdown", text, "do", "as_form", "revision", "1").body; fields(back) != fields(edit) {
		t.Errorf("as a form again:\n%s\nwant\n%s", fields(back), fields(edit))
	}
	if a := s.post(t, "/agents/a/pilot/edit", append(good, "limits.turns", "x", "limits.seconds", "y", "do", "as_file")...); strings.Contains(a.body, `id="agent-file"`) && !strings.Contains(a.body, `value="y"`) {
		t.Error("what cannot be read is lost on the way to the file")
	}

	// Somebody was faster: nothing is lost, and saving again is meant.
	changed := strings.Replace(text, "Steer.", "Steer well.", 1)
	if a := s.post(t, "/agents/a/pilot/edit", "markdown", changed, "revision", "1"); a.path != "/agents/a/pilot" || s.agent(t, "pilot").Prompt != "You are a pilot.\nSteer well." {
		t.Fatalf("%d %s", a.status, a.body)
	}
	late := s.post(t, "/agents/a/pilot/edit", "markdown", strings.Replace(text, "Steer.", "Hold.", 1), "revision", "1")
	if late.status != 409 || !strings.Contains(late.body, "Someone else has changed it") || !strings.Contains(late.body, `name="revision" value="2"`) || !strings.Contains(late.body, "Hold.") {
		t.Errorf("late: %d %.300s", late.status, late.body)
	}
	if a := s.post(t, "/agents/a/pilot/edit", "markdown", strings.Replace(text, "pilot", "captain", 1), "revision", "2"); a.status != 422 || !strings.Contains(slot(a.body, "file"), "cannot be renamed") {
		t.Errorf("another name: %d %s", a.status, slot(a.body, "file"))
	}
	for _, what := range []struct{ path, says string }{{"/agents/a/lead_agent/edit", "Copy it"}, {"/agents/a/nobody", "This agent no longer exists"}, {"/agents/new?from=nobody", "no such agent"}} {
		if a := s.open(t, what.path); a.status < 400 || !strings.Contains(a.body, what.says) {
			t.Errorf("%s: %d", what.path, a.status)
		}
	}
	if a := s.post(t, "/agents/a/lead_agent/edit", "name", "lead_agent", "prompt", "p", "revision", "0"); a.status < 400 || s.agent(t, "lead_agent").Prompt == "p" {
		t.Errorf("a built-in one was changed: %d", a.status)
	}
	if a := s.post(t, "/agents/a/lead_agent/delete"); a.status != 403 || !strings.Contains(a.body, "built in") {
		t.Errorf("a built-in one was deleted: %d", a.status)
	}
}

// toolbox is a server of tools that comes and goes.
type toolbox struct{}

func (toolbox) Await(context.Context, artel.Owner) {}

func (toolbox) Tools(artel.Owner) []tool.Tool {
	return []tool.Tool{{Name: "charts_read", Doc: "Read a chart. It may be old.", Schema: json.RawMessage(`{"type":"object"}`), Call: func(context.Context, *tool.Env, json.RawMessage) (tool.Result, error) { return tool.Result{}, nil }}}
}
func (toolbox) Prefixes() []string          { return []string{"charts_"} }
func (toolbox) Health() []tool.ServerHealth { return nil }

// What comes from servers of tools can be chosen one by one and all together,
// and stays chosen while it is away.
func TestAgentFormsWithServers(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, setup{servers: toolbox{}})
	if a := s.post(t, "/agents/new", "name", "sailor", "prompt", "p", "tool", "charts_*", "tool", "charts_read", "tool", "charts_gone", "permission.charts_read", "ask"); a.path != "/agents/a/sailor" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	page := s.open(t, "/agents/a/sailor/edit").body
	for _, want := range []string{`name="tool" value="charts_*" checked`, `name="tool" value="charts_read" checked`, `name="tool" value="charts_gone" checked`, "All tools of the server charts", "Read a chart</span>", `<li data-of="charts_*" class="covered"><label class="pick"><input type="checkbox" name="tool" value="charts_read"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the form does not have %s", want)
		}
	}
	if strings.Contains(page, "not there</span>") || strings.Contains(page, `name="permission.charts_*"`) {
		t.Error("what may come later is told to be missing, or a pattern has a permission")
	}
}

// fields are the values of a form's fields.
func fields(page string) string {
	page = page[strings.Index(page, `id="agent-form"`):]
	page = page[:strings.Index(page, "</form>")]
	return strings.Join(regexp.MustCompile(`(?s)<input[^>]*>|<textarea.*?</textarea>|<option[^>]* selected>`).FindAllString(page, -1), "\n")
}

// Files are brought in and out, and what is deleted comes back with what was
// set about it.
func TestAgentFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	bring := func(fields, files map[string]string) reply {
		contentType, body := formOf(t, "file", fields, files)
		return s.follow(t, s.ask(t, "POST", "/agents/import", contentType, body))
	}
	const mate = "---\ndescription: Helps.\n---\nYou are the mate."
	if a := bring(map[string]string{"markdown": ""}, map[string]string{"mate.md": mate}); a.path != "/agents/a/mate" {
		t.Fatalf("%d %s", a.status, a.path)
	}
	if a := bring(map[string]string{"markdown": strings.Replace(mate, "description", "name: cook\ndescription", 1)}, nil); a.path != "/agents/a/cook" {
		t.Errorf("pasted: %d %s", a.status, a.path)
	}
	for text, says := range map[string]string{
		"":                                "It must begin with front matter",
		"no front matter":                 "It must begin with front matter",
		"---\ncolour: red\n---\np":        "unknown field",
		"---\nname: cook\n---\np":         "There is an agent of this name",
		"---\ntools: [raed]\n---\n":       "there is no tool raed",
		"---\nname: \xff\n---\np":         "not UTF-8",
		"---\nlimits: {turns: -1}\n---\n": "limits.turns",
	} {
		a := bring(map[string]string{"markdown": text}, nil)
		if a.status != http.StatusUnprocessableEntity || !strings.Contains(slot(a.body, "file"), says) {
			t.Errorf("%q: %d %q, want %q", text, a.status, slot(a.body, "file"), says)
		}
	}
	if a := s.open(t, "/api/v1/agents/mate/markdown"); !strings.Contains(a.body, "You are the mate.") {
		t.Errorf("exported: %s", a.body)
	}

	// Deleted and brought back, with script and without.
	if _, err := s.app.Pipeline.SetLevel(apptest.Context(t), settings.LevelAt{Agent: "mate"}, []pipeline.Setting{{ID: "merge-roles", Enabled: new(bool)}}, settings.AnyRevision); err != nil {
		t.Fatal(err)
	}
	keep := func(a reply) string {
		m := regexp.MustCompile(`name="keep" value="([^"]*)"`).FindStringSubmatch(a.body)
		if m == nil {
			t.Fatalf("nothing to bring back: %d %s", a.status, a.body)
		}
		return html.UnescapeString(m[1])
	}
	gone := s.post(t, "/agents/a/mate/delete", "@HX-Request", "true")
	if s.agent(t, "mate").Name != "" || strings.Contains(gone.body, `id="agent-mate"`) || !strings.Contains(gone.body, "mate is deleted") {
		t.Fatalf("%s", gone.body)
	}
	if a := s.post(t, "/agents/restore", "do", "undo", "keep", keep(gone), "@HX-Request", "true"); !strings.Contains(a.body, `id="agent-mate"`) || !strings.Contains(a.body, "data-gone") {
		t.Errorf("%s", a.body)
	}
	if l, err := s.app.Pipeline.Level(apptest.Context(t), settings.LevelAt{Agent: "mate"}); err != nil || !l.Set || len(l.Settings) != 1 {
		t.Errorf("its processors: %+v, %v", l, err)
	}
	plain := s.post(t, "/agents/a/mate/delete")
	if a := s.post(t, "/agents/restore", "keep", keep(plain)); a.path != "/agents/a/mate" || !strings.Contains(a.body, "mate is back") {
		t.Errorf("%d %s", a.status, a.path)
	}
	for _, broken := range []string{"", "7", `{"agent":{"name":"lead_agent","prompt":"p"}}`, `{"agent":{"name":"x","prompt":""}}`} {
		if a := s.post(t, "/agents/restore", "keep", broken); a.status < 400 {
			t.Errorf("%q was brought back", broken)
		}
	}

	// Names may be words of the page, and no address of it.
	for _, name := range []artel.AgentName{"new", "check", `a?b#c%2F"<i>&`, "助手"} {
		if _, err := s.app.Agents.Create(apptest.Context(t), agent.Definition{Name: name, Description: "<script>alert(1)</script>", Prompt: "p"}); err != nil {
			t.Fatal(err)
		}
		list := s.open(t, "/agents").body
		if strings.Contains(list, "<script>alert") || strings.Contains(list, "<i>") {
			t.Error("a text is markup")
		}
		if a := s.open(t, "/agents/a/"+url.PathEscape(string(name))+"/edit"); a.status != 200 || !strings.Contains(a.body, `value="`+template(string(name))+`"`) {
			t.Errorf("%s: %d", name, a.status)
		}
		if a := s.post(t, "/agents/a/"+url.PathEscape(string(name))+"/delete"); a.status != 200 || s.agent(t, name).Name != "" {
			t.Errorf("%s: %d", name, a.status)
		}
	}
}

// template is a text as templates write it into attributes.
func template(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;").Replace(s)
}

// An agent is tried in a conversation of its own, which says who answers.
func TestTryAgent(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	if _, err := s.app.Agents.Create(apptest.Context(t), agent.Definition{Name: "pilot", Prompt: "p"}); err != nil {
		t.Fatal(err)
	}
	a := s.post(t, "/agents/a/pilot/try", "text", "Where are\r\nwe?")
	all := s.all(t)
	if len(all) != 1 || all[0].Agent != "pilot" || a.path != "/c/"+string(all[0].ID) || !strings.Contains(a.body, `href="/agents/a/pilot"`) {
		t.Fatalf("%d %s %+v", a.status, a.path, all)
	}
	waitFinal(t, s, all[0].ID)
	if a := s.post(t, "/agents/a/pilot/try", "text", " "); a.status != 422 || !strings.Contains(a.body, `role="alert"`) {
		t.Errorf("nothing to say: %d", a.status)
	}
	if a := s.post(t, "/agents/a/nobody/try", "text", "x"); a.status != 404 {
		t.Errorf("nobody: %d", a.status)
	}
	if n := len(s.all(t)); n != 1 {
		t.Errorf("%d conversations are left", n)
	}
}

// A person makes an agent with the keyboard, is told at the field what is wrong
// while they write, tries it, makes another one of a built-in one, deletes it
// and takes that back.
func TestAgents(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, setup{demo: script(t, "-- turn 1 --\nAye, aye.\n"), services: []model.Service{textOnly, sharp}})
	b := openTab(t, 1440, 900)
	b.Forgive("status of 422")
	axe := newChecker(t, b)
	look := func(name string) { look(t, b, axe, name, name != "agent-file") }

	b.Do(chromedp.Navigate(s.URL), see("#composer"), click(`.sidebar footer a[href="/agents"]`), see("#agents .agent"))
	b.Says("#agents", "lead_agent", "built in", "research_agent", "vision_agent")
	b.Script(`document.querySelector('main a[href="/agents/new"]').focus()`)
	b.Do(press("\r"))
	b.Until(`document.activeElement?.id === "agent-name"`)

	// Checked as it is typed, at the field.
	b.Do(press("lead_agent"))
	b.Until(`document.getElementById("fault-name").innerText.includes("There is an agent of this name") && document.getElementById("agent-name").getAttribute("aria-invalid") === "true"`)
	b.Do(press("_of_mine"))
	b.Until(`!document.getElementById("fault-name").innerText && !document.getElementById("agent-name").hasAttribute("aria-invalid") && document.activeElement.id === "agent-name"`)
	b.Do(fill("#agent-name", "pilot"), fill("#agent-description", "Brings ships in, and knows the tide."), fill("#agent-limits-turns", "many"))
	b.Until(`document.getElementById("fault-limits-turns").innerText.includes("Only whole numbers") && document.getElementById("agent-verdict").innerText.includes(": 2")`)
	b.Script(`document.getElementById("agent-name").focus()`)
	b.Do(press("\r"), see(`[role=alert] a[href="#agent-limits-turns"]`)) // Enter in a field saves, or says why not
	b.Says("main [role=alert]", "To fix before", "Model calls: Only whole numbers", "role prompt is empty")
	b.Script(`document.querySelector(".page").scrollTo(0, 0)`)
	look("agent-editor")
	b.Do(fill("#agent-limits-turns", "12"), fill("#agent-prompt", "You are a pilot. Look at the chart, say the depth, and steer."))
	b.Until(`document.getElementById("agent-verdict").innerText.includes("No problems")`)
	b.Script(`document.querySelector('input[name=tool][value=put_artifact]').focus()`)
	b.Do(press(" "))
	b.Until(`document.querySelector('select[name="permission.put_artifact"]').checkVisibility()`)
	b.Script(`document.querySelector('select[name="permission.put_artifact"]').value = "ask"; document.querySelector('input[name=subagent][value=research_agent]').click()`)
	b.Do(click(".save button.primary"), see("#try-text"))
	b.Says("#toasts", "pilot is saved")
	b.Says("main", "created here", "put_artifact", "ask first", "research_agent", "12")
	b.Until(`document.querySelector('main a[href="/pipeline?agent=pilot"]') !== null`)
	b.Do(click("#toast-agent [data-dismiss]"))
	look("agent")

	b.Do(fill("#try-text", "Where are we?"), click("#try button"), see("#messages .message.assistant"))
	b.rest()
	b.Says("#messages", "Where are we?", "Aye, aye.")
	b.Do(click(`main > header a[href="/agents/a/pilot"]`), see("#try-text"))

	// Another one of a built-in one, as a file.
	b.Do(chromedp.Navigate(s.URL+"/agents"), see("#agent-lead_agent"), click(`#agent-lead_agent a[href*="from=lead_agent"]`), see("#agent-name"))
	b.Until(fmt.Sprintf(`document.getElementById("agent-name").value === "lead_agent_2" && document.querySelectorAll("input[name=tool]:checked").length === %d`, len(s.agent(t, "lead_agent").Tools)))
	b.Do(click(`button[value=as_file]`), see("textarea#agent-file"))
	b.Script(`{ const file = document.getElementById("agent-file"); file.value = file.value.replace("create_artifact", "craete_artifact"); file.dispatchEvent(new Event("input", { bubbles: true })); }`)
	b.Until(`document.getElementById("fault-file").innerText.includes("craete_artifact")`)
	b.Script(`document.querySelector(".page").scrollTo(0, 0)`)
	look("agent-file")
	b.Script(`{ const file = document.getElementById("agent-file"); file.value = file.value.replace("craete_artifact", "create_artifact"); file.dispatchEvent(new Event("input", { bubbles: true })); }`)
	b.Until(`document.getElementById("agent-verdict").innerText.includes("No problems")`)
	b.Do(click(".save button.primary"), see("#try-text"))

	b.Do(chromedp.Navigate(s.URL+"/agents"), see("#agent-lead_agent_2"))
	b.Until(`document.readyState === "complete"`)
	look("agents")
	b.Do(click(`#agent-lead_agent_2 form[action$="/delete"] button`), see("#toast-agent"))
	b.Until(`document.getElementById("agent-lead_agent_2") === null`)
	b.Do(click("#toast-agent form button"), see("#agent-lead_agent_2"))
	b.Until(`document.getElementById("toast-agent") === null`)
}

// Without script an agent is made, changed and deleted all the same.
func TestAgentsWithoutScript(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	b := openTab(t, 1000, 800, webuitest.Command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	b.Forgive("status of 422")
	b.Do(chromedp.Navigate(s.URL+"/agents/new"), see("#agent-name"), fill("#agent-name", "pilot"), click(".save button.primary"), see("main [role=alert]"))
	b.Says("#fault-prompt", "say who the agent is")
	b.Do(fill("#agent-prompt", "You are a pilot."), click(`button[value=as_file]`), see("textarea#agent-file"))
	b.Do(click(`button[value=as_form]`), see("#agent-prompt"), click(".save button.primary"), see("#try-text"))
	if a := s.agent(t, "pilot"); a.Prompt != "You are a pilot." {
		t.Errorf("kept: %+v", a)
	}
	b.Do(fill("#try-text", "Hello"), click("#try button"), see("#messages .message.user"))
	b.Do(chromedp.Navigate(s.URL+"/agents"), see("#agent-pilot"), click(`#agent-pilot form[action$="/delete"] button`), see("#toast-agent"))
	if a := s.agent(t, "pilot"); a.Name != "" {
		t.Error("it is still there")
	}
	b.Do(click("#toast-agent form button"), see("#try-text"))
	b.Says("main", "You are a pilot.")
}

// Every tool of the product is described in the words of its users.
func TestToolsAreDescribed(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	for _, spec := range s.app.Tools.List(apptest.Context(t)) {
		key := phrase.Key("page.tool_about_" + spec.Name)
		for _, l := range phrase.Locales() {
			if l.Say(key, nil) == string(key) {
				t.Errorf("%s has no words in %s", spec.Name, l)
			}
		}
	}
}
