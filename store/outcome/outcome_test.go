// SPDX-License-Identifier: Apache-2.0

package outcome_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/outcome"
	"github.com/artelhq/artel/store/sqlite"
	"github.com/artelhq/artel/store/sqlite/sqlitetest"
)

// An answer is what a store says of a commit.
type answer string

const (
	right answer = "right" // what happened
	made  answer = "made"  // the outcome is unknown, and it was made
	not   answer = "not"   // the outcome is unknown, and it was not made
	away  answer = "away"  // the database cannot be reached
)

// A script store answers as it is told, then rightly.
type script struct {
	store.Store
	answers []answer
	onAway  func()
}

var errNotMade = errors.New("not made")

func unavailable(code string) error {
	e := artel.Errorf(artel.Unavailable, "store.Update", "", "the connection was lost")
	e.Code = code
	return e
}

func (s *script) Update(ctx context.Context, o artel.Owner, fn func(store.Tx) error) error {
	a := right
	if len(s.answers) > 0 {
		a, s.answers = s.answers[0], s.answers[1:]
	}
	if a == away {
		if s.onAway != nil {
			s.onAway()
		}
		return unavailable("")
	}
	err := s.Store.Update(ctx, o, func(tx store.Tx) error {
		if err := fn(tx); err != nil || a != not {
			return err
		}
		return errNotMade
	})
	if a == right || err != nil && !errors.Is(err, errNotMade) {
		return err
	}
	return unavailable(artel.CodeOutcomeUnknown)
}

const c = artel.ConversationID("cnv_1")

func open(t *testing.T) (*script, store.Store) {
	t.Helper()
	raw := &script{Store: sqlitetest.Open(t, sqlite.Memory)}
	if err := raw.Update(t.Context(), artel.Local, func(tx store.Tx) error {
		return tx.Conversations.Create(artel.Conversation{ID: c})
	}); err != nil {
		t.Fatal(err)
	}
	return raw, outcome.Resolve(raw)
}

// TestUpdate: whatever becomes of the commits of an update and of those that look for it, it
// is made once.
func TestUpdate(t *testing.T) {
	updates := map[string]struct {
		update func(store.Tx) error
		count  func(store.Tx) (int, error)
	}{
		"event": {func(tx store.Tx) error {
			_, err := tx.Events.Append(c, artel.Event{Type: "a"}, artel.Event{Type: "b", Time: time.Unix(1, 1), Data: json.RawMessage(`{"n": 1}`)})
			return err
		}, func(tx store.Tx) (int, error) { n, err := tx.Events.Last(c); return int(n) / 2, err }},
		"record": {func(tx store.Tx) error {
			_, err := tx.Contexts.Add(store.Context{Conversation: c, Run: "run_1", Summary: json.RawMessage("{}"), Record: json.RawMessage("{}"), CreatedAt: time.Unix(1, 1)}, nil)
			return err
		}, func(tx store.Tx) (int, error) {
			list, err := tx.Contexts.List(store.ContextQuery{Conversation: c})
			return len(list), err
		}},
		"setting": {func(tx store.Tx) error {
			s, err := tx.Settings.Get("name")
			if err != nil && !errors.Is(err, artel.NotFound) {
				return err
			}
			_, err = tx.Settings.Put(store.Setting{Name: "name", Value: json.RawMessage("1"), Revision: s.Revision, UpdatedAt: time.Unix(1, 1)})
			return err
		}, func(tx store.Tx) (int, error) { s, err := tx.Settings.Get("name"); return s.Revision, err }},
		"message": {
			func(tx store.Tx) error {
				return tx.Messages.Create(artel.Message{ID: "msg_1", Conversation: c, Role: artel.RoleUser})
			},
			func(tx store.Tx) (int, error) { m, _, err := tx.Messages.List(c, store.Page{}); return len(m), err },
		},
		"run": {
			func(tx store.Tx) error {
				return tx.Runs.Create(artel.Run{ID: "run_2", Conversation: c, State: artel.RunDone}, store.Lease{})
			},
			func(tx store.Tx) (int, error) { _, err := tx.Runs.Get("run_2"); return 1, err },
		},
		"conversation": {
			func(tx store.Tx) error { return tx.Conversations.Create(artel.Conversation{ID: "cnv_2"}) },
			func(tx store.Tx) (int, error) { _, err := tx.Conversations.Get("cnv_2"); return 1, err },
		},
	}
	for name, u := range updates {
		for _, answers := range [][]answer{{made}, {not}, {made, away, made}, {made, not}, {not, not, made}, {not, away, made}} {
			raw, s := open(t)
			if err := s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
				return tx.Runs.Create(artel.Run{ID: "run_1", Conversation: c, State: artel.RunDone}, store.Lease{})
			}); err != nil {
				t.Fatal(err)
			}
			raw.answers = answers
			if err := s.Update(t.Context(), artel.Local, u.update); err != nil {
				t.Errorf("%s, %v: %v", name, answers, err)
			}
			err := s.View(t.Context(), artel.Local, func(tx store.Tx) error {
				n, err := u.count(tx)
				if n != 1 {
					t.Errorf("%s, %v: made %d times", name, answers, n)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// TestOvertaken: an update that was not made runs again, and its refusal then is the answer.
func TestOvertaken(t *testing.T) {
	raw, s := open(t)
	raw.answers = []answer{not}
	runs := 0
	event := artel.Event{Type: "a", Time: time.Unix(1, 0)}
	err := s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
		if runs++; runs == 2 {
			_, err := tx.Events.Append(c, artel.Event{Type: "b", Time: time.Unix(1, 0)})
			return errors.Join(err, artel.Errorf(artel.Conflict, "", "", "no"))
		}
		_, err := tx.Events.Append(c, event)
		return err
	})
	if artel.KindOf(err) != artel.Conflict || runs != 2 {
		t.Errorf("got %v after %d runs", err, runs)
	}
}

// TestCannotTell: the caller learns that the outcome is unknown where nothing tells it: an
// update without such a row, one of an import, and one whose context ends.
func TestCannotTell(t *testing.T) {
	raw, s := open(t)
	ended, cancel := context.WithCancel(t.Context())
	raw.onAway = cancel
	for name, fn := range map[string]func(store.Tx) error{
		"nothing": func(tx store.Tx) error { return tx.GatewayLog.Add(store.GatewayEntry{Body: json.RawMessage("{}")}) },
		"import": func(tx store.Tx) error {
			err := tx.Imports.Begin(artel.Conversation{ID: "cnv_3"}, time.Unix(1, 0))
			if err == nil {
				_, err = tx.Events.Append("cnv_3", artel.Event{})
			}
			return err
		},
		"ended": func(tx store.Tx) error {
			_, err := tx.Events.Append(c, artel.Event{})
			return err
		},
	} {
		ctx := t.Context()
		raw.answers = []answer{made}
		if name == "ended" {
			ctx, raw.answers = ended, []answer{not, away}
		}
		if err := s.Update(ctx, artel.Local, fn); artel.CodeOf(err) != artel.CodeOutcomeUnknown {
			t.Errorf("%s: %v", name, err)
		}
	}
}
