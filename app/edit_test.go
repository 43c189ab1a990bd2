// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
)

// TestNestedMessagesAreOnNoBranch: a message of a subagent cannot become the end
// of a branch, nor the parent of a message.
func TestNestedMessagesAreOnNoBranch(t *testing.T) {
	s := &scriptedModel{turns: [][]model.Delta{
		{model.CallDelta{ID: "out", Name: agent.SubagentTool, Arguments: []byte(`{"agent":"helper","instruction":"Help."}`)}},
		{model.TextDelta("Helped.")},
		{model.TextDelta("Done.")},
	}}
	b := newBench(t, provide(s.generate), func(c *app.Config) {
		c.Agents = []agent.Definition{
			{Name: agent.Lead, Prompt: "You lead.", Subagents: []artel.AgentName{"helper"}},
			{Name: "helper", Description: "Helps.", Prompt: "You help."},
		}
	})
	c := b.conversation()
	r := b.ask(c, "Go.")
	nested := artel.MessageID("")
	for _, m := range b.messages(c) {
		if m.Within != "" {
			nested = m.ID
		}
	}
	if nested == "" {
		t.Fatal("there is no nested message")
	}
	text := "another"
	_, switched := b.Conversations.Switch(apptest.Context(t), c, nested)
	_, sent := b.Runs.Send(apptest.Context(t), c, run.Input{Text: "Go on.", Parent: &nested})
	_, queued := b.Runs.Send(apptest.Context(t), c, run.Input{Text: "Go on.", Parent: &nested, Queue: true})
	_, edited := b.Runs.Edit(apptest.Context(t), c, nested, run.Edit{Text: &text})
	_, retried := b.Runs.Edit(apptest.Context(t), c, nested, run.Edit{})
	_, preview := b.Previews.Build(apptest.Context(t), c, run.Input{Text: "Go on.", Parent: &nested})
	for what, err := range map[string]error{
		"switch": switched, "send": sent, "queue": queued, "edit": edited, "retry": retried, "preview": preview,
	} {
		if !errors.Is(err, artel.Invalid) || !strings.Contains(err.Error(), "subagent") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if found, err := b.Conversations.Find(apptest.Context(t), c); err != nil || found.Leaf != r.Reply {
		t.Errorf("the branch ends in %s: %v", found.Leaf, err)
	}
}

// TestEditAnswer: an answer that is edited stays an answer, beside the old one,
// and the next request has it.
func TestEditAnswer(t *testing.T) {
	g := answering()
	b := newBench(t, provide(g.generate))
	c := b.conversation()
	first := b.ask(c, "one")
	text := "my own answer"
	e, err := b.Runs.Edit(apptest.Context(t), c, first.Reply, run.Edit{Text: &text})
	if err != nil || e.ID != "" || e.Message == "" || e.State != artel.RunDone {
		t.Fatalf("got %+v, %v", e, err)
	}
	turns := b.turns(c)
	if len(turns) != 2 || !slices.Equal(turns[1].Siblings, []artel.MessageID{first.Reply, e.Message}) {
		t.Fatalf("got %+v", turns)
	}
	if m := turns[1].Message; m.Role != artel.RoleAssistant || !m.Edited || m.Agent != first.Agent || artel.TextOf(m.Parts) != text {
		t.Errorf("got %+v", m)
	}
	b.ask(c, "two")
	if got, want := b.said(c), "one | my own answer | two | answer to two"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var sent []string
	for _, m := range g.calls[len(g.calls)-1].Messages {
		if m.Role == artel.RoleAssistant {
			sent = append(sent, artel.TextOf(m.Parts))
		}
	}
	if !slices.Equal(sent, []string{text}) {
		t.Errorf("the model was sent the answers %q", sent)
	}
	if types := typesOf(b.events(c)); !strings.Contains(types, "message_edited branch_switched") {
		t.Errorf("the events are %s", types)
	}
	if again := b.edited(c, e.Message, run.Edit{}); again.State != artel.RunDone || artel.TextOf(b.turns(c)[1].Parts) != "answer to one" {
		t.Errorf("another answer in place of an edited one: %+v, %q", again, b.said(c))
	}
	empty, files := " ", []string{}
	for what, e := range map[string]run.Edit{"empty": {Text: &empty}, "attachments": {Text: &text, Attachments: &files}} {
		if _, err := b.Runs.Edit(apptest.Context(t), c, first.Reply, e); !errors.Is(err, artel.Invalid) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// TestWhatCannotBeEdited: summaries, results of tools, and answers with calls.
func TestWhatCannotBeEdited(t *testing.T) {
	s := &scriptedModel{turns: [][]model.Delta{
		{model.TextDelta("I look."), calling("c", "list_artifacts")},
		{model.TextDelta("Nothing.")},
		{model.TextDelta("A summary.")},
	}}
	b := newBench(t, provide(s.generate))
	c := b.conversation()
	b.ask(c, "Look.")
	compacted, err := b.Runs.Compact(apptest.Context(t), c, "")
	if err != nil {
		t.Fatal(err)
	}
	if compacted = b.ended(compacted); compacted.State != artel.RunDone {
		t.Fatalf("got %+v", compacted)
	}
	before := len(b.messages(c))
	text := "another"
	seen := map[string]bool{}
	for _, m := range b.messages(c) {
		want := ""
		switch {
		case m.Summary:
			want = "summary"
		case m.Role == artel.RoleTool:
			want = "result of a tool"
		case artel.HasCalls(m.Parts):
			want = "calls tools"
		default:
			continue
		}
		seen[want] = true
		if _, err := b.Runs.Edit(apptest.Context(t), c, m.ID, run.Edit{Text: &text}); !errors.Is(err, artel.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	if len(seen) != 3 || len(b.messages(c)) != before {
		t.Errorf("tried %v, and %d messages became %d", seen, before, len(b.messages(c)))
	}
}
