// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"iter"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/demo"
)

// noise returns n bytes that do not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

// bigFiles writes a picture, a PDF and a Word document that are longer than
// what the composer sends of a file before the message.
func bigFiles(t *testing.T) []string {
	t.Helper()
	picture := image.NewNRGBA(image.Rect(0, 0, 500, 370))
	copy(picture.Pix, noise(len(picture.Pix)))
	var shot, letter bytes.Buffer
	if err := png.Encode(&shot, picture); err != nil {
		t.Fatal(err)
	}
	pdf, err := os.ReadFile(sample(t, "brief.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	header, rest, _ := bytes.Cut(pdf, []byte("\n"))
	pdf = fmt.Appendf(nil, "%s\n900 0 obj\n<</Length %d>>\nstream\n%s\nendstream\nendobj\n%s", header, 338<<10, noise(338<<10), rest)
	from, err := zip.OpenReader(sample(t, "brief.docx"))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to := zip.NewWriter(&letter)
	for _, f := range from.File {
		if err := to.Copy(f); err != nil {
			t.Fatal(err)
		}
	}
	w, err := to.CreateHeader(&zip.FileHeader{Name: "word/media/noise.bin", Method: zip.Store})
	if err == nil {
		_, err = w.Write(noise(300 << 10))
	}
	if err == nil {
		err = to.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for name, content := range map[string][]byte{"big.png": shot.Bytes(), "big.pdf": pdf, "big.docx": letter.Bytes()} {
		if len(content) < 290<<10 {
			t.Fatalf("%s has only %d bytes", name, len(content))
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// A file of which the composer sends only the beginning is counted when it is
// sent; that is no error, with whatever model.
func TestGlanceOfBigFiles(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, setup{services: []model.Service{sharp, textOnly, model.DemoService()}, standard: "sharp"})
	b := openTab(t, 1280, 800)
	for _, path := range bigFiles(t) {
		for _, service := range []string{"sharp", "plain", "demo"} {
			b.Do(chromedp.Navigate(s.URL), see("#composer"))
			b.Until(`document.readyState === "complete"`)
			b.Script(fmt.Sprintf(`document.querySelector('input[name=service][value=%q]').click()`, service))
			b.Do(choose(path), write("hello"))
			b.Until(`document.querySelector("#window .hint")?.innerText.includes("hen sent: ` + filepath.Base(path) + `")`)
			if got := b.Text("#window"); strings.Contains(got, "cannot be sent") || !strings.Contains(got, "tokens") {
				t.Errorf("%s for %s: %s", filepath.Base(path), service, got)
			}
		}
	}
	b.picture("big-files")
	b.Do(click("[data-glance]"), see("#glance .facts"))
	b.Says("#glance", "big.")
}

// selected are the bounds of the selection in the editor and how far it is
// scrolled.
const selected = `(() => { const t = document.querySelector(".editing textarea"); return [t.selectionStart, t.selectionEnd, t.scrollTop].join(" "); })()`

// Edit puts the caret at the beginning of a text, and selects nothing: the
// first key adds a letter.
func TestEditKeepsTheText(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	text := strings.Repeat("a line of the notes\n", 200)
	c := s.send(t, "look", map[string]string{"notes.md": text})
	b := openTab(t, 1440, 900)
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(c)+"/a/notes.md"), see("#viewer .block"))
	b.Do(click(`.viewer .bar a[href*="view=edit"]`), see(".editing textarea"))
	b.on(".editing textarea")
	if got := eval[string](b, selected); got != "0 0 0" {
		t.Errorf("the selection and the scroll position are %s", got)
	}
	b.Do(press("x"))
	if got := eval[string](b, `document.querySelector(".editing textarea").value`); got != "x"+text {
		t.Errorf("after one letter the text has %d characters, want %d", len(got), len(text)+1)
	}
	// The draft is there when the reader comes back, with the caret at its beginning.
	b.Do(click(".editing a.button"), see("#viewer .block"), click(`.viewer .bar a[href*="view=edit"]`), see(".editing textarea"))
	b.on(".editing textarea")
	if got := eval[string](b, selected); got != "0 0 0" {
		t.Errorf("with a draft the selection and the scroll position are %s", got)
	}
	// Nothing says that this is an old version, and no view is marked.
	if got := b.Text("#panel .meta"); strings.Contains(got, "not the newest") {
		t.Errorf("the newest version is called %q", got)
	}
	if eval[bool](b, `document.querySelector("#panel .tabs [aria-current]") !== null`) {
		t.Error("a view is marked as current beside the editor")
	}
	b.Says("#versions summary", "newest")
	// The same in a message that is written again.
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(c)), see("#messages"))
	b.Do(click(`.message.user [data-edit]`), see(".rewriting textarea"))
	b.on(".rewriting textarea")
	b.Do(press("x"))
	if got := eval[string](b, `document.querySelector(".rewriting textarea").value`); got != "lookx" {
		t.Errorf("after one letter the message is %q", got)
	}
}

// A link to the editor leads into it, without and with script: a page has one
// field that takes the focus.
func TestEditorHasTheFocus(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	c := s.send(t, "look", map[string]string{"notes.md": "# Notes\n"})
	b := openTab(t, 1440, 900)
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(c)+"/a/notes.md?view=edit"), see(".editing textarea"))
	b.on(".editing textarea")
	page := s.ask(t, "GET", "/c/"+string(c), "", nil).body
	_, message, _ := strings.Cut(page, `action="/c/`+string(c)+`/m/`)
	message, _, _ = strings.Cut(message, "/")
	for path, field := range map[string]string{"/a/notes.md?view=edit": `class="editing"`, "/m/" + message + "/edit": `class="rewriting"`, "": `id="composer"`} {
		page := s.ask(t, "GET", "/c/"+string(c)+path, "", nil).body
		if n := strings.Count(page, " autofocus"); n != 1 {
			t.Errorf("%s: %d fields ask for the focus", path, n)
		}
		before, _, _ := strings.Cut(page, " autofocus")
		if at := strings.LastIndex(before, "<form"); at < 0 || !strings.Contains(before[at:], field) {
			t.Errorf("%s: the focus is not in the form with %s", path, field)
		}
	}
}

