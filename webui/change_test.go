// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/model/provider/demo"
)

// A person edits an artifact, compares, goes back to an older version by the
// slider, restores it, renames, deletes, and takes that back.
func TestChangeArtifact(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	c := s.send(t, "look", map[string]string{"notes.md": "# Notes\n\nfirst line\nsecond line\n"})
	b := openTab(t, 1440, 900)
	here := "/c/" + string(c) + "/a/notes.md"
	b.Do(chromedp.Navigate(s.URL+here), see("#viewer .block"))
	edit := func(text string) {
		t.Helper()
		b.Do(click(`.viewer .bar a[href*="view=edit"]`), see(".editing textarea"), fill(".editing textarea", text))
	}

	edit("# Notes\n\nfirst line\nsecond line, changed\n")
	b.Do(click(".editing .primary"))
	b.Until(`document.querySelector("#viewer .block") !== null && !location.search && document.querySelector("#viewer").innerText.includes("changed")`)
	b.Do(click(`.tabs a[href*="view=diff"]`), see(".compare"))
	b.Until(`document.querySelector(".compare td.added mark")?.innerText.includes("changed") && document.querySelectorAll(".compare td.removed").length === 1`)
	b.Says(".compare", "1 line added", "1 line removed")
	b.Do(click(`.compare a[href*="split=1"]`))
	b.Until(`[...document.querySelectorAll(".compare tr")].some(row => row.querySelector(".removed") && row.querySelector(".added"))`)

	b.Script(`const slider = document.getElementById("slider"); slider.value = 0; slider.dispatchEvent(new Event("input", { bubbles: true })); slider.dispatchEvent(new Event("change", { bubbles: true }))`)
	b.Until(`location.search.includes("v=1") && document.querySelector(".badge.warn")?.innerText.includes("version 1")`)
	b.Do(click(`form[action$="/restore"] button`))
	b.Until(`!location.search && document.querySelector("#versions summary").innerText.includes("v3") && !document.querySelector("#viewer").innerText.includes("changed")`)

	b.Do(click("#actions summary"), fill(`#actions input[name=title]`, "The notes"), click(`#actions form[action$="/title"] button`))
	b.Until(`document.getElementById("viewer-title").innerText === "The notes"`)
	b.Do(click("#actions summary"), click(`#actions form[action$="/delete"] button`))
	b.Until(`document.getElementById("panel").dataset.open === "list" && document.getElementById("toasts").innerText.includes("The notes was deleted") && document.querySelector('#artifacts a[href$="notes.md"]') === null`)
	b.Says("#deleted", "Deleted")
	b.Do(click("#toasts form button"))
	b.Until(`document.getElementById("viewer-title")?.innerText === "The notes" && document.querySelector("#toasts .toast") === null`)
	// A deletion that was undone leaves no version behind.
	b.Says("#versions summary", "v4 · newest")
	b.Do(click("#versions summary"))
	if got := b.Text("#versions ol"); strings.Contains(got, "v5") || strings.Contains(got, "v6") || strings.Contains(got, "deleted") {
		t.Errorf("the versions are %q", got)
	}
	b.Do(click("#versions li:first-child a"))
	b.Until(`location.search.includes("v=4") && document.querySelector(".badge.warn") === null`)
	b.Do(click("#panel header a"), see("#artifacts"))
	b.Says(`#artifacts [data-artifact="notes.md"]`, "The notes", "· v4 ·")
}

