// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"time"

	"github.com/artelhq/artel/store"
)

type brokenFiles struct {
	store.Files
	get   func(id string, now time.Time) (store.File, error)
	list  func(q store.FileQuery) ([]store.File, error)
	purge func(now time.Time) error
}

func (b brokenFiles) Get(id string, now time.Time) (store.File, error) {
	return or(b.get, b.Files.Get)(id, now)
}

func (b brokenFiles) List(q store.FileQuery) ([]store.File, error) {
	return or(b.list, b.Files.List)(q)
}

func (b brokenFiles) Purge(now time.Time) error {
	return or(b.purge, b.Files.Purge)(now)
}

// fileTwins are those of the clauses about files.
func fileTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"files/round trip": nouns(func(tx *store.Tx) { // the name is lost
			real := tx.Files
			tx.Files = brokenFiles{Files: real, get: func(id string, now time.Time) (store.File, error) {
				f, err := real.Get(id, now)
				f.Filename = ""
				return f, err
			}}
		}),
		"files/list": nouns(func(tx *store.Tx) { // every page is the first
			real := tx.Files
			tx.Files = brokenFiles{Files: real, list: func(q store.FileQuery) ([]store.File, error) {
				q.After = ""
				return real.List(q)
			}}
		}),
		"files/expire": nouns(func(tx *store.Tx) { // what has expired stays
			tx.Files = brokenFiles{Files: tx.Files, purge: func(time.Time) error { return nil }}
		}),
	}
}
