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

func artifactsLive(c *check) {
	conv := c.conversation()
	root := c.message(conv, "")
	a, b := c.message(conv, root), c.message(conv, root)
	c.version(conv, "quiet", artel.Version{Message: root}, "x")
	c.edit(conv, "plan", artel.Version{Message: a, Run: "run_1"}, "x")     // 1
	c.edit(conv, "plan", artel.Version{Message: b, Run: "run_2"}, "x")     // 2
	c.edit(conv, "plan", artel.Version{Message: a, Run: "run_1"}, "x")     // 3
	c.version(conv, "plan", artel.Version{Message: a}, "x")                // 4
	c.edit(conv, "alone", artel.Version{Message: root, Run: "run_1"}, "x") // 1
	live := func(at artel.MessageID) string {
		out := ""
		c.view(func(tx store.Tx) error {
			list, err := tx.Artifacts.Live(conv, at)
			for _, a := range list {
				out += string(a.ID) + string(rune('0'+a.Version)) + " "
				c.same("Live of "+string(a.ID), a.Live, true)
			}
			return err
		})
		return out
	}
	c.same("live at a", live(a), "alone1 plan3 ")
	c.same("live at b", live(b), "alone1 plan2 ")
	c.same("live at the root", live(root), "alone1 ")
	c.same("live at nothing", live(""), "")
	text := "x"
	c.update(func(tx store.Tx) error {
		return tx.Versions.Fold(conv, "plan", artel.Version{Number: 3, Message: a, Run: "run_1"}, &text)
	})
	c.same("live at a after the fold", live(a), "alone1 ")
	c.view(func(tx store.Tx) error {
		list, err := tx.Artifacts.Live(conv, root)
		if err != nil {
			return err
		}
		head, err := tx.Artifacts.Head(conv, "alone", root)
		c.same("Live and Head", list, []artel.Artifact{head})
		return err
	})
	c.missing("Live at an unknown message", func(tx store.Tx) error { _, err := tx.Artifacts.Live(conv, "msg_none"); return err })
	c.missing("Live of no conversation", func(tx store.Tx) error { _, err := tx.Artifacts.Live("cnv_none", ""); return err })
}

func artifactsChanged(c *check) {
	conv, other := c.conversation(), c.conversation()
	m := c.message(conv, "")
	var last int64
	changed := func(after int64) []artel.ArtifactID {
		var ids []artel.ArtifactID
		c.view(func(tx store.Tx) (err error) {
			ids, last, err = tx.Artifacts.Changed(conv, after)
			return err
		})
		return ids
	}
	c.same("changed in an empty conversation", changed(0), []artel.ArtifactID(nil))
	c.version(conv, "b", artel.Version{}, "x")
	c.version(conv, "a", artel.Version{}, "x")
	c.version(other, "c", artel.Version{}, "x")
	c.same("changed since the beginning", changed(0), []artel.ArtifactID{"a", "b"})
	first := last
	c.edit(conv, "a", artel.Version{Message: m, Run: "run_1"}, "x")
	c.same("changed after an edit that is live", changed(first), []artel.ArtifactID(nil))
	c.same("mark after an edit that is live", last, first)
	text := "y"
	c.update(func(tx store.Tx) error {
		return tx.Versions.Fold(conv, "a", artel.Version{Number: 2, Message: m, Run: "run_1"}, &text)
	})
	c.same("changed after its fold", changed(first), []artel.ArtifactID{"a"})
	second := last
	c.update(func(tx store.Tx) error { return tx.Versions.Claim(conv, []artel.ArtifactID{"b"}, m) })
	c.same("changed after a claim", changed(second), []artel.ArtifactID{"b"})
	if first <= 0 || second <= first || last <= second {
		c.failf("Changed: the marks %d, %d, %d do not grow", first, second, last)
	}
	c.same("changed since the first mark", changed(first), []artel.ArtifactID{"a", "b"})
	c.missing("Changed in no conversation", func(tx store.Tx) error { _, _, err := tx.Artifacts.Changed("cnv_none", 0); return err })
}

