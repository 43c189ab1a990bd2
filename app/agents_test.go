// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// make keeps an agent.
func (b *bench) make(d agent.Definition) settings.Agent {
	b.t.Helper()
	a, err := b.Agents.Create(apptest.Context(b.t), d)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

// shippedAgents returns the agents that come with Artel.
func shippedAgents(t *testing.T) []agent.Definition {
	t.Helper()
	all, err := agent.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// An agent that somebody has made answers with its prompt and its tools, gives
// work to another made one, and is known wherever agents are named.
func TestMadeAgents(t *testing.T) {
	var mu sync.Mutex
	seen := map[string][]string{} // the tools that came with each role prompt
	b := newBench(t, provide(func(_ context.Context, r *model.Request, yield func(model.Delta, error) bool) {
		raw, err := json.Marshal(r.Messages)
		if err != nil {
			t.Error(err)
		}
		who, done := "crew", strings.Contains(string(raw), "Aye.")
		if strings.Contains(string(raw), "You are the pilot.") {
			who = "pilot"
		}
		mu.Lock()
		defer mu.Unlock()
		seen[who] = nil
		for _, s := range r.Tools {
			seen[who] = append(seen[who], s.Name)
		}
		if who == "pilot" && !done {
			_ = yield(call("call_subagent", m{"agent": "crew", "instruction": "Row."}), nil) && yield(model.Finish{Reason: model.StopTools}, nil)
			return
		}
		_ = yield(model.TextDelta("Aye."), nil) && yield(model.Finish{Reason: model.StopEnd}, nil)
	}))
	b.make(agent.Definition{Name: "crew", Prompt: "You are the crew.", Tools: []string{"read_artifact"}})
	pilot := b.make(agent.Definition{Name: "pilot", Prompt: " You are the pilot.\r\n", Subagents: []artel.AgentName{"crew"}})
	if pilot.Prompt != "You are the pilot." || pilot.ReadOnly() || pilot.Revision == 0 || pilot.Runs.ID == "" {
		t.Errorf("made: %+v", pilot)
	}
	names, err := b.Pipeline.Agents(apptest.Context(t))
	var want []artel.AgentName
	for _, d := range shippedAgents(t) {
		want = append(want, d.Name)
	}
	want = append(want, "crew", "pilot")
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("the pipeline knows %v, %v; want %v", names, err, want)
	}
	if _, err := b.Pipeline.SetLevel(apptest.Context(t), settings.LevelAt{Agent: "pilot"}, []pipeline.Setting{{ID: "merge-roles", Enabled: new(bool)}}, settings.AnyRevision); err != nil {
		t.Errorf("its processors: %v", err)
	}

	c, err := b.Conversations.Create(apptest.Context(t), app.NewConversation{Agent: "pilot"})
	if err != nil {
		t.Fatal(err)
	}
	if r := b.ask(c.ID, "Go."); r.State != artel.RunDone || r.Agent != "pilot" {
		t.Fatalf("got %+v; log: %s", r, b.log)
	}
	if diff := cmp.Diff(map[string][]string{"pilot": {"call_subagent"}, "crew": {"read_artifact"}}, seen); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	// Whoever loses a subagent goes on without; who is gone answers nobody.
	if err := b.Agents.Delete(apptest.Context(t), "crew", settings.AnyRevision); err != nil {
		t.Fatal(err)
	}
	if flaws, err := b.Agents.Check(apptest.Context(t), pilot.Definition); err != nil || len(flaws) != 1 || flaws[0].Field != "subagents" {
		t.Errorf("got %v, %v", flaws, err)
	}
	if r := b.ask(c.ID, "Aye."); r.State != artel.RunDone {
		t.Errorf("without its crew: %+v", r)
	}
	if err := b.Agents.Delete(apptest.Context(t), "pilot", pilot.Revision); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Runs.Send(apptest.Context(t), c.ID, run.Input{Text: "Go."}); artel.KindOf(err) != artel.Invalid {
		t.Errorf("got %v", err)
	}
	if r := b.ended(b.send(c.ID, run.Input{Text: "Go.", Agent: agent.Lead})); r.State != artel.RunDone {
		t.Errorf("another agent in its conversation: %+v", r)
	}
	if _, err := b.Pipeline.Level(apptest.Context(t), settings.LevelAt{Agent: "pilot"}); artel.KindOf(err) != artel.NotFound {
		t.Errorf("its processors: %v", err)
	}
	pilot.Subagents = nil
	b.make(pilot.Definition)
	if l, err := b.Pipeline.Level(apptest.Context(t), settings.LevelAt{Agent: "pilot"}); err != nil || l.Set {
		t.Errorf("the processors of another one of the name: %+v, %v", l, err)
	}
}

// What is written to a store by hand hides no other agent, and an operator's
// file hides one of its name, which is kept.
func TestAgentsBesideOthers(t *testing.T) {
	b := newBench(t, nil)
	whole := agent.Definition{
		Name: "pilot", Description: "中文", Service: "demo", Tools: []string{"read_artifact"}, Permissions: agent.Permissions{"*": agent.Ask},
		Limits: agent.Limits{Turns: 3, Cost: 0.25}, Presets: []pipeline.Preset{{ID: "a", Text: "Hush."}}, Prompt: "p",
		Compaction: agent.Compaction{Threshold: 50}, Processors: []pipeline.Setting{{ID: "token-limiter", Config: []byte(`{"keep_chars":10}`)}},
	}
	a := b.make(whole)
	if diff := cmp.Diff(whole, a.Definition, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	err := b.config.Store.Update(apptest.Context(t), artel.Local, func(tx store.Tx) error {
		_, err := tx.Settings.Put(store.Setting{Name: "definition/broken", Value: json.RawMessage(`7`)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	own := shippedAgents(t)
	all, err := b.Agents.List(apptest.Context(t))
	if err != nil || len(all) != len(own)+1 || all[len(own)].Name != "pilot" || !strings.Contains(b.log.String(), "an agent is left out") {
		t.Errorf("got %v, %v", all, err)
	}
	if _, err := b.Agents.Find(apptest.Context(t), "broken"); artel.KindOf(err) != artel.Internal {
		t.Errorf("got %v", err)
	}
	if err := b.Agents.Delete(apptest.Context(t), "broken", settings.AnyRevision); err != nil {
		t.Errorf("one that cannot be read cannot be deleted either: %v", err)
	}

	shipped := b.config.Agents
	b.config.Agents = append(own, agent.Definition{Name: "pilot", Prompt: "The operator's.", File: "pilot.md"})
	later := b.open()
	got, err := later.Agents.Find(apptest.Context(t), "pilot")
	if err != nil || got.Source != settings.AgentFile || got.Prompt != "The operator's." {
		t.Errorf("got %+v, %v", got, err)
	}
	for what, err := range map[string]error{
		"save": func() error { _, err := later.Agents.Save(apptest.Context(t), whole, settings.AnyRevision); return err }(), "delete": later.Agents.Delete(apptest.Context(t), "pilot", settings.AnyRevision),
	} {
		if artel.CodeOf(err) != settings.CodeAgentReadOnly || !strings.Contains(err.Error(), "pilot.md") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if all, err := later.Agents.List(apptest.Context(t)); err != nil || len(all) != len(own)+1 {
		t.Errorf("got %v, %v", all, err)
	}
	b.config.Agents = shipped
	if got, err := b.open().Agents.Find(apptest.Context(t), "pilot"); err != nil || got.Prompt != "p" {
		t.Errorf("what was kept: %+v, %v", got, err)
	}
}

// What is wrong is told by field before anything is kept.
func TestAgentsAreChecked(t *testing.T) {
	b := newBench(t, nil)
	for _, d := range []agent.Definition{
		{Name: "a", Prompt: " \n "},
		{Name: "a/b", Prompt: "p"},
		{Name: "a", Prompt: "p", Tools: []string{"raed"}},
		{Name: "a", Prompt: "p", Processors: []pipeline.Setting{{ID: "token-limiter", Config: []byte(`{"colour":1}`)}}},
	} {
		flaws, err := b.Agents.Check(apptest.Context(t), d)
		if err != nil || len(flaws) != 1 {
			t.Errorf("%+v: %v, %v", d, flaws, err)
		}
		if _, err := b.Agents.Create(apptest.Context(t), d); artel.KindOf(err) != artel.Invalid {
			t.Errorf("%+v: %v", d, err)
		}
	}
	if _, err := b.Agents.Save(apptest.Context(t), agent.Definition{Name: "a", Prompt: "p"}, settings.AnyRevision); artel.KindOf(err) != artel.NotFound {
		t.Errorf("saving what there is not: %v", err)
	}
	a := b.make(agent.Definition{Name: "a", Prompt: "p"})
	for _, revision := range []int{0, a.Revision + 1} {
		if _, err := b.Agents.Save(apptest.Context(t), a.Definition, revision); artel.CodeOf(err) != app.CodeStale {
			t.Errorf("over revision %d: %v", revision, err)
		}
	}
	if err := b.Agents.Delete(apptest.Context(t), "a", a.Revision+1); artel.CodeOf(err) != app.CodeStale {
		t.Errorf("got %v", err)
	}
}
