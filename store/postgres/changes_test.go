// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/postgres/postgrestest"
)

// TestWatch: a process hears what another one has committed, not what it did itself, and that
// it may have missed something after its connection was lost.
func TestWatch(t *testing.T) {
	address := server.Schema(t)
	a, b := postgrestest.Open(t, address), postgrestest.Open(t, address)
	heard := make(chan store.Change, 100)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Watch(ctx, func(c store.Change) { heard <- c }) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	admin, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context())
	const listens = " FROM pg_stat_activity WHERE query LIKE 'LISTEN artel_changes_' || md5(current_schema())"
	listening := func() {
		t.Helper()
		for n := 0; n == 0; {
			if err := admin.QueryRow(t.Context(), "SELECT count(*)"+listens).Scan(&n); err != nil {
				t.Fatal(err)
			}
		}
	}
	listening()
	now := time.Now()
	change := func(s store.Store, fn func(tx store.PeopleTx) error) {
		t.Helper()
		if err := s.People().Update(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	user := func(id artel.Owner) func(tx store.PeopleTx) error {
		return func(tx store.PeopleTx) error {
			return tx.Users.Create(store.User{ID: id, Name: string(id), Email: string(id) + "@example.org", Role: store.Admin, CreatedAt: now, UpdatedAt: now})
		}
	}
	change(b, user("usr_own"))
	change(a, user("usr_a b")) // an id with a space
	session := store.Session{ID: "ses_1", User: "usr_a b", Hash: artel.NewDigest([32]byte{1}), CreatedAt: now, UsedAt: now, ExpiresAt: now}
	change(a, func(tx store.PeopleTx) error { return tx.Sessions.Create(session) })
	change(a, func(tx store.PeopleTx) error { return tx.Sessions.Touch("ses_1", now.Add(time.Hour)) })
	change(a, func(tx store.PeopleTx) error { return tx.Sessions.Delete("usr_a b", "ses_1") })
	change(a, func(tx store.PeopleTx) error {
		return tx.Entries.Create(store.Entry{Kind: store.ServiceEntry, ID: "svc", Fields: []byte("{}"), CreatedAt: now, UpdatedAt: now})
	})
	for _, want := range []store.Change{{}, {Of: store.ChangedUser, ID: "usr_a b"}, {Of: store.ChangedSession, ID: "ses_1"}, {Of: store.ChangedEntry, ID: "svc"}} {
		if got := <-heard; got != want {
			t.Errorf("heard %+v, want %+v", got, want)
		}
	}
	if _, err := admin.Exec(t.Context(), "SELECT pg_terminate_backend(pid)"+listens); err != nil {
		t.Fatal(err)
	}
	if got := <-heard; got.Of != store.Anything {
		t.Errorf("after a loss: heard %+v", got)
	}
}

// TestWatchSilence: a process whose connection has become silent, as that to a machine which
// is gone, notices it and learns what has changed.
func TestWatchSilence(t *testing.T) {
	address := server.Schema(t)
	p := newProxy(t, address, func(int64) string { return "" })
	s := postgrestest.Open(t, p.address)
	heard := make(chan store.Change, 100)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Watch(ctx, func(c store.Change) { heard <- c }) }()
	<-heard // it listens
	p.silent.Store(p.taken.Load())
	if got := <-heard; got.Of != store.Anything {
		t.Errorf("heard %+v", got)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
