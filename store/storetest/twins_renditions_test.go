// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type brokenRenditions struct {
	store.Renditions
	put    func(store.Rendition) error
	delete func(artel.Digest) error
}

func (b brokenRenditions) Put(r store.Rendition) error {
	return or(b.put, b.Renditions.Put)(r)
}

func (b brokenRenditions) Delete(source artel.Digest) error {
	return or(b.delete, b.Renditions.Delete)(source)
}

// renditionTwins are those of the clauses about renditions.
func renditionTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"renditions/round trip": nouns(func(tx *store.Tx) { // what was made counts as what it was made of
			real := tx.Renditions
			tx.Renditions = brokenRenditions{Renditions: real, put: func(r store.Rendition) error {
				r.Digest = r.Source
				return real.Put(r)
			}}
		}),
		"renditions/replace": nouns(func(tx *store.Tx) { // the first one stays
			real := tx.Renditions
			tx.Renditions = brokenRenditions{Renditions: real, put: func(r store.Rendition) error {
				if _, err := real.Get(r.Source, r.Form); err == nil {
					return nil
				}
				return real.Put(r)
			}}
		}),
		"renditions/delete": nouns(func(tx *store.Tx) { // nothing goes
			tx.Renditions = brokenRenditions{Renditions: tx.Renditions, delete: func(artel.Digest) error { return nil }}
		}),
	}
}
