// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

// What was committed is carried into the database file while the store is
// open, so that the log does not grow with it, and nobody who writes has to.
func TestTheLogIsCarriedIntoTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "artel.db")
	s := open(t, path, sqlite.Options{Synchronous: sqlite.Normal})
	c := conversation(t, s)
	size := func(name string) int64 {
		i, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return i.Size()
	}
	const rows, bytes = 2500, 2000
	text := strings.Repeat("x", bytes)
	before, log := size(path), int64(0)
	for n := range rows {
		err := s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
			_, err := tx.Versions.Append(c, artel.ArtifactID(fmt.Sprintf("doc_%d", n%7)), artel.Version{Author: "agent", Update: artel.UpdateRewrite}, &text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if n%500 == 499 {
			sqlite.Carried(s)
			log = max(log, size(path+"-wal"))
		}
	}
	sqlite.Carried(s)
	if got := size(path) - before; got < rows*bytes/2 {
		t.Errorf("the file has %d bytes more after edits of %d", got, rows*bytes)
	}
	if log > 24<<20 {
		t.Errorf("the log has %d bytes", log)
	}
}
