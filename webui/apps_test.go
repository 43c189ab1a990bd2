// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
)

// An appServer is an MCP server whose tools have pages.
type appServer struct {
	*httptest.Server
	tool string // that models get
	mu   sync.Mutex
	made []string // calls
}

// newAppServer serves an MCP server called "shop" whose tool "show" has a page. wants is
// what the page asks for.
func newAppServer(t *testing.T, page string, wants map[string]any) *appServer {
	t.Helper()
	a := &appServer{tool: "shop_show"}
	s := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	add := func(name string, meta map[string]any) {
		s.AddTool(&sdk.Tool{Name: name, Description: "Shows things.", InputSchema: map[string]any{"type": "object"}, Meta: sdk.Meta{"ui": meta}},
			func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				a.mu.Lock()
				defer a.mu.Unlock()
				a.made = append(a.made, name+" "+string(r.Params.Arguments))
				return &sdk.CallToolResult{
					Content:           []sdk.Content{&sdk.TextContent{Text: "three pears"}},
					StructuredContent: map[string]any{"pears": 3, "call": len(a.made)},
					Meta:              sdk.Meta{"side": "left"},
				}, nil
			})
	}
	add("show", map[string]any{"resourceUri": "ui://shop/show"})
	add("refresh", map[string]any{"visibility": []string{"app"}})
	add("buy", map[string]any{"visibility": []string{"model", "app"}})
	add("secret", map[string]any{"visibility": []string{"model"}})
	s.AddResource(&sdk.Resource{URI: "ui://shop/show", Name: "show", MIMEType: mcp.AppMediaType}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{
			URI: "ui://shop/show", MIMEType: mcp.AppMediaType, Text: page, Meta: sdk.Meta{"ui": map[string]any{"csp": wants}},
		}}}, nil
	})
	s.AddResource(&sdk.Resource{URI: "memo://1", Name: "memo", MIMEType: "text/plain"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "memo://1", Text: "remember"}}}, nil
	})
	a.Server = httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

