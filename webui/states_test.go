// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/run"
)

// A new conversation is with whom the reader chooses, with keys alone. Nobody
// answering a question denies, which the page says by itself. A question before
// work is given away shows what work; it is answered after the connection was
// lost, too.
func TestAgentsAndQuestions(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, setup{ask: agent.Permissions{"call_subagent": agent.Ask}})
	if _, err := s.app.Agents.Create(apptest.Context(t), agent.Definition{
		Name: "hasty", Description: "Waits for nobody.", Prompt: "You are hasty.", Tools: []string{"create_artifact"},
		Permissions: agent.Permissions{"create_artifact": agent.Ask}, Limits: agent.Limits{Answer: 1},
	}); err != nil {
		t.Fatal(err)
	}
	b := openTab(t, 1280, 800)
	b.Forgive(notices...)
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.Until(`document.readyState === "complete"`)
	b.Says("#agent", "lead_agent")
	b.Do(press("g", chromedp.ModifierAlt), see("#agent-picker"))
	b.on("input[name=agent]:checked")
	b.picture("agent-picker")
	b.Says("#agent-picker", "lead_agent", "research_agent", "hasty", "Waits for nobody.")
	newChecker(t, b).check("main", allRules, "agent picker")
	for range 4 { // the arrows choose
		if eval[string](b, "document.activeElement.value") != "hasty" {
			b.Do(press(kb.ArrowDown))
		}
	}
	b.Says("#agent", "hasty")
	b.Do(press("\x1b"))
	b.send("Look around.")
	b.Until(`document.querySelector("#messages .question:not(.open)")?.innerText.includes("Denied: no answer in time")`)
	b.rest()
	b.Says("main > header", "hasty")
	b.sameAnew()

	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.send("Please delegate this.")
	b.Do(see(".question.open"))
	b.picture("delegating")
	b.Says(".question.open", "The agent wants to delegate work to", "Allow", "Always on this branch", "Deny")
	b.Until(`document.querySelectorAll(".question.open").length === 2`)
	newChecker(t, b).check("#messages", allRules, "question of work")
	asked, err := s.app.Permissions.List(apptest.Context(t), s.all(t)[0].ID)
	if err != nil || len(asked) != 2 {
		t.Fatalf("there are %d questions, %v", len(asked), err)
	}
	s.CloseClientConnections() // while somebody answers elsewhere
	if _, err := s.app.Permissions.Decide(apptest.Context(t), asked[0].Run, asked[0].ID, artel.Deny, ""); err != nil {
		t.Fatal(err)
	}
	b.Until(`document.querySelectorAll(".question.open").length === 1 && document.querySelectorAll(".call.waiting").length === 1`)
	b.Do(click(`.question.open button[value="allow"]`))
	b.Until(`document.querySelectorAll(".question:not(.open)").length === 2`)
	b.rest()
	b.Until(`document.querySelectorAll(".subagent.done").length === 1`)
	b.Says("#messages", "call_subagent · Denied", "call_subagent · Allowed")
	b.sameAnew()
}

// While a service is busy, the page says when it is asked again, and nothing of
// it afterwards.
func TestRetrying(t *testing.T) {
	t.Parallel()
	var wait atomic.Int64
	wait.Store(int64(10 * time.Minute))
	s := newSiteOf(t, setup{caller: model.CallerOptions{MaxWait: time.Hour}, services: []model.Service{sharp}, model: responder(func(_ context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			switch d := time.Duration(wait.Swap(0)); {
			case d > 0:
				yield(nil, &artel.Error{Op: "test", Kind: artel.Unavailable, Err: &model.CallError{
					Service: r.Service.ID, Status: 429, Message: "too many requests", RetryAfter: d, Transient: true,
				}})
			case yield(model.TextDelta("Here I am."), nil):
				yield(model.Finish{Reason: model.StopEnd}, nil)
			}
		}
	})})
	b := openTab(t, 1280, 800)
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.send("hello")
	b.Until(`/Sharp does not answer. Attempt 2 of \d follows in \d+ s/.test(document.getElementById("retrying").innerText)`)
	b.Says("#retrying", "too many requests")
	b.picture("retrying")
	newChecker(t, b).check("main", allRules, "retrying")
	if _, err := s.app.Runs.Compact(apptest.Context(t), s.all(t)[0].ID, ""); err != nil { // what people want meanwhile is no end of it
		t.Fatal(err)
	}
	b.Until(`document.querySelectorAll("#waiting .queued").length === 1`)
	b.Do(chromedp.Reload(), see("#retrying:not(:empty)"))
	b.Until(`/Sharp does not answer. Attempt 2 of \d follows in \d+ s/.test(document.getElementById("retrying").innerText)`)
	b.Do(click("#status .stop"))
	b.Until(`document.querySelector("#retrying:empty") !== null && !document.querySelector("#status.active")`)

	wait.Store(int64(time.Millisecond))
	b.send("again")
	b.rest()
	b.Says("#messages", "Here I am.")
	b.Until(`document.querySelector("#retrying:empty") !== null`)
	b.sameAnew()
}

// A message that is being edited stays as it is typed when the thread around it
// comes anew, when it is sent from elsewhere, and through a reload.
func TestOpenEdits(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	id := s.send(t, "first", nil)
	second, err := s.app.Runs.Send(apptest.Context(t), id, run.Input{Text: "second"})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range s.app.Events.Follow(apptest.Context(t), id, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == artel.EventRunFinished && e.Run == second.ID {
			break
		}
	}
	turns, err := s.app.Messages.Turns(apptest.Context(t), id, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	b := openTab(t, 1280, 800)
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(id)), see("#messages"))
	b.Until(`document.readyState === "complete"`)
	b.Do(click(".message.user [data-edit]"), see(".rewriting textarea"))
	b.on(".rewriting textarea")
	b.Do(fill(".rewriting textarea", "half a thought"))
	typed := func(when string) {
		t.Helper()
		if got := eval[string](b, `document.querySelector(".rewriting textarea")?.value ?? ""`); got != "half a thought" {
			t.Errorf("%s the field has %q", when, got)
		}
	}
	if _, err := s.app.Runs.Edit(apptest.Context(t), id, turns[len(turns)-1].ID, run.Edit{}); err != nil {
		t.Fatal(err)
	}
	b.Until(`document.querySelector("#messages > .message:not(:first-child) .siblings")?.innerText.includes("2/2") && !document.querySelector("#status.active")`)
	typed("with another answer below it,")
	b.on(".rewriting textarea")
	if _, err := s.app.Messages.Mute(apptest.Context(t), id, turns[0].ID, true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.app.Messages.Mute(apptest.Context(t), id, turns[0].ID, false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.app.Conversations.Switch(apptest.Context(t), id, turns[len(turns)-1].ID); err != nil {
		t.Fatal(err)
	}
	b.Until(`document.querySelector("#messages > .message:not(:first-child) .siblings")?.innerText.includes("1/2")`)
	typed("on another branch")
	b.Do(chromedp.Reload(), see("#messages"))
	b.Until(`document.readyState === "complete"`)
	b.Do(click(".message.user [data-edit]"), see(".rewriting textarea"))
	b.on(".rewriting textarea")
	typed("after a reload")
	b.Do(press("\x1b"))
	b.Until(`!document.querySelector(".rewriting")`)
	b.Do(click(".message.user [data-edit]"), see(".rewriting textarea"))
	b.on(".rewriting textarea")
	if got := eval[string](b, `document.querySelector(".rewriting textarea").value`); got != "first" {
		t.Errorf("after it was cancelled, the field has %q", got)
	}
}
