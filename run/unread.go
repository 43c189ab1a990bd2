// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// An unreadError reports that an update needs what must be read outside of it,
// because an update keeps all others waiting.
type unreadError struct{ read func(store.Tx) error }

// Error implements error.
func (e *unreadError) Error() string { return "something must be read before" }

// updateRead runs an update. What fn needs and has not been read yet is read in a view;
// then fn runs again.
func (k *Config) updateRead(ctx context.Context, o artel.Owner, fn func(store.Tx) error) error {
	for {
		err := k.Store.Update(ctx, o, fn)
		unread, ok := errors.AsType[*unreadError](err)
		if !ok {
			return err
		}
		if err := k.Store.View(ctx, o, unread.read); err != nil {
			return err
		}
	}
}
