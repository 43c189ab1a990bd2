// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
	"github.com/artelhq/artel/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		storetest.Run(t, func(tb testing.TB) []store.Store {
			return []store.Store{open(tb, sqlite.Memory, sqlite.Options{})}
		})
	})
	t.Run("file", func(t *testing.T) {
		storetest.Run(t, func(tb testing.TB) []store.Store {
			path := filepath.Join(tb.TempDir(), "a b?c#%41", "data.db")
			// The second one stands for another process, which may keep the file busy for long.
			o := sqlite.Options{Synchronous: sqlite.Normal, BusyTimeout: time.Minute}
			return []store.Store{open(tb, path, o), open(tb, path, o)}
		})
	})
}

func title(tb testing.TB, s *sqlite.Store, c artel.ConversationID) string {
	tb.Helper()
	var got artel.Conversation
	if err := s.View(tb.Context(), artel.Local, func(tx store.Tx) (err error) {
		got, err = tx.Conversations.Get(c)
		return err
	}); err != nil {
		tb.Fatal(err)
	}
	return got.Title
}

func rename(c artel.ConversationID, title string) func(store.Tx) error {
	return func(tx store.Tx) error { return tx.Conversations.Update(artel.Conversation{ID: c, Title: title}) }
}

func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "data.db")
	s := open(t, path, sqlite.Options{})
	c := conversation(t, s)
	text := strings.Repeat("text ", 1000)
	update(t, s, func(tx store.Tx) error {
		n, err := tx.Journal.Append(c, "doc", artel.Version{}, &text)
		if err != nil {
			return err
		}
		return tx.Journal.Fold(c, "doc", artel.Version{Number: n}, &text)
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, sqlite.Options{})
	err := s.View(t.Context(), artel.Local, func(tx store.Tx) error {
		got, err := tx.Versions.Text(c, "doc", 1)
		if got != text {
			t.Errorf("the text came back with %d bytes, want %d", len(got), len(text))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestModes: nobody else on the machine reads what is kept.
func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // modes mean nothing there
	}
	root := t.TempDir()
	s := open(t, filepath.Join(root, "new", "data.db"), sqlite.Options{})
	conversation(t, s)
	files := 0
	err := filepath.WalkDir(filepath.Join(root, "new"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		} else {
			files++
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil || files < 2 {
		t.Errorf("found %d files, %v; want the database and its log", files, err)
	}
}

func TestMemoryIsItsOwn(t *testing.T) {
	a, b := open(t, sqlite.Memory, sqlite.Options{}), open(t, sqlite.Memory, sqlite.Options{})
	c := conversation(t, a)
	err := b.View(t.Context(), artel.Local, func(tx store.Tx) error { _, err := tx.Conversations.Get(c); return err })
	if !errors.Is(err, artel.NotFound) {
		t.Errorf("got %v, want kind not_found", err)
	}
}

// TestTwoOpen: two stores on one file, as two processes would have them, begin
// at once, and write and see each other's updates.
func TestTwoOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	var stores [2]*sqlite.Store
	var errs [2]error
	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() { stores[i], errs[i] = sqlite.Open(t.Context(), path, sqlite.Options{}) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("store %d: %v", i, err)
		}
		t.Cleanup(func() { _ = stores[i].Close() })
	}
	c := conversation(t, stores[0])
	const each = 20
	failed := make(chan error, 2*each)
	for _, s := range stores {
		wg.Go(func() {
			for range each {
				failed <- s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
					_, err := tx.Events.Append(c, artel.Event{})
					return err
				})
			}
		})
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			t.Error(err)
		}
	}
	for _, s := range stores {
		if err := s.View(t.Context(), artel.Local, func(tx store.Tx) error {
			last, err := tx.Events.Last(c)
			if last != 2*each {
				t.Errorf("the log ends at %d, want %d", last, 2*each)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
}

// TestMigrations opens a database of every earlier schema; each is made by the
// migrations up to it, and holds a conversation.
func TestMigrations(t *testing.T) {
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no migrations: %v", err)
	}
	versions := append(sqlite.InGo(), 0)
	for _, name := range files {
		var number int
		if _, err := fmt.Sscanf(filepath.Base(name), "%05d_", &number); err != nil || slices.Contains(versions, number) {
			t.Errorf("migration %s: want a number of five digits that no other has (%v)", name, err)
		}
		b, err := os.ReadFile(name)
		if err != nil || strings.Contains(string(b), "+goose Down") {
			t.Errorf("migration %s goes backward, %v", name, err)
		}
		versions = append(versions, number)
	}
	for _, version := range versions {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data.db")
			if err := sqlite.MigrateTo(t.Context(), path, int64(version)); err != nil {
				t.Fatal(err)
			}
			if version > 0 {
				raw(t, path, `INSERT INTO conversations (owner, id, title, agent, service, leaf, created_at, updated_at)
					VALUES ('local', 'cnv_old', 'kept', '', '', '', 1, 1)`)
			}
			s := open(t, path, sqlite.Options{})
			if version > 0 {
				if got := title(t, s, "cnv_old"); got != "kept" {
					t.Errorf("got title %q, want the old one", got)
				}
			}
			conversation(t, s)
		})
	}
}

