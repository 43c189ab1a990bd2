// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

func hook(c *check, id string, user artel.Owner, events ...artel.EventType) store.Webhook {
	w := store.Webhook{ID: id, User: user, CreatedAt: c.now, Name: awkward, URL: "https://a.example/?x=ä", Events: events, Secret: []byte{0, 1, 255}}
	c.people(func(tx store.PeopleTx) error { return tx.Webhooks.Create(w) })
	return w
}

func peopleWebhooks(c *check) {
	c.withUsers("ann", "bob")
	a := hook(c, "a", "ann", artel.EventRunFinished, artel.EventArtifactCreated)
	b := hook(c, "b", "ann")
	hook(c, "other", "bob", artel.EventRunFinished)
	hook(c, "early", "nobody")
	c.peopleRefuse("a webhook with an id that exists", artel.Conflict, func(tx store.PeopleTx) error { return tx.Webhooks.Create(store.Webhook{ID: "a", User: "bob"}) })
	update := func(w store.Webhook) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error { return tx.Webhooks.Update(w) }
	}
	a.Name, a.URL, a.Events, a.Secret = "x", "y", []artel.EventType{artel.EventArtifactUpdated}, []byte("z")
	sent := a
	sent.CreatedAt, sent.DeliveredAt = c.at(9), c.at(9) // stay
	c.people(update(sent))
	sent.User = "bob"
	c.peopleRefuse("Update of another user's webhook", artel.NotFound, update(sent))
	mark := func(id string, at time.Time, reason string) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error { return tx.Webhooks.Mark(id, at, reason) }
	}
	c.people(mark("a", c.at(3), ""))
	c.people(mark("a", time.Time{}, "gone"))
	c.peopleRefuse("Mark of none", artel.NotFound, mark("missing", c.at(3), ""))
	a.DeliveredAt, a.Disabled, a.Reason = c.at(3), true, "gone"
	c.seePeople(func(tx store.PeopleTx) error {
		mine, err := tx.Webhooks.List("ann")
		if err != nil {
			return err
		}
		c.Same("webhooks of ann", mine, []store.Webhook{a, b})
		one, err := tx.Webhooks.Get("a")
		c.Same("Get", one, a)
		return err
	})
	remove := func(user artel.Owner, id string) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error { return tx.Webhooks.Delete(user, id) }
	}
	c.peopleRefuse("Delete of another user's webhook", artel.NotFound, remove("bob", "a"))
	c.people(func(tx store.PeopleTx) error {
		return tx.Deliveries.Add(store.Delivery{Webhook: "a", Event: 1, State: store.DeliveryFailed, CreatedAt: c.now})
	})
	c.people(remove("ann", "a"))
	c.Same("deliveries of a deleted webhook", len(c.deliveries("a")), 0)
	c.people(func(tx store.PeopleTx) error { return tx.Users.Delete("bob") })
	for _, id := range []string{"a", "other"} {
		c.peopleRefuse("Get of a deleted webhook", artel.NotFound, func(tx store.PeopleTx) error { _, err := tx.Webhooks.Get(id); return err })
	}
	c.people(remove("ann", ""))
	c.seePeople(func(tx store.PeopleTx) error {
		none, err := tx.Webhooks.List("ann")
		c.Same("webhooks after all are deleted", len(none), 0)
		_, missing := tx.Webhooks.Get("early")
		c.Must("Get of another user's", missing)
		return err
	})
}

// deliveries are those of a webhook, newest first, without the numbers of rows.
func (c *check) deliveries(hook string) (out []store.Delivery) {
	c.seePeople(func(tx store.PeopleTx) (err error) {
		out, _, err = tx.Deliveries.List(store.DeliveryQuery{Webhook: hook})
		for i := range out {
			out[i].Number = 0
		}
		return err
	})
	return out
}

// webhooksQueue checks that an event is queued for those that want it, with its transaction.
func webhooksQueue(c *check) {
	owner := me
	hook(c, "ends", owner, artel.EventRunFinished)
	hook(c, "all", owner, artel.EventArtifactCreated, artel.EventRunFinished)
	hook(c, "other", "someone else", artel.EventRunFinished)
	off := hook(c, "off", owner, artel.EventRunFinished)
	off.Disabled = true
	c.people(func(tx store.PeopleTx) error { return tx.Webhooks.Update(off) })
	conversation := c.conversation()
	events := []artel.Event{{Seq: 4, Type: artel.EventArtifactCreated, Time: c.at(1)}, {Seq: 5, Type: artel.EventRunFinished, Time: c.at(2)}, {Seq: 6, Type: artel.EventUsage, Time: c.at(2)}}
	c.update(func(tx store.Tx) error { return tx.Hooks.Queue(conversation, events...) })
	c.Kind("a transaction that fails", c.s.Update(c.Context(), owner, func(tx store.Tx) error {
		if err := tx.Hooks.Queue(conversation, artel.Event{Seq: 7, Type: artel.EventRunFinished, Time: c.at(2)}); err != nil {
			return err
		}
		return artel.Errorf(artel.Denied, "", "", "undone")
	}), artel.Denied)
	of := func(hook string, seq artel.Seq, t artel.EventType, at time.Time) store.Delivery {
		return store.Delivery{Webhook: hook, Conversation: conversation, Event: seq, Type: t, CreatedAt: at, State: store.DeliveryWaiting, DueAt: at}
	}
	c.Same("of ends", c.deliveries("ends"), []store.Delivery{of("ends", 5, artel.EventRunFinished, c.at(2))})
	c.Same("of all", c.deliveries("all"), []store.Delivery{of("all", 5, artel.EventRunFinished, c.at(2)), of("all", 4, artel.EventArtifactCreated, c.at(1))})
	c.Same("of another user", len(c.deliveries("other")), 0)
	c.Same("of a disabled one", len(c.deliveries("off")), 0)
}

