// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/entries"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/store"
)

const toolToken = "Bearer tok-abcdefgh01234f2a"

// A lab is an MCP server over HTTP, which wants a token.
type lab struct {
	url     string
	holding chan struct{} // receives when the tool hold begins
	release chan struct{} // lets it end
}

func newLab(t *testing.T) lab {
	t.Helper()
	l := lab{holding: make(chan struct{}, 1), release: make(chan struct{})}
	s := sdk.NewServer(&sdk.Implementation{Name: "The lab", Version: "1.2"}, nil)
	say := func(text string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
	}
	sdk.AddTool(s, &sdk.Tool{Name: "measure", Description: "Measures the temperature."}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return say("it has 42 degrees"), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "hold", Description: "Waits."}, func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		l.holding <- struct{}{}
		select {
		case <-l.release:
		case <-ctx.Done():
		}
		return say("held to the end"), nil, nil
	})
	mcp := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/mcp":
			http.NotFound(w, r)
		case r.Header.Get("Authorization") != toolToken:
			http.Error(w, "who are you?", http.StatusUnauthorized)
		default:
			mcp.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	l.url = server.URL + "/mcp"
	return l
}

// results sends a message, and returns the texts of the tool results of its run.
func (b *bench) results(c, text string) string {
	b.t.Helper()
	run := b.ended(c, map[string]any{"text": text})["id"].(string)
	var out strings.Builder
	for _, e := range b.until(c, func(e artel.Event) bool { return e.Type == artel.EventRunFinished && string(e.Run) == run }) {
		if e.Type == artel.EventToolCompleted && string(e.Run) == run {
			out.Write(e.Data)
		}
	}
	return out.String()
}

// TestMCPServerAtRunTime: a server is checked, added, used in the same conversation,
// changed, switched off and deleted, without a restart; no answer holds its token.
func TestMCPServerAtRunTime(t *testing.T) {
	b := newBench(t, "-- turn 1 --\n@call lab_measure {}\n-- turn 2 --\nDone.\n", withStored(t))
	l := newLab(t)
	read := func(a answered, status int) map[string]any {
		t.Helper()
		if strings.Contains(string(a.body), "abcdefgh") {
			t.Errorf("%s %s: the answer holds the token: %s", a.Request.Method, a.Request.URL, a.body)
		}
		return b.object(a, status)
	}
	c := b.conversation()
	if got := b.results(c, "How warm is it?"); !strings.Contains(got, "lab_measure") || strings.Contains(got, "42 degrees") {
		t.Errorf("before there is the tool: %s", got)
	}
	entry := map[string]any{"name": "lab", "url": l.url, "headers": map[string]any{"Authorization": toolToken}, "agents": []any{"lead_agent"}}
	report := read(b.do("POST", "/mcp-servers/check", entry), 200)
	if report["ok"] != true || report["server"] != "The lab" || report["version"] != "1.2" || report["protocol"] == "" || len(report["items"].([]any)) != 4 {
		t.Errorf("%v", report)
	}
	if d := cmp.Diff(map[string]any{"name": "lab_measure", "server_name": "measure", "description": "Measures the temperature."}, report["tools"].([]any)[1]); d != "" {
		t.Error(d)
	}
	made := read(b.do("POST", "/mcp-servers", entry), 201)
	shown := map[string]any{"Authorization": map[string]any{"set": true, "ends_with": "4f2a"}}
	if d := cmp.Diff(shown, made["entry"].(map[string]any)["headers"]); d != "" {
		t.Error(d)
	}
	b.ready("lab")
	if got := b.results(c, "And now?"); !strings.Contains(got, "it has 42 degrees") {
		t.Errorf("with the server: %s", got)
	}
	b.problem(b.do("POST", "/mcp-servers", entry), 409, "conflict")

	change := func(key string, value any) map[string]any {
		t.Helper()
		e := read(b.do("GET", "/mcp-servers/lab", nil), 200)["entry"].(map[string]any)
		e[key] = value
		return read(b.do("PUT", "/mcp-servers/lab", e), 200)
	}
	change("tools", []any{"hold"})
	b.ready("lab")
	if got := b.results(c, "Again?"); strings.Contains(got, "42 degrees") {
		t.Errorf("a tool that is not offered any more: %s", got)
	}
	change("tools", nil)
	if off := change("disabled", true); off["disabled"] != true || off["problem"] != "disabled" || len(off["tools"].([]any)) != 0 {
		t.Errorf("%v", off)
	}
	if got := b.results(c, "While it is off?"); strings.Contains(got, "42 degrees") {
		t.Errorf("switched off: %s", got)
	}
	change("disabled", false)
	b.ready("lab")
	if got := b.results(c, "On again?"); !strings.Contains(got, "it has 42 degrees") {
		t.Errorf("switched on: %s", got)
	}
	own := b.object(b.do("POST", "/agents", `{"name":"pilot","prompt":"You are a pilot.","tools":["lab_measure","lab_*","read_artifact"]}`), 201)
	if own["missing_tools"] != nil {
		t.Errorf("an agent of its tools: %v", own)
	}
	if a := b.do("DELETE", "/mcp-servers/lab", nil); a.StatusCode != 204 {
		t.Fatalf("%s %s", a.Status, a.body)
	}
	if d := cmp.Diff([]any{"lab_measure", "lab_*"}, b.object(b.do("GET", "/agents/pilot", nil), 200)["missing_tools"]); d != "" {
		t.Errorf("the agent does not say that they are gone: %s", d)
	}
	if got := b.results(c, "And deleted?"); strings.Contains(got, "42 degrees") {
		t.Errorf("deleted: %s", got)
	}
	b.problem(b.do("DELETE", "/mcp-servers/lab", nil), 404, "not_found")
	if strings.Contains(b.log.String(), "abcdefgh") {
		t.Error("the log holds the token")
	}
}

