// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

// talker makes texts of words that are as frequent as those of a language: of
// made ones in letters, and of Chinese characters.
func talker() func() string {
	r := rand.New(rand.NewPCG(1, 2))
	syllables := strings.Fields("ba be bi bo bu da de di do du fa fe fi ka ke ki ko la le li lo ma me mi mo na ne ni no pa pe ra re ri ro sa se si so ta te ti to va ve vi ing ed er")
	words := make([]string, 20000)
	for i := range words {
		for range 1 + r.IntN(4) {
			words[i] += syllables[r.IntN(len(syllables))]
		}
	}
	frequent := rand.NewZipf(r, 1.1, 3, uint64(len(words)-1))
	return func() string {
		var b strings.Builder
		for range 20 + r.IntN(120) {
			if r.IntN(5) > 0 {
				b.WriteString(words[frequent.Uint64()] + " ")
				continue
			}
			for range 2 + r.IntN(6) {
				b.WriteRune(rune(0x4e00 + r.IntN(3000)*r.IntN(3000)/3000))
			}
			b.WriteString("，")
		}
		return b.String()
	}
}

// BenchmarkSearch measures the first page over 2,000 conversations of 50
// messages, about 600 bytes each.
func BenchmarkSearch(b *testing.B) {
	const conversations, messages = 2000, 50
	path := filepath.Join(b.TempDir(), "search.db")
	s := open(b, path, sqlite.Options{Synchronous: sqlite.Normal})
	say := talker()
	now := time.Now()
	size := 0
	for i := range conversations {
		c := artel.Conversation{ID: artel.NewConversationID(now), Title: say()[:40], CreatedAt: now, UpdatedAt: now.Add(time.Duration(i) * time.Minute)}
		c.Title = strings.ToValidUTF8(c.Title, "")
		update(b, s, func(tx store.Tx) error {
			if err := tx.Conversations.Create(c); err != nil {
				return err
			}
			for k := range messages {
				m := artel.Message{ID: artel.NewMessageID(now), Conversation: c.ID, Role: artel.RoleUser, CreatedAt: now}
				text := say()
				if i == 1234 && k == 7 {
					text += " xylophone 龘靐"
				}
				size += len(text)
				m.Parts = artel.Parts{artel.Text{Text: text}}
				if err := tx.Messages.Create(m); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, tt := range []struct{ name, search string }{
		{"rare", "xylophone"},
		{"rare-2", "龘靐"},
		{"frequent", "ing"},
		{"frequent-1", "b"},
		{"frequent-2", "ba"},
		{"frequent-5", "babed"},
		{"chinese-1", "一"},
		{"chinese-2", "一丁"},
		{"two-words", "ing 一丁"},
		{"none", "nothinglikethis"},
	} {
		b.Run(tt.name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n = len(search1(b, s, tt.search))
			}
			b.ReportMetric(float64(n), "found")
		})
	}
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			search1(b, s, "")
		}
	})
	b.Run("size", func(b *testing.B) {
		for b.Loop() {
			if err := sqlite.Checkpoint(s); err != nil {
				b.Fatal(err)
			}
		}
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(size)/1e6, "MB-text")
		b.ReportMetric(float64(info.Size())/1e6, "MB-file")
	})
}

// BenchmarkMessage measures messages of about 600 bytes, each in an update of
// its own: those of users, which searches find, and those of tools, which they
// do not.
func BenchmarkMessage(b *testing.B) {
	for _, role := range []artel.Role{artel.RoleUser, artel.RoleTool} {
		b.Run(string(role), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "messages.db"), sqlite.Options{Synchronous: sqlite.Normal})
			c := conversation(b, s)
			say := talker()
			now := time.Now()
			for b.Loop() {
				m := artel.Message{ID: artel.NewMessageID(now), Conversation: c, Role: role, CreatedAt: now, Parts: artel.Parts{artel.Text{Text: say()}}}
				update(b, s, func(tx store.Tx) error { return tx.Messages.Create(m) })
			}
		})
	}
}

// BenchmarkPath measures the last ten messages of branches of different
// lengths.
func BenchmarkPath(b *testing.B) {
	for _, length := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("messages=%d", length), func(b *testing.B) {
			s := open(b, sqlite.Memory, sqlite.Options{})
			c := conversation(b, s)
			leaf := branch(b, s, c, length)
			for b.Loop() {
				if err := s.View(b.Context(), artel.Local, func(tx store.Tx) error {
					ms, err := tx.Messages.Path(c, leaf, 10)
					if len(ms) != 10 {
						b.Fatalf("got %d messages", len(ms))
					}
					return err
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func branch(tb testing.TB, s *sqlite.Store, c artel.ConversationID, length int) (leaf artel.MessageID) {
	tb.Helper()
	now := time.Now()
	update(tb, s, func(tx store.Tx) error {
		for range length {
			m := artel.Message{ID: artel.NewMessageID(now), Conversation: c, Parent: leaf, Role: artel.RoleTool, CreatedAt: now}
			if err := tx.Messages.Create(m); err != nil {
				return err
			}
			leaf = m.ID
		}
		return nil
	})
	return leaf
}

// BenchmarkPurge measures how long other updates wait while a conversation of
// 100,000 rows is removed.
func BenchmarkPurge(b *testing.B) {
	for b.Loop() {
		s := open(b, filepath.Join(b.TempDir(), "purge.db"), sqlite.Options{Synchronous: sqlite.Normal})
		c, other := filled(b, s, 25_000), conversation(b, s)
		update(b, s, func(tx store.Tx) error { return tx.Conversations.Delete(c, time.Unix(1, 0)) })
		done := make(chan error, 1)
		began := time.Now()
		go func() {
			_, err := s.Purge(b.Context(), time.Unix(2, 0))
			done <- err
		}()
		var waits []time.Duration
		for purging := true; purging; {
			select {
			case err := <-done:
				if err != nil {
					b.Fatal(err)
				}
				purging = false
			default:
				start := time.Now()
				update(b, s, func(tx store.Tx) error { _, err := tx.Events.Append(other, artel.Event{}); return err })
				waits = append(waits, time.Since(start))
			}
		}
		slices.Sort(waits)
		b.ReportMetric(time.Since(began).Seconds(), "s-purge")
		b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1000, "ms-wait-p50")
		b.ReportMetric(float64(waits[len(waits)-1].Microseconds())/1000, "ms-wait-max")
	}
}
