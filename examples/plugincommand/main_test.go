// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/plugin"
	"github.com/artelhq/artel/pipeline/token"
)

// TestMain is also the plugin, so that the test runs it as a program.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "as-plugin" {
		main()
		return
	}
	m.Run()
}

func TestGlossary(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := plugin.Command{Args: []string{self, "as-plugin"}}.Processor("glossary", plugin.Options{
		After: pipeline.InjectionAssembler, Timeout: plugin.MaxTimeout, Options: json.RawMessage(`{"fathom":"six feet","knot":"one nautical mile in an hour"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	registry, err := pipeline.NewRegistry(token.NewCounter(), append(pipeline.BuiltIn(), p)...)
	if err != nil {
		t.Fatal(err)
	}
	for question, want := range map[string][]string{
		"How many fathoms?": {"You are a pilot.", "Glossary:\nfathom: six feet", "How many fathoms?"},
		"How many feet?":    {"You are a pilot.", "How many feet?"},
	} {
		built, err := registry.Build(t.Context(), pipeline.Input{
			Agent:   pipeline.Agent{Prompt: "You are a pilot."},
			Service: model.Service{ID: "any", Capabilities: model.TextOnly()},
			History: []artel.Message{{ID: "1", Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: question}}}},
			// Formatters would join the two system messages.
			Settings: pipeline.Settings{Disabled: []string{pipeline.MessageFormatters}},
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range built.Messages {
			got = append(got, artel.TextOf(m.Parts))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
