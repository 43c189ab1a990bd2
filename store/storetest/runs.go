// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// run starts one that lets go of its lease at a time.
func (c *check) run(owner artel.Owner, conv artel.ConversationID, s artel.RunState, l store.Lease) (artel.Run, error) {
	r := artel.Run{ID: artel.NewRunID(c.now), Conversation: conv, State: s, StartedAt: c.now}
	return r, c.s.Update(c.Context(), owner, func(tx store.Tx) error { return tx.Runs.Create(r, l) })
}

func runsRoundTrip(c *check) {
	conv := c.conversation()
	m := c.message(conv, "")
	end := c.at(9)
	full := artel.Run{
		ID: artel.NewRunID(c.now), Conversation: conv, Message: m, Reply: "msg_r", State: artel.RunFailed, Service: "demo", Agent: "lead",
		Usage: artel.Usage{Calls: 1, InputTokens: 1 << 40, OutputTokens: 3, CachedTokens: 4},
		Error: &artel.RunError{Kind: artel.Unavailable, Message: awkward}, StartedAt: c.at(1), FinishedAt: &end,
	}
	zero := artel.Run{ID: artel.NewRunID(c.now), Conversation: conv, State: artel.RunDone, StartedAt: c.now}
	get := func(what string, want artel.Run) {
		reads(c, what, want, func(tx store.Tx) (artel.Run, error) { return tx.Runs.Get(want.ID) })
	}
	for _, r := range []artel.Run{full, zero} {
		c.update(func(tx store.Tx) error { return tx.Runs.Create(r, store.Lease{Holder: "p", Until: c.now}) })
		get("Get", r)
	}
	c.refused("Create of an id that is there", artel.Conflict, func(tx store.Tx) error { return tx.Runs.Create(full, store.Lease{}) })
	c.refused("Create in no conversation", artel.NotFound, func(tx store.Tx) error {
		return tx.Runs.Create(artel.Run{ID: artel.NewRunID(c.now), Conversation: "cnv_none", State: artel.RunQueued}, store.Lease{})
	})
	change := full
	change.ID, change.Conversation, change.Message, change.StartedAt = zero.ID, "cnv_other", "msg_other", c.at(77)
	c.update(func(tx store.Tx) error { return tx.Runs.Update(change) })
	want := full
	want.ID, want.Conversation, want.Message, want.StartedAt = zero.ID, conv, "", c.now
	get("Get after Update", want)
	c.missing("Get of an unknown id", func(tx store.Tx) error { _, err := tx.Runs.Get("run_none"); return err })
	c.refused("Update of an unknown id", artel.NotFound, func(tx store.Tx) error { return tx.Runs.Update(artel.Run{ID: "run_none"}) })
}

func runsActive(c *check) {
	conv, other := c.conversation(), c.conversation()
	c.missing("Active without a run", func(tx store.Tx) error { _, err := tx.Runs.Active(conv); return err })
	queued, err := c.run(me, conv, artel.RunQueued, store.Lease{})
	c.Must("Create of a queued run", err)
	c.missing("Active where one is queued", func(tx store.Tx) error { _, err := tx.Runs.Active(conv); return err })
	for _, s := range []artel.RunState{artel.RunRunning, artel.RunWaiting} {
		r, err := c.run(me, conv, s, store.Lease{})
		c.Must("Create of the only run at work", err)
		_, err = c.run(me, conv, artel.RunRunning, store.Lease{})
		c.Kind("Create beside a "+string(s)+" run", err, artel.Conflict)
		c.Same("its code", artel.CodeOf(err), "run_active")
		_, err = c.run(me, conv, artel.RunQueued, store.Lease{})
		c.Must("Create of one more queued run", err)
		queued.State = artel.RunRunning
		err = c.s.Update(c.Context(), me, func(tx store.Tx) error { return tx.Runs.Update(queued) })
		c.Kind("Update of a queued run to one at work", err, artel.Conflict)
		c.view(func(tx store.Tx) error {
			got, err := tx.Runs.Active(conv)
			c.Same("Active", got.ID, r.ID)
			return err
		})
		o, err := c.run(me, other, s, store.Lease{})
		c.Must("Create in another conversation", err)
		for _, r := range []artel.Run{r, o} {
			r.State = artel.RunWaiting
			c.update(func(tx store.Tx) error { return tx.Runs.Update(r) })
			r.State = artel.RunCancelled
			c.update(func(tx store.Tx) error { return tx.Runs.Update(r) })
		}
		c.missing("Active after the end", func(tx store.Tx) error { _, err := tx.Runs.Active(conv); return err })
	}
	c.update(func(tx store.Tx) error { return tx.Runs.Update(queued) })
	c.view(func(tx store.Tx) error {
		got, err := tx.Runs.Active(conv)
		c.Same("Active, of what was queued", got.ID, queued.ID)
		return err
	})
}

