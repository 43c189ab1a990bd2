// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"time"

	"github.com/artelhq/artel/store"
)

// leftoverTwins are those of the clauses about leftovers.
func leftoverTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"store/leftovers": func(t *twin) { // says so, and removes nothing
			t.leftovers = func(ctx context.Context, before time.Time, _ bool) ([]store.Leftover, error) {
				return t.Store.Leftovers(ctx, before, false)
			}
		},
		"store/leftovers that are named": func(t *twin) { // remembers what was once unnamed
			var known []store.Leftover
			t.leftovers = func(ctx context.Context, before time.Time, remove bool) ([]store.Leftover, error) {
				if remove && known != nil {
					return known, nil
				}
				list, err := t.Store.Leftovers(ctx, before, remove)
				known = list
				return list, err
			}
		},
	}
}
