// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/provider/demo"
	"github.com/artelhq/artel/store"
)

// Answers and the conversation tell what they took, the plan how far it is; a
// conversation is summed up with a button, and the summary muted again.
func TestCounters(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	b := openTab(t, 1440, 900)
	b.do(chromedp.Navigate(s.URL), see("#composer"))
	b.send("Look around.")
	b.rest()
	b.until(`document.readyState === "complete"`)
	b.until(`document.querySelector("#progress").innerText.includes("2/2")`)
	b.until(`document.querySelector(".message:last-child footer").innerText.includes("cost unknown")`)
	b.says(".message:last-child footer", "Demo", "tokens")
	b.says("#total > summary", "tokens", "cost unknown")
	b.sameAnew()

	b.do(click("#total > summary"), see("#total form"))
	b.picture("total")
	b.says("#total", "Model calls", "Tokens sent", "Sum up now")
	newChecker(t, b).check("main", allRules, "counters")
	b.do(click("#total form button"))
	b.until(`document.querySelector(".boundary") !== null && !document.querySelector("#status.active")`)
	b.do(press("\x1b"))
	b.sameAnew()
	b.do(click(".boundary footer button"), see(".boundary.muted"))
	b.says(".boundary", "Models are sent what is above again")
	b.sameAnew()
}

// A run that reaches a limit of its agent says which, in the reader's words.
func TestLimitsAreTold(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	id := s.send(t, "hello", nil)
	turns, err := s.app.Conversations.Turns(t.Context(), id, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[string]string{artel.CodeLimitTurns: "may not ask the model more often", artel.CodeLimitCost: "may not cost more", artel.CodeLimitTime: "longer than the agent may"} {
		err := s.store.Update(t.Context(), artel.Local, func(tx store.Tx) error {
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
		if body := s.ask(t, "GET", "/c/"+string(id), "", nil).body; !strings.Contains(body, want) || !strings.Contains(body, "Send a message to go on") || strings.Contains(body, "in English") {
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
	b.do(chromedp.Navigate(s.URL), see("#composer"))
	b.steer()
	b.do(click(`.question.open button[value="allow"]`))
	b.until(`document.querySelectorAll("#waiting .queued").length === 0`)
	b.rest()
	b.says("#messages", "Allowed", "said while it worked", "I have heard you", "this was your next message")
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
	b.t.Helper()
	b.send("Please keep notes on the harbour.")
	b.do(see(".question.open"))
	b.until(`document.readyState === "complete"`)
	b.do(write("Then tell me when the next ship comes in."), enter())
	b.until(`document.querySelectorAll("#waiting .queued").length === 1`)
	b.do(write("Pier 4 is closed, too."), press("\r", chromedp.ModifierCtrl))
	b.until(`document.querySelectorAll("#waiting .queued").length === 2`)
}
