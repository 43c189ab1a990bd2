// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/postgres"
)

// TestReadsOfLongConversations counts the rows that statements read in a conversation with
// thousands of rows of each kind, beside many short ones: PostgreSQL plans a statement for
// the usual length, and keeps the plan. Tables are not read as a whole, as it would do with
// those of a test.
func TestReadsOfLongConversations(t *testing.T) {
	address := server.Schema(t)
	name := "reads-" + schemaOf(t, address)
	direct, err := postgres.Open(t.Context(), address+"&application_name="+name, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for range 100 {
		short(t, direct)
	}
	c := conversation(t, direct)
	const rows = 3000
	var leaf artel.MessageID
	var run artel.Run
	err = direct.Update(t.Context(), artel.Local, func(tx store.Tx) error {
		leaf = ""
		for range rows {
			m := artel.Message{ID: artel.NewMessageID(now), Conversation: c, Parent: leaf, Role: artel.RoleUser, CreatedAt: now}
			if err := tx.Messages.Create(m); err != nil {
				return err
			}
			leaf = m.ID
		}
		run = artel.Run{ID: artel.NewRunID(now), Conversation: c, Message: leaf, State: artel.RunRunning, StartedAt: now}
		return tx.Runs.Create(run, store.Lease{})
	})
	if err != nil {
		t.Fatal(err)
	}
	edit := artel.Version{Author: "a", Update: artel.UpdateExact, Digest: artel.NewDigest([32]byte{1}), CreatedAt: now}
	err = direct.Update(t.Context(), artel.Local, func(tx store.Tx) error {
		if _, err := tx.Events.Append(c, make([]artel.Event, rows)...); err != nil {
			return err
		}
		for i := range rows {
			var text *string
			if i%50 == 0 {
				text = new(string)
			}
			next := edit
			next.Parent = i
			if _, err := tx.Journal.Append(c, "doc", next, text); err != nil {
				return err
			}
			if _, err := tx.Contexts.Add(store.Context{Conversation: c, Run: run.ID, Summary: []byte("{}"), Record: []byte("{}"), CreatedAt: now}, nil); err != nil {
				return err
			}
			n := store.Note{ID: fmt.Sprint("note_", i), Conversation: c, Run: "other", Kind: "kind", Body: []byte("{}"), CreatedAt: now}
			if err := tx.Notes.Put(n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := direct.Close(); err != nil {
		t.Fatal(err)
	}
	analyze(t, address)
	rowsRead(t, address, name)
	for what, update := range map[string]func(store.Tx) error{
		"an event": func(tx store.Tx) error { _, err := tx.Events.Append(c, artel.Event{}); return err },
		"an edit":  func(tx store.Tx) error { _, err := tx.Journal.Append(c, "doc", edit, nil); return err },
		"a message": func(tx store.Tx) error {
			return tx.Messages.Create(artel.Message{ID: artel.NewMessageID(now), Conversation: c, Parent: leaf, Role: artel.RoleUser, CreatedAt: now})
		},
		"a record": func(tx store.Tx) error {
			_, err := tx.Contexts.Add(store.Context{Conversation: c, Run: run.ID, Summary: []byte("{}"), Record: []byte("{}"), CreatedAt: now}, nil)
			return err
		},
		"the last event": func(tx store.Tx) error { _, err := tx.Events.Last(c); return err },
		"new events":     func(tx store.Tx) error { _, err := tx.Events.Read(c, rows-5, 10); return err },
		"the last turns": func(tx store.Tx) error { _, err := tx.Messages.Path(c, leaf, 10); return err },
		"the run":        func(tx store.Tx) error { _, err := tx.Runs.Active(c); return err },
		"a text":         func(tx store.Tx) error { _, err := tx.Journal.Replay(c, "doc", rows-1); return err },
		"the newest edits": func(tx store.Tx) error {
			_, err := tx.Journal.Edits(c, store.EditQuery{Artifact: "doc", After: rows - 5})
			return err
		},
		"the run's end":    func(tx store.Tx) error { return tx.Runs.Update(run) },
		"the conversation": func(tx store.Tx) error { return tx.Conversations.Update(artel.Conversation{ID: c, Leaf: leaf}) },
		"muting":           func(tx store.Tx) error { return tx.Messages.SetMuted(leaf, true) },
		"open notes": func(tx store.Tx) error {
			_, err := tx.Notes.List(store.NoteQuery{Conversation: c, Run: run.ID, Open: true})
			return err
		},
	} {
		s, err := postgres.Open(t.Context(), address+"&plan_cache_mode=force_generic_plan&enable_seqscan=off&application_name="+name, postgres.Options{Connections: 1})
		if err != nil {
			t.Fatal(err)
		}
		before := rowsRead(t, address, "nobody")
		err = s.Update(t.Context(), artel.Local, update)
		if cerr := s.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if n := rowsRead(t, address, name) - before; n > 300 {
			t.Errorf("%s reads %d rows of a long conversation", what, n)
		}
	}
}

// short makes a conversation of three messages, with a run and a document.
func short(t *testing.T, s store.Store) {
	t.Helper()
	now := time.Now()
	c := artel.Conversation{ID: artel.NewConversationID(now)}
	run := artel.Run{ID: artel.NewRunID(now), Conversation: c.ID, State: artel.RunDone, StartedAt: now}
	err := s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
		if err := tx.Conversations.Create(c); err != nil {
			return err
		}
		run.Message = ""
		for range 3 {
			m := artel.Message{ID: artel.NewMessageID(now), Conversation: c.ID, Parent: run.Message, Role: artel.RoleUser, CreatedAt: now}
			if err := tx.Messages.Create(m); err != nil {
				return err
			}
			run.Message = m.ID
		}
		if err := tx.Runs.Create(run, store.Lease{}); err != nil {
			return err
		}
		if _, err := tx.Events.Append(c.ID, make([]artel.Event, 9)...); err != nil {
			return err
		}
		text := "text"
		v := artel.Version{Author: "a", Update: artel.UpdateExact, Digest: artel.NewDigest([32]byte{2}), CreatedAt: now}
		number, err := tx.Journal.Append(c.ID, "doc", v, &text)
		if err != nil {
			return err
		}
		v.Number = number
		return tx.Journal.Fold(c.ID, "doc", v, &text)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// analyze collects the statistics of the schema, as autovacuum does.
func analyze(t *testing.T, address string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	for _, table := range []string{"conversations", "messages", "events", "edits", "versions", "artifacts", "runs", "notes", "contexts"} {
		if _, err := c.Exec(t.Context(), "ANALYZE "+table); err != nil {
			t.Fatal(err)
		}
	}
}

// rowsRead returns how many rows of the schema were read, once the connections of a name have
// ended and so reported it.
func rowsRead(t *testing.T, address, name string) (n int64) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	for open := int64(1); open > 0; {
		if err := c.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE starts_with(application_name, $1)", name).Scan(&open); err != nil {
			t.Fatal(err)
		}
	}
	err = c.QueryRow(t.Context(), `SELECT (SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes WHERE schemaname = current_schema())::bigint
		+ (SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables WHERE schemaname = current_schema())::bigint`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
