// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

// TestNumbersAfterOthers appends where what is remembered of the newest numbers is
// out of date: by another process, by an update that failed, and by a deletion.
func TestNumbersAfterOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "two.db")
	one, two := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	c := conversation(t, one)
	appendTo := func(tx store.Tx) (int, error) {
		return tx.Journal.Append(c, "doc", artel.Version{Title: "T", CreatedAt: time.Now()}, nil)
	}
	want := 0
	add := func(s *sqlite.Store) {
		t.Helper()
		want++
		update(t, s, func(tx store.Tx) error {
			n, err := appendTo(tx)
			if n != want {
				t.Errorf("number %d, want %d", n, want)
			}
			return err
		})
	}
	for range 3 {
		add(one)
		add(one)
		add(two)
	}
	failed := errors.New("failed")
	if err := one.Update(t.Context(), artel.Local, func(tx store.Tx) error {
		if _, err := appendTo(tx); err != nil {
			return err
		}
		return failed
	}); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	add(one)
	update(t, one, func(tx store.Tx) error { return tx.Conversations.Delete(c, time.Now()) })
	err := one.Update(t.Context(), artel.Local, func(tx store.Tx) error {
		_, err := appendTo(tx)
		return err
	})
	if artel.KindOf(err) != artel.NotFound {
		t.Errorf("an append to a deleted conversation: %v, want not found", err)
	}
}

// TestLogBounded writes many times what the log may hold, and looks at its size after
// it began anew, also while a view holds an old state for a while.
func TestLogBounded(t *testing.T) {
	const limit = 48 << 20
	path := filepath.Join(t.TempDir(), "log.db")
	s := open(t, path, sqlite.Options{Synchronous: sqlite.Normal})
	c := conversation(t, s)
	size := func() int64 {
		f, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return f.Size()
	}
	text := strings.Repeat("x", 1<<20)
	write := func(times int) {
		for range times {
			update(t, s, func(tx store.Tx) error {
				_, err := tx.Journal.Append(c, "doc", artel.Version{CreatedAt: time.Now()}, &text)
				return err
			})
		}
	}
	write(100)
	if got := size(); got > limit {
		t.Errorf("the log has %d bytes after 100 MB, want at most %d", got, limit)
	}
	err := s.View(t.Context(), artel.Local, func(tx store.Tx) error {
		if _, err := tx.Conversations.Get(c); err != nil {
			return err
		}
		write(60)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := size(); got <= limit {
		t.Errorf("the log has %d bytes after 60 MB beside a view, so that the test does not test", got)
	}
	write(2)
	if got := size(); got > limit {
		t.Errorf("the log has %d bytes after the view has ended, want at most %d", got, limit)
	}
	small := func() {
		update(t, s, func(tx store.Tx) error {
			_, err := tx.Journal.Append(c, "small", artel.Version{CreatedAt: time.Now()}, nil)
			return err
		})
	}
	for range 3000 { // more updates than the writer makes without a checkpoint
		small()
	}
	if got := size(); got > limit {
		t.Errorf("the log has %d bytes after small updates, want at most %d", got, limit)
	}
}
