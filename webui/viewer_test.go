// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/mediatest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/demo"
)

// calling is a model that makes the calls that a test hands it, one to an
// answer. An answer without a call ends the run.
func calling() (chan<- artel.ToolCall, speech) {
	calls := make(chan artel.ToolCall)
	return calls, func(ctx context.Context, _ *model.Request, say func(model.Delta) bool) {
		select {
		case c, more := <-calls:
			if more {
				say(model.CallDelta(c))
			} else {
				say(model.TextDelta("It is in [the notes](artifact:notes)."))
			}
		case <-ctx.Done():
		}
	}
}

func toolCall(t *testing.T, id, name string, args map[string]any) artel.ToolCall {
	t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return artel.ToolCall{ID: artel.CallID(id), Name: name, Arguments: b}
}

// An open viewer follows the agent's edits and marks what has changed, before
// any version of them is kept; links in the answer open it.
func TestLiveViewer(t *testing.T) {
	t.Parallel()
	calls, answers := calling()
	_, b := openSite(t, setup{model: answers}, 1440, 900)
	b.send("keep notes")
	calls <- toolCall(t, "c1", "create_artifact", map[string]any{"id": "notes", "title": "Notes", "content": "# Notes\n\nfirst paragraph\n\nsecond paragraph\n"})
	b.Do(see("#a-notes .live"), click("#a-notes a"), see("#viewer .block"))
	b.Says("#panel", "Notes", "being written")
	b.Script(`window.kept = document.querySelector("#viewer .block"); window.marked = [];
		new MutationObserver((changes) => { for (const c of changes) if (c.target.classList?.contains("changed")) marked.push(c.target.innerText.trim()); })
			.observe(document.getElementById("panel"), { subtree: true, attributes: true, attributeFilter: ["class"] });`)
	calls <- toolCall(t, "c2", "rewrite_artifact", map[string]any{"id": "notes", "content": "# Notes\n\nfirst paragraph\n\nsecond paragraph is longer\n\nthird paragraph\n"})
	b.Until(`document.querySelector("#viewer").innerText.includes("third paragraph")`)
	b.Until(`marked.length >= 2`)
	b.picture("live-viewer")
	if got := eval[[]string](b, `[...new Set(marked)].sort()`); !slices.Equal(got, []string{"second paragraph is longer", "third paragraph"}) {
		t.Errorf("what is marked as changed: %q", got)
	}
	if !eval[bool](b, `kept.isConnected && document.querySelector("#viewer .block") === kept`) {
		t.Error("what has not changed was replaced")
	}
	close(calls)
	b.rest()
	b.Until(`!document.querySelector("#panel .live")`)
	b.Says("#panel", "v2 · newest")
	b.Do(click("#panel [data-close-panel]"))
	b.Until(`!document.querySelector("#viewer")`)
	b.Do(click(`#messages a[href$="/a/notes"]`), see("#viewer"))
	b.Until(`location.pathname.endsWith("/a/notes")`)
	b.Says("#viewer", "third paragraph")
	b.sameAnew()
}

// While a run edits, the last stop of the slider is what it has made so far.
func TestSliderWhileLive(t *testing.T) {
	t.Parallel()
	calls, answers := calling()
	s := newSiteOf(t, setup{model: answers})
	b := openTab(t, 1440, 900)
	b.Do(chromedp.Navigate(s.URL), see("#composer"), choose(sample(t, "notes.md")))
	b.send("keep notes")
	calls <- toolCall(t, "c1", "rewrite_artifact", map[string]any{"id": "notes.md", "content": "# Written now\n"})
	b.Do(see(`#artifacts .live`), click(`#artifacts a[href$="/a/notes.md"]`), see("#slider"))
	slide := func(to string, sees string) {
		t.Helper()
		b.Script(`{ const slider = document.getElementById("slider"); slider.value = ` + to + `; for (const type of ["input", "change"]) slider.dispatchEvent(new Event(type, { bubbles: true })); }`)
		b.Until(sees)
	}
	now := `document.getElementById("slider").value === "1" && document.getElementById("slider").ariaValueText === "now" && document.getElementById("viewer").innerText.includes("Written now")`
	b.Until(now)
	b.Says("#versions summary", "now")
	slide("0", `location.search === "?v=1" && document.querySelector(".badge.warn") !== null && !document.getElementById("viewer").innerText.includes("Written now") && document.getElementById("slider").max === "1"`)
	slide("1", `!location.search && `+now)
	slide("0", `location.search === "?v=1"`)
	close(calls)
	b.rest()
	b.Until(`document.querySelector(".panel .meta .live") === null && document.querySelector("#versions [data-version-link] span").textContent.includes("v2 · newest")`)
	if !eval[bool](b, `location.search === "?v=1" && document.getElementById("slider").value === "0"`) {
		t.Error("the end of the run led the reader away")
	}
	slide("1", `location.search === "?v=2" && document.getElementById("viewer").innerText.includes("Written now")`)
}

