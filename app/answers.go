// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// Answers remembers what was answered to requests with an idempotency key, so
// that a client that did not hear the answer can ask again.
type Answers struct{ core *core }

// KeepAnswers is how long an answer is remembered.
const KeepAnswers = 24 * time.Hour

// Lock keeps other requests of the user with key waiting, also those to other processes with
// the same database.
func (as *Answers) Lock(ctx context.Context, key string) (unlock func(), err error) {
	return as.core.store.Lock(ctx, "answer/"+string(artel.OwnerOf(ctx))+"/"+key) // ids of owners have no slash
}

// Find returns the answer to key; kind NotFound where there is none.
func (as *Answers) Find(ctx context.Context, key string) (a store.Answer, err error) {
	err = as.core.view(ctx, func(tx store.Tx) error {
		a, err = tx.Answers.Get(key)
		return err
	})
	return a, err
}

// Keep remembers a, and forgets what is older than [KeepAnswers].
func (as *Answers) Keep(ctx context.Context, a store.Answer) error {
	a.CreatedAt = as.core.now()
	return as.core.update(ctx, func(tx store.Tx) error {
		if err := tx.Answers.Prune(a.CreatedAt.Add(-KeepAnswers)); err != nil {
			return err
		}
		return tx.Answers.Put(a)
	})
}
