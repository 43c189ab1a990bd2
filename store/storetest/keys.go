// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

func peopleKeys(c *check) {
	c.withUsers("ann", "bob")
	bare := store.GatewayKey{ID: "bare", Hash: numbered(1), User: "ann", CreatedAt: c.now}
	whole := store.GatewayKey{
		ID: "whole", Hash: numbered(2), User: "ann", CreatedAt: c.now, UsedAt: c.at(1), Name: awkward, Services: []artel.ServiceID{"b", "a"},
		Limits:    store.KeyLimits{Requests: 1, Tokens: 1 << 40, Concurrent: 3, Budget: store.Budget{USD: 0.015625, Period: store.PerMonth}},
		ExpiresAt: c.at(9), Disabled: true,
	}
	other := store.GatewayKey{ID: "other", Hash: numbered(4), User: "bob", CreatedAt: c.now, Services: []artel.ServiceID{}}
	create := func(k store.GatewayKey) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error { return tx.Keys.Create(k) }
	}
	c.people(create(store.GatewayKey{ID: "early", Hash: numbered(8), User: "nobody", CreatedAt: c.now}))
	c.people(func(tx store.PeopleTx) error { return tx.Keys.Delete("nobody", "early") })
	for _, k := range []store.GatewayKey{bare, whole, other} {
		c.people(create(k))
	}
	c.peopleRefuse("a key with an id that exists", artel.Conflict, create(store.GatewayKey{ID: "bare", Hash: numbered(3), User: "bob"}))
	c.peopleRefuse("a key with a hash that exists", artel.Conflict, create(store.GatewayKey{ID: "x", Hash: numbered(1), User: "bob"}))
	bare.UsedAt = c.at(7)
	c.people(func(tx store.PeopleTx) error {
		return errors.Join(tx.Keys.Touch("bare", bare.UsedAt), tx.Keys.Touch("missing", c.now))
	})
	changed := whole
	changed.Name, changed.Services, changed.Limits, changed.Disabled = "x", nil, store.KeyLimits{Concurrent: 1}, false
	changed.ExpiresAt = c.at(8)
	update := func(k store.GatewayKey) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error { return tx.Keys.Update(k) }
	}
	sent := changed
	sent.Hash, sent.CreatedAt, sent.UsedAt = numbered(9), c.at(99), c.at(99) // stay
	c.people(update(sent))
	sent.User = "bob"
	c.peopleRefuse("Update of another user's key", artel.NotFound, update(sent))
	c.seePeople(func(tx store.PeopleTx) error {
		mine, err := tx.Keys.List("ann")
		if err != nil {
			return err
		}
		c.Same("keys of ann, newest first", mine, []store.GatewayKey{changed, bare})
		all, err := tx.Keys.List("")
		if err != nil {
			return err
		}
		c.Same("keys of all", all, []store.GatewayKey{other, changed, bare})
		found, err := tx.Keys.Find(numbered(2))
		c.Same("Find", found, changed)
		return err
	})
	remove := func(user artel.Owner) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error { return tx.Keys.Delete(user, "whole") }
	}
	c.peopleRefuse("Delete of another user's key", artel.NotFound, remove("bob"))
	c.people(remove("ann"))
	c.peopleRefuse("Delete of none", artel.NotFound, remove("ann"))
	find := func(tx store.PeopleTx) error { _, err := tx.Keys.Find(numbered(2)); return err }
	c.Kind("Find of a deleted key", c.s.People().View(c.Context(), find), artel.NotFound)
	c.people(func(tx store.PeopleTx) error { return tx.Users.Delete("bob") })
	find = func(tx store.PeopleTx) error { _, err := tx.Keys.Find(numbered(4)); return err }
	c.Kind("Find of a deleted user's key", c.s.People().View(c.Context(), find), artel.NotFound)
}

// peopleKeyParents checks that keys end with the tokens that they were made with.
func peopleKeyParents(c *check) {
	c.withUsers("ann", "bob")
	create := func(id string, n byte, user artel.Owner, parent string) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error {
			return tx.Keys.Create(store.GatewayKey{ID: id, Hash: numbered(n), User: user, Parent: parent, CreatedAt: c.now})
		}
	}
	token := func(id string, n byte, parent string) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error {
			return tx.Tokens.Create(store.Token{ID: id, Hash: numbered(n), User: "ann", Parent: parent, CreatedAt: c.now})
		}
	}
	c.people(token("root", 20, ""))
	c.people(token("child", 21, "root"))
	c.people(token("apart", 22, ""))
	c.peopleRefuse("a key with a missing parent", artel.NotFound, create("x", 23, "ann", "missing"))
	c.peopleRefuse("a key with another user's parent", artel.NotFound, create("x", 23, "bob", "root"))
	c.people(create("bare", 27, "ann", ""))
	c.people(create("other", 28, "bob", ""))
	c.people(create("of root", 24, "ann", "root"))
	c.people(create("of child", 25, "ann", "child"))
	c.people(create("of apart", 26, "ann", "apart"))
	of := func(user artel.Owner) (out []string) {
		c.seePeople(func(tx store.PeopleTx) error {
			all, err := tx.Keys.List(user)
			for _, k := range all {
				out = append(out, k.ID+":"+k.Parent)
			}
			return err
		})
		return out
	}
	c.Same("keys of ann", of("ann"), []string{"of apart:apart", "of child:child", "of root:root", "bare:"})
	c.people(func(tx store.PeopleTx) error { return tx.Tokens.Delete("ann", "root") })
	c.Same("keys of ann without a token", of("ann"), []string{"of apart:apart", "bare:"})
	c.people(func(tx store.PeopleTx) error { return tx.Tokens.Delete("ann", "") })
	c.Same("keys of ann without tokens", of("ann"), []string{"bare:"})
	c.people(func(tx store.PeopleTx) error { return tx.Keys.Delete("ann", "") })
	c.people(func(tx store.PeopleTx) error { return tx.Keys.Delete("ann", "") }) // has none any more
	c.Same("keys of ann after all are deleted", of("ann"), []string(nil))
	c.Same("keys of bob", of("bob"), []string{"other:"})
}