// What somebody else writes meanwhile is brought together with what a person
// has written, and nothing is saved before they have seen it. What is being
// written survives a look elsewhere.
func TestEditConflict(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	c := s.send(t, "look", map[string]string{"notes.md": "one\ntwo\nthree\n\nfour\nfive\n"})
	b := openTab(t, 1440, 900)
	at := app.ArtifactAt{Conversation: c, ID: "notes.md"}
	other := func(text string) {
		t.Helper()
		if _, err := s.app.Edits.Save(apptest.Context(t), at, artifact.Draft{Text: &text}); err != nil {
			t.Fatal(err)
		}
	}
	typed := func() string { return eval[string](b, `document.querySelector(".editing textarea").value`) }
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(c)+"/a/notes.md?view=edit"), see(".editing textarea"))
	b.Do(fill(".editing textarea", "mine\ntwo\nthree\n\nfour\nfive\n"))
	b.Do(chromedp.Reload(), see(".editing textarea"))
	if got := typed(); !strings.HasPrefix(got, "mine\n") {
		t.Errorf("after a reload the text is %q", got)
	}
	other("one\ntwo\nthree\n\nfour\ntheirs\n")
	b.Forgive("409")
	b.Do(click(".editing .primary"))
	b.Until(`document.querySelector(".editing .note")?.innerText.includes("without a conflict")`)
	if got, want := typed(), "mine\ntwo\nthree\n\nfour\ntheirs\n"; got != want {
		t.Errorf("brought together: %q, want %q", got, want)
	}
	other("other\ntwo\nthree\n\nfour\ntheirs\n")
	b.Do(click(".editing .primary"))
	b.Until(`document.querySelector(".editing .note")?.innerText.includes("1 conflict")`)
	if got := typed(); !strings.Contains(got, "<<<<<<<") || !strings.Contains(got, "mine") || !strings.Contains(got, "other") {
		t.Errorf("with a conflict: %q", got)
	}
	b.Do(fill(".editing textarea", "both\ntwo\nthree\n\nfour\ntheirs\n"), click(".editing .primary"))
	b.Until(`document.querySelector(".editing") === null && document.querySelector("#viewer").innerText.includes("both")`)
	_, text, err := s.app.Artifacts.Find(apptest.Context(t), c, "notes.md", "")
	if err != nil || *text != "both\ntwo\nthree\n\nfour\ntheirs\n" {
		t.Errorf("kept: %v, %v", text, err)
	}
	b.Forgive("409")
}

// Forms do it without script, and what is wrong is refused.
func TestChangeByForms(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	c := s.send(t, "look", map[string]string{"a.txt": "one\r\ntwo\r\n"})
	base := "/c/" + string(c) + "/a/a.txt"
	post := func(path string, status int, fields ...string) answer {
		t.Helper()
		values := map[string]string{}
		for i := 0; i+1 < len(fields); i += 2 {
			values[fields[i]] = fields[i+1]
		}
		contentType, body := form(t, values, nil)
		a := s.ask(t, "POST", path, contentType, body)
		if a.StatusCode != status {
			t.Fatalf("%s: status %d, want %d: %.300s", path, a.StatusCode, status, a.body)
		}
		return a
	}
	post(base, http.StatusSeeOther, "base", "1", "text", "one\r\nzwei\r\n")
	if _, text, err := s.app.Artifacts.Find(apptest.Context(t), c, "a.txt", ""); err != nil || *text != "one\r\nzwei\r\n" {
		t.Errorf("saved %q, %v", *text, err)
	}
	if a := post(base, http.StatusConflict, "base", "1", "text", "eins\r\ntwo\r\n"); !strings.Contains(a.body, "eins") || !strings.Contains(a.body, "zwei") {
		t.Error("the page of the conflict does not offer both texts")
	}
	post(base+"/title", http.StatusSeeOther, "title", "A title")
	post(base+"/title", http.StatusUnprocessableEntity, "title", " ")
	post(base+"/restore", http.StatusSeeOther, "version", "1")
	post(base+"/restore", http.StatusNotFound, "version", "99")
	post(base+"/restore", http.StatusUnprocessableEntity, "version", "x")
	post(base+"/delete", http.StatusSeeOther)
	post(base+"/delete", http.StatusNotFound)
	post(base, http.StatusNotFound, "base", "1", "text", "x")
	post(base+"/restore", http.StatusSeeOther)
	post("/c/"+string(c)+"/a/none/delete", http.StatusNotFound)
	for _, q := range []string{"view=diff", "view=diff&split=1", "view=diff&from=1", "view=diff&from=99", "view=diff&from=x", "view=edit", "v=1&view=edit", "v=1&view=diff"} {
		a := s.ask(t, "GET", base+"?"+q, "", nil)
		if want := map[string]int{"view=diff&from=99": 404}[q]; a.StatusCode != max(want, 200) {
			t.Errorf("%s: status %d", q, a.StatusCode)
		}
		checkPage(t, base+"?"+q, a.body, "en")
	}
	if a := s.askFragment(t, "POST", base+"/title", base, url.Values{"title": {"Again"}}); a.StatusCode != 200 || !strings.Contains(a.body, `id="panel"`) {
		t.Errorf("status %d: %.200s", a.StatusCode, a.body)
	}
}
