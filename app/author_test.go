// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run/record"
)

// replacing is a processor that replaces a word in all texts of the history, in
// the calls in which it is told to.
func replacing(id string, priority int, old, new string, on func() bool) pipeline.Processor {
	return pipeline.Processor{
		ID: id, Name: id, Description: id, Priority: priority, Icon: "x", Adds: pipeline.Turn,
		Process: func(_ context.Context, d *pipeline.Draft) error {
			if !on() {
				return nil
			}
			for i, m := range d.Messages {
				parts := slices.Clone(m.Parts)
				for j, p := range parts {
					if t, ok := p.(artel.Text); ok && strings.Contains(t.Text, old) && m.Origin != pipeline.OriginPreset {
						t.Text = strings.ReplaceAll(t.Text, old, new)
						parts[j] = t
						d.Messages[i].Parts = parts
					}
				}
			}
			return nil
		},
	}
}

// Two processors that change one message are told apart: each with what the
// message was before it and behind it, and the one that made two calls begin to
// differ where they do.
func TestEachProcessorsOwnWork(t *testing.T) {
	calls := 0
	never, always := func() bool { return calls > 1 }, func() bool { return true }
	l := &listener{}
	b := newBench(t, provide(l.generate), func(c *app.Config) {
		c.Options.Context.Processors = []pipeline.Processor{
			replacing("late-word", 920, "late", "LATE", never),
			replacing("early-word", 930, "early", "EARLY", always),
			replacing("prefix", 940, "Begin", "Well begun", always),
		}
	})
	rules := pipeline.Setting{ID: pipeline.RegexProcessor, Config: json.RawMessage(`{"rules":[{"id":"shout","find":"by rule","replace":"BY RULE"}]}`)}
	if _, err := b.Pipeline.SetLevel(apptest.Context(t), settings.LevelAt{Agent: "lead_agent"}, []pipeline.Setting{rules}, 0); err != nil {
		t.Fatal(err)
	}
	c := b.conversation()
	calls++
	first := b.ask(c, "Begin: early and late, by rule.")
	calls++
	second := b.ask(c, "And on.")
	key := record.ContextKey{Run: second.ID, Number: 1}
	all, err := b.Contexts.Passes(apptest.Context(t), key, string(first.Message), "none")
	if err != nil {
		t.Fatal(err)
	}
	passes := all[string(first.Message)]
	type pass struct{ processor, before, after string }
	var got []pass
	for _, p := range passes {
		got = append(got, pass{p.Processor, artel.TextOf(p.Before), artel.TextOf(p.After)})
	}
	want := []pass{
		{pipeline.RegexProcessor, "Begin: early and late, by rule.", "Begin: early and late, BY RULE."},
		{"late-word", "Begin: early and late, BY RULE.", "Begin: early and LATE, BY RULE."},
		{"early-word", "Begin: early and LATE, BY RULE.", "Begin: EARLY and LATE, BY RULE."},
		{"prefix", "Begin: EARLY and LATE, BY RULE.", "Well begun: EARLY and LATE, BY RULE."},
	}
	if !slices.Equal(got, want) || !slices.Equal(passes[0].Rules, []string{"shout"}) {
		t.Errorf("got %v, want %v", passes, want)
	}
	d, err := b.Contexts.Diff(apptest.Context(t), key, record.ContextKey{})
	if err != nil || d.First == nil || !slices.Equal(d.First.Processors, []string{"late-word"}) || !strings.HasPrefix(d.First.Is, "LATE") {
		t.Errorf("who made the calls differ: %+v, %v", d.First, err)
	}
	again, err := b.open().Contexts.Passes(apptest.Context(t), key, string(first.Message))
	if err != nil || len(again[string(first.Message)]) != len(want) {
		t.Errorf("in another process: %v, %v", again, err)
	}
}

// What each of several rules of one processor made of a message is told apart,
// also by another process.
func TestEachRulesOwnWork(t *testing.T) {
	l := &listener{}
	b := newBench(t, provide(l.generate))
	rules := pipeline.Setting{ID: pipeline.RegexProcessor, Config: json.RawMessage(`{"rules":[
		{"id":"last","find":"b","replace":"c","order":2},{"id":"first","find":"a","replace":"b","order":1},{"id":"never","find":"z","order":1},{"id":"end","find":"$(?![^])","replace":"!","order":3}]}`)}
	if _, err := b.Pipeline.SetLevel(apptest.Context(t), settings.LevelAt{Agent: "lead_agent"}, []pipeline.Setting{rules}, 0); err != nil {
		t.Fatal(err)
	}
	run := b.ask(b.conversation(), "a b")
	for name, a := range map[string]*app.App{"here": b.App, "in another process": b.open()} {
		all, err := a.Contexts.Passes(apptest.Context(t), record.ContextKey{Run: run.ID, Number: 1}, string(run.Message))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range all[string(run.Message)] {
			if p.Processor == pipeline.RegexProcessor {
				got = append(got, fmt.Sprint(p.Rules, " ", artel.TextOf(p.Before), " > ", artel.TextOf(p.After)))
			}
		}
		want := []string{"[first] a b > b b", "[last] b b > c c", "[end] c c > c c!"}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
