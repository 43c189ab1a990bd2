// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// services are two models: one that reads text alone, and one that sees.
func services(t *testing.T) []model.Service {
	t.Helper()
	found, findings := model.ParseServices([]any{
		map[string]any{"id": "reader", "name": "Reader", "model": "reader-1", "baseURL": "http://127.0.0.1:9/v1", "capabilities": map[string]any{"input": []any{"text"}}, "context_window": 32000.0},
		map[string]any{"id": "seer", "name": "Seer", "model": "seer-1", "baseURL": "http://127.0.0.1:9/v1", "capabilities": map[string]any{"input": []any{"text", "vision"}}},
	}, "test.json", func(string) string { return "" })
	for _, f := range findings {
		for _, w := range f.Warnings() {
			t.Fatal(w)
		}
	}
	if len(found) != 2 {
		t.Fatalf("there are %d services", len(found))
	}
	return found
}

// The picker works by mouse and by keyboard; before anything is sent the page
// says what the model cannot take, what it gets instead, and who could; the
// choice stays.
func TestModels(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, setup{services: services(t), model: speech(func(_ context.Context, r *model.Request, say func(model.Delta) bool) {
		say(model.TextDelta("I am " + string(r.Service.ID) + "."))
	})})
	b := openTab(t, 1280, 800)
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.Says("#model", "Reader")
	if got := b.Text("main"); strings.Contains(got, "Try it with sample files") {
		t.Error("the page offers the demo although there are models")
	}
	b.Do(click("#model"), see("#picker"))
	b.Says("#picker", "Reader", "Seer", "Demo", "32k", "Pictures", "test.json")
	b.picture("picker")
	b.Do(click(`#picker label:has([value="seer"])`))
	b.Until(`document.getElementById("model").innerText.includes("Seer")`)
	b.Do(press(kb.Escape))
	b.Until(`!document.querySelector("#picker:popover-open")`)

	// The same by keyboard.
	b.Do(press("p", chromedp.ModifierAlt), see("#picker"))
	b.Until(`document.activeElement.name === "service" && document.activeElement.checked`)
	b.Do(press(kb.ArrowUp))
	b.Until(`document.getElementById("model").innerText.includes("Reader")`)
	b.Do(press(kb.Escape))
	b.Until(`!document.querySelector("#picker:popover-open") && document.activeElement.matches("#model, #text")`)

	b.Do(choose(sample(t, "photo.jpg"), sample(t, "notes.md")), see("#fit .note.warn"))
	b.Says("#fit", "Reader cannot read 1 file", "photo.jpg", "Seer")
	if got := b.Text("#fit"); strings.Contains(got, "notes.md") {
		t.Errorf("a text is said not to be taken: %q", got)
	}
	b.Do(click("#fit summary"), see("#fit pre"))
	b.Says("#fit pre", "photo.jpg", "JPEG image")
	b.picture("misfit")
	b.Do(click(`#fit [data-choose="seer"]`))
	b.Until(`document.getElementById("model").innerText.includes("Seer") && !document.querySelector("#fit .note")`)
	b.Do(click("#model"), see("#picker"), click(`#picker label:has([value="reader"])`))
	b.Until(`document.querySelector("#fit .note.warn") !== null`)
	b.Do(press(kb.Escape))
	b.Do(choose(sample(t, "brief.pdf")))
	b.Until(`document.querySelector("#fit .forms") !== null`)
	b.Says("#fit .forms", "brief.pdf", "its text")
	b.picture("forms")
	b.Do(click(`#chosen button[aria-label="Remove brief.pdf"]`))
	b.Until(`document.querySelector("#fit .forms") === null`)
	b.Do(click(`#chosen button[aria-label="Remove photo.jpg"]`))
	b.Until(`!document.querySelector("#fit .note")`)

	b.Do(click("#model"), see("#picker"), click(`#picker label:has([value="seer"])`), press(kb.Escape))
	b.Do(chromedp.Reload(), see("#composer"))
	b.Until(`document.getElementById("model").innerText.includes("Seer")`)
	b.send("Who are you?")
	b.rest()
	b.Says("#messages > :last-child", "I am seer.")
	b.Says("#model", "Seer")
	// Another browser goes on with the model that answered.
	b.Script(`localStorage.clear()`)
	b.Do(chromedp.Reload(), see("#composer"))
	b.Says("#model", "Seer")
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.Says("#model", "Reader")

	// Who is to answer may be left open: words go to the first, a picture to who sees.
	b.Do(click("#model"), see("#picker"))
	b.picture("automatic")
	b.Do(click(`#picker label:has([value="auto"])`), press(kb.Escape))
	b.Until(`document.getElementById("model").innerText.includes("Automatic")`)
	b.send("Who are you?")
	b.rest()
	b.Says("#messages > :last-child", "I am reader.")
	b.Do(choose(sample(t, "photo.jpg")))
	b.Until(`document.querySelector('#chosen button[aria-label="Remove photo.jpg"]') !== null`)
	b.send("What is that?")
	b.rest()
	b.Says("#messages > :last-child", "I am seer.")
	b.Do(chromedp.Reload(), see("#composer"))
	b.Says("#model", "Automatic")

	b.Do(chromedp.Navigate(s.URL+"/settings"), see("#models"))
	b.Says("#models", "Reader", "Seer", "reader-1", "http://127.0.0.1:9/v1", "32k", "Text: yes", "Pictures: no", "Pictures: yes", "test.json")
}

