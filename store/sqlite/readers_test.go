// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

// TestReadersUsedAgain: views one after the other share a connection, and only views
// within views need more.
func TestReadersUsedAgain(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "data.db"), sqlite.Options{})
	before := sqlite.Connections(s)
	var view func(depth int) error
	view = func(depth int) error {
		return s.View(t.Context(), artel.Local, func(tx store.Tx) error {
			if _, err := tx.Messages.Path("none", "", 0); artel.KindOf(err) != artel.NotFound {
				t.Errorf("got %v, want not found", err)
			}
			if depth == 1 {
				return nil
			}
			return view(depth - 1)
		})
	}
	deepest := 0
	for _, depth := range []int{1, 1, 1, 3, 1, 2, 3} {
		if err := view(depth); err != nil {
			t.Fatal(err)
		}
		deepest = max(deepest, depth)
		if got := sqlite.Connections(s) - before; got != deepest {
			t.Errorf("%d connections after views %d deep, want %d", got, depth, deepest)
		}
	}
}
