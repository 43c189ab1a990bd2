// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

// TestAuditIsAppendOnly: not even SQL changes an entry of the audit log.
func TestAuditIsAppendOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	s := open(t, path, sqlite.Options{})
	err := s.Update(t.Context(), "me", func(tx store.Tx) error { return tx.Audit.Add(store.AuditEntry{Action: "login"}) })
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "UPDATE audit SET actor = 'another'"); err == nil || !strings.Contains(err.Error(), "never change") {
		t.Errorf("an entry was changed: %v", err)
	}
}