// TestMigrationsMissed: a database that a program without one of the lower
// numbers has opened gets what it missed.
func TestMigrationsMissed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	if err := sqlite.MigrateTo(t.Context(), path, 20); err != nil {
		t.Fatal(err)
	}
	raw(t, path, "DELETE FROM goose_db_version WHERE version_id = 14")
	raw(t, path, "DROP TABLE files")
	open(t, path, sqlite.Options{})
	raw(t, path, "SELECT count(*) FROM files")
}

// TestMigrationsInterrupted: a database with the table of migrations and none of
// them is migrated.
func TestMigrationsInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	raw(t, path, `CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')))`)
	raw(t, path, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1)")
	conversation(t, open(t, path, sqlite.Options{}))
}

// TestOpenTogether: all that open a new file at the same time succeed.
func TestOpenTogether(t *testing.T) {
	for range 4 {
		path := filepath.Join(t.TempDir(), "data.db")
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
				if err == nil {
					err = s.Close()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

// raw runs SQL on a database that nobody has open.
func raw(t *testing.T, path, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(dir, "newer.db")
	if err := open(t, newer, sqlite.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	raw(t, newer, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)")
	for _, tt := range []struct {
		name, path string
		o          sqlite.Options
		want       artel.Kind
		says       string
	}{
		{"a folder", dir, sqlite.Options{}, artel.Unavailable, "cannot open the database"},
		{"a file as a folder", filepath.Join(text, "x"), sqlite.Options{}, artel.Unavailable, "cannot open the database"},
		{"another kind of file", text, sqlite.Options{}, artel.Unavailable, "not a database"},
		{"a newer schema", newer, sqlite.Options{}, artel.Unsupported, "use a newer program"},
		{"an unknown setting", sqlite.Memory, sqlite.Options{Synchronous: "OFF"}, artel.Invalid, "want FULL or NORMAL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := sqlite.Open(t.Context(), tt.path, tt.o)
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, tt.want) || !strings.Contains(fmt.Sprint(err), tt.says) {
				t.Errorf("got %v, want kind %s saying %q", err, tt.want, tt.says)
			}
		})
	}
}

// TestFullDisk: an update that the disk has no room for fails alone and says
// why, what was there stays, and the store goes on when there is room.
func TestFullDisk(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "data.db"), sqlite.Options{})
	c := conversation(t, s)
	lift := sqlite.LimitPages(t, s, 200)
	big := strings.Repeat("x", 4<<20)
	err := s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
		if err := rename(c, "half")(tx); err != nil {
			return err
		}
		_, _ = tx.Journal.Append(c, "doc", artel.Version{}, &big) // fn may not notice
		return nil
	})
	if !errors.Is(err, artel.Unavailable) || !strings.Contains(err.Error(), "disk of the database is full") {
		t.Errorf("got %v, want kind unavailable saying that the disk is full", err)
	}
	if got := title(t, s, c); got != "Test" {
		t.Errorf("got title %q, want the old one", got)
	}
	update(t, s, rename(c, "after"))
	lift()
	update(t, s, func(tx store.Tx) error { _, err := tx.Journal.Append(c, "doc", artel.Version{}, &big); return err })
}

