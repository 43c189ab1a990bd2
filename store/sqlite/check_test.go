// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store/sqlite"
)

func TestQuickCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	s := open(t, path, sqlite.Options{})
	conversation(t, s)
	if damages, err := sqlite.QuickCheck(t.Context(), path); err != nil || len(damages) > 0 { // while it is open
		t.Fatalf("a sound database: %v, %v", damages, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(b[len(b)/2:], bytes.Repeat([]byte{0x5a}, 3*4096))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if damages, err := sqlite.QuickCheck(t.Context(), path); err == nil && len(damages) == 0 {
		t.Error("a damaged database is sound")
	}
	missing := filepath.Join(t.TempDir(), "missing.db")
	if _, err := sqlite.QuickCheck(t.Context(), missing); artel.KindOf(err) != artel.Unavailable {
		t.Errorf("a missing one: %v", err)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("the check has made a database")
	}
}
