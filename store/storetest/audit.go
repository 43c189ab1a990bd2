// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// acts adds n entries a second apart, oldest first, some by another owner.
func (c *check) acts(n int) (all []store.AuditEntry) {
	for i := range n {
		all = append(all, store.AuditEntry{
			Time: c.at(i), Actor: []artel.Owner{me, them, ""}[i%3], Action: []string{"login", "deleted"}[i%2],
			Target: awkward, Detail: []string{"", "x"}[i%2], Address: []string{"192.0.2.1", ""}[i%2],
		})
	}
	for _, e := range all {
		c.Must("Add", c.s.Update(c.Context(), me, func(tx store.Tx) error { return tx.Audit.Add(e) }))
	}
	return all
}

// audited returns what q selects, read in pages, without the numbers, which must
// fall.
func (c *check) audited(q store.AuditQuery) (all []store.AuditEntry) {
	last := int64(1 << 62)
	for {
		items, next, err := c.s.Audit().List(c.Context(), q)
		c.Must("List", err)
		for _, e := range items {
			if e.Number >= last || e.Number < 1 {
				c.Failf("number %d after %d", e.Number, last)
			}
			last, e.Number = e.Number, 0
			all = append(all, e)
		}
		if q.Cursor = next; next == "" {
			return all
		}
	}
}

func auditList(c *check) {
	all := c.acts(20)
	for what, is := range map[string]struct {
		q  store.AuditQuery
		of func(store.AuditEntry) bool
	}{
		"all":       {store.AuditQuery{}, func(store.AuditEntry) bool { return true }},
		"an actor":  {store.AuditQuery{Actor: them}, func(e store.AuditEntry) bool { return e.Actor == them }},
		"an action": {store.AuditQuery{Action: "login"}, func(e store.AuditEntry) bool { return e.Action == "login" }},
		"a time": {store.AuditQuery{Since: c.at(3), Until: c.at(9)}, func(e store.AuditEntry) bool {
			return !e.Time.Before(c.at(3)) && e.Time.Before(c.at(9))
		}},
		"together": {store.AuditQuery{Actor: me, Action: "deleted", Since: c.at(4)}, func(e store.AuditEntry) bool {
			return e.Actor == me && e.Action == "deleted" && !e.Time.Before(c.at(4))
		}},
	} {
		var want []store.AuditEntry
		for _, e := range slices.Backward(all) {
			if is.of(e) {
				want = append(want, e)
			}
		}
		is.q.Limit = 3
		c.Same("List of "+what, c.audited(is.q), want)
	}
	for what, e := range map[string]store.AuditEntry{"no action": {}, "no UTF-8": {Action: "login", Target: "\xff"}} {
		c.Kind("Add of "+what, c.s.Update(c.Context(), me, func(tx store.Tx) error { return tx.Audit.Add(e) }), artel.Invalid)
	}
	_ = c.s.Update(c.Context(), me, func(tx store.Tx) error {
		c.Must("Add", tx.Audit.Add(store.AuditEntry{Action: "login", Time: c.now}))
		return errUndo
	})
	c.Same("entries after an update that failed", len(c.audited(store.AuditQuery{})), 20)
	_, _, err := c.s.Audit().List(c.Context(), store.AuditQuery{Page: store.Page{Cursor: "x"}})
	c.Kind("List after a wrong cursor", err, artel.Invalid)
}

func auditPrune(c *check) {
	all := c.acts(10)
	for _, step := range []struct{ before, removed, left int }{{0, 0, 10}, {4, 4, 6}, {4, 0, 6}, {99, 6, 0}} {
		n, err := c.s.Audit().Prune(c.Context(), c.at(step.before))
		c.Must("Prune", err)
		c.Same("removed entries", n, step.removed)
		left := c.audited(store.AuditQuery{})
		slices.Reverse(left)
		if c.Same("entries left", len(left), step.left); step.left > 0 {
			c.Same("entries left", left, all[10-step.left:])
		}
	}
}
