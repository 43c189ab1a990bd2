// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/webui/webuitest"
)

// A newcomer without a key sends the samples, watches the plan fill, reads the
// report and its versions, and finds how to connect a real model.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	s := newSiteOf(t, setup{demo: demo.Options{Delay: 15 * time.Millisecond}, wait: func(ctx context.Context) {
		select {
		case asked <- struct{}{}:
			select {
			case <-answer:
			case <-ctx.Done():
			}
		case <-answer: // closed: nothing waits any more
		case <-ctx.Done():
		}
	}})
	b := openTab(t, 1440, 900)
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.picture("home")
	b.Says("main", "Try it with sample files", "scripted", "Connect a model", "OpenAI", "Ollama")
	// What the plan shows while the run goes on is noted from the first moment.
	b.Do(onEveryPage(`window.steps = []; new MutationObserver(() => {
		const bar = document.querySelector(".plan progress");
		if (bar && document.querySelector("#status.active") && window.steps.at(-1) !== bar.value) window.steps.push(bar.value);
	}).observe(document, { subtree: true, childList: true, attributes: true });`))
	b.Do(click(`form[action="/try"] button`), see("#messages .message.user"))
	c := artel.ConversationID(strings.TrimPrefix(eval[string](b, "location.pathname"), "/c/"))
	for rests := false; !rests; {
		select {
		case <-asked: // the model says more when the page shows what there is
			if _, text, err := s.app.Artifacts.Find(apptest.Context(t), c, artel.TaskPlan, ""); err == nil {
				done, _ := artel.PlanProgress(*text)
				b.Until(fmt.Sprintf(`document.querySelector(".plan progress")?.value === %d`, done))
			}
			answer <- struct{}{}
		case <-time.After(50 * time.Millisecond):
			rests = eval[bool](b, atRest)
		}
	}
	close(answer)
	b.picture("conversation")
	steps := eval[[]float64](b, `window.steps`)
	if len(steps) < 3 || steps[0] != 0 || steps[1] <= 0 || steps[2] <= steps[1] {
		t.Errorf("while the run went on the plan showed the steps %v", steps)
	}
	if !eval[bool](b, `document.querySelector(".plan progress").value === document.querySelector(".plan progress").max`) {
		t.Error("the plan is not finished")
	}
	b.Says("#messages", "workbench.png", "brief.pdf", "notes.md", "Demo model", "Create\ntask_plan", "Read\nnotes.md")
	b.Says("#panel", "Task plan", "Report", "workbench.png")

	b.send("And now once more.")
	b.rest()
	b.Do(click(`#messages .message:last-child a[href$="/a/report"]`), see("#viewer .block"))
	b.picture("report")
	b.Says("#panel", "Report", "v2 · newest")
	b.Says("#viewer", "And now once more.", "Message 1", "Message 2")
	b.Do(click("#versions summary"), see("#versions ol"))
	b.Says("#versions ol", "v2 · newest", "v1", "created", "edited")
	b.Do(click(`#versions a[href$="?v=1"]`))
	b.Until(`document.querySelector(".meta .badge.warn")?.innerText.includes("1") && !document.querySelector("#viewer").innerText.includes("And now once more.")`)
	b.picture("version")
	b.Script("history.back()")
	b.Until(`document.querySelector("#viewer")?.innerText.includes("And now once more.")`)
	b.Script("history.back()")
	b.Until(`!document.querySelector("#viewer") && document.querySelector("#artifacts") !== null`)

	b.Do(click(`.sidebar a[href="/settings"]`), see("#connect .door"))
	b.picture("settings")
	b.Do(see(`#connect a[href="/services"]`)) // first: no restart is needed
	b.Says("#connect", "OPENAI_API_KEY", "artel serve")
	b.Says("#models", "Demo", "scripted")
}

