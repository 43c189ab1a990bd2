// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"golang.org/x/net/html"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/store"
)

// m is the metadata of a result.
type m = map[string]any

// A shown is a result and how a page shows it.
type shown struct {
	name     string
	metadata m
	content  string
	parts    artel.Parts
	failed   bool
	has, not []string // of the HTML of the card
}

func contents(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(sample(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func in64(raw string) string { return base64.StdEncoding.EncodeToString([]byte(raw)) }

// everyKind is a result of each kind, in each of the ways in which results name
// what they are about. c is the conversation, which holds the files.
func everyKind(t *testing.T, c artel.ConversationID) []shown {
	t.Helper()
	url := func(name string) string {
		return app.FileURL(artel.Ref{Conversation: c, Artifact: artel.ArtifactID(name)})
	}
	png, mp3 := contents(t, "red.png"), contents(t, "tone.mp3")
	stored := "tool_results/" + strings.Repeat("ab", 32) + ".png"
	return []shown{
		// By what it is.
		{name: "image", metadata: m{"content_type": "image", "media_type": "image/jpeg", "url": url("photo.jpg"), "filename": "photo.jpg", "size": 1397.0}, has: []string{`<img class="media" src="` + url("photo.jpg"), `data-zoom="photo.jpg"`, "1.4 KB", `download="photo.jpg"`}},
		{name: "image that browsers do not draw", metadata: m{"content_type": "image", "media_type": "image/tiff", "url": url("pic.tiff"), "filename": "pic.tiff"}, has: []string{`src="` + url("pic.tiff") + `?width=1024"`, `download="pic.tiff" href="` + url("pic.tiff") + `"`}},
		{name: "image that nobody draws", metadata: m{"content_type": "image", "media_type": "image/heic", "url": url("archive.zip"), "filename": "pic.heic"}, has: []string{`class="file"`, "pic.heic"}, not: []string{"<img"}},
		{name: "large image", metadata: m{"content_type": "image", "media_type": "image/jpeg", "url": url("photo.jpg"), "filename": "big.jpg", "size": 5e6}, has: []string{`src="` + url("photo.jpg") + `?width=1024"`, `href="` + url("photo.jpg") + `"`}},
		{name: "large animation", metadata: m{"content_type": "image", "media_type": "image/gif", "url": url("red.png"), "size": 5e6}, has: []string{`src="` + url("red.png") + `"`}},
		{name: "part", parts: artel.Parts{artel.Media{Ref: artel.Ref{Conversation: c, Artifact: "photo.jpg", Version: 1}, MediaType: "image/jpeg", Kind: artel.KindImage, Filename: "photo.jpg", Size: 1397, Width: 64, Height: 48}}, content: `{"step":"native"}`, has: []string{`width="64" height="48"`, "64 × 48", `id="w-`, "native"}},
		{name: "part that is too large to be drawn", parts: artel.Parts{artel.Media{Ref: artel.Ref{Conversation: c, Artifact: "photo.jpg", Version: 1}, MediaType: "image/png", Kind: artel.KindImage, Filename: "bomb.png", Size: 303851, Width: 50000, Height: 50000}}, has: []string{`class="file"`, "bomb.png", "50000 × 50000", "download"}, not: []string{"<img"}},
		{name: "audio", metadata: m{"content_type": "audio", "media_type": "audio/mpeg", "url": url("tone.mp3"), "filename": "tone.mp3"}, has: []string{"<audio", "controls", "tone.mp3"}, not: []string{"autoplay"}},
		{name: "audio part", parts: artel.Parts{artel.Media{Ref: artel.Ref{Conversation: c, Artifact: "tone.mp3", Version: 1}, MediaType: "audio/mpeg", Kind: artel.KindAudio, Filename: "tone.mp3", Size: 2385, Duration: 65.2}}, has: []string{"1:05"}},
		{name: "video", metadata: m{"content_type": "video", "media_type": "video/mp4", "url": url("clip.mp4")}, has: []string{"<video", "controls", "clip.mp4"}, not: []string{"autoplay"}},
		{name: "PDF", metadata: m{"content_type": "document", "media_type": "application/pdf", "url": url("report.pdf"), "filename": "report.pdf"}, has: []string{"<iframe", "preview=true", "report.pdf"}},
		{name: "document", metadata: m{"content_type": "document", "media_type": "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "url": url("letter.docx"), "filename": "letter.docx", "ref": artel.Ref{Conversation: c, Artifact: "letter.docx", Version: 1}.String()}, has: []string{`href="/c/` + string(c) + `/a/letter.docx?v=1"`, `download="letter.docx"`, "Word document"}},
		{name: "archive", metadata: m{"content_type": "archive", "media_type": "application/zip", "url": url("archive.zip"), "filename": "archive.zip"}, has: []string{`class="file"`, "archive.zip"}},
		{name: "file", metadata: m{"content_type": "file", "media_type": "application/octet-stream", "url": url("archive.zip"), "filename": "x.bin"}, has: []string{`class="file"`, "x.bin", "download"}},
		{name: "JSON", metadata: m{"content_type": "json"}, content: `{"a":[1,true,null],"b":"<b>"}`, has: []string{`<figure class="values">`, "&lt;b&gt;"}},
		{name: "broken JSON", metadata: m{"content_type": "json"}, content: `{"a":`, has: []string{`<pre class="text"`}},
		{name: "list", metadata: m{"content_type": "list"}, content: `["one","two"]`, has: []string{`class="array"`, "two"}},
		{name: "table", metadata: m{"content_type": "table"}, content: "name,size\na,1\nb,2\n", has: []string{`<th scope="col">name</th>`, "<td>b</td>"}},
		{name: "long table", metadata: m{"content_type": "table"}, content: "name,size\n" + strings.Repeat("a,1\n", 900), has: []string{"<table>", `class="cut"`, "rows more"}},
		{name: "diff", metadata: m{"content_type": "diff"}, content: "@@ -1 +1 @@\n-old\n+new\n", has: []string{`<figure class="diff">`, "added"}},
		{name: "Markdown", metadata: m{"content_type": "markdown"}, content: "## Title\n\n<b onclick=x>bold</b>\n", has: []string{"<h2", "&lt;b onclick"}},
		{name: "code", metadata: m{"content_type": "code", "media_type": "text/x-go", "filename": "main.go"}, content: "func main() {}\n", has: []string{`<figure class="code`, `class="k`}},
		{name: "text", metadata: m{"content_type": "text"}, content: "plain <i>text</i>", has: []string{`<pre class="text"`, "&lt;i&gt;"}},
		{name: "error", metadata: m{"content_type": "error"}, content: "no such thing", failed: true, has: []string{`class="value body error"`, "no such thing"}},
		{name: "address", metadata: m{"content_type": "url", "url": "https://example.org/a?b=1"}, content: "https://example.org/a?b=1", has: []string{`rel="noreferrer" target="_blank"`, "example.org"}, not: []string{"<img", "<pre"}},
		{name: "picture elsewhere", metadata: m{"content_type": "image", "url": "https://example.org/a.png"}, has: []string{`target="_blank"`}, not: []string{"<img"}},
		{name: "read", metadata: m{"content_type": "table", "media_type": "text/csv", "url": url("table.csv"), "filename": "table.csv"}, content: "<artifact_slice id=\"table.csv\" version=\"1\">\n<title>t</title>\nname,size\na,1\n</artifact_slice>", has: []string{`class="file"`, "<th scope=\"col\">name</th>"}, not: []string{"artifact_slice"}},
		{name: "nothing said", content: "just words", has: []string{`<pre class="text"`, "just words"}},

		// By priority: url, file_path, data, result.
		{name: "url before path", metadata: m{"content_type": "image", "media_type": "image/png", "url": url("red.png"), "file_path": "other.png", "encoding": "base64", "data": in64(png)}, content: url("red.png"), has: []string{`src="` + url("red.png")}, not: []string{"data:image", "<pre"}},
		{name: "path before data", metadata: m{"content_type": "image", "media_type": "image/png", "file_path": stored, "encoding": "base64", "data": in64(png)}, content: stored, has: []string{`src="/api/v1/files/` + stored}, not: []string{"data:image", "<pre"}},
		{name: "path of elsewhere", metadata: m{"content_type": "image", "media_type": "image/png", "file_path": "/home/somebody/secret/pic.png"}, has: []string{`class="file"`, "pic.png"}, not: []string{"<img", "/home/somebody", "<a "}},
		{name: "data before result", metadata: m{"content_type": "image", "media_type": "image/png", "encoding": "base64", "data": in64(png)}, content: "a picture", has: []string{`src="data:image/png;base64,`, "a picture"}},
		{name: "data is what it is", metadata: m{"content_type": "image", "media_type": "text/html", "encoding": "base64", "data": in64(png)}, has: []string{`src="data:image/png;base64,`}, not: []string{"data:text/html"}},
		{name: "sound in data", metadata: m{"content_type": "audio", "encoding": "base64", "data": in64(mp3)}, has: []string{`<audio`, `src="data:audio/mpeg;base64,`}},
		{name: "document in data", metadata: m{"content_type": "document", "media_type": "application/pdf", "filename": "in.pdf", "encoding": "base64", "data": in64(contents(t, "report.pdf"))}, has: []string{`class="file"`, `href="data:application/octet-stream;base64,`, `download="in.pdf"`}, not: []string{"<iframe"}},
		{name: "page in data", metadata: m{"content_type": "file", "media_type": "text/html", "filename": "x.html", "encoding": "base64", "data": in64("<script>alert(1)</script>")}, has: []string{`<figure class="code`, "&lt;"}, not: []string{"data:", "<script"}},
		{name: "drawing in data", metadata: m{"content_type": "image", "media_type": "image/svg+xml", "encoding": "base64", "data": in64(contents(t, "doc.svg"))}, has: []string{`<img class="media" src="data:image/svg`}},
		{name: "broken data", metadata: m{"content_type": "image", "media_type": "image/png", "encoding": "base64", "data": "###"}, has: []string{`class="file"`, "damaged"}, not: []string{"<img"}},
		{name: "too much data", metadata: m{"content_type": "image", "media_type": "image/png", "encoding": "base64", "data": strings.Repeat("A", 200_000)}, has: []string{`class="file"`, "Too large"}, not: []string{"<img", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}},
		{name: "data URI as result", content: "data:image/png;base64," + in64(png), has: []string{`src="data:image/png;base64,`}, not: []string{"<pre"}},
		{name: "bare base64 as result", content: in64(png), has: []string{`src="data:image/png;base64,`}, not: []string{"<pre"}},
		{name: "base64 of no known bytes", content: strings.Repeat("QUJDREVGR0g", 20), has: []string{`<pre class="text"`}},
		{name: "address as result", metadata: m{"content_type": "image", "media_type": "image/jpeg"}, content: url("photo.jpg"), has: []string{`<img class="media" src="` + url("photo.jpg")}, not: []string{"<pre"}},

		// What nobody should say.
		{name: "unknown type with bytes", metadata: m{"content_type": "hologram"}, content: "\uFFFDPNG\r\n\x1a\u0000\u0001bytes", has: []string{`class="file"`}, not: []string{"<pre", "bytes"}},
		{name: "unknown type with an address", metadata: m{"content_type": "hologram", "url": url("archive.zip"), "filename": "h.holo"}, has: []string{`class="file"`, "h.holo"}},
		{name: "unknown type of words", metadata: m{"content_type": "hologram"}, content: "words", has: []string{`<pre class="text"`}},
		{name: "script address", metadata: m{"content_type": "url", "url": "javascript:alert(1)"}, content: "javascript:alert(1)", has: []string{`<pre class="text"`}, not: []string{"<a "}},
		{name: "data address of a page", metadata: m{"content_type": "image", "url": "data:text/html;base64," + in64("<script>1</script>")}, has: []string{`<figure class="code`}, not: []string{"data:text", "<a "}},
		{name: "way out of the files", metadata: m{"content_type": "document", "media_type": "application/pdf", "url": "/api/v1/files/../../../settings"}, content: "x", has: []string{`<pre class="text"`}, not: []string{"settings", "<iframe"}},
		{name: "encoded way out", metadata: m{"content_type": "document", "media_type": "application/pdf", "url": "/api/v1/files/%2e%2e%2f%2e%2e%2fsettings"}, content: "x", not: []string{"<iframe", "settings"}},
		{name: "address with a name and password", metadata: m{"content_type": "url", "url": "https://bank.example@evil.example/"}, content: "x", not: []string{"<a "}},
		{name: "markup in names", metadata: m{"content_type": "file", "url": url("archive.zip"), "filename": `"><img src=x onerror=alert(1)>`, "media_type": `"><script>`}, has: []string{`class="file"`}, not: []string{"<img src=x", "<script"}},
		{name: "wrong kinds of facts", metadata: m{"content_type": 7, "url": []any{"x"}, "data": m{}, "size": "big"}, content: "fine", has: []string{"fine"}},
	}
}

// named are the files that everyKind names.
func named(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"photo.jpg", "red.png", "pic.tiff", "tone.mp3", "clip.mp4", "report.pdf", "letter.docx", "archive.zip", "table.csv", "doc.svg"} {
		files[name] = contents(t, name)
	}
	return files
}

// results seeds a conversation with files and the given results, each of a
// call of its own: c0, c1 and so on.
func (s *site) results(t *testing.T, files map[string]string, all func(artel.ConversationID) []shown) (artel.ConversationID, []shown) {
	t.Helper()
	id := s.send(t, "Show me everything.", files)
	list := all(id)
	at := time.Now().UTC().Truncate(time.Microsecond)
	err := s.store.Update(apptest.Context(t), artel.Local, func(tx store.Tx) error {
		c, err := tx.Conversations.Get(id)
		if err != nil {
			return err
		}
		add := func(role artel.Role, parts ...artel.Part) error {
			message := artel.Message{ID: artel.NewMessageID(at), Conversation: id, Parent: c.Leaf, Role: role, Parts: parts, CreatedAt: at}
			c.Leaf = message.ID
			return tx.Messages.Create(message)
		}
		var calls []artel.Part
		for i, k := range list {
			calls = append(calls, artel.ToolCall{ID: artel.CallID(fmt.Sprintf("c%d", i)), Name: "show", Arguments: []byte(fmt.Sprintf(`{"title":%q}`, k.name))})
		}
		if err := add(artel.RoleAssistant, calls...); err != nil {
			return err
		}
		for i, k := range list {
			if err := add(artel.RoleTool, artel.ToolResult{CallID: artel.CallID(fmt.Sprintf("c%d", i)), Content: k.content, Parts: k.parts, IsError: k.failed, Metadata: k.metadata}); err != nil {
				return err
			}
		}
		return tx.Conversations.Update(c)
	})
	if err != nil {
		t.Fatal(err)
	}
	return id, list
}

// card is the result on the card of a call, as HTML.
func card(t *testing.T, page, call string) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if attribute(n, "id") != "t-"+call {
			continue
		}
		var last *html.Node // after what it was called with
		for n := range n.Descendants() {
			if n.Data == "section" {
				last = n
			}
		}
		var b strings.Builder
		if err := html.Render(&b, last); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	return ""
}

// element is the element with an id, as HTML.
func element(t *testing.T, page, id string) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if attribute(n, "id") == id {
			var b strings.Builder
			if err := html.Render(&b, n); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
	}
	t.Fatalf("there is no element %s", id)
	return ""
}

// Every kind of result is shown as what it is, by the priority of what names
// it; what is unknown is a card or a text, and nothing is more than it says.
func TestResultsOfEveryKind(t *testing.T) {
	t.Parallel()
	s := newSite(t, script(t, "-- turn 1 --\nI have them.\n"))
	id, list := s.results(t, named(t), func(c artel.ConversationID) []shown { return everyKind(t, c) })
	page := s.ask(t, "GET", "/c/"+string(id), "", nil).body
	for i, k := range list {
		got := card(t, page, fmt.Sprintf("c%d", i))
		got = strings.ReplaceAll(got, "&#34;", `"`)
		for _, want := range k.has {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%.700s", k.name, want, got)
			}
		}
		for _, not := range k.not {
			if strings.Contains(got, not) {
				t.Errorf("%s: there is %q in\n%.700s", k.name, not, got)
			}
		}
	}
}

// The tour: a browser shows each of them, pictures are drawn, sounds and films
// can be played, the policy is kept, and the rules of accessibility too.
// Pictures are looked at in the whole window, with keys.
func TestTourOfResults(t *testing.T) {
	t.Parallel()
	s := newSite(t, script(t, "-- turn 1 --\nI have them.\n"))
	id, _ := s.results(t, named(t), func(c artel.ConversationID) (good []shown) {
		for _, k := range everyKind(t, c) {
			if k.name != "path before data" { // that file is nowhere
				good = append(good, k)
			}
		}
		return good
	})
	b := openTab(t, 1280, 900)
	b.Prefer("light", true)
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(id)), see("#messages .call"))
	b.Script(`document.querySelectorAll(".call").forEach((d) => { d.open = true; }); document.querySelectorAll("[loading=lazy]").forEach((e) => { e.loading = "eager"; })`)
	b.Until(`[...document.querySelectorAll("#messages img")].every((i) => i.complete && i.naturalWidth > 0)`)
	b.Until(`[...document.querySelectorAll("#messages :is(audio, video)")].every((p) => p.readyState >= 1 && p.duration > 0 && p.paused)`)
	axe := newChecker(t, b)
	for _, width := range []int64{1280, 390} {
		resize(b, width, 900)
		axe.check("#messages", allRules, "results", fmt.Sprint(width))
		if over := eval[[]string](b, `[...document.querySelectorAll(".call .inside *")].filter((e) => !e.closest(".table, pre, figure.values, .visually-hidden, svg") && !e.parentElement.closest(".clip") && e.getBoundingClientRect().right > document.querySelector("#messages").getBoundingClientRect().right + 1).map((e) => e.outerHTML.slice(0, 120))`); len(over) > 0 {
			t.Errorf("at %d wide these stick out: %q", width, over)
		}
	}
	b.Prefer("dark", true)
	axe.check("#messages", colorRules, "results, dark")
	resize(b, 1280, 900)
	resize(b, 1280, 9000)
	b.picture("results")
	resize(b, 1280, 900)

	// Looking closer.
	b.Script(`document.querySelector("#messages a[data-zoom='photo.jpg']").focus()`)
	b.Do(press("\r"), see("#zoom"))
	about := `document.querySelector("[data-zoom-about]").textContent`
	b.Until(about + `.startsWith("64 × 48 · 1 / ")`)
	b.Says("[data-zoom-name]", "photo.jpg")
	for _, key := range []string{"+", "+"} {
		b.Do(press(key))
	}
	b.Until(`document.querySelector("[data-zoom-scale]").textContent === "200 %" && document.querySelector(".stage img").getBoundingClientRect().width === 128`)
	b.Do(press("-"))
	b.Until(`document.querySelector("[data-zoom-scale]").textContent === "150 %"`)
	b.Do(press("0"))
	b.Until(`document.querySelector(".stage img").getBoundingClientRect().width === 64`)
	b.Do(press(kb.ArrowRight))
	b.Until(about + `.includes("2 / ")`)
	b.Do(press(kb.ArrowLeft), press(kb.ArrowLeft))
	b.Until(`((text) => text.split(" / ")[0].endsWith(text.split(" / ")[1]))(` + about + `.split("· ")[1])`) // round to the last
	axe.check("#zoom", allRules, "zoom")
	b.walkIn("#zoom")
	b.Do(press(kb.Escape))
	b.Until(`!document.querySelector("#zoom").open && document.activeElement.matches("a[data-zoom]")`)
}

// walkIn presses Tab until the focus has been everywhere in an open dialog, and
// checks that nothing else gets it.
func (b *tab) walkIn(dialog string) {
	b.T.Helper()
	for range eval[int](b, fmt.Sprintf(`document.querySelector(%q).querySelectorAll("a[href], button, [tabindex]").length + 1`, dialog)) {
		b.Do(press("\t"))
		if !eval[bool](b, fmt.Sprintf(`document.activeElement === document.body || document.activeElement.closest(%q) !== null`, dialog)) {
			b.T.Errorf("the focus left %s for %s", dialog, eval[string](b, `document.activeElement.outerHTML.slice(0, 200)`))
		}
	}
}
