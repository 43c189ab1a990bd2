// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store/postgres"
	"github.com/artelhq/artel/store/postgres/postgrestest"
)

// TestClaims: one process at a time serves a database, the next one waits for it, and one that
// has lost it to another is told.
func TestClaims(t *testing.T) {
	address := server.Schema(t)
	first, err := postgres.Take(t.Context(), address, postgres.TakeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Take(t.Context(), address, postgres.TakeOptions{}); artel.KindOf(err) != artel.Conflict || !strings.Contains(err.Error(), "--standby") {
		t.Fatalf("a second claim: %v", err)
	}
	if other, err := postgres.Take(t.Context(), server.Schema(t), postgres.TakeOptions{}); err != nil {
		t.Errorf("that of another schema: %v", err)
	} else if err := other.Release(); err != nil {
		t.Error(err)
	}
	if _, err := postgres.Take(t.Context(), address, postgres.TakeOptions{Shared: true}); artel.KindOf(err) != artel.Conflict || !strings.Contains(err.Error(), "--replica") {
		t.Errorf("one that would share it: %v", err)
	}
	waited := make(chan *postgres.Claim)
	go func() {
		second, err := postgres.Take(t.Context(), address, postgres.TakeOptions{Wait: true})
		if err != nil {
			t.Error(err)
		}
		waited <- second
	}()
	if err := first.Release(); err != nil {
		t.Error(err)
	}
	second := <-waited
	// Another one is in the queue for the lock when the connection of the second ends.
	const lock = "hashtextextended(current_schema() || '/server', 0)"
	other, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(t.Context())
	taken := make(chan error)
	go func() {
		_, err := other.Exec(t.Context(), "SELECT pg_advisory_lock("+lock+")")
		taken <- err
	}()
	admin, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context())
	const of = " FROM pg_locks WHERE locktype = 'advisory' AND (classid::bigint << 32) + objid::bigint = " + lock
	for waiting := 0; waiting == 0; {
		if err := admin.QueryRow(t.Context(), "SELECT count(*)"+of+" AND NOT granted").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := admin.Exec(t.Context(), "SELECT pg_terminate_backend(pid)"+of+" AND granted"); err != nil {
		t.Fatal(err)
	}
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	if err := <-second.Lost(); artel.KindOf(err) != artel.Conflict || !strings.Contains(err.Error(), "taken the database over") {
		t.Errorf("the second hears %v", err)
	}
	if err := second.Release(); err != nil {
		t.Error(err)
	}
}

// TestSharedClaims: those that share a database keep one out that would be alone.
func TestSharedClaims(t *testing.T) {
	address := server.Schema(t)
	for range 2 {
		c, err := postgres.Take(t.Context(), address, postgres.TakeOptions{Shared: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Release() }()
	}
	if _, err := postgres.Take(t.Context(), address, postgres.TakeOptions{}); artel.KindOf(err) != artel.Conflict {
		t.Errorf("one that would be alone: %v", err)
	}
}

// TestLocks: a lock of a name keeps out the other process, until it is released or its
// connection ends.
func TestLocks(t *testing.T) {
	address := server.Schema(t)
	a, b := postgrestest.Open(t, address), postgrestest.Open(t, address)
	release, err := a.Lock(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan func())
	take := func() {
		release, err := b.Lock(t.Context(), "x")
		if err != nil {
			t.Error(err)
		}
		got <- release
	}
	go take()
	admin, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context())
	const waits = " FROM pg_locks l JOIN pg_stat_activity USING (pid) WHERE application_name = 'artel-locks' AND locktype = 'advisory' AND classid::bigint << 32 | objid::bigint = hashtextextended(current_schema() || '/lock/x', 0)"
	for waiting := 0; waiting == 0; {
		if err := admin.QueryRow(t.Context(), "SELECT count(*)"+waits+" AND NOT granted").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-got:
		t.Fatal("both have it")
	default:
	}
	release()
	(<-got)()
	if release, err = a.Lock(t.Context(), "x"); err != nil { // its connection ends
		t.Fatal(err)
	}
	go take()
	if _, err := admin.Exec(t.Context(), "SELECT pg_terminate_backend(l.pid)"+waits+" AND granted"); err != nil {
		t.Fatal(err)
	}
	(<-got)()
	release()
}
