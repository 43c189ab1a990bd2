// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

func versionsRoundTrip(c *check) {
	conv := c.conversation()
	full := artel.Version{
		Number: 1, Parent: 7, Message: "msg_1", Run: "run_1", Author: "lead", Update: artel.UpdateFuzzy,
		Changes: []artel.Change{
			{Layer: artel.LayerNormalized, Start: 1, End: 2, Old: awkward, New: ""},
			{Start: 3, End: 3, New: awkward},
		},
		Title: awkward, Filename: "a b.md", Provenance: artel.SourceToolResult,
		MediaInfo: artel.MediaInfo{
			MediaType: "text/markdown", DeclaredType: "text/plain", Kind: artel.KindText, Charset: "gb18030", DetectedBy: artel.FromContent,
			Confidence: 0.1, Size: 5 << 40, Width: 1, Height: 2, Pages: 3, Duration: 1.0 / 3,
		},
		Digest: artel.NewDigest([32]byte{1}), InBlob: true, Preview: awkward, CreatedAt: c.at(2),
	}
	for id, v := range map[artel.ArtifactID]artel.Version{
		"full": full, "zero": {Number: 1}, "empty": {Number: 1, Changes: []artel.Change{}},
	} {
		text := awkward
		edit := v
		edit.Number = 99 // ignored
		c.update(func(tx store.Tx) error {
			n, err := tx.Journal.Append(conv, id, edit, &text)
			c.Same("number", n, 1)
			if err != nil {
				return err
			}
			return tx.Journal.Fold(conv, id, v, &text)
		})
		c.view(func(tx store.Tx) error {
			list, err := tx.Versions.List(conv, id)
			c.Same("List of "+string(id), list, []artel.Version{v})
			if err != nil {
				return err
			}
			edits, err := tx.Journal.Edits(conv, store.EditQuery{Artifact: id})
			c.Same("Edits of "+string(id), edits, []store.Edit{{Artifact: id, Version: v, Text: &text, Folded: true}})
			return err
		})
	}
	c.missing("List of an unknown artifact", func(tx store.Tx) error { _, err := tx.Versions.List(conv, "none"); return err })
	c.missing("List of no conversation", func(tx store.Tx) error { _, err := tx.Versions.List("cnv_none", "none"); return err })
	c.refused("Append to no conversation", artel.NotFound, func(tx store.Tx) error {
		_, err := tx.Journal.Append("cnv_none", "doc", artel.Version{}, nil)
		return err
	})
}

func versionsNumbers(c *check) {
	conv, other := c.conversation(), c.conversation()
	a := c.message(conv, "")
	b := c.message(conv, "")
	c.Same("first of doc", c.edit(conv, "doc", artel.Version{Message: a}, "1"), 1)
	c.Same("second, on another branch", c.edit(conv, "doc", artel.Version{Message: b}, "2"), 2)
	c.Same("first of another artifact", c.edit(conv, "note", artel.Version{}, "1"), 1)
	c.Same("first in another conversation", c.edit(other, "doc", artel.Version{}, "1"), 1)
	c.Same("third, folded", c.version(conv, "doc", artel.Version{Message: a, Run: "r"}, "3"), 3)
	c.Same("fourth", c.edit(conv, "doc", artel.Version{Message: a}, "4"), 4)
	c.view(func(tx store.Tx) error {
		list, err := tx.Versions.List(conv, "doc")
		if len(list) != 1 || list[0].Number != 3 {
			c.Failf("List: got %v, want only version 3, the folded one", list)
		}
		return err
	})
}

