// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

func (c *check) delete(owner artel.Owner, f full, at time.Time) {
	c.Must("Delete", c.s.Update(c.Context(), owner, func(tx store.Tx) error { return tx.Conversations.Delete(f.id, at) }))
}

// absent holds that nothing of f is there for me.
func (c *check) absent(what string, f full, search string) {
	for call, fn := range c.calls(f) {
		c.refused(what+": "+call, artel.NotFound, fn)
	}
	c.view(func(tx store.Tx) error {
		for _, s := range []string{"", search} {
			ids, err := listed(tx, s)
			if err != nil {
				return err
			}
			if slices.Contains(ids, f.id) {
				c.Failf("%s: it is listed for the search %q", what, s)
			}
		}
		return nil
	})
	leases, err := c.s.Overdue(c.Context(), c.at(50))
	c.Must("Overdue", err)
	if slices.ContainsFunc(leases, func(l store.Lease) bool { return l.Conversation == f.id && l.Owner == me }) {
		c.Failf("%s: its run is overdue", what)
	}
}

func deleteHides(c *check) {
	keep, gone := c.fill(me, "kept text"), c.fill(me, "lost text")
	before := c.seen(me, keep, "kept")
	c.seen(me, gone, "lost")
	c.delete(me, gone, c.now)
	c.absent("deleted", gone, "lost")
	after := c.seen(me, keep, "kept")
	before.Listed, before.Overdue = after.Listed, after.Overdue // of all conversations
	c.Same("the other conversation", after, before)
	// In the same transaction too.
	again := c.fill(me, "x")
	c.refused("Get after Delete in one update", artel.NotFound, func(tx store.Tx) error {
		if _, _, err := tx.Messages.List(again.id, store.Page{}); err != nil {
			return artel.Errorf(artel.Internal, "", "", "before Delete: %w", err)
		}
		if err := tx.Conversations.Delete(again.id, c.now); err != nil {
			return artel.Errorf(artel.Internal, "", "", "Delete: %w", err)
		}
		_, _, err := tx.Messages.List(again.id, store.Page{})
		return err
	})
}

func deletedIDs(c *check) {
	f, other := c.fill(me, "x"), c.conversation()
	c.delete(me, f, c.now)
	for what, fn := range map[string]func(store.Tx) error{
		"conversation": func(tx store.Tx) error { return tx.Conversations.Create(artel.Conversation{ID: f.id}) },
		"message":      func(tx store.Tx) error { return tx.Messages.Create(artel.Message{ID: f.message, Conversation: other}) },
		"run": func(tx store.Tx) error {
			return tx.Runs.Create(artel.Run{ID: f.run, Conversation: other, State: artel.RunDone}, store.Lease{})
		},
	} {
		c.refused("Create with the id of a deleted "+what, artel.Conflict, fn)
	}
	c.Must("the same id for another owner", c.s.Update(c.Context(), them, func(tx store.Tx) error {
		return tx.Conversations.Create(artel.Conversation{ID: f.id})
	}))
}

func restoreBringsBack(c *check) {
	f := c.fill(me, "kept text")
	before := c.seen(me, f, "kept")
	for range 2 {
		c.delete(me, f, c.at(3))
		c.update(func(tx store.Tx) error { return tx.Conversations.Restore(f.id) })
		c.Same("what was restored", c.seen(me, f, "kept"), before)
	}
	c.refused("another run beside the one that came back", artel.Conflict, func(tx store.Tx) error {
		return tx.Runs.Create(artel.Run{ID: "run_t", Conversation: f.id, State: artel.RunRunning}, store.Lease{})
	})
}

func restoreRefuses(c *check) {
	there, gone := c.fill(me, "x"), c.fill(me, "y")
	c.delete(me, gone, c.now)
	restore := func(id artel.ConversationID) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.Conversations.Restore(id) }
	}
	c.refused("Restore of what is there", artel.NotFound, restore(there.id))
	c.refused("Restore of an unknown id", artel.NotFound, restore("cnv_none"))
	c.Kind("Restore by another owner", c.s.Update(c.Context(), them, restore(gone.id)), artel.NotFound)
	c.update(restore(gone.id))
	c.refused("Restore again", artel.NotFound, restore(gone.id))
}

func purgeByTime(c *check) {
	there, early, edge, late := c.fill(me, "a"), c.fill(me, "b"), c.fill(me, "c"), c.fill(me, "d")
	theirs := c.fill(them, "e")
	c.delete(me, early, c.at(9))
	c.delete(them, theirs, c.at(8))
	c.delete(me, edge, c.at(10))
	c.delete(me, late, c.at(11))
	n, err := c.s.Purge(c.Context(), c.at(10))
	c.Must("Purge", err)
	c.Same("conversations that were purged", n, 2)
	n, err = c.s.Purge(c.Context(), c.at(10))
	c.Must("Purge again", err)
	c.Same("conversations that were purged the second time", n, 0)
	restore := func(f full) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.Conversations.Restore(f.id) }
	}
	c.refused("Restore after Purge", artel.NotFound, restore(early))
	c.Kind("Restore of theirs after Purge", c.s.Update(c.Context(), them, restore(theirs)), artel.NotFound)
	c.update(restore(edge))
	c.update(restore(late))
	for _, f := range []full{there, edge, late} {
		c.seen(me, f, "")
	}
}

func purgeForGood(c *check) {
	f := c.fill(me, "lost text")
	keep := c.fill(me, "kept text")
	before := c.seen(me, keep, "kept")
	c.delete(me, f, c.now)
	_, err := c.s.Purge(c.Context(), c.at(1))
	c.Must("Purge", err)
	c.absent("purged", f, "lost")
	// The same ids made again begin with nothing.
	c.update(func(tx store.Tx) error {
		if err := tx.Conversations.Create(artel.Conversation{ID: f.id}); err != nil {
			return err
		}
		if err := tx.Messages.Create(artel.Message{ID: f.message, Conversation: f.id, Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "new"}}}); err != nil {
			return err
		}
		return tx.Runs.Create(artel.Run{ID: f.run, Conversation: f.id, State: artel.RunDone}, store.Lease{})
	})
	c.view(func(tx store.Tx) error {
		edits, err := tx.Journal.Edits(f.id, store.EditQuery{})
		if err != nil {
			return err
		}
		last, err := tx.Events.Last(f.id)
		if err != nil {
			return err
		}
		used, err := tx.Artifacts.Exists(f.id, "doc")
		if err != nil {
			return err
		}
		found, err := listed(tx, "lost")
		records, err2 := tx.Contexts.List(store.ContextQuery{Conversation: f.id})
		segments, err3 := tx.Contexts.Segments(f.id, []artel.Digest{f.digest})
		c.Same("edits, events, artifacts, finds and contexts of the id made again", []any{len(edits), last, used, len(found), len(records) + len(segments)}, []any{0, artel.Seq(0), false, 0, 0})
		err = errors.Join(err, err2, err3)
		return err
	})
	after := c.seen(me, keep, "kept")
	before.Listed, before.Overdue = after.Listed, after.Overdue
	c.Same("the other conversation", after, before)
}