func runsLease(c *check) {
	r, err := c.run(me, c.conversation(), artel.RunRunning, store.Lease{Holder: "a", Term: 1, Until: c.at(10)})
	c.Must("Create", err)
	renew := func(holder string, term int64, until, now int) error {
		return c.s.Update(c.Context(), me, func(tx store.Tx) error {
			return tx.Runs.Renew(store.Lease{Run: r.ID, Holder: holder, Term: term, Until: c.at(until)}, c.at(now))
		})
	}
	c.Kind("Renew by another in the holder's time", renew("b", 2, 20, 5), artel.Conflict)
	c.Kind("Renew by the holder", renew("a", 1, 15, 5), "")
	c.Kind("Renew by another in the renewed time", renew("b", 2, 20, 12), artel.Conflict)
	c.Kind("Renew by the holder after its time", renew("a", 1, 18, 17), "")
	c.Kind("Renew by another after the holder's time", renew("b", 2, 30, 19), "")
	c.Kind("Renew by who held it before", renew("a", 1, 40, 20), artel.Conflict)
	look := func(holder string, term int64) error {
		return c.s.Update(c.Context(), me, func(tx store.Tx) error {
			return tx.Runs.Renew(store.Lease{Run: r.ID, Holder: holder, Term: term}, c.at(1000))
		})
	}
	c.Kind("Renew without an end by who held it before, after all time", look("a", 1), artel.Conflict)
	c.Kind("Renew without an end by the holder", look("b", 2), "")
	c.refused("Renew of an unknown run", artel.NotFound, func(tx store.Tx) error {
		return tx.Runs.Renew(store.Lease{Run: "run_none", Holder: "a", Term: 1}, c.now)
	})
}

// runsTerms: who takes a lease names a term above the last one, and who had an earlier term
// has lost it, also if it is the holder again.
func runsTerms(c *check) {
	r, err := c.run(me, c.conversation(), artel.RunRunning, store.Lease{Holder: "a", Term: 1, Until: c.at(10)})
	c.Must("Create", err)
	renew := func(holder string, term int64, until time.Time, now int) error {
		return c.s.Update(c.Context(), me, func(tx store.Tx) error {
			return tx.Runs.Renew(store.Lease{Run: r.ID, Holder: holder, Term: term, Until: until}, c.at(now))
		})
	}
	const late = 1000
	c.Kind("Renew by the next holder", renew("b", 2, c.at(20), 11), "")
	c.Kind("Renew by another that has read the same lease, and whose clock is ahead", renew("c", 2, c.at(late+10), late), artel.Conflict)
	c.Kind("Renew by the one before, with a greater term", renew("a", 3, c.at(late+10), late), "")
	c.Kind("Renew by it with its earlier term", renew("a", 1, c.at(late+20), late), artel.Conflict)
	c.Kind("Renew by it with its earlier term after all time", renew("a", 1, c.at(late+20), 2*late), artel.Conflict)
	c.Kind("Renew without an end with its earlier term", renew("a", 1, time.Time{}, late), artel.Conflict)
	c.Kind("Renew without an end with its term", renew("a", 3, time.Time{}, late), "")
}

