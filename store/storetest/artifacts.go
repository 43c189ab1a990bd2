// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type numbers = map[artel.ArtifactID]int

func artifactsByBranch(c *check) {
	conv := c.conversation()
	root := c.message(conv, "")
	a := c.message(conv, root)
	b := c.message(conv, root)
	c.version(conv, "upload", artel.Version{}, "everywhere")         // 1
	c.version(conv, "plan", artel.Version{Message: root}, "of root") // 1
	c.version(conv, "plan", artel.Version{Message: a}, "of a")       // 2
	c.version(conv, "plan", artel.Version{Message: b}, "of b")       // 3
	c.version(conv, "plan", artel.Version{Message: a}, "of a again") // 4
	c.version(conv, "note", artel.Version{Message: b}, "b only")     // 1
	c.same("heads at the root", c.heads(conv, root), numbers{"upload": 1, "plan": 1})
	c.same("heads at a", c.heads(conv, a), numbers{"upload": 1, "plan": 4})
	c.same("heads at b", c.heads(conv, b), numbers{"upload": 1, "plan": 3, "note": 1})
	c.same("heads at nothing", c.heads(conv, ""), numbers{"upload": 1})
	c.view(func(tx store.Tx) error {
		heads, err := tx.Artifacts.Heads(conv, b)
		var ids []artel.ArtifactID
		for _, h := range heads {
			ids = append(ids, h.ID)
		}
		c.same("order of heads", ids, []artel.ArtifactID{"note", "plan", "upload"})
		return err
	})
	c.missing("Head on another branch", func(tx store.Tx) error { _, err := tx.Artifacts.Head(conv, "note", a); return err })
	c.missing("Head of an unknown id", func(tx store.Tx) error { _, err := tx.Artifacts.Head(conv, "none", a); return err })
	c.missing("Heads at an unknown message", func(tx store.Tx) error { _, err := tx.Artifacts.Heads(conv, "msg_none"); return err })
	other := c.conversation()
	c.missing("Heads at another conversation's message", func(tx store.Tx) error { _, err := tx.Artifacts.Heads(other, a); return err })
}

func artifactsUnfolded(c *check) {
	conv := c.conversation()
	m := c.message(conv, "")
	side := c.message(conv, "")
	v := artel.Version{
		Parent: 1, Message: m, Run: "run_1", Author: "lead", Update: artel.UpdateExact, Title: "The plan", Filename: "p.md",
		Provenance: artel.SourceUserUpload, MediaInfo: artel.MediaInfo{MediaType: "text/markdown", Kind: artel.KindText, Size: 4},
		Digest: artel.NewDigest([32]byte{9}), CreatedAt: c.at(3),
	}
	c.version(conv, "plan", artel.Version{Message: m, CreatedAt: c.at(1)}, "one")
	n := c.edit(conv, "plan", v, "two")
	c.edit(conv, "plan", artel.Version{Message: side, Run: "run_2"}, "elsewhere")
	want := artel.Artifact{
		ID: "plan", Conversation: conv, Ref: artel.Ref{Conversation: conv, Artifact: "plan"}, Version: n, Title: "The plan",
		Filename: "p.md", MediaInfo: v.MediaInfo, Digest: v.Digest, Source: artel.SourceUserUpload, LastEditor: "lead",
		Live: true, CreatedAt: c.at(1), UpdatedAt: c.at(3),
	}
	head := func(what string) {
		c.view(func(tx store.Tx) error {
			got, err := tx.Artifacts.Head(conv, "plan", m)
			c.same(what, got, want)
			return err
		})
		c.heads(conv, m) // says the same
	}
	head("head with an unfolded edit")
	v.Number = n
	text := "two"
	c.update(func(tx store.Tx) error { return tx.Versions.Fold(conv, "plan", v, &text) })
	want.Live = false
	head("head after the fold")
}

func artifactsTombstone(c *check) {
	conv := c.conversation()
	c.version(conv, "doc", artel.Version{Update: artel.UpdateCreate}, "text")
	c.version(conv, "doc", artel.Version{Update: artel.UpdateDelete}, "")
	c.same("heads with a tombstone", c.heads(conv, ""), numbers{"doc": 2})
	deleted := func(want bool) {
		c.view(func(tx store.Tx) error {
			a, err := tx.Artifacts.Head(conv, "doc", "")
			c.same("Deleted", a.Deleted, want)
			return err
		})
	}
	deleted(true)
	c.edit(conv, "doc", artel.Version{Update: artel.UpdateRestore}, "text")
	deleted(false)
}

func artifactsExists(c *check) {
	conv := c.conversation()
	m := c.message(conv, "")
	c.edit(conv, "unfolded", artel.Version{Message: m}, "x")
	c.version(conv, "folded", artel.Version{Message: m}, "x")
	for id, want := range map[artel.ArtifactID]bool{"unfolded": true, "folded": true, "none": false} {
		c.view(func(tx store.Tx) error {
			got, err := tx.Artifacts.Exists(conv, id)
			c.same("Exists of "+string(id), got, want)
			return err
		})
	}
	c.missing("Exists in no conversation", func(tx store.Tx) error { _, err := tx.Artifacts.Exists("cnv_none", "x"); return err })
}
