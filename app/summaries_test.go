// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// states are those of the summaries of a conversation, oldest first.
func (b *bench) states(c artel.ConversationID) string {
	b.t.Helper()
	list, err := b.Summaries.List(apptest.Context(b.t), c)
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, s := range list {
		out = append(out, string(s.State))
	}
	return strings.Join(out, " ")
}

// TestSummaries undoes and redoes two summaries, of which the newer covers the older:
// each time, the next request has what it has to, and a restart changes nothing.
func TestSummaries(t *testing.T) {
	s := &summer{}
	b := newBench(t, provide(s.generate))
	ctx, c := apptest.Context(t), b.conversation()
	if _, err := b.Summaries.Undo(ctx, c, ""); !errors.Is(err, artel.Conflict) {
		t.Errorf("nothing to undo: %v", err)
	}
	b.ask(c, "Remember the red crane.")
	b.compact(c)
	b.ask(c, "Remember the blue crane.")
	b.compact(c)
	list, err := b.Summaries.List(ctx, c)
	if err != nil || len(list) != 2 || b.states(c) != "covered active" {
		t.Fatalf("%+v, %v", list, err)
	}
	first, second := list[0], list[1]
	if first.Messages != 2 || second.Messages != 4 || second.Before == 0 || second.After == 0 || second.Artifact == nil || second.Reason != artel.CompactRequested ||
		!strings.Contains(second.Text, "## 1. Request and intent") {
		t.Errorf("%+v", list)
	}
	covered, err := b.Summaries.Messages(ctx, c, second.ID)
	var texts []string
	for _, m := range covered {
		texts = append(texts, artel.TextOf(m.Parts))
	}
	if want := []string{"Remember the red crane.", "An answer.", "Remember the blue crane.", "An answer."}; err != nil || !slices.Equal(texts, want) {
		t.Errorf("it stands for %q, %v", texts, err)
	}
	if _, err := b.Summaries.Messages(ctx, c, covered[0].ID); !errors.Is(err, artel.NotFound) {
		t.Errorf("what a message stands for that is no summary: %v", err)
	}

	sent := func() string {
		p, err := b.Previews.Build(ctx, c, run.Input{Text: "Which cranes?"})
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, m := range p.Blocks {
			all.WriteString(artel.TextOf(m.Parts) + "\n")
		}
		return all.String()
	}
	for i, step := range []struct {
		do       func() (run.SummaryChange, error)
		states   string
		red, sum int // "the red crane" outside of summaries, and summaries
	}{
		{func() (run.SummaryChange, error) { return b.Summaries.Undo(ctx, c, "") }, "active undone", 0, 1},
		{func() (run.SummaryChange, error) { return b.Summaries.Undo(ctx, c, second.ID) }, "active undone", 0, 1},
		{func() (run.SummaryChange, error) { return b.Summaries.Undo(ctx, c, "") }, "undone undone", 1, 0},
		{func() (run.SummaryChange, error) { return b.Summaries.Redo(ctx, c, "") }, "active undone", 0, 1},
		{func() (run.SummaryChange, error) { return b.Summaries.Redo(ctx, c, "") }, "covered active", 0, 1},
		{func() (run.SummaryChange, error) { return b.Summaries.Redo(ctx, c, second.ID) }, "covered active", 0, 1},
		{func() (run.SummaryChange, error) { return b.Summaries.Undo(ctx, c, "") }, "active undone", 0, 1},
		{func() (run.SummaryChange, error) { return b.Summaries.Undo(ctx, c, first.ID) }, "undone undone", 1, 0},
		{func() (run.SummaryChange, error) { return b.Summaries.Redo(ctx, c, second.ID) }, "undone active", 0, 1},
	} {
		done, err := step.do()
		if err != nil || b.states(c) != step.states || done.Tokens == 0 || done.Compacts {
			t.Fatalf("step %d: %+v, %v, %s", i, done, err, b.states(c))
		}
		text := sent()
		if n := strings.Count(text, "## 1. Request and intent"); n != step.sum {
			t.Errorf("step %d: %d summaries are sent", i, n)
		}
		if n := strings.Count("\n"+text, "\nRemember the red crane."); n != step.red {
			t.Errorf("step %d: the first message is sent %d times:\n%s", i, n, text)
		}
	}
	if _, err := b.Summaries.Redo(ctx, c, first.ID); !errors.Is(err, artel.Conflict) {
		t.Errorf("redo of one that a newer stands for: %v", err)
	}
	if _, err := b.Summaries.Redo(ctx, c, ""); !errors.Is(err, artel.Conflict) {
		t.Errorf("nothing to redo: %v", err)
	}
	if _, err := b.Summaries.Undo(ctx, c, covered[0].ID); !errors.Is(err, artel.NotFound) {
		t.Errorf("undo of another message: %v", err)
	}
	muted := 0
	for _, e := range b.events(c) {
		if e.Type == artel.EventMessageMuted {
			muted++
		}
	}
	if muted != 7 {
		t.Errorf("the log tells of %d changes", muted)
	}
	if err := b.Close(ctx); err != nil {
		t.Fatal(err)
	}
	again := *b
	again.App = b.open()
	if got := again.states(c); got != "undone active" {
		t.Errorf("after a restart: %s", got)
	}
}