// Every kind of file is shown as what it is, or says that it cannot be.
func TestViewersOfEveryKind(t *testing.T) {
	t.Parallel()
	s := newSite(t, script(t, "-- turn 1 --\nI have them.\n"))
	files := map[string]string{
		"page.html": `<!doctype html><title>x</title><p>a page</p><script>parent.document.title = "owned"; document.title = "owned"</script>`,
		"plain.txt": "plain\n  text", "long.txt": strings.Repeat("many lines of the same\n", 20_000),
	}
	for _, name := range []string{"notes.md", "table.csv", "data.json", "photo.jpg", "doc.svg", "tone.mp3", "clip.mp4", "report.pdf", "letter.docx", "archive.zip", "config.yaml"} {
		b, err := os.ReadFile(sample(t, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	c := s.send(t, "look at these", files)
	b := openTab(t, 1440, 900)
	// The sandboxed page may not run its script, and says so.
	b.Forgive("Blocked script execution")
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(c)), see("#artifacts"))
	for _, kind := range []struct{ name, shows, tabs string }{
		{"notes.md", `document.querySelector("#viewer .block h1") !== null`, "Preview Source Plain"},
		{"table.csv", `document.querySelectorAll("#viewer table tr").length > 1`, "Preview Source Plain"},
		{"data.json", `document.querySelector("#viewer .value")?.innerText.length > 5`, "Preview Source Plain"},
		{"photo.jpg", `document.querySelector("#viewer img")?.naturalWidth > 0`, ""},
		{"doc.svg", `document.querySelector("#viewer img")?.naturalWidth > 0`, "Preview Source Plain"},
		{"tone.mp3", `document.querySelector("#viewer audio")?.readyState >= 1`, ""},
		{"clip.mp4", `document.querySelector("#viewer video") !== null`, ""},
		{"report.pdf", `document.querySelector("#viewer iframe") !== null`, "Preview Text"},
		{"letter.docx", `document.querySelector("#viewer .block") !== null && document.querySelector("#viewer .note").innerText.includes("extracted from the document")`, ""},
		{"archive.zip", `document.querySelector("#viewer .file") !== null && document.querySelector("#viewer").innerText.includes("There is no preview")`, ""},
		{"page.html", `document.querySelector("#viewer iframe[sandbox]") !== null`, "Preview Source Plain"},
		{"config.yaml", `document.querySelector("#viewer pre") !== null`, "Source Plain"},
		{"plain.txt", `document.querySelector("#viewer pre").innerText.includes("plain\n  text")`, "Plain Source"},
		{"long.txt", `document.querySelector("#viewer").innerText.includes("many lines") && document.querySelector("#viewer .note") !== null`, "Plain Source"},
	} {
		b.Script(fmt.Sprintf(`document.querySelector('#artifacts [data-artifact="%s"] a').click()`, kind.name))
		b.Until(fmt.Sprintf(`location.pathname.endsWith(%q) && document.getElementById("viewer") !== null && (%s)`, "/a/"+kind.name, kind.shows))
		if got := eval[string](b, `[...document.querySelectorAll(".tabs a")].map((tab) => tab.innerText).join(" ")`); got != kind.tabs {
			t.Errorf("%s has the tabs %q, want %q", kind.name, got, kind.tabs)
		}
		b.picture("viewer-" + kind.name)
		// Every tab shows the text, and the download is the file itself.
		for i := range len(strings.Fields(kind.tabs)) {
			b.Script(fmt.Sprintf(`document.querySelectorAll(".tabs a")[%d].click()`, i))
			b.Until(fmt.Sprintf(`document.querySelectorAll(".tabs a")[%d].hasAttribute("aria-current") && document.querySelector("#viewer :is(pre, .block, table, img, iframe, .value)") !== null`, i))
		}
		got := eval[string](b, `fetch(document.querySelector("#panel a[download]").href).then((r) => r.blob()).then((blob) => new Promise((done) => {
			const reader = new FileReader(); reader.onload = () => done(reader.result.split(",")[1] ?? ""); reader.readAsDataURL(blob); }))`)
		if got != base64.StdEncoding.EncodeToString([]byte(files[kind.name])) {
			t.Errorf("the download of %s is another file", kind.name)
		}
		b.Script(`document.querySelector("#panel header a").click()`)
		b.Do(see("#artifacts"))
	}
	if got := get(b, chromedp.Title()); strings.Contains(got, "owned") {
		t.Error("a page that was uploaded reached the one around it")
	}
}

// A table is a table, JSON a tree that opens; the text can be copied, as it
// is.
func TestCopyAndTabs(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	const text = "# Title\n\n```go\nfmt.Println(1)\n```\n\nend  \nof it\n"
	c := s.send(t, "look", map[string]string{"notes.md": text})
	b := openTab(t, 1440, 900)
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		if _, err := chromedp.CallBrowser(b.Ctx, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: name}, Setting: browser.PermissionSettingGranted,
			BrowserContextID: chromedp.FromContext(b.Ctx).BrowserContextID,
		}); err != nil {
			t.Fatal(err)
		}
	}
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(c)+"/a/notes.md"), see("#viewer .block"))
	clipboard := func(want string) {
		t.Helper()
		b.Wait(fmt.Sprintf("%q on the clipboard", want), func() bool { return eval[string](b, `navigator.clipboard.readText()`) == want })
	}
	b.Do(click("#panel header [data-copy-from]"))
	clipboard(text)
	b.Until(`document.getElementById("announcement").innerText.includes("Copied")`)
	b.Do(click("#viewer figure.code [data-copy]"))
	clipboard("fmt.Println(1)")
	b.Do(click(`.tabs a[href*="view=code"]`))
	b.Until(`document.querySelector("#viewer pre")?.innerText.includes("# Title") && location.search.includes("view=code")`)
	b.Do(chromedp.Reload(), see("#viewer pre"))
	b.Says("#viewer", "# Title")
	b.Do(click(`.message.user [data-copy]`))
	clipboard("look")
}

