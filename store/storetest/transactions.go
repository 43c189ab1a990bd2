// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

var errUndo = errors.New("undo this")

func foreignIsMissing(c *check) {
	f := c.fill(me, "mine")
	conv := f.id
	c.update(func(tx store.Tx) error { return tx.Answers.Put(store.Answer{Key: "key", CreatedAt: c.now}) })
	for what, fn := range c.calls(f) {
		c.Kind(what+" by another owner", c.s.Update(c.Context(), them, fn), artel.NotFound)
	}
	c.Kind("Answers.Get by another owner", c.s.Update(c.Context(), them, func(tx store.Tx) error { _, err := tx.Answers.Get("key"); return err }), artel.NotFound)
	c.Must("as another owner", c.s.Update(c.Context(), them, func(tx store.Tx) error {
		for _, search := range []string{"", "mine"} {
			ids, err := listed(tx, search)
			c.Same("conversations that another owner sees", len(ids), 0)
			if err != nil {
				return err
			}
		}
		return tx.Answers.Prune(c.at(99))
	}))
	// The same id may be used by another owner.
	c.Must("the same id for another owner", c.s.Update(c.Context(), them, func(tx store.Tx) error {
		if err := tx.Answers.Put(store.Answer{Key: "key"}); err != nil {
			return err
		}
		return tx.Conversations.Create(artel.Conversation{ID: conv})
	}))
	c.view(func(tx store.Tx) error {
		if _, err := tx.Answers.Get("key"); err != nil {
			return fmt.Errorf("the owner's answer: %w", err)
		}
		_, err := tx.Runs.Active(conv)
		return err
	})
}

// title is what the conversation is called.
func (c *check) title(conv artel.ConversationID) (title string) {
	c.view(func(tx store.Tx) error {
		v, err := tx.Conversations.Get(conv)
		title = v.Title
		return err
	})
	return title
}

func rename(conv artel.ConversationID, title string) func(store.Tx) error {
	return func(tx store.Tx) error { return tx.Conversations.Update(artel.Conversation{ID: conv, Title: title}) }
}

// several writes to more than one place.
func several(conv artel.ConversationID) func(store.Tx) error {
	return func(tx store.Tx) error {
		if err := rename(conv, "changed")(tx); err != nil {
			return err
		}
		_, err := tx.Events.Append(conv, artel.Event{})
		return err
	}
}

func (c *check) untouched(what string, conv artel.ConversationID) {
	c.Same(what+": title", c.title(conv), "")
	c.Same(what+": events", len(c.log(conv)), 0)
}

func errorUndoes(c *check) {
	conv := c.conversation()
	err := c.s.Update(c.Context(), me, func(tx store.Tx) error {
		if err := several(conv)(tx); err != nil {
			return err
		}
		return errUndo
	})
	if err != errUndo { //nolint:errorlint // it comes back as it is
		c.Failf("Update returned %v, want fn's error as it is", err)
	}
	c.untouched("after an error", conv)
	// A refusal that fn lives with undoes nothing.
	c.update(func(tx store.Tx) error {
		c.Kind("Create twice", tx.Conversations.Create(artel.Conversation{ID: conv}), artel.Conflict)
		return rename(conv, "continued")(tx)
	})
	c.Same("title after a refusal inside", c.title(conv), "continued")
	if err := c.s.View(c.Context(), me, func(store.Tx) error { return errUndo }); err != errUndo { //nolint:errorlint // as it is
		c.Failf("View returned %v, want fn's error as it is", err)
	}
}

func panicUndoes(c *check) {
	conv := c.conversation()
	for _, call := range []func(context.Context, artel.Owner, func(store.Tx) error) error{c.s.Update, c.s.View} {
		done := make(chan error, 1)
		go func() {
			defer func() { _ = recover(); done <- nil }()
			_ = call(c.Context(), me, func(tx store.Tx) error {
				_ = several(conv)(tx)
				panic("in fn")
			})
		}()
		select {
		case <-done:
		case <-time.After(c.patience):
			c.Failf("a panic in fn: the call has not returned after %v", c.patience)
			return
		}
		c.untouched("after a panic", conv)
	}
	c.update(rename(conv, "still here"))
	c.Same("title after a panic", c.title(conv), "still here")
}

func cancelUndoes(c *check) {
	conv := c.conversation()
	ctx, cancel := context.WithCancel(c.Context())
	ran := false
	err := c.s.Update(ctx, me, func(tx store.Tx) error {
		ran = true
		err := several(conv)(tx)
		cancel()
		return err
	})
	c.Kind("Update whose context ends in fn", err, artel.Canceled)
	c.Same("fn has run", ran, true)
	c.untouched("after the context ended", conv)
	c.Kind("Update whose context has ended", c.s.Update(ctx, me, several(conv)), artel.Canceled)
	c.untouched("after the context had ended", conv)
}

