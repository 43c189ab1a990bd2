// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store/sqlite"
)

// Small edits to a large text take little room, be they those of one run or
// versions of their own, and every state can still be read.
func TestStorageOfSmallEdits(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	for _, c := range []struct {
		name  string
		run   artel.RunID
		edits int
		most  int64 // bytes
	}{
		{"in one run", "run_1", 1000, 4 * size},
		{"each a version", "", 200, 20 * size}, // one text for every 32, and room that is used again
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "rows.db")
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{Synchronous: sqlite.Normal})
			if err != nil {
				t.Fatal(err)
			}
			b := &bench{store: s}
			b.begin(t)
			text := strings.Repeat("0123456789abcde\n", size/16)
			w := b.workspace(c.run, b.a)
			must[artel.Artifact](t)(w.Create(t.Context(), "doc", "", text+"<0>", ""))
			for i := 1; i <= c.edits; i++ {
				update(t, w, "doc", fmt.Sprintf("<%d>", i-1), fmt.Sprintf("<%d>", i))
			}
			if c.run != "" {
				b.fold(t, c.run)
			}
			reader := b.collection()
			for _, n := range []int{1, 2, 31, 32, 33, c.edits / 2, c.edits, c.edits + 1} {
				got, err := reader.TextAt(t.Context(), artel.Local, b.conv, "doc", n)
				if want := text + fmt.Sprintf("<%d>", n-1); err != nil || got != want {
					t.Errorf("state %d: %d bytes, %v", n, len(got), err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d edits of %d KB take %d KB, where copies took %d KB", c.edits, size>>10, info.Size()>>10, (c.edits+1)*size>>10)
			if info.Size() > c.most {
				t.Errorf("%d bytes, want at most %d", info.Size(), c.most)
			}
		})
	}
}