// The browser's buttons go back and forward through what was opened.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	c := s.send(t, "look", map[string]string{"a.md": "# A", "b.md": "# B"})
	at := "/c/" + string(c)
	b := openTab(t, 1440, 900)
	b.Do(chromedp.Navigate(s.URL+at), see("#artifacts"))
	b.Script(`window.same = true`)
	open := func(name string) {
		t.Helper()
		b.Do(click(`#artifacts [data-artifact="`+name+`"] a`), see("#viewer"))
		b.Until(`document.getElementById("viewer-title").innerText.includes("` + name + `")`)
	}
	there := func(path, sees string) {
		t.Helper()
		b.Until(fmt.Sprintf(`location.pathname === %q && document.querySelector(%q) !== null`, at+path, sees))
	}
	open("a.md")
	b.Do(click("#panel header a"), see("#artifacts"))
	open("b.md")
	there("/a/b.md", "#viewer")
	b.Script("history.back()")
	there("/a", "#artifacts")
	b.Script("history.back()")
	there("/a/a.md", "#viewer")
	b.Says("#viewer", "A")
	b.Script("history.back()")
	there("", "#artifacts")
	b.Script("history.forward()")
	there("/a/a.md", "#viewer")
	if !eval[bool](b, `window.same === true`) {
		t.Error("the page was loaded anew on the way")
	}
	b.Do(chromedp.Reload())
	there("/a/a.md", "#viewer")
}