func runsOverdue(c *check) {
	var want []store.Lease
	for i, owner := range []artel.Owner{me, them, me} {
		conv := artel.Conversation{ID: artel.NewConversationID(c.now)}
		c.Must("Create", c.s.Update(c.Context(), owner, func(tx store.Tx) error { return tx.Conversations.Create(conv) }))
		l := store.Lease{Owner: owner, Conversation: conv.ID, Holder: "p", Term: int64(1 + i), Until: c.at(10 - i)}
		r, err := c.run(owner, conv.ID, artel.RunRunning, l)
		c.Must("Create", err)
		l.Run = r.ID
		want = append([]store.Lease{l}, want...)
	}
	_, err := c.run(me, c.conversation(), artel.RunDone, store.Lease{Holder: "p", Until: c.at(1)})
	c.Must("Create", err)
	for second, n := range map[int]int{8: 0, 9: 1, 10: 2, 11: 3} {
		got, err := c.s.Overdue(c.Context(), c.at(second))
		c.Must("Overdue", err)
		if n == 0 {
			c.Same("overdue leases before any has ended", len(got), 0)
			continue
		}
		c.Same("overdue leases", got, want[:n])
	}
	c.update(func(tx store.Tx) error {
		return tx.Runs.Renew(store.Lease{Run: want[0].Run, Holder: "q", Term: 9, Until: c.at(50)}, c.at(20))
	})
	got, err := c.s.Overdue(c.Context(), c.at(11).Add(time.Hour/1000))
	c.Must("Overdue", err)
	c.Same("overdue leases after one was renewed", got, want[1:])
}

// runsClock: the clock of a store does not go back, if it has one.
func runsClock(c *check) {
	var last time.Time
	for range 3 {
		now, err := c.s.Clock(c.Context())
		c.Must("Clock", err)
		c.Same("Clock goes back", now.Before(last), false)
		last = now
	}
}

func runsWorked(c *check) {
	l := store.Lease{Owner: me, Conversation: c.conversation(), Holder: "p", Until: c.at(10), Worked: time.Minute}
	r, err := c.run(me, l.Conversation, artel.RunRunning, l)
	c.Must("Create", err)
	l.Run = r.ID
	worked := func(when string) {
		got, err := c.s.Overdue(c.Context(), c.at(20))
		c.Must("Overdue", err)
		c.Same("what was worked "+when, got, []store.Lease{l})
	}
	worked("at first")
	l.Until, l.Worked = c.at(15), time.Hour+time.Microsecond
	c.update(func(tx store.Tx) error { return tx.Runs.Renew(l, c.now) })
	worked("when it was renewed")
	c.update(func(tx store.Tx) error {
		return errors.Join(tx.Runs.Update(r), tx.Runs.Renew(store.Lease{Run: r.ID, Holder: "p"}, c.now))
	})
	worked("after it was looked at")
}

func runsUsage(c *check) {
	conv, other := c.conversation(), c.conversation()
	used := func(conv artel.ConversationID) (u artel.Usage) {
		c.view(func(tx store.Tx) (err error) { u, err = tx.Runs.Usage(conv); return err })
		return u
	}
	c.Same("of no runs", used(conv), artel.Usage{})
	one := artel.Usage{Calls: 2, InputTokens: 1 << 40, OutputTokens: 3, CachedTokens: 4, StoredTokens: 5, ThoughtTokens: 6, Cost: artel.Cost{USD: 0.25, Calls: 2}}
	two := artel.Usage{Calls: 1, InputTokens: 7, OutputTokens: 8}
	for i, u := range []artel.Usage{one, two, one} {
		r := artel.Run{ID: artel.NewRunID(c.now), Conversation: conv, State: artel.RunDone, Usage: u, StartedAt: c.now}
		if i == 2 {
			r.Conversation = other
		}
		c.update(func(tx store.Tx) error { return tx.Runs.Create(r, store.Lease{}) })
	}
	c.Same("of two runs", used(conv), one.Add(two))
	c.Same("of another conversation", used(other), one)
	c.missing("of no conversation", func(tx store.Tx) error { _, err := tx.Runs.Usage("cnv_none"); return err })
}