// A service that cannot be called is told on the start page and in the picker.
func TestBrokenService(t *testing.T) {
	t.Parallel()
	broken := services(t)[0]
	broken.Problem = "there is no key"
	broken.BaseURL = ""
	_, b := openSite(t, setup{services: []model.Service{broken}}, 1280, 800)
	b.Says("main", "Reader", "there is no key")
	b.Do(click("#model"), see("#picker"))
	b.Says("#picker", "Reader", "there is no key")
}

// The services are read again from the settings. What cannot be read is said,
// and nothing changes.
func TestReload(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	s := newSiteOf(t, setup{services: []model.Service{sharp}, reload: func(r *model.Registry) error {
		if broken.Load() {
			return artel.Errorf(artel.Invalid, "test", "artel.yaml", "line 3: want a list")
		}
		r.Replace([]model.Service{services(t)[0], sharp}, nil, "")
		return nil
	}})
	b := openTab(t, 1280, 900)
	b.Do(chromedp.Navigate(s.URL+"/settings"), see("#s-sharp"), click("#found button"), see("#s-reader"))
	broken.Store(true)
	if a := s.ask(t, "POST", "/models/reload", "", nil); a.StatusCode != 422 || !strings.Contains(a.body, "Line 3: want a list.") {
		t.Errorf("status %d: %s", a.StatusCode, a.body)
	}
	b.Do(chromedp.Navigate(s.URL+"/settings"), see("#s-reader"))
}

// A model is tried out from the settings: what came of each place is said at
// once, the facts change, and what was seen is still there later. One that says
// nothing leaves no mark.
func TestTryOut(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, setup{services: []model.Service{sharp}, sees: true})
	silent := newSiteOf(t, setup{services: []model.Service{sharp}, model: speech(func(context.Context, *model.Request, func(model.Delta) bool) {})})
	b := openTab(t, 1280, 900)
	b.Prefer("light", true)
	b.Do(chromedp.Navigate(s.URL+"/settings"), see("#s-sharp"))
	b.Says("#s-sharp", "Text, Pictures, Files", "you configured it", "Unknown", "Sends up to six small calls")
	b.Do(click("#s-sharp form button"), see("#s-sharp .probed"))
	b.Says("#s-sharp", "Tested with", "PNG image in a message: read", "PDF document in a message: read", "PNG image in a tool result: read", "The letters are", "tested")
	if !eval[bool](b, `document.activeElement.closest("#s-sharp") !== null`) {
		t.Error("the focus is lost")
	}
	newChecker(t, b).check("#s-sharp", allRules, "tested")
	b.Do(chromedp.Reload(), see("#s-sharp details"), click("#s-sharp summary"))
	b.Says("#s-sharp details", "Tested and learned", "Pictures in a message: accepted", "until 2")
	b.picture("tried-out")
	newChecker(t, b).check("#s-sharp", allRules, "marks")

	// One can be forgotten, and all.
	b.Do(click(`#s-sharp [aria-label^="Forget: PDF"]`)) // one of two
	b.Until(`document.querySelectorAll('#s-sharp [aria-label^="Forget: PDF"]').length === 1`)
	b.Do(click("#s-sharp summary"))
	b.Says("#s-sharp details", "Pictures in a message: accepted")
	b.Do(click("#s-sharp details > form button"))
	b.Until(`document.querySelector("#s-sharp details") === null`)
	for path, status := range map[string]int{"/models/nobody/forget": 404, "/models/sharp/forget?mark=none": 404} {
		if a := s.ask(t, "POST", path, "", nil); a.StatusCode != status {
			t.Errorf("%s: status %d: %s", path, a.StatusCode, a.body)
		}
	}

	b.Do(chromedp.Navigate(silent.URL+"/settings"), click("#s-sharp form button"), see("#s-sharp .probed"))
	b.Says("#s-sharp .probed", "no clear answer", "not tested")
	b.Do(chromedp.Reload(), see("#s-sharp"))
	if got := b.Text("#s-sharp"); strings.Contains(got, "Tested and learned") {
		t.Errorf("a mark came of nothing: %s", got)
	}

	// Without script; and where there is nothing to try out.
	if a := s.ask(t, "POST", "/models/sharp/probe", "", nil); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/settings#models" {
		t.Errorf("status %d to %q", a.StatusCode, a.Header.Get("Location"))
	}
	for id, says := range map[string]string{"demo": "scripted", "nobody": "no such service"} {
		if a := s.ask(t, "POST", "/models/"+id+"/probe", "", nil, "HX-Request", "true"); a.StatusCode != 422 || !strings.Contains(a.body, says) {
			t.Errorf("%s: status %d: %s", id, a.StatusCode, a.body)
		}
	}
}
