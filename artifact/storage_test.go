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

// storage makes a text of size bytes, edits it, looks at some of its states
// and returns how many bytes the database has.
func storage(t testing.TB, run artel.RunID, size, edits int) int64 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Synchronous: sqlite.Normal})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{store: s}
	b.begin(t)
	text := strings.Repeat("0123456789abcde\n", size/16)
	w := b.workspace(run, b.a)
	must[artel.Artifact](t)(w.Create(t.Context(), "doc", "", text+"<0>", ""))
	for i := 1; i <= edits; i++ {
		update(t, w, "doc", fmt.Sprintf("<%d>", i-1), fmt.Sprintf("<%d>", i))
	}
	if run != "" {
		b.fold(t, run)
	}
	reader := b.collection()
	for _, n := range []int{1, 2, 31, 32, 33, edits / 2, edits, edits + 1} {
		got, err := reader.Versions.Text(t.Context(), artel.Local, b.conv, "doc", n)
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
	t.Logf("%d edits of %d KB take %d KB, where copies took %d KB", edits, size>>10, info.Size()>>10, (edits+1)*size>>10)
	return info.Size()
}

// Small edits to a long text take little room, be they those of one run or
// versions of their own, and every state can still be read.
func TestStorageOfSmallEdits(t *testing.T) {
	t.Parallel()
	const size = 64 << 10
	// One text for every 64 edits, until the journal is compacted.
	if n := storage(t, "run_1", size, 200); n > 12*size {
		t.Errorf("in one run: %d bytes", n)
	}
	// One text for every 32 versions, and room that is used again.
	if n := storage(t, "", size, 100); n > 20*size {
		t.Errorf("each a version: %d bytes", n)
	}
}

// BenchmarkStorage tells what a thousand small edits to 1 MB take.
func BenchmarkStorage(b *testing.B) {
	for name, run := range map[string]artel.RunID{"one run": "run_1", "each a version": ""} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(float64(storage(b, run, 1<<20, 1000))/(1<<20), "copies")
			}
		})
	}
}
