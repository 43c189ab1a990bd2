// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// file is one with everything in it; expires 0 means never.
func (c *check) file(id string, created, expires int) store.File {
	f := store.File{
		ID: id, Holder: "program", Digest: numbered(7), Filename: awkward, Purpose: "user_data", CreatedAt: c.at(created),
		Info: artel.MediaInfo{MediaType: "application/pdf", Kind: artel.KindDocument, Size: 1 << 40, Pages: 3},
	}
	if expires != 0 {
		f.ExpiresAt = c.at(expires)
	}
	return f
}

func (c *check) createFiles(files ...store.File) {
	for _, f := range files {
		c.update(func(tx store.Tx) error { return tx.Files.Create(f) })
	}
}

func filesRoundTrip(c *check) {
	all := []store.File{c.file("a", 1, 0), c.file(awkward, 2, 9), {ID: "bare", Digest: numbered(8), CreatedAt: c.now}}
	c.createFiles(all...)
	for _, f := range all {
		reads(c, "Get", f, func(tx store.Tx) (store.File, error) { return tx.Files.Get(f.ID, c.at(3)) })
	}
	c.Kind("Create again", c.s.Update(c.Context(), me, func(tx store.Tx) error { return tx.Files.Create(all[0]) }), artel.Conflict)
	get := func(tx store.Tx) error { _, err := tx.Files.Get("a", c.now); return err }
	c.Kind("Get by another owner", c.s.View(c.Context(), them, get), artel.NotFound)
	c.Kind("Delete by another owner", c.s.Update(c.Context(), them, func(tx store.Tx) error { return tx.Files.Delete("a", c.now) }), artel.NotFound)
	c.update(func(tx store.Tx) error { return tx.Files.Delete("a", c.now) })
	c.missing("Get after Delete", get)
	c.Kind("Delete again", c.s.Update(c.Context(), me, func(tx store.Tx) error { return tx.Files.Delete("a", c.now) }), artel.NotFound)
}

func filesList(c *check) {
	other := c.file("other", 3, 0)
	other.Holder = ""
	c.createFiles(c.file("a", 1, 0), c.file("b", 2, 0), c.file("c", 2, 0), other, c.file("gone", 3, 4), c.file("d", 5, 0))
	list := func(q store.FileQuery) (ids []string) {
		q.Holder, q.Now = "program", c.at(6)
		c.view(func(tx store.Tx) error {
			items, err := tx.Files.List(q)
			for _, f := range items {
				ids = append(ids, f.ID)
			}
			return err
		})
		return ids
	}
	for _, want := range []struct {
		q   store.FileQuery
		ids string
	}{
		{store.FileQuery{Limit: 9}, "[d c b a]"},
		{store.FileQuery{Limit: 2}, "[d c]"},
		{store.FileQuery{Limit: 2, After: "c"}, "[b a]"},
		{store.FileQuery{Limit: 2, After: "a"}, "[]"},
		{store.FileQuery{Limit: 9, Oldest: true}, "[a b c d]"},
		{store.FileQuery{Limit: 2, Oldest: true, After: "b"}, "[c d]"},
	} {
		c.Same("List", fmt.Sprint(list(want.q)), want.ids)
	}
	after := func(id string) func(store.Tx) error {
		return func(tx store.Tx) error {
			_, err := tx.Files.List(store.FileQuery{Holder: "program", Now: c.at(6), After: id, Limit: 1})
			return err
		}
	}
	c.Kind("List after what is not there", c.s.View(c.Context(), me, after("nothing")), artel.Invalid)
	c.Kind("List after another holder's", c.s.View(c.Context(), me, after("other")), artel.Invalid)
	c.Must("List of another owner", c.s.View(c.Context(), them, func(tx store.Tx) error {
		items, err := tx.Files.List(store.FileQuery{Holder: "program", Now: c.at(6), Limit: 9})
		c.Same("another owner's files", len(items), 0)
		return err
	}))
}

func filesExpire(c *check) {
	c.createFiles(c.file("short", 1, 5), c.file("long", 1, 9), c.file("ever", 1, 0))
	there := func(id string, now time.Time) (found bool) {
		c.Must("View", c.s.View(c.Context(), me, func(tx store.Tx) error {
			_, err := tx.Files.Get(id, now)
			found = err == nil
			return nil
		}))
		return found
	}
	c.Same("before its expiry", there("short", c.at(4)), true)
	c.Same("at its expiry", there("short", c.at(5)), false)
	c.Kind("Delete of what expired", c.s.Update(c.Context(), me, func(tx store.Tx) error { return tx.Files.Delete("short", c.at(5)) }), artel.NotFound)
	c.update(func(tx store.Tx) error { return tx.Files.Purge(c.at(6)) })
	c.Same("purged", there("short", c.at(1)), false)
	c.Same("not yet expired", there("long", c.at(6)), true)
	c.Same("without expiry", there("ever", c.at(100)), true)
}
