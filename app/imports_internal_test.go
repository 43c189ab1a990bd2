// SPDX-License-Identifier: Apache-2.0

package app

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
)

// TestStageBounds: a ZIP over the limit is refused and leaves nothing on the
// disk.
func TestStageBounds(t *testing.T) {
	dir := t.TempDir()
	is := &Imports{spoolDir: dir, maxZIP: 10}
	for body, want := range map[string]artel.Kind{strings.Repeat("x", 10): artel.Invalid, strings.Repeat("x", 11): artel.TooLarge} {
		if _, err := is.Stage(artel.WithOwner(artel.WithOwner(t.Context(), artel.Local), artel.Local), strings.NewReader(body)); artel.KindOf(err) != want {
			t.Errorf("%d bytes: got %v, want %q", len(body), err, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}

// TestImportLimit: a ZIP of what may be uploaded can be taken in, whatever the
// limit of an upload.
func TestImportLimit(t *testing.T) {
	for upload, want := range map[int64]int64{
		0: 20 * artifact.DefaultMaxBytes, 5 << 30: 100 << 30, math.MaxInt64: math.MaxInt64 - 1, math.MaxInt64 / 2: math.MaxInt64 - 1,
	} {
		if got := newImports(nil, "", artifact.Options{MaxBytes: upload}).maxZIP; got != want {
			t.Errorf("uploads of %d: got %d, want %d", upload, got, want)
		}
	}
}