// After a conflict the reader is at the first one. A text with marks of a
// conflict is saved only on purpose, on the page as through the API.
func TestConflictMarkers(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	text := strings.Repeat("a line of the notes\n", 100) + "last\n"
	c := s.send(t, "look", map[string]string{"notes.md": text})
	b := openTab(t, 1440, 900)
	at := "/c/" + string(c) + "/a/notes.md"
	api := "/api/v1/conversations/" + string(c) + "/artifacts/notes.md"
	put := func(query, version, body string) answer {
		t.Helper()
		return s.ask(t, "PUT", api+query, "text/markdown", strings.NewReader(body), "If-Match", `"`+version+`"`)
	}
	kept := func() string {
		t.Helper()
		_, text, err := s.app.Artifacts.Find(apptest.Context(t), c, "notes.md", "")
		if err != nil {
			t.Fatal(err)
		}
		return *text
	}
	b.Do(chromedp.Navigate(s.URL+at+"?view=edit"), see(".editing textarea"))
	if a := put("", "1", strings.Replace(text, "last", "theirs", 1)); a.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", a.StatusCode, a.body)
	}
	b.Forgive("409", "422")
	b.Do(fill(".editing textarea", strings.Replace(text, "last", "mine", 1)), click(".editing .primary"))
	b.Until(`document.querySelector(".editing .note")?.innerText.includes("1 conflict")`)
	marks := strings.Index(text, "last")
	if got := eval[[]int](b, `(() => { const t = document.querySelector(".editing textarea"); return [t.selectionStart, t.selectionEnd, t.scrollTop]; })()`); got[0] != marks || got[1] != marks || got[2] == 0 {
		t.Errorf("selection and scroll position are %v, want the mark at %d on display", got, marks)
	}
	b.on(".editing textarea")
	b.picture("conflict")
	b.Do(click(".editing .primary"))
	b.Until(`document.querySelector(".editing .note")?.innerText.includes("line 101")`)
	if got := kept(); strings.Contains(got, "<<<<<<<") {
		t.Fatal("the text was saved with the marks of a conflict")
	}
	b.Says(".editing", "Save anyway")
	newChecker(t, b).check("#panel", allRules, "conflict markers")
	b.picture("conflict-markers")
	merged := eval[string](b, `document.querySelector(".editing textarea").value`)
	b.Do(click(`.editing button[name="markers"]`))
	b.Until(`document.querySelector(".editing") === null`)
	if got := kept(); got != merged {
		t.Errorf("saved on purpose is\n%s", got)
	}
	// What the text holds already is not asked about again.
	if a := put("", "3", merged+"more\n"); a.StatusCode != http.StatusOK {
		t.Errorf("status %d: %s", a.StatusCode, a.body)
	}
	// The API refuses them likewise, and says how to save them all the same.
	again := merged + "<<<<<<< mine\na\n=======\nb\n>>>>>>> theirs\n"
	a := put("", "4", again)
	if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, `"conflict_markers"`) || !strings.Contains(a.body, "conflict_markers=keep") {
		t.Errorf("status %d: %s", a.StatusCode, a.body)
	}
	if a := put("?conflict_markers=keep", "4", again); a.StatusCode != http.StatusOK || kept() != again {
		t.Errorf("status %d: %s", a.StatusCode, a.body)
	}
	// A line of seven signs alone is text as any other.
	plain := "Title\n=======\n\n<<<<<<< is how git begins a conflict.\n"
	if a := put("", "5", plain); a.StatusCode != http.StatusOK || kept() != plain {
		t.Errorf("status %d: %s", a.StatusCode, a.body)
	}
}