// TestReadOnly: where the database cannot be written, reading goes on.
func TestReadOnly(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "data.db"), sqlite.Options{})
	c := conversation(t, s)
	lift := sqlite.ForbidWriting(t, s)
	err := s.Update(t.Context(), artel.Local, rename(c, "new"))
	if !errors.Is(err, artel.Unavailable) || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("got %v, want kind unavailable saying read-only", err)
	}
	if got := title(t, s, c); got != "Test" {
		t.Errorf("got title %q, want the old one", got)
	}
	lift()
	update(t, s, rename(c, "new"))
}

// TestBusy: another process that writes for too long is named as the cause.
func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	s := open(t, path, sqlite.Options{BusyTimeout: time.Millisecond})
	c := conversation(t, s)
	other, err := sql.Open("sqlite", path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	held, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), artel.Local, rename(c, "new"))
	if !errors.Is(err, artel.Unavailable) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("got %v, want kind unavailable naming another process", err)
	}
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	update(t, s, rename(c, "new"))
}

// TestTxEnds: a Tx that got away does nothing.
func TestTxEnds(t *testing.T) {
	s := open(t, sqlite.Memory, sqlite.Options{})
	c := conversation(t, s)
	var kept store.Tx
	update(t, s, func(tx store.Tx) error { kept = tx; return nil })
	if err := rename(c, "late")(kept); !errors.Is(err, artel.Internal) {
		t.Errorf("got %v, want kind internal", err)
	}
	if got := title(t, s, c); got != "Test" {
		t.Errorf("got title %q, want the old one", got)
	}
}

// TestBatch: updates that share a commit succeed and fail each for itself,
// whether they return, fail, panic, end their goroutine or are cancelled.
func TestBatch(t *testing.T) {
	for _, path := range []string{sqlite.Memory, filepath.Join(t.TempDir(), "data.db")} {
		s := open(t, path, sqlite.Options{})
		c := conversation(t, s)
		const n = 200
		errUndo := errors.New("undo")
		var wg sync.WaitGroup
		var mu sync.Mutex
		kept := 0
		// The first holds the turn until the others stand in line.
		hold := make(chan struct{})
		wg.Go(func() {
			_ = s.Update(t.Context(), artel.Local, func(store.Tx) error { <-hold; return nil })
		})
		for i := range n {
			wg.Go(func() {
				defer func() { _ = recover() }()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				err := s.Update(ctx, artel.Local, func(tx store.Tx) error {
					if _, err := tx.Events.Append(c, artel.Event{Run: artel.RunID(fmt.Sprint(i))}); err != nil {
						return err
					}
					switch i % 5 {
					case 1:
						return errUndo
					case 2:
						panic("in fn")
					case 3:
						runtime.Goexit()
					case 4:
						cancel()
					}
					return nil
				})
				want := map[int]bool{0: err == nil, 1: err == errUndo, 4: errors.Is(err, artel.Canceled)} //nolint:errorlint // as it is
				if !want[i%5] {
					t.Errorf("update %d: got %v", i, err)
				}
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					kept++
				}
			})
		}
		for sqlite.InLine(s) < n/2 {
			runtime.Gosched()
		}
		close(hold)
		wg.Wait()
		if err := s.View(t.Context(), artel.Local, func(tx store.Tx) error {
			list, err := tx.Events.Read(c, 0, 2*n)
			for i, e := range list {
				if e.Seq != artel.Seq(i+1) {
					t.Errorf("event %d has number %d", i, e.Seq)
				}
			}
			if len(list) != n/5 || kept != n/5 {
				t.Errorf("%d events and %d successes, want %d each", len(list), kept, n/5)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
}

// TestBatchFailsTogether: when the commit fails, nobody is told otherwise.
func TestBatchFailsTogether(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "data.db"), sqlite.Options{})
	c := conversation(t, s)
	sqlite.Patient(s)
	hold := make(chan struct{})
	errs := make(chan error, 4)
	var wg sync.WaitGroup
	// A reference that is checked only at the commit makes it fail.
	bad := sqlite.DeferFailure(s)
	wg.Go(func() {
		errs <- s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
			<-hold
			return rename(c, "first")(tx)
		})
	})
	for sqlite.InLine(s) < 0 { // the first has the turn
		runtime.Gosched()
	}
	for i := range 3 {
		wg.Go(func() {
			errs <- s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
				if i == 0 {
					if err := bad(); err != nil {
						return err
					}
				}
				_, err := tx.Events.Append(c, artel.Event{})
				return err
			})
		})
	}
	for sqlite.InLine(s) < 3 {
		runtime.Gosched()
	}
	close(hold)
	wg.Wait()
	close(errs)
	for err := range errs {
		if !errors.Is(err, artel.Unavailable) {
			t.Errorf("got %v, want kind unavailable", err)
		}
	}
	if got := title(t, s, c); got != "Test" {
		t.Errorf("got title %q, want the old one", got)
	}
	update(t, s, rename(c, "after"))
}

