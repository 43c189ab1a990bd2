// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// undeletes are the calls for a conversation that is deleted or being imported;
// each must fail for another owner.
func (c *check) undeletes(f full) map[string]func(store.Tx) error {
	return map[string]func(store.Tx) error{
		"Conversations.Restore": func(tx store.Tx) error { return tx.Conversations.Restore(f.id) },
		"Imports.Continue":      func(tx store.Tx) error { return tx.Imports.Continue(f.id, c.now) },
		"Imports.Finish":        func(tx store.Tx) error { return tx.Imports.Finish(f.id) },
	}
}

// A full conversation has one of everything in it.
type full struct {
	id       artel.ConversationID
	message  artel.MessageID
	digest   artel.Digest // of the version of "doc"
	version  int
	unfolded int // the number of an edit
	run      artel.RunID
}

// fill makes a full conversation that a search for text finds. It has a run
// whose lease ends after a second.
func (c *check) fill(owner artel.Owner, text string) full {
	now := c.now
	f := full{
		id: artel.NewConversationID(now), message: artel.NewMessageID(now), run: artel.NewRunID(now),
	}
	f.digest = artel.NewDigest(sha256.Sum256([]byte(f.id)))
	c.Must("fill", c.s.Update(c.Context(), owner, func(tx store.Tx) (err error) {
		if err := tx.Conversations.Create(artel.Conversation{ID: f.id, CreatedAt: now, UpdatedAt: now}); err != nil {
			return err
		}
		if err := tx.Messages.Create(artel.Message{
			ID: f.message, Conversation: f.id, Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: text}}, CreatedAt: now,
		}); err != nil {
			return err
		}
		v := artel.Version{Message: f.message, Digest: f.digest, CreatedAt: now}
		if f.version, err = tx.Journal.Append(f.id, "doc", v, &text); err != nil {
			return err
		}
		v.Number = f.version
		if err := tx.Journal.Fold(f.id, "doc", v, &text); err != nil {
			return err
		}
		if f.unfolded, err = tx.Journal.Append(f.id, "doc", artel.Version{CreatedAt: now}, &text); err != nil {
			return err
		}
		if _, err := tx.Events.Append(f.id, artel.Event{Type: "x", Time: now, Data: json.RawMessage(`1`)}); err != nil {
			return err
		}
		err = tx.Runs.Create(artel.Run{ID: f.run, Conversation: f.id, Message: f.message, State: artel.RunRunning, StartedAt: now},
			store.Lease{Holder: "p", Until: c.at(1)})
		if err != nil {
			return err
		}
		if err := tx.Variables.Put(f.id, "msg_v", json.RawMessage(`{}`)); err != nil {
			return err
		}
		if err := tx.Notes.Put(f.note("full", now)); err != nil {
			return err
		}
		_, err = tx.Contexts.Add(c.record(f.id, f.run, 1), []store.Segment{{Digest: f.digest, Body: []byte(text)}})
		return err
	}))
	return f
}

