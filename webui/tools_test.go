// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model/provider/demo"
)

const toolToken = "Bearer tok-0123456789abcd4f2a"

// newLab starts an MCP server that wants a token, and returns its address.
func newLab(t *testing.T) string {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "The lab", Version: "1.2"}, nil)
	for _, name := range []string{"measure", "weigh"} {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "The tool to " + name + " what lies there."}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "42 of it"}}}, nil, nil
		})
	}
	mcp := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != toolToken {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		mcp.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL + "/mcp"
}

func toolSite(t *testing.T) *site {
	t.Helper()
	script, err := demo.ParseScenario([]byte("-- turn 1 --\n@call lab_measure {}\n-- turn 2 --\nThere are 42.\n"))
	if err != nil {
		t.Fatal(err)
	}
	return newSiteOf(t, setup{demo: demo.Options{Scenario: script}})
}

// TestAddServerOnPage: an administrator adds an MCP server by keyboard and mouse, is told
// what is wrong with the token, chooses tools, and an agent uses one, without a restart.
func TestAddServerOnPage(t *testing.T) {
	t.Parallel()
	s, lab := toolSite(t), newLab(t)
	b := openTab(t, 1280, 900)
	b.Do(chromedp.Navigate(s.URL+"/tools"), see("#add"))
	b.picture("tools-empty")
	b.Do(click(`.providers a[href$="/tools/mcp/new"]`), see("#name"))
	b.on("#name") // the first thing to do
	b.picture("tool-mcp-form")
	fill := func(id, value string) { b.Script(fmt.Sprintf(`document.querySelector(%q).value = %q`, id, value)) }
	fill("#name", "lab")
	fill("#address", lab)
	fill("#value-0", "Bearer of-another-server")
	b.Do(click("#do-check"))
	b.Until(`document.querySelectorAll("#check li.bad").length === 1 && !document.querySelector("#do-check").hasAttribute("aria-disabled")`)
	b.Says("#check", "The server refuses the key", "not tried", "does not work yet")
	b.picture("tool-mcp-refused")
	fill("#value-0", toolToken)
	b.Do(click("#do-check"))
	b.Until(`document.querySelectorAll("#check li.good").length === 4`)
	b.Until(`document.activeElement.id === "save-service"`)
	b.Says("#check", "It works.", "The lab 1.2", "measure", "The tool to weigh")
	b.picture("tool-mcp-works")
	b.Do(click(`#check input[value="measure"]`), click("#save-service"), see("#t-mcp-lab"))
	b.Says("#toasts", "lab is saved")
	b.Says("#t-mcp-lab", "ready", lab, "Tools: 1")
	b.picture("tools")
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.send("Measure.")
	b.rest()
	b.Says("#messages", "There are 42.", "lab_measure")
	b.Do(chromedp.Navigate(s.URL+"/tools/mcp/lab/edit"), see("#save-service"))
	b.Says("#value-hint-0", "ends with 4f2a")
	b.picture("tool-mcp-edit")
	if strings.Contains(eval[string](b, `document.documentElement.outerHTML`), "0123456789") {
		t.Error("the page shows the token")
	}
	b.Do(click("#save-service"), see("#t-mcp-lab"))
	b.Says("#t-mcp-lab", "ready", "Tools: 1") // token and choice stay
	if _, err := s.app.Agents.Create(apptest.Context(t), agent.Definition{Name: "pilot", Prompt: "You are a pilot.", Tools: []string{"lab_measure"}}); err != nil {
		t.Fatal(err)
	}
	b.Do(click("#t-mcp-lab form[action$=switch] button"))
	b.Until(`document.querySelector("#t-mcp-lab .badge")?.textContent === "switched off"`)
	b.Do(click(`#t-mcp-lab details:has(form[action$=delete]) summary`), see("#t-mcp-lab form[action$=delete] button"))
	b.Says("#t-mcp-lab", "agents lose its tools")
	b.picture("tools-delete")
	b.Do(click("#t-mcp-lab form[action$=delete] button"))
	b.Until(`document.querySelector("#t-mcp-lab") === null && document.querySelector("#servers") !== null`)
	for _, path := range []string{"/agents", "/agents/a/pilot"} {
		b.Do(chromedp.Navigate(s.URL+path), see("#main"))
		b.Says("#main", "lab_measure", "missing")
	}
}