// webhooksTake checks that what is due is taken once.
func webhooksTake(c *check) {
	c.withUsers("ann", "bob")
	hook(c, "a", "ann")
	hook(c, "b", "bob")
	off := hook(c, "off", "ann")
	off.Disabled = true
	late := store.Delivery{Webhook: "a", Conversation: "c", Event: 3, CreatedAt: c.now, State: store.DeliveryWaiting, DueAt: c.at(100)}
	c.people(func(tx store.PeopleTx) error {
		for _, h := range []string{"a", "b", "off"} {
			for seq := range artel.Seq(3) {
				d := store.Delivery{Webhook: h, Conversation: "c", Event: seq, CreatedAt: c.now, State: store.DeliveryWaiting, DueAt: c.at(int(seq))}
				if err := tx.Deliveries.Add(d); err != nil {
					return err
				}
			}
		}
		if err := tx.Deliveries.Add(late); err != nil {
			return err
		}
		return tx.Webhooks.Update(off)
	})
	c.peopleRefuse("a second delivery of an event", artel.Conflict, func(tx store.PeopleTx) error { return tx.Deliveries.Add(late) })
	due := func(n int) (ids []string) {
		c.seePeople(func(tx store.PeopleTx) (err error) { ids, err = tx.Deliveries.Due(c.at(n)); return err })
		return ids
	}
	c.Same("due before all", due(-1), []string(nil))
	c.Same("due", due(0), []string{"a", "b"})
	c.people(func(tx store.PeopleTx) error {
		u := c.user("bob")
		u.Disabled = true
		return tx.Users.Update(u)
	})
	c.Same("due without those of a disabled user", due(0), []string{"a"})
	take := func(n, limit int) (seqs []artel.Seq) {
		var got []store.Delivery
		c.people(func(tx store.PeopleTx) (err error) {
			got, err = tx.Deliveries.Take("a", c.at(n), c.at(50), limit)
			return err
		})
		for _, d := range got {
			c.Same("what is taken", []any{d.Attempts, d.DueAt, d.State}, []any{1, c.at(50), store.DeliveryWaiting})
			seqs = append(seqs, d.Event)
		}
		return seqs
	}
	c.Same("the first", take(9, 1), []artel.Seq{0})
	c.Same("the others", take(9, 10), []artel.Seq{1, 2})
	c.Same("none twice", take(9, 10), []artel.Seq(nil))
	c.Same("due while they are sent", due(49), []string(nil))
	c.Same("due again", due(50), []string{"a"})
}

// webhooksReport checks what is kept of attempts, and pages of it.
func webhooksReport(c *check) {
	hook(c, "a", "ann")
	hook(c, "b", "ann")
	want := store.Delivery{Webhook: "a", Conversation: "c", Event: 1, Type: artel.EventRunFinished, CreatedAt: c.now, State: store.DeliveryWaiting, DueAt: c.at(1)}
	c.people(func(tx store.PeopleTx) error {
		for seq := range artel.Seq(5) {
			want.Event = seq + 1
			if err := tx.Deliveries.Add(want); err != nil {
				return err
			}
		}
		return nil
	})
	page := func(cursor string) (items []store.Delivery, next string) {
		c.seePeople(func(tx store.PeopleTx) (err error) {
			items, next, err = tx.Deliveries.List(store.DeliveryQuery{Webhook: "a", Page: store.Page{Limit: 3, Cursor: cursor}})
			return err
		})
		return items, next
	}
	first, next := page("")
	second, end := page(next)
	c.Same("pages", []any{len(first), len(second), first[0].Event, second[1].Event, end}, []any{3, 2, artel.Seq(5), artel.Seq(1), ""})
	d := first[0]
	d.State, d.Attempts, d.DueAt = store.DeliveryAccepted, 4, time.Time{}
	d.Last = store.Attempt{At: c.at(7), Status: 204, Took: 1234 * time.Microsecond, Answer: awkward, Error: "none"}
	report := func(d store.Delivery) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error { return tx.Deliveries.Report(d) }
	}
	c.people(report(d))
	foreign := d
	foreign.Webhook = "b"
	c.peopleRefuse("Report of another webhook's", artel.NotFound, report(foreign))
	c.seePeople(func(tx store.PeopleTx) error {
		got, _, err := tx.Deliveries.List(store.DeliveryQuery{Webhook: "a", Number: d.Number})
		c.Same("the reported one", got, []store.Delivery{d})
		return err
	})
	old := second[1]
	old.State, old.DueAt = store.DeliveryFailed, time.Time{}
	c.people(report(old))
	c.people(func(tx store.PeopleTx) error {
		waiting, err := tx.Deliveries.Trim("a", 1)
		c.Same("what waits", waiting, 3)
		return err
	})
	var left []artel.Seq
	for _, d := range c.deliveries("a") {
		left = append(left, d.Event)
	}
	c.Same("what is kept", left, []artel.Seq{5, 4, 3, 2})
}
