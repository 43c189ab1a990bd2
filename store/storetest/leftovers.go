// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// result makes an artifact that a tool has left outside any run, with a digest
// of its own.
func (c *check) result(owner artel.Owner, conv artel.ConversationID, id artel.ArtifactID, digest byte, at int, changes ...func(*artel.Version)) artel.Version {
	v := artel.Version{
		Update: artel.UpdateCreate, Provenance: artel.SourceToolResult, Digest: numbered(digest), InBlob: true, CreatedAt: c.at(at),
		MediaInfo: artel.MediaInfo{MediaType: "image/png", Kind: artel.KindImage, Size: int64(digest)},
	}
	for _, change := range changes {
		change(&v)
	}
	c.Must("make a result", c.s.Update(c.Context(), owner, func(tx store.Tx) (err error) {
		if v.Number, err = tx.Journal.Append(conv, id, v, nil); err != nil {
			return err
		}
		return tx.Journal.Fold(conv, id, v, nil)
	}))
	return v
}

func (c *check) conversationOf(owner artel.Owner) artel.ConversationID {
	id := artel.NewConversationID(c.now)
	c.Must("make a conversation", c.s.Update(c.Context(), owner, func(tx store.Tx) error {
		return tx.Conversations.Create(artel.Conversation{ID: id, CreatedAt: c.now, UpdatedAt: c.now})
	}))
	return id
}

// leftovers returns the ids of what is left from before a moment.
func (c *check) leftovers(at int, remove bool) (ids []artel.ArtifactID) {
	list, err := c.s.Leftovers(c.Context(), c.at(at), remove)
	c.Must("Leftovers", err)
	for _, l := range list {
		ids = append(ids, l.Artifact)
	}
	return ids
}

func leftoversOfTools(c *check) {
	conv, theirs, hidden := c.conversation(), c.conversationOf(them), c.conversation()
	c.Same("of an empty store", len(c.leftovers(99, true)), 0)
	c.result(me, conv, "second.png", 2, 2)
	first := c.result(me, conv, "first.png", 1, 1)
	c.result(them, theirs, "third.png", 3, 3)
	c.result(me, conv, "young.png", 4, 20)
	c.result(me, hidden, "hidden.png", 5, 1)
	c.result(me, conv, "uploaded.png", 6, 1, func(v *artel.Version) { v.Provenance = artel.SourceUserUpload })
	c.result(me, conv, "of_a_run.png", 7, 1, func(v *artel.Version) { v.Run = "run_1" })
	c.result(me, conv, "edited.png", 8, 1)
	c.result(me, conv, "edited.png", 9, 1)
	c.result(me, conv, "being_edited.png", 10, 1)
	c.edit(conv, "being_edited.png", artel.Version{}, "x")
	c.update(func(tx store.Tx) error { return tx.Conversations.Delete(hidden, c.now) })
	want := []artel.ArtifactID{"first.png", "second.png", "third.png"}
	c.Same("leftovers", c.leftovers(10, false), want)
	list, err := c.s.Leftovers(c.Context(), c.at(2), false)
	c.Must("Leftovers", err)
	if len(list) != 1 || list[0].Owner != me || list[0].Conversation != conv || list[0].Number != 1 || list[0].Digest != first.Digest || list[0].Size != 1 || list[0].MediaType != "image/png" {
		c.Failf("the oldest is %+v", list)
	}
	c.Same("leftovers that stayed", c.leftovers(10, false), want)
	c.Same("removed", c.leftovers(10, true), want)
	c.Same("after removing", len(c.leftovers(10, true)), 0)

	c.missing("Get of a removed version", func(tx store.Tx) error { _, err := tx.Versions.Get(conv, "first.png", 1); return err })
	c.missing("Head of a removed artifact", func(tx store.Tx) error { _, err := tx.Artifacts.Head(conv, "first.png", ""); return err })
	c.missing("Find of removed bytes", func(tx store.Tx) error { _, err := tx.Versions.Find(first.Digest); return err })
	c.view(func(tx store.Tx) error {
		heads, err := tx.Artifacts.Heads(conv, "")
		if slices.ContainsFunc(heads, func(a artel.Artifact) bool { return slices.Contains(want, a.ID) }) || len(heads) != 5 {
			c.Failf("heads after removing: %d", len(heads))
		}
		used, err2 := tx.Artifacts.Exists(conv, "first.png")
		c.Same("the id is taken", used, true)
		edits, err3 := tx.Journal.Edits(conv, store.EditQuery{Artifact: "first.png"})
		if len(edits) != 1 || edits[0].Number != 1 || edits[0].Digest != "" || edits[0].InBlob {
			c.Failf("the journal has %+v", edits)
		}
		c.Must("Exists", err2)
		c.Must("Edits", err3)
		return err
	})
	for _, u := range c.uses() {
		if slices.Contains([]artel.Digest{numbered(1), numbered(2), numbered(3)}, u.Digest) {
			c.Failf("the bytes of what was removed are wanted: %+v", u)
		}
	}
	c.Same("the number after a removed one", c.result(me, conv, "first.png", 30, 30).Number, 2)
}

