// SPDX-License-Identifier: Apache-2.0

// Package outcome finds out whether an update was stored whose commit was not answered,
// as when the connection to the database breaks in that moment.
//
// Begin with [Resolve]. Of each update it remembers one row that only this update can have
// written: an event under its number, a message, the record of a model call. If the outcome
// is unknown, a second update looks for that row. It waits for the first one to end, as both
// write to the same conversation, so what it finds is final: the row is there and the update
// was made, or it is not and the update runs again.
package outcome

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// patience is how long the outcome of one update is looked for. It is longer than a restart of
// a database takes, and a change to its standby.
const patience = time.Minute

// Resolve returns s with updates whose outcome is found out. If it is not, as the database
// stays away or the update has written nothing to find it by, the error still has the code
// [artel.CodeOutcomeUnknown].
func Resolve(s store.Store) store.Store { return resolving{s} }

type resolving struct{ store.Store }

// Update implements [store.Store].
func (s resolving) Update(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
	var m *mark // of the last time that fn ran
	marked := func(tx store.Tx) error {
		m = &mark{}
		return fn(m.watch(tx))
	}
	err := s.Store.Update(ctx, owner, marked)
	if artel.CodeOf(err) != artel.CodeOutcomeUnknown {
		return err
	}
	unknown := err
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for wait := 10 * time.Millisecond; m.made != nil && !m.hidden; wait = min(2*wait, time.Second) {
		made := m.made
		found, ran := false, false
		err := s.Store.Update(ctx, owner, func(tx store.Tx) (err error) {
			ran = false
			if found, err = made(tx); err != nil && !errors.Is(err, artel.NotFound) {
				return err
			}
			if found {
				return nil
			}
			ran = true
			return marked(tx)
		})
		switch {
		case found:
			return nil
		case ran && artel.CodeOf(err) != artel.CodeOutcomeUnknown:
			return err
		case ran: // the first one was not made, and of the second it is unknown
			unknown = err
			continue
		}
		select {
		case <-ctx.Done():
			return unknown
		case <-time.After(wait):
		}
	}
	return unknown
}

// A mark is a row by which an update is found.
type mark struct {
	made   func(store.Tx) (bool, error) // whether the row is there; nil: the update has written none
	hidden bool                         // its conversation is being imported, so that another update cannot read it
}

// watch returns tx with nouns that remember what they have written.
func (m *mark) watch(tx store.Tx) store.Tx {
	tx.Events = events{tx.Events, m}
	tx.Contexts = contexts{tx.Contexts, m}
	tx.Conversations = conversations{tx.Conversations, m}
	tx.Messages = messages{tx.Messages, m}
	tx.Runs = runs{tx.Runs, m}
	tx.Settings = settings{tx.Settings, m}
	tx.Imports = imports{tx.Imports, m}
	return tx
}

// set remembers a row, unless there is one already.
func (m *mark) set(failed error, made func(store.Tx) (bool, error)) {
	if failed == nil && m.made == nil {
		m.made = made
	}
}

type events struct {
	store.Events
	m *mark
}

// Append implements [store.Events].
func (n events) Append(c artel.ConversationID, list ...artel.Event) (artel.Seq, error) {
	last, err := n.Events.Append(c, list...)
	if len(list) > 0 {
		want := list[len(list)-1]
		n.m.set(err, func(tx store.Tx) (bool, error) {
			got, err := tx.Events.Read(c, last-1, 1)
			if err != nil || len(got) == 0 {
				return false, err
			}
			e := got[0]
			return e.Seq == last && e.Type == want.Type && e.Run == want.Run && e.Within == want.Within && e.Agent == want.Agent &&
				e.Time.Equal(want.Time.Truncate(time.Microsecond)) && bytes.Equal(e.Data, want.Data), nil
		})
	}
	return last, err
}

type contexts struct {
	store.Contexts
	m *mark
}

// Add implements [store.Contexts].
func (n contexts) Add(c store.Context, segments []store.Segment) (int, error) {
	number, err := n.Contexts.Add(c, segments)
	n.m.set(err, func(tx store.Tx) (bool, error) {
		got, err := tx.Contexts.Get(c.Run, number)
		return err == nil && bytes.Equal(got.Record, c.Record) && got.CreatedAt.Equal(c.CreatedAt.Truncate(time.Microsecond)), err
	})
	return number, err
}

type conversations struct {
	store.Conversations
	m *mark
}

// Create implements [store.Conversations].
func (n conversations) Create(c artel.Conversation) error {
	err := n.Conversations.Create(c)
	n.m.set(err, func(tx store.Tx) (bool, error) {
		_, err := tx.Conversations.Get(c.ID)
		return err == nil, err
	})
	return err
}

type messages struct {
	store.Messages
	m *mark
}

// Create implements [store.Messages].
func (n messages) Create(v artel.Message) error {
	err := n.Messages.Create(v)
	n.m.set(err, func(tx store.Tx) (bool, error) {
		_, err := tx.Messages.Get(v.ID)
		return err == nil, err
	})
	return err
}

type runs struct {
	store.Runs
	m *mark
}

// Create implements [store.Runs].
func (n runs) Create(r artel.Run, l store.Lease) error {
	err := n.Runs.Create(r, l)
	n.m.set(err, func(tx store.Tx) (bool, error) {
		_, err := tx.Runs.Get(r.ID)
		return err == nil, err
	})
	return err
}

type settings struct {
	store.Settings
	m *mark
}

// Put implements [store.Settings].
func (n settings) Put(v store.Setting) (int, error) {
	revision, err := n.Settings.Put(v)
	n.m.set(err, func(tx store.Tx) (bool, error) {
		got, err := tx.Settings.Get(v.Name)
		return err == nil && got.Revision == revision && bytes.Equal(got.Value, v.Value) && got.UpdatedAt.Equal(v.UpdatedAt.Truncate(time.Microsecond)), err
	})
	return revision, err
}

type imports struct {
	store.Imports
	m *mark
}

// Begin implements [store.Imports].
func (n imports) Begin(c artel.Conversation, at time.Time) error {
	n.m.hidden = true
	return n.Imports.Begin(c, at)
}

// Continue implements [store.Imports].
func (n imports) Continue(id artel.ConversationID, at time.Time) error {
	n.m.hidden = true
	return n.Imports.Continue(id, at)
}