// The text of a conflict comes into the editor also if the reader saves with the
// keyboard, with the focus in the text; otherwise the next save would put their
// text over the other version.
func TestConflictByKeyboard(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	c := s.send(t, "look", map[string]string{"notes.md": "one\ntwo\n"})
	b := openTab(t, 1440, 900)
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(c)+"/a/notes.md?view=edit"), see(".editing textarea"))
	a := s.ask(t, "PUT", "/api/v1/conversations/"+string(c)+"/artifacts/notes.md", "text/markdown", strings.NewReader("one theirs\ntwo\n"), "If-Match", `"1"`)
	if a.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", a.StatusCode, a.body)
	}
	b.Forgive("409")
	b.Do(fill(".editing textarea", "one mine\ntwo\n"), press("\r", chromedp.ModifierCtrl))
	b.Until(`document.querySelector(".editing .note")?.innerText.includes("1 conflict")`)
	got := eval[string](b, `document.querySelector(".editing textarea").value`)
	if !strings.Contains(got, "<<<<<<< yours\none mine\n") || !strings.Contains(got, "one theirs\n>>>>>>> ") {
		t.Errorf("the editor has %q, want both texts with the marks of the conflict", got)
	}
	b.on(".editing textarea")
}

// The provider's count is the one number of a call, at the composer as in the
// inspector; an estimate has a sign. The window is spoken of only where it may
// matter.
func TestTokensAgree(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, setup{services: []model.Service{sharp}, model: responder(func(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			_ = yield(model.TextDelta("Here I am."), nil) &&
				yield(model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: 1234, OutputTokens: 66}}, nil)
		}
	})})
	b := openTab(t, 1440, 900)
	b.Do(chromedp.Navigate(s.URL), see("#composer"), write("hello"))
	b.Until(`document.querySelector("#window .hint")?.innerText.includes("tokens")`)
	if got := b.Text("#window .hint"); !strings.HasPrefix(got, "≈\u00a0") || strings.Contains(got, "window") {
		t.Errorf("the estimate is told as %q", got)
	}
	b.Do(fill("#text", ""))
	b.send("hello")
	b.rest()
	b.Until(`document.querySelector("#last-call")?.innerText.includes("1,234 tokens") && document.querySelector("#total > summary").innerText.includes("1,300 tokens")`)
	b.sameAnew()
	b.Says("#last-call", "The last call used 1,234 tokens")
	b.Do(click("#last-call a"), see(".inspection .facts"))
	b.Says(".inspection .facts", "1,234 tokens", "66")
	for _, number := range eval[[]string](b, `[...document.querySelectorAll(".inspection section:first-child td:last-child")].map((cell) => cell.innerText)`) {
		if !strings.HasPrefix(number, "≈") {
			t.Errorf("the share of a source is told as counted: %q", number)
		}
	}
	b.picture("tokens-agree")
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.Do(fill("#text", strings.Repeat("many words ", 60_000)))
	b.Script(`document.getElementById("text").dispatchEvent(new Event("input"))`)
	b.Until(`document.querySelector("#window .hint")?.innerText.includes("window of this model is unknown")`)
}

