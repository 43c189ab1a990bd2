// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// Steps is a store that reports every step of its updates, and lets each fail
// or simulate a crash after it. It fulfils the contract while At returns nil.
type Steps struct {
	store.Store

	// At is called before and after every call of a Tx in an update, with its
	// name: "Journal.Append before", "Journal.Append after". The call returns
	// the error of At. "commit before" follows the last write; its error rolls
	// the update back. "commit after" follows the commit; Update returns its
	// error although the update is on disk.
	At func(step string) error
}

// Update implements [store.Store].
func (s *Steps) Update(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
	err := s.Store.Update(ctx, owner, func(tx store.Tx) error {
		tx.Conversations = conversationsSteps{tx.Conversations, s}
		tx.Messages = messagesSteps{tx.Messages, s}
		tx.Artifacts = artifactsSteps{tx.Artifacts, s}
		tx.Versions = versionsSteps{tx.Versions, s}
		tx.Journal = journalSteps{tx.Journal, s}
		tx.Runs = runsSteps{tx.Runs, s}
		tx.Events = eventsSteps{tx.Events, s}
		tx.Answers = answersSteps{tx.Answers, s}
		tx.Imports = importsSteps{tx.Imports, s}
		if err := fn(tx); err != nil {
			return err
		}
		return s.At("commit before")
	})
	if err != nil {
		return err
	}
	return s.At("commit after")
}

// step makes one call between its two moments.
func (s *Steps) step(name string, call func() error) error {
	if err := s.At(name + " before"); err != nil {
		return err
	}
	if err := call(); err != nil {
		return err
	}
	return s.At(name + " after")
}

// value is step for calls with a result.
func value[T any](s *Steps, name string, call func() (T, error)) (T, error) {
	var v T
	err := s.step(name, func() (err error) {
		v, err = call()
		return err
	})
	return v, err
}

type conversationsSteps struct {
	store.Conversations
	*Steps
}

func (x conversationsSteps) Create(c artel.Conversation) error {
	return x.step("Conversations.Create", func() error { return x.Conversations.Create(c) })
}

func (x conversationsSteps) Get(id artel.ConversationID) (artel.Conversation, error) {
	return value(x.Steps, "Conversations.Get", func() (artel.Conversation, error) { return x.Conversations.Get(id) })
}

func (x conversationsSteps) Update(c artel.Conversation) error {
	return x.step("Conversations.Update", func() error { return x.Conversations.Update(c) })
}

func (x conversationsSteps) Delete(id artel.ConversationID, at time.Time) error {
	return x.step("Conversations.Delete", func() error { return x.Conversations.Delete(id, at) })
}

func (x conversationsSteps) Restore(id artel.ConversationID) error {
	return x.step("Conversations.Restore", func() error { return x.Conversations.Restore(id) })
}

type messagesSteps struct {
	store.Messages
	*Steps
}

func (x messagesSteps) Create(m artel.Message) error {
	return x.step("Messages.Create", func() error { return x.Messages.Create(m) })
}

func (x messagesSteps) Get(id artel.MessageID) (artel.Message, error) {
	return value(x.Steps, "Messages.Get", func() (artel.Message, error) { return x.Messages.Get(id) })
}

func (x messagesSteps) Path(c artel.ConversationID, leaf artel.MessageID, limit int) ([]artel.Message, error) {
	return value(x.Steps, "Messages.Path", func() ([]artel.Message, error) { return x.Messages.Path(c, leaf, limit) })
}

func (x messagesSteps) List(c artel.ConversationID, p store.Page) (items []artel.Message, next string, err error) {
	err = x.step("Messages.List", func() error {
		items, next, err = x.Messages.List(c, p)
		return err
	})
	return items, next, err
}

func (x messagesSteps) SetMuted(id artel.MessageID, muted bool) error {
	return x.step("Messages.SetMuted", func() error { return x.Messages.SetMuted(id, muted) })
}

type artifactsSteps struct {
	store.Artifacts
	*Steps
}

func (x artifactsSteps) Heads(c artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error) {
	return value(x.Steps, "Artifacts.Heads", func() ([]artel.Artifact, error) { return x.Artifacts.Heads(c, at) })
}

func (x artifactsSteps) Head(c artel.ConversationID, id artel.ArtifactID, at artel.MessageID) (artel.Artifact, error) {
	return value(x.Steps, "Artifacts.Head", func() (artel.Artifact, error) { return x.Artifacts.Head(c, id, at) })
}

func (x artifactsSteps) Exists(c artel.ConversationID, id artel.ArtifactID) (bool, error) {
	return value(x.Steps, "Artifacts.Exists", func() (bool, error) { return x.Artifacts.Exists(c, id) })
}

type versionsSteps struct {
	store.Versions
	*Steps
}

func (x versionsSteps) List(c artel.ConversationID, id artel.ArtifactID) ([]artel.Version, error) {
	return value(x.Steps, "Versions.List", func() ([]artel.Version, error) { return x.Versions.List(c, id) })
}

func (x versionsSteps) Get(c artel.ConversationID, id artel.ArtifactID, number int) (artel.Version, error) {
	return value(x.Steps, "Versions.Get", func() (artel.Version, error) { return x.Versions.Get(c, id, number) })
}

