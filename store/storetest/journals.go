// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// session journals five edits of one run, of which the last is folded, and one
// more that is not.
func (c *check) session(conv artel.ConversationID) []store.Edit {
	for i := range 6 {
		v := artel.Version{Parent: i, Run: "run_1", MediaInfo: plain(), Changes: []artel.Change{{New: string(rune('a' + i))}}, CreatedAt: c.at(i)}
		if i == 5 {
			v.Run = "run_2"
		}
		c.edit(conv, "doc", v, awkward)
	}
	text := "abcde"
	c.update(func(tx store.Tx) error {
		return tx.Journal.Fold(conv, "doc", artel.Version{Number: 5, Run: "run_1", MediaInfo: plain()}, &text)
	})
	return c.journal(conv, store.EditQuery{Artifact: "doc"})
}

func (c *check) journal(conv artel.ConversationID, q store.EditQuery) (edits []store.Edit) {
	c.view(func(tx store.Tx) (err error) {
		edits, err = tx.Journal.Edits(conv, q)
		return err
	})
	return edits
}

func versionsOutline(c *check) {
	conv := c.conversation()
	want := c.session(conv)
	for i := range want {
		want[i].Text = nil
	}
	c.Same("the edits without texts", c.journal(conv, store.EditQuery{NoText: true}), want)
	for i := range want {
		want[i].Changes = nil
	}
	c.Same("the outline", c.journal(conv, store.EditQuery{Outline: true}), want)
	c.Same("the outline of one edit", c.journal(conv, store.EditQuery{Outline: true, Number: 3}), want[2:3])
}

func versionsCondense(c *check) {
	conv := c.conversation()
	edits := c.session(conv)
	visible := c.list(conv, "doc")
	one, text := edits[3], "abc" // number 4
	one.Parent, one.Changes, one.Text = 1, []artel.Change{{Old: awkward, New: "x"}}, &text
	five := edits[4]
	five.Parent, five.Changes, five.Text = 4, nil, nil
	condense := func(gone []int, kept ...store.Edit) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.Journal.Compact(conv, "doc", gone, kept) }
	}
	live := edits[5]
	for what, fn := range map[string]func(store.Tx) error{
		"the newest":                 condense([]int{2, 6}),
		"what is not there":          condense([]int{2, 9}),
		"what is not folded":         condense([]int{2}, live),
		"what is not there, to keep": condense([]int{2}, one, store.Edit{Version: artel.Version{Number: 9}}),
	} {
		c.refused("Condense of "+what, artel.Conflict, fn)
	}
	c.Same("the journal after refusals", c.journal(conv, store.EditQuery{}), edits)
	c.update(condense([]int{2, 3}, one, five))
	c.Same("the journal", c.journal(conv, store.EditQuery{}), []store.Edit{edits[0], one, five, live})
	c.Same("the versions", c.list(conv, "doc"), visible)
	c.Same("the text", c.text(conv, "doc", 5), "abcde")
	c.Same("the next number", c.edit(conv, "doc", artel.Version{}, "x"), 7)
	c.refused("Condense of what is gone", artel.Conflict, condense([]int{2}))
	c.refused("Condense of an unknown artifact", artel.NotFound, func(tx store.Tx) error { return tx.Journal.Compact(conv, "none", []int{1}, nil) })
}

func journalsPages(c *check) {
	var mine []store.JournalKey
	for range 3 {
		conv := c.conversation()
		c.session(conv)
		c.version(conv, "visible", artel.Version{CreatedAt: c.at(0)}, "x")
		c.edit(conv, "live", artel.Version{Run: "run_9", CreatedAt: c.at(0)}, "x")
		mine = append(mine, store.JournalKey{Owner: me, Conversation: conv, Artifact: "doc"})
	}
	theirs := c.fill(them, "x") // none of its edits leads to another
	all := func(before int) (found []store.JournalKey) {
		var after store.JournalKey
		for range 30 {
			page, last, err := c.s.Journals(c.Context(), c.at(before), after, 2)
			c.Must("Journals", err)
			if len(page) > 2 {
				c.Failf("Journals: %d were found among 2", len(page))
			}
			found = append(found, page...)
			if last == (store.JournalKey{}) {
				return found
			}
			after = last
		}
		c.Failf("Journals does not end")
		return found
	}
	same := func(what string, got, want []store.JournalKey) {
		order := func(a, b store.JournalKey) int {
			switch {
			case a.Conversation < b.Conversation:
				return -1
			case a.Conversation > b.Conversation:
				return 1
			}
			return 0
		}
		c.Same(what, slices.SortedFunc(slices.Values(got), order), slices.SortedFunc(slices.Values(want), order))
	}
	same("before the first edit", all(0), nil)
	same("after the first edit", all(1), mine)
	c.Must("Delete", c.s.Update(c.Context(), me, func(tx store.Tx) error { return tx.Conversations.Delete(mine[0].Conversation, c.now) }))
	c.delete(them, theirs, c.now)
	same("without what is deleted", all(99), mine[1:])
	c.update(func(tx store.Tx) error {
		return tx.Journal.Compact(mine[1].Conversation, "doc", []int{1, 2, 3, 4}, nil)
	})
	same("without what is condensed", all(99), mine[2:])
}
