// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
)

// hostile is a page that would like to act for who looks at it.
const hostile = `<!doctype html><title>quiet</title><h1>Board</h1>
<script>document.title = "ran " + document.cookie; fetch("/api/v1/me", { credentials: "include" }).then((r) => { document.title = "asked " + r.status; });</script>
<img src="x" onerror="document.title = 'ran'">`

// TestContentHost: the page shows artifacts from another host. There a document has no
// cookies of the page's host and cannot ask its API, even if it could run scripts, and
// that host has neither page nor API.
func TestContentHost(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, setup{content: "localhost"})
	var c artel.Conversation
	if err := json.Unmarshal([]byte(s.ask(t, "POST", "/api/v1/conversations", "application/json", strings.NewReader("{}")).body), &c); err != nil {
		t.Fatal(err)
	}
	made := s.ask(t, "POST", "/api/v1/conversations/"+string(c.ID)+"/artifacts?filename=board.html", "text/html", strings.NewReader(hostile))
	if made.StatusCode != 201 {
		t.Fatalf("the artifact: %d %s", made.StatusCode, made.body)
	}
	main, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	other := "http://localhost:" + main.Port()
	b := openTab(t, 1280, 800)
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(c.ID)+"/a/board.html"), see("#viewer iframe"))
	b.Script(`document.cookie = "secret=of-the-page"`)
	if got := eval[string](b, `document.cookie`); !strings.Contains(got, "secret=of-the-page") {
		t.Fatalf("the page has no cookie to protect: %q", got)
	}
	b.Until(`performance.getEntriesByType("resource").some((e) => e.initiatorType === "iframe")`)
	b.picture("content")
	// The document alone, as the frame shows it.
	b.Forgive("localhost", "Blocked script", "sandbox", "Content Security Policy", "CORS", "Failed to load", "Refused", "violates")
	b.Do(chromedp.Navigate(s.URL + "/api/v1/conversations/" + string(c.ID) + "/artifacts/board.html/raw?preview=true"))
	b.Until(`document.readyState === "complete" && document.querySelector("h1")?.textContent === "Board"`)
	if got := eval[string](b, `location.origin === "null" ? location.href : location.origin`); !strings.HasPrefix(got, other) {
		t.Errorf("it is shown from %s", got)
	}
	for what, script := range map[string]string{
		"its script ran":           `document.title !== "quiet"`,
		"it reads cookies":         `(() => { try { return document.cookie !== "" } catch { return false } })()`,
		"it asks the API":          `fetch("` + s.URL + `/api/v1/me", { credentials: "include" }).then(() => true, () => false)`,
		"it asks the API as below": `fetch("/api/v1/me", { credentials: "include" }).then((r) => r.ok, () => false)`,
	} {
		if eval[bool](b, script) {
			t.Error(what)
		}
	}
	b.Do(chromedp.Navigate(other + "/"))
	b.Until(`document.body.textContent.includes("host_denied")`)
}