// connect adds the server to a site, for its agent.
func (a *appServer) connect(t *testing.T, s *site) {
	t.Helper()
	if r := s.post(t, "/tools/mcp", "name", "shop", "address", a.URL, "agent", "lead_agent"); r.path != "/tools" {
		t.Fatalf("%d %s", r.status, r.body)
	}
	ctx, end := apptest.Context(t), time.Now().Add(3*time.Minute)
	for !slices.ContainsFunc(s.app.Tools.List(ctx), func(spec model.ToolSpec) bool { return spec.Name == a.tool }) {
		s.app.Toolbox.Await(ctx, "")
		if time.Now().After(end) {
			t.Fatalf("the server is not connected: %+v", s.app.Toolbox.Health())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (a *appServer) calls() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.made)
}

// rpc is the part of an app that speaks the protocol.
const rpc = `<script>
const waiting = new Map(), heard = [];
let last = 0;
addEventListener("message", ({ data, source }) => {
	if (source !== parent) return;
	if (data.method) heard.push(data); else waiting.get(data.id)?.(data);
});
const ask = (method, params = {}) => new Promise((done) => { const id = ++last; waiting.set(id, done); parent.postMessage({ jsonrpc: "2.0", id, method, params }, "*"); });
const tell = (method, params = {}) => parent.postMessage({ jsonrpc: "2.0", method, params }, "*");
</script>`

// plainApp uses what the protocol has, and reports to its server what came of it.
const plainApp = `<!doctype html><html><head><style>body { margin: 0; font: 14px sans-serif; }</style>` + rpc + `</head><body><p id="out">The pears</p><script>
(async () => {
	const state = {};
	state.init = (await ask("ui/initialize", { protocolVersion: "2026-01-26", appInfo: { name: "t", version: "1" }, appCapabilities: {} })).result;
	tell("ui/notifications/initialized");
	tell("ui/notifications/size-changed", { width: 10, height: 417 });
	while (heard.length < 2) await new Promise((done) => setTimeout(done, 5));
	state.heard = heard.slice(0, 2);
	state.memo = await ask("resources/read", { uri: "memo://1" });
	state.secret = await ask("tools/call", { name: "secret", arguments: {} });
	state.foreign = await ask("tools/call", { name: "../../../../../tools/rename_artifact", arguments: {} });
	state.unknown = await ask("ui/update-model-context", {});
	state.buy = [await ask("tools/call", { name: "buy", arguments: { n: 1 } }), await ask("tools/call", { name: "buy", arguments: { n: 2 } })];
	state.script = await ask("ui/open-link", { url: "javascript:alert(1)" });
	state.link = [await ask("ui/open-link", { url: "https://pears.example/page" }), await ask("ui/open-link", { url: "https://pears.example/again" })];
	state.message = await ask("ui/message", { role: "user", content: [{ type: "text", text: "Tell me more about pears." }] });
	state.end = await ask("tools/call", { name: "refresh", arguments: state });
	document.getElementById("out").textContent = "done";
})();
</script></body></html>`

// callShow has a model call the tool with the page.
const callShow = "-- turn 1 --\n@call shop_show {\"kind\":\"pear\"}\n-- turn 2 --\nThere they are.\n"

// TestApp: the page of a tool is shown at its call, gets the arguments and the result,
// calls tools for apps of its own server and no others, reads resources, and asks the
// person before a link, and before a tool that the deployment asks about.
func TestApp(t *testing.T) {
	t.Parallel()
	a := newAppServer(t, plainApp, map[string]any{"connectDomains": []string{"https://prices.example"}})
	s := newSiteOf(t, setup{demo: script(t, callShow), ask: agent.Permissions{"shop_buy": agent.Ask}})
	a.connect(t, s)
	b := openTab(t, 1280, 900)
	b.Forgive("status of 403", "status of 404") // of calls that are refused
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.send("Show pears.")
	b.rest()
	b.Says(".app", "App of shop", "1 address", "https://prices.example")

	answer := func(heading, text, button string) {
		t.Helper()
		b.Until(fmt.Sprintf(`document.getElementById("app-ask").open && document.querySelector("#app-ask h2").textContent.includes(%q) && document.querySelector("#app-ask pre").textContent.includes(%q)`, heading, text))
		if !eval[bool](b, `document.activeElement.matches("[data-refuse]")`) {
			t.Error("a stray Enter would allow it")
		}
		b.Do(click("#app-ask " + button))
	}
	answer("The app of shop wants to call buy", `"n": 1`, "[data-allow]")
	b.picture("app")
	answer("The app of shop wants to call buy", `"n": 2`, "[data-refuse]")
	b.Script(`window.opened = []; window.open = (...args) => opened.push(args)`)
	answer("The app of shop wants to open a page of pears.example", "https://pears.example/page", "[data-allow]")
	answer("wants to open", "https://pears.example/again", "[data-refuse]")
	b.Until(`document.querySelector("[data-app-said]").textContent.includes("refresh ×1")`)
	if got := eval[string](b, `JSON.stringify(opened)`); got != `[["https://pears.example/page","_blank","noopener,noreferrer"]]` {
		t.Errorf("opened %s", got)
	}
	if got := get(b, chromedp.Value(chromedp.CSS("#text"))); got != "Tell me more about pears." {
		t.Errorf("the composer has %q", got)
	}
	if h := eval[string](b, `document.querySelector(".app iframe").style.height`); h != "417px" {
		t.Errorf("the frame is %s high", h)
	}
	made := a.calls()
	if len(made) != 3 || made[0] != `show {"kind":"pear"}` || made[1] != `buy {"n":1}` {
		t.Fatalf("called: %q", made)
	}
	for _, want := range []string{
		`"arguments":{"kind":"pear"}`, `"structuredContent":{"call":1,"pears":3}`, `"_meta":{"side":"left"}`, `"three pears"`, `"text":"remember"`,
		`"theme":"light"`, `"locale":"en"`, `"maxHeight":640`, `"protocolVersion":"2026-01-26"`, `"code":-32601`,
		"has no tool secret for apps", "has no tool ../../../../../tools/rename_artifact for apps", "the user refused", "want an address of http or https",
	} {
		if !strings.Contains(made[2], want) {
			t.Errorf("the app did not get %s:\n%s", want, made[2])
		}
	}
	for _, spec := range s.app.Tools.List(apptest.Context(t)) {
		if spec.Name == "shop_refresh" {
			t.Error("models get a tool that is for apps")
		}
	}

	b.Do(chromedp.Reload(), see(".app iframe"))
	b.Says(".app", "App of shop")
}

// earlyApp speaks as soon as it is loaded, and then calls a tool once.
const earlyApp = `<!doctype html><html><head>` + rpc + `</head><body><script>
(async () => {
	await ask("ui/initialize", {});
	tell("ui/notifications/initialized");
	while (!heard.length) await new Promise((done) => setTimeout(done, 5));
	await ask("tools/call", { name: "refresh", arguments: {} });
})();
</script></body></html>`

// TestAppBeforeScripts: an app that comes with the page, and speaks before the scripts of the
// page have arrived, works nevertheless.
func TestAppBeforeScripts(t *testing.T) {
	t.Parallel()
	a := newAppServer(t, earlyApp, nil)
	s := newSiteOf(t, setup{demo: script(t, callShow)})
	a.connect(t, s)
	site, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	arrive, pages := make(chan struct{}), httputil.NewSingleHostReverseProxy(site)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/apps.js") {
			select {
			case <-arrive:
			case <-r.Context().Done():
			}
		}
		pages.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	b := openTab(t, 1280, 900) // it is closed before the server
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.send("Show pears.")
	b.rest()
	b.Do(onEveryPage(`addEventListener("message", () => { window.spoken = true; })`))
	b.Script(fmt.Sprintf(`location.href = %q + location.pathname`, front.URL))
	b.Wait("the app to speak before the page listens", func() bool { return eval[bool](b, `window.spoken === true`) })
	close(arrive)
	b.Until(`document.querySelector("[data-app-said]").textContent.includes("refresh ×1")`)
}
