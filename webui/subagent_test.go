// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/webui/webuitest"
)

// TestSubagentThreads: the thread of a subagent stands under the call that it
// is of, open while it works and closed afterwards, and a reload shows the same
// as the stream has built.
func TestSubagentThreads(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	id := s.send(t, "Please delegate this.", nil)
	page := s.ask(t, "GET", "/c/"+string(id), "", nil).body
	if n := strings.Count(page, `class="call subagent done"`); n != 2 {
		t.Fatalf("%d threads on the page:\n%s", n, page)
	}
	whole := elements(t, page)
	last, err := s.app.Events.Last(apptest.Context(t), id)
	if err != nil {
		t.Fatal(err)
	}
	opened, closed := map[string]bool{}, map[string]string{}
	for _, f := range s.fragments(t, id, 0, last) {
		for name, html := range elements(t, strings.ReplaceAll(strings.ReplaceAll(f, "\ndata: ", "\n"), "\ndata:\n", "\n")) {
			if !strings.HasPrefix(name, "w-") || strings.HasSuffix(name, "-b") || strings.HasSuffix(name, "-s") {
				continue
			}
			if strings.Contains(html, `class="call subagent running"`) {
				opened[name] = strings.Contains(html, ` open=""`)
			} else {
				closed[name] = strings.Replace(html, ` data-folds=""`, "", 1)
			}
		}
	}
	if len(opened) != 2 || len(closed) != 2 {
		t.Fatalf("opened %v, closed %d", opened, len(closed))
	}
	for name, html := range closed {
		if !opened[name] || strings.Contains(html, ` open=""`) {
			t.Errorf("%s is open at another time than while it works", name)
		}
		if html != whole[name] {
			t.Errorf("%s of the stream differs from the page's:\n%s\n%s", name, html, whole[name])
		}
		into, _, _ := strings.Cut(strings.SplitN(html, `data-into="#`, 2)[1], `"`)
		if parent := whole[into]; !strings.Contains(parent, name) || !strings.Contains(parent, "call_subagent") {
			t.Errorf("%s does not stand under its call, in %s", name, into)
		}
		if n := strings.Count(html, "<article "); n != 3 {
			t.Errorf("%s has %d messages, want what it was asked and two answers", name, n)
		}
	}
	if strings.Count(page, "<article ") != len(differentMessages(page)) {
		t.Error("a message stands on the page twice")
	}
}

// differentMessages are the different messages of a page.
func differentMessages(page string) map[string]bool {
	out := map[string]bool{}
	for _, part := range strings.Split(page, `<article id="`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		out[name] = true
	}
	return out
}

// twoAsk is a lead who gives work to two at once, of whom one gives it on; who
// has it in the end writes.
const twoAsk = `-- message 1 --
-- turn 1 --
I ask two.
@call call_subagent {"agent": "middle", "instruction": "go deep"}
@call call_subagent {"agent": "scribe", "instruction": "write of the tide"}
-- turn 2 --
Both are back.
-- asked go deep --
-- turn 1 --
I pass it on.
@call call_subagent {"agent": "deep", "instruction": "write of the quay"}
-- turn 2 --
It is done, deep down.
-- asked write of the quay --
-- turn 1 --
@call create_artifact {"id": "quay", "title": "The quay", "content": "Of **stone**."}
-- turn 2 --
The quay is written of.
-- asked write of the tide --
-- turn 1 --
@call create_artifact {"id": "tide", "title": "The tide", "content": "High at **noon**."}
-- turn 2 --
I was not allowed to.
`

