// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline"
)

func rules(config string) []pipeline.Setting {
	return []pipeline.Setting{{ID: pipeline.RegexProcessor, Config: json.RawMessage(config)}}
}

// texts are what is sent, without the role prompt.
func texts(r pipeline.Result) []string {
	var out []string
	for _, m := range r.Request.Messages {
		out = append(out, artel.TextOf(m.Parts))
	}
	return out
}

func stepOf(t *testing.T, r pipeline.Result, id string) pipeline.Step {
	t.Helper()
	for _, s := range r.Record.Processors {
		if s.ID == id {
			return s
		}
	}
	t.Fatalf("no step %s", id)
	return pipeline.Step{}
}

func TestRulesOfAllLayers(t *testing.T) {
	in := input(service(0), say("1", "user", "x"), say("2", "assistant", "x"), say("3", "user", "x x"))
	stored := slices.Clone(in.History)
	in.Settings.Deployment = rules(`{"rules":[{"id":"a","find":"x","replace":"xA"}]}`)
	in.Settings.Model = rules(`{"rules":[{"id":"m","find":"x","replace":"xM"}]}`)
	in.Settings.Agent = rules(`{"rules":[{"id":"b","find":"A","replace":"AB","roles":["user"],"depth":{"max":0}}]}`)
	in.User = pipeline.Profile{Name: "Ann", Rules: json.RawMessage(`{"rules":[{"id":"c","find":"B|A$","replace":"$&{{user}}{{setvar::v::1}}"},{"id":"d","find":"x","replace":"never","stages":["display"]}]}`)}
	got := build(t, in)
	if diff := cmp.Diff([]string{"xAAnn", "xAAnn", "xABAnn xABAnn"}, texts(got)); diff != "" {
		t.Error("(-want +got):", diff)
	}
	if diff := cmp.Diff(stored, in.History); diff != "" {
		t.Error("the history changed:", diff)
	}
	step := stepOf(t, got, pipeline.RegexProcessor)
	if diff := cmp.Diff([]string{"1", "2", "3"}, step.Changed); diff != "" {
		t.Error("changed (-want +got):", diff)
	}
	var told []string
	for _, l := range step.Logs {
		told = append(told, fmt.Sprint(l.Level, l.Details["rule"], l.Details["count"], l.Details["messages"]))
	}
	if diff := cmp.Diff([]string{"infoa3 [1 2 3]", "infoc3 [1 2 3]", "infob1 [3]"}, told); diff != "" {
		t.Error("told (-want +got):", diff)
	}
}

func TestRulesOfTheModel(t *testing.T) {
	in := input(service(0), say("1", "user", "x"))
	in.Settings.Model = rules(`{"rules":[{"find":"x","replace":"m"}]}`)
	if got := texts(build(t, in)); got[0] != "m" {
		t.Error("the model's alone:", got)
	}
	in.Settings.Agent = []pipeline.Setting{{ID: pipeline.RegexProcessor}}
	if got := texts(build(t, in)); got[0] != "x" {
		t.Error("an entry of the agent without a configuration takes the model's away:", got)
	}
}

// All texts of a message are worked on, results of tools among them; media,
// calls and what a model has thought are not.
func TestRulesOnParts(t *testing.T) {
	in := input(service(0),
		with(say("1", "user", "x"), func(m *artel.Message) { m.Parts = append(m.Parts, artel.Text{Text: "xx"}) }),
		calls("2", "call"), answers("3", "call", "x", artel.Text{Text: "y"}), say("4", "assistant", "x"), say("5", "user", "."))
	in.Settings.Agent = rules(`{"rules":[{"find":"x","replace":"o"},{"find":"o","replace":"0","roles":["tool"]}]}`)
	got := build(t, in)
	want := []artel.Parts{{artel.Text{Text: "o"}, artel.Text{Text: "oo"}}, in.History[1].Parts, {artel.ToolResult{CallID: "call", Content: "0", Parts: artel.Parts{artel.Text{Text: "y"}}}}, {artel.Text{Text: "o"}}, {artel.Text{Text: "."}}}
	for i, m := range got.Request.Messages {
		if diff := cmp.Diff(want[i], m.Parts); diff != "" {
			t.Errorf("message %d (-want +got): %s", i, diff)
		}
	}
}

// A rule that cannot be used is told once, and the others run; so is a
// configuration that cannot be read, and then none runs.
func TestBadRules(t *testing.T) {
	in := input(service(0), say("1", "user", "x"), say("2", "assistant", "x"), say("3", "user", "x"))
	in.Settings.Agent = rules(`{"rules":[{"id":"bad","find":"("},{"find":"x","replace":"o{{nope}}"}]}`)
	in.User.Rules = json.RawMessage(`{"rulez":[]}`)
	got := build(t, in)
	if diff := cmp.Diff([]string{"o{{nope}}", "o{{nope}}", "o{{nope}}"}, texts(got)); diff != "" {
		t.Error("(-want +got):", diff)
	}
	var told []string
	for _, l := range stepOf(t, got, pipeline.RegexProcessor).Logs {
		told = append(told, fmt.Sprint(l.Level, ": ", l.Message))
	}
	want := []string{"error: the user's rules are left out", "warn: macros of a rule are not expanded", "error: a rule is left out", "info: a rule found something"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error("told (-want +got):", diff)
	}

	in.Settings.Agent = rules(`{"rules":[{"find":"x","colour":"red"}]}`)
	got = build(t, in)
	logs := stepOf(t, got, pipeline.RegexProcessor).Logs
	if len(logs) == 0 || logs[len(logs)-1].Level != pipeline.Error || texts(got)[0] != "x" {
		t.Error("a configuration with an unknown key:", logs)
	}
	if _, err := builtIn(t).Processors().Check(in.Settings.Agent); err == nil || !strings.Contains(err.Error(), "colour") {
		t.Error("the settings are not refused:", err)
	}
}

// Prompts of the agent are not changed by rules, and a message may become
// empty.
func TestRulesAndPrompts(t *testing.T) {
	in := input(service(0), say("1", "user", "xx"), say("2", "assistant", "y"), say("3", "user", "x"))
	in.Agent.Prompt = "x"
	in.Settings.Agent = rules(`{"rules":[{"find":"x"}]}`)
	if diff := cmp.Diff([]string{"x", "", "y", ""}, texts(build(t, in))); diff != "" {
		t.Error("(-want +got):", diff)
	}
}