// ready waits until an MCP server is connected.
func (b *bench) ready(name string) httpapi.ToolEntryView {
	b.t.Helper()
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		v, err := httpapi.MCPServers(b.client).Get(b.t.Context(), name)
		if err == nil && v.State == "ready" {
			return v
		}
		if time.Now().After(end) {
			b.t.Fatalf("%+v, %v; log: %s", v, err, b.log)
		}
	}
}

// TestCallOutlivesItsServer: a call that runs when its server is deleted ends as it would
// have.
func TestCallOutlivesItsServer(t *testing.T) {
	b := newBench(t, "-- turn 1 --\n@call lab_hold {}\n-- turn 2 --\nDone.\n", withStored(t))
	l := newLab(t)
	servers := httpapi.MCPServers(b.client)
	if _, err := servers.Add(t.Context(), httpapi.ToolEntry{"name": "lab", "url": l.url, "headers": map[string]any{"Authorization": toolToken}, "agents": []any{"lead_agent"}}); err != nil {
		t.Fatal(err)
	}
	b.ready("lab")
	c := b.conversation()
	b.object(b.do("POST", "/conversations/"+c+"/messages", map[string]any{"text": "Hold."}), 202)
	<-l.holding
	if err := servers.Delete(t.Context(), "lab"); err != nil {
		t.Fatal(err)
	}
	close(l.release)
	all, err := json.Marshal(b.until(c, finished))
	if err != nil || !strings.Contains(string(all), "held to the end") {
		t.Errorf("%s, %v", all, err)
	}
}