func versionsFold(c *check) {
	conv := c.conversation()
	run := func(r artel.RunID) artel.Version { return artel.Version{Run: r} }
	for _, r := range []artel.RunID{"run_1", "run_2", "run_1", "", "run_1", ""} { // 1 … 6
		c.edit(conv, "doc", run(r), "x")
	}
	c.edit(conv, "other", run("run_1"), "x")
	unfolded := func() (list []int) {
		c.view(func(tx store.Tx) error {
			edits, err := tx.Journal.Edits(conv, store.EditQuery{Artifact: "doc", Unfolded: true})
			for _, e := range edits {
				c.Same("Folded of an unfolded edit", e.Folded, false)
				list = append(list, e.Number)
			}
			return err
		})
		return list
	}
	fold := func(n int, r artel.RunID) {
		text := "x"
		v := run(r)
		v.Number = n
		c.update(func(tx store.Tx) error { return tx.Journal.Fold(conv, "doc", v, &text) })
	}
	fold(3, "run_1")
	c.Same("unfolded after folding run_1 up to 3", unfolded(), []int{2, 4, 5, 6})
	fold(6, "")
	c.Same("unfolded after folding 6 alone", unfolded(), []int{2, 4, 5})
	c.view(func(tx store.Tx) error {
		edits, err := tx.Journal.Edits(conv, store.EditQuery{Artifact: "other", Unfolded: true})
		c.Same("unfolded edits of the other artifact", len(edits), 1)
		return err
	})
}

func versionsFoldTwice(c *check) {
	conv := c.conversation()
	text := "x"
	n := c.version(conv, "doc", artel.Version{}, text)
	c.refused("Fold of a version that is there", artel.Conflict, func(tx store.Tx) error {
		return tx.Journal.Fold(conv, "doc", artel.Version{Number: n, Title: "other"}, &text)
	})
	c.refused("Fold of a number that was not journalled", artel.NotFound, func(tx store.Tx) error {
		return tx.Journal.Fold(conv, "doc", artel.Version{Number: n + 1}, &text)
	})
}

func versionsEdits(c *check) {
	conv := c.conversation()
	c.edit(conv, "b", artel.Version{Run: "run_1"}, "x")    // b 1
	c.edit(conv, "a", artel.Version{Run: "run_1"}, "x")    // a 1
	c.edit(conv, "a", artel.Version{Run: "run_2"}, "x")    // a 2
	c.version(conv, "a", artel.Version{Run: "run_3"}, "x") // a 3
	c.update(func(tx store.Tx) error {
		_, err := tx.Journal.Append(conv, "b", artel.Version{Run: "run_2"}, nil)
		return err
	})
	type key struct {
		id artel.ArtifactID
		n  int
	}
	for _, q := range []struct {
		store.EditQuery
		want string
	}{
		{store.EditQuery{}, "a1 a2 a3 b1 b2"},
		{store.EditQuery{Artifact: "a"}, "a1 a2 a3"},
		{store.EditQuery{Run: "run_2"}, "a2 b2"},
		{store.EditQuery{After: 1}, "a2 a3 b2"},
		{store.EditQuery{Unfolded: true}, "a1 a2 b1 b2"},
		{store.EditQuery{Artifact: "a", Run: "run_1", Unfolded: true, After: 1}, ""},
	} {
		c.view(func(tx store.Tx) error {
			edits, err := tx.Journal.Edits(conv, q.EditQuery)
			var got []string
			for _, e := range edits {
				got = append(got, string(e.Artifact)+string(rune('0'+e.Number)))
				if (key{e.Artifact, e.Number} == key{"b", 2}) != (e.Text == nil) {
					c.Failf("Edits: text of %s %d is %v, want nil only where none was given", e.Artifact, e.Number, e.Text)
				}
			}
			c.Same("Edits", strings.Join(got, " "), q.want)
			return err
		})
	}
	c.edit(conv, "spans", artel.Version{
		Parent: 7, Run: "run_1", Update: artel.UpdateExact, Title: "left out", Changes: []artel.Change{{Start: 1, End: 1, New: "x"}},
	}, "left out")
	c.view(func(tx store.Tx) error {
		edits, err := tx.Journal.Edits(conv, store.EditQuery{Spans: true, Artifact: "spans"})
		c.Same("Edits, spans", edits, []store.Edit{{Artifact: "spans", Version: artel.Version{
			Number: 1, Parent: 7, Run: "run_1", Update: artel.UpdateExact, Changes: []artel.Change{{Start: 1, End: 1, New: "x"}},
		}}})
		return err
	})
	c.missing("Edits of no conversation", func(tx store.Tx) error { _, err := tx.Journal.Edits("cnv_none", store.EditQuery{}); return err })
}