// Own files are chosen, are in the message as cards, and lead to their views.
func TestOwnFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	b := openTab(t, 1440, 900)
	b.Do(chromedp.Navigate(s.URL), see("#composer"), choose(sample(t, "photo.jpg"), sample(t, "notes.md")))
	b.Until(`document.querySelector("#chosen .thumb")?.naturalWidth > 0`)
	b.send("What is in these files?")
	b.rest()
	b.Says(".message.user", "What is in these files?", "photo.jpg", "notes.md")
	b.Do(click(`.message.user a.file[href*="/a/photo.jpg"]`), see("#viewer img"))
	b.Until(`document.querySelector("#viewer img").naturalWidth > 0`)
	b.sameAnew()
}

// Enter sends, Shift+Enter makes a line, and an input method's Enter is its own.
func TestEnter(t *testing.T) {
	t.Parallel()
	_, b := openSite(t, setup{demo: demo.Options{}}, 1280, 800)
	b.Do(press("first"), press("\r", chromedp.ModifierShift), press("second"))
	b.Script(`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", isComposing: true, bubbles: true }))`)
	if draft := get(b, chromedp.Value(chromedp.CSS("#text"))); draft != "first\nsecond" {
		t.Errorf("the draft is %q: the field has no focus, or Shift+Enter made no line", draft)
	}
	b.Do(press("\r"), see("#messages .message.user"))
	b.rest()
}

// The Stop button ends a run that waits; the page says so and what to do, also
// when it is loaded anew.
func TestStop(t *testing.T) {
	t.Parallel()
	_, b := openSite(t, setup{demo: script(t, "-- turn 1 --\nThis takes a while.\n@hang\n")}, 1280, 800)
	b.send("go")
	b.Until(`document.querySelector("#messages").innerText.includes("takes a while")`)
	b.Do(click("#status .stop"))
	b.rest()
	b.Says("#messages", "takes a while", "it was stopped", "Send a message to continue", "cut off here")
	b.Do(chromedp.Reload(), see("#messages .message"))
	b.Says("#messages", "takes a while", "it was stopped", "Send a message to continue", "cut off here")
}

// A model that fails is told with what to do about it.
func TestFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ scenario, says string }{
		"key":     {"-- turn 1 --\n@error 401 this key is not known\n", "Check the key"},
		"request": {"-- turn 1 --\n@error 400 no such field\n", "refused the request. Remove the file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, script(t, c.scenario))
			b := openTab(t, 1000, 700)
			b.Do(chromedp.Navigate(s.URL), see("#composer"))
			b.send("go")
			b.rest()
			b.Says("#messages [role=alert]", "The run ended early", c.says)
			b.picture("failure-" + name)
			b.Do(chromedp.Reload(), see("#messages .message"))
			b.Says("#messages [role=alert]", "The run ended early", c.says)
		})
	}
}

// A refusal keeps what was written and says why, and leaves nothing behind.
func TestRefusal(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	b := openTab(t, 1280, 800)
	b.Forgive("status of 422", "ERR_CONNECTION_REFUSED")
	b.Do(chromedp.Navigate(s.URL), see("#composer"), click(".send"))
	b.Until(`!document.querySelector("#composer-error").hidden`)
	b.Says("#composer-error", "attach a file")
	if n := len(s.all(t)); n > 0 {
		t.Errorf("a refused first message left %d conversations", n)
	}
	b.Do(write("kept"))
	s.CloseClientConnections()
	_ = s.Listener.Close()
	b.Do(click(".send"))
	b.Until(`document.querySelector("#composer-error").innerText.includes("cannot be reached")`)
	if draft := get(b, chromedp.Value(chromedp.CSS("#text"))); draft != "kept" {
		t.Errorf("the draft is %q after the server was lost", draft)
	}
}