// TestUndoWhileARunWorks: the run's next model call has the messages again, and the one
// after that the summary, if that is redone meanwhile.
func TestUndoWhileARunWorks(t *testing.T) {
	var b *bench
	var c artel.ConversationID
	var failed error
	var asked []string
	b = newBench(t, provide(func(ctx context.Context, r *model.Request, yield func(model.Delta, error) bool) {
		text, results := textsOf(r), 0
		for _, m := range r.Messages {
			results += len(artel.ResultsOf(m.Parts))
		}
		end := model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: 9, OutputTokens: 1}}
		var d model.Delta = model.TextDelta("An answer.")
		switch {
		case strings.Contains(text, phrase.English.Say(phrase.CompactAsk, nil)):
			d = model.TextDelta("## 1. Request and intent")
		case strings.Contains(text, "Go on.") && results < 2:
			asked = append(asked, text)
			do := b.Summaries.Undo
			if results == 1 {
				do = b.Summaries.Redo
			}
			if _, err := do(apptest.Context(t), c, ""); err != nil {
				failed = err
			}
			d, end.Reason = callOf("list_artifacts", "{}"), model.StopTools
		default:
			asked = append(asked, text)
		}
		_ = yield(d, nil) && yield(end, nil)
	}))
	c = b.conversation()
	b.ask(c, "Remember the red crane.")
	b.compact(c)
	asked = nil
	r := b.ask(c, "Go on.")
	if failed != nil || r.State != artel.RunDone || len(asked) != 3 {
		t.Fatalf("%+v, %v, %d calls", r, failed, len(asked))
	}
	for i, text := range asked {
		if summary, original := strings.Contains(text, "## 1. Request"), strings.Contains(text, "An answer."); summary != (i != 1) || original == summary {
			t.Errorf("call %d: has the summary %t, and what it stands for %t", i+1, summary, original)
		}
	}
	b.store(func(tx store.Tx) error {
		list, err := tx.Notes.List(store.NoteQuery{Conversation: c, Open: true})
		if err == nil && len(list) > 0 {
			t.Errorf("it left %+v", list)
		}
		return err
	})
}

