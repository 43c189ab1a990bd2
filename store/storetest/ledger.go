// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

func peopleLedger(c *check) {
	day := time.Date(2026, 3, 4, 23, 59, 59, 0, time.UTC)
	next := day.Add(time.Second)
	counts := store.UsageCounts{Calls: 1, Input: 1 << 40, Cached: 3, Output: 4, Reasoning: 2, Cost: 1 << 50, Unknown: 1}
	twice := counts.Plus(counts)
	row := func(day time.Time, user artel.Owner, key, model string) store.UsageRow {
		return store.UsageRow{Day: day, User: user, Key: key, Service: "svc", Model: model, Agent: "lead", Source: "run", Counts: counts}
	}
	add := func(rows ...store.UsageRow) {
		c.people(func(tx store.PeopleTx) error { return tx.Ledger.Add(rows...) })
	}
	add(row(day, "ann", "", "m"), row(day.Add(-time.Hour), "ann", "", "m"), row(next, "ann", "k", "m"))
	add(row(next, "bob", "k", awkward), row(next, "ann", "k", "m"))
	sum := func(what string, q store.UsageQuery, want ...store.UsageRow) {
		c.seePeople(func(tx store.PeopleTx) error {
			got, err := tx.Ledger.Sum(q)
			c.Same(what, got, want)
			return err
		})
	}
	first, second := day.Truncate(24*time.Hour), next
	sum("ann's by day", store.UsageQuery{User: "ann", By: []store.UsageField{store.ByDay}}, store.UsageRow{Day: first, Counts: twice}, store.UsageRow{Day: second, Counts: twice})
	sum("by user of one day", store.UsageQuery{From: next, To: next.Add(time.Hour), By: []store.UsageField{store.ByUser}},
		store.UsageRow{User: "ann", Counts: twice}, store.UsageRow{User: "bob", Counts: counts})
	sum("by key and model", store.UsageQuery{Key: "k", By: []store.UsageField{store.ByKey, store.ByModel}},
		store.UsageRow{Key: "k", Model: "m", Counts: twice}, store.UsageRow{Key: "k", Model: awkward, Counts: counts})
	sum("by service and agent", store.UsageQuery{To: day, By: []store.UsageField{store.ByService, store.ByAgent}}, store.UsageRow{Service: "svc", Agent: "lead", Counts: twice})
	sum("all", store.UsageQuery{}, store.UsageRow{Counts: twice.Plus(twice).Plus(counts)})
	sum("none", store.UsageQuery{User: "eve"})
	c.Kind("an unknown field", c.s.People().View(c.Context(), func(tx store.PeopleTx) error {
		_, err := tx.Ledger.Sum(store.UsageQuery{By: []store.UsageField{"cost"}})
		return err
	}), artel.Invalid)
	mark := func(subject string, want store.UsageMark) {
		c.seePeople(func(tx store.PeopleTx) error {
			got, err := tx.Ledger.Mark(subject)
			c.Same("mark of "+subject, got, want)
			return err
		})
	}
	mark("a", store.UsageMark{Subject: "a"})
	for _, m := range []store.UsageMark{{Subject: "a", Begin: c.now, Amount: 1}, {Subject: "b", Begin: c.now, Amount: 2}, {Subject: "a", Begin: c.at(1), Amount: 1 << 60}} {
		c.people(func(tx store.PeopleTx) error { return tx.Ledger.SetMark(m) })
	}
	mark("a", store.UsageMark{Subject: "a", Begin: c.at(1), Amount: 1 << 60})
	mark("b", store.UsageMark{Subject: "b", Begin: c.now, Amount: 2})
}
