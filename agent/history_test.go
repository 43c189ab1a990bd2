// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/model"
)

func hasTool(r *model.Request, name string) bool {
	return slices.ContainsFunc(r.Tools, func(s model.ToolSpec) bool { return s.Name == name })
}

// TestSearchHistory: a model gets the tool with the first request that has a summary,
// and finds with it what the summary stands for, with ids, and nothing else.
func TestSearchHistory(t *testing.T) {
	b := newBench(t, []turn{
		{say(summed), end},
		{call("c1", "search_history", `{"words":"QUESTION 7. word"}`), tools},
		{call("c2", "search_history", `{"words":"\"do it\""}`), tools},
		{say("Done."), end},
	})
	b.long(10, 2600, 8000)
	first := b.in.History[12] // question 7
	all, err := b.run(t.Context())
	if err != nil || len(b.requests) != 4 {
		t.Fatalf("%d calls, %v", len(b.requests), err)
	}
	if hasTool(b.requests[0], tool.SearchHistory) || !hasTool(b.requests[1], tool.SearchHistory) {
		t.Error("the tool does not come with the summary")
	}
	var results []string
	for _, p := range all {
		if p, ok := p.(artel.ToolCompleted); ok {
			results = append(results, artel.ResultsOf(p.Message.Parts)[0].Content)
		}
	}
	if len(results) != 2 || !strings.Contains(results[0], `matches="1" shown="1" searched="20"`) || !strings.Contains(results[0], string(first.ID)) || len(results[0]) > 700 {
		t.Errorf("it found %q", results)
	}
	if strings.Contains(results[1], string(b.in.Run.Message)) {
		t.Errorf("it found what the model is sent anyway: %s", results[1])
	}
}

// TestWhoHasSearchHistory: without a summary, agents have the tool that their file
// names; with one, all but those that are denied it.
func TestWhoHasSearchHistory(t *testing.T) {
	for name, c := range map[string]struct {
		tools   []string
		denied  bool
		without bool // has it, without a summary
		with    bool
	}{
		"not named": {[]string{"echo"}, false, false, true},
		"all":       {[]string{"*"}, false, false, true},
		"named":     {[]string{"echo", tool.SearchHistory}, false, true, true},
		"denied":    {[]string{"echo", tool.SearchHistory}, true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, summary := range []bool{false, true} {
				b := newBench(t, []turn{{say("Done."), end}}, tool.SearchHistoryTool())
				b.long(3, 10, 0)
				if b.in.Agent.Tools = c.tools; c.denied {
					b.in.Permissions = agent.Permissions{tool.SearchHistory: agent.Deny}
				}
				want := c.without
				if summary {
					want = c.with
					b.in.History[4].Summary = true
				}
				if _, err := b.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if hasTool(b.requests[0], tool.SearchHistory) != want {
					t.Errorf("with a summary %t: it has it %t, want %t", summary, !want, want)
				}
			}
		})
	}
}

// TestCovered: a summary stands for the messages before it, also through earlier
// summaries, without muted ones.
func TestCovered(t *testing.T) {
	b := newBench(t, nil)
	b.long(4, 10, 0)
	h := b.in.History
	if got := agent.Covered(h, "tester"); got != nil {
		t.Errorf("without a summary: %d", len(got))
	}
	h[2].Summary, h[2].Covers = true, h[1].ID
	h[3].Muted = true
	h[6].Summary, h[6].Covers = true, h[4].ID
	var got []string
	for _, m := range agent.Covered(h, "tester") {
		got = append(got, string(m.ID))
	}
	if want := []string{string(h[0].ID), string(h[1].ID), string(h[4].ID)}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestUndoInARun: what users undo reaches the next model call of a run at work. If the
// messages fit, they are sent; if not, the oldest are summarised again, as few as leave
// the newest as they were written, and the events say why.
func TestUndoInARun(t *testing.T) {
	for name, c := range map[string]struct {
		window int
		fits   bool
	}{"it fits": {20_000, true}, "it does not fit": {8000, false}} {
		t.Run(name, func(t *testing.T) {
			turns := []turn{{call("c1", "echo", `{"text":"here"}`), tools}, {say("Done."), end}}
			if !c.fits {
				turns = slices.Insert(turns, 1, turn{say("## 1. Request and intent\nagain"), end})
			}
			b := newBench(t, turns)
			b.long(10, 2600, c.window)
			at := 19
			old := b.in.History[at] // the last answer becomes the summary of all before it
			b.in.History[at].Summary, b.in.History[at].Covers = true, b.in.History[at-1].ID
			asked := 0
			b.host.inbox = func(artel.MessageID) (in agent.Inbox, err error) {
				if asked++; asked == 2 {
					in.Muted = map[artel.MessageID]bool{old.ID: true}
				}
				return in, nil
			}
			all, err := b.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			last := textOfRequest(b.requests[len(b.requests)-1])
			started, completed := compactions(all)
			if c.fits {
				if len(started) != 0 || !strings.Contains(last, "Question 1.") || strings.Contains(last, "Answer 10.") {
					t.Errorf("%+v, and was sent\n%.1000s", started, last)
				}
				return
			}
			if len(started) != 1 || started[0].Undone != old.ID || completed[0].Undone != old.ID || !completed[0].OK {
				t.Fatalf("%+v %+v", started, completed)
			}
			if n := completed[0].Replaced; n < 4 || n > 16 {
				t.Errorf("it replaced %d messages", n)
			}
			covered := (completed[0].Replaced + 1) / 2 // of the questions
			for i := 1; i <= 9; i++ {
				text := fmt.Sprintf("Question %d.", i)
				if summarised := strings.Contains(textOfRequest(b.requests[1]), text); summarised != (i <= covered) {
					t.Errorf("question %d: summarised %t, of %d", i, summarised, covered)
				}
				if sent := strings.Contains(last, text); sent != (i >= covered) { // the newest of the summarised is quoted
					t.Errorf("question %d: sent %t, of %d summarised", i, sent, covered)
				}
			}
		})
	}
}

// TestFocus: the request for a summary has what the user wants kept, as a quote; the
// event has it too, with the tokens of the messages and of their summary.
func TestFocus(t *testing.T) {
	b := newBench(t, []turn{{say(summed), end}})
	b.long(5, 2600, 0)
	b.in.History = b.in.History[:10]
	b.in.Focus = "the numbers\nof the cranes"
	var completed []artel.CompactionCompleted
	for p, err := range b.engine.Compact(t.Context(), b.in) {
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := p.(artel.CompactionCompleted); ok {
			completed = append(completed, p)
		}
	}
	if text := textOfRequest(b.requests[0]); !strings.Contains(text, "> the numbers\n> of the cranes") {
		t.Errorf("was sent\n%.3000s", text)
	}
	if len(completed) != 1 || completed[0].Focus != b.in.Focus || completed[0].Before < 2500 || completed[0].Before > 5000 || completed[0].After < 20 || completed[0].After > 800 {
		t.Errorf("%+v", completed)
	}
}
