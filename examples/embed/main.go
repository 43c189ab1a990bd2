// SPDX-License-Identifier: Apache-2.0

// Command embed runs an agent inside a program of your own, without a server
// and without a model: the demo provider acts as one. It sends a message with
// a file and prints what happens.
//
//	go run ./examples/embed
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store/sqlite"
)

func main() {
	// Every call names who asks.
	if err := talk(artel.WithOwner(context.Background(), artel.Local), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func talk(ctx context.Context, w io.Writer) (err error) {
	db, err := sqlite.Open(ctx, sqlite.Memory, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	blobs := blob.NewMemory()
	a, err := app.New(app.Config{
		Store: db, Blobs: blobs, Notifier: event.NewNotifier(),
		Services: model.NewRegistry(nil, ""), // the demo is always there
		// openai.New makes a provider for real models.
		Providers: map[model.Dialect]model.Provider{model.Demo: demo.New(blobs, demo.Options{})},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close(ctx)) }() // waits for runs

	conversation, err := a.Conversations.Create(ctx, app.NewConversation{Title: "Embedded"})
	if err != nil {
		return err
	}
	staged, err := a.Artifacts.Stage(ctx, conversation.ID, app.Upload{Filename: "notes.md", Body: strings.NewReader("# Notes\n\nThe tide is late.\n")})
	if err != nil {
		return err
	}
	files, err := a.Artifacts.Add(ctx, conversation.ID, []artifact.Staged{staged})
	if err != nil {
		return err
	}
	run, err := a.Runs.Send(ctx, conversation.ID, run.Input{Text: "Read this and report.", Attachments: []string{string(files[0].ID)}})
	if err != nil {
		return err
	}
	for e, err := range a.Events.Follow(ctx, conversation.ID, 0, 0) {
		if err != nil {
			return err
		}
		if err := show(w, e); err != nil {
			return err
		}
		if e.Type == artel.EventRunFinished && e.Run == run.ID {
			break
		}
	}
	_, report, err := a.Artifacts.Find(ctx, conversation.ID, "report", "")
	if err == nil && report != nil {
		fmt.Fprintf(w, "\n%s", *report)
	}
	return err
}

// show prints the events that a person cares about.
func show(w io.Writer, e artel.Event) error {
	switch e.Type {
	case artel.EventToolStarted:
		var p artel.ToolStarted
		if err := json.Unmarshal(e.Data, &p); err != nil {
			return err
		}
		fmt.Fprintln(w, "calls", p.Name)
	case artel.EventArtifactUpdated:
		var p artel.ArtifactUpdated
		if err := json.Unmarshal(e.Data, &p); err != nil {
			return err
		}
		fmt.Fprintf(w, "%s is at version %d\n", p.ID, p.Version)
	case artel.EventRunFinished:
		var p artel.RunFinished
		if err := json.Unmarshal(e.Data, &p); err != nil {
			return err
		}
		fmt.Fprintln(w, "the run is", p.State)
	}
	return nil
}
