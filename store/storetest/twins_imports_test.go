// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type brokenImports struct {
	store.Imports
	begin   func(artel.Conversation, time.Time) error
	resume  func(artel.ConversationID, time.Time) error
	version func(artel.ConversationID, artel.ArtifactID, artel.Version, *string) error
	finish  func(artel.ConversationID) error
}

func (b brokenImports) Begin(c artel.Conversation, at time.Time) error {
	return or(b.begin, b.Imports.Begin)(c, at)
}

func (b brokenImports) Continue(id artel.ConversationID, at time.Time) error {
	return or(b.resume, b.Imports.Continue)(id, at)
}

func (b brokenImports) Version(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error {
	return or(b.version, b.Imports.Version)(c, id, v, text)
}

func (b brokenImports) Finish(id artel.ConversationID) error {
	return or(b.finish, b.Imports.Finish)(id)
}

// importTwins are those of the clauses about importing.
func importTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"imports/hidden": nouns(func(tx *store.Tx) { // shows what is begun
			real := tx.Imports
			tx.Imports = brokenImports{Imports: real, begin: func(c artel.Conversation, at time.Time) error {
				if err := real.Begin(c, at); err != nil {
					return err
				}
				return real.Finish(c.ID)
			}}
		}),
		"imports/versions": nouns(func(tx *store.Tx) { // numbers anew
			real, journal := tx.Imports, tx.Journal
			tx.Imports = brokenImports{Imports: real, version: func(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error {
				n, err := journal.Append(c, id, v, text)
				if v.Number = n; err != nil {
					return err
				}
				return journal.Fold(c, id, v, text)
			}}
		}),
		"imports/refuse": nouns(func(tx *store.Tx) { // finishes anything
			real := tx.Imports
			tx.Imports = brokenImports{Imports: real, finish: func(id artel.ConversationID) error {
				err := real.Finish(id)
				if artel.KindOf(err) == artel.NotFound {
					return nil
				}
				return err
			}}
		}),
		"imports/purge": nouns(func(tx *store.Tx) { // counts from the beginning
			real := tx.Imports
			tx.Imports = brokenImports{Imports: real, resume: func(id artel.ConversationID, _ time.Time) error {
				return real.Continue(id, time.Unix(0, 0))
			}}
		}),
	}
}
