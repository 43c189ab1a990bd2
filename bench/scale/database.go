// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/postgres"
	"github.com/artelhq/artel/store/postgres/postgrestest"
	"github.com/artelhq/artel/store/sqlite"
)

// rounds is how often each database does each work, in turn.
const rounds = 7

// databases measures what runs ask of a database, in PostgreSQL beside SQLite with full
// durability, on one disk.
func databases(ctx context.Context, dir string) error {
	server, err := postgrestest.Start("fsync=on", "synchronous_commit=on", "full_page_writes=on", "autovacuum=on")
	if err != nil {
		return err
	}
	defer server.Stop()
	pg, err := postgres.Open(ctx, server.Address, postgres.Options{})
	if err != nil {
		return err
	}
	defer pg.Close()
	file, err := sqlite.Open(ctx, filepath.Join(dir, "rows.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer file.Close()
	var all [2]*dataset
	for i, s := range []store.Store{pg, file} {
		if all[i], err = fill(ctx, s); err != nil {
			return err
		}
	}
	fmt.Println("| work | | PostgreSQL, per second | SQLite FULL, per second | ratio |")
	fmt.Println("|---|---|---:|---:|---:|")
	for _, w := range []struct {
		name, size string
		workers    int
		do         func(*dataset, int) error
	}{
		{"update", "1 writer", 1, func(d *dataset, w int) error { return d.appendEdit(ctx, w) }},
		{"update", "64 writers, a conversation each", 64, func(d *dataset, w int) error { return d.appendEdit(ctx, w) }},
		{"update", "64 writers, one conversation", 64, func(d *dataset, _ int) error { return d.appendEdit(ctx, 0) }},
		{"view of a row", "1 reader", 1, func(d *dataset, _ int) error { return d.readRow(ctx) }},
		{"branch of 1,000 messages", "1 reader", 1, func(d *dataset, _ int) error { return d.readBranch(ctx) }},
	} {
		var rates [2][]float64
		for n := range rounds + 1 {
			for i, d := range all {
				rate, err := rateOf(w.workers, func(worker int) error { return w.do(d, worker) })
				if err != nil {
					return err
				}
				if n > 0 { // before that connections are made
					rates[i] = append(rates[i], rate)
				}
			}
		}
		p, s := median(rates[0]), median(rates[1])
		fmt.Printf("| %s | %s | %.0f | %.0f | %.2f |\n", w.name, w.size, p, s, p/s)
	}
	return nil
}

// A dataset is what the work is done on.
type dataset struct {
	store         store.Store
	conversations []artel.ConversationID // one for each writer
	leaf          artel.MessageID        // of a branch in the first conversation
}

func fill(ctx context.Context, s store.Store) (*dataset, error) {
	d, now := &dataset{store: s}, time.Now()
	for range 64 {
		d.conversations = append(d.conversations, artel.NewConversationID(now))
	}
	err := s.Update(ctx, artel.Local, func(tx store.Tx) error {
		for _, id := range d.conversations {
			if err := tx.Conversations.Create(artel.Conversation{ID: id, Title: "Rows", CreatedAt: now, UpdatedAt: now}); err != nil {
				return err
			}
		}
		d.leaf = ""
		for range 1000 {
			m := artel.Message{
				ID: artel.NewMessageID(now), Conversation: d.conversations[0], Parent: d.leaf, Role: artel.RoleUser,
				Parts: artel.Parts{artel.Text{Text: strings.Repeat("words of a message ", 20)}}, CreatedAt: now,
			}
			if err := tx.Messages.Create(m); err != nil {
				return err
			}
			d.leaf = m.ID
		}
		return nil
	})
	return d, err
}

// appendEdit stores what a tool call stores: an edit of 2 KB and its event.
func (d *dataset) appendEdit(ctx context.Context, writer int) error {
	c := d.conversations[writer]
	v := artel.Version{
		Author: "agent", Update: artel.UpdateExact, Title: "Rows", Provenance: artel.SourceAgent, CreatedAt: time.Now(),
		MediaInfo: artel.MediaInfo{MediaType: "text/markdown", Kind: artel.KindText, Size: 1 << 20},
		Changes:   []artel.Change{{Layer: artel.LayerExact, Start: 10, End: 1010, Old: strings.Repeat("o", 1000), New: strings.Repeat("n", 1000)}},
		Digest:    artel.NewDigest([32]byte{1}),
	}
	e, err := artel.NewEvent("", "agent", v.CreatedAt, artel.ToolStarted{Call: "call", Name: "update_artifact", Arguments: []byte("{}")})
	if err != nil {
		return err
	}
	return d.store.Update(ctx, artel.Local, func(tx store.Tx) error {
		if _, err := tx.Journal.Append(c, "doc", v, nil); err != nil {
			return err
		}
		_, err := tx.Events.Append(c, e)
		return err
	})
}

func (d *dataset) readRow(ctx context.Context) error {
	return d.store.View(ctx, artel.Local, func(tx store.Tx) error {
		_, err := tx.Conversations.Get(d.conversations[1])
		return err
	})
}

func (d *dataset) readBranch(ctx context.Context) error {
	return d.store.View(ctx, artel.Local, func(tx store.Tx) error {
		branch, err := tx.Messages.Path(d.conversations[0], d.leaf, 0)
		if err == nil && len(branch) != 1000 {
			err = fmt.Errorf("the branch has %d messages", len(branch))
		}
		return err
	})
}

// rateOf repeats work with as many workers for a while, and returns how often it was done
// in a second.
func rateOf(workers int, do func(worker int) error) (float64, error) {
	const while = 500 * time.Millisecond
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	began := time.Now()
	for w := range workers {
		wg.Go(func() {
			for time.Since(began) < while && failed.Load() == nil {
				if err := do(w); err != nil {
					failed.Store(&err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(done.Load()) / time.Since(began).Seconds(), nil
}