// TestToolsWithoutScript: the same by forms alone, for an HTTP tool.
func TestToolsWithoutScript(t *testing.T) {
	t.Parallel()
	s := toolSite(t)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "it rains in "+r.URL.Path[1:]) }))
	t.Cleanup(api.Close)
	post := func(path string, fields url.Values) answer {
		t.Helper()
		return s.ask(t, "POST", path, "application/x-www-form-urlencoded", strings.NewReader(fields.Encode()))
	}
	fields := url.Values{
		"name": {"weather"}, "description": {"Tells the weather."}, "address": {api.URL + "/{city}"}, "method": {"GET"}, "agent": {"lead_agent"},
		"parameters": {`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`}, "header-0": {"Authorization"}, "value-0": {toolToken},
	}
	if a := post("/tools/http/check", fields); a.StatusCode != 200 || !strings.Contains(a.body, "Nothing was called") || !strings.Contains(a.body, `id="save-service"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	fields.Set("arguments", `{"city": "Oslo"}`)
	if a := post("/tools/http/check", fields); a.StatusCode != 200 || !strings.Contains(a.body, "This address is not allowed") || !strings.Contains(a.body, "does not work yet") {
		t.Errorf("a private address: %d %s", a.StatusCode, a.body)
	}
	fields.Set("private", "1")
	if a := post("/tools/http/check", fields); a.StatusCode != 200 || !strings.Contains(a.body, "It works.") || !strings.Contains(a.body, "it rains in Oslo") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	for field, wrong := range map[string]string{"parameters": "{", "body": "x", "address": "file:///bin/sh"} {
		before := fields[field]
		fields.Set(field, wrong)
		if a := post("/tools/http", fields); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, `role="alert"`) || !strings.Contains(a.body, "Tells the weather.") {
			t.Errorf("%s: %d %s", field, a.StatusCode, a.body)
		}
		if fields[field] = before; before == nil {
			delete(fields, field)
		}
	}
	if a := post("/tools/mcp", url.Values{"name": {"x"}, "address": {"npx -y server"}}); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "a command can only be configured in artel.yaml") {
		t.Errorf("a command: %d %s", a.StatusCode, a.body)
	}
	if a := post("/tools/http", fields); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/tools?kept=weather" {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	has := func() bool {
		for _, one := range s.app.Tools.List(apptest.Context(t)) {
			if one.Name == "weather" {
				return true
			}
		}
		return false
	}
	for _, step := range []struct {
		path, to string
		want     bool
	}{{"/switch", "off", false}, {"/switch", "on", true}, {"/delete", "", false}} {
		if a := post("/tools/http/weather"+step.path, url.Values{"to": {step.to}}); a.StatusCode != http.StatusSeeOther || has() != step.want {
			t.Errorf("%s %s: %d, there is the tool: %v", step.path, step.to, a.StatusCode, has())
		}
	}
}

// The pages of tools keep the rules of axe-core.
func TestAccessibleTools(t *testing.T) {
	t.Parallel()
	s, lab := toolSite(t), newLab(t)
	ctx := apptest.Context(t)
	if _, err := s.app.Toolbox.MCP.Create(ctx, map[string]any{"name": "lab", "url": lab, "headers": map[string]any{"Authorization": toolToken}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.app.Toolbox.MCP.Create(ctx, map[string]any{"name": "gone", "url": "http://127.0.0.1:1/mcp"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.app.Toolbox.HTTP.Create(ctx, map[string]any{"name": "weather", "description": "Tells the weather.", "url": "https://api.example/v1"}); err != nil {
		t.Fatal(err)
	}
	visit(t, []state{
		{name: "tools", url: s.URL + "/tools"},
		{name: "tools to delete", url: s.URL + "/tools", then: steps(click(`#t-http-weather details:has(form[action$=delete]) summary`), see("#t-http-weather form[action$=delete] button"))},
		{name: "MCP server", url: s.URL + "/tools/mcp/new"},
		{name: "HTTP tool", url: s.URL + "/tools/http/new"},
		{name: "stored tool", url: s.URL + "/tools/http/weather/edit"},
		{name: "checked server", url: s.URL + "/tools/mcp/lab/edit", then: steps(click("#do-check"), see("#check li.good:last-child"))},
	}, 1440, 390)
}
