// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// A line counts the connections that a browser opens to it, and the requests in them.
type line struct {
	*httptest.Server
	connections atomic.Int32
	requests    atomic.Int32
}

func newLine(t *testing.T, page string) *line {
	t.Helper()
	l := &line{}
	l.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		l.requests.Add(1)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, page)
	}))
	l.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			l.connections.Add(1)
		}
	}
	l.Start()
	t.Cleanup(l.Close)
	return l
}

// TestPreviewsConnectNowhere opens pages that ask the browser to connect to another server,
// which no Content-Security-Policy forbids, and wants no connection there. That the browser
// does connect shows a page of another server, before and after.
func TestPreviewsConnectNowhere(t *testing.T) {
	t.Parallel()
	const hints = `<!doctype html><html><head><title>T</title><link rel="preconnect" href="TO"><link rel="preconnect" crossorigin href="TO"><link rel="dns-prefetch" href="TO"><link rel="prefetch" href="TO/p"></head>` +
		`<body><p>Shown</p><iframe srcdoc="&lt;link rel=preconnect href=&quot;TO&quot;&gt;"></iframe><svg><style><!--</style><link rel=preconnect href="TO"></svg></body></html>`
	to := func(address string) string { return strings.ReplaceAll(hints, "TO", address) }
	evil := newLine(t, "")
	s, _ := guarded(t)
	id := s.send(t, "look", map[string]string{
		"evil.html": to(evil.URL),
		"evil.svg":  `<svg xmlns="http://www.w3.org/2000/svg" xmlns:h="http://www.w3.org/1999/xhtml"><h:link rel="preconnect" href="` + evil.URL + `"/><text y="20">Shown</text></svg>`,
	})
	b := &tab{browsers.OpenLasting(t, 15*time.Minute, 1280, 860)}
	b.Forgive("Content Security Policy", "ERR_BLOCKED_BY_CSP", "violates", "sandboxed", "favicon", "404")
	connects := func() {
		t.Helper()
		control := newLine(t, "")
		page := newLine(t, strings.ReplaceAll(`<!doctype html><title>T</title><link rel="preconnect" href="TO"><p>Shown</p>`, "TO", control.URL))
		b.Do(chromedp.Navigate(page.URL))
		b.Wait("the browser connects where a page asks for it", func() bool { return control.connections.Load() > 0 })
	}
	connects()
	for _, file := range []string{"evil.html", "evil.svg"} {
		b.Do(chromedp.Navigate(s.URL+"/c/"+string(id)+"/a/"+file), see("#viewer :is(iframe, img)"))
		src := eval[string](b, `document.querySelector("#viewer :is(iframe, img)").src`)
		b.Until(`performance.getEntriesByType("resource").some((r) => r.name === document.querySelector("#viewer :is(iframe, img)").src && r.responseEnd > 0)`)
		if file == "evil.svg" { // as a picture, which loads nothing; opened by its own address it is a page
			src += "?preview=true"
		}
		if !strings.HasSuffix(src, "?preview=true") {
			t.Errorf("%s is shown from %s", file, src)
		}
		b.Do(chromedp.Navigate(src))
		b.Until(`document.readyState === "complete" && document.documentElement.textContent.includes("Shown")`)
	}
	connects()
	if n := evil.connections.Load(); n > 0 {
		t.Errorf("%d connections were opened", n)
	}
}