// calls are all that can be asked of a conversation, named after the methods of a
// Tx; each must fail where it is missing.
func (c *check) calls(f full) map[string]func(store.Tx) error {
	text := "theirs"
	return map[string]func(store.Tx) error{
		"Conversations.Get":    func(tx store.Tx) error { _, err := tx.Conversations.Get(f.id); return err },
		"Conversations.Update": func(tx store.Tx) error { return tx.Conversations.Update(artel.Conversation{ID: f.id, Title: text}) },
		"Messages.Nested":      func(tx store.Tx) error { _, err := tx.Messages.Nested(f.id, f.run); return err },
		"Messages.Children":    func(tx store.Tx) error { _, err := tx.Messages.Children(f.id, ""); return err },
		"Journal.FoldInner":    func(tx store.Tx) error { _, err := tx.Journal.FoldInner(f.id, "doc", f.run, 0, 99, 9); return err },
		"Journal.Replay":       func(tx store.Tx) error { _, err := tx.Journal.Replay(f.id, "doc", f.version); return err },
		"Runs.Usage":           func(tx store.Tx) error { _, err := tx.Runs.Usage(f.id); return err },
		"Events.Contexts":      func(tx store.Tx) error { _, err := tx.Events.Contexts(f.id, 99, 9); return err },
		"Events.Milestones":    func(tx store.Tx) error { _, err := tx.Events.Milestones(f.id, 9); return err },
		"Imports.Version":      func(tx store.Tx) error { return tx.Imports.Version(f.id, "doc", artel.Version{Number: 99}, &text) },
		"Conversations.Delete": func(tx store.Tx) error { return tx.Conversations.Delete(f.id, c.now) },
		"Messages.Create":      func(tx store.Tx) error { return tx.Messages.Create(artel.Message{ID: "msg_t", Conversation: f.id}) },
		"Messages.Create under a message": func(tx store.Tx) error {
			return tx.Messages.Create(artel.Message{ID: "msg_t", Conversation: f.id, Parent: f.message})
		},
		"Messages.Get":      func(tx store.Tx) error { _, err := tx.Messages.Get(f.message); return err },
		"Messages.Path":     func(tx store.Tx) error { _, err := tx.Messages.Path(f.id, f.message, 0); return err },
		"Messages.List":     func(tx store.Tx) error { _, _, err := tx.Messages.List(f.id, store.Page{}); return err },
		"Messages.SetMuted": func(tx store.Tx) error { return tx.Messages.SetMuted(f.message, true) },
		"Artifacts.Heads":   func(tx store.Tx) error { _, err := tx.Artifacts.Heads(f.id, f.message); return err },
		"Artifacts.Head":    func(tx store.Tx) error { _, err := tx.Artifacts.Head(f.id, "doc", f.message); return err },
		"Artifacts.Exists":  func(tx store.Tx) error { _, err := tx.Artifacts.Exists(f.id, "doc"); return err },
		"Versions.Get":      func(tx store.Tx) error { _, err := tx.Versions.Get(f.id, "doc", f.version); return err },
		"Journal.DropText":  func(tx store.Tx) error { return tx.Journal.DropText(f.id, "doc", f.version) },
		"Journal.Append":    func(tx store.Tx) error { _, err := tx.Journal.Append(f.id, "doc", artel.Version{}, &text); return err },
		"Journal.Fold": func(tx store.Tx) error {
			return tx.Journal.Fold(f.id, "doc", artel.Version{Number: f.unfolded}, &text)
		},
		"Journal.Compact":    func(tx store.Tx) error { return tx.Journal.Compact(f.id, "doc", nil, nil) },
		"Versions.Artifacts": func(tx store.Tx) error { _, err := tx.Versions.Artifacts(f.id); return err },
		"Versions.List":      func(tx store.Tx) error { _, err := tx.Versions.List(f.id, "doc"); return err },
		"Journal.Edits":      func(tx store.Tx) error { _, err := tx.Journal.Edits(f.id, store.EditQuery{}); return err },
		"Versions.Text":      func(tx store.Tx) error { _, err := tx.Versions.Text(f.id, "doc", f.version); return err },
		"Versions.Claim":     func(tx store.Tx) error { return tx.Versions.Claim(f.id, []artel.ArtifactID{"doc"}, f.message) },
		"Versions.Find":      func(tx store.Tx) error { _, err := tx.Versions.Find(f.digest); return err },
		"Runs.Create": func(tx store.Tx) error {
			return tx.Runs.Create(artel.Run{ID: "run_t", Conversation: f.id, State: artel.RunQueued}, store.Lease{})
		},
		"Contexts.Add": func(tx store.Tx) error { _, err := tx.Contexts.Add(c.record(f.id, f.run, 2), nil); return err },
		"Contexts.Get": func(tx store.Tx) error { _, err := tx.Contexts.Get(f.run, 1); return err },
		"Contexts.List": func(tx store.Tx) error {
			_, err := tx.Contexts.List(store.ContextQuery{Conversation: f.id})
			return err
		},
		"Contexts.Segments": func(tx store.Tx) error {
			_, err := tx.Contexts.Segments(f.id, []artel.Digest{f.digest})
			return err
		},
		"Contexts.Report": func(tx store.Tx) error {
			return tx.Contexts.Report(f.run, 1, store.ContextReport{Usage: &artel.Usage{}})
		},
		"Contexts.Trim":      func(tx store.Tx) error { return tx.Contexts.Trim(f.id, 0) },
		"Variables.Put":      func(tx store.Tx) error { return tx.Variables.Put(f.id, "msg_v", json.RawMessage(`1`)) },
		"Variables.On":       func(tx store.Tx) error { _, err := tx.Variables.On(f.id, []artel.MessageID{"msg_v"}); return err },
		"Variables.Messages": func(tx store.Tx) error { _, err := tx.Variables.Messages(f.id); return err },
		"Runs.Get":           func(tx store.Tx) error { _, err := tx.Runs.Get(f.run); return err },
		"Runs.Update":        func(tx store.Tx) error { return tx.Runs.Update(artel.Run{ID: f.run, State: artel.RunDone}) },
		"Runs.Active":        func(tx store.Tx) error { _, err := tx.Runs.Active(f.id); return err },
		"Runs.Renew": func(tx store.Tx) error {
			return tx.Runs.Renew(store.Lease{Run: f.run, Holder: "t", Term: 9, Until: c.at(99)}, c.at(99))
		},
		"Events.Append": func(tx store.Tx) error { _, err := tx.Events.Append(f.id, artel.Event{}); return err },
		"Hooks.Queue": func(tx store.Tx) error {
			return tx.Hooks.Queue(f.id, artel.Event{Seq: 1, Type: artel.EventRunFinished, Time: c.now})
		},
		"Events.Read":  func(tx store.Tx) error { _, err := tx.Events.Read(f.id, 0, 1); return err },
		"Events.Last":  func(tx store.Tx) error { _, err := tx.Events.Last(f.id); return err },
		"Notes.Put":    func(tx store.Tx) error { return tx.Notes.Put(f.note("more", c.now)) },
		"Notes.Get":    func(tx store.Tx) error { _, err := tx.Notes.Get("full" + string(f.id)); return err },
		"Notes.Delete": func(tx store.Tx) error { return tx.Notes.Delete("full" + string(f.id)) },
		"Notes.List":   func(tx store.Tx) error { _, err := tx.Notes.List(store.NoteQuery{Conversation: f.id}); return err },
	}
}

