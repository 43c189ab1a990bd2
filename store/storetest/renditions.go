// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// rendition is one with everything in it.
func (c *check) rendition(source byte, form string) store.Rendition {
	return store.Rendition{
		Source: numbered(source), Form: form, Digest: numbered(source + 100), CreatedAt: c.at(1),
		MediaInfo: artel.MediaInfo{
			MediaType: "image/jpeg", Kind: artel.KindImage, DetectedBy: artel.FromSignature, Confidence: 1, Size: 1 << 40, Width: 3, Height: 2, Duration: 0.5,
		},
	}
}

func renditionsRoundTrip(c *check) {
	for _, r := range []store.Rendition{
		c.rendition(1, "picture;side=1"), c.rendition(1, "picture;side=2"), c.rendition(2, awkward),
		{Source: numbered(3), Digest: numbered(103), CreatedAt: c.now},
	} {
		c.update(func(tx store.Tx) error { return tx.Renditions.Put(r) })
		reads(c, "Get", r, func(tx store.Tx) (store.Rendition, error) { return tx.Renditions.Get(r.Source, r.Form) })
	}
	get := func(source byte, form string) func(store.Tx) error {
		return func(tx store.Tx) error { _, err := tx.Renditions.Get(numbered(source), form); return err }
	}
	c.missing("Get of another form", get(2, "picture;side=1"))
	c.missing("Get of another source", get(9, awkward))
	c.Kind("Get by another owner", c.s.View(c.Context(), them, get(2, awkward)), artel.NotFound)
}

func renditionsReplace(c *check) {
	first, second := c.rendition(1, "f"), c.rendition(1, "f")
	second.Digest, second.MediaInfo, second.CreatedAt = numbered(50), artel.MediaInfo{MediaType: "text/plain"}, c.at(5)
	for _, r := range []store.Rendition{first, second} {
		c.update(func(tx store.Tx) error { return tx.Renditions.Put(r) })
	}
	reads(c, "Get", second, func(tx store.Tx) (store.Rendition, error) { return tx.Renditions.Get(first.Source, first.Form) })
}

func renditionsDelete(c *check) {
	kept := c.rendition(2, "f")
	for _, r := range []store.Rendition{c.rendition(1, "f"), c.rendition(1, "g"), kept} {
		c.update(func(tx store.Tx) error { return tx.Renditions.Put(r) })
	}
	c.Must("Delete by another owner", c.s.Update(c.Context(), them, func(tx store.Tx) error { return tx.Renditions.Delete(kept.Source) }))
	for range 2 { // the second time there is nothing left
		c.update(func(tx store.Tx) error { return tx.Renditions.Delete(numbered(1)) })
	}
	for _, form := range []string{"f", "g"} {
		c.missing("Get after Delete", func(tx store.Tx) error { _, err := tx.Renditions.Get(numbered(1), form); return err })
	}
	reads(c, "Get of another source", kept, func(tx store.Tx) (store.Rendition, error) { return tx.Renditions.Get(kept.Source, kept.Form) })
}