func cancelInLine(c *check) {
	conv := c.conversation()
	inside, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	var first error
	var once sync.Once
	wg.Go(func() {
		first = c.s.Update(c.Context(), me, func(tx store.Tx) error {
			if _, err := tx.Conversations.Get(conv); err != nil { // takes the turn for this conversation
				return err
			}
			once.Do(func() { close(inside) })
			<-release
			return rename(conv, "first")(tx)
		})
	})
	<-inside
	ctx, cancel := context.WithCancel(c.Context())
	second := make(chan error, 1)
	wg.Go(func() { second <- c.s.Update(ctx, me, rename(conv, "second")) })
	cancel()
	select {
	case err := <-second:
		c.Kind("Update whose context ends in line", err, artel.Canceled)
		close(release)
	case <-time.After(c.patience):
		c.Failf("an update whose context ended in line has not returned after %v", c.patience)
		close(release)
		<-second
	}
	wg.Wait()
	c.Must("the update that continued", first)
	c.Same("title", c.title(conv), "first")
}

func cancelView(c *check) {
	ctx, cancel := context.WithCancel(c.Context())
	err := c.s.View(ctx, me, func(tx store.Tx) error {
		cancel()
		_, _, err := tx.Conversations.List(store.ConversationQuery{})
		return err
	})
	c.Kind("View whose context ends in fn", err, artel.Canceled)
	c.Kind("View whose context has ended", c.s.View(ctx, me, func(store.Tx) error { return nil }), artel.Canceled)
	_, err = c.s.Overdue(ctx, c.now)
	c.Kind("Overdue whose context has ended", err, artel.Canceled)
	_, err = c.s.Purge(ctx, c.now)
	c.Kind("Purge whose context has ended", err, artel.Canceled)
}

func noSharedMemory(c *check) {
	conv := c.conversation()
	m := artel.Message{ID: artel.NewMessageID(c.now), Conversation: conv, Parts: artel.Parts{artel.Text{Text: "a"}}}
	v := artel.Version{Changes: []artel.Change{{Old: "a"}}}
	e := artel.Event{Data: json.RawMessage(`"a"`)}
	a := store.Answer{Key: "key", Body: []byte("a")}
	end := c.now
	r := artel.Run{ID: artel.NewRunID(c.now), Conversation: conv, State: artel.RunDone, Error: &artel.RunError{Message: "a"}, FinishedAt: &end}
	text := "a"
	spoil := func(m artel.Message, v artel.Version, e artel.Event, a store.Answer, r artel.Run, text *string) {
		m.Parts[0] = artel.Text{Text: "b"}
		v.Changes[0].Old = "b"
		e.Data[1] = 'b'
		a.Body[0] = 'b'
		r.Error.Message = "b"
		*r.FinishedAt = c.at(1)
		*text = "b"
	}
	c.update(func(tx store.Tx) error {
		_, err := tx.Journal.Append(conv, "doc", v, &text)
		if err == nil {
			_, err = tx.Events.Append(conv, e)
		}
		return errors.Join(err, tx.Messages.Create(m), tx.Answers.Put(a), tx.Runs.Create(r, store.Lease{}))
	})
	spoil(m, v, e, a, r, &text)
	for range 2 { // the second time, what the first one returned is spoilt too
		c.view(func(tx store.Tx) error {
			m, err1 := tx.Messages.Get(m.ID)
			edits, err2 := tx.Journal.Edits(conv, store.EditQuery{})
			events, err3 := tx.Events.Read(conv, 0, 1)
			a, err4 := tx.Answers.Get("key")
			r, err5 := tx.Runs.Get(r.ID)
			if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
				return err
			}
			c.Same("stored values after the caller's were changed",
				[]string{artel.TextOf(m.Parts), edits[0].Changes[0].Old, string(events[0].Data), string(a.Body), r.Error.Message, *edits[0].Text},
				[]string{"a", "a", `"a"`, "a", "a", "a"})
			c.Same("finished at", *r.FinishedAt, c.now)
			spoil(m, edits[0].Version, events[0], a, r, edits[0].Text)
			return nil
		})
	}
}

func updatesAreSerial(c *check) {
	const writers, each = 8, 10
	conv := c.conversation()
	c.update(rename(conv, "0"))
	errs := make(chan error, writers*each)
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for i := range each {
				errs <- c.s.Update(c.Context(), me, func(tx store.Tx) error {
					v, err := tx.Conversations.Get(conv)
					if err != nil {
						return err
					}
					n, err := strconv.Atoi(v.Title)
					if err != nil {
						return err
					}
					if err := rename(conv, strconv.Itoa(n+1))(tx); err != nil {
						return err
					}
					if i%2 == 1 {
						return errUndo // in between, some fail
					}
					return nil
				})
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil && !errors.Is(err, errUndo) {
			c.Must("Update", err)
		}
	}
	c.Same("counter after concurrent updates", c.title(conv), strconv.Itoa(writers*each/2))
}

