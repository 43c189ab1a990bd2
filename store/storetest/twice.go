// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// Twice returns s with every function of an update run twice: first in an update
// that is rolled back, then for good. A database with several writers does so to
// resolve conflicts. A caller whose function changes something outside of its
// transaction, and relies on running once, fails its tests with this store.
func Twice(s store.Store) store.Store { return twice{s} }

type twice struct{ store.Store }

var errAgain = errors.New("once more")

// Update implements [store.Store].
func (t twice) Update(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
	err := t.Store.Update(ctx, owner, func(tx store.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return errAgain
	})
	if !errors.Is(err, errAgain) { // the second time would fail like the first
		return err
	}
	return t.Store.Update(ctx, owner, fn)
}
