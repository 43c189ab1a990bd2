// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// The clauses of this file write through all handles at once, as several processes do
// that share a database.

// together runs fn n times at once, with the handles in turn, and waits for all.
func (c *check) together(n int, fn func(i int, s store.Store) error) {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = fn(i, c.handles[i%len(c.handles)]) })
	}
	wg.Wait()
	for _, err := range errs {
		c.Must("one of several at once", err)
	}
}

// counting expects that no increment is lost if several updates at once read a number
// and write the next one.
func (c *check) counting(what string, increment func(tx store.Tx) error, read func(tx store.Tx) (int, error)) {
	const writers, each = 6, 5
	c.together(writers, func(_ int, s store.Store) error {
		for range each {
			if err := s.Update(c.Context(), me, increment); err != nil {
				return err
			}
		}
		return nil
	})
	reads(c, what+" that several have counted up", writers*each, read)
}

func lostRuns(c *check) {
	id, _ := c.waiting()
	c.counting("a run", func(tx store.Tx) error {
		r, err := tx.Runs.Get(id)
		if err != nil {
			return err
		}
		r.Usage.InputTokens++
		return tx.Runs.Update(r)
	}, func(tx store.Tx) (int, error) {
		r, err := tx.Runs.Get(id)
		return int(r.Usage.InputTokens), err
	})
}

// waiting makes a run whose lease has ended.
func (c *check) waiting() (artel.RunID, artel.ConversationID) {
	conv, id := c.conversation(), artel.NewRunID(c.now)
	c.update(func(tx store.Tx) error {
		return tx.Runs.Create(artel.Run{ID: id, Conversation: conv, State: artel.RunRunning}, store.Lease{Holder: "gone", Term: 1, Until: c.now})
	})
	return id, conv
}

func lostNotes(c *check) {
	conv := c.conversation()
	c.update(func(tx store.Tx) error {
		return tx.Notes.Put(store.Note{ID: "count", Conversation: conv, Body: json.RawMessage("0")})
	})
	number := func(tx store.Tx) (n int, err error) {
		note, err := tx.Notes.Get("count")
		if err == nil {
			err = json.Unmarshal(note.Body, &n)
		}
		return n, err
	}
	c.counting("a note", func(tx store.Tx) error {
		n, err := number(tx)
		if err != nil {
			return err
		}
		return tx.Notes.Put(store.Note{ID: "count", Conversation: conv, Body: json.RawMessage(strconv.Itoa(n + 1))})
	}, number)
}

func lostMessages(c *check) {
	conv := c.conversation()
	id := c.message(conv, "")
	// A message has one bit, so the updates count in the title and turn the bit.
	c.update(rename(conv, "0"))
	count := func(tx store.Tx) (int, error) {
		v, err := tx.Conversations.Get(conv)
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(v.Title)
	}
	c.counting("a message", func(tx store.Tx) error {
		m, err := tx.Messages.Get(id)
		if err != nil {
			return err
		}
		n, err := count(tx)
		if err != nil {
			return err
		}
		if m.Muted != (n%2 == 1) {
			return artel.Errorf(artel.Internal, "storetest", string(id), "message and title are not of one state: %v at %d", m.Muted, n)
		}
		if err := tx.Messages.SetMuted(id, !m.Muted); err != nil {
			return err
		}
		return rename(conv, strconv.Itoa(n+1))(tx)
	}, count)
}

