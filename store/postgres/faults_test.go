// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/postgres"
	"github.com/artelhq/artel/store/postgres/postgrestest"
	"github.com/artelhq/artel/store/sqlite/sqlitetest"
)

func conversation(t testing.TB, s store.Store) artel.ConversationID {
	t.Helper()
	c := artel.Conversation{ID: artel.NewConversationID(time.Now())}
	if err := s.Update(t.Context(), artel.Local, func(tx store.Tx) error { return tx.Conversations.Create(c) }); err != nil {
		t.Fatal(err)
	}
	return c.ID
}

func add(t testing.TB, s store.Store, c artel.ConversationID) error {
	return s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
		_, err := tx.Events.Append(c, artel.Event{})
		return err
	})
}

func events(t testing.TB, s store.Store, c artel.ConversationID) int {
	t.Helper()
	var last artel.Seq
	if err := s.View(t.Context(), artel.Local, func(tx store.Tx) (err error) {
		last, err = tx.Events.Last(c)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return int(last)
}

// A proxy stands between a store and the server, on a socket in a folder of its own.
type proxy struct {
	address string
	commits atomic.Int64
	trips   atomic.Int64 // round trips
	away    atomic.Bool  // takes no new connections
	taken   atomic.Int64 // connections
	silent  atomic.Int64 // so many of the first connections bring no answers any more
	// cut says what happens to the commit of a number: it is lost before it reaches the
	// server ("before"), or its answer is ("after").
	cut func(n int64) string
}

func newProxy(t *testing.T, address string, cut func(int64) string) *proxy {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	const name = ".s.PGSQL.5432"
	network, real := "unix", filepath.Join(q.Get("host"), name)
	if u.Host != "" {
		network, real = "tcp", u.Host
	}
	dir := t.TempDir()
	q.Set("host", dir)
	u.RawQuery, u.Host = q.Encode(), ""
	p := &proxy{address: u.String(), cut: cut}
	l, err := net.Listen("unix", filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(client, network, real) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return p
}

// commitStatement is the name under which pgx prepares COMMIT, and executesCommit the
// beginning of the message that runs it: no name of a portal, and that of the statement.
var (
	commitStatement = sha256.Sum256([]byte("COMMIT"))
	executesCommit  = fmt.Appendf(nil, "\x00stmtcache_%x\x00", commitStatement[:24])
)

func (p *proxy) serve(client net.Conn, network, real string) {
	defer client.Close()
	if p.away.Load() {
		return
	}
	server, err := net.Dial(network, real)
	if err != nil {
		return
	}
	defer server.Close()
	number := p.taken.Add(1)
	var mute atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer client.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if err != nil || mute.Load() { // the server has answered, and nobody hears it
				return
			}
			if number <= p.silent.Load() {
				continue
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			break
		}
		p.trips.Add(int64(bytes.Count(buffer[:n], []byte("S\x00\x00\x00\x04")))) // Sync, which asks for the results
		if bytes.Contains(buffer[:n], executesCommit) {
			switch p.cut(p.commits.Add(1)) {
			case "before":
				_ = server.Close()
				<-ended
				return
			case "after":
				mute.Store(true)
			}
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			break
		}
		if mute.Load() {
			break
		}
	}
	if !mute.Load() {
		_ = server.Close()
	}
	<-ended
}

// TestLostCommits cuts connections during commits: each update is stored once, and said
// to be.
func TestLostCommits(t *testing.T) {
	address := server.Schema(t)
	direct := postgrestest.Open(t, address)
	c := conversation(t, direct)
	p := newProxy(t, address, func(n int64) string { return []string{"", "before", "after"}[n%3] })
	s, err := postgres.Open(t.Context(), p.address, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const updates = 12
	for range updates {
		if err := add(t, s, c); err != nil {
			t.Error(err)
		}
	}
	if got := events(t, direct, c); got != updates {
		t.Errorf("%d events after %d updates", got, updates)
	}
	if p.commits.Load() <= updates {
		t.Errorf("%d commits for %d updates: none was made again, so that the test does not test", p.commits.Load(), updates)
	}
}

// TestRoundTrips counts how often an update waits for the server. An edit of an artifact with
// its event is what runs store most.
func TestRoundTrips(t *testing.T) {
	address := server.Schema(t)
	p := newProxy(t, address, func(int64) string { return "" })
	s, err := postgres.Open(t.Context(), p.address, postgres.Options{Connections: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := conversation(t, s)
	edit := func(tx store.Tx) error {
		v := artel.Version{Author: "a", Update: artel.UpdateExact, Digest: artel.NewDigest([32]byte{1}), CreatedAt: time.Now()}
		if _, err := tx.Journal.Append(c, "doc", v, nil); err != nil {
			return err
		}
		_, err := tx.Events.Append(c, artel.Event{}, artel.Event{})
		return err
	}
	events := func(tx store.Tx) error { _, err := tx.Events.Append(c, artel.Event{}, artel.Event{}); return err }
	for what, tt := range map[string]struct {
		update func(store.Tx) error
		most   int64
	}{"an edit": {edit, 3}, "events": {events, 2}, "nothing": {func(store.Tx) error { return nil }, 0}} {
		for range 2 { // statements are prepared at first
			if err := s.Update(t.Context(), artel.Local, tt.update); err != nil {
				t.Fatal(err)
			}
		}
		before := p.trips.Load()
		if err := s.Update(t.Context(), artel.Local, tt.update); err != nil {
			t.Fatal(err)
		}
		if n := p.trips.Load() - before; n != tt.most {
			t.Errorf("%s: %d round trips, want %d", what, n, tt.most)
		}
	}
	gone := artel.NewConversationID(time.Now())
	err = s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
		if _, err := tx.Events.Append(gone, artel.Event{}); artel.KindOf(err) != artel.NotFound {
			t.Errorf("a conversation that is not there: %v", err)
		}
		if err := tx.Conversations.Create(artel.Conversation{ID: gone}); err != nil {
			return err
		}
		_, err := tx.Events.Append(gone, artel.Event{})
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestUnknownOutcome keeps the database away after a lost answer.
func TestUnknownOutcome(t *testing.T) {
	address := server.Schema(t)
	direct := postgrestest.Open(t, address)
	c := conversation(t, direct)
	p := newProxy(t, address, nil)
	p.cut = func(int64) string { p.away.Store(true); return "after" }
	s, err := postgres.Open(t.Context(), p.address, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	postgres.SetPatience(s, 50*time.Millisecond)
	if err := add(t, s, c); artel.CodeOf(err) != artel.CodeOutcomeUnknown || artel.KindOf(err) != artel.Unavailable {
		t.Errorf("got %v (%s), want %s", err, artel.CodeOf(err), artel.CodeOutcomeUnknown)
	}
	if err := add(t, s, c); artel.KindOf(err) != artel.Unavailable || artel.CodeOf(err) == artel.CodeOutcomeUnknown {
		t.Errorf("while the database is away: %v", err)
	}
}

// TestEndedConnections ends the server's processes while updates run.
func TestEndedConnections(t *testing.T) {
	address := server.Schema(t)
	s := postgrestest.Open(t, address)
	c := conversation(t, s)
	var runs atomic.Int64
	err := s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
		if _, err := tx.Events.Append(c, artel.Event{}); err != nil {
			return err
		}
		if runs.Add(1) == 1 {
			if err := server.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_class ON pg_class.oid = relation WHERE relname = 'events' AND pid <> pg_backend_pid() AND relnamespace = '"+schemaOf(t, address)+"'::regnamespace"); err != nil {
				return err
			}
		}
		_, err := tx.Events.Append(c, artel.Event{})
		return err
	})
	if err != nil || runs.Load() != 2 {
		t.Errorf("after %d runs: %v", runs.Load(), err)
	}
	if got := events(t, s, c); got != 2 {
		t.Errorf("%d events, want 2", got)
	}
}

func schemaOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("search_path")
}

// TestOpenAtOnce opens an empty schema several times.
func TestOpenAtOnce(t *testing.T) {
	address := server.Schema(t)
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			var s *postgres.Store
			if s, errs[i] = postgres.Open(t.Context(), address, postgres.Options{}); errs[i] == nil {
				errs[i] = s.Close()
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

func TestOpenFails(t *testing.T) {
	for address, want := range map[string]artel.Kind{
		"postgres://me:secret@[/x":                       artel.Invalid,
		"postgres://artel@/postgres?host=" + t.TempDir(): artel.Unavailable,
	} {
		_, err := postgres.Open(t.Context(), address, postgres.Options{})
		if artel.KindOf(err) != want || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want kind %s", address, err, want)
		}
	}
	newer := server.Schema(t)
	postgrestest.Open(t, newer)
	c, err := pgx.Connect(t.Context(), newer)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)"); err != nil {
		t.Fatal(err)
	}
	// A newer program has only added something: this one may still be started.
	if s, err := postgres.Open(t.Context(), newer, postgres.Options{}); err != nil {
		t.Errorf("a newer schema that this program can use: %v", err)
	} else if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Exec(t.Context(), "UPDATE schema_oldest SET number = 99999"); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Open(t.Context(), newer, postgres.Options{}); artel.KindOf(err) != artel.Unsupported {
		t.Errorf("a newer schema: got %v", err)
	}
}

// TestSameTables compares the columns with those of SQLite, so that a migration of one is
// not forgotten in the other.
func TestSameTables(t *testing.T) {
	address := server.Schema(t)
	postgrestest.Open(t, address)
	c, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	got := map[string][]string{}
	found, err := c.Query(t.Context(), "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()")
	if err != nil {
		t.Fatal(err)
	}
	for found.Next() {
		var table, column string
		if err := found.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		if column != "rowid" {
			got[table] = append(got[table], column)
		}
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "data.db")
	sqlitetest.Open(t, path)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	want := map[string][]string{}
	lines, err := db.QueryContext(t.Context(), "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'")
	if err != nil {
		t.Fatal(err)
	}
	defer lines.Close()
	for lines.Next() {
		var table, column string
		if err := lines.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		want[table] = append(want[table], column)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, tables := range []map[string][]string{got, want} {
		maps.DeleteFunc(tables, func(table string, _ []string) bool {
			return table == "goose_db_version" || table == "schema_oldest" || table == "stored_sums" || table == "stored_changes" || strings.HasPrefix(table, "grams") || strings.HasPrefix(table, "sqlite_")
		})
		for _, columns := range tables {
			slices.Sort(columns)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("tables of PostgreSQL (+) differ from those of SQLite (-): add the migration to both\n%s", d)
	}
}

// TestViewsAfterALoss: a view that finds its connection ended, also all of the pool, is run on
// another one.
func TestViewsAfterALoss(t *testing.T) {
	address := server.Schema(t) + "&application_name=views-after-a-loss"
	s := postgrestest.Open(t, address)
	view := func() error {
		return s.View(t.Context(), artel.Local, func(tx store.Tx) error {
			_, err := tx.Settings.List("")
			return err
		})
	}
	var together sync.WaitGroup
	for range 8 { // connections that stay in the pool
		together.Go(func() {
			if err := view(); err != nil {
				t.Error(err)
			}
		})
	}
	together.Wait()
	for range 3 {
		if err := server.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'views-after-a-loss/%'"); err != nil {
			t.Fatal(err)
		}
		for range 8 {
			if err := view(); err != nil {
				t.Errorf("after the loss of all connections: %v", err)
			}
		}
	}
}
