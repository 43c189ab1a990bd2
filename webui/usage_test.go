// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/store"
)

// Answers and the conversation tell what they took, the plan how far it is; a
// conversation is summed up with a button, and the summary muted again.
func TestCounters(t *testing.T) {
	t.Parallel()
	_, b := openSite(t, setup{demo: demo.Options{}}, 1440, 900)
	b.send("Look around.")
	b.rest()
	b.Until(`document.readyState === "complete"`)
	b.Until(`document.querySelector("#progress").innerText.includes("2/2")`)
	b.Until(`document.querySelector(".message:last-child footer").innerText.includes("$0")`)
	b.Says(".message:last-child footer", "Demo", "tokens")
	b.Says("#total > summary", "tokens", "$0")
	b.sameAnew()

	b.Do(click("#total > summary"), see("#total form"))
	b.picture("total")
	b.Says("#total", "Model calls", "Tokens sent", "Summarize now")
	newChecker(t, b).check("main", allRules, "counters")
	b.Do(click("#total form button"))
	b.Until(`document.querySelector(".boundary") !== null && !document.querySelector("#status.active")`)
	b.Do(press("\x1b"))
	b.sameAnew()
	b.Says(".boundary", "Summary of 10 messages", " → ", "tokens", "Undo")
	b.picture("boundary")
	b.Do(click(".boundary > details > summary"), see(".boundary .body"))
	b.Do(click(".boundary [href$='/covered']"), see(".covered li:nth-child(10)"))
	b.Says(".covered", "Look around.", "You · ", "The messages it stands for")
	newChecker(t, b).check("main", allRules, "summary")
	b.picture("covered")
	b.Do(click(".boundary footer a"), see("#viewer"))
	b.Until(`document.getElementById("viewer").innerText.includes("Summary 1")`)
	b.Do(click("#panel [data-close-panel]"))
	b.Until(`!document.getElementById("viewer")`)
	b.Do(chromedp.Focus(chromedp.CSS(".boundary footer button")), press("\r"), see(".boundary.muted")) // with the keyboard
	b.Says(".boundary", "Models receive the messages above again", "Redo")
	b.Until(`document.getElementById("toast-summary")?.innerText.includes("Models receive 10 messages again, not the summary. The next request has about ")`)
	b.Until(`document.activeElement.innerText.includes("Redo")`)
	newChecker(t, b).check("main", allRules, "undone")
	b.sameAnew()
	b.Do(chromedp.Focus(chromedp.CSS(".boundary footer button")), press("\r"), see(".boundary:not(.muted)"))
	b.Says(".boundary", "Undo")
	b.sameAnew()
	b.Do(click(`.boundary footer a[href*="/context"]`), see("#main"))
	b.Until(`document.getElementById("main").innerText.includes("is getting too long")`) // what the model was asked for the summary
}

// Of two summaries, the newer can be undone, and then the older; what is to be kept in
// detail is told by the card.
func TestSummaryCards(t *testing.T) {
	t.Parallel()
	s, b := openSite(t, setup{demo: demo.Options{}}, 1440, 900)
	sum := func(focus string) {
		b.Do(click("#total > summary"), see("#total form"), fill("#total [name=focus]", focus), click("#total form button"))
		b.Until(`document.querySelector("#status.active") !== null || document.querySelector(".boundary:last-child") !== null`)
		b.Until(`document.querySelector(".message.boundary:last-child") !== null && !document.querySelector("#status.active")`)
		b.Do(press("\x1b"))
	}
	b.send("Look around.")
	b.rest()
	sum("the <b>numbers</b>")
	b.Do(click(".boundary > details > summary"))
	b.Says(".boundary", "Kept in detail: the <b>numbers</b>")
	b.send("Once more.")
	b.rest()
	sum("")
	const states = `[...document.querySelectorAll(".boundary")].map((one) => one.innerText.includes("A newer summary") ? "newer" : one.querySelector("[data-again]").innerText.trim()).join(" ")`
	b.Until(states + ` === "newer Undo"`)
	b.sameAnew()
	b.Do(click(".boundary:last-child [data-again]"))
	b.Until(states + ` === "Undo Redo"`)
	b.sameAnew()
	b.Do(click(".boundary [data-again]"))
	b.Until(states + ` === "Redo Redo"`)
	b.Do(click(".boundary:last-child [data-again]"))
	b.Until(states + ` === "newer Undo"`)
	b.sameAnew()
	list, err := s.app.Summaries.List(apptest.Context(t), s.all(t)[0].ID)
	if err != nil || len(list) != 2 || list[0].Focus != "the <b>numbers</b>" || list[0].State != "undone" || list[1].State != "active" {
		t.Errorf("%+v, %v", list, err)
	}
}

