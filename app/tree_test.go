// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/run"
)

// answering is a model that answers at once.
func answering() *gated {
	g := newGated()
	for range 50 {
		g.may <- struct{}{}
	}
	return g
}

func (b *bench) edited(c artel.ConversationID, m artel.MessageID, e run.Edit) artel.Run {
	b.t.Helper()
	r, err := b.Runs.Edit(apptest.Context(b.t), c, m, e)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.ended(r)
}

func (b *bench) turns(c artel.ConversationID) []app.BranchMessage {
	b.t.Helper()
	turns, err := b.Messages.Turns(apptest.Context(b.t), c, "", 0)
	if err != nil {
		b.t.Fatal(err)
	}
	return turns
}

// TestTree edits, asks again and switches between the branches.
func TestTree(t *testing.T) {
	b := newBench(t, provide(answering().generate))
	c := b.conversation()
	b.ask(c, "one")
	second := b.ask(c, "two")
	text := "zwei"
	edited := b.edited(c, second.Message, run.Edit{Text: &text})
	if got, want := b.said(c), "one | answer to one | zwei | answer to zwei"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	again := b.edited(c, edited.Reply, run.Edit{})
	if got, want := b.said(c), "one | answer to one | zwei | answer to zwei"; got != want || again.Message == edited.Message {
		t.Errorf("asked again: got %q, want %q", got, want)
	}
	turns := b.turns(c)
	if len(turns) != 4 || len(turns[2].Siblings) != 3 || turns[2].Siblings[0] != second.Message || turns[2].Siblings[2] != again.Message || len(turns[3].Siblings) != 1 {
		t.Errorf("got %+v", turns)
	}
	found, err := b.Conversations.Switch(apptest.Context(t), c, second.Message)
	if err != nil || found.Leaf != second.Reply {
		t.Errorf("got %+v, %v", found, err)
	}
	b.ask(c, "three")
	if got, want := b.said(c), "one | answer to one | two | answer to two | three | answer to three"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := b.Conversations.Switch(apptest.Context(t), c, artel.NewMessageID(found.CreatedAt)); !errors.Is(err, artel.NotFound) {
		t.Errorf("got %v", err)
	}
	if n := strings.Count(typesOf(b.events(c)), "branch_switched"); n != 1 {
		t.Errorf("%d events of switching, want 1", n)
	}
}

// TestEditKeepsAttachments: what a message had attached is there on the new
// branch as it was then, whatever became of it on the old one.
func TestEditKeepsAttachments(t *testing.T) {
	b := newBench(t, provide(answering().generate))
	c := b.conversation()
	staged, err := b.Artifacts.Stage(apptest.Context(t), c, app.Upload{Body: strings.NewReader("one"), Filename: "note.txt"})
	if err != nil {
		t.Fatal(err)
	}
	first := b.ended(b.send(c, run.Input{Text: "Read.", Uploads: []artifact.Staged{staged}}))
	text := "two"
	if _, err := b.Edits.Save(apptest.Context(t), app.ArtifactAt{Conversation: c, ID: "note.txt"}, artifact.Draft{Text: &text}); err != nil {
		t.Fatal(err)
	}
	words := "Read it well."
	second := b.edited(c, first.Message, run.Edit{Text: &words})
	if got := b.text(c, "note.txt", second.Message); got != "one" {
		t.Errorf("on the new branch it reads %q", got)
	}
	if got := b.text(c, "note.txt", first.Reply); got != "two" {
		t.Errorf("on the old branch it reads %q", got)
	}
	none := []string{}
	third := b.edited(c, first.Message, run.Edit{Text: &words, Attachments: &none})
	if _, _, err := b.Artifacts.Find(apptest.Context(t), c, "note.txt", third.Message); !errors.Is(err, artel.NotFound) {
		t.Errorf("without attachments: %v", err)
	}
}

// TestMute: models are not sent what is muted.
func TestMute(t *testing.T) {
	g := answering()
	b := newBench(t, provide(g.generate))
	c := b.conversation()
	first := b.ask(c, "one")
	if m, err := b.Messages.Mute(apptest.Context(t), c, first.Message, true); err != nil || !m.Muted {
		t.Fatalf("got %+v, %v", m, err)
	}
	b.ask(c, "two")
	for _, m := range g.calls[len(g.calls)-1].Messages {
		if m.Role == artel.RoleUser && strings.Contains(artel.TextOf(m.Parts), "one") {
			t.Errorf("the model was sent %q", artel.TextOf(m.Parts))
		}
	}
	if m, err := b.Messages.Mute(apptest.Context(t), c, first.Message, false); err != nil || m.Muted {
		t.Errorf("got %+v, %v", m, err)
	}
	if n := strings.Count(typesOf(b.events(c)), "message_muted"); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
}

// TestSwitchDuringRun: the run goes on where it is, and the person stays where
// they went.
func TestSwitchDuringRun(t *testing.T) {
	g := newGated()
	g.may <- struct{}{}
	b := newBench(t, provide(g.generate))
	c := b.conversation()
	first := b.ask(c, "one")
	root := artel.MessageID("")
	r := b.send(c, run.Input{Text: "elsewhere", Parent: &root})
	<-g.came
	<-g.came
	if _, err := b.Conversations.Switch(apptest.Context(t), c, first.Message); err != nil {
		t.Fatal(err)
	}
	g.may <- struct{}{}
	if r = b.ended(r); r.State != artel.RunDone {
		t.Errorf("it ended as %s", r.State)
	}
	if got := b.said(c); got != "one | answer to one" {
		t.Errorf("got %q", got)
	}
}
