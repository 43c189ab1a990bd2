// SPDX-License-Identifier: Apache-2.0

package storetest

import "github.com/artelhq/artel/store"

type brokenNotes struct {
	store.Notes
	put  func(store.Note) error
	list func(store.NoteQuery) ([]store.Note, error)
}

func (b brokenNotes) Put(n store.Note) error {
	return or(b.put, b.Notes.Put)(n)
}

func (b brokenNotes) List(q store.NoteQuery) ([]store.Note, error) {
	return or(b.list, b.Notes.List)(q)
}

// noteTwins are those of the clauses about notes.
func noteTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"notes/round trip": nouns(func(tx *store.Tx) { // the message is lost
			real := tx.Notes
			tx.Notes = brokenNotes{Notes: real, put: func(n store.Note) error {
				n.Message = ""
				return real.Put(n)
			}}
		}),
		"notes/list": nouns(func(tx *store.Tx) { // what is done stays on the list
			real := tx.Notes
			tx.Notes = brokenNotes{Notes: real, list: func(q store.NoteQuery) ([]store.Note, error) {
				q.Open = false
				return real.List(q)
			}}
		}),
	}
}
