// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"encoding/json"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// noOwner: a transaction of no owner fails, even if it reads and writes nothing.
func noOwner(c *check) {
	run := func(store.Tx) error { c.Failf("a transaction of no owner was run"); return nil }
	c.Kind("View without an owner", c.s.View(c.Context(), "", run), artel.Unauthenticated)
	c.Kind("Update without an owner", c.s.Update(c.Context(), "", run), artel.Unauthenticated)
}

// A rows is everything of an owner that belongs to no conversation.
type rows struct {
	name    string
	digest  artel.Digest
	created time.Time
}

// write makes one row of each kind.
func (r rows) write(tx store.Tx) error {
	if err := tx.Answers.Put(store.Answer{Key: r.name, CreatedAt: r.created}); err != nil {
		return err
	}
	if err := tx.Renditions.Put(store.Rendition{Source: r.digest, Form: r.name, Digest: r.digest, CreatedAt: r.created}); err != nil {
		return err
	}
	if _, err := tx.Settings.Put(store.Setting{Name: r.name, Value: json.RawMessage(`1`), UpdatedAt: r.created}); err != nil {
		return err
	}
	if err := tx.GatewayLog.Add(store.GatewayEntry{Key: r.name, Status: 200, Body: json.RawMessage(`{}`)}); err != nil {
		return err
	}
	return tx.Files.Create(store.File{ID: r.name, Digest: r.digest, Filename: r.name, CreatedAt: r.created})
}

// reads are all ways to read the rows by their names, named after the methods of a
// Tx; each must fail with NotFound for another owner.
func (r rows) reads() map[string]func(store.Tx) error {
	return map[string]func(store.Tx) error{
		"Answers.Get":    func(tx store.Tx) error { _, err := tx.Answers.Get(r.name); return err },
		"Renditions.Get": func(tx store.Tx) error { _, err := tx.Renditions.Get(r.digest, r.name); return err },
		"Settings.Get":   func(tx store.Tx) error { _, err := tx.Settings.Get(r.name); return err },
		"Files.Get":      func(tx store.Tx) error { _, err := tx.Files.Get(r.name, r.created); return err },
	}
}

// lists count the rows; for another owner there are none.
func (r rows) lists() map[string]func(store.Tx) (int, error) {
	return map[string]func(store.Tx) (int, error){
		"Conversations.List": func(tx store.Tx) (int, error) {
			items, _, err := tx.Conversations.List(store.ConversationQuery{})
			return len(items), err
		},
		"Settings.List": func(tx store.Tx) (int, error) { items, err := tx.Settings.List(""); return len(items), err },
		"GatewayLog.List": func(tx store.Tx) (int, error) {
			items, _, err := tx.GatewayLog.List(store.GatewayQuery{})
			return len(items), err
		},
		"Storage.Used": func(tx store.Tx) (int, error) { n, err := tx.Storage.Used(); return int(min(n, 1)), err },
		"Storage.Holds": func(tx store.Tx) (int, error) {
			held, err := tx.Storage.Holds(r.digest)
			if held {
				return 1, err
			}
			return 0, err
		},
		"Files.List": func(tx store.Tx) (int, error) {
			items, err := tx.Files.List(store.FileQuery{Now: r.created, Limit: 9})
			return len(items), err
		},
	}
}

// writes are the ways to change or remove the rows, or to make the same ones; those
// of another owner stay. Whether one fails is up to its contract.
func (r rows) writes() map[string]func(store.Tx) error {
	late := r.created.Add(time.Hour)
	return map[string]func(store.Tx) error{
		"Answers.Prune":     func(tx store.Tx) error { return tx.Answers.Prune(late) },
		"Answers.Put":       func(tx store.Tx) error { return tx.Answers.Put(store.Answer{Key: r.name, CreatedAt: r.created}) },
		"Renditions.Delete": func(tx store.Tx) error { return tx.Renditions.Delete(r.digest) },
		"Renditions.Put": func(tx store.Tx) error {
			return tx.Renditions.Put(store.Rendition{Source: r.digest, Form: "other", Digest: r.digest})
		},
		"Settings.Delete": func(tx store.Tx) error { return tx.Settings.Delete(r.name, 1, late) },
		"Settings.Put": func(tx store.Tx) error {
			_, err := tx.Settings.Put(store.Setting{Name: r.name, Value: json.RawMessage(`2`)})
			return err
		},
		"GatewayLog.Trim": func(tx store.Tx) error { return tx.GatewayLog.Trim(0) },
		"GatewayLog.Add": func(tx store.Tx) error {
			return tx.GatewayLog.Add(store.GatewayEntry{Status: 500, Body: json.RawMessage(`{}`)})
		},
		"Files.Delete": func(tx store.Tx) error { return tx.Files.Delete(r.name, late) },
		"Files.Purge":  func(tx store.Tx) error { return tx.Files.Purge(late) },
		"Files.Create": func(tx store.Tx) error {
			return tx.Files.Create(store.File{ID: r.name, Digest: r.digest, CreatedAt: r.created})
		},
		"Conversations.Create": func(tx store.Tx) error { return tx.Conversations.Create(artel.Conversation{ID: "cnv_theirs"}) },
		"Audit.Add":            func(tx store.Tx) error { return tx.Audit.Add(store.AuditEntry{Time: r.created, Action: "theirs"}) },
		"Imports.Begin":        func(tx store.Tx) error { return tx.Imports.Begin(artel.Conversation{ID: "cnv_begun"}, late) },
	}
}

// foreignRows: nothing of another owner is read, counted, changed or removed.
func foreignRows(c *check) {
	r := rows{name: "mine", digest: numbered(1), created: c.now}
	f := c.fill(me, "mine")
	c.update(r.write)
	before := map[string]int{}
	for name, list := range r.lists() {
		c.view(func(tx store.Tx) (err error) { before[name], err = list(tx); return err })
		c.Same("my "+name, before[name], 1)
		c.Must("view", c.s.View(c.Context(), them, func(tx store.Tx) error {
			n, err := list(tx)
			c.Same(name+" by another owner", n, 0)
			return err
		}))
	}
	for name, read := range r.reads() {
		c.view(read)
		c.Kind(name+" by another owner", c.s.View(c.Context(), them, read), artel.NotFound)
	}
	deleted := c.fill(me, "deleted")
	c.update(func(tx store.Tx) error { return tx.Conversations.Delete(deleted.id, c.now) })
	begun := artel.ConversationID("cnv_mine")
	c.update(func(tx store.Tx) error { return tx.Imports.Begin(artel.Conversation{ID: begun}, c.now) })
	for _, id := range []artel.ConversationID{f.id, deleted.id, begun} {
		for name, call := range c.undeletes(full{id: id}) {
			c.Kind(name+" by another owner", c.s.Update(c.Context(), them, call), artel.NotFound)
		}
	}
	for name, write := range r.writes() {
		_ = c.s.Update(c.Context(), them, write)
		for what, read := range r.reads() {
			c.Must(what+" after "+name+" by another owner", c.s.View(c.Context(), me, read))
		}
		for what, list := range r.lists() {
			c.view(func(tx store.Tx) error {
				n, err := list(tx)
				c.Same(what+" after "+name+" by another owner", n, before[what])
				return err
			})
		}
	}
}
