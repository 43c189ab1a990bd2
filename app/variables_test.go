// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// A prompt counts the turns of a branch: once for each message that is
// answered, however many model calls that takes, and not for previews.
func TestVariablesOfBranches(t *testing.T) {
	l := &listener{answer: func(n int, _ *model.Request) []model.Delta {
		if n == 2 {
			return []model.Delta{callOf("list_artifacts", `{}`)}
		}
		return []model.Delta{model.TextDelta("Yes.")}
	}}
	b := newBench(t, provide(l.generate), func(c *app.Config) {
		d := leadAgent(t)
		d.Prompt = "{{incvar::n}}{{incglobalvar::g}}Turn {{getvar::n}}, {{getglobalvar::g}}."
		c.Agents = []agent.Definition{d}
	})
	c := b.conversation()
	turns := func(in run.Input, want ...string) artel.Run {
		t.Helper()
		p, err := b.Previews.Build(apptest.Context(t), c, in)
		if err != nil || !strings.Contains(artel.TextOf(p.Blocks[0].Parts), want[0]) {
			t.Errorf("%q: the preview begins with %q, %v", in.Text, artel.TextOf(p.Blocks[0].Parts), err)
		}
		before := len(l.requests)
		run := b.ended(b.send(c, in))
		if len(l.requests)-before != len(want) {
			t.Fatalf("%q: %d calls", in.Text, len(l.requests)-before)
		}
		for i, r := range l.requests[before:] {
			if got := artel.TextOf(r.Messages[0].Parts); !strings.Contains(got, want[i]) {
				t.Errorf("%q, call %d: %q, want %q", in.Text, i, got, want[i])
			}
		}
		return run
	}
	first := turns(run.Input{Text: "one"}, "Turn 1, 1.")
	turns(run.Input{Text: "two"}, "Turn 2, 2.", "Turn 2, 2.")
	turns(run.Input{Text: "three"}, "Turn 3, 3.")
	turns(run.Input{Text: "two again", Parent: &first.Reply}, "Turn 2, 2.")
	turns(run.Input{Text: "one again", Parent: new(artel.MessageID)}, "Turn 1, 1.")

	// They go with the conversation, to each branch of it.
	done, err := b.bringIn(apptest.Context(t), b.zip(c))
	if err != nil {
		t.Fatal(err)
	}
	brought, _, err := b.Messages.List(apptest.Context(t), done.Conversation.ID, store.Page{Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	c = done.Conversation.ID
	for text, want := range map[string]string{"three": "Turn 4, 4.", "two again": "Turn 3, 3.", "one": "Turn 2, 2."} {
		i := slices.IndexFunc(brought, func(m artel.Message) bool { return m.Role == artel.RoleUser && artel.TextOf(m.Parts) == text })
		reply := slices.IndexFunc(brought, func(m artel.Message) bool {
			return m.Role == artel.RoleAssistant && m.Parent == brought[i].ID && artel.TextOf(m.Parts) == "Yes."
		})
		turns(run.Input{Text: "on from " + text, Parent: &brought[reply].ID}, want)
	}
}
