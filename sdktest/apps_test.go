// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/evanw/esbuild/pkg/api"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/sdktest/program"
	"github.com/artelhq/artel/webui/webuitest"
)

// bundle returns a file of js with what it imports as one module.
func bundle(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("js", name))
	if err != nil {
		t.Fatal(err)
	}
	r := api.Build(api.BuildOptions{EntryPoints: []string{path}, Bundle: true, Format: api.FormatESModule, MinifyWhitespace: true, Platform: api.PlatformBrowser, Charset: api.CharsetUTF8})
	if len(r.Errors) > 0 {
		t.Fatalf("%s: %s %+v", name, r.Errors[0].Text, r.Errors[0].Location)
	}
	return string(r.OutputFiles[0].Contents)
}

// appClient connects a host that shows apps to the server of Artel.
func appClient(t *testing.T, url string) *mcp.ClientSession {
	t.Helper()
	capabilities := &mcp.ClientCapabilities{}
	capabilities.AddExtension("io.modelcontextprotocol/ui", map[string]any{"mimeTypes": []string{"text/html;profile=mcp-app"}})
	c, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, &mcp.ClientOptions{Capabilities: capabilities}).
		Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// officialHost serves a page with the bridge of the official package, which calls tools
// by a client.
func officialHost(t *testing.T, c *mcp.ClientSession) string {
	t.Helper()
	bridge := bundle(t, "appbridge.mjs")
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, `<!doctype html><title>Host</title><link rel="icon" href="data:,"><body><script type="module" src="/bridge.js"></script>`)
	})
	mux.HandleFunc("/bridge.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, bridge)
	})
	mux.HandleFunc("/call", func(w http.ResponseWriter, r *http.Request) {
		var p mcp.CallToolParams
		var result *mcp.CallToolResult
		err := json.NewDecoder(r.Body).Decode(&p)
		if err == nil {
			result, err = c.CallTool(t.Context(), &p)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		_ = json.NewEncoder(w).Encode(result)
	})
	host := httptest.NewServer(mux)
	t.Cleanup(host.Close)
	return host.URL
}

// TestArtelInOfficialHost: the bridge of the official package shows Artel's pages, with the
// policy that the specification wants where a server asks for nothing.
func TestArtelInOfficialHost(t *testing.T) {
	c := appClient(t, program.Start(t, "..", "services: []\n"))
	for id, content := range map[string]string{
		"pears": "# Pears\n\n| kind | count |\n|---|---|\n| Abate | 3 |\n\n[Growers](https://growers.example/) and [the plan](artifact:plan)\n\n```go\nfunc main() {}\n```\n",
		"plan":  "Plant more.",
	} {
		if r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "create_artifact", Arguments: map[string]any{"id": id, "title": "Title", "content": content}}); err != nil || r.IsError {
			t.Fatalf("%v %+v", err, r)
		}
	}
	browsers := webuitest.NewBrowsers(1)
	t.Cleanup(browsers.Quit)
	b := browsers.Open(t, 10*time.Minute, 900, 700)
	b.Forgive("debug: ") // the package says what it sends
	b.Do(chromedp.Navigate(officialHost(t, c)))
	b.Until("window.ready")

	const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'none'">`
	start := func(uri, name string, args any, theme, locale string) {
		t.Helper()
		r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Fatal(err)
		}
		page := strings.Replace(r.Contents[0].Text, "<head>", "<head>"+policy, 1)
		given, err := json.Marshal([]any{page, name, args, map[string]any{"theme": theme, "locale": locale, "displayMode": "inline", "timeZone": "UTC"}})
		if err != nil {
			t.Fatal(err)
		}
		b.Script("start(..." + string(given) + ")")
	}
	const inside = `document.querySelector("iframe").contentDocument`
	text := func(want string) {
		t.Helper()
		b.Until(fmt.Sprintf(`%s?.getElementById("content")?.innerText.includes(%q)`, inside, want))
	}
	start("ui://artel/artifact", "read_artifact", map[string]any{"id": "pears"}, "dark", "zh-CN")
	text("Abate")
	if got := webuitest.Eval[string](b, inside+`.querySelector("header").innerText`); !strings.Contains(got, "在 Artel 中打开") || !strings.Contains(got, "Title") {
		t.Errorf("the head says %q", got)
	}
	if got := webuitest.Eval[string](b, `getComputedStyle(`+inside+`.documentElement).backgroundColor`); got != "rgb(29, 32, 35)" {
		t.Errorf("the dark page is %s", got)
	}
	b.Script(`bridge.setHostContext({ theme: "light", locale: "en" })`)
	b.Until(`getComputedStyle(` + inside + `.documentElement).backgroundColor === "rgb(255, 255, 255)" && ` + inside + `.getElementById("open").textContent === "Open in Artel"`)
	b.Until(`parseInt(document.querySelector("iframe").style.height) > 200`)
	b.Script(inside + `.querySelector('#content a[href^="https://growers"]').click()`)
	b.Script(inside + `.getElementById("open").click()`)
	b.Until(`opened.length === 2 && opened[0] === "https://growers.example/" && /\/c\/.*\/a\/pears$/.test(opened[1])`)
	b.Script(inside + `.querySelector('#content a[href^="/c/"]').click()`)
	text("Plant more.")

	start("ui://artel/diff", "update_artifact", map[string]any{"id": "pears", "edits": []map[string]any{{"old": "Abate", "new": "Conference"}}}, "light", "en")
	text("Conference")
	text("Abate")
	b.Until(inside + `.querySelectorAll("#version option").length === 2`)
	b.Script(inside + `.querySelector('[data-view-of="content"]').click()`)
	b.Until(`!` + inside + `.getElementById("content").innerText.includes("Abate") && ` + inside + `.querySelector("#content table")`)
	b.Script(`{ const s = ` + inside + `.getElementById("version"); s.value = "1"; s.dispatchEvent(new Event("change")); }`)
	text("Abate")
	start("ui://artel/diff", "diff_artifact", map[string]any{"id": "pears", "from": 1, "to": 2}, "light", "en")
	text("Conference")
}

