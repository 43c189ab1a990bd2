// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
	"github.com/artelhq/artel/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		storetest.Run(t, func(tb testing.TB) store.Store { return open(tb, sqlite.Memory, sqlite.Options{}) })
	})
	t.Run("file", func(t *testing.T) {
		storetest.Run(t, func(tb testing.TB) store.Store {
			return open(tb, filepath.Join(tb.TempDir(), "a b?c#%41", "data.db"), sqlite.Options{Synchronous: sqlite.Normal})
		})
	})
}
