// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
)

const summed = "## 1. Request and intent\nall of it"

var tooLong = &artel.Error{Op: "x", Kind: artel.TooLarge, Err: &model.CallError{
	Status: 400, Message: "prompt is too long", Refusal: model.Refusal{Class: model.RefusedContext},
}}

// long gives the bench a history of n answered questions of size bytes each
// before the newest one, and a window in tokens.
func (b *bench) long(n, size, window int) {
	b.in.Service.Capabilities.ContextWindow = model.Fact[int]{Value: window, Source: model.FromOperator}
	var history []artel.Message
	add := func(role artel.Role, text string, run artel.RunID) {
		now := time.Now().Add(-time.Hour).Add(time.Duration(len(history)) * time.Second)
		m := artel.Message{
			ID: artel.NewMessageID(now), Conversation: b.in.Run.Conversation, Role: role,
			Parts: artel.Parts{artel.Text{Text: text}}, Run: run, CreatedAt: now,
		}
		if role == artel.RoleAssistant {
			m.Agent = b.in.Agent.Name
		}
		if len(history) > 0 {
			m.Parent = history[len(history)-1].ID
		}
		history = append(history, m)
	}
	for i := range n {
		run := artel.NewRunID(time.Now())
		add(artel.RoleUser, fmt.Sprintf("Question %d. %s", i+1, strings.Repeat("word ", size/5)), run)
		add(artel.RoleAssistant, fmt.Sprintf("Answer %d.", i+1), run)
	}
	ask := b.in.History[0]
	if len(history) > 0 {
		ask.Parent = history[len(history)-1].ID
	}
	b.in.History = append(history, ask)
}

// compactions are what was told of them.
func compactions(all []artel.Payload) (started []artel.CompactionStarted, completed []artel.CompactionCompleted) {
	for _, p := range all {
		switch p := p.(type) {
		case artel.CompactionStarted:
			started = append(started, p)
		case artel.CompactionCompleted:
			completed = append(completed, p)
		}
	}
	return started, completed
}

func textOfRequest(r *model.Request) string {
	var b strings.Builder
	for _, m := range r.Messages {
		b.WriteString(artel.TextOf(m.Parts) + "\n")
	}
	return b.String()
}

func TestCompactionByThreshold(t *testing.T) {
	b := newBench(t, []turn{{say(summed), end}, {say("Done."), end}})
	b.long(10, 2600, 8000) // over 80 % of 6,000, and they fit
	var shelved string
	var completed []artel.CompactionCompleted
	b.host.keepSummary = func(text string, end artel.CompactionCompleted) error {
		shelved, completed = text, append(completed, end)
		return nil
	}
	all, err := b.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	started, told := compactions(all)
	if len(started) != 1 || len(completed) != 1 || len(told) != 0 || started[0].Reason != artel.CompactThreshold || started[0].Tokens <= started[0].Threshold {
		t.Fatalf("%+v %+v", started, completed)
	}
	end := completed[0]
	if !end.OK || end.Message == nil || end.Replaced != 20 {
		t.Fatalf("%+v", end)
	}
	before := b.in.History[:20]
	if m := *end.Message; !m.Summary || m.Covers != before[19].ID || m.Parent != b.in.Run.Message || m.Role != artel.RoleUser {
		t.Errorf("%+v", m)
	}
	for _, m := range before {
		if !strings.Contains(shelved, string(m.ID)) {
			t.Errorf("the artifact does not name %s", m.ID)
		}
	}
	if text := textOfRequest(b.requests[0]); !strings.Contains(text, phrase.English.Say(phrase.CompactAsk, nil)) || strings.Contains(text, "Do it.") {
		t.Errorf("the request for the summary:\n%.3000s", text)
	}
	if c := b.requests[0].Choice; c.Mode != "" || len(b.requests[0].Tools) == 0 {
		t.Errorf("the request for the summary does not begin as others: %+v", c)
	}
	text := textOfRequest(b.requests[1])
	for _, want := range []string{summed, "Question 10.", "Do it."} { // the newest words are quoted
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the request after it:\n%s", want, text)
		}
	}
	if strings.Contains(text, "Question 9.") {
		t.Error("what was summed up is sent")
	}
	if strings.Index(text, summed) > strings.Index(text, "Do it.") {
		t.Error("the summary comes after the message that it does not cover")
	}
	// With the boundary muted, the originals stand again.
	muted := *end.Message
	muted.Muted = true
	if got := pipeline.ActiveMessages(append(slices.Clone(b.in.History), muted), "tester"); len(got) != len(b.in.History) {
		t.Errorf("%d messages stand with the summary muted, want %d", len(got), len(b.in.History))
	}
}