// TestNoCommandByAPI: no spelling of a command is taken, nor what belongs to one, and the
// answer says where it can be configured.
func TestNoCommandByAPI(t *testing.T) {
	b := newBench(t, writes, withStored(t))
	for _, extra := range []map[string]any{
		{"command": []any{"sh"}},
		{"command": "sh -c x"},
		{"Command": "sh"},
		{"COMMAND": "sh"},
		{"com_mand": "sh"},
		{"cmd": "sh"},
		{"args": []any{"x"}},
		{"env": map[string]any{"A": "b"}},
		{"transport": "stdio"},
		{"type": "stdio"},
		{"process": map[string]any{"args": []any{"sh"}}},
		{"mcpServers": map[string]any{"x": map[string]any{"command": "npx"}}},
		{"url": "stdio:sh"},
		{"url": "stdio://sh"},
		{"url": "file:///bin/sh"},
		{"url": "npx -y server"},
		{"url": "/bin/sh"},
		{"cwd": "/"},
	} {
		for _, path := range []string{"/mcp-servers", "/mcp-servers/check", "/http-tools", "/http-tools/check"} {
			entry := map[string]any{"name": "x", "url": "http://127.0.0.1:1/mcp"}
			if strings.HasPrefix(path, "/http") {
				entry["description"] = "x"
			}
			for k, v := range extra {
				entry[k] = v
			}
			m := b.problem(b.do("POST", path, entry), 422, "invalid")
			if !strings.Contains(m["detail"].(string), "a command can only be configured in artel.yaml on the machine of the server") || len(m["errors"].([]any)) == 0 {
				t.Errorf("%s %v: %v", path, extra, m)
			}
		}
	}
	for _, path := range []string{"/mcp-servers", "/http-tools"} {
		if items := b.object(b.do("GET", path, nil), 200)["items"].([]any); len(items) != 0 {
			t.Errorf("%s has %v", path, items)
		}
	}
}

// TestImportBringsNoTool: agents, cards, books and rules of other programs bring neither
// a server nor a command.
func TestImportBringsNoTool(t *testing.T) {
	b := newBench(t, writes, withStored(t))
	const server = `"mcp":[{"name":"x","command":["sh"]}],"mcpServers":{"x":{"command":"sh"}},"mcp_servers":[{"name":"x","url":"http://127.0.0.1:1"}],"tools":[{"name":"x","description":"x","url":"http://127.0.0.1:1"}]`
	b.problem(b.do("POST", "/agents/import", "---\nname: eve\nmcp: [{name: x, command: [sh]}]\n---\nYou are Eve.\n", header{"Content-Type": "text/markdown"}), 422, "invalid")
	if a := b.do("POST", "/regex/import", `{"scriptName":"x","findRegex":"a","replaceString":"b",`+server+`}`); a.StatusCode != 200 {
		t.Errorf("rules: %s %s", a.Status, a.body)
	}
	eve := `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Eve","description":"d","first_mes":"hi","extensions":{` + server + `},` + server + `}}`
	if _, err := b.app.Characters.Import(apptest.Context(t), []byte(eve), settings.ImportOptions{}); err != nil {
		t.Errorf("a card: %v", err)
	}
	for _, path := range []string{"/mcp-servers", "/http-tools", "/tools/servers"} {
		if items := b.object(b.do("GET", path, nil), 200)["items"].([]any); len(items) != 0 {
			t.Errorf("%s has %v", path, items)
		}
	}
}

