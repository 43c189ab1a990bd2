// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"encoding/json"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type brokenContexts struct {
	store.Contexts
	add    func(store.Context, []store.Segment) (int, error)
	report func(artel.RunID, int, store.ContextReport) error
	list   func(store.ContextQuery) ([]store.Context, error)
	keep   func(artel.ConversationID, int) error
}

func (b brokenContexts) Add(c store.Context, segments []store.Segment) (int, error) {
	return or(b.add, b.Contexts.Add)(c, segments)
}

func (b brokenContexts) Report(run artel.RunID, n int, r store.ContextReport) error {
	return or(b.report, b.Contexts.Report)(run, n, r)
}

func (b brokenContexts) List(q store.ContextQuery) ([]store.Context, error) {
	return or(b.list, b.Contexts.List)(q)
}

func (b brokenContexts) Trim(c artel.ConversationID, n int) error {
	return or(b.keep, b.Contexts.Trim)(c, n)
}

type brokenSettings struct {
	store.Settings
	list func(string) ([]store.Setting, error)
	put  func(store.Setting) (int, error)
}

func (b brokenSettings) List(prefix string) ([]store.Setting, error) {
	return or(b.list, b.Settings.List)(prefix)
}

func (b brokenSettings) Put(s store.Setting) (int, error) {
	return or(b.put, b.Settings.Put)(s)
}

type brokenVariables struct {
	store.Variables
	on func(artel.ConversationID, []artel.MessageID) (json.RawMessage, error)
}

func (b brokenVariables) On(c artel.ConversationID, path []artel.MessageID) (json.RawMessage, error) {
	return b.on(c, path)
}

// contextTwins are those of the clauses about contexts, settings and variables.
func contextTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"contexts/round trip": nouns(func(tx *store.Tx) { // what a call took is forgotten
			real := tx.Contexts
			tx.Contexts = brokenContexts{Contexts: real, add: func(c store.Context, segments []store.Segment) (int, error) {
				c.Usage = nil
				return real.Add(c, segments)
			}}
		}),
		"contexts/report": nouns(func(tx *store.Tx) { // what is not told is forgotten
			real := tx.Contexts
			tx.Contexts = brokenContexts{Contexts: real, report: func(run artel.RunID, n int, r store.ContextReport) error {
				if r.Usage == nil {
					r.Usage = &artel.Usage{}
				}
				return real.Report(run, n, r)
			}}
		}),
		"contexts/list": nouns(func(tx *store.Tx) { // the one itself counts as before it
			real := tx.Contexts
			tx.Contexts = brokenContexts{Contexts: real, list: func(q store.ContextQuery) ([]store.Context, error) {
				q.Before = nil
				return real.List(q)
			}}
		}),
		"contexts/keep": nouns(func(tx *store.Tx) { // one too many goes
			real := tx.Contexts
			tx.Contexts = brokenContexts{Contexts: real, keep: func(c artel.ConversationID, n int) error { return real.Trim(c, n-1) }}
		}),
		"settings/round trip": nouns(func(tx *store.Tx) { // a prefix selects nothing
			real := tx.Settings
			tx.Settings = brokenSettings{Settings: real, list: func(string) ([]store.Setting, error) { return real.List("") }}
		}),
		"variables/branches": nouns(func(tx *store.Tx) { // the oldest of a path counts
			real := tx.Variables
			tx.Variables = brokenVariables{Variables: real, on: func(c artel.ConversationID, path []artel.MessageID) (json.RawMessage, error) {
				path = slices.Clone(path)
				slices.Reverse(path)
				return real.On(c, path)
			}}
		}),
		"settings/revisions": nouns(func(tx *store.Tx) { // the last one to write wins
			real := tx.Settings
			tx.Settings = brokenSettings{Settings: real, put: func(s store.Setting) (int, error) {
				old, err := real.Get(s.Name)
				if err == nil {
					s.Revision = old.Revision
				}
				return real.Put(s)
			}}
		}),
	}
}
