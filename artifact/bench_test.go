// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

// fill makes n artifacts of a text in one update.
func fill(b testing.TB, bench *bench, n int, text string) {
	b.Helper()
	err := bench.store.Update(b.Context(), artel.Local, func(tx store.Tx) error {
		for i := range n {
			id := artel.ArtifactID(fmt.Sprintf("report_%05d", i))
			v := artel.Version{
				Message: bench.root, Author: "lead_agent", Update: artel.UpdateCreate, Title: "A report on something", Provenance: artel.SourceAgent,
				MediaInfo: artel.MediaInfo{MediaType: "text/markdown", Kind: artel.KindText, Charset: "utf-8", Confidence: 1, Size: int64(len(text))},
				Digest:    artel.NewDigest([32]byte{byte(i), byte(i >> 8)}), Preview: artel.Beginning(text, artel.PreviewChars), CreatedAt: start,
			}
			var err error
			if v.Number, err = tx.Journal.Append(bench.conv, id, v, nil); err != nil {
				return err
			}
			if err := tx.Journal.Fold(bench.conv, id, v, &text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkInventory lists artifacts with previews, as each model call does: of
// a database that was just opened, and again.
func BenchmarkInventory(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		for _, size := range []int{1_000, 20_000, 1_000_000} {
			if n*size > 1_000_000_000 {
				continue
			}
			path := filepath.Join(b.TempDir(), "rows.db")
			bench := newBench(b, path)
			fill(b, bench, n, strings.Repeat("Some words, 一些字. ", size/21))
			b.Run(fmt.Sprintf("artifacts=%d/bytes=%d/cold", n, size), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					cold := *bench
					s, err := sqlite.Open(b.Context(), path, sqlite.Options{})
					if err != nil {
						b.Fatal(err)
					}
					cold.store = s
					b.StartTimer()
					list(b, &cold, cold.collection(), n)
					b.StopTimer()
					if err := s.Close(); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			})
			b.Run(fmt.Sprintf("artifacts=%d/bytes=%d/warm", n, size), func(b *testing.B) {
				c := bench.collection()
				for b.Loop() {
					list(b, bench, c, n)
				}
			})
		}
	}
}

func list(b testing.TB, bench *bench, c *artifact.Collection, n int) {
	o, err := c.Overview(b.Context(), artel.Local, bench.conv, bench.a, artel.PreviewChars)
	items := o.Others
	if err != nil || len(items) != n || utf8.RuneCountInString(items[n-1].Preview) != artel.PreviewChars {
		b.Fatalf("%d items, %v", len(items), err)
	}
}

// BenchmarkOpenVersioned opens the head of an artifact of 100 KB with 1 and
// with 1,000 versions, and an old version of it.
func BenchmarkOpenVersioned(b *testing.B) {
	for _, n := range []int{1, 1000} {
		bench := newBench(b, filepath.Join(b.TempDir(), "rows.db"))
		text := strings.Repeat("0123456789abcde\n", 100_000/16)
		w := bench.workspace("", bench.a)
		must[artel.Artifact](b)(w.Create(b.Context(), "doc", "", text+"<0>", ""))
		for i := 1; i < n; i++ {
			update(b, w, "doc", fmt.Sprintf("<%d>", i-1), fmt.Sprintf("<%d>", i))
		}
		c := bench.collection()
		open := func(number int) func(b *testing.B) {
			return func(b *testing.B) {
				for b.Loop() {
					got, _, err := c.Text(context.Background(), artel.Local, bench.conv, "doc", number, bench.a)
					if err != nil || len(got) < len(text) {
						b.Fatal(err)
					}
				}
			}
		}
		b.Run(fmt.Sprintf("versions=%d/head", n), open(0))
		b.Run(fmt.Sprintf("versions=%d/old", n), open(max(1, n/2-1)))
	}
}

// BenchmarkList lists artifacts without previews.
func BenchmarkList(b *testing.B) {
	bench := newBench(b, filepath.Join(b.TempDir(), "rows.db"))
	fill(b, bench, 10_000, strings.Repeat("Some words, 一些字. ", 100))
	c := bench.collection()
	for b.Loop() {
		if all, err := c.List(b.Context(), artel.Local, bench.conv, bench.a); err != nil || len(all) != 10_000 {
			b.Fatal(err)
		}
	}
}

// BenchmarkFirstEdit edits an artifact from the beginning of a conversation of 20,000
// messages, at its end and in runs of their own.
func BenchmarkFirstEdit(b *testing.B) {
	bench := newBench(b, filepath.Join(b.TempDir(), "rows.db"))
	fill(b, bench, 1, "a text <0>")
	last := bench.root
	err := bench.store.Update(b.Context(), artel.Local, func(tx store.Tx) error {
		for range 20_000 {
			m := artel.Message{ID: artel.NewMessageID(start), Conversation: bench.conv, Parent: last, Role: artel.RoleUser, CreatedAt: start}
			if err := tx.Messages.Create(m); err != nil {
				return err
			}
			last = m.ID
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	c := bench.collection()
	for b.Loop() {
		w := c.Workspace(artifact.WorkspaceConfig{Owner: artel.Local, Conversation: bench.conv, Message: last, Author: "a"})
		if _, _, err := w.Edit.Update(b.Context(), "report_00000", []edit.Edit{{Old: "a text", New: "a text"}}, artifact.UpdateOptions{}); err == nil {
			b.Fatal("nothing changes")
		}
		if _, err := w.Get(b.Context(), "report_00000"); err != nil {
			b.Fatal(err)
		}
	}
}
