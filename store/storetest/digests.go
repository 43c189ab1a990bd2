// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// uses returns each different use of a [numbered] digest once, sorted. Other
// digits may stand beside one and look as a digest does.
func (c *check) uses() []store.Use {
	var list []store.Use
	for u, err := range c.s.Digests(c.Context()) {
		c.Must("Digests", err)
		if hex := u.Digest.Hex(); len(hex) == 64 && hex[:2] == hex[62:] {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b store.Use) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Conversation, b.Conversation), cmp.Compare(a.Digest, b.Digest))
	})
	return slices.Compact(list)
}

// numbered is the digest of nothing in particular.
func numbered(n byte) artel.Digest { return artel.NewDigest([32]byte{0: n, 31: n}) }

// digestsIn fills a conversation with digests from 1 on, each in a place of its
// own, and returns the uses of them.
func (c *check) digestsIn(owner artel.Owner) (conv artel.ConversationID, want []store.Use) {
	conv = artel.NewConversationID(c.now)
	last := byte(0)
	next := func(bytes bool) artel.Digest {
		last++
		want = append(want, store.Use{Owner: owner, Conversation: conv, Digest: numbered(last), Bytes: bytes})
		return numbered(last)
	}
	written := func() string { return "中 “" + artel.BlobRef(next(false)).String() + "”\x00" }
	c.Must("fill with digests", c.s.Update(c.Context(), owner, func(tx store.Tx) error {
		last, want = 0, nil
		if err := tx.Conversations.Create(artel.Conversation{ID: conv, CreatedAt: c.now, UpdatedAt: c.now}); err != nil {
			return err
		}
		picture := artel.Version{InBlob: true, MediaInfo: artel.MediaInfo{MediaType: "image/png", Kind: artel.KindImage}}
		for _, id := range []artel.ArtifactID{"folded", "unfolded"} {
			picture.Number, picture.Digest = 1, next(true)
			if _, err := tx.Journal.Append(conv, id, picture, nil); err != nil {
				return err
			}
			if id == "unfolded" {
				continue
			}
			if err := tx.Journal.Fold(conv, id, picture, nil); err != nil {
				return err
			}
		}
		// The digest of a text that is its own bytes is none of a blob.
		text := written()
		note := artel.Version{Number: 1, MediaInfo: plain(), Digest: numbered(255)}
		if _, err := tx.Journal.Append(conv, "note", note, nil); err != nil {
			return err
		}
		if err := tx.Journal.Fold(conv, "note", note, &text); err != nil {
			return err
		}
		text = written()
		if _, err := tx.Journal.Append(conv, "note", note, &text); err != nil {
			return err
		}
		note.Changes = []artel.Change{{Old: written(), New: written()}}
		if _, err := tx.Journal.Append(conv, "note", note, nil); err != nil {
			return err
		}
		m := artel.Message{ID: artel.NewMessageID(c.now), Conversation: conv, Role: artel.RoleTool, CreatedAt: c.now, Parts: artel.Parts{
			artel.Text{Text: written()},
			artel.Media{Ref: artel.BlobRef(next(false))},
			artel.ToolCall{ID: "1", Arguments: json.RawMessage(fmt.Sprintf(`{"url":"/api/v1/files/tool_results/%s.png"}`, next(false).Hex()))},
			artel.ToolCall{ID: "2", Arguments: json.RawMessage(fmt.Sprintf(`{"url":"/api/v1/files/blob%%3asha256%%2d%s"}`, next(false).Hex()))},
			artel.ToolResult{
				CallID: "1", Content: written(), Parts: artel.Parts{artel.Media{Ref: artel.BlobRef(next(false))}},
				Metadata: map[string]any{"digest": next(false)},
			},
			artel.Reasoning{Text: written()},
		}}
		if err := tx.Messages.Create(m); err != nil {
			return err
		}
		data, err := json.Marshal(written())
		if err != nil {
			return err
		}
		if _, err = tx.Events.Append(conv, artel.Event{Type: "x", Time: c.now, Data: data}); err != nil {
			return err
		}
		run := artel.Run{ID: artel.NewRunID(c.now), Conversation: conv, State: artel.RunDone}
		if err := tx.Runs.Create(run, store.Lease{}); err != nil {
			return err
		}
		_, err = tx.Contexts.Add(c.record(conv, run.ID, 1), []store.Segment{{Digest: numbered(254), Body: []byte(written())}})
		return err
	}))
	return conv, want
}