func TestCompactionOnOverflow(t *testing.T) {
	b := newBench(t, []turn{{tooLong}, {say(summed), end}, {say("Done."), end}})
	b.long(3, 50, 0) // nobody knows the window
	all, err := b.run(t.Context())
	started, completed := compactions(all)
	if err != nil || len(started) != 1 || started[0].Reason != artel.CompactOverflow || !completed[0].OK {
		t.Fatalf("%v %+v %+v", err, started, completed)
	}

	b = newBench(t, []turn{{tooLong}, {say(summed), end}, {tooLong}})
	b.long(3, 50, 0)
	all, err = b.run(t.Context())
	if started, _ := compactions(all); !errors.Is(err, artel.TooLarge) || len(started) != 1 {
		t.Errorf("a second overflow: %v, %d compactions", err, len(started))
	}
}

func TestFailedCompactionLeavesNothing(t *testing.T) {
	down := &artel.Error{Op: "x", Kind: artel.Invalid, Err: errors.New("no")}
	for name, answer := range map[string]turn{
		"error":   {down},
		"nothing": {end},
		"cut":     {say("## 1"), model.Finish{Reason: model.StopLength}},
		"refused": {say("I will not"), model.Finish{Reason: model.StopRefusal}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, []turn{answer, {call("c1", "echo", `{"text":"x"}`), tools}, {say("Done."), end}})
			b.long(10, 2600, 8000)
			b.host.keepSummary = func(string, artel.CompactionCompleted) error {
				t.Error("an artifact was made")
				return nil
			}
			all, err := b.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			started, completed := compactions(all)
			if len(started) != 1 || len(completed) != 1 || completed[0].OK || completed[0].Error == nil || completed[0].Message != nil {
				t.Fatalf("%+v %+v", started, completed)
			}
			if text := textOfRequest(b.requests[1]); !strings.Contains(text, "Question 1.") || !strings.Contains(text, "Do it.") {
				t.Errorf("the originals are not sent:\n%s", text)
			}
		})
	}
}

// A history far longer than the window is summed up step by step, and nothing
// of it is left out.
func TestCompactionInSteps(t *testing.T) {
	turns := make([]turn, 9)
	for i := range turns[:8] {
		turns[i] = turn{say(fmt.Sprintf("Summary number %d.", i+1)), end}
	}
	b := newBench(t, turns)
	b.long(40, 500, 4000)
	all, _ := b.run(t.Context())
	started, completed := compactions(all)
	if len(started) < 2 || len(started) != len(completed) {
		t.Fatalf("%d compactions", len(started))
	}
	var asked strings.Builder
	for _, r := range b.requests {
		asked.WriteString(textOfRequest(r))
	}
	for i := range completed {
		if i > 0 && !strings.Contains(textOfRequest(b.requests[i]), fmt.Sprintf("Summary number %d.", i)) {
			t.Errorf("compaction %d was not given the summary before it", i+1)
		}
	}
	for i := range 40 {
		if !strings.Contains(asked.String(), fmt.Sprintf("Question %d.", i+1)) {
			t.Errorf("question %d was in no request", i+1)
		}
	}
}

