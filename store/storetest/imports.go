// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// imported begins an import with a message and a version in it.
func (c *check) imported() (conv artel.Conversation, m artel.Message, v artel.Version) {
	conv = artel.Conversation{ID: artel.NewConversationID(c.now), Title: "brought in", CreatedAt: c.now, UpdatedAt: c.at(1)}
	m = artel.Message{
		ID: artel.NewMessageID(c.now), Conversation: conv.ID, Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "a rare word"}}, CreatedAt: c.now,
	}
	conv.Leaf = m.ID
	v = artel.Version{
		Number: 3, Parent: 1, Message: m.ID, Author: "lead", Update: artel.UpdateExact, Changes: []artel.Change{{Start: 0, End: 1, Old: "a", New: "b"}},
		Title: "Doc", MediaInfo: plain(), Digest: artel.NewDigest([32]byte{9}), CreatedAt: c.at(2),
	}
	text := "bc"
	c.update(func(tx store.Tx) error {
		if err := tx.Imports.Begin(conv, c.at(10)); err != nil {
			return err
		}
		if err := tx.Messages.Create(m); err != nil {
			return err
		}
		return tx.Imports.Version(conv.ID, "doc", v, &text)
	})
	return conv, m, v
}

func (c *check) resume(id artel.ConversationID, at int, fn func(store.Tx) error) func(store.Tx) error {
	return func(tx store.Tx) error {
		if err := tx.Imports.Continue(id, c.at(at)); err != nil {
			return err
		}
		return fn(tx)
	}
}

func importsHidden(c *check) {
	other := c.conversation()
	conv, m, v := c.imported()
	f := full{id: conv.ID, message: m.ID, digest: v.Digest, version: v.Number, unfolded: v.Number, run: "run_none"}
	c.absent("being imported", f, "rare")
	c.refused("Restore of what is being imported", artel.NotFound, func(tx store.Tx) error { return tx.Conversations.Restore(conv.ID) })
	c.refused("Create with its id", artel.Conflict, func(tx store.Tx) error { return tx.Conversations.Create(conv) })
	second := artel.Message{ID: artel.NewMessageID(c.now), Conversation: conv.ID, Parent: m.ID, Role: artel.RoleAssistant, Parts: artel.Parts{}, CreatedAt: c.at(1)}
	c.update(c.resume(conv.ID, 20, func(tx store.Tx) error {
		if _, _, err := tx.Messages.List(other, store.Page{}); err != nil { // another one in between
			return err
		}
		return tx.Messages.Create(second)
	}))
	c.absent("after more was written", f, "rare")
	c.update(c.resume(conv.ID, 30, func(tx store.Tx) error { return tx.Imports.Finish(conv.ID) }))
	c.view(func(tx store.Tx) error {
		got, err := tx.Conversations.Get(conv.ID)
		c.Same("the conversation", got, conv)
		if err != nil {
			return err
		}
		path, err := tx.Messages.Path(conv.ID, second.ID, 0)
		c.Same("its messages", path, []artel.Message{m, second})
		if err != nil {
			return err
		}
		found, err := listed(tx, "rare")
		if !slices.Contains(found, conv.ID) {
			c.Failf("a search does not find it: %v", found)
		}
		return err
	})
	c.Same("its heads", c.heads(conv.ID, second.ID), numbers{"doc": 3})
}

func importsVersions(c *check) {
	conv, m, v := c.imported()
	pic := artel.Version{Number: 7, Author: "user", InBlob: true, MediaInfo: artel.MediaInfo{MediaType: "image/png", Kind: artel.KindImage}, CreatedAt: c.at(3)}
	last := artel.Version{Number: 9, Parent: 3, Message: m.ID, MediaInfo: plain(), CreatedAt: c.at(4)}
	text := awkward
	c.update(c.resume(conv.ID, 20, func(tx store.Tx) error {
		if err := tx.Imports.Version(conv.ID, "pic", pic, nil); err != nil {
			return err
		}
		return tx.Imports.Version(conv.ID, "doc", last, &text)
	}))
	for _, n := range []int{0, 3, 4, 9} {
		c.refused("a number that is not above the newest", artel.Conflict, c.resume(conv.ID, 20, func(tx store.Tx) error {
			return tx.Imports.Version(conv.ID, "doc", artel.Version{Number: n}, &text)
		}))
	}
	c.update(c.resume(conv.ID, 30, func(tx store.Tx) error { return tx.Imports.Finish(conv.ID) }))
	c.view(func(tx store.Tx) error {
		list, err := tx.Versions.List(conv.ID, "doc")
		c.Same("List of doc", list, []artel.Version{v, last})
		if err != nil {
			return err
		}
		if list, err = tx.Versions.List(conv.ID, "pic"); err != nil {
			return err
		}
		c.Same("List of pic", list, []artel.Version{pic})
		edits, err := tx.Journal.Edits(conv.ID, store.EditQuery{Artifact: "doc"})
		journal := []store.Edit{{Artifact: "doc", Version: v, Folded: true}, {Artifact: "doc", Version: last, Folded: true}}
		for i := range journal {
			journal[i].Parent, journal[i].Changes = 0, nil
		}
		c.Same("the journal", edits, journal)
		return err
	})
	c.Same("heads after Finish", c.heads(conv.ID, m.ID), numbers{"doc": 9, "pic": 7})
	c.Same("text of 3", c.text(conv.ID, "doc", 3), "bc")
	c.Same("text of 9", c.text(conv.ID, "doc", 9), awkward)
	c.Same("the next number", c.version(conv.ID, "doc", artel.Version{Message: m.ID, Parent: 9}, "next"), 10)
	c.Same("heads", c.heads(conv.ID, m.ID), numbers{"doc": 10, "pic": 7})
}

