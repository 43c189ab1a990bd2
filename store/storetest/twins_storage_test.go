// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"time"

	"github.com/artelhq/artel/store"
)

type brokenStorage struct {
	store.Storage
	used func() (int64, error)
}

func (b brokenStorage) Used() (int64, error) { return b.used() }

// storageTwins are those of the clauses about what owners store.
func storageTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"storage/blobs": nouns(func(tx *store.Tx) { // each use counts
			files, real := tx.Files, tx.Storage
			tx.Storage = brokenStorage{real, func() (int64, error) {
				n, err := real.Used()
				for _, id := range []string{"f", "g"} {
					if f, missing := files.Get(id, time.Time{}); missing == nil {
						n += f.Info.Size
					}
				}
				return n, err
			}}
		}),
		"storage/texts": nouns(func(tx *store.Tx) { // texts do not count
			tx.Storage = brokenStorage{tx.Storage, func() (int64, error) { return 0, nil }}
		}),
	}
}