func versionsFoldInner(c *check) {
	conv := c.conversation()
	for i := range 6 {
		run := artel.RunID("run_1")
		if i == 2 {
			run = "run_2"
		}
		c.edit(conv, "doc", artel.Version{Run: run}, "x")
	}
	inner := func(want int, folded string) {
		c.update(func(tx store.Tx) error {
			n, err := tx.Journal.FoldInner(conv, "doc", "run_1", 1, 6, 2)
			if n != want {
				c.Failf("FoldInner: got %d, want %d", n, want)
			}
			return err
		})
		got := ""
		c.view(func(tx store.Tx) error {
			edits, err := tx.Journal.Edits(conv, store.EditQuery{})
			for _, e := range edits {
				if e.Folded {
					got += string(rune('0' + e.Number))
				}
			}
			return err
		})
		c.Same("folded", got, folded)
		c.Same("heads", c.heads(conv, ""), numbers{"doc": 6})
	}
	inner(2, "45")
	inner(1, "245")
	inner(0, "245")
	c.refused("FoldInner in no conversation", artel.NotFound, func(tx store.Tx) error {
		_, err := tx.Journal.FoldInner("cnv_none", "doc", "run_1", 1, 6, 2)
		return err
	})
	text := "x"
	c.update(func(tx store.Tx) error {
		return tx.Journal.Fold(conv, "doc", artel.Version{Number: 6, Run: "run_1"}, &text)
	})
	c.view(func(tx store.Tx) error {
		edits, err := tx.Journal.Edits(conv, store.EditQuery{Unfolded: true})
		if len(edits) != 1 || edits[0].Number != 3 {
			c.Failf("Unfolded after Fold: got %v, want edit 3 of the other run", edits)
		}
		return err
	})
}

