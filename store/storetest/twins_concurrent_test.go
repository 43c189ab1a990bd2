// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"iter"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// concurrentTwins do what databases with several writers do if nobody prevents it. They
// do so every time, so that their clauses do not depend on the speed of the machine.
func concurrentTwins() map[string]func(*twin) {
	var mu sync.Mutex
	runs, notes := map[artel.RunID]artel.Run{}, map[string]store.Note{}
	return map[string]func(*twin){
		"concurrent/runs": nouns(func(tx *store.Tx) { // reads before its turn
			real := tx.Runs
			tx.Runs = brokenRuns{Runs: real, get: func(id artel.RunID) (artel.Run, error) {
				return remembered(&mu, runs, id, real.Get)
			}}
		}),
		"concurrent/notes": nouns(func(tx *store.Tx) { // likewise
			real := tx.Notes
			tx.Notes = staleNotes{Notes: real, get: func(id string) (store.Note, error) { return remembered(&mu, notes, id, real.Get) }}
		}),
		"concurrent/messages": nouns(func(tx *store.Tx) {
			tx.Messages = brokenMessages{Messages: tx.Messages, muted: func(artel.MessageID, bool) error { return nil }}
		}),
		"concurrent/settings": nouns(func(tx *store.Tx) { // the last one wins
			tx.Settings = lastSettings{tx.Settings}
		}),
		"concurrent/opposite order": func(t *twin) { // reports a deadlock to the caller
			var calls atomic.Int64
			t.update = func(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
				if calls.Add(1)%5 == 0 {
					return artel.Errorf(artel.Unavailable, "store.Update", "", "deadlock detected")
				}
				return t.Store.Update(ctx, owner, fn)
			}
		},
		"concurrent/ordered events": nouns(func(tx *store.Tx) { // a number is visible before an older one
			real := tx.Events
			tx.Events = brokenEvents{Events: real, read: func(c artel.ConversationID, after artel.Seq, limit int) ([]artel.Event, error) {
				events, err := real.Read(c, after, limit)
				if len(events) > 1 {
					events = events[1:]
				}
				return events, err
			}}
		}),
		"concurrent/edits": nouns(func(tx *store.Tx) { // loses one
			real := tx.Journal
			tx.Journal = brokenJournal{Journal: real, edits: func(c artel.ConversationID, q store.EditQuery) ([]store.Edit, error) {
				edits, err := real.Edits(c, q)
				return edits[1:], err
			}}
		}),
		"concurrent/lease": nouns(func(tx *store.Tx) { // two see that it has ended
			real := tx.Runs
			tx.Runs = brokenRuns{Runs: real, renew: func(l store.Lease, now time.Time) error {
				return unlessConflict(real.Renew(l, now))
			}}
		}),
		"locks": func(t *twin) { // a new one for each call
			var n atomic.Int64
			t.lock = func(ctx context.Context, name string) (func(), error) {
				return t.Store.Lock(ctx, name+strconv.FormatInt(n.Add(1), 10))
			}
		},
		"concurrent/answer": nouns(func(tx *store.Tx) { tx.Answers = everyAnswer{tx.Answers} }),
		"concurrent/active run": nouns(func(tx *store.Tx) {
			real := tx.Runs
			tx.Runs = brokenRuns{Runs: real, create: func(r artel.Run, l store.Lease) error { return unlessConflict(real.Create(r, l)) }}
		}),
		"concurrent/purge": func(t *twin) { // reads nothing of what is written meanwhile
			t.digests = func(context.Context) iter.Seq2[store.Use, error] { return func(func(store.Use, error) bool) {} }
		},
	}
}

// remembered returns what was read first.
func remembered[K comparable, V any](mu *sync.Mutex, seen map[K]V, key K, read func(K) (V, error)) (V, error) {
	mu.Lock()
	defer mu.Unlock()
	if v, ok := seen[key]; ok {
		return v, nil
	}
	v, err := read(key)
	seen[key] = v
	return v, err
}

func unlessConflict(err error) error {
	if artel.KindOf(err) == artel.Conflict {
		return nil
	}
	return err
}

type staleNotes struct {
	store.Notes
	get func(string) (store.Note, error)
}

func (n staleNotes) Get(id string) (store.Note, error) { return n.get(id) }

type lastSettings struct{ store.Settings }

func (s lastSettings) Put(v store.Setting) (int, error) {
	old, err := s.Get(v.Name)
	if err == nil {
		v.Revision = old.Revision
	}
	return s.Settings.Put(v)
}

type everyAnswer struct{ store.Answers }

func (a everyAnswer) Put(v store.Answer) error { return unlessConflict(a.Answers.Put(v)) }
