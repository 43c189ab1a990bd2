// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

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
	c.Same("heads at the root", c.heads(conv, root), numbers{"upload": 1, "plan": 1})
	c.Same("heads at a", c.heads(conv, a), numbers{"upload": 1, "plan": 4})
	c.Same("heads at b", c.heads(conv, b), numbers{"upload": 1, "plan": 3, "note": 1})
	c.Same("heads at nothing", c.heads(conv, ""), numbers{"upload": 1})
	c.view(func(tx store.Tx) error {
		heads, err := tx.Artifacts.Heads(conv, b)
		var ids []artel.ArtifactID
		for _, h := range heads {
			ids = append(ids, h.ID)
		}
		c.Same("order of heads", ids, []artel.ArtifactID{"note", "plan", "upload"})
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
		reads(c, what, want, func(tx store.Tx) (artel.Artifact, error) { return tx.Artifacts.Head(conv, "plan", m) })
		c.heads(conv, m) // says the same
	}
	head("head with an unfolded edit")
	v.Number = n
	text := "two"
	c.update(func(tx store.Tx) error { return tx.Journal.Fold(conv, "plan", v, &text) })
	want.Live = false
	head("head after the fold")
}

func artifactsTombstone(c *check) {
	conv := c.conversation()
	c.version(conv, "doc", artel.Version{Update: artel.UpdateCreate}, "text")
	c.version(conv, "doc", artel.Version{Update: artel.UpdateDelete}, "")
	c.Same("heads with a tombstone", c.heads(conv, ""), numbers{"doc": 2})
	deleted := func(want bool) {
		c.view(func(tx store.Tx) error {
			a, err := tx.Artifacts.Head(conv, "doc", "")
			c.Same("Deleted", a.Deleted, want)
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
		reads(c, "Exists of "+string(id), want, func(tx store.Tx) (bool, error) { return tx.Artifacts.Exists(conv, id) })
	}
	c.missing("Exists in no conversation", func(tx store.Tx) error { _, err := tx.Artifacts.Exists("cnv_none", "x"); return err })
}

// artifactsHistories compares heads with what the lists of versions and edits
// say, over branches, in which artifacts have states of all kinds.
func artifactsHistories(c *check) {
	r := rand.New(rand.NewPCG(1, 2))
	conv := c.conversation()
	paths := map[artel.MessageID][]artel.MessageID{"": {""}}
	messages := []artel.MessageID{""}
	for i := range 6 {
		parent := messages[r.IntN(len(messages))]
		m := c.message(conv, parent)
		messages, paths[m] = append(messages, m), append(slices.Clip(paths[parent]), m)
		for j := range 40 {
			c.anything(conv, messages, r, i*40+j)
		}
		c.update(func(tx store.Tx) error { return tx.Versions.Claim(conv, []artel.ArtifactID{"id_1", "id_2", "none"}, m) })
		for _, at := range messages {
			c.likeLists(conv, at, paths[at])
		}
	}
}

// anything makes the i-th change: an edit, an edit and its fold, or the fold of
// an older edit.
func (c *check) anything(conv artel.ConversationID, messages []artel.MessageID, r *rand.Rand, i int) {
	id := artel.ArtifactID(fmt.Sprintf("id_%d", r.IntN(30)))
	v := artel.Version{
		Message: messages[r.IntN(len(messages))], Run: artel.RunID(fmt.Sprintf("run_%d", i)), Author: "a" + strconv.Itoa(i),
		Update: artel.UpdateExact, Title: awkward, MediaInfo: plain(), Preview: "text " + strconv.Itoa(i), CreatedAt: c.at(i),
	}
	if r.IntN(8) == 0 {
		v.Update, v.InBlob, v.MediaInfo, v.Preview = artel.UpdateDelete, true, artel.MediaInfo{MediaType: "image/png", Kind: artel.KindImage, Width: i}, ""
	}
	kind := r.IntN(3)
	c.update(func(tx store.Tx) (err error) {
		if kind == 0 {
			edits, err := tx.Journal.Edits(conv, store.EditQuery{Artifact: id, Unfolded: true})
			if err != nil || len(edits) == 0 {
				return err
			}
			return tx.Journal.Fold(conv, id, edits[r.IntN(len(edits))].Version, nil)
		}
		if v.Number, err = tx.Journal.Append(conv, id, v, nil); err != nil || kind == 1 {
			return err
		}
		return tx.Journal.Fold(conv, id, v, nil)
	})
}

// likeLists holds that the heads at the end of a path are the newest of all
// versions and unfolded edits on it.
func (c *check) likeLists(conv artel.ConversationID, at artel.MessageID, path []artel.MessageID) {
	c.view(func(tx store.Tx) error {
		edits, err := tx.Journal.Edits(conv, store.EditQuery{})
		if err != nil {
			return err
		}
		newest := map[artel.ArtifactID]artel.Artifact{}
		created := map[artel.ArtifactID]time.Time{}
		state := func(id artel.ArtifactID, v artel.Version, live bool) {
			if v.Number > newest[id].Version && slices.Contains(path, v.Message) {
				a := v.Artifact(conv, id, created[id])
				a.Live = live
				newest[id] = a
			}
		}
		for _, e := range edits {
			if e.Number == 1 {
				created[e.Artifact] = e.CreatedAt
			}
			if !e.Folded {
				state(e.Artifact, e.Version, true)
			}
		}
		ids, err := tx.Versions.Artifacts(conv)
		if err != nil {
			return err
		}
		for _, id := range ids {
			list, err := tx.Versions.List(conv, id)
			if err != nil {
				return err
			}
			for _, v := range list {
				state(id, v, false)
			}
		}
		want := slices.SortedFunc(maps.Values(newest), func(a, b artel.Artifact) int { return cmp.Compare(a.ID, b.ID) })
		got, err := tx.Artifacts.Heads(conv, at)
		c.Same("Heads", slices.Concat(got), want)
		return err
	})
	c.heads(conv, at) // as Head says
}
