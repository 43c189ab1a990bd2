// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
)

// echoing is a model that repeats what it was told last, each time when it may.
func echoing() (may chan<- struct{}, answers model.Provider) {
	gate := make(chan struct{})
	return gate, speech(func(ctx context.Context, r *model.Request, say func(model.Delta) bool) {
		last := ""
		for _, m := range r.Messages {
			text, _, _ := strings.Cut(artel.TextOf(m.Parts), "<system-reminder>") // that says what artifacts there are
			if text = strings.TrimSpace(text); m.Role == artel.RoleUser && text != "" {
				last = text
			}
		}
		say(model.TextDelta("Working. "))
		select {
		case <-gate:
			say(model.TextDelta("I was told: " + last))
		case <-ctx.Done():
		}
	})
}

// While a run is at work, what is sent waits its turn or is told at once. What
// waits is shown, taken back, and brought back into the composer.
func TestWaitingMessages(t *testing.T) {
	t.Parallel()
	may, answers := echoing()
	_, b := openSite(t, setup{model: answers}, 1280, 800)
	b.send("first")
	b.Do(see("#status .queue"))

	b.Do(write("second"), press("\r"))
	b.Until(`document.querySelectorAll("#waiting .queued").length === 1`)
	b.Do(write("third"), choose(sample(t, "notes.md")))
	b.Until(`document.querySelector("#chosen .file") !== null`)
	b.Do(click("#status .queue"))
	b.Until(`document.querySelectorAll("#waiting .queued").length === 2`)
	b.Do(write("a wish"), press("\r", chromedp.ModifierCtrl))
	b.Until(`document.querySelectorAll("#waiting .queued").length === 3`)
	b.picture("waiting")
	b.Says("#waiting", "Sent before the next step", "a wish", "Queued", "second", "third", "notes.md", "Remove")
	newChecker(t, b).check("main", allRules, "waiting")
	resize(b, 360, 800)
	b.picture("waiting-narrow")
	if rows := eval[int](b, `new Set([...document.querySelectorAll("#composer > .row button")].filter((x) => x.checkVisibility()).map((x) => Math.round((x.getBoundingClientRect().top + x.getBoundingClientRect().bottom) / 4))).size`); rows != 1 {
		t.Errorf("on a narrow screen the buttons of the composer stand in %d rows", rows)
	}
	resize(b, 1280, 800)
	b.Do(chromedp.Reload(), see("#waiting .queued"))
	b.Says("#waiting", "a wish", "second", "third", "notes.md")

	// A file cannot be told; the text stays.
	b.Do(write("with a file"), choose(sample(t, "notes.md")), click("#status .tell"))
	b.Until(`!document.getElementById("composer-error").hidden`)
	b.Says("#composer-error", "Files cannot be sent to a running agent")
	b.Forgive("422")
	b.Do(click("#chosen button"), write(""))

	// Taken back, the second one is gone; edited, the third one is in the composer, with its file.
	b.Do(click(`#waiting .queued:nth-child(2) button[value="cancel"]`))
	b.Until(`!document.querySelector("#waiting").innerText.includes("second")`)
	b.Do(write("begun"), click(`#waiting .queued button[value="edit"]`))
	b.Until(`document.querySelectorAll("#waiting .queued").length === 1`)
	b.Until(`document.getElementById("text").value === "begun\n\nthird"`)
	b.Says("#returned", "notes.md")
	b.Do(click("#status .queue"))
	b.Until(`document.querySelectorAll("#waiting .queued").length === 2`)
	b.Says("#waiting", "begun", "third", "notes.md")

	may <- struct{}{}
	b.Until(`document.querySelector("#messages .injected") !== null`)
	b.Says("#messages", "I was told: first", "a wish", "sent during the run")
	may <- struct{}{}
	b.Until(`document.querySelectorAll("#waiting .queued").length === 0 && document.querySelector("#messages").innerText.includes("third")`)
	b.Says("#messages", "I was told: a wish", "begun")
	may <- struct{}{}
	b.rest()
	b.Says("#messages .message:last-child", "third")
	b.sameAnew()
	if n := eval[int](b, `document.querySelectorAll("#messages .message").length`); n != 6 {
		t.Errorf("the thread has %d messages, want three of each", n)
	}
}

// Why a run ended early stands behind what it was told and did not answer.
func TestStopAfterTelling(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, setup{
		demo: script(t, "-- message 1 --\n-- turn 1 --\nI look.\n@call list_artifacts {}\n-- message 2 --\n-- turn 1 --\n@hang\n"),
		ask:  agent.Permissions{"list_artifacts": agent.Ask},
	})
	b := openTab(t, 1280, 800)
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.send("go")
	b.Do(see(".question.open"), write("and then the tide"), click("#status .tell"))
	b.Until(`document.querySelectorAll("#waiting .queued").length === 1`)
	b.Do(click(`.question.open button[value="allow"]`))
	b.Until(`document.querySelectorAll("#messages .message.user").length === 2`)
	b.Do(click("#status .stop"), see("#messages .note.bad"))
	b.rest()
	if !eval[bool](b, `document.querySelector("#messages > .message:last-child").matches(".note.bad")`) {
		t.Error("more stands behind the end of the run")
	}
	b.sameAnew()
}

// Without script, a message that waits comes back as a page with it in the
// composer.
func TestWaitingWithoutScript(t *testing.T) {
	t.Parallel()
	_, answers := echoing()
	s := newSiteOf(t, setup{model: answers})
	post := func(path string, fields map[string]string) answer {
		contentType, body := form(t, fields, nil)
		return s.ask(t, "POST", path, contentType, body)
	}
	page := post("/c", map[string]string{"text": "go"}).Header.Get("Location")
	id := s.all(t)[0].ID
	for _, how := range []string{"queue", "tell"} {
		if a := post(page, map[string]string{"text": "more by " + how, "how": how}); a.StatusCode != 303 {
			t.Fatalf("%s: status %d: %s", how, a.StatusCode, a.body)
		}
	}
	w, err := s.app.Runs.Waiting(apptest.Context(t), id)
	if err != nil || len(w.Queued) != 1 || len(w.Injections) != 1 || w.Injections[0].Text != "more by tell" {
		t.Fatalf("what waits is %+v, %v", w, err)
	}
	fields := "do=edit&run=" + string(w.Queued[0].Run)
	a := s.ask(t, "POST", page+"/waiting", "application/x-www-form-urlencoded", strings.NewReader(fields))
	if a.StatusCode != 200 || !strings.Contains(a.body, ">more by queue</textarea>") || strings.Contains(a.body, `id="l-`) {
		t.Errorf("status %d: %s", a.StatusCode, a.body)
	}
	if a = s.ask(t, "POST", page+"/waiting", "application/x-www-form-urlencoded", strings.NewReader(fields)); a.StatusCode != 303 {
		t.Errorf("taken back twice: status %d", a.StatusCode)
	}
	if a = s.ask(t, "POST", page+"/waiting", "application/x-www-form-urlencoded", strings.NewReader("run=x")); a.StatusCode != 404 {
		t.Errorf("no run: status %d", a.StatusCode)
	}
}