// TestHTTPToolAtRunTime: a tool is checked with a call, added and used; its header shows
// nowhere.
func TestHTTPToolAtRunTime(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != toolToken {
			http.Error(w, "not you: "+r.Header.Get("Authorization"), http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, "it rains in %s, says %s", strings.TrimPrefix(r.URL.Path, "/"), r.Header.Get("Authorization"))
	}))
	t.Cleanup(api.Close)
	b := newBench(t, "-- turn 1 --\n@call weather {\"city\":\"Bergen\"}\n-- turn 2 --\nDone.\n", withStored(t))
	entry := map[string]any{
		"name": "weather", "description": "Tells the weather.", "url": api.URL + "/{city}", "agents": []any{"lead_agent"}, "headers": map[string]any{"Authorization": toolToken},
		"parameters": map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []any{"city"}},
	}
	check := func(more map[string]any) map[string]any {
		t.Helper()
		send := map[string]any{}
		for _, m := range []map[string]any{entry, more} {
			for k, v := range m {
				send[k] = v
			}
		}
		a := b.do("POST", "/http-tools/check", send)
		if strings.Contains(string(a.body), "abcdefgh") {
			t.Errorf("the answer holds the token: %s", a.body)
		}
		return b.object(a, 200)
	}
	if r := check(nil); r["ok"] != true || len(r["items"].([]any)) != 0 {
		t.Errorf("without a call: %v", r)
	}
	if r := check(map[string]any{"arguments": map[string]any{"city": "Oslo"}}); r["ok"] != false || !strings.Contains(fmt.Sprint(r["items"]), "address_forbidden") || !strings.Contains(fmt.Sprint(r["items"]), "allow_private") {
		t.Errorf("a private address: %v", r)
	}
	entry["allow_private"] = true
	if r := check(map[string]any{"arguments": map[string]any{"city": "Oslo"}}); r["ok"] != true || r["content"] != "it rains in Oslo, says Bearer [Authorization]" {
		t.Errorf("a call: %v", r)
	}
	if r := check(map[string]any{"arguments": map[string]any{"town": "Oslo"}}); r["ok"] != false || !strings.Contains(fmt.Sprint(r["items"]), "request_refused") {
		t.Errorf("wrong arguments: %v", r)
	}
	if r := check(map[string]any{"arguments": map[string]any{"city": "Oslo"}, "headers": map[string]any{"Authorization": "Bearer wrong-token"}}); r["ok"] != false || !strings.Contains(fmt.Sprint(r["items"]), "key_refused") {
		t.Errorf("a wrong token: %v", r)
	}
	made := b.object(b.do("POST", "/http-tools", entry), 201)
	if made["id"] != "weather" || len(made["tools"].([]any)) != 1 {
		t.Errorf("%v", made)
	}
	c := b.conversation()
	if got := b.results(c, "Weather?"); !strings.Contains(got, "it rains in Bergen") || strings.Contains(got, "abcdefgh") {
		t.Errorf("%s", got)
	}
	for name, says := range map[string]string{"weather": "another tool", "read_artifact": "another tool", "call_subagent": "another tool"} {
		entry["name"] = name
		if m := b.problem(b.do("POST", "/http-tools", entry), 409, "conflict"); !strings.Contains(m["detail"].(string), says) {
			t.Errorf("%s: %v", name, m)
		}
	}
	for _, name := range []string{"read", "weather"} { // read_artifact is built in
		a := b.do("POST", "/mcp-servers", map[string]any{"name": name, "url": "http://127.0.0.1:1/"})
		if name == "read" {
			b.problem(a, 409, "conflict")
		} else if a.StatusCode != 201 { // weather_… is free
			t.Errorf("%s", a.body)
		}
	}
	entry["name"] = "weather_map"
	b.problem(b.do("POST", "/http-tools", entry), 409, "conflict")
}

// TestMetadataAddressOfTools: addresses of cloud metadata are refused for servers and tools,
// also where private ones are allowed.
func TestMetadataAddressOfTools(t *testing.T) {
	b := newBench(t, writes, withStored(t))
	r := b.object(b.do("POST", "/mcp-servers/check", map[string]any{"name": "x", "url": "http://169.254.169.254/mcp"}), 200)
	if r["ok"] != false || !strings.Contains(fmt.Sprint(r["items"]), "address_forbidden") {
		t.Errorf("%v", r)
	}
	r = b.object(b.do("POST", "/http-tools/check", map[string]any{"name": "x", "description": "x", "url": "http://169.254.169.254/", "allow_private": true, "arguments": map[string]any{}}), 200)
	if r["ok"] != false || !strings.Contains(fmt.Sprint(r["items"]), "address_forbidden") {
		t.Errorf("%v", r)
	}
}