// A model card agrees with itself about what a model takes.
func TestModelCardAgrees(t *testing.T) {
	t.Parallel()
	files := sharp
	files.ID, files.Name, files.Dialect = "files", "Files", model.Gemini
	s := newSiteOf(t, setup{services: []model.Service{sharp, files, textOnly, model.DemoService()}})
	b := openTab(t, 1280, 800)
	b.Do(chromedp.Navigate(s.URL+"/settings"), see("#s-files"))
	for _, id := range []string{"files", "sharp", "plain", "demo"} {
		card := b.Text("#s-" + id)
		_, takes, _ := strings.Cut(card, "Takes\n")
		takes, _, _ = strings.Cut(takes, "\n")
		for _, kind := range []string{"Text", "Pictures", "Files", "Sound", "Video"} {
			yes := strings.Contains(card, kind+": yes") || strings.Contains(card, kind+"\nyes")
			if yes != strings.Contains(takes, kind) {
				t.Errorf("%s: the card says %s %t and takes %q", id, kind, yes, takes)
			}
		}
	}
	b.picture("model-cards")
}

// The first tab has a name, and so has code in a list of files; an address
// without a page is told in a sentence.
func TestNames(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	c := s.send(t, "look", map[string]string{"a.py": "print(1)\n", "b.go": "package b\n", "c.cpp": "int x;\n", "d.toml": "a = 1\n"})
	for path, want := range map[string]string{
		"/": "<title>New conversation · Artel</title>", "/nowhere": "There is nothing at this address.", "/c/" + string(c) + "/a": "Python · ",
		"/c/" + string(c) + "/a/b.go": "Go · ", "/c/" + string(c) + "/a/c.cpp": "C&#43;&#43; · ",
	} {
		if page := s.ask(t, "GET", path, "", nil).body; !strings.Contains(page, want) || strings.Contains(page, "text/x-") {
			t.Errorf("%s lacks %q, or names a media type", path, want)
		}
	}
}

// A table of more than 20 MB and one byte beside a note and a picture: all are
// sent, the table is shown in part, and the model reads its beginning.
func TestLargeTextIsSent(t *testing.T) {
	t.Parallel()
	table := filepath.Join(t.TempDir(), "sales.csv")
	line := "2026-01-01;Berlin;12.50;a note on the sale of the day\n"
	content := "date;city;sum;note\n" + strings.Repeat(line, 20<<20/len(line)+1)
	if err := os.WriteFile(table, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, demo.Options{})
	b := openTab(t, 1440, 900)
	b.Do(chromedp.Navigate(s.URL), see("#composer"), write("What is in these?"), choose(table, sample(t, "notes.md"), sample(t, "photo.jpg")))
	b.Until(`document.querySelectorAll("#chosen li").length === 3`)
	b.Do(press("\r"), see("#messages .message.user"))
	b.rest()
	b.Says(".message.user", "sales.csv", "CSV table", "20.0 MB", "notes.md", "photo.jpg", "its text was sent")
	b.Do(click(`#artifacts [data-artifact="sales.csv"] a`), see("#viewer table"))
	b.Says("#viewer", "Berlin", "Showing the first", "of 20.0 MB")
	b.picture("large-text")
	if eval[bool](b, `document.querySelector('#panel a[href*="view=edit"]') !== null`) {
		t.Error("a text that cannot be edited offers an editor")
	}
}
