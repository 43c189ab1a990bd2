// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

func schedule(c *check, id string, user artel.Owner, next time.Time) store.Schedule {
	s := store.Schedule{ID: id, User: user, CreatedAt: c.now, NextAt: next, Name: awkward, Cron: "* * * * *", Zone: "Europe/Berlin", Agent: "lead", Conversation: "c", Text: awkward}
	c.people(func(tx store.PeopleTx) error { return tx.Schedules.Create(s) })
	return s
}

func peopleSchedules(c *check) {
	c.withUsers("ann", "bob")
	a := schedule(c, "a", "ann", c.at(5))
	b := schedule(c, "b", "ann", time.Time{})
	schedule(c, "other", "bob", c.at(5))
	c.peopleRefuse("a schedule with an id that exists", artel.Conflict, func(tx store.PeopleTx) error { return tx.Schedules.Create(store.Schedule{ID: "a", User: "bob"}) })
	update := func(s store.Schedule) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error { return tx.Schedules.Update(s) }
	}
	a.Name, a.Cron, a.Zone, a.Agent, a.Conversation, a.Text, a.Paused, a.NextAt = "x", "y", "z", "", "", "t", true, c.at(6)
	sent := a
	sent.CreatedAt = c.at(9) // stays
	c.people(update(sent))
	sent.User = "bob"
	c.peopleRefuse("Update of another user's schedule", artel.NotFound, update(sent))
	advance := func(id string, from, to time.Time) (done bool) {
		c.people(func(tx store.PeopleTx) (err error) { done, err = tx.Schedules.Advance(id, from, to); return err })
		return done
	}
	c.Same("Advance from another time", advance("a", c.at(5), c.at(9)), false)
	c.Same("Advance", advance("a", c.at(6), c.at(7)), true)
	c.Same("Advance twice", advance("a", c.at(6), c.at(7)), false)
	c.Same("Advance of none", advance("missing", c.at(6), c.at(7)), false)
	a.NextAt = c.at(7)
	c.seePeople(func(tx store.PeopleTx) error {
		mine, err := tx.Schedules.List("ann")
		if err != nil {
			return err
		}
		c.Same("schedules of ann", mine, []store.Schedule{a, b})
		one, err := tx.Schedules.Get("a")
		c.Same("Get", one, a)
		return err
	})
	remove := func(user artel.Owner, id string) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error { return tx.Schedules.Delete(user, id) }
	}
	c.peopleRefuse("Delete of another user's schedule", artel.NotFound, remove("bob", "a"))
	c.people(func(tx store.PeopleTx) error {
		return tx.Starts.Add(store.Start{Schedule: "a", State: store.StartDone, PlannedAt: c.now, CreatedAt: c.now})
	})
	c.people(remove("ann", "a"))
	c.Same("starts of a deleted schedule", len(c.starts("a")), 0)
	c.people(func(tx store.PeopleTx) error { return tx.Users.Delete("bob") })
	for _, id := range []string{"a", "other"} {
		c.peopleRefuse("Get of a deleted schedule", artel.NotFound, func(tx store.PeopleTx) error { _, err := tx.Schedules.Get(id); return err })
	}
	c.people(remove("ann", ""))
	c.peopleRefuse("Get after all are deleted", artel.NotFound, func(tx store.PeopleTx) error { _, err := tx.Schedules.Get("b"); return err })
}

// starts are those of a schedule, newest first, without the numbers of rows.
func (c *check) starts(schedule string) (out []store.Start) {
	c.seePeople(func(tx store.PeopleTx) (err error) {
		out, _, err = tx.Starts.List(store.StartQuery{Schedule: schedule})
		for i := range out {
			out[i].Number = 0
		}
		return err
	})
	return out
}

func schedulesStarts(c *check) {
	c.withUsers("ann", "bob")
	schedule(c, "a", "ann", c.at(5))
	schedule(c, "b", "bob", c.at(5))
	schedule(c, "later", "ann", c.at(6))
	schedule(c, "none", "ann", time.Time{})
	paused := schedule(c, "paused", "ann", c.at(5))
	paused.Paused = true
	c.people(func(tx store.PeopleTx) error { return tx.Schedules.Update(paused) })
	due := func(n int) (ids []string) {
		c.seePeople(func(tx store.PeopleTx) error {
			all, err := tx.Starts.Due(c.at(n))
			for _, s := range all {
				ids = append(ids, s.ID)
			}
			return err
		})
		return ids
	}
	c.Same("due before all", due(4), []string(nil))
	c.Same("due", due(5), []string{"a", "b"})
	c.people(func(tx store.PeopleTx) error {
		u := c.user("bob")
		u.Disabled = true
		return tx.Users.Update(u)
	})
	c.Same("due without those of a disabled user", due(5), []string{"a"})

	start := store.Start{Schedule: "a", PlannedAt: c.at(5), CreatedAt: c.at(6), Missed: 3, Manual: true, Conversation: "c", Run: "r", State: store.StartWaiting, Until: c.at(6)}
	other := start
	other.Schedule, other.Run, other.Until = "later", "other", c.at(20)
	c.people(func(tx store.PeopleTx) error {
		if err := tx.Starts.Add(start); err != nil {
			return err
		}
		return tx.Starts.Add(other)
	})
	c.Same("a start", c.starts("a"), []store.Start{start})
	take := func(n int) (runs []artel.RunID) {
		var got []store.Start
		c.people(func(tx store.PeopleTx) (err error) { got, err = tx.Starts.Take(c.at(n), c.at(n+10), 9); return err })
		for _, s := range got {
			c.Same("until", s.Until, c.at(n+10))
			runs = append(runs, s.Run)
		}
		return runs
	}
	c.Same("nothing is taken early", take(5), []artel.RunID(nil))
	c.Same("what is taken", take(6), []artel.RunID{"r"})
	c.Same("none twice", take(15), []artel.RunID(nil))
	c.Same("after the claim", take(16), []artel.RunID{"r"})
	var number int64
	c.seePeople(func(tx store.PeopleTx) error {
		all, _, err := tx.Starts.List(store.StartQuery{Schedule: "a"})
		number = all[0].Number
		return err
	})
	report := func(schedule string) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error {
			return tx.Starts.Report(store.Start{Schedule: schedule, Number: number, State: store.StartFailed, Error: awkward})
		}
	}
	c.peopleRefuse("Report of another schedule's", artel.NotFound, report("b"))
	c.people(report("a"))
	start.State, start.Error, start.Until = store.StartFailed, awkward, time.Time{}
	c.Same("the reported start", c.starts("a"), []store.Start{start})
	c.Same("what is over is not taken", take(1000), []artel.RunID{"other"})
	c.people(func(tx store.PeopleTx) error {
		for i := range 4 {
			more := store.Start{Schedule: "a", PlannedAt: c.at(i), CreatedAt: c.at(i), State: store.StartDone}
			if err := tx.Starts.Add(more); err != nil {
				return err
			}
		}
		return tx.Starts.Trim("a", 3)
	})
	c.seePeople(func(tx store.PeopleTx) error {
		first, next, err := tx.Starts.List(store.StartQuery{Schedule: "a", State: store.StartDone, Page: store.Page{Limit: 2}})
		if err != nil {
			return err
		}
		rest, end, err := tx.Starts.List(store.StartQuery{Schedule: "a", State: store.StartDone, Page: store.Page{Limit: 2, Cursor: next}})
		c.Same("pages of what is kept", []any{len(first), len(rest), first[0].PlannedAt, end}, []any{2, 1, c.at(3), ""})
		return err
	})
}