func digestsEverywhere(c *check) {
	c.Same("of an empty store", len(c.uses()), 0)
	mine, want := c.digestsIn(me)
	_, theirs := c.digestsIn(them)
	answer := store.Use{Owner: me, Digest: numbered(200)}
	c.update(func(tx store.Tx) error {
		return tx.Answers.Put(store.Answer{Key: "k", Body: []byte("\xff{\"digest\":\"" + string(answer.Digest) + "\"}"), CreatedAt: c.now})
	})
	smaller := store.Use{Owner: me, Digest: numbered(202), Of: want[0].Digest, Bytes: true}
	c.update(func(tx store.Tx) error {
		return tx.Renditions.Put(store.Rendition{Source: smaller.Of, Form: "smaller", Digest: smaller.Digest, CreatedAt: c.now})
	})
	uploaded := store.Use{Owner: me, Digest: numbered(203), Bytes: true}
	c.update(func(tx store.Tx) error {
		return tx.Files.Create(store.File{ID: "f", Digest: uploaded.Digest, CreatedAt: c.now})
	})
	all := slices.Concat([]store.Use{answer, smaller, uploaded}, want, theirs)
	c.Same("uses", c.uses(), all)

	// What is hidden may come back.
	c.update(func(tx store.Tx) error { return tx.Conversations.Delete(mine, c.now) })
	c.Same("uses with a deleted conversation", c.uses(), all)
	_, err := c.s.Purge(c.Context(), c.at(1))
	c.Must("Purge", err)
	c.Same("uses after Purge", c.uses(), append([]store.Use{answer, smaller, uploaded}, theirs...))

	coming := artel.Conversation{ID: artel.NewConversationID(c.now)}
	v := artel.Version{Number: 1, InBlob: true, Digest: numbered(201), MediaInfo: artel.MediaInfo{MediaType: "image/png", Kind: artel.KindImage}}
	c.update(func(tx store.Tx) error {
		if err := tx.Imports.Begin(coming, c.now); err != nil {
			return err
		}
		return tx.Imports.Version(coming.ID, "pic", v, nil)
	})
	c.Same("uses with an import", c.uses(),
		slices.Concat([]store.Use{answer, smaller, uploaded, {Owner: me, Conversation: coming.ID, Digest: v.Digest, Bytes: true}}, theirs))
}

func digestsEnd(c *check) {
	_, want := c.digestsIn(me)
	n := 0
	for _, err := range c.s.Digests(c.Context()) {
		c.Must("Digests", err)
		if n++; n == len(want)/2 {
			break
		}
	}
	c.Same("uses before the end of the loop", n, len(want)/2)
	c.conversation() // the store is free again
}

func digestsOfOneState(c *check) {
	conv := c.conversation()
	c.update(both(conv, numbered(200)))
	stopped := make(chan struct{})
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() {
		for i := range byte(200) {
			select {
			case <-stopped:
				return
			default:
			}
			if failed = c.s.Update(c.Context(), me, both(conv, numbered(i))); failed != nil {
				return
			}
		}
	})
	for range 20 {
		kinds := map[bool]int{}
		for _, u := range c.uses() {
			kinds[u.Bytes]++
		}
		c.Same("digests that are written together, as bytes and as text", kinds[true], kinds[false])
	}
	close(stopped)
	wg.Wait()
	c.Must("Update beside Digests", failed)
}

// both makes two uses of d, of either kind.
func both(conv artel.ConversationID, d artel.Digest) func(store.Tx) error {
	return func(tx store.Tx) error {
		v := artel.Version{InBlob: true, Digest: d, MediaInfo: artel.MediaInfo{MediaType: "image/png", Kind: artel.KindImage}}
		if _, err := tx.Journal.Append(conv, "pic", v, nil); err != nil {
			return err
		}
		_, err := tx.Events.Append(conv, artel.Event{Type: "x", Data: json.RawMessage(`"` + d.Hex() + `"`)})
		return err
	}
}