// Who clicks faster than the server answers gets what they clicked last.
func TestQuickReader(t *testing.T) {
	t.Parallel()
	answer, answered := make(chan struct{}), make(chan struct{})
	s := newSiteOf(t, setup{wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/a/a.md") {
				<-answer
				defer close(answered)
			}
			next.ServeHTTP(w, r)
		})
	}})
	c := s.send(t, "look", map[string]string{"a.md": "# A", "b.md": "# B"})
	b := openTab(t, 1440, 900)
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(c)), see("#artifacts"))
	b.Do(click(`#artifacts [data-artifact="a.md"] a`), click(`#artifacts [data-artifact="b.md"] a`), see("#viewer"))
	close(answer)
	<-answered
	eval[string](b, `fetch("/settings").then((response) => response.text())`) // what came before this has come
	b.Until(`location.pathname.endsWith("/a/b.md")`)
	b.Says("#viewer", "B")
	b.sameAnew()
}

// On a narrow screen an artifact covers the thread: the focus is in it, and
// Escape gives it back.
func TestNarrowSheet(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	c := s.send(t, "look", map[string]string{"a.md": "# A"})
	b := openTab(t, 390, 844)
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(c)), see("#messages"))
	if eval[bool](b, `document.getElementById("panel").checkVisibility()`) {
		t.Error("the panel covers the thread although nobody opened it")
	}
	b.Do(click("#panel-toggle"), see("#artifacts"))
	b.Until(`document.getElementById("panel").contains(document.activeElement) && document.getElementById("main").inert`)
	b.picture("narrow-list")
	b.Do(click(`#artifacts [data-artifact="a.md"] a`), see("#viewer"))
	b.Until(`document.getElementById("panel").contains(document.activeElement)`)
	if got := eval[string](b, `(() => { const box = document.getElementById("panel").getBoundingClientRect(); return [box.left, box.top, box.width, box.height].join(" "); })()`); got != "0 0 390 844" {
		t.Errorf("the sheet is at %s", got)
	}
	b.picture("narrow-viewer")
	for range 30 { // the focus goes round in the sheet and does not fall behind it
		b.Do(press(kb.Tab))
		if !eval[bool](b, `document.activeElement === document.body || document.getElementById("panel").contains(document.activeElement) || document.activeElement.matches(".skip, #toasts *")`) {
			t.Fatalf("the focus is behind the sheet, at %s", eval[string](b, `document.activeElement.outerHTML.slice(0, 200)`))
		}
	}
	b.Do(press(kb.Escape))
	b.Until(`!document.getElementById("panel").checkVisibility() && !document.getElementById("main").inert && document.activeElement.id === "panel-toggle"`)
	b.Until(`location.pathname === "/c/` + string(c) + `"`)
}

// The text of a scan is not said to be what models read.
func TestScanSaysWhoReadsItsText(t *testing.T) {
	t.Parallel()
	s := newSite(t, script(t, "-- turn 1 --\nI have it.\n"))
	report, err := os.ReadFile(sample(t, "report.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	c := s.send(t, "look at these", map[string]string{"scan.pdf": string(mediatest.Scan(1)), "report.pdf": string(report)})
	for name, doubtful := range map[string]bool{"scan.pdf": true, "report.pdf": false} {
		page := s.open(t, "/c/"+string(c)+"/a/"+name+"?view=text").body
		if strings.Contains(page, "as models and searches read it") == doubtful || strings.Contains(page, "is missing or doubtful. Instead, models get") != doubtful {
			t.Errorf("%s: doubtful %v is not what the page says", name, doubtful)
		}
	}
}
