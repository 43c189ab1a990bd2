// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"encoding/json"
	"strconv"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// requests adds n entries with distinct fields, numbered from 0.
func (c *check) requests(n int) (all []store.GatewayEntry) {
	for i := range n {
		all = append(all, store.GatewayEntry{
			Key: []string{"", "ci", awkward}[i%3], Service: artel.ServiceID("s" + strconv.Itoa(i%2)), Server: []string{"", "browser", "files", ""}[i%4], Status: 200 + 100*(i%4), Changed: i%5 == 0,
			Body: json.RawMessage(`{"i": ` + strconv.Itoa(i) + `}`),
		})
	}
	c.update(func(tx store.Tx) error { return tx.GatewayLog.Add(all...) })
	return all
}

// logged returns the bodies of what q selects, read in pages, and that numbers
// fall.
func (c *check) logged(q store.GatewayQuery) (bodies []string) {
	last := int64(1 << 62)
	for {
		c.view(func(tx store.Tx) error {
			items, next, err := tx.GatewayLog.List(q)
			for _, e := range items {
				if e.Number >= last || e.Number < 1 {
					c.Failf("number %d after %d", e.Number, last)
				}
				last = e.Number
				bodies = append(bodies, string(e.Body))
			}
			q.Cursor = next
			return err
		})
		if q.Cursor == "" {
			return bodies
		}
	}
}

func gatewayList(c *check) {
	all := c.requests(100) // more than any store adds at once
	c.Must("Add for another owner", c.s.Update(c.Context(), them, func(tx store.Tx) error {
		return tx.GatewayLog.Add(store.GatewayEntry{Key: "ci", Status: 200, Body: json.RawMessage(`{}`)})
	}))
	c.view(func(tx store.Tx) error {
		items, _, err := tx.GatewayLog.List(store.GatewayQuery{Page: store.Page{Limit: 1}})
		if len(items) == 1 {
			items[0].Number = 0
		}
		c.Same("the newest", items, all[99:])
		return err
	})
	for what, is := range map[string]struct {
		q  store.GatewayQuery
		of func(store.GatewayEntry) bool
	}{
		"all":       {store.GatewayQuery{}, func(store.GatewayEntry) bool { return true }},
		"a key":     {store.GatewayQuery{Key: awkward}, func(e store.GatewayEntry) bool { return e.Key == awkward }},
		"a service": {store.GatewayQuery{Service: "s1"}, func(e store.GatewayEntry) bool { return e.Service == "s1" }},
		"a server":  {store.GatewayQuery{Server: "browser"}, func(e store.GatewayEntry) bool { return e.Server == "browser" }},
		"requests":  {store.GatewayQuery{Of: store.LogOfGateway}, func(e store.GatewayEntry) bool { return e.Server == "" }},
		"calls":     {store.GatewayQuery{Of: store.LogOfMCP}, func(e store.GatewayEntry) bool { return e.Server != "" }},
		"statuses":  {store.GatewayQuery{MinStatus: 300, MaxStatus: 400}, func(e store.GatewayEntry) bool { return e.Status == 300 || e.Status == 400 }},
		"changed":   {store.GatewayQuery{Changed: true}, func(e store.GatewayEntry) bool { return e.Changed }},
		"together":  {store.GatewayQuery{Changed: true, Service: "s0", MaxStatus: 200}, func(e store.GatewayEntry) bool { return e.Changed && e.Service == "s0" && e.Status <= 200 }},
	} {
		var want []string
		for i := len(all) - 1; i >= 0; i-- {
			if is.of(all[i]) {
				want = append(want, string(all[i].Body))
			}
		}
		is.q.Limit = 7
		c.Same("List of "+what, c.logged(is.q), want)
	}
	for what, e := range map[string]store.GatewayEntry{"no body": {}, "no JSON": {Body: json.RawMessage("{")}, "no UTF-8": {Key: "\xff", Body: json.RawMessage("{}")}} {
		c.Kind("Add of "+what, c.s.Update(c.Context(), me, func(tx store.Tx) error { return tx.GatewayLog.Add(e) }), artel.Invalid)
	}
	c.Kind("List after a wrong cursor", c.s.View(c.Context(), me, func(tx store.Tx) error {
		_, _, err := tx.GatewayLog.List(store.GatewayQuery{Page: store.Page{Cursor: "x"}})
		return err
	}), artel.Invalid)
}

func gatewayKeep(c *check) {
	c.requests(10)
	c.Must("Keep by another owner", c.s.Update(c.Context(), them, func(tx store.Tx) error { return tx.GatewayLog.Trim(0) }))
	c.update(func(tx store.Tx) error { return tx.GatewayLog.Trim(20) })
	c.Same("entries after Keep of more", len(c.logged(store.GatewayQuery{})), 10)
	c.update(func(tx store.Tx) error { return tx.GatewayLog.Trim(2) })
	c.Same("entries after Keep", c.logged(store.GatewayQuery{}), []string{`{"i": 9}`, `{"i": 8}`, `{"i": 7}`, `{"i": 6}`})
	c.update(func(tx store.Tx) error { return tx.GatewayLog.Trim(1) })
	c.Same("entries after Keep of one of each kind", c.logged(store.GatewayQuery{}), []string{`{"i": 9}`, `{"i": 8}`})
	c.update(func(tx store.Tx) error { return tx.GatewayLog.Trim(0) })
	c.Same("entries after Keep of none", len(c.logged(store.GatewayQuery{})), 0)
}
