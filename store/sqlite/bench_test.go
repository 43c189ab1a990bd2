// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

// BenchmarkJournal measures acknowledged edits of 2 KB, each in an update of
// its own.
func BenchmarkJournal(b *testing.B) {
	for _, sync := range []sqlite.Synchronous{sqlite.Full, sqlite.Normal} {
		for _, writers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/writers=%d", sync, writers), func(b *testing.B) { journal(b, sync, writers) })
		}
	}
}

func journal(b *testing.B, synchronous sqlite.Synchronous, writers int) {
	s := open(b, filepath.Join(b.TempDir(), "journal.db"), sqlite.Options{Synchronous: synchronous})
	now := time.Now()
	c := conversation(b, s)
	v := artel.Version{
		Author: "agent", Update: artel.UpdateExact, Title: "Journal", Provenance: artel.SourceAgent, CreatedAt: now,
		MediaInfo: artel.MediaInfo{MediaType: "text/markdown", Kind: artel.KindText, Size: 1 << 20},
		Changes:   []artel.Change{{Layer: artel.LayerExact, Start: 10, End: 1010, Old: strings.Repeat("o", 1000), New: strings.Repeat("n", 1000)}},
		Digest:    artel.NewDigest([32]byte{1}),
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	waits := make([][]time.Duration, writers)
	var wg sync.WaitGroup
	b.ResetTimer()
	for w := range writers {
		wg.Go(func() {
			id := artel.ArtifactID(fmt.Sprintf("doc_%d", w))
			for left.Add(-1) >= 0 {
				began := time.Now()
				err := s.Update(b.Context(), artel.Local, func(tx store.Tx) error {
					_, err := tx.Journal.Append(c, id, v, nil)
					return err
				})
				if err != nil {
					b.Error(err)
					return
				}
				waits[w] = append(waits[w], time.Since(began))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(waits...)
	slices.Sort(all)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkAnchor measures what the driver does alone: rows of 2 KB into a plain
// table, each in a transaction of its own.
func BenchmarkAnchor(b *testing.B) {
	for _, synchronous := range []sqlite.Synchronous{sqlite.Full, sqlite.Normal} {
		b.Run(string(synchronous), func(b *testing.B) {
			db, err := sql.Open("sqlite", filepath.Join(b.TempDir(), "anchor.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous("+string(synchronous)+")")
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			db.SetMaxOpenConns(1)
			if _, err := db.ExecContext(b.Context(), "CREATE TABLE journal (n INTEGER PRIMARY KEY, text TEXT)"); err != nil {
				b.Fatal(err)
			}
			insert, err := db.PrepareContext(b.Context(), "INSERT INTO journal (text) VALUES (?)")
			if err != nil {
				b.Fatal(err)
			}
			defer insert.Close()
			row := strings.Repeat("x", 2000)
			for b.Loop() {
				if _, err := insert.Exec(row); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkOpen measures the start: a new file, and one that is there.
func BenchmarkOpen(b *testing.B) {
	b.Run("fresh", func(b *testing.B) {
		dir := b.TempDir()
		for i := 0; b.Loop(); i++ {
			s, err := sqlite.Open(b.Context(), filepath.Join(dir, fmt.Sprint(i)), sqlite.Options{})
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("existing", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "there.db")
		for b.Loop() {
			s, err := sqlite.Open(b.Context(), path, sqlite.Options{})
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkHead measures the newest state of one artifact on branches of different
// lengths, written at their end and at their beginning.
func BenchmarkHead(b *testing.B) {
	for _, length := range []int{10, 1000, 20_000} {
		s := open(b, sqlite.Memory, sqlite.Options{})
		c := conversation(b, s)
		var leaf artel.MessageID
		update(b, s, func(tx store.Tx) error {
			now := time.Now()
			for i := range length {
				m := artel.Message{ID: artel.NewMessageID(now), Conversation: c, Parent: leaf, Role: artel.RoleUser, CreatedAt: now}
				if err := tx.Messages.Create(m); err != nil {
					return err
				}
				leaf = m.ID
				if i > 0 && i < length-1 {
					continue
				}
				if _, err := tx.Journal.Append(c, map[bool]artel.ArtifactID{true: "first", false: "last"}[i == 0], artel.Version{Message: leaf, CreatedAt: now}, nil); err != nil {
					return err
				}
			}
			return nil
		})
		for _, id := range []artel.ArtifactID{"last", "first"} {
			b.Run(fmt.Sprintf("messages=%d/%s", length, id), func(b *testing.B) {
				for b.Loop() {
					err := s.View(b.Context(), artel.Local, func(tx store.Tx) error {
						_, err := tx.Artifacts.Head(c, id, leaf)
						return err
					})
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func open(tb testing.TB, path string, o sqlite.Options) *sqlite.Store {
	tb.Helper()
	s, err := sqlite.Open(tb.Context(), path, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func update(tb testing.TB, s *sqlite.Store, fn func(store.Tx) error) {
	tb.Helper()
	if err := s.Update(tb.Context(), artel.Local, fn); err != nil {
		tb.Fatal(err)
	}
}

func conversation(tb testing.TB, s *sqlite.Store) artel.ConversationID {
	tb.Helper()
	now := time.Now()
	c := artel.Conversation{ID: artel.NewConversationID(now), Title: "Test", CreatedAt: now, UpdatedAt: now}
	update(tb, s, func(tx store.Tx) error { return tx.Conversations.Create(c) })
	return c.ID
}