// TestSearchHistoryByAPerson: outside of a run, and over MCP, the tool searches the
// branch.
func TestSearchHistoryByAPerson(t *testing.T) {
	s := &summer{}
	b := newBench(t, provide(s.generate))
	c := b.conversation()
	b.ask(c, "Remember the red crane.")
	b.compact(c)
	r, err := b.Tools.Call(apptest.Context(t), c, "search_history", json.RawMessage(`{"words":"red crane"}`), app.Target{}, false)
	if err != nil || r.IsError || !strings.Contains(r.Content, `matches="1"`) || !strings.Contains(r.Content, `searched="2"`) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestFocusOfACompaction: what is to be kept reaches the model, without media, and has a
// limit.
func TestFocusOfACompaction(t *testing.T) {
	s := &summer{}
	b := newBench(t, provide(s.generate))
	ctx, c := apptest.Context(t), b.conversation()
	b.ask(c, "Remember the red crane.")
	r, err := b.Runs.Compact(ctx, c, " its height ")
	if err != nil {
		t.Fatal(err)
	}
	if r = b.ended(r); r.State != artel.RunDone {
		t.Fatalf("%+v", r)
	}
	if text := textsOf(s.asked[len(s.asked)-1]); !strings.Contains(text, phrase.English.Say(phrase.CompactFocus, nil)+"\n\n> its height") {
		t.Errorf("was sent\n%s", text)
	}
	if list, err := b.Summaries.List(ctx, c); err != nil || len(list) != 1 || list[0].Focus != "its height" {
		t.Errorf("%+v, %v", list, err)
	}
	calls := contextsOf(t, b, r.ID)
	if len(calls) != 1 {
		t.Errorf("the inspector has %d calls of it", len(calls))
	}
	if _, err := b.Runs.Compact(ctx, c, strings.Repeat("x", 2001)); !errors.Is(err, artel.TooLarge) {
		t.Errorf("2,001 characters: %v", err)
	}
	b.ask(c, "And now?")
	if r, err = b.Runs.Compact(ctx, c, "data:image/png;base64,"+base64.StdEncoding.EncodeToString([]byte(noise(t, 8)))); err != nil {
		t.Fatal(err)
	}
	b.ended(r)
	if list, err := b.Summaries.List(ctx, c); err != nil || len(list) != 2 || !strings.HasPrefix(list[1].Focus, "[image/png, ") {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestUndoThatDoesNotFit: undoing says that the conversation is too long without the
// summary. The next answer comes after a new one, of the oldest messages alone.
func TestUndoThatDoesNotFit(t *testing.T) {
	s := &summer{}
	b := newBench(t, provide(s.generate), func(c *app.Config) {
		demo := model.DemoService()
		demo.Capabilities.ContextWindow = model.Fact[int]{Value: 8000, Source: model.FromOperator}
		c.Services = model.NewRegistry([]model.Service{demo}, demo.ID)
	})
	ctx, c := apptest.Context(t), b.conversation()
	for i := range 4 {
		b.ask(c, fmt.Sprintf("Question %d. %s", i+1, strings.Repeat("word ", 600)))
	}
	b.compact(c)
	b.ask(c, "Question 5. "+strings.Repeat("word ", 600))
	b.ask(c, "Question 6. "+strings.Repeat("word ", 600))
	if got := b.states(c); got != "active" {
		t.Fatalf("before: %s", got)
	}
	undone, err := b.Summaries.Undo(ctx, c, "")
	if err != nil || !undone.Compacts || undone.Threshold == 0 || undone.Tokens <= undone.Threshold && undone.Dropped == 0 {
		t.Fatalf("%+v, %v", undone, err)
	}
	b.ask(c, "And now?")
	list, err := b.Summaries.List(ctx, c)
	if err != nil || b.states(c) != "undone active" {
		t.Fatalf("%s, %v", b.states(c), err)
	}
	var told artel.CompactionCompleted
	for _, e := range b.events(c) {
		if e.Type == artel.EventCompactionCompleted {
			told = payload[artel.CompactionCompleted](t, e)
		}
	}
	if told.Undone != undone.ID || told.Reason != artel.CompactThreshold || list[1].Messages >= 12 {
		t.Errorf("%+v, %+v", told, list[1])
	}
	text := textsOf(s.asked[len(s.asked)-1])
	for n, want := range map[int]bool{1: false, 6: true} {
		if got := strings.Contains(text, fmt.Sprintf("\nQuestion %d. word", n)); got != want {
			t.Errorf("question %d is sent %t", n, got)
		}
	}
	if _, err := b.Summaries.Redo(ctx, c, undone.ID); artel.CodeOf(err) != run.CodeNewerSummary {
		t.Errorf("redo behind a newer one: %v", err)
	}
	if _, err := b.Summaries.Undo(ctx, c, ""); err != nil || b.states(c) != "undone undone" {
		t.Fatalf("%s, %v", b.states(c), err)
	}
	if _, err := b.Summaries.Redo(ctx, c, ""); err != nil || b.states(c) != "undone active" {
		t.Errorf("redo of what was undone last: %s, %v", b.states(c), err)
	}
}

// TestFocusAfterARestart: a compaction that is interrupted keeps its focus, one of its own
// and one that a run at work was asked for.
func TestFocusAfterARestart(t *testing.T) {
	for name, atWork := range map[string]bool{"its own": false, "of a run at work": true} {
		t.Run(name, func(t *testing.T) {
			blocks := false
			began := make(chan struct{})
			s := &summer{}
			b := newBench(t, provide(func(ctx context.Context, r *model.Request, yield func(model.Delta, error) bool) {
				if blocks {
					began <- struct{}{}
					<-ctx.Done()
					yield(nil, ctx.Err())
					return
				}
				s.generate(ctx, r, yield)
			}))
			ctx, c := apptest.Context(t), b.conversation()
			b.ask(c, "Remember the red crane.")
			blocks = true
			if atWork {
				b.send(c, run.Input{Text: "And now?"})
				<-began
			}
			r, err := b.Runs.Compact(ctx, c, "its height")
			if err != nil {
				t.Fatal(err)
			}
			if !atWork {
				<-began
			}
			if err := b.Close(ctx); err != nil {
				t.Fatal(err)
			}
			blocks = false
			next := *b
			next.App = b.open()
			if _, err := next.Recover(ctx, true); err != nil {
				t.Fatal(err)
			}
			if r = next.ended(r); r.State != artel.RunDone {
				t.Fatalf("%+v", r)
			}
			if list, err := next.Summaries.List(ctx, c); err != nil || len(list) != 1 || list[0].Focus != "its height" {
				t.Errorf("%+v, %v", list, err)
			}
			asked := ""
			for _, r := range s.asked {
				asked += textsOf(r)
			}
			if !strings.Contains(asked, "> its height") {
				t.Error("the model was not told what to keep")
			}
		})
	}
}

// TestSummariesInAnyOrder asks, compacts, undoes and redoes in any order: at most one
// summary is active, requests have it and no other, each message is sent or stood for,
// and redoing takes the last undoing back.
func TestSummariesInAnyOrder(t *testing.T) {
	s := &summer{}
	b := newBench(t, provide(s.generate))
	ctx, c := apptest.Context(t), b.conversation()
	random := rand.New(rand.NewPCG(7, 21))
	asked := 0
	ask := func() {
		asked++
		b.ask(c, fmt.Sprintf("Question %d.", asked))
	}
	ask()
	for step := range 120 {
		switch random.IntN(4) {
		case 0:
			ask()
		case 1:
			b.compact(c) // fails without anything to sum up
		case 2:
			before := b.states(c)
			if _, err := b.Summaries.Undo(ctx, c, ""); err != nil {
				if artel.CodeOf(err) != run.CodeNothingToUndo || strings.Contains(before, "active") {
					t.Fatalf("step %d, %s: %v", step, before, err)
				}
				break
			}
			if random.IntN(2) == 0 {
				break
			}
			if _, err := b.Summaries.Redo(ctx, c, ""); err != nil || b.states(c) != before {
				t.Fatalf("step %d: undone and redone, %s is %s, %v", step, before, b.states(c), err)
			}
		case 3:
			if _, err := b.Summaries.Redo(ctx, c, ""); err != nil && artel.CodeOf(err) != run.CodeNothingToRedo {
				t.Fatalf("step %d: %v", step, err)
			}
		}
		list, err := b.Summaries.List(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		active, stands := 0, 0
		for _, x := range list {
			if x.State == run.SummaryActive {
				active++
				stands = x.Messages
			}
		}
		p, err := b.Previews.Build(ctx, c, run.Input{Text: "Next."})
		if err != nil {
			t.Fatal(err)
		}
		summaries, sent := 0, 0
		for _, x := range p.Blocks {
			text := artel.TextOf(x.Parts)
			summaries += strings.Count(text, "## 1. Request and intent")
			for line := range strings.SplitSeq(text, "\n") { // summaries quote with >
				if strings.HasPrefix(line, "Question ") || line == "An answer." {
					sent++
				}
			}
		}
		if active > 1 || summaries != active || sent+stands != 2*asked {
			t.Fatalf("step %d: %s; %d summaries and %d messages are sent, and %d stood for, of %d", step, b.states(c), summaries, sent, stands, 2*asked)
		}
	}
}
