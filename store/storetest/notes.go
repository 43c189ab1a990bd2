// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"encoding/json"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// note is one of a full conversation; its id begins with name.
func (f full) note(name string, now time.Time) store.Note {
	return store.Note{
		ID: name + string(f.id), Conversation: f.id, Run: f.run, Message: f.message, Kind: "kind",
		Open: true, Body: json.RawMessage(`{"a":1}`), CreatedAt: now,
	}
}

func notesRoundTrip(c *check) {
	conv, other := c.conversation(), c.conversation()
	n := store.Note{
		ID: awkward, Conversation: conv, Run: "run_1", Message: "msg_1", Kind: "question", Open: true,
		Body: json.RawMessage(`{"text":"中\u0000<"}`), CreatedAt: c.at(1),
	}
	get := func(what string, want store.Note) {
		reads(c, what, want, func(tx store.Tx) (store.Note, error) { return tx.Notes.Get(want.ID) })
	}
	bare := store.Note{ID: "bare", Conversation: conv, Body: json.RawMessage(`1`), CreatedAt: c.now}
	for _, n := range []store.Note{n, bare} {
		c.update(func(tx store.Tx) error { return tx.Notes.Put(n) })
		get("Get", n)
	}
	answered := n
	answered.Run, answered.Message, answered.Kind, answered.Open, answered.Body = "run_2", "", "answer", false, json.RawMessage(`null`)
	answered.CreatedAt = c.at(99)
	c.update(func(tx store.Tx) error { return tx.Notes.Put(answered) })
	answered.CreatedAt = n.CreatedAt
	get("Get after another Put", answered)
	c.missing("Get of an unknown id", func(tx store.Tx) error { _, err := tx.Notes.Get("none"); return err })
	c.Kind("Get by another owner", c.s.View(c.Context(), them, func(tx store.Tx) error { _, err := tx.Notes.Get(n.ID); return err }), artel.NotFound)
	refuse := func(what string, want artel.Kind, change func(*store.Note)) {
		bad := n
		change(&bad)
		c.refused(what, want, func(tx store.Tx) error { return tx.Notes.Put(bad) })
	}
	refuse("Put without a body", artel.Invalid, func(n *store.Note) { n.Body = nil })
	refuse("Put of what is not JSON", artel.Invalid, func(n *store.Note) { n.Body = json.RawMessage(`{`) })
	refuse("Put into no conversation", artel.NotFound, func(n *store.Note) { n.Conversation = "cnv_none" })
	refuse("Put of an id that another conversation has", artel.Conflict, func(n *store.Note) { n.Conversation = other })
	get("Get after what was refused", answered)
	c.Kind("Delete by another owner", c.s.Update(c.Context(), them, func(tx store.Tx) error { return tx.Notes.Delete(n.ID) }), artel.NotFound)
	c.update(func(tx store.Tx) error { return tx.Notes.Delete(n.ID) })
	c.missing("Get after Delete", func(tx store.Tx) error { _, err := tx.Notes.Get(n.ID); return err })
	c.refused("Delete again", artel.NotFound, func(tx store.Tx) error { return tx.Notes.Delete(n.ID) })
	get("Get of another note after Delete", bare)
}

func notesList(c *check) {
	conv, other := c.conversation(), c.conversation()
	put := func(id string, conv artel.ConversationID, kind string, run artel.RunID, open bool) {
		n := store.Note{ID: id, Conversation: conv, Kind: kind, Run: run, Open: open, Body: json.RawMessage(`{}`), CreatedAt: c.now}
		c.update(func(tx store.Tx) error { return tx.Notes.Put(n) })
	}
	put("3", conv, "a", "r", true)
	put("1", conv, "a", "s", true)
	put("2", conv, "b", "r", false)
	put("4", other, "a", "r", true)
	put("0", conv, "a", "r", false)
	put("3", conv, "a", "r", false)
	put("3", conv, "a", "r", true) // keeps its position
	for want, q := range map[string]store.NoteQuery{
		"3120": {}, "310": {Kind: "a"}, "320": {Run: "r"}, "31": {Open: true}, "3": {Kind: "a", Run: "r", Open: true}, "": {Kind: "c"},
	} {
		q.Conversation = conv
		got := ""
		c.view(func(tx store.Tx) error {
			list, err := tx.Notes.List(q)
			for _, n := range list {
				got += n.ID
			}
			return err
		})
		c.Same("List", got, want)
	}
	c.missing("List of an unknown conversation", func(tx store.Tx) error {
		_, err := tx.Notes.List(store.NoteQuery{Conversation: "cnv_none"})
		return err
	})
}