func importsRefuse(c *check) {
	there := c.conversation()
	conv, _, _ := c.imported()
	text := "x"
	v := artel.Version{Number: 50}
	for what, fn := range map[string]func(store.Tx) error{
		"Continue of what is there":          c.resume(there, 1, func(store.Tx) error { return nil }),
		"Continue of nothing":                c.resume("cnv_none", 1, func(store.Tx) error { return nil }),
		"Finish of what is there":            func(tx store.Tx) error { return tx.Imports.Finish(there) },
		"Finish of nothing":                  func(tx store.Tx) error { return tx.Imports.Finish("cnv_none") },
		"Version of what is there":           func(tx store.Tx) error { return tx.Imports.Version(there, "doc", v, &text) },
		"Version without Continue":           func(tx store.Tx) error { return tx.Imports.Version(conv.ID, "doc", v, &text) },
		"Version of another than Continue's": c.resume(conv.ID, 1, func(tx store.Tx) error { return tx.Imports.Version(there, "doc", v, &text) }),
	} {
		c.refused(what, artel.NotFound, fn)
	}
	for what, fn := range map[string]func(store.Tx) error{
		"Continue": c.resume(conv.ID, 1, func(store.Tx) error { return nil }),
		"Finish":   func(tx store.Tx) error { return tx.Imports.Finish(conv.ID) },
	} {
		c.Kind(what+" by another owner", c.s.Update(c.Context(), them, fn), artel.NotFound)
	}
	bad := "a\xff"
	c.refused("a text that is not UTF-8", artel.Invalid, c.resume(conv.ID, 20, func(tx store.Tx) error { return tx.Imports.Version(conv.ID, "doc", v, &bad) }))
	c.refused("Begin of what is there", artel.Conflict, func(tx store.Tx) error { return tx.Imports.Begin(artel.Conversation{ID: there}, c.now) })
	c.update(func(tx store.Tx) error { return tx.Imports.Finish(conv.ID) })
	c.refused("Finish twice", artel.NotFound, func(tx store.Tx) error { return tx.Imports.Finish(conv.ID) })
	c.refused("Continue after Finish", artel.NotFound, c.resume(conv.ID, 1, func(store.Tx) error { return nil }))
}

func importsPurge(c *check) {
	kept, m, _ := c.imported() // at 10
	left, _, _ := c.imported()
	c.update(c.resume(kept.ID, 30, func(store.Tx) error { return nil }))
	n, err := c.s.Purge(c.Context(), c.at(20))
	c.Must("Purge", err)
	c.Same("imports that were left", n, 1)
	c.refused("Continue after Purge", artel.NotFound, c.resume(left.ID, 40, func(store.Tx) error { return nil }))
	c.refused("Finish after Purge", artel.NotFound, func(tx store.Tx) error { return tx.Imports.Finish(left.ID) })
	c.update(func(tx store.Tx) error { return tx.Conversations.Create(left) }) // its id is free
	c.view(func(tx store.Tx) error {
		ids, err := tx.Versions.Artifacts(left.ID)
		c.Same("artifacts of the id made again", len(ids), 0)
		return err
	})
	c.update(func(tx store.Tx) error { return tx.Imports.Finish(kept.ID) })
	n, err = c.s.Purge(c.Context(), c.at(99))
	c.Must("Purge after Finish", err)
	c.Same("what was purged of what is there", n, 0)
	c.Same("what was finished", c.heads(kept.ID, m.ID), numbers{"doc": 3})
}
