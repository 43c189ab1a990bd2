// SPDX-License-Identifier: Apache-2.0

// Command editartifact keeps an artifact in a database in memory, edits it by
// quoting old text, is refused once, and reads an old version back.
//
//	go run ./examples/editartifact
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

func main() {
	if err := work(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func work(ctx context.Context, w io.Writer) (err error) {
	db, err := sqlite.Open(ctx, sqlite.Memory, sqlite.Options{}) // a path keeps it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	// Artifacts belong to a conversation, and everything has an owner.
	now := time.Now()
	conversation := artel.Conversation{ID: artel.NewConversationID(now), Title: "Groceries", CreatedAt: now, UpdatedAt: now}
	if err := db.Update(ctx, artel.Local, func(tx store.Tx) error { return tx.Conversations.Create(conversation) }); err != nil {
		return err
	}
	artifacts := artifact.New(db, blob.NewMemory(), artifact.Options{})
	desk := artifacts.Workspace(artifact.WorkspaceConfig{Owner: artel.Local, Conversation: conversation.ID, Author: artifact.AuthorUser})

	if _, err := desk.Create(ctx, "list", "Shopping list", "- [ ] bread\n- [ ] milk\n", "text/markdown"); err != nil {
		return err
	}
	changed, result, err := desk.Edit.Update(ctx, "list", []edit.Edit{{Old: "[ ] milk", New: "[x] milk"}}, artifact.UpdateOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "version %d, matched %s at %d\n", changed.Version, result.Hits[0].Layer, result.Hits[0].Start)

	// A refusal changes nothing, and says how to mend the edit.
	_, _, err = desk.Edit.Update(ctx, "list", []edit.Edit{{Old: "- [", New: "* ["}}, artifact.UpdateOptions{})
	if refusal, ok := errors.AsType[*edit.Refusal](err); ok {
		fmt.Fprintf(w, "refused: %s, %d places\n", refusal.Kind, len(refusal.Places))
	} else if err != nil {
		return err
	}
	for number := range changed.Version {
		text, _, err := artifacts.Text(ctx, artel.Local, conversation.ID, "list", number+1, "")
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "version %d:\n%s", number+1, text)
	}
	return nil
}