// leftoversNamed names a result in every way, one after the other: then it is
// none.
func leftoversNamed(c *check) {
	conv, elsewhere, theirs := c.conversation(), c.conversation(), c.conversationOf(them)
	event := func(owner artel.Owner, conv artel.ConversationID, typ artel.EventType, text string) {
		data, err := json.Marshal(text)
		c.Must("Marshal", err)
		c.Must("Append", c.s.Update(c.Context(), owner, func(tx store.Tx) error {
			_, err := tx.Events.Append(conv, artel.Event{Type: typ, Time: c.now, Data: data})
			return err
		}))
	}
	message := func(owner artel.Owner, conv artel.ConversationID, text string) {
		c.Must("Create", c.s.Update(c.Context(), owner, func(tx store.Tx) error {
			return tx.Messages.Create(artel.Message{ID: artel.NewMessageID(c.now), Conversation: conv, Role: artel.RoleUser, CreatedAt: c.now, Parts: artel.Parts{artel.Text{Text: text}}})
		}))
	}
	n := byte(0)
	named := map[string]func(id artel.ArtifactID, d artel.Digest){
		"by its id":                func(id artel.ArtifactID, _ artel.Digest) { message(me, conv, "see "+string(id)+"!") },
		"by its digest, elsewhere": func(_ artel.ArtifactID, d artel.Digest) { message(me, elsewhere, artel.BlobRef(d).String()) },
		"by its ref, elsewhere": func(id artel.ArtifactID, _ artel.Digest) {
			c.version(elsewhere, "note", artel.Version{}, "cnv_ "+artel.Ref{Conversation: conv, Artifact: id, Version: 1}.String())
		},
		"in an event": func(id artel.ArtifactID, _ artel.Digest) { event(me, conv, artel.EventToolCompleted, string(id)) },
		"in an edit that is not yet seen": func(id artel.ArtifactID, _ artel.Digest) {
			c.edit(conv, "draft", artel.Version{}, "![]("+string(id)+")")
		},
	}
	for what, name := range named {
		n++
		id := artel.ArtifactID(fmt.Sprintf("result_%d.png", n))
		v := c.result(me, conv, id, n, 1)
		c.Same(what+": before", c.leftovers(10, false), []artel.ArtifactID{id})
		name(id, v.Digest)
		c.Same(what, len(c.leftovers(10, true)), 0)
	}
	id := artel.ArtifactID("\u4e2d_9.png")
	v := c.result(me, conv, id, 40, 1)
	event(me, conv, artel.EventArtifactCreated, string(id)+" "+string(v.Digest))
	event(them, theirs, artel.EventToolCompleted, string(v.Digest))
	message(me, elsewhere, string(id)+" of another conversation")
	message(them, theirs, artel.Ref{Conversation: conv, Artifact: id}.String())
	c.Same("named by its own event and by strangers", c.leftovers(10, true), []artel.ArtifactID{id})
}