// A draft survives leaving the page and is its conversation's own; what was
// sent is no draft any more.
func TestDraft(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	at := time.Now().Add(-time.Hour)
	one, two := s.URL+"/c/"+string(s.seed(t, "One", at, "a", "b")), s.URL+"/c/"+string(s.seed(t, "Two", at, "c", "d"))
	b := openTab(t, 1280, 800)
	drafts := map[string]string{s.URL: "for a new one", one: "for one\nin two lines", two: "for two"}
	for url, text := range drafts {
		b.Do(chromedp.Navigate(url), see("#text"), write(text))
	}
	check := func() {
		t.Helper()
		for url, want := range drafts {
			b.Do(chromedp.Navigate(url), see("#text"))
			if got := get(b, chromedp.Value(chromedp.CSS("#text"))); got != want {
				t.Errorf("%s: the draft is %q, want %q", url, got, want)
			}
		}
	}
	check()
	b.Do(chromedp.Navigate(one), see("#text"), chromedp.Focus(chromedp.CSS("#text")), press("\r"))
	b.Until(`document.querySelectorAll(".message.user").length === 2`)
	b.rest()
	b.Do(chromedp.Navigate(s.URL), see("#text"), chromedp.Focus(chromedp.CSS("#text")), press("\r"), see("#messages"))
	b.rest()
	drafts[one], drafts[s.URL] = "", ""
	check()
}

// Forms and links work where no script runs.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	s.seed(t, "Another one", time.Now().Add(-time.Hour), "needle", "in the haystack")
	b := openTab(t, 1440, 800, webuitest.Command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	b.Do(chromedp.Navigate(s.URL), see("#composer"), write("hello without script"), choose(sample(t, "notes.md")))
	b.Do(click(".send"), see("#messages .message.user"))
	list := s.all(t)
	if len(list) != 2 {
		t.Fatalf("there are %d conversations", len(list))
	}
	waitFinal(t, s, list[0].ID)
	b.Do(chromedp.Reload(), see("#messages .message.assistant"))
	b.Says("#messages", "hello without script", "notes.md", "Demo model")

	b.Do(write("a second time"), click(".send"))
	b.Until(`document.querySelectorAll(".message.user").length === 2`)
	b.Wait("the second run", func() bool { _, err := s.app.Runs.Active(apptest.Context(t), list[0].ID); return err != nil })

	b.Do(click(`#artifacts a[href$="/a/report"]`), see("#viewer .block"))
	b.Do(click("#versions summary"), click(`#versions a[href$="?v=1"]`), see(".meta .badge.warn"))
	b.Do(click(`.tabs a[href$="view=code"]`), see("#viewer pre"))
	b.Says("#viewer", "# Report")
	b.Do(click("[data-close-panel]"), see("#messages .message.user"))
	b.Until(`!location.pathname.includes("/a")`)

	b.Do(fill("#search", "haystack"), press("\r"), see(".excerpt"))
	b.Says("#conversations", "Another one", "haystack")
	if got := b.Text("#conversations"); strings.Contains(got, "hello") {
		t.Errorf("the search shows what it has not found: %q", got)
	}
	b.Do(click(`.conversation a[href$="/title"]`), see(`main input[name="title"]`), fill(`main input[name="title"]`, "Renamed"), click("main form button"))
	b.Do(see("#messages"))
	b.Says("#heading", "Renamed")
	b.Do(click(`.conversation:has([aria-current]) form[action$="/delete"] button`), see(".toast"))
	b.Says(".toast", "deleted")
	if got := b.Text("#conversations"); strings.Contains(got, "Renamed") {
		t.Errorf("the deleted conversation is still in the list: %q", got)
	}
	b.Do(click(".toast form button"), see("#messages"))
	b.Says("#heading", "Renamed")

	b.Do(click(`.sidebar a[href="/settings"]`), see(".settings"), click(`input[name="language"][value="zh"]`), click(".settings form button"))
	b.Until(`document.documentElement.lang === "zh" && document.readyState === "complete"`)
	b.Says("main", "设置")
	if n := len(s.all(t)); n != 2 {
		t.Errorf("there are %d conversations at the end", n)
	}
}
