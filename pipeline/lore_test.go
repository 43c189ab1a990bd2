// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/lore"
)

// withBooks chooses world books for the agent.
func withBooks(in pipeline.Input, config string, books ...lore.Book) pipeline.Input {
	in.Settings.Agent = append(in.Settings.Agent, pipeline.Setting{ID: pipeline.Lore, Config: json.RawMessage(config)},
		pipeline.Setting{ID: pipeline.MergeSystem, Enabled: new(bool)}, pipeline.Setting{ID: pipeline.MergeRoles, Enabled: new(bool)})
	in.Books = books
	return in
}

func harbour() lore.Book {
	return lore.Book{Name: "Harbour", Entries: []lore.BookEntry{
		{ID: "1", Name: "Pilot", Keys: []string{"pilot"}, Content: "A pilot of {{char}} knows {{user}}."},
		{ID: "2", Constant: true, Content: "The sea is wide.", Position: lore.AfterPrompt, Order: 5},
		{ID: "3", Keys: []string{"/fo+g/i"}, Content: "Fog horn.", Position: lore.AtDepth, Depth: 1, Role: artel.RoleUser},
		{ID: "4", Keys: []string{"horn"}, Content: "It is loud.", Position: lore.AtDepth},
		{ID: "5", Keys: []string{"pilot"}, Content: "{{trim}}"},
		{ID: "6", Keys: []string{"storm"}, Content: "Storms."},
	}}
}

func loreLogs(r pipeline.Result) []string {
	var out []string
	for _, s := range r.Record.Processors {
		for _, l := range s.Logs {
			if s.ID == pipeline.Lore {
				out = append(out, fmt.Sprintf("%s %v %v %v", l.Level, l.Details["name"], l.Details["reason"], l.Details["key"]))
			}
		}
	}
	return out
}

func TestLore(t *testing.T) {
	in := input(service(0), say("0", "user", "A storm?"), say("1", "assistant", "FOOG."), say("2", "user", "Ask the pilot."))
	in.Agent.Prompt, in.Agent.Name, in.User.Name = "You lead.", "Bo", "Ann"
	in.Agent.Presets = []preset{{ID: "p", Text: "Preset."}}
	in = withBooks(in, `{"books":["Harbour","none"]}`, harbour())
	if got := in.Settings.Books(); !cmp.Equal(got, []string{"Harbour", "none"}) {
		t.Errorf("the settings choose %q", got)
	}
	r := build(t, in)
	want := []string{
		"system:A pilot of Bo knows Ann.", "system:You lead.", "system:The sea is wide.", "system:Preset.",
		"user:A storm?", "assistant:FOOG.", "user:Fog horn.", "user:Ask the pilot.", "system:It is loud.",
	}
	if diff := cmp.Diff(want, shown(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	logs := []string{"warn <nil> <nil> <nil>", "info Pilot key pilot", "info /fo+g/i key /fo+g/i", "info horn recursion horn", "info pilot key pilot", "info 2 constant <nil>"}
	if diff := cmp.Diff(logs, loreLogs(r)); diff != "" {
		t.Errorf("logs (-want +got):\n%s", diff)
	}
	if m := r.Messages[0]; m.Origin != pipeline.OriginLore || m.Stability != pipeline.Turn || m.ID != "artel:lore/Harbour/1" {
		t.Errorf("the entry is %+v", m)
	}
	if m := r.Messages[2]; m.Stability != pipeline.Session {
		t.Errorf("the constant entry is %s", m.Stability)
	}
	// A preview, whose message is not stored yet, gives the same.
	in.History[2].ID = "msg_preview"
	if again := build(t, in); again.Record.RequestHash != r.Record.RequestHash {
		t.Error("with another id, the request is another one")
	}
	// A round of tools does not change what fired.
	in.History = append(in.History, calls("3", "c"), answers("4", "c", "a storm"))
	if got := strings.Join(shown(build(t, in)), "\n"); strings.Contains(got, "Storms.") || !strings.Contains(got, "A pilot of Bo") {
		t.Errorf("after a tool:\n%s", got)
	}
	// Switched off, the books do nothing.
	in.Settings.Agent[0].Enabled = new(bool)
	if r := build(t, in); strings.Contains(strings.Join(shown(r), "\n"), "pilot of") || in.Settings.Books() != nil {
		t.Errorf("disabled: %q", shown(r))
	}
}

// What does not fit the budget is named, and a quarter of the window is the
// default.
func TestLoreBudget(t *testing.T) {
	in := input(service(400), say("1", "user", "pilot"))
	b := harbour()
	b.Entries[5] = lore.BookEntry{ID: "6", Name: "Long", Keys: []string{"pilot"}, Content: strings.Repeat("x", 90), Order: 9}
	r := build(t, withBooks(in, `{"books":["Harbour"],"scan_depth":1}`, b))
	want := []string{"info 2 constant <nil>", "warn Pilot budget pilot", "warn pilot budget pilot", "warn Long budget pilot"}
	if diff := cmp.Diff(want, loreLogs(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r = build(t, withBooks(in, `{"books":["Harbour"],"budget":200}`, b))
	if got := strings.Join(loreLogs(r), ","); strings.Contains(got, "budget") {
		t.Errorf("with a larger budget: %s", got)
	}
}