// TestRefusalWaitsForTheBatch: an update that fails by what it read of another one in
// the open batch returns its error only if that other one is committed.
func TestRefusalWaitsForTheBatch(t *testing.T) {
	for _, fails := range []bool{false, true} {
		s := open(t, filepath.Join(t.TempDir(), "data.db"), sqlite.Options{})
		c := conversation(t, s)
		sqlite.Patient(s)
		bad := sqlite.DeferFailure(s)
		errTaken := errors.New("taken")
		hold := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			err := s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
				<-hold
				if fails {
					if err := bad(); err != nil {
						return err
					}
				}
				_, err := tx.Events.Append(c, artel.Event{})
				return err
			})
			if (err != nil) != fails {
				t.Errorf("the first got %v", err)
			}
		})
		for sqlite.InLine(s) < 0 { // the first has the turn
			runtime.Gosched()
		}
		wg.Go(func() {
			err := s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
				if last, err := tx.Events.Last(c); err != nil || last != 1 {
					t.Errorf("it is not in the batch of the first: %d, %v", last, err)
				}
				return errTaken
			})
			if fails != errors.Is(err, artel.Unavailable) || fails == errors.Is(err, errTaken) {
				t.Errorf("the commit fails: %v; the second got %v", fails, err)
			}
		})
		for sqlite.InLine(s) < 1 {
			runtime.Gosched()
		}
		close(hold)
		wg.Wait()
	}
}

// TestCloseDrains: who is in line when the store closes is served.
func TestCloseDrains(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	s := open(t, path, sqlite.Options{})
	c := conversation(t, s)
	hold := make(chan struct{})
	var wg sync.WaitGroup
	errs := make(chan error, 12)
	for i := range 11 {
		wg.Go(func() {
			errs <- s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
				<-hold
				_, err := tx.Events.Append(c, artel.Event{})
				return err
			})
		})
		for sqlite.InLine(s) < i {
			runtime.Gosched()
		}
	}
	wg.Go(func() { errs <- s.Close() })
	for !sqlite.Closed(s) {
		runtime.Gosched()
	}
	close(hold)
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if err := s.View(t.Context(), artel.Local, func(store.Tx) error { return nil }); !errors.Is(err, artel.Unavailable) {
		t.Errorf("got %v, want kind unavailable", err)
	}
	s = open(t, path, sqlite.Options{})
	if err := s.View(t.Context(), artel.Local, func(tx store.Tx) error {
		last, err := tx.Events.Last(c)
		if last != 11 {
			t.Errorf("the log ends at %d, want 11", last)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}
