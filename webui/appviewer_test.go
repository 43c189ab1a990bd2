// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/gateway/mcpserver"
)

// TestViewerOfOtherArtel: the page that Artel has for its artifacts works on Artel's page,
// where another Artel is an MCP server: behind the guard, in light and dark, wide and narrow.
func TestViewerOfOtherArtel(t *testing.T) {
	t.Parallel()
	c, _ := apptest.Config(t, nil)
	other := apptest.Open(t, c)
	h := mcpserver.New(other, mcpserver.Options{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Operator())))
	}))
	t.Cleanup(func() {
		h.Close()
		server.CloseClientConnections()
		server.Close()
	})
	const content = `"# Pears\n\nA list of [growers](https://growers.example/) and **kinds**.\n\n| kind | count |\n|---|---|\n| Abate | 3 |\n| Conference | 12 |\n\n- [x] plant\n- [ ] pick\n\n~~~go\nfunc main() { println(1) } // pears\n~~~\n"`
	s := newSiteOf(t, setup{demo: script(t, "-- turn 1 --\n@call shop_create_artifact {\"id\":\"pears\",\"title\":\"Pears\",\"content\":"+content+"}\n"+
		"-- turn 2 --\n@call shop_update_artifact {\"id\":\"pears\",\"edits\":[{\"old\":\"| Abate | 3 |\",\"new\":\"| Abate | 4 |\"}]}\n-- turn 3 --\nDone.\n")})
	server.URL += mcpserver.Path
	(&appServer{Server: server, tool: "shop_create_artifact"}).connect(t, s)
	b := openTab(t, 1280, 1100)
	b.Prefer("light", true)
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.send("Write about pears.")
	b.rest()
	b.Until(`(document.querySelectorAll(".app iframe[loading=lazy]").forEach((e) => { e.loading = "eager"; }),
		[...document.querySelectorAll("[data-app-said]")].filter((e) => e.textContent.includes("artel_show ×1")).length === 2)`)
	b.Until(`[...document.querySelectorAll(".app iframe")].every((e) => parseInt(e.style.height) > 100)`)
	b.picture("app-viewer")
	b.Prefer("dark", true)
	b.Until(`matchMedia("(prefers-color-scheme: dark)").matches`)
	b.picture("app-viewer-dark")
	b.Prefer("light", true)
	resize(b, 390, 1100)
	b.picture("app-viewer-narrow")
}
