// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// plain is content that is not binary.
func plain() artel.MediaInfo {
	return artel.MediaInfo{MediaType: "text/plain", Kind: artel.KindText}
}

func versionsGet(c *check) {
	conv := c.conversation()
	v := artel.Version{Author: "lead", Changes: []artel.Change{{Start: 1, End: 1, New: "x"}}, MediaInfo: plain(), CreatedAt: c.at(1)}
	v.Number = c.version(conv, "doc", v, "x")
	c.edit(conv, "doc", artel.Version{Run: "run_1"}, "y")
	c.view(func(tx store.Tx) error {
		got, err := tx.Versions.Get(conv, "doc", v.Number)
		c.Same("Get", got, v)
		if err != nil {
			return err
		}
		for n, want := range map[int]int{1: 1, 2: 1, 3: 0} {
			edits, err := tx.Journal.Edits(conv, store.EditQuery{Artifact: "doc", Number: n})
			if err != nil {
				return err
			}
			if len(edits) != want || want == 1 && edits[0].Number != n {
				c.Failf("Edits of number %d: got %v", n, edits)
			}
		}
		return nil
	})
	for what, v := range map[string]struct {
		conv artel.ConversationID
		id   artel.ArtifactID
		n    int
	}{"journalled only": {conv, "doc", 2}, "unknown number": {conv, "doc", 9}, "unknown artifact": {conv, "none", 1}, "no conversation": {"cnv_none", "doc", 1}} {
		c.missing("Get, "+what, func(tx store.Tx) error { _, err := tx.Versions.Get(v.conv, v.id, v.n); return err })
	}
}

func versionsThin(c *check) {
	conv := c.conversation()
	for range 2 {
		c.version(conv, "doc", artel.Version{MediaInfo: plain()}, awkward)
	}
	before := c.list(conv, "doc")
	for range 2 {
		c.update(func(tx store.Tx) error { return tx.Journal.DropText(conv, "doc", 1) })
	}
	c.missing("Text of a thin version", func(tx store.Tx) error { _, err := tx.Versions.Text(conv, "doc", 1); return err })
	c.Same("text of the other version", c.text(conv, "doc", 2), awkward)
	c.Same("versions after Thin", c.list(conv, "doc"), before)
	c.view(func(tx store.Tx) error {
		edits, err := tx.Journal.Edits(conv, store.EditQuery{Artifact: "doc", Number: 1})
		if len(edits) != 1 || edits[0].Text == nil || *edits[0].Text != awkward {
			c.Failf("Thin: the journal's own text is %v", edits)
		}
		return err
	})
	c.refused("Thin of an unknown version", artel.NotFound, func(tx store.Tx) error { return tx.Journal.DropText(conv, "doc", 9) })
	c.refused("Thin of an unknown artifact", artel.NotFound, func(tx store.Tx) error { return tx.Journal.DropText(conv, "none", 1) })
	c.update(func(tx store.Tx) error {
		n, err := tx.Journal.Append(conv, "pic", artel.Version{InBlob: true}, nil)
		if err != nil {
			return err
		}
		return tx.Journal.Fold(conv, "pic", artel.Version{Number: n, InBlob: true}, nil)
	})
	c.refused("Thin of a binary version", artel.Conflict, func(tx store.Tx) error { return tx.Journal.DropText(conv, "pic", 1) })
}

func (c *check) list(conv artel.ConversationID, id artel.ArtifactID) []artel.Version {
	var list []artel.Version
	c.view(func(tx store.Tx) (err error) {
		list, err = tx.Versions.List(conv, id)
		return err
	})
	return slices.Clip(list)
}
