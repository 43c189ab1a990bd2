// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// used compares what an owner stores with want, as the owner and as operators see it.
func (c *check) used(what string, owner artel.Owner, want int64) {
	c.Must("view", c.s.View(c.Context(), owner, func(tx store.Tx) error {
		got, err := tx.Storage.Used()
		c.Same(what, got, want)
		return err
	}))
	c.seePeople(func(tx store.PeopleTx) error {
		all, err := tx.Ledger.Stored()
		c.Same(what+" in the ledger", all[owner], want)
		return err
	})
}

func (c *check) holds(what string, owner artel.Owner, d artel.Digest, want bool) {
	c.Must("view", c.s.View(c.Context(), owner, func(tx store.Tx) error {
		got, err := tx.Storage.Holds(d)
		c.Same("holds "+what, got, want)
		return err
	}))
}

// storageBlobs: equal bytes count once, until nothing holds them.
func storageBlobs(c *check) {
	c.used("of nothing", me, 0)
	size := int64(1000)
	picture := artel.Version{InBlob: true, Digest: numbered(1), MediaInfo: artel.MediaInfo{MediaType: "image/png", Kind: artel.KindImage, Size: size}}
	conv := artel.NewConversationID(c.now)
	keep := func(tx store.Tx, id artel.ArtifactID) error {
		v := picture
		var err error
		if v.Number, err = tx.Journal.Append(conv, id, v, nil); err != nil {
			return err
		}
		return tx.Journal.Fold(conv, id, v, nil)
	}
	c.update(func(tx store.Tx) error {
		if err := tx.Conversations.Create(artel.Conversation{ID: conv, CreatedAt: c.now, UpdatedAt: c.now}); err != nil {
			return err
		}
		if err := errors.Join(keep(tx, "a"), keep(tx, "b")); err != nil {
			return err
		}
		n, err := tx.Storage.Used()
		c.Same("inside the update", n, size)
		return err
	})
	c.holds("a picture", me, numbered(1), true)
	c.holds("a picture that another owner has", them, numbered(1), false)
	c.holds("what nothing refers to", me, numbered(2), false)
	c.used("of one picture twice", me, size)
	c.used("of another owner", them, 0)
	file := store.File{ID: "f", Holder: "program", Digest: picture.Digest, Info: picture.MediaInfo, CreatedAt: c.now}
	other := file
	other.ID, other.Digest, other.ExpiresAt, other.Info.Size = "g", numbered(2), c.at(1), 50
	c.createFiles(file, other)
	c.used("with two files", me, size+50)
	c.Must("a file of another owner", c.s.Update(c.Context(), them, func(tx store.Tx) error { return tx.Files.Create(file) }))
	c.used("of another owner with the file", them, size)
	c.holds("the bytes of a file", them, numbered(1), true)
	failed := errors.New("not kept")
	if err := c.s.Update(c.Context(), me, func(tx store.Tx) error {
		if err := tx.Files.Delete("f", c.now); err != nil {
			return err
		}
		return failed
	}); !errors.Is(err, failed) {
		c.Failf("a failing update: %v", err)
	}
	c.update(func(tx store.Tx) error { return tx.Files.Purge(c.at(2)) })
	c.used("without the expired file", me, size)
	c.update(func(tx store.Tx) error { return tx.Conversations.Delete(conv, c.now) })
	c.used("of a deleted conversation", me, size)
	_, err := c.s.Purge(c.Context(), c.at(1))
	c.Must("purge", err)
	c.used("with the file alone", me, size)
	c.update(func(tx store.Tx) error { return tx.Files.Delete("f", c.now) })
	c.used("of nothing again", me, 0)
}

// storageTexts: texts count as often as they are stored, edits as their changes unless these are small.
func storageTexts(c *check) {
	conv := artel.NewConversationID(c.now)
	text := strings.Repeat("中", 1000) // 3000 bytes
	v := artel.Version{MediaInfo: plain(), Digest: numbered(1)}
	c.update(func(tx store.Tx) (err error) {
		if err := tx.Conversations.Create(artel.Conversation{ID: conv, CreatedAt: c.now, UpdatedAt: c.now}); err != nil {
			return err
		}
		if v.Number, err = tx.Journal.Append(conv, "doc", v, nil); err != nil {
			return err
		}
		return tx.Journal.Fold(conv, "doc", v, &text)
	})
	c.used("of a text", me, 3000)
	// A small change of a long text costs nothing, a long one its length.
	edit := artel.Version{MediaInfo: plain(), Digest: numbered(2), Run: "run_1", Parent: 1, Changes: []artel.Change{{Start: 0, End: 1, Old: "中", New: "文"}}}
	c.update(func(tx store.Tx) error { _, err := tx.Journal.Append(conv, "doc", edit, nil); return err })
	c.used("after a small edit", me, 3000)
	edit.Changes[0].New = strings.Repeat("x", 2*store.CountedChanges)
	c.update(func(tx store.Tx) error { _, err := tx.Journal.Append(conv, "doc", edit, nil); return err })
	var with int64
	c.view(func(tx store.Tx) (err error) { with, err = tx.Storage.Used(); return err })
	if cost := with - 3000; cost < 2*store.CountedChanges || cost > 3*store.CountedChanges {
		c.Failf("an edit that adds %d bytes costs %d", 2*store.CountedChanges, cost)
	}
	c.update(func(tx store.Tx) error { _, err := tx.Journal.Append(conv, "doc", edit, &text); return err })
	c.update(func(tx store.Tx) error { return tx.Journal.DropText(conv, "doc", 4) })
	c.used("after its text was dropped", me, 3000+2*(with-3000))
	c.update(func(tx store.Tx) error { return tx.Journal.DropText(conv, "doc", 1) })
	c.used("after the text of the version was dropped", me, 2*(with-3000))
	c.update(func(tx store.Tx) error { return tx.Conversations.Delete(conv, c.now) })
	_, err := c.s.Purge(c.Context(), c.at(1))
	c.Must("purge", err)
	c.used("of nothing", me, 0)
}
