// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"strings"
	"testing"

	"github.com/artelhq/artel"
)

// TestStageBounds: a ZIP over the limit is refused and leaves nothing on the
// disk.
func TestStageBounds(t *testing.T) {
	dir := t.TempDir()
	is := &Imports{spoolDir: dir, maxZIP: 10}
	for body, want := range map[string]artel.Kind{strings.Repeat("x", 10): artel.Invalid, strings.Repeat("x", 11): artel.TooLarge} {
		if _, err := is.Stage(t.Context(), strings.NewReader(body)); artel.KindOf(err) != want {
			t.Errorf("%d bytes: got %v, want %q", len(body), err, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}