func (x versionsSteps) Artifacts(c artel.ConversationID) ([]artel.ArtifactID, error) {
	return value(x.Steps, "Versions.Artifacts", func() ([]artel.ArtifactID, error) { return x.Versions.Artifacts(c) })
}

func (x versionsSteps) Text(c artel.ConversationID, id artel.ArtifactID, number int) (string, error) {
	return value(x.Steps, "Versions.Text", func() (string, error) { return x.Versions.Text(c, id, number) })
}

func (x versionsSteps) Claim(c artel.ConversationID, ids []artel.ArtifactID, m artel.MessageID) error {
	return x.step("Versions.Claim", func() error { return x.Versions.Claim(c, ids, m) })
}

func (x versionsSteps) Find(d artel.Digest) (store.Place, error) {
	return value(x.Steps, "Versions.Find", func() (store.Place, error) { return x.Versions.Find(d) })
}

type journalSteps struct {
	store.Journal
	*Steps
}

func (x journalSteps) Append(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) (int, error) {
	return value(x.Steps, "Journal.Append", func() (int, error) { return x.Journal.Append(c, id, v, text) })
}

func (x journalSteps) Fold(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error {
	return x.step("Journal.Fold", func() error { return x.Journal.Fold(c, id, v, text) })
}

func (x journalSteps) Edits(c artel.ConversationID, q store.EditQuery) ([]store.Edit, error) {
	return value(x.Steps, "Journal.Edits", func() ([]store.Edit, error) { return x.Journal.Edits(c, q) })
}

func (x journalSteps) FoldInner(c artel.ConversationID, id artel.ArtifactID, run artel.RunID, after, before, limit int) (int, error) {
	return value(x.Steps, "Journal.FoldInner", func() (int, error) { return x.Journal.FoldInner(c, id, run, after, before, limit) })
}

func (x journalSteps) Replay(c artel.ConversationID, id artel.ArtifactID, number int) (store.Replay, error) {
	return value(x.Steps, "Journal.Replay", func() (store.Replay, error) { return x.Journal.Replay(c, id, number) })
}

func (x journalSteps) DropText(c artel.ConversationID, id artel.ArtifactID, number int) error {
	return x.step("Journal.DropText", func() error { return x.Journal.DropText(c, id, number) })
}

func (x journalSteps) Compact(c artel.ConversationID, id artel.ArtifactID, gone []int, kept []store.Edit) error {
	return x.step("Journal.Compact", func() error { return x.Journal.Compact(c, id, gone, kept) })
}

type runsSteps struct {
	store.Runs
	*Steps
}

func (x runsSteps) Create(r artel.Run, l store.Lease) error {
	return x.step("Runs.Create", func() error { return x.Runs.Create(r, l) })
}

func (x runsSteps) Get(id artel.RunID) (artel.Run, error) {
	return value(x.Steps, "Runs.Get", func() (artel.Run, error) { return x.Runs.Get(id) })
}

func (x runsSteps) Update(r artel.Run) error {
	return x.step("Runs.Update", func() error { return x.Runs.Update(r) })
}

func (x runsSteps) Active(c artel.ConversationID) (artel.Run, error) {
	return value(x.Steps, "Runs.Active", func() (artel.Run, error) { return x.Runs.Active(c) })
}

func (x runsSteps) Renew(l store.Lease, now time.Time) error {
	return x.step("Runs.Renew", func() error { return x.Runs.Renew(l, now) })
}

type eventsSteps struct {
	store.Events
	*Steps
}

func (x eventsSteps) Append(c artel.ConversationID, events ...artel.Event) (artel.Seq, error) {
	return value(x.Steps, "Events.Append", func() (artel.Seq, error) { return x.Events.Append(c, events...) })
}

func (x eventsSteps) Read(c artel.ConversationID, after artel.Seq, limit int) ([]artel.Event, error) {
	return value(x.Steps, "Events.Read", func() ([]artel.Event, error) { return x.Events.Read(c, after, limit) })
}

func (x eventsSteps) Last(c artel.ConversationID) (artel.Seq, error) {
	return value(x.Steps, "Events.Last", func() (artel.Seq, error) { return x.Events.Last(c) })
}

type answersSteps struct {
	store.Answers
	*Steps
}

func (x answersSteps) Get(key string) (store.Answer, error) {
	return value(x.Steps, "Answers.Get", func() (store.Answer, error) { return x.Answers.Get(key) })
}

func (x answersSteps) Put(a store.Answer) error {
	return x.step("Answers.Put", func() error { return x.Answers.Put(a) })
}

type importsSteps struct {
	store.Imports
	*Steps
}

func (x importsSteps) Begin(c artel.Conversation, at time.Time) error {
	return x.step("Imports.Begin", func() error { return x.Imports.Begin(c, at) })
}

func (x importsSteps) Continue(id artel.ConversationID, at time.Time) error {
	return x.step("Imports.Continue", func() error { return x.Imports.Continue(id, at) })
}

func (x importsSteps) Version(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error {
	return x.step("Imports.Version", func() error { return x.Imports.Version(c, id, v, text) })
}

func (x importsSteps) Finish(id artel.ConversationID) error {
	return x.step("Imports.Finish", func() error { return x.Imports.Finish(id) })
}