func viewIsConsistent(c *check) {
	a, b := c.conversation(), c.conversation()
	stopped := make(chan struct{})
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stopped:
				return
			default:
			}
			title := strconv.Itoa(i)
			if failed = c.s.Update(c.Context(), me, func(tx store.Tx) error {
				return errors.Join(rename(a, title)(tx), rename(b, title)(tx))
			}); failed != nil {
				return
			}
		}
	})
	for range 50 {
		err := c.s.View(c.Context(), me, func(tx store.Tx) error {
			first, err1 := tx.Conversations.Get(a)
			second, err2 := tx.Conversations.Get(b)
			c.Same("two rows that are written together", second.Title, first.Title)
			return errors.Join(err1, err2)
		})
		if err != nil {
			c.Failf("View beside updates: %w", err)
			break
		}
	}
	close(stopped)
	wg.Wait()
	c.Must("Update beside views", failed)
}

func viewCannotWrite(c *check) {
	conv := c.conversation()
	m := c.message(conv, "")
	c.edit(conv, "doc", artel.Version{}, "x")
	text := "x"
	for what, fn := range map[string]func(store.Tx) error{
		"Conversations.Create":  func(tx store.Tx) error { return tx.Conversations.Create(artel.Conversation{ID: "cnv_v"}) },
		"Conversations.Update":  rename(conv, "by a view"),
		"Conversations.Delete":  func(tx store.Tx) error { return tx.Conversations.Delete(conv, c.now) },
		"Conversations.Restore": func(tx store.Tx) error { return tx.Conversations.Restore(conv) },
		"Messages.Create":       func(tx store.Tx) error { return tx.Messages.Create(artel.Message{ID: "msg_v", Conversation: conv}) },
		"Messages.SetMuted":     func(tx store.Tx) error { return tx.Messages.SetMuted(m, true) },
		"Journal.Append":        func(tx store.Tx) error { _, err := tx.Journal.Append(conv, "doc", artel.Version{}, &text); return err },
		"Journal.Fold":          func(tx store.Tx) error { return tx.Journal.Fold(conv, "doc", artel.Version{Number: 1}, &text) },
		"Versions.Claim":        func(tx store.Tx) error { return tx.Versions.Claim(conv, []artel.ArtifactID{"doc"}, m) },
		"Runs.Create": func(tx store.Tx) error {
			return tx.Runs.Create(artel.Run{ID: "run_v", Conversation: conv, State: artel.RunQueued}, store.Lease{})
		},
		"Runs.Update":   func(tx store.Tx) error { return tx.Runs.Update(artel.Run{ID: "run_v", State: artel.RunDone}) },
		"Runs.Renew":    func(tx store.Tx) error { return tx.Runs.Renew(store.Lease{Run: "run_v", Until: c.now}, c.now) },
		"Events.Append": func(tx store.Tx) error { _, err := tx.Events.Append(conv, artel.Event{}); return err },
		"Hooks.Queue": func(tx store.Tx) error {
			return tx.Hooks.Queue(conv, artel.Event{Seq: 1, Type: artel.EventRunFinished})
		},
		"Answers.Put":   func(tx store.Tx) error { return tx.Answers.Put(store.Answer{Key: "key"}) },
		"Answers.Prune": func(tx store.Tx) error { return tx.Answers.Prune(c.at(99)) },
	} {
		c.Kind(what+" in a view", c.s.View(c.Context(), me, fn), artel.Internal)
	}
	c.untouched("after a view", conv)
}

func closedIsUnavailable(c *check) {
	c.Must("Close", c.s.Close())
	nothing := func(store.Tx) error { return nil }
	c.Kind("View after Close", c.s.View(c.Context(), me, nothing), artel.Unavailable)
	c.Kind("Update after Close", c.s.Update(c.Context(), me, nothing), artel.Unavailable)
	_, err := c.s.Overdue(c.Context(), c.now)
	c.Kind("Overdue after Close", err, artel.Unavailable)
	_, err = c.s.Purge(c.Context(), c.now)
	c.Kind("Purge after Close", err, artel.Unavailable)
	for _, err = range c.s.Digests(c.Context()) {
		c.Kind("Digests after Close", err, artel.Unavailable)
	}
	c.Kind("the last of Digests after Close", err, artel.Unavailable)
	_, _, err = c.s.Journals(c.Context(), c.now, store.JournalKey{}, 1)
	c.Kind("Journals after Close", err, artel.Unavailable)
}
