// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

func conversationsRoundTrip(c *check) {
	zone := time.FixedZone("east", 5*3600)
	in := artel.Conversation{
		ID: artel.NewConversationID(c.now), Title: awkward, Agent: "lead_agent", Service: "demo", Leaf: "msg_leaf",
		CreatedAt: c.now.In(zone).Add(789 * time.Nanosecond), UpdatedAt: c.at(1).In(zone),
	}
	want := in
	want.CreatedAt, want.UpdatedAt = c.now, c.at(1)
	zero := artel.Conversation{ID: artel.NewConversationID(c.now)}
	for _, v := range []artel.Conversation{in, zero} {
		c.update(func(tx store.Tx) error { return tx.Conversations.Create(v) })
	}
	c.view(func(tx store.Tx) error {
		got, err := tx.Conversations.Get(in.ID)
		c.same("Get", got, want)
		c.same("time zone", got.CreatedAt.Location() == time.UTC, true)
		if err == nil {
			got, err = tx.Conversations.Get(zero.ID)
			c.same("Get of zero fields", got, zero)
		}
		return err
	})
	c.missing("Get of an unknown id", func(tx store.Tx) error {
		_, err := tx.Conversations.Get(artel.NewConversationID(c.now))
		return err
	})
	c.refused("Create of an id that is there", artel.Conflict, func(tx store.Tx) error {
		return tx.Conversations.Create(artel.Conversation{ID: in.ID, Title: "other"})
	})
}

func conversationsUpdate(c *check) {
	id := c.conversation()
	want := artel.Conversation{ID: id, Title: "new", Agent: "a", Service: "s", Leaf: "msg_x", CreatedAt: c.at(99), UpdatedAt: c.at(5)}
	c.update(func(tx store.Tx) error { return tx.Conversations.Update(want) })
	want.CreatedAt = c.now
	c.view(func(tx store.Tx) error {
		got, err := tx.Conversations.Get(id)
		c.same("Get after Update", got, want)
		return err
	})
	c.refused("Update of an unknown id", artel.NotFound, func(tx store.Tx) error {
		return tx.Conversations.Update(artel.Conversation{ID: artel.NewConversationID(c.now)})
	})
}

func conversationsPaging(c *check) {
	name := func(i int) artel.ConversationID { return artel.ConversationID(fmt.Sprintf("cnv_%03d", i)) }
	create := func(tx store.Tx, i, second int) error {
		return tx.Conversations.Create(artel.Conversation{ID: name(i), UpdatedAt: c.at(second)})
	}
	// Ties in time: four conversations to each second.
	c.update(func(tx store.Tx) error {
		for i := range 60 {
			if err := create(tx, i, i/4); err != nil {
				return err
			}
		}
		return nil
	})
	var seen []artel.ConversationID
	cursor := ""
	for page := 0; ; page++ {
		var items []artel.Conversation
		c.view(func(tx store.Tx) (err error) {
			items, cursor, err = tx.Conversations.List(store.Page{Cursor: cursor, Limit: 7})
			return err
		})
		if len(items) > 7 {
			c.failf("List with limit 7 returned %d", len(items))
		}
		for i, v := range items {
			if i > 0 && v.UpdatedAt.After(items[i-1].UpdatedAt) {
				c.failf("List is not newest first: %v after %v", v.UpdatedAt, items[i-1].UpdatedAt)
			}
			seen = append(seen, v.ID)
		}
		if cursor == "" || page > 60 {
			break
		}
		c.update(func(tx store.Tx) error { return create(tx, 1000+page, 1000+page) }) // newer than all: not on later pages
	}
	once := map[artel.ConversationID]int{}
	for _, id := range seen {
		once[id]++
	}
	for i := range 60 {
		if once[name(i)] != 1 {
			c.failf("conversation %d was listed %d times over all pages, want once", i, once[name(i)])
		}
	}
	if len(once) != 60 {
		c.failf("paging showed %d conversations, want the 60 that were there", len(once))
	}
	c.view(func(tx store.Tx) error {
		items, next, err := tx.Conversations.List(store.Page{})
		if len(items) != 50 || next == "" {
			c.failf("List without a limit returned %d, next %q; want 50 and a cursor", len(items), next)
		}
		return err
	})
	c.kind("List with a bad cursor", c.s.View(c.ctx, me, func(tx store.Tx) error {
		_, _, err := tx.Conversations.List(store.Page{Cursor: "nonsense"})
		return err
	}), artel.Invalid)
}

func conversationsDelete(c *check) {
	keep, gone := c.conversation(), c.conversation()
	fill := func(conv artel.ConversationID, d artel.Digest) artel.RunID {
		m := c.message(conv, "")
		c.version(conv, "doc", artel.Version{Digest: d, Message: m}, "text")
		c.edit(conv, "doc", artel.Version{}, "more")
		run := artel.Run{ID: artel.NewRunID(c.now), Conversation: conv, Message: m, State: artel.RunRunning, StartedAt: c.now}
		c.update(func(tx store.Tx) error {
			if _, err := tx.Events.Append(conv, artel.Event{Type: "x", Time: c.now}); err != nil {
				return err
			}
			return tx.Runs.Create(run, store.Lease{Holder: "p", Until: c.now})
		})
		return run.ID
	}
	goneDigest, keptDigest := artel.NewDigest([32]byte{1}), artel.NewDigest([32]byte{2})
	fill(keep, keptDigest)
	run := fill(gone, goneDigest)
	var message artel.MessageID
	c.view(func(tx store.Tx) error {
		items, _, err := tx.Messages.List(gone, store.Page{})
		message = items[0].ID
		return err
	})
	c.update(func(tx store.Tx) error { return tx.Conversations.Delete(gone) })
	c.missing("Conversations.Get", func(tx store.Tx) error { _, err := tx.Conversations.Get(gone); return err })
	c.missing("Messages.Get", func(tx store.Tx) error { _, err := tx.Messages.Get(message); return err })
	c.missing("Runs.Get", func(tx store.Tx) error { _, err := tx.Runs.Get(run); return err })
	c.missing("Versions.Find", func(tx store.Tx) error { _, err := tx.Versions.Find(goneDigest); return err })
	c.refused("Delete again", artel.NotFound, func(tx store.Tx) error { return tx.Conversations.Delete(gone) })
	// The same id made again begins with nothing.
	c.update(func(tx store.Tx) error { return tx.Conversations.Create(artel.Conversation{ID: gone}) })
	c.view(func(tx store.Tx) error {
		edits, err := tx.Versions.Edits(gone, store.EditQuery{})
		if err != nil {
			return err
		}
		last, err := tx.Events.Last(gone)
		if err != nil {
			return err
		}
		used, err := tx.Artifacts.Exists(gone, "doc")
		c.same("edits, events and artifacts of the id made again", []any{len(edits), last, used}, []any{0, artel.Seq(0), false})
		return err
	})
	c.view(func(tx store.Tx) error {
		_, err := tx.Versions.Find(keptDigest)
		if err == nil {
			_, err = tx.Runs.Active(keep)
		}
		return err
	})
	c.same("heads of the other conversation", len(c.heads(keep, "")), 1)
}