func versionsReplay(c *check) {
	conv := c.conversation()
	change := func(n int) []artel.Change { return []artel.Change{{Start: n, End: n, New: string(rune('a' + n))}} }
	edit := func(id artel.ArtifactID, parent int, run artel.RunID, text *string) (n int) {
		c.update(func(tx store.Tx) (err error) {
			list, err := tx.Journal.Edits(conv, store.EditQuery{Artifact: id})
			if err != nil {
				return err
			}
			n, err = tx.Journal.Append(conv, id, artel.Version{Parent: parent, Run: run, Changes: change(len(list) + 1)}, text)
			return err
		})
		return n
	}
	replay := func(what string, id artel.ArtifactID, n int, want store.Replay) {
		c.view(func(tx store.Tx) error {
			got, err := tx.Journal.Replay(conv, id, n)
			c.Same(what, got, want)
			return err
		})
	}
	c.version(conv, "doc", artel.Version{}, awkward) // 1
	replay("Replay of a version", "doc", 1, store.Replay{Base: 1, Text: awkward})
	edit("doc", 1, "run_1", nil) // 2
	edit("doc", 1, "run_2", nil) // 3, on another branch
	edit("doc", 2, "run_1", nil) // 4
	both := slices.Concat(change(2), change(4))
	replay("Replay of edits", "doc", 4, store.Replay{Base: 1, Text: awkward, Changes: both, Edits: 2})
	replay("Replay of an edit of another branch", "doc", 3, store.Replay{Base: 1, Text: awkward, Changes: change(3), Edits: 1})
	whole := ""
	edit("doc", 4, "run_1", &whole) // 5
	replay("Replay of an edit with a text", "doc", 5, store.Replay{Base: 5})
	edit("doc", 5, "run_1", nil) // 6
	replay("Replay since an edit with a text", "doc", 6, store.Replay{Base: 5, Changes: change(6), Edits: 1})
	folded := "folded"
	c.update(func(tx store.Tx) error {
		return tx.Journal.Fold(conv, "doc", artel.Version{Number: 4, Run: "run_1", MediaInfo: plain()}, &folded)
	})
	replay("Replay of a folded edit", "doc", 4, store.Replay{Base: 4, Text: folded})
	replay("Replay of an edit before the fold", "doc", 2, store.Replay{Base: 1, Text: awkward, Changes: change(2), Edits: 1})
	c.update(func(tx store.Tx) error { return tx.Journal.DropText(conv, "doc", 4) })
	replay("Replay of a version whose text was dropped", "doc", 4, store.Replay{Base: 1, Text: awkward, Changes: both, Edits: 2})
	edit("doc", 6, "run_1", &whole) // 7
	c.update(func(tx store.Tx) error { return tx.Journal.DropText(conv, "doc", 7) })
	replay("Replay of an edit whose text was dropped", "doc", 7, store.Replay{Base: 5, Changes: slices.Concat(change(6), change(7)), Edits: 2})
	edit("none", 0, "run_1", nil)
	for what, v := range map[string]struct {
		conv artel.ConversationID
		id   artel.ArtifactID
		n    int
	}{"unknown number": {conv, "doc", 9}, "unknown artifact": {conv, "nothing", 1}, "no text": {conv, "none", 1}, "no conversation": {"cnv_none", "doc", 1}} {
		c.missing("Replay, "+what, func(tx store.Tx) error { _, err := tx.Journal.Replay(v.conv, v.id, v.n); return err })
	}
}

func versionsArtifacts(c *check) {
	conv, other := c.conversation(), c.conversation()
	a, b := c.message(conv, ""), c.message(conv, "")
	c.version(conv, "plan", artel.Version{Message: b}, "x")
	c.version(conv, "plan", artel.Version{Message: a}, "x")
	c.edit(conv, "plan", artel.Version{Message: a, Run: "run_1"}, "x")
	c.version(conv, "gone", artel.Version{Message: a, Update: artel.UpdateDelete}, "x")
	c.version(conv, "\u4e2d.png", artel.Version{}, "x")
	c.edit(conv, "draft", artel.Version{Message: a, Run: "run_1"}, "x")
	c.version(other, "elsewhere", artel.Version{}, "x")
	list := func(conv artel.ConversationID) (ids []artel.ArtifactID) {
		c.view(func(tx store.Tx) (err error) { ids, err = tx.Versions.Artifacts(conv); return err })
		return ids
	}
	c.Same("artifacts with a version", list(conv), []artel.ArtifactID{"gone", "plan", "\u4e2d.png"})
	c.Same("of an empty conversation", len(list(c.conversation())), 0)
	text := "x"
	c.update(func(tx store.Tx) error {
		return tx.Journal.Fold(conv, "draft", artel.Version{Number: 1, Message: a, Run: "run_1"}, &text)
	})
	c.Same("after the fold", list(conv), []artel.ArtifactID{"draft", "gone", "plan", "\u4e2d.png"})
	c.missing("Artifacts of no conversation", func(tx store.Tx) error { _, err := tx.Versions.Artifacts("cnv_none"); return err })
}

func (c *check) text(conv artel.ConversationID, id artel.ArtifactID, n int) string {
	var text string
	c.view(func(tx store.Tx) (err error) { text, err = tx.Versions.Text(conv, id, n); return err })
	return text
}

