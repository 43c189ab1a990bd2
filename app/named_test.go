// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/pipeline"
)

// TestNamedAtOnce: of two calls that make the conversation of a title at the same time, as a
// database with several writers lets them, the slower one gets that of the other.
func TestNamedAtOnce(t *testing.T) {
	b, slow := newBench(t, nil), &watched{}
	slow.Store, b.config.Store = b.config.Store, slow
	var quicker artel.Conversation
	slow.before = func() (err error) {
		if quicker.ID != "" {
			return nil
		}
		if quicker, err = b.Conversations.Named(apptest.Context(t), "Notes", true); err != nil {
			return err
		}
		return artel.Errorf(artel.Conflict, "store.Update", "conversation_named", "already exists")
	}
	got, err := b.open().Conversations.Named(apptest.Context(t), "Notes", true)
	if err != nil || got.ID != quicker.ID {
		t.Errorf("got %+v, %v, want %s", got, err, quicker.ID)
	}
}

// TestAnyRevisionAtOnce: who replaces a setting whatever it is meets no conflict.
func TestAnyRevisionAtOnce(t *testing.T) {
	b := newBench(t, nil)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for range 5 {
				if _, err := b.Profiles.Set(apptest.Context(t), pipeline.Profile{Name: fmt.Sprint("user ", n)}, settings.AnyRevision); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