// seen is all that an owner sees of a full conversation.
type seen struct {
	Conversation artel.Conversation
	Messages     []artel.Message
	Message      artel.Message
	Path         []artel.Message
	Heads        []artel.Artifact
	Versions     []artel.Version
	Edits        []store.Edit
	Text         string
	Place        store.Place
	Run, Active  artel.Run
	Events       []artel.Event
	Contexts     []store.Context
	Segments     []store.Segment
	Variables    json.RawMessage
	Notes        []store.Note
	Overdue      []store.Lease
	Listed       []artel.ConversationID
	Found        []artel.ConversationID // by a search
}

func (c *check) seen(owner artel.Owner, f full, search string) (s seen) {
	c.Must("read everything", c.s.View(c.Context(), owner, func(tx store.Tx) (err error) {
		steps := []func(){
			func() { s.Conversation, err = tx.Conversations.Get(f.id) },
			func() { s.Messages, _, err = tx.Messages.List(f.id, store.Page{}) },
			func() { s.Message, err = tx.Messages.Get(f.message) },
			func() { s.Path, err = tx.Messages.Path(f.id, f.message, 0) },
			func() { s.Heads, err = tx.Artifacts.Heads(f.id, f.message) },
			func() { s.Versions, err = tx.Versions.List(f.id, "doc") },
			func() { s.Edits, err = tx.Journal.Edits(f.id, store.EditQuery{}) },
			func() { s.Text, err = tx.Versions.Text(f.id, "doc", f.version) },
			func() { s.Place, err = tx.Versions.Find(f.digest) },
			func() { s.Run, err = tx.Runs.Get(f.run) },
			func() { s.Active, err = tx.Runs.Active(f.id) },
			func() { s.Events, err = tx.Events.Read(f.id, 0, 100) },
			func() { s.Contexts, err = tx.Contexts.List(store.ContextQuery{Conversation: f.id}) },
			func() { s.Segments, err = tx.Contexts.Segments(f.id, []artel.Digest{f.digest}) },
			func() { s.Variables, err = tx.Variables.On(f.id, []artel.MessageID{"msg_v"}) },
			func() { s.Notes, err = tx.Notes.List(store.NoteQuery{Conversation: f.id}) },
			func() { s.Listed, err = listed(tx, "") },
			func() { s.Found, err = listed(tx, search) },
		}
		for _, step := range steps {
			if step(); err != nil {
				return err
			}
		}
		return nil
	}))
	var err error
	s.Overdue, err = c.s.Overdue(c.Context(), c.at(50))
	c.Must("Overdue", err)
	return s
}

// listed is the first page of a list.
func listed(tx store.Tx, search string) ([]artel.ConversationID, error) {
	items, _, err := tx.Conversations.List(store.ConversationQuery{Search: search})
	var ids []artel.ConversationID
	for _, v := range items {
		ids = append(ids, v.ID)
	}
	return ids, err
}
