// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

const (
	batchWindow = time.Second      // how long records gather before they are written together
	writeTime   = 30 * time.Second // for one batch
)

// A ledgerKey says to which row a record counts.
type ledgerKey struct {
	day     int64
	user    artel.Owner
	key     string
	service artel.ServiceID
	model   string
	agent   artel.AgentName
	source  string
}

// A ledger writes records in batches. Its goroutine lives only while records wait.
type ledger struct {
	m       *Meter
	mu      sync.Mutex
	waiting map[ledgerKey]store.UsageCounts
	batch   chan struct{} // closed when what is waiting was tried to be written; nil: nothing is waiting
	writing chan struct{} // of the batch that is being written; nil: none
	running bool          // there is a writer
	flush   chan struct{} // has an element if a caller waits for the writer
	failed  error         // of the last batch, whose records wait for the next
}

const day = 24 * time.Hour

func (l *ledger) add(r Record) {
	u := r.Usage
	k := ledgerKey{l.m.c.Now().UTC().Truncate(day).Unix(), r.User, r.Key, r.Service, r.Model, r.Agent, r.Source}
	c := store.UsageCounts{
		Calls: 1, Input: u.InputTokens, Cached: u.CachedTokens, Output: u.OutputTokens, Reasoning: u.ThoughtTokens,
		Cost: int64(math.Round(u.Cost.USD * nano)), Unknown: int64(1 - min(1, u.Cost.Calls)),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[k] = l.waiting[k].Plus(c)
	l.start()
}

// start starts a writer if there is none. The caller holds l.mu.
func (l *ledger) start() {
	if l.batch == nil {
		l.batch = make(chan struct{})
	}
	if !l.running {
		l.running = true
		go l.write()
	}
}

// Flush writes what was recorded before.
func (m *Meter) Flush(ctx context.Context) error {
	l := &m.ledger
	l.mu.Lock()
	if len(l.waiting) > 0 {
		l.start() // the last batch may have failed
	}
	waits := []chan struct{}{l.writing, l.batch}
	l.mu.Unlock()
	if waits[1] != nil {
		select {
		case l.flush <- struct{}{}:
		default: // another caller waits too
		}
	}
	for _, w := range waits {
		if w == nil {
			continue
		}
		select {
		case <-w:
		case <-ctx.Done():
			return artel.Errorf(artel.Canceled, "meter.Meter.Flush", "", "the ledger is not written: %w", ctx.Err())
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// write writes batches until nothing waits, or one fails.
func (l *ledger) write() {
	for {
		window := time.NewTimer(batchWindow)
		select {
		case <-window.C:
		case <-l.flush:
			window.Stop()
		}
		l.mu.Lock()
		batch, done := l.waiting, l.batch
		l.waiting, l.batch, l.writing = map[ledgerKey]store.UsageCounts{}, nil, done
		l.mu.Unlock()
		err := l.store(batch)
		l.mu.Lock()
		if l.failed = err; err != nil {
			l.m.c.Log.Error("what model calls have used could not be stored; it is tried again with the next call", "rows", len(batch), "err", err)
			for k, c := range batch {
				l.waiting[k] = l.waiting[k].Plus(c)
			}
		}
		l.writing = nil
		if done != nil {
			close(done)
		}
		l.running = l.batch != nil // records have come meanwhile
		again := l.running
		l.mu.Unlock()
		if !again {
			return
		}
	}
}

func (l *ledger) store(batch map[ledgerKey]store.UsageCounts) error {
	rows := make([]store.UsageRow, 0, len(batch))
	for k, c := range batch {
		rows = append(rows, store.UsageRow{Day: time.Unix(k.day, 0).UTC(), User: k.user, Key: k.key, Service: k.service, Model: k.model, Agent: k.agent, Source: k.source, Counts: c})
	}
	ctx, stop := context.WithTimeout(context.Background(), writeTime)
	defer stop()
	back := l.m.unneeded()
	err := l.m.c.People.Update(ctx, func(tx store.PeopleTx) error {
		if err := tx.Ledger.Add(rows...); err != nil {
			return err
		}
		return giveBack(tx, back)
	})
	for _, u := range back {
		if err == nil {
			u.account.stored = u.keeps
		}
		u.account.marking.Unlock()
	}
	return err
}

// kick makes a batch be written, also if nothing was used.
func (l *ledger) kick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start()
}
