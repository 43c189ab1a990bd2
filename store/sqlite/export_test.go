// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"
)

// MigrateTo makes a database of an earlier schema.
func MigrateTo(ctx context.Context, path string, version int64) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer db.Close()
	if version == 0 {
		return nil
	}
	return migrateTo(ctx, db, version)
}

// InLine tells how many updates wait for their turn; -1: nobody has it.
func InLine(s *Store) int {
	s.writer.mu.Lock()
	defer s.writer.mu.Unlock()
	if !s.writer.busy {
		return -1
	}
	return len(s.writer.queue)
}

// Closed reports whether Close has begun.
func Closed(s *Store) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// pragma sets one on the connection that writes. The returned function unsets
// it where the connection was not given up meanwhile.
func pragma(t *testing.T, s *Store, set, unset string) (lift func()) {
	t.Helper()
	first := s.writer.session
	run := func(query string) {
		if _, err := first.exec(query); err != nil {
			t.Fatal(err)
		}
	}
	run(set)
	return func() {
		if s.writer.session == first {
			run(unset)
		}
	}
}

// LimitPages lets the database grow to n pages only, as a full disk would.
func LimitPages(t *testing.T, s *Store, n int) (lift func()) {
	return pragma(t, s, fmt.Sprintf("PRAGMA max_page_count = %d", n), "PRAGMA max_page_count = 1073741823")
}

// ForbidWriting makes the database read-only.
func ForbidWriting(t *testing.T, s *Store) (lift func()) {
	return pragma(t, s, "PRAGMA query_only = 1", "PRAGMA query_only = 0")
}

// DeferFailure returns what, called in an update, makes its commit fail.
func DeferFailure(s *Store) func() error {
	return func() error {
		c := s.writer.session
		if _, err := c.exec("PRAGMA defer_foreign_keys = 1"); err != nil {
			return err
		}
		_, err := c.exec("INSERT INTO events (owner, conversation, seq, type, run, agent, time) VALUES ('x', 'none', 1, '', '', '', 0)")
		return err
	}
}

// Connections returns how many connections to the database are open.
func Connections(s *Store) int { return s.db.Stats().OpenConnections }

// Patient lets batches stay open for as long as somebody is in line.
func Patient(s *Store) { s.writer.maxTime = time.Hour }

// Rows counts the rows of every table that holds what is in conversations.
func Rows(t *testing.T, s *Store) map[string]int {
	t.Helper()
	rows := map[string]int{}
	for _, table := range []string{"conversations", "messages", "artifacts", "versions", "edits", "runs", "events", "grams_docsize"} {
		n := 0
		if err := s.db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		rows[table] = n
	}
	return rows
}

// InGo returns the migrations that are written in Go and have no file.
func InGo() []int { return []int{schemaIndexed, schemaNewest} }

// Checkpoint moves the log into the file.
func Checkpoint(s *Store) error {
	_, err := s.db.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}
