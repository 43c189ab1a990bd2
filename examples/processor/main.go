// SPDX-License-Identifier: Apache-2.0

// Command processor adds a processor of its own to the context pipeline, builds
// a request with it, and prints what it did.
//
//	go run ./examples/processor
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/token"
)

func main() {
	if err := work(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// units says in which units the agent is to answer. It stands before the token
// limiter, so that what it adds is in the budget.
func units() pipeline.Processor {
	return pipeline.Processor{
		ID: "units", Name: "Units", Description: "Says in which units to answer.",
		Priority: pipeline.PriorityInjection + 1,
		Fields:   []pipeline.Field{{Key: "system", Label: "Units", Type: pipeline.FieldSelect, Options: []string{"metric", "imperial"}, Default: "metric"}},
		Adds:     pipeline.Static,
		Process: func(_ context.Context, d *pipeline.Draft) error {
			conf := struct {
				System string `json:"system"`
			}{"metric"}
			if err := d.Config(&conf); err != nil {
				return err
			}
			note := pipeline.Message{
				ID: "units", Role: artel.RoleSystem, Parts: artel.Parts{artel.Text{Text: "Answer in " + conf.System + " units."}},
				Origin: pipeline.OriginPlugin, Stability: pipeline.Static,
			}
			d.Messages = append([]pipeline.Message{note}, d.Messages...)
			return nil
		},
	}
}

func work(ctx context.Context, w io.Writer) error {
	registry, err := pipeline.NewRegistry(token.NewCounter(), append(pipeline.BuiltIn(), units())...)
	if err != nil {
		return err
	}
	built, err := registry.Build(ctx, pipeline.Input{
		Agent:   pipeline.Agent{Name: "pilot", Prompt: "You are a pilot."},
		Service: model.Service{ID: "any", Capabilities: model.TextOnly()},
		History: []artel.Message{{ID: "1", Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "How deep is it?"}}}},
		Settings: pipeline.Settings{Agent: []pipeline.Setting{
			{ID: "units", Config: []byte(`{"system": "imperial"}`)},
		}},
	})
	if err != nil {
		return err
	}
	for _, m := range built.Messages {
		fmt.Fprintf(w, "%s: %s\n", m.Role, strings.ReplaceAll(artel.TextOf(m.Parts), "\n\n", " / "))
	}
	for _, s := range built.Record.Processors {
		if len(s.Added) > 0 {
			fmt.Fprintln(w, s.ID, "added", s.Added)
		}
	}
	return nil
}