func lostSettings(c *check) {
	for round := range 5 {
		var mu sync.Mutex
		won := 0
		c.together(6, func(_ int, s store.Store) error {
			err := s.Update(c.Context(), me, func(tx store.Tx) error {
				_, err := tx.Settings.Put(store.Setting{Name: "name", Revision: round, Value: json.RawMessage("1")})
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case artel.KindOf(err) == artel.Conflict:
				return nil
			}
			return err
		})
		c.Same("writers that replaced revision "+strconv.Itoa(round), won, 1)
	}
}

// oppositeOrder writes to two conversations in both orders, which a database resolves by
// running one of the updates again.
func oppositeOrder(c *check) {
	const writers, each = 4, 5
	a, b := c.conversation(), c.conversation()
	c.together(writers, func(i int, s store.Store) error {
		first, second := a, b
		if i%2 == 1 {
			first, second = b, a
		}
		for range each {
			err := s.Update(c.Context(), me, func(tx store.Tx) error {
				_, err := tx.Events.Append(first, artel.Event{})
				if err == nil {
					_, err = tx.Events.Append(second, artel.Event{})
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	c.gapless(a, writers*each)
	c.gapless(b, writers*each)
}

func (c *check) gapless(conv artel.ConversationID, want int) {
	events := c.log(conv)
	c.Same("events", len(events), want)
	for i, e := range events {
		if e.Seq != artel.Seq(i+1) {
			c.Failf("event %d has number %d", i+1, e.Seq)
			return
		}
	}
}

// orderedVisibility reads a log while several append to it: a reader that has seen an
// event must not find an older one later.
func orderedVisibility(c *check) {
	const writers, each = 16, 5
	conv := c.conversation()
	ctx, cancel := context.WithTimeout(c.Context(), c.patience)
	defer cancel()
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() {
		reader := c.handles[len(c.handles)-1]
		for last := artel.Seq(0); last < writers*each && failed == nil; {
			failed = reader.View(ctx, me, func(tx store.Tx) error {
				events, err := tx.Events.Read(conv, last, 1000)
				for _, e := range events {
					if last++; e.Seq != last {
						return artel.Errorf(artel.Internal, "storetest", string(conv), "event %d follows event %d", e.Seq, last-1)
					}
				}
				return err
			})
			if failed == nil && last < writers*each {
				time.Sleep(time.Millisecond) // lets the writers run
			}
		}
	})
	c.together(writers, func(_ int, s store.Store) error {
		for range each {
			if err := s.Update(ctx, me, func(tx store.Tx) error { _, err := tx.Events.Append(conv, artel.Event{}); return err }); err != nil {
				return err
			}
		}
		return nil
	})
	wg.Wait()
	c.Must("reading beside writers", failed)
	c.gapless(conv, writers*each)
}

// gaplessEdits does the same for the numbers of an artifact, which is new.
func gaplessEdits(c *check) {
	const writers, each = 8, 5
	conv := c.conversation()
	c.together(writers, func(_ int, s store.Store) error {
		for range each {
			text := "x"
			if err := s.Update(c.Context(), me, func(tx store.Tx) error {
				_, err := tx.Journal.Append(conv, "doc", artel.Version{}, &text)
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	c.view(func(tx store.Tx) error {
		edits, err := tx.Journal.Edits(conv, store.EditQuery{Artifact: "doc", Outline: true})
		c.Same("edits", len(edits), writers*each)
		for i, e := range edits {
			if e.Number != i+1 {
				c.Failf("edit %d has number %d", i+1, e.Number)
				break
			}
		}
		return err
	})
}

func takenOnce(c *check) {
	id, _ := c.waiting()
	var mu sync.Mutex
	var holders []string
	c.together(8, func(i int, s store.Store) error {
		holder := "holder" + strconv.Itoa(i)
		err := s.Update(c.Context(), me, func(tx store.Tx) error {
			return tx.Runs.Renew(store.Lease{Run: id, Holder: holder, Term: 2, Until: c.at(60)}, c.at(1000)) // by a clock that is ahead
		})
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			holders = append(holders, holder)
		case artel.KindOf(err) == artel.Conflict:
			return nil
		}
		return err
	})
	c.Same("holders that got the lease", len(holders), 1)
	c.update(func(tx store.Tx) error {
		return tx.Runs.Renew(store.Lease{Run: id, Holder: holders[0], Term: 2}, c.at(1))
	})
}

// answeredOnce stores the answer to one request from several handles.
func answeredOnce(c *check) {
	var mu sync.Mutex
	stored := 0
	c.together(8, func(i int, s store.Store) error {
		err := s.Update(c.Context(), me, func(tx store.Tx) error {
			return tx.Answers.Put(store.Answer{Key: "key", Status: 200 + i})
		})
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			stored++
		case artel.KindOf(err) == artel.Conflict:
			return nil
		}
		return err
	})
	c.Same("answers stored under one key", stored, 1)
}

// oneActiveRun starts runs in one conversation from several handles.
func oneActiveRun(c *check) {
	conv := c.conversation()
	var mu sync.Mutex
	started := 0
	c.together(8, func(i int, s store.Store) error {
		err := s.Update(c.Context(), me, func(tx store.Tx) error {
			return tx.Runs.Create(artel.Run{ID: artel.RunID("run_" + strconv.Itoa(i)), Conversation: conv, State: artel.RunRunning}, store.Lease{})
		})
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			started++
		case artel.CodeOf(err) == "run_active":
			return nil
		}
		return err
	})
	c.Same("runs that started", started, 1)
}

// purgeBesideWriters removes deleted conversations while others are written to, and
// reads the digests in use.
func purgeBesideWriters(c *check) {
	const writers, each = 4, 5
	digest := artel.NewDigest(sha256.Sum256([]byte("kept")))
	kept := c.conversation()
	c.version(kept, "kept", artel.Version{Digest: digest, InBlob: true, MediaInfo: artel.MediaInfo{Size: 4}}, "kept")
	var gone []full
	for range 3 {
		f := c.fill(me, "gone")
		c.delete(me, f, c.now)
		gone = append(gone, f)
	}
	var purged, used int
	var mu sync.Mutex
	c.together(writers+2, func(i int, s store.Store) error {
		switch i {
		case writers:
			n, err := s.Purge(c.Context(), c.at(1))
			purged = n
			return err
		case writers + 1:
			for u, err := range s.Digests(c.Context()) {
				if err != nil {
					return err
				}
				if u.Digest == digest && u.Bytes {
					mu.Lock()
					used++
					mu.Unlock()
				}
			}
			return nil
		}
		for range each {
			if err := s.Update(c.Context(), me, func(tx store.Tx) error { _, err := tx.Events.Append(kept, artel.Event{}); return err }); err != nil {
				return err
			}
		}
		return nil
	})
	c.Same("conversations that were purged", purged, len(gone))
	if used == 0 {
		c.Failf("Digests beside Purge has not yielded the digest of a conversation that stays")
	}
	c.gapless(kept, writers*each)
	for _, f := range gone {
		c.absent("purged beside writers", f, "gone")
	}
}

// locks has several at once take one lock of a name.
func locks(c *check) {
	var inside, together atomic.Int64
	c.together(8, func(int, store.Store) error {
		for range 3 {
			release, err := c.s.Lock(c.Context(), "name "+awkward)
			if err != nil {
				return err
			}
			if inside.Add(1) > 1 {
				together.Add(1)
			}
			time.Sleep(time.Millisecond) // so that others come
			inside.Add(-1)
			release()
		}
		return nil
	})
	c.Same("holders of a lock that another one had", together.Load(), int64(0))
	release, err := c.s.Lock(c.Context(), "a")
	c.Must("Lock", err)
	other, err := c.s.Lock(c.Context(), "b")
	c.Must("Lock of another name", err)
	ctx, cancel := context.WithCancel(c.Context())
	waited := make(chan error)
	go func() {
		_, err := c.s.Lock(ctx, "a")
		waited <- err
	}()
	cancel()
	c.Kind("Lock whose context has ended", <-waited, artel.Canceled)
	other()
	release()
	release, err = c.s.Lock(c.Context(), "a")
	c.Must("Lock after that", err)
	release()
}
