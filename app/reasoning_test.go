// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
)

// TestReasoningAsItComes follows a run whose model stops in the middle of a
// thought, from before and from in between; what it thought is kept.
func TestReasoningAsItComes(t *testing.T) {
	b := newBench(t, play(t, "-- turn 1 --\n@think First this, then that.\nSo it is.\n@call list_artifacts {}\n-- turn 2 --\n@think A second\n@hang\n"))
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	thought, text := "", ""
	b.until(c, func(e artel.Event) bool {
		if e.Type != artel.EventMessageDelta {
			return false
		}
		d := decode[artel.MessageDelta](t, e)
		if d.Reset {
			thought, text = "", ""
		}
		thought, text = thought+d.Reasoning, text+d.Text
		return thought == "A second" && text == ""
	})
	late := decode[artel.MessageDelta](t, b.until(c, ofType(artel.EventMessageDelta)))
	if !late.Reset || late.Reasoning != "A second" || late.Text != "" {
		t.Errorf("who comes late is told %+v", late)
	}
	if _, err := b.Runs.Cancel(apptest.Context(t), r.ID); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, e := range b.events(c) {
		if e.Type != artel.EventMessageCompleted {
			continue
		}
		m := decode[artel.MessageCompleted](t, e)
		for _, p := range m.Message.Parts {
			switch p := p.(type) {
			case artel.Reasoning:
				kept = append(kept, "thought "+p.Text+" of "+string(p.Service))
			case artel.Text:
				kept = append(kept, "text "+p.Text)
			}
		}
	}
	if diff := cmp.Diff([]string{"thought First this, then that. of demo", "text So it is.", "thought A second of demo"}, kept); diff != "" {
		t.Error(diff)
	}
	again := b.askAnother(t, c)
	if again.State != artel.RunDone {
		t.Errorf("the conversation cannot go on: %+v", again.Error)
	}
}

// askAnother sends another message, which another script answers.
func (b *bench) askAnother(t *testing.T, c artel.ConversationID) artel.Run {
	t.Helper()
	b.config.Providers[model.Demo] = play(t, "-- turn 1 --\nFine.\n")
	next := b.open()
	r, err := next.Runs.Send(apptest.Context(t), c, run.Input{Text: "And?"})
	if err != nil {
		t.Fatal(err)
	}
	return b.ended(r)
}

// TestStoredResultsTellWhatEventsTell: the message that is kept of a tool call
// shows the same card as the event that told of it.
func TestStoredResultsTellWhatEventsTell(t *testing.T) {
	b := newBench(t, play(t, writes))
	c := b.conversation()
	b.ask(c, "Write.")
	told := map[artel.CallID]artel.ToolCompleted{}
	for _, e := range b.events(c) {
		if e.Type == artel.EventToolCompleted {
			p := decode[artel.ToolCompleted](t, e)
			told[p.Call] = p
		}
	}
	results := 0
	for _, m := range b.messages(c) {
		for _, p := range m.Parts {
			r, ok := p.(artel.ToolResult)
			if !ok {
				continue
			}
			results++
			e := told[r.CallID]
			if diff := cmp.Diff(e.Metadata, r.Metadata); diff != "" || r.Millis != e.Millis || r.Metadata["content_type"] == nil {
				t.Errorf("%s: %d and %d ms\n%s", r.CallID, r.Millis, e.Millis, diff)
			}
		}
	}
	if results == 0 || results != len(told) {
		t.Errorf("%d results are kept, %d were told", results, len(told))
	}
}

func TestFindingsOfModels(t *testing.T) {
	b := newBench(t, nil)
	found := first(b.Models.Findings(apptest.Context(t)))
	if len(found) != 1 || found[0].Source != model.BuiltIn || found[0].Found != model.FoundReady {
		t.Errorf("got %+v", found)
	}
	wire, err := json.Marshal(found)
	if err != nil || !strings.Contains(string(wire), `"services":["demo"]`) {
		t.Errorf("%s, %v", wire, err)
	}
}
