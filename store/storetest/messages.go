// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

func messagesRoundTrip(c *check) {
	conv := c.conversation()
	root := c.message(conv, "")
	full := artel.Message{
		ID: artel.NewMessageID(c.now), Conversation: conv, Parent: root, Role: artel.RoleAssistant,
		Parts: artel.Parts{
			artel.Text{Text: awkward},
			artel.Media{
				Ref: artel.Ref{Conversation: conv, Artifact: "图", Version: 3}, MediaType: "image/png", Kind: artel.KindImage,
				Filename: "图.png", Size: 5 << 30, Width: 1, Height: 2, Pages: 3, Duration: 0.1,
			},
			artel.ToolCall{ID: "call_1", Name: "f", Arguments: json.RawMessage(`{"a":1.0,"b":"\u0000","<&>":"\u003c"}`)},
			artel.ToolResult{CallID: "call_1", Content: awkward, Parts: artel.Parts{artel.Text{Text: "in"}}, IsError: true},
			artel.Reasoning{Text: awkward, Opaque: json.RawMessage(`["x"]`), Service: "demo"},
		},
		Agent: "lead", Run: "run_1", Within: "call_1/call_2", Muted: true, Summary: true, Edited: true, CreatedAt: c.at(1),
	}
	for what, m := range map[string]artel.Message{
		"all fields":  full,
		"nil parts":   {ID: artel.NewMessageID(c.now), Conversation: conv},
		"empty parts": {ID: artel.NewMessageID(c.now), Conversation: conv, Parts: artel.Parts{}},
	} {
		c.update(func(tx store.Tx) error { return tx.Messages.Create(m) })
		reads(c, "Get with "+what, m, func(tx store.Tx) (artel.Message, error) { return tx.Messages.Get(m.ID) })
	}
	c.missing("Get of an unknown id", func(tx store.Tx) error { _, err := tx.Messages.Get("msg_none"); return err })
	c.refused("Create of an id that is there", artel.Conflict, func(tx store.Tx) error { return tx.Messages.Create(full) })
	bad := artel.Message{ID: artel.NewMessageID(c.now), Conversation: conv, Parts: artel.Parts{artel.Text{Text: "a\xff"}}}
	c.refused("Create with text that is not UTF-8", artel.Invalid, func(tx store.Tx) error { return tx.Messages.Create(bad) })
}

func messagesParent(c *check) {
	conv, other := c.conversation(), c.conversation()
	m := c.message(conv, "")
	create := func(conv artel.ConversationID, parent artel.MessageID) func(store.Tx) error {
		return func(tx store.Tx) error {
			return tx.Messages.Create(artel.Message{ID: artel.NewMessageID(c.now), Conversation: conv, Parent: parent})
		}
	}
	c.update(create(conv, m))
	c.refused("parent in another conversation", artel.Invalid, create(other, m))
	c.refused("parent that is nowhere", artel.Invalid, create(conv, "msg_none"))
	c.refused("conversation that is nowhere", artel.NotFound, create("cnv_none", ""))
}

func messagesPath(c *check) {
	conv := c.conversation()
	root := c.message(conv, "")
	a1 := c.message(conv, root)
	a2 := c.message(conv, a1)
	b1 := c.message(conv, root)
	path := func(leaf artel.MessageID) []artel.MessageID {
		var ids []artel.MessageID
		c.view(func(tx store.Tx) error {
			ms, err := tx.Messages.Path(conv, leaf, 0)
			for _, m := range ms {
				ids = append(ids, m.ID)
			}
			return err
		})
		return ids
	}
	c.Same("path of a", path(a2), []artel.MessageID{root, a1, a2})
	c.Same("path of b", path(b1), []artel.MessageID{root, b1})
	c.Same("path of the empty leaf", path(""), []artel.MessageID(nil))
	other := c.conversation()
	c.missing("path in another conversation", func(tx store.Tx) error { _, err := tx.Messages.Path(other, a2, 0); return err })
	c.missing("path in no conversation", func(tx store.Tx) error { _, err := tx.Messages.Path("cnv_none", "", 0); return err })
}

func messagesPathEnd(c *check) {
	conv := c.conversation()
	root := c.message(conv, "")
	a1 := c.message(conv, root)
	a2 := c.message(conv, a1)
	c.message(conv, a1)
	for limit, want := range map[int][]artel.MessageID{1: {a2}, 2: {a1, a2}, 3: {root, a1, a2}, 99: {root, a1, a2}} {
		c.view(func(tx store.Tx) error {
			var ids []artel.MessageID
			ms, err := tx.Messages.Path(conv, a2, limit)
			for _, m := range ms {
				ids = append(ids, m.ID)
			}
			c.Same(fmt.Sprintf("the last %d of the path", limit), ids, want)
			return err
		})
	}
	c.Kind("path with a limit below 0", c.s.View(c.Context(), me, func(tx store.Tx) error {
		_, err := tx.Messages.Path(conv, a2, -1)
		return err
	}), artel.Invalid)
}

func messagesPaging(c *check) {
	conv := c.conversation()
	name := func(i int) artel.MessageID { return artel.MessageID(fmt.Sprintf("msg_%03d", (i*37)%100)) } // ids do not sort by time
	create := func(i, second int) {
		c.update(func(tx store.Tx) error {
			return tx.Messages.Create(artel.Message{ID: name(i), Conversation: conv, CreatedAt: c.at(second)})
		})
	}
	for i := range 20 {
		create(i, i/3)
	}
	var seen []artel.MessageID
	cursor := ""
	for page := range 10 {
		var items []artel.Message
		c.view(func(tx store.Tx) (err error) {
			items, cursor, err = tx.Messages.List(conv, store.Page{Cursor: cursor, Limit: 6})
			return err
		})
		for _, m := range items {
			seen = append(seen, m.ID)
		}
		if page == 0 {
			create(50, -1) // older than what was listed: must not move it
			create(51, 99) // newer than all: comes at the end
		}
		if cursor == "" {
			break
		}
	}
	var want []artel.MessageID
	for i := range 20 {
		want = append(want, name(i))
	}
	c.Same("messages over all pages", seen, append(want, name(51)))
	c.missing("List of no conversation", func(tx store.Tx) error { _, _, err := tx.Messages.List("cnv_none", store.Page{}); return err })
}

