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
		c.Same("Get", got, want)
		c.Same("time zone", got.CreatedAt.Location() == time.UTC, true)
		if err == nil {
			got, err = tx.Conversations.Get(zero.ID)
			c.Same("Get of zero fields", got, zero)
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
	reads(c, "Get after Update", want, func(tx store.Tx) (artel.Conversation, error) { return tx.Conversations.Get(id) })
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
		var items []store.Listed
		c.view(func(tx store.Tx) (err error) {
			items, cursor, err = tx.Conversations.List(store.ConversationQuery{Page: store.Page{Cursor: cursor, Limit: 7}})
			return err
		})
		if len(items) > 7 {
			c.Failf("List with limit 7 returned %d", len(items))
		}
		for i, v := range items {
			if i > 0 && v.UpdatedAt.After(items[i-1].UpdatedAt) {
				c.Failf("List is not newest first: %v after %v", v.UpdatedAt, items[i-1].UpdatedAt)
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
			c.Failf("conversation %d was listed %d times over all pages, want once", i, once[name(i)])
		}
	}
	if len(once) != 60 {
		c.Failf("paging showed %d conversations, want the 60 that were there", len(once))
	}
	c.view(func(tx store.Tx) error {
		items, next, err := tx.Conversations.List(store.ConversationQuery{})
		if len(items) != 50 || next == "" {
			c.Failf("List without a limit returned %d, next %q; want 50 and a cursor", len(items), next)
		}
		return err
	})
	c.Kind("List with a bad cursor", c.s.View(c.Context(), me, func(tx store.Tx) error {
		_, _, err := tx.Conversations.List(store.ConversationQuery{Page: store.Page{Cursor: "nonsense"}})
		return err
	}), artel.Invalid)
}

func conversationsFilled(c *check) {
	talk := artel.Conversation{ID: "cnv_talk", Title: "one needle", Leaf: "msg_x", UpdatedAt: c.at(4)}
	files := artel.Conversation{ID: "cnv_files", Title: "two needle", UpdatedAt: c.at(3)}
	empty := artel.Conversation{ID: "cnv_empty", Title: "three needle", UpdatedAt: c.at(2)}
	open := artel.Conversation{ID: "cnv_open", Title: "four needle", UpdatedAt: c.at(1)}
	for _, v := range []artel.Conversation{talk, files, empty, open} {
		c.update(func(tx store.Tx) error { return tx.Conversations.Create(v) })
	}
	c.result(me, files.ID, "photo", 1, 1)
	list := func(q store.ConversationQuery) (ids []artel.ConversationID) {
		for more := true; more; more = q.Cursor != "" {
			c.view(func(tx store.Tx) error {
				items, next, err := tx.Conversations.List(q)
				for _, v := range items {
					ids = append(ids, v.ID)
				}
				q.Cursor = next
				return err
			})
		}
		return ids
	}
	for _, search := range []string{"", "needle"} {
		for _, best := range []bool{false, true} {
			q := store.ConversationQuery{Search: search, Best: best, Page: store.Page{Limit: 1}}
			what := fmt.Sprintf("search %q, best %t: ", search, best)
			c.Same(what+"all", list(q), []artel.ConversationID{talk.ID, files.ID, empty.ID, open.ID})
			q.Filled = true
			c.Same(what+"the filled ones", list(q), []artel.ConversationID{talk.ID, files.ID})
			q.Also = open.ID
			c.Same(what+"the filled ones and one more", list(q), []artel.ConversationID{talk.ID, files.ID, open.ID})
		}
	}
}