// A run that reaches a limit of its agent says which, in the reader's words.
func TestLimitsAreTold(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	id := s.send(t, "hello", nil)
	turns, err := s.app.Messages.Turns(apptest.Context(t), id, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[string]string{artel.CodeLimitTurns: "limit of model calls", artel.CodeLimitCost: "cost limit", artel.CodeLimitTime: "time limit", artel.CodeLimitCostUnknown: "price of this model is not known"} {
		hint := "Send a message to continue"
		if code == artel.CodeLimitCostUnknown {
			hint = "sets the price on the page Services"
		}
		err := s.store.Update(apptest.Context(t), artel.Local, func(tx store.Tx) error {
			r, err := tx.Runs.Get(turns[0].Run)
			if err != nil {
				return err
			}
			r.State, r.Error = artel.RunFailed, &artel.RunError{Kind: artel.TooLarge, Code: code, Message: "in English"}
			return tx.Runs.Update(r)
		})
		if err != nil {
			t.Fatal(err)
		}
		if body := s.ask(t, "GET", "/c/"+string(id), "", nil).body; !strings.Contains(body, want) || !strings.Contains(body, hint) || strings.Contains(body, "in English") {
			t.Errorf("%s is told as\n%s", code, body)
		}
	}
}

// The scenario for newcomers shows a question, a message that waits, and one
// that is told at once.
func TestSteeringScenario(t *testing.T) {
	t.Parallel()
	s := steered(t)
	b := openTab(t, 1280, 800)
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.steer()
	b.Do(click(`.question.open button[value="allow"]`))
	b.steered()
	b.Says("#messages", "Allowed", "sent during the run", "I have heard you")
	b.sameAnew()
}

// steered is a site that plays the scenario which shows how runs are steered.
func steered(t *testing.T) *site {
	t.Helper()
	text, err := os.ReadFile("../testdata/steering/steering.txtar")
	if err != nil {
		t.Fatal(err)
	}
	return newSiteOf(t, setup{demo: script(t, string(text)), ask: agent.Permissions{"create_artifact": agent.Ask}})
}

// steer comes to a question, with a message that waits and one that is to be
// told.
func (b *tab) steer() {
	b.T.Helper()
	b.send("Please keep notes on the harbour.")
	b.Do(see(".question.open"))
	b.Until(`document.readyState === "complete"`)
	b.Do(write("Then tell me when the next ship comes in."), press("\r"))
	b.Until(`document.querySelectorAll("#waiting .queued").length === 1`)
	b.Do(write("Pier 4 is closed, too."), press("\r", chromedp.ModifierCtrl))
	b.Until(`document.querySelectorAll("#waiting .queued").length === 2`)
}

// steered waits until both messages have their answers. Between the end of a run
// and the start of the next one, the page shows no run and no message that waits.
func (b *tab) steered() {
	b.T.Helper()
	b.Until(`document.querySelector("#messages").innerText.includes("this was your next message")`)
	b.rest()
}

// Where the model is chosen for each message, by default, the answer says which
// and how; live and loaded anew alike. The composer and the settings say that
// one is chosen.
func TestServiceIsChosen(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, setup{services: []model.Service{sharp, textOnly}, standard: model.AutoService, model: responder(func(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			_ = yield(model.TextDelta("Here I am."), nil) && yield(model.Finish{Reason: model.StopEnd}, nil)
		}
	})})
	b := openTab(t, 1280, 800)
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.Until(`document.readyState === "complete"`)
	b.Says("#model", "Automatic")
	for n := 1; n <= 2; n++ { // it stays so for the next message
		b.send("hello")
		b.rest()
		b.Until(fmt.Sprintf(`document.querySelectorAll("#messages .change").length === %d`, n))
	}
	b.Says("#messages", "Automatic: Sharp, the first of 2 suitable models", "Here I am.")
	if at := eval[string](b, `document.querySelector("#messages .change").nextElementSibling.innerText`); !strings.Contains(at, "Here I am.") {
		t.Errorf("it does not stand at the answer, but before %q", at)
	}
	b.picture("service-chosen")
	b.sameAnew()
	b.Says("#model", "Automatic")
	b.Do(chromedp.Navigate(s.URL+"/settings"), see("#models"))
	b.Says("#models", "Automatic", "For each message, a model that supports its attachments")
}

// Where another model goes on, that stands before what it says, or, where it
// says nothing either, behind the message; live and loaded anew alike.
func TestServiceChanges(t *testing.T) {
	t.Parallel()
	first, second := sharp, textOnly
	first.Fallbacks = []artel.ServiceID{second.ID}
	down := map[artel.ServiceID]bool{first.ID: true}
	s := newSiteOf(t, setup{services: []model.Service{first, second}, model: responder(func(_ context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			switch {
			case down[r.Service.ID]:
				yield(nil, artel.Errorf(artel.Denied, "test", string(r.Service.ID), "the key of %s is not known", r.Service.ID))
			case yield(model.TextDelta("Here I am."), nil):
				yield(model.Finish{Reason: model.StopEnd}, nil)
			}
		}
	})})
	for _, answered := range []bool{true, false} {
		down[second.ID] = !answered
		id := s.send(t, "hello", nil)
		page := s.ask(t, "GET", "/c/"+string(id), "", nil).body
		at := strings.Index(page, `class="message hint row change"`)
		if at < 0 || strings.Count(page, ` change"`) != 1 || !strings.Contains(page, "Sharp could not be reached, so Plain 8B continues: <q data-theirs>sharp: the key of sharp is not known</q>") {
			t.Fatalf("the page is\n%s", page)
		}
		if asked, said := strings.Index(page, ">hello<"), strings.Index(page, "Here I am."); at < asked || answered && at > said || answered != (said > 0) {
			t.Errorf("it stands at %d, the question at %d, the answer at %d", at, asked, said)
		}
		last, err := s.app.Events.Last(apptest.Context(t), id)
		if err != nil {
			t.Fatal(err)
		}
		live := map[string]string{}
		for _, f := range s.fragments(t, id, 0, last) {
			maps.Copy(live, elements(t, strings.ReplaceAll(f, "\ndata: ", "\n")))
		}
		for name, whole := range elements(t, page) {
			if strings.HasPrefix(name, "v-") && live[name] != whole {
				t.Errorf("live it is\n%s\nloaded\n%s", live[name], whole)
			}
		}
	}
}