func messagesPagesBytes(c *check) {
	conv := c.conversation()
	for i, size := range []int{store.MaxMessageBytes * 3 / 4, store.MaxMessageBytes * 3 / 4, 10, store.MaxMessageBytes, 10, 10} {
		c.update(func(tx store.Tx) error {
			return tx.Messages.Create(artel.Message{
				ID: artel.MessageID(fmt.Sprintf("msg_long_%d", i)), Conversation: conv, CreatedAt: c.at(i), Parts: artel.Parts{artel.Text{Text: strings.Repeat("x", size)}},
			})
		})
	}
	var pages []int
	for cursor := ""; len(pages) == 0 || cursor != "" && len(pages) < 9; {
		c.view(func(tx store.Tx) error {
			items, next, err := tx.Messages.List(conv, store.Page{Cursor: cursor, Limit: 500})
			cursor, pages = next, append(pages, len(items))
			return err
		})
	}
	c.Same("long messages on each page", pages, []int{2, 2, 2})
}

func messagesMuted(c *check) {
	conv := c.conversation()
	id := c.message(conv, "")
	for _, want := range []bool{true, false} {
		c.update(func(tx store.Tx) error { return tx.Messages.SetMuted(id, want) })
		c.view(func(tx store.Tx) error {
			m, err := tx.Messages.Get(id)
			c.Same("Muted", m.Muted, want)
			return err
		})
	}
	c.refused("SetMuted of an unknown id", artel.NotFound, func(tx store.Tx) error { return tx.Messages.SetMuted("msg_none", true) })
}

func messagesNested(c *check) {
	conv, other := c.conversation(), c.conversation()
	root := c.message(conv, "")
	var want []artel.MessageID
	for i, m := range []artel.Message{
		{Run: "run_1", Within: "call_1", Parent: root},
		{Run: "run_1", Parent: root}, // its own
		{Run: "run_1", Within: "call_2", Parent: root},
		{Run: "run_2", Within: "call_1", Parent: root}, // another's
		{Run: "run_1", Within: "call_1/call_3", Parent: root},
		{Run: "run_1", Within: "call_1", Parent: root},
	} {
		m.ID, m.Conversation, m.CreatedAt = artel.NewMessageID(c.now), conv, c.at(-i) // the clock of who writes may go backward
		c.update(func(tx store.Tx) error { return tx.Messages.Create(m) })
		if m.Run == "run_1" && m.Within != "" {
			want = append(want, m.ID)
		}
	}
	nested := func(conv artel.ConversationID, run artel.RunID) (ids []artel.MessageID) {
		c.view(func(tx store.Tx) error {
			ms, err := tx.Messages.Nested(conv, run)
			for _, m := range ms {
				ids = append(ids, m.ID)
			}
			return err
		})
		return ids
	}
	c.Same("messages of subagents", nested(conv, "run_1"), want)
	c.Same("of a run without any", nested(conv, "run_3"), []artel.MessageID(nil))
	c.Same("of a run of another conversation", nested(other, "run_1"), []artel.MessageID(nil))
	c.missing("in no conversation", func(tx store.Tx) error { _, err := tx.Messages.Nested("cnv_none", "run_1"); return err })
}

func messagesChildren(c *check) {
	conv, other := c.conversation(), c.conversation()
	var want [2][]artel.MessageID // under nothing, and under the first root
	for i, m := range []artel.Message{{}, {}, {Parent: "first"}, {Parent: "first", Run: "run_1", Within: "call_1"}, {Parent: "first"}, {Parent: "other"}} {
		m.ID, m.Conversation, m.CreatedAt = artel.NewMessageID(c.now), conv, c.at(-i) // the clock of who writes may go backward
		under := 0
		switch m.Parent {
		case "first":
			m.Parent, under = want[0][0], 1
		case "other":
			m.Parent, under = want[1][0], 2
		}
		c.update(func(tx store.Tx) error { return tx.Messages.Create(m) })
		if m.Within == "" && under < 2 {
			want[under] = append(want[under], m.ID)
		}
	}
	c.message(other, "")
	children := func(conv artel.ConversationID, parents ...artel.MessageID) (found map[artel.MessageID][]artel.MessageID) {
		c.view(func(tx store.Tx) (err error) { found, err = tx.Messages.Children(conv, parents...); return err })
		return found
	}
	first := want[0][0]
	c.Same("roots and what is under one", children(conv, "", first), map[artel.MessageID][]artel.MessageID{"": want[0], first: want[1]})
	c.Same("under one without any", len(children(conv, want[0][1])), 0)
	c.Same("under none that is asked for", len(children(conv)), 0)
	c.Same("under another conversation's", len(children(other, first)), 0)
	many := make([]artel.MessageID, 1200)
	for i := range many {
		many[i] = artel.MessageID(fmt.Sprintf("msg_%d", i))
	}
	c.Same("among many", children(conv, append(many, first)...), map[artel.MessageID][]artel.MessageID{first: want[1]})
	c.missing("in no conversation", func(tx store.Tx) error { _, err := tx.Messages.Children("cnv_none", first); return err })
}
