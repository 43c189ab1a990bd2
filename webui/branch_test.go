// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
)

// naming is a model that makes an artifact named like what it is told, and says
// so when it may.
func naming(may <-chan struct{}) model.Provider {
	return speech(func(ctx context.Context, r *model.Request, say func(model.Delta) bool) {
		last, done := "", false
		for _, m := range r.Messages {
			text, _, _ := strings.Cut(artel.TextOf(m.Parts), "<system-reminder>")
			switch text = strings.TrimSpace(text); {
			case m.Role == artel.RoleTool:
				done = true
			case m.Role == artel.RoleUser && text != "":
				last, done = text, false
			}
		}
		if !done {
			args, _ := json.Marshal(map[string]string{"id": last, "title": "About " + last, "content": "# " + last})
			say(model.CallDelta{ID: artel.CallID(fmt.Sprintf("call_%s_%d", last, len(r.Messages))), Name: "create_artifact", Arguments: args})
			return
		}
		say(model.TextDelta("So much for "))
		select {
		case <-may:
			say(model.TextDelta(last + "."))
		case <-ctx.Done():
		}
	})
}

// A message is edited in its place, with keys alone; branches are switched, and
// the artifacts follow. An answer is asked for again, a message left out.
func TestBranches(t *testing.T) {
	t.Parallel()
	may := make(chan struct{}, 10)
	s, b := openSite(t, setup{model: naming(may)}, 1440, 900)
	may <- struct{}{}
	b.send("alpha")
	b.rest()
	b.Until(`document.readyState === "complete"`) // the page is there before its keys are
	b.Says("#panel", "About alpha")

	// Escape leaves the message as it was.
	b.Do(press("e", chromedp.ModifierAlt), see(".rewriting textarea"))
	b.on(".rewriting textarea")
	b.Do(press("\x1b"))
	b.Until(`!document.querySelector(".rewriting") && document.querySelector(".message.user .said") !== null`)
	b.Do(press("e", chromedp.ModifierAlt), see(".rewriting textarea"))
	b.picture("rewriting")
	newChecker(t, b).check("main", allRules, "rewriting")
	may <- struct{}{}
	b.Do(fill(".rewriting textarea", "beta"), press("\r", chromedp.ModifierCtrl))
	b.Until(`document.querySelector("#messages .message:last-child").innerText.includes("So much for beta.")`)
	b.rest()
	b.Says("#messages", "beta", "2/2")
	b.Says("#panel", "About beta")
	shows := func(what, not string) {
		t.Helper()
		b.Until(fmt.Sprintf(`document.querySelector("#messages").innerText.includes(%q) && !document.querySelector("#messages").innerText.includes(%q)`, "So much for "+what, not))
		b.Until(fmt.Sprintf(`document.querySelector("#panel").innerText.includes("About %s") && !document.querySelector("#panel").innerText.includes("About %s")`, what, not))
	}
	shows("beta", "alpha")
	b.sameAnew()
	b.picture("branches")

	// Somebody switches while the connection is lost, and the page follows.
	b.Forgive(notices...)
	id := s.all(t)[0].ID
	turns, err := s.app.Messages.Turns(apptest.Context(t), id, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, what := range []string{"alpha", "beta"} {
		s.CloseClientConnections()
		if _, err := s.app.Conversations.Switch(apptest.Context(t), id, turns[0].Siblings[i]); err != nil {
			t.Fatal(err)
		}
		shows(what, []string{"beta", "alpha"}[i])
	}
	b.sameAnew()

	// The switcher keeps the focus, so that the keyboard goes on.
	b.Do(click(`.siblings [data-again="previous"]`))
	shows("alpha", "beta")
	b.Until(`document.activeElement.matches(".siblings [data-again=previous]")`)
	b.Do(press("\r"))
	shows("beta", "alpha")
	b.Do(press(",", chromedp.ModifierAlt))
	shows("alpha", "beta")
	newChecker(t, b).check("main", allRules, "branches")
	b.sameAnew()

	// What is open beside the thread goes when the branch has no such artifact.
	b.Do(click(`#artifacts a[href$="/a/alpha"]`), see("#viewer"))
	b.Do(press(".", chromedp.ModifierAlt))
	b.Until(`!document.querySelector("#viewer")`)
	shows("beta", "alpha")

	// Another answer is a branch too.
	may <- struct{}{}
	b.Do(press("r", chromedp.ModifierAlt))
	b.Until(`document.querySelector("#messages").innerText.includes("3/3")`)
	b.rest()

	// What is left out says so, stays, and comes back.
	b.Do(click(`.message.user [name="muted"]`), see(".message.user.muted"))
	b.Says(".message.user", "Hidden from models")
	b.Until(`document.activeElement.matches(".message.user [name=muted]")`)
	b.sameAnew()
	b.Do(click(`.message.user [name="muted"]`))
	b.Until(`!document.querySelector(".muted")`)
	b.sameAnew()
}

// A run that is at work on another branch goes on there unseen, and is whole
// when people come back to it.
func TestSwitchWhileWorking(t *testing.T) {
	t.Parallel()
	may := make(chan struct{}, 10)
	_, b := openSite(t, setup{model: naming(may)}, 1280, 800)
	may <- struct{}{}
	b.send("alpha")
	b.rest()
	b.Until(`document.readyState === "complete"`) // the page is there before its keys are
	b.Do(press("e", chromedp.ModifierAlt), see(".rewriting textarea"))
	b.Do(fill(".rewriting textarea", "beta"))
	b.Do(press("\r", chromedp.ModifierCtrl))
	b.Until(`document.querySelector(".writing")?.innerText.includes("So much for")`)
	b.Do(press(",", chromedp.ModifierAlt))
	b.Until(`document.querySelector("#messages").innerText.includes("So much for alpha.")`)
	b.Says("#status", "Working")
	if got := b.Text("#messages"); strings.Contains(got, "beta") {
		t.Errorf("the other branch shows %q", got)
	}
	b.Do(press(".", chromedp.ModifierAlt))
	b.Until(`document.querySelector(".writing")?.innerText.includes("So much for")`)
	b.Do(press(",", chromedp.ModifierAlt))
	b.Until(`document.querySelector("#messages").innerText.includes("So much for alpha.")`)
	may <- struct{}{}
	b.Until(`!document.querySelector("#status.active")`)
	if got := b.Text("#messages"); strings.Contains(got, "beta") {
		t.Errorf("the other branch shows %q", got)
	}
	b.sameAnew()
	b.Do(press(".", chromedp.ModifierAlt))
	b.Until(`document.querySelector("#messages").innerText.includes("So much for beta.")`)
	b.sameAnew()
}

// A page that comes late to another branch gets all of it at once, and nothing of
// it again below that.
func TestLateToBranch(t *testing.T) {
	t.Parallel()
	may := make(chan struct{}, 10)
	s := newSiteOf(t, setup{model: naming(may)})
	may <- struct{}{}
	id := s.send(t, "alpha", nil)
	turns, err := s.app.Messages.Turns(apptest.Context(t), id, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	left, err := s.app.Events.Last(apptest.Context(t), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"beta", "gamma"} {
		may <- struct{}{}
		run, err := s.app.Runs.Edit(apptest.Context(t), id, turns[0].ID, run.Edit{Text: &text, Queue: true})
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range s.app.Events.Follow(apptest.Context(t), id, left, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == artel.EventRunFinished && e.Run == run.ID {
				break
			}
		}
	}
	last, err := s.app.Events.Last(apptest.Context(t), id)
	if err != nil {
		t.Fatal(err)
	}
	threads, articles := 0, 0
	for _, f := range s.fragments(t, id, left, last) {
		if strings.Contains(f, `<div id="messages"`) {
			threads++
		} else if threads > 0 {
			articles += strings.Count(f, "<article")
		}
	}
	if threads != 1 || articles != 0 {
		t.Errorf("the thread came %d times, and %d messages after it", threads, articles)
	}
}

// Without script, forms do all of it.
func TestBranchesWithoutScript(t *testing.T) {
	t.Parallel()
	may := make(chan struct{}, 10)
	s := newSiteOf(t, setup{model: naming(may)})
	may <- struct{}{}
	id := s.send(t, "alpha", nil)
	page := "/c/" + string(id)
	post := func(path, fields string) {
		t.Helper()
		if a := s.ask(t, "POST", path, "application/x-www-form-urlencoded", strings.NewReader(fields)); a.StatusCode != 303 || a.Header.Get("Location") != page {
			t.Fatalf("%s: status %d, to %q: %s", path, a.StatusCode, a.Header.Get("Location"), a.body)
		}
	}
	turns, err := s.app.Messages.Turns(apptest.Context(t), id, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	first := page + "/m/" + string(turns[0].ID)
	if body := s.ask(t, "GET", first+"/edit", "", nil).body; !strings.Contains(body, "\nalpha</textarea>") || !strings.Contains(body, `id="composer"`) {
		t.Errorf("the page for editing is\n%s", body)
	}
	may <- struct{}{}
	post(first+"/edit", "text=beta")
	for e, err := range s.app.Events.Follow(apptest.Context(t), id, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == artel.EventRunFinished && strings.Contains(s.ask(t, "GET", page, "", nil).body, "So much for beta.") {
			break
		}
	}
	if body := s.ask(t, "GET", page, "", nil).body; strings.Contains(body, "alpha.") || !strings.Contains(body, "2/2") {
		t.Errorf("the new branch is\n%s", body)
	}
	post(page+"/branch", "through="+string(turns[0].ID))
	post(first+"/mute", "muted=true")
	if body := s.ask(t, "GET", page, "", nil).body; !strings.Contains(body, "So much for alpha.") || !strings.Contains(body, "Hidden from models") {
		t.Errorf("the old branch is\n%s", body)
	}
	for path, want := range map[string]int{page + "/m/msg_none/edit": 404, page + "/m/x/edit": 404, page + "/m/" + string(turns[1].ID) + "/edit": 422} {
		if a := s.ask(t, "GET", path, "", nil); a.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, a.StatusCode, want)
		}
	}
	if a := s.ask(t, "POST", page+"/branch", "application/x-www-form-urlencoded", strings.NewReader("through=msg_none")); a.StatusCode != 404 {
		t.Errorf("a branch that is not there: status %d", a.StatusCode)
	}
}

// An answer is edited in its place: the page shows the new text on a branch of
// its own, says who wrote it, and the model goes on from it.
func TestEditAnswer(t *testing.T) {
	t.Parallel()
	sent := make(chan []string, 10)
	s := newSiteOf(t, setup{model: speech(func(_ context.Context, r *model.Request, say func(model.Delta) bool) {
		var answers []string
		for _, m := range r.Messages {
			if m.Role == artel.RoleAssistant {
				answers = append(answers, artel.TextOf(m.Parts))
			}
		}
		sent <- answers
		if len(answers) > 0 {
			say(model.TextDelta("You are welcome."))
			return
		}
		say(model.TextDelta("The capital is Lyon."))
	})})
	b := openTab(t, 1280, 800)
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.send("What is the capital of France?")
	b.rest()
	<-sent
	b.Do(click(`.message.assistant footer a[href$="/edit"]`), see(".rewriting textarea"))
	b.Until(`document.querySelector(".rewriting textarea").value.includes("Lyon")`)
	newChecker(t, b).check("main", allRules, "rewriting an answer")
	b.Do(fill(".rewriting textarea", "The capital is **Paris**."), press("\r", chromedp.ModifierCtrl))
	b.Until(`document.querySelector(".message.assistant strong")?.innerText === "Paris"`)
	b.Says("#messages", "Edited by hand", "2/2")
	if got := b.Text("#messages"); strings.Contains(got, "Lyon") || strings.Count(got, "capital of France") != 1 {
		t.Errorf("the thread shows %q", got)
	}
	b.sameAnew()
	b.send("Thanks.")
	b.rest()
	if got := <-sent; len(got) != 1 || got[0] != "The capital is **Paris**." {
		t.Errorf("the model was sent %q", got)
	}
	b.Do(press(",", chromedp.ModifierAlt))
	b.Until(`document.querySelector("#messages").innerText.includes("Lyon")`)
	b.sameAnew()
}