func TestCompactionThatIsAskedFor(t *testing.T) {
	b := newBench(t, []turn{{say(summed), end}})
	b.long(2, 50, 0)
	b.in.History = b.in.History[:4]
	var all []artel.Payload
	for p, err := range b.engine.Compact(t.Context(), b.in) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	_, completed := compactions(all)
	if len(completed) != 1 || completed[0].Replaced != 4 || completed[0].Reason != artel.CompactRequested {
		t.Fatalf("%+v", completed)
	}
	b.in.History = append(b.in.History, *completed[0].Message)
	for p, err := range b.engine.Compact(t.Context(), b.in) {
		t.Errorf("it was done by an earlier attempt, and then %v, %v", p, err)
	}
	b.in.Run.ID = "another"
	for _, err := range b.engine.Compact(t.Context(), b.in) {
		if err != nil && !errors.Is(err, artel.Conflict) {
			t.Fatal(err)
		} else if err != nil {
			return
		}
	}
	t.Error("a history of one summary was summed up")
}

// Whatever is muted and summed up, a message of the branch stands, is covered
// by the newest summary, or is muted, or is another agent's; and what stands is
// in order.
func TestStanding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(t, "n")
		branch := make([]artel.Message, n)
		for i := range branch {
			branch[i] = artel.Message{
				ID: artel.MessageID(fmt.Sprint("m", i)), Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "x"}},
				Muted:   rapid.IntRange(0, 3).Draw(t, "muted") == 0,
				Summary: rapid.IntRange(0, 4).Draw(t, "summary") == 0,
				Agent:   rapid.SampledFrom([]artel.AgentName{"", "", "tester", "other"}).Draw(t, "agent"),
			}
			if branch[i].Summary && i > 0 && rapid.Bool().Draw(t, "covers") {
				branch[i].Covers = branch[rapid.IntRange(0, i-1).Draw(t, "covered")].ID
			}
		}
		got := pipeline.ActiveMessages(branch, "tester")
		at := map[artel.MessageID]int{}
		for i, m := range branch {
			at[m.ID] = i
		}
		newest, from := -1, 0
		for i, m := range branch {
			if m.Summary && !m.Muted && m.Agent != "other" {
				newest, from = i, i+1
				if m.Covers != "" {
					from = at[m.Covers] + 1
				}
			}
		}
		var want []artel.MessageID
		if newest >= 0 {
			want = append(want, branch[newest].ID)
		}
		for i, m := range branch {
			if i >= from && !m.Muted && !m.Summary && m.Agent != "other" {
				want = append(want, m.ID)
			}
		}
		var ids []artel.MessageID
		for _, m := range got {
			ids = append(ids, m.ID)
		}
		if !slices.Equal(ids, want) {
			t.Fatalf("got %v, want %v", ids, want)
		}
	})
}

// TestSummaryHasWhatIsAsked sums up the middle of a run twice: what the run
// answers, and what was said to it meanwhile, is sent word for word after that.
func TestSummaryHasWhatIsAsked(t *testing.T) {
	b := newBench(t, []turn{{say(summed), end}, {call("z1", "echo", `{"text":"`+strings.Repeat("word ", 2600)+`"}`), end}, {say(summed), end}, {say("Done."), end}})
	b.in.Service.Capabilities.ContextWindow = model.Fact[int]{Value: 8000, Source: model.FromOperator}
	add := func(role artel.Role, parts ...artel.Part) {
		last := b.in.History[len(b.in.History)-1]
		m := artel.Message{
			ID: artel.NewMessageID(time.Now()), Parent: last.ID, Conversation: last.Conversation, Role: role, Parts: parts,
			Run: b.in.Run.ID, CreatedAt: last.CreatedAt.Add(time.Second),
		}
		if role != artel.RoleUser {
			m.Agent = b.in.Agent.Name
		}
		b.in.History = append(b.in.History, m)
	}
	exchange := func(id artel.CallID) {
		add(artel.RoleAssistant, artel.ToolCall{ID: id, Name: "echo", Arguments: []byte(`{"text":"x"}`)})
		add(artel.RoleTool, artel.ToolResult{CallID: id, Content: strings.Repeat("word ", 2400)})
	}
	exchange("a")
	add(artel.RoleUser, artel.Text{Text: "Mind the tide."})
	exchange("b")
	all, err := b.run(t.Context())
	if _, completed := compactions(all); err != nil || len(completed) != 2 || !completed[0].OK || !completed[1].OK {
		t.Fatalf("%+v, %v", completed, err)
	}
	for _, n := range []int{1, 3} {
		text := textOfRequest(b.requests[n])
		if strings.Count(text, "Do it.") != 1 || strings.Count(text, "Mind the tide.") != 1 || !strings.Contains(text, summed) {
			t.Errorf("request %d is\n%.2000s", n, text)
		}
	}
}

