// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"path/filepath"
	"testing"

	"github.com/artelhq/artel/internal/disk"
)

func TestFree(t *testing.T) {
	if n, err := disk.Free(t.TempDir()); err != nil || n <= 0 {
		t.Errorf("got %d bytes, %v", n, err)
	}
	if n, err := disk.Free(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Errorf("a missing folder has %d bytes", n)
	}
}