// chief is a conversation with a lead who has subagents at two depths, of whom
// those that write ask first.
func chief(t *testing.T, text string) (*site, artel.Conversation) {
	t.Helper()
	s := newSiteOf(t, setup{demo: script(t, text), ask: agent.Permissions{"create_artifact": agent.Ask}})
	for _, d := range []agent.Definition{
		{Name: "deep", Prompt: "You write.", Tools: []string{"create_artifact"}},
		{Name: "scribe", Prompt: "You write.", Tools: []string{"create_artifact"}},
		{Name: "middle", Prompt: "You pass it on.", Subagents: []artel.AgentName{"deep"}},
		{Name: "chief", Prompt: "You lead.", Subagents: []artel.AgentName{"middle", "scribe"}},
	} {
		if _, err := s.app.Agents.Create(apptest.Context(t), d); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.app.Conversations.Create(apptest.Context(t), app.NewConversation{Agent: "chief"})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// A question of a subagent stands in its thread and names it. Folded threads
// say that they wait, a key opens the one that asks, and everything is answered
// with keys alone, after the page was loaded anew, too.
func TestSubagentsAsk(t *testing.T) {
	t.Parallel()
	s, c := chief(t, twoAsk)
	b := openTab(t, 1280, 900, webuitest.Command(network.Enable, network.EnableParams{}))
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(c.ID)), see("#composer"))
	b.Until(`document.readyState === "complete"`)
	b.send("go")
	b.Until(`document.querySelectorAll(".question.open").length === 2 && document.querySelectorAll(".subagent > summary.asks").length === 3`)
	b.picture("subagents-ask")
	b.Says(".subagent .subagent .question.open", "The subagent deep wants to create an artifact: The quay", "Of stone.", "Allow")
	b.Says("#messages", "The subagent scribe wants to create an artifact: The tide")
	b.Says(".subagent > summary.asks", "middle", "waits for your answer")
	b.Says("#status", "Waits for your answer")
	newChecker(t, b).check("#messages", allRules, "questions of subagents")

	b.Do(webuitest.Command(network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": "zh"}}))
	b.Do(chromedp.Reload(), see(".subagent .subagent .question.open"))
	b.Says(".subagent .subagent .question.open", "子智能体“deep”想新建工件：The quay")
	b.Says(".subagent > summary.asks", "等待你的答复")
	b.picture("subagents-ask-zh")
	b.Do(webuitest.Command(network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": "en"}}))
	b.Do(chromedp.Reload(), see(".subagent .subagent .question.open"))
	b.Until(`document.readyState === "complete"`)
	if n := eval[int](b, `document.querySelectorAll(".subagent > summary.asks").length`); n != 3 {
		t.Errorf("loaded anew, %d threads say that they wait", n)
	}

	b.Do(click(".subagent > summary.asks"))
	b.Until(`!document.querySelector(".subagent .subagent .question").checkVisibility()`)
	b.Says(".subagent > summary.asks", "waits for your answer")
	b.picture("subagents-ask-folded")
	b.Do(press("y", chromedp.ModifierAlt))
	b.on(`.subagent .subagent .question.open button[value="allow"]`)
	b.Do(press("y", chromedp.ModifierAlt))
	if got := eval[string](b, `document.activeElement.closest(".question").innerText`); !strings.Contains(got, "scribe") {
		t.Errorf("the key goes on to %q", got)
	}
	b.Do(press("\t"), press("\t"), press("\r")) // denies
	b.Until(`document.querySelectorAll(".question.open").length === 1`)
	b.Says("#status", "Waits for your answer")
	b.Do(press("y", chromedp.ModifierAlt))
	b.on(`.subagent .subagent .question.open button[value="allow"]`)
	b.Do(press("\r"))
	b.rest()
	b.Until(`document.querySelectorAll(".subagent.done").length === 3 && document.querySelectorAll("summary.asks").length === 0`)
	b.sameAnew()
	b.Until(`document.querySelectorAll(".subagent .question .deny, .subagent .question .allow").length === 2`)
	if _, _, err := s.app.Artifacts.Find(apptest.Context(t), c.ID, "tide", ""); !errors.Is(err, artel.NotFound) {
		t.Errorf("what was denied is there: %v", err)
	}
}

// Threads of subagents whose run is stopped end on the page at once: those that
// wait for an answer, and those that a model is writing.
func TestStopSubagents(t *testing.T) {
	t.Parallel()
	s, c := chief(t, strings.Replace(twoAsk, "@call create_artifact {\"id\": \"tide\", \"title\": \"The tide\", \"content\": \"High at **noon**.\"}", "It comes.\n@hang", 1))
	b := openTab(t, 1280, 900)
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(c.ID)), see("#composer"))
	b.send("go")
	b.Until(`document.querySelectorAll(".question.open").length === 1 && document.querySelectorAll(".subagent.running").length === 3 && document.getElementById("messages").innerText.includes("It comes.")`)
	b.Do(click("#status .stop"))
	b.rest()
	b.Says("#messages", "It comes.", "The answer was cut off here.")
	b.picture("subagents-stopped")
	b.sameAnew()
}
