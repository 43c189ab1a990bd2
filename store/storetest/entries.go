// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"encoding/json"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

func (c *check) entry(kind store.EntryKind, id string) store.Entry {
	return store.Entry{
		Kind: kind, ID: id, Fields: json.RawMessage(`{"id":"` + id + `"}`), Secrets: []byte{0, 1, 0xff}, CreatedAt: c.now, UpdatedAt: c.at(1),
	}
}

func peopleEntries(c *check) {
	zoe, ann := c.entry(store.ServiceEntry, "zoe"), c.entry(store.ServiceEntry, "ann")
	tool := c.entry(store.HTTPToolEntry, "ann") // ids are taken only in a kind
	tool.Secrets = nil
	c.people(func(tx store.PeopleTx) error {
		for _, e := range []store.Entry{zoe, ann, tool} {
			if err := tx.Entries.Create(e); err != nil {
				return err
			}
		}
		return nil
	})
	c.peopleRefuse("a second entry of an id", artel.Conflict, func(tx store.PeopleTx) error { return tx.Entries.Create(ann) })
	none := c.entry(store.MCPServerEntry, "ann")
	c.peopleRefuse("Update of no entry", artel.NotFound, func(tx store.PeopleTx) error { return tx.Entries.Update(none) })
	c.peopleRefuse("Delete of no entry", artel.NotFound, func(tx store.PeopleTx) error { return tx.Entries.Delete(none.Kind, none.ID) })
	zoe.Fields, zoe.Secrets, zoe.Disabled, zoe.UpdatedAt = json.RawMessage(`{"id":"zoe","name":"Zoë"}`), nil, true, c.at(9)
	c.people(func(tx store.PeopleTx) error {
		changed := zoe
		changed.CreatedAt = c.at(99) // stays
		return tx.Entries.Update(changed)
	})
	c.seePeople(func(tx store.PeopleTx) error {
		all, err := tx.Entries.List(store.ServiceEntry)
		if err != nil {
			return err
		}
		c.Same("entries in order of creation", all, []store.Entry{zoe, ann})
		one, err := tx.Entries.Get(store.HTTPToolEntry, "ann")
		c.Same("Get", one, tool)
		return err
	})
	c.people(func(tx store.PeopleTx) error { return tx.Entries.Delete(store.ServiceEntry, "ann") })
	c.seePeople(func(tx store.PeopleTx) error {
		left, err := tx.Entries.List(store.ServiceEntry)
		c.Same("entries that are left", left, []store.Entry{zoe})
		if err == nil {
			_, err = tx.Entries.Get(store.HTTPToolEntry, "ann")
		}
		return err
	})
	c.Kind("Get of no entry", c.s.People().View(c.Context(), func(tx store.PeopleTx) error {
		_, err := tx.Entries.Get(store.ServiceEntry, "ann")
		return err
	}), artel.NotFound)
}