// TestCheckOfMCPServers: each step says why it failed and what would help.
func TestCheckOfMCPServers(t *testing.T) {
	b := newBench(t, writes, withStored(t))
	l := newLab(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello</html>") }))
	t.Cleanup(web.Close)
	moved := httptest.NewServer(http.RedirectHandler(l.url, http.StatusMovedPermanently))
	t.Cleanup(moved.Close)
	headers := map[string]any{"Authorization": toolToken}
	for name, c := range map[string]struct {
		entry map[string]any
		want  []string
	}{
		"no token":    {map[string]any{"url": l.url}, []string{"reach ok", "key failed key_missing", "protocol skipped", "tools skipped"}},
		"wrong token": {map[string]any{"url": l.url, "headers": map[string]any{"Authorization": "Bearer x"}}, []string{"reach ok", "key failed key_refused", "protocol skipped", "tools skipped"}},
		"wrong path":  {map[string]any{"url": strings.TrimSuffix(l.url, "/mcp"), "headers": headers}, []string{"reach ok", "key unsure", "protocol failed wrong_path " + l.url, "tools skipped"}},
		"redirect":    {map[string]any{"url": moved.URL, "headers": headers}, []string{"reach ok", "key unsure", "protocol failed wrong_path " + l.url, "tools skipped"}},
		"a web page":  {map[string]any{"url": web.URL}, []string{"reach ok", "key unsure", "protocol failed wrong_path", "tools skipped"}},
		"nothing":     {map[string]any{"url": "http://127.0.0.1:1"}, []string{"reach failed nothing_listens", "key skipped", "protocol skipped", "tools skipped"}},
		"no name":     {map[string]any{"url": "http://no-such-host.invalid/mcp"}, []string{"reach failed unknown_host", "key skipped", "protocol skipped", "tools skipped"}},
	} {
		r := b.object(b.do("POST", "/mcp-servers/check", c.entry), 200)
		var got []string
		for _, item := range r["items"].([]any) {
			m := item.(map[string]any)
			got = append(got, strings.Join(nonEmpty(m["step"], m["state"], m["cause"], m["try"]), " "))
		}
		if d := cmp.Diff(c.want, got); d != "" || r["ok"] != false {
			t.Errorf("%s: %s %v", name, d, r)
		}
	}
}

func nonEmpty(values ...any) (out []string) {
	for _, v := range values {
		if s, _ := v.(string); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// TestTwoAdministrators: of two additions of one name, one is refused; changes at the same
// time leave one of them, whole.
func TestTwoAdministrators(t *testing.T) {
	b := newBench(t, writes, withStored(t))
	tools := httpapi.HTTPTools(b.client)
	entry := func(about string) httpapi.ToolEntry {
		return httpapi.ToolEntry{"name": "one", "description": about, "url": "http://127.0.0.1:1/" + about}
	}
	var mu sync.Mutex
	added, refused := 0, 0
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			_, err := tools.Add(t.Context(), entry(fmt.Sprint(i)))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				added++
			} else if strings.Contains(err.Error(), "another tool has this name") {
				refused++
			}
		})
	}
	wg.Wait()
	if added != 1 || refused != 7 {
		t.Errorf("%d added, %d refused", added, refused)
	}
	for i := range 8 {
		wg.Go(func() {
			if _, err := tools.Change(t.Context(), "one", entry(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	v, err := tools.Get(t.Context(), "one")
	if err != nil || v.Entry["url"] != "http://127.0.0.1:1/"+v.Entry["description"].(string) || len(v.Tools) != 1 || v.Tools[0].Description != v.Entry["description"] {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestToolsOfFilesAreReadOnly: what artel.yaml has is listed, and changed only there.
func TestToolsOfFilesAreReadOnly(t *testing.T) {
	b := newBench(t, writes, withStored(t), func(c *app.Config) {
		c.Stored.Files = []entries.FileTool{
			{Kind: store.MCPServerEntry, Name: "files", Origin: "artel.yaml", Fields: map[string]any{"name": "files", "command": "npx"}},
			{Kind: store.HTTPToolEntry, Name: "ping", Origin: "artel.yaml", Fields: map[string]any{"name": "ping"}},
		}
	})
	for path, name := range map[string]string{"/mcp-servers": "files", "/http-tools": "ping"} {
		one := b.object(b.do("GET", path+"/"+name, nil), 200)
		if one["read_only"] != true || one["origin"] != "artel.yaml" {
			t.Errorf("%v", one)
		}
		b.problem(b.do("PUT", path+"/"+name, map[string]any{"url": "http://x"}), 403, "tool_read_only")
		b.problem(b.do("DELETE", path+"/"+name, nil), 403, "tool_read_only")
	}
	if _, err := b.app.Toolbox.MCP.List(t.Context()); artel.KindOf(err) != artel.Unauthenticated && artel.KindOf(err) != artel.Denied {
		t.Errorf("without a login: %v", err)
	}
	if all, err := b.app.Toolbox.MCP.List(apptest.Context(t)); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}