func versionsText(c *check) {
	conv := c.conversation()
	c.version(conv, "doc", artel.Version{}, awkward) // 1
	c.version(conv, "doc", artel.Version{}, "")      // 2
	c.edit(conv, "doc", artel.Version{}, "journal")  // 3
	c.Same("text", c.text(conv, "doc", 1), awkward)
	c.Same("empty text", c.text(conv, "doc", 2), "")
	for what, v := range map[string]struct {
		id artel.ArtifactID
		n  int
	}{"journalled only": {"doc", 3}, "unknown number": {"doc", 9}, "unknown artifact": {"none", 1}} {
		c.missing("Text, "+what, func(tx store.Tx) error { _, err := tx.Versions.Text(conv, v.id, v.n); return err })
	}
	c.update(func(tx store.Tx) error {
		n, err := tx.Journal.Append(conv, "pic", artel.Version{InBlob: true}, nil)
		if err != nil {
			return err
		}
		return tx.Journal.Fold(conv, "pic", artel.Version{Number: n, InBlob: true}, nil)
	})
	c.Kind("Text of a binary version", c.s.View(c.Context(), me, func(tx store.Tx) error {
		_, err := tx.Versions.Text(conv, "pic", 1)
		return err
	}), artel.Unsupported)
}

func versionsLargeText(c *check) {
	conv := c.conversation()
	large := strings.Repeat("0123456789 中文\x00\r\n", 10<<20/20)
	n := c.version(conv, "doc", artel.Version{}, large)
	if got := c.text(conv, "doc", n); got != large {
		c.Failf("a text of %d bytes came back with %d bytes, or changed", len(large), len(got))
	}
}

func versionsUTF8(c *check) {
	conv := c.conversation()
	bad := "a\xffb"
	for what, fn := range map[string]func(store.Tx) error{
		"text": func(tx store.Tx) error { _, err := tx.Journal.Append(conv, "d", artel.Version{}, &bad); return err },
		"title": func(tx store.Tx) error {
			_, err := tx.Journal.Append(conv, "d", artel.Version{Title: bad}, nil)
			return err
		},
		"change": func(tx store.Tx) error {
			_, err := tx.Journal.Append(conv, "d", artel.Version{Changes: []artel.Change{{New: bad}}}, nil)
			return err
		},
	} {
		c.refused("Append with a "+what+" that is not UTF-8", artel.Invalid, fn)
	}
}

func versionsClaim(c *check) {
	conv := c.conversation()
	a := c.message(conv, "")
	b := c.message(conv, "")
	c.version(conv, "up", artel.Version{}, "x")
	c.version(conv, "stay", artel.Version{}, "x")
	c.version(conv, "owned", artel.Version{Message: b}, "x")
	c.edit(conv, "draft", artel.Version{}, "x")
	c.update(func(tx store.Tx) error { return tx.Versions.Claim(conv, []artel.ArtifactID{"up", "owned", "draft"}, a) })
	c.Same("heads at the claiming message", c.heads(conv, a), numbers{"up": 1, "stay": 1, "draft": 1})
	c.Same("heads at the other message", c.heads(conv, b), numbers{"stay": 1, "owned": 1})
	c.Same("heads at nothing", c.heads(conv, ""), numbers{"stay": 1})
	c.view(func(tx store.Tx) error {
		list, err := tx.Versions.List(conv, "up")
		if len(list) != 1 || list[0].Message != a {
			c.Failf("List after Claim: got %v, want the message %s", list, a)
		}
		return err
	})
}

func versionsFind(c *check) {
	conv := c.conversation()
	d := artel.NewDigest([32]byte{3})
	want := artel.Version{Number: 1, Digest: d, Author: "me", MediaInfo: artel.MediaInfo{MediaType: "text/plain", Size: 1}, CreatedAt: c.now}
	c.version(conv, "doc", want, "x")
	reads(c, "Find", store.Place{Conversation: conv, Artifact: "doc", Version: want}, func(tx store.Tx) (store.Place, error) { return tx.Versions.Find(d) })
	c.missing("Find of other bytes", func(tx store.Tx) error { _, err := tx.Versions.Find(artel.NewDigest([32]byte{4})); return err })
}