// TestCompactionAskedFor: what people ask of a run at work is done before its
// next model call, without what it is at, or as a whole when it is at rest. What
// fails, or is not worth it, is told, and the run goes on.
func TestCompactionAskedFor(t *testing.T) {
	lookup := turn{call("c1", "echo", `{"text":"here"}`), end}
	for name, c := range map[string]struct {
		turns    []turn
		history  int // answered questions before
		at       int // which time the run asks for what people want
		ok       bool
		replaced int
		kept     string // of the history, in the last request
	}{
		"before the first call": {turns: []turn{{say(summed), end}, {say("Done."), end}}, history: 3, at: 1, ok: true, replaced: 6, kept: "Do it."},
		"between two calls":     {turns: []turn{lookup, {say(summed), end}, {say("Done."), end}}, history: 3, at: 2, ok: true, replaced: 9},
		"at rest":               {turns: []turn{{say("Done."), end}, {say(summed), end}}, history: 3, at: 2, ok: true, replaced: 8},
		"nothing to sum up":     {turns: []turn{{say("Done."), end}}, at: 1, kept: "Do it."},
		"it fails":              {turns: []turn{{model.Finish{Reason: model.StopRefusal}}, {say("Done."), end}}, history: 3, at: 1, kept: "Question 1."},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.turns)
			b.long(c.history, 20, 8000)
			asked, open := 0, false
			b.host.inbox = func(artel.MessageID) (agent.Inbox, error) {
				asked++
				open = open || asked == c.at
				return agent.Inbox{Compact: open}, nil
			}
			var all []artel.Payload
			for p, err := range b.engine.Run(t.Context(), b.in) {
				if err != nil {
					t.Fatal(err)
				}
				if p, ok := p.(artel.CompactionCompleted); ok && p.Reason == artel.CompactRequested {
					open = false
				}
				all = append(all, p)
			}
			started, completed := compactions(all)
			if len(started) != 1 || len(completed) != 1 || started[0].Reason != artel.CompactRequested || completed[0].OK != c.ok || completed[0].Replaced != c.replaced {
				t.Fatalf("%+v %+v", started, completed)
			}
			if !c.ok && (completed[0].Error == nil || completed[0].Error.Message == "") {
				t.Errorf("it is not told why: %+v", completed[0])
			}
			var said []string
			for _, p := range all {
				if m, ok := p.(artel.MessageCompleted); ok {
					said = append(said, artel.TextOf(m.Message.Parts))
				}
			}
			if said[len(said)-1] != "Done." || strings.Count(strings.Join(said, "|"), "Done.") != 1 {
				t.Errorf("it said %q", said)
			}
			if text := textOfRequest(b.requests[len(b.requests)-1]); !strings.Contains(text, c.kept) {
				t.Errorf("%q is not in the last request:\n%s", c.kept, text)
			}
		})
	}
}

// TestRunAtRest: a run that is taken up with its answer said asks nobody again,
// and one that has been told something since does.
func TestRunAtRest(t *testing.T) {
	for name, more := range map[string]bool{"at rest": false, "told more": true} {
		b := newBench(t, []turn{{say("And that."), end}})
		ask := b.in.History[0]
		b.in.History = append(b.in.History, artel.Message{
			ID: artel.NewMessageID(time.Now()), Conversation: ask.Conversation, Parent: ask.ID, Role: artel.RoleAssistant, Agent: b.in.Agent.Name, Run: b.in.Run.ID,
			Parts: artel.Parts{artel.Text{Text: "Done."}}, CreatedAt: time.Now(),
		})
		b.host.inbox = func(after artel.MessageID) (in agent.Inbox, err error) {
			if more {
				in.Said = []artel.Message{{
					ID: artel.NewMessageID(time.Now()), Conversation: ask.Conversation, Parent: after, Role: artel.RoleUser, Run: b.in.Run.ID,
					Parts: artel.Parts{artel.Text{Text: "And?"}}, CreatedAt: time.Now(),
				}}
			}
			more = false
			return in, nil
		}
		want := len(b.requests)
		if more {
			want++
		}
		if _, err := b.run(t.Context()); err != nil || len(b.requests) != want {
			t.Errorf("%s: %d model calls, want %d: %v", name, len(b.requests), want, err)
		}
	}
}