// TestOfficialAppInArtel: an app by the official package runs on Artel's page.
func TestOfficialAppInArtel(t *testing.T) {
	page := `<!doctype html><html><head><meta charset="utf-8"><title>Pears</title></head><body>Waiting<script type="module">` +
		strings.ReplaceAll(bundle(t, "app.mjs"), "</script", `<\/script`) + `</script></body></html>`
	s := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	report := make(chan string, 1)
	add := func(name string, ui map[string]any, do func(*mcp.CallToolRequest)) {
		s.AddTool(&mcp.Tool{Name: name, Description: "Pears.", InputSchema: map[string]any{"type": "object"}, Meta: mcp.Meta{"ui": ui}}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			do(r)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "three pears"}}, StructuredContent: map[string]any{"pears": 3}}, nil
		})
	}
	add("show", map[string]any{"resourceUri": "ui://shop/show"}, func(*mcp.CallToolRequest) {})
	add("report", map[string]any{"visibility": []string{"app"}}, func(r *mcp.CallToolRequest) {
		select {
		case report <- string(r.Params.Arguments):
		default:
		}
	})
	read := func(uri, mediaType, text string) {
		s.AddResource(&mcp.Resource{URI: uri, Name: uri, MIMEType: mediaType}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: mediaType, Text: text}}}, nil
		})
	}
	read("ui://shop/show", "text/html;profile=mcp-app", page)
	read("memo://1", "text/plain", "remember")
	shop := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(shop.Close)
	t.Cleanup(shop.CloseClientConnections)
	var called atomic.Bool
	upstream := httptest.NewServer(fake.OpenAI(fake.Options{Models: []string{"gpt-like"}, Responder: func(_ context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			if len(r.Tools) > 0 && !called.Swap(true) {
				_ = yield(model.CallDelta{ID: "call_1", Name: "shop_show", Arguments: json.RawMessage(`{"kind":"pear"}`)}, nil) && yield(model.Finish{Reason: model.StopTools}, nil)
				return
			}
			_ = yield(model.TextDelta("There they are."), nil) && yield(model.Finish{Reason: model.StopEnd}, nil)
		}
	}}))
	t.Cleanup(upstream.Close)
	site := program.Start(t, "..", fmt.Sprintf("services:\n  - {id: m, dialect: openai, baseURL: %q, model: gpt-like, apiKey: sk-upstream, context_window: 100000, capabilities: {input: [text]}}\nmcp:\n  - {name: shop, url: %q, agents: [lead_agent]}\n", upstream.URL+"/v1", shop.URL))
	browsers := webuitest.NewBrowsers(1)
	t.Cleanup(browsers.Quit)
	b := browsers.Open(t, 10*time.Minute, 1200, 900)
	b.Forgive("debug: ", "TrustedScript", "Function constructor") // a library of the package tries whether it may compile
	b.Do(chromedp.Navigate(site))
	b.Until(`document.getElementById("text")`)
	b.Script(`document.getElementById("text").value = "Show pears."; document.querySelector("#composer .send").click()`)
	var got string
	b.Wait("the report of the app", func() bool {
		select {
		case got = <-report:
			return true
		default:
			return false
		}
	})
	for _, want := range []string{`"input":{"kind":"pear"}`, `"result":{"pears":3}`, `"name":"Artel"`, `"theme":"light"`, `"memo":"remember"`} {
		if !strings.Contains(got, want) {
			t.Errorf("the app reports %s, without %s", got, want)
		}
	}
	b.Until(`document.getElementById("text").value === "More pears, please." && document.querySelector("[data-app-said]").textContent.includes("report ×1")`)
}