func artifactsBeginnings(c *check) {
	conv := c.conversation()
	m := c.message(conv, "")
	side := c.message(conv, "")
	doc := func(at artel.MessageID) artel.Version { return artel.Version{Message: at, MediaInfo: plain()} }
	c.version(conv, "doc", doc(m), awkward)
	c.version(conv, "doc", doc(side), "elsewhere")
	c.version(conv, "empty", doc(m), "")
	c.version(conv, "old", doc(m), "old")
	c.edit(conv, "old", artel.Version{Message: m, Run: "run_1", MediaInfo: plain()}, "live")
	c.version(conv, "thin", doc(m), "thin")
	c.update(func(tx store.Tx) error {
		if err := tx.Versions.Thin(conv, "thin", 1); err != nil {
			return err
		}
		n, err := tx.Versions.Append(conv, "pic", artel.Version{InBlob: true}, nil)
		if err != nil {
			return err
		}
		return tx.Versions.Fold(conv, "pic", artel.Version{Number: n, InBlob: true}, nil)
	})
	all := []rune(awkward)
	for _, chars := range []int{0, 1, 5, len(all) - 1, len(all), 1000} {
		c.view(func(tx store.Tx) error {
			list, err := tx.Artifacts.Beginnings(conv, m, chars)
			c.same("beginnings", list, []store.Beginning{
				{Artifact: "doc", Number: 1, Text: string(all[:min(chars, len(all))])}, {Artifact: "empty", Number: 1},
			})
			return err
		})
	}
	c.missing("Beginnings at an unknown message", func(tx store.Tx) error { _, err := tx.Artifacts.Beginnings(conv, "msg_none", 1); return err })
}

func versionsGet(c *check) {
	conv := c.conversation()
	v := artel.Version{Author: "lead", Changes: []artel.Change{{Start: 1, End: 1, New: "x"}}, MediaInfo: plain(), CreatedAt: c.at(1)}
	v.Number = c.version(conv, "doc", v, "x")
	c.edit(conv, "doc", artel.Version{Run: "run_1"}, "y")
	c.view(func(tx store.Tx) error {
		got, err := tx.Versions.Get(conv, "doc", v.Number)
		c.same("Get", got, v)
		if err != nil {
			return err
		}
		for n, want := range map[int]int{1: 1, 2: 1, 3: 0} {
			edits, err := tx.Versions.Edits(conv, store.EditQuery{Artifact: "doc", Number: n})
			if err != nil {
				return err
			}
			if len(edits) != want || want == 1 && edits[0].Number != n {
				c.failf("Edits of number %d: got %v", n, edits)
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
		c.update(func(tx store.Tx) error { return tx.Versions.Thin(conv, "doc", 1) })
	}
	c.missing("Text of a thin version", func(tx store.Tx) error { _, err := tx.Versions.Text(conv, "doc", 1); return err })
	c.same("text of the other version", c.text(conv, "doc", 2), awkward)
	c.same("versions after Thin", c.list(conv, "doc"), before)
	c.view(func(tx store.Tx) error {
		edits, err := tx.Versions.Edits(conv, store.EditQuery{Artifact: "doc", Number: 1})
		if len(edits) != 1 || edits[0].Text == nil || *edits[0].Text != awkward {
			c.failf("Thin: the journal's own text is %v", edits)
		}
		return err
	})
	c.refused("Thin of an unknown version", artel.NotFound, func(tx store.Tx) error { return tx.Versions.Thin(conv, "doc", 9) })
	c.refused("Thin of an unknown artifact", artel.NotFound, func(tx store.Tx) error { return tx.Versions.Thin(conv, "none", 1) })
	c.update(func(tx store.Tx) error {
		n, err := tx.Versions.Append(conv, "pic", artel.Version{InBlob: true}, nil)
		if err != nil {
			return err
		}
		return tx.Versions.Fold(conv, "pic", artel.Version{Number: n, InBlob: true}, nil)
	})
	c.refused("Thin of a binary version", artel.Conflict, func(tx store.Tx) error { return tx.Versions.Thin(conv, "pic", 1) })
}

func (c *check) list(conv artel.ConversationID, id artel.ArtifactID) []artel.Version {
	var list []artel.Version
	c.view(func(tx store.Tx) (err error) {
		list, err = tx.Versions.List(conv, id)
		return err
	})
	return slices.Clip(list)
}