// TestSummaryAfterCalls: calls in the answer to the request for a summary are
// not made. If they came instead of a summary, it is asked for once more without
// tools.
func TestSummaryAfterCalls(t *testing.T) {
	b := newBench(t, []turn{{say("I look first."), call("x", "echo", `{"text":"x"}`), tools}, {say(summed), end}, {say("Done."), end}})
	b.long(10, 2600, 8000)
	all, err := b.run(t.Context())
	_, done := compactions(all)
	if err != nil || len(b.requests) != 3 || len(done) != 1 || !done[0].OK || !strings.Contains(artel.TextOf(done[0].Message.Parts), summed) {
		t.Fatalf("%d calls, %+v, %v", len(b.requests), done, err)
	}
	if first, second := b.requests[0], b.requests[1]; first.Choice.Mode != "" || second.Choice.Mode != model.ChooseNone || len(first.Messages) != len(second.Messages) {
		t.Errorf("%+v, then %+v", first.Choice, second.Choice)
	}
	if slices.ContainsFunc(all, func(p artel.Payload) bool { return p.EventType() == artel.EventToolStarted }) {
		t.Error("a call was made")
	}

	b = newBench(t, []turn{{say(summed), call("x", "echo", `{"text":"x"}`), tools}, {say("Done."), end}})
	b.long(10, 2600, 8000)
	if _, err = b.run(t.Context()); err != nil || len(b.requests) != 2 {
		t.Errorf("a summary beside a call: %d calls, %v", len(b.requests), err)
	}

	silent := turn{call("x", "echo", `{"text":"x"}`), tools}
	b = newBench(t, []turn{silent, silent, {say("Done."), end}})
	b.long(10, 2600, 8000)
	all, err = b.run(t.Context())
	if _, done = compactions(all); err != nil || len(done) != 1 || done[0].OK || !strings.Contains(done[0].Error.Message, "called tools") {
		t.Errorf("calls alone: %+v, %v", done, err)
	}
}

// TestCompactionKeepsAttachments: what is attached to the messages that a run
// answers is sent on after a compaction in the middle of the run; what was
// attached before is not.
func TestCompactionKeepsAttachments(t *testing.T) {
	b := newBench(t, []turn{
		{call("a", "echo", `{"text":"x"}`), model.Finish{Reason: model.StopTools, Usage: artel.Usage{InputTokens: 5500, OutputTokens: 400}}},
		{say(summed), end},
		{say("Done."), end},
	})
	b.long(10, 500, 8000)
	picture := func(name string) artel.Media {
		return artel.Media{Ref: artel.Ref{Artifact: artel.ArtifactID(name), Version: 1}, MediaType: "image/png", Kind: artel.KindImage, Filename: name, Size: 10}
	}
	old, asked := &b.in.History[0], &b.in.History[len(b.in.History)-1]
	old.Parts = append(old.Parts, picture("old.png"))
	asked.Parts = append(asked.Parts, picture("asked.png"))
	b.in.Agent.Compaction.Threshold = 60
	all, err := b.run(t.Context())
	_, done := compactions(all)
	if err != nil || len(done) != 1 || !done[0].OK {
		t.Fatalf("%+v, %v", done, err)
	}
	var kept []string
	for _, m := range artel.MediaOf(done[0].Message.Parts) {
		kept = append(kept, m.Filename)
	}
	if !slices.Equal(kept, []string{"asked.png"}) {
		t.Errorf("the summary has %q", kept)
	}
	if got := b.requests[len(b.requests)-1]; !strings.Contains(textOfRequest(got), "asked.png") {
		t.Errorf("the next request does not have it:\n%s", textOfRequest(got))
	}
}
