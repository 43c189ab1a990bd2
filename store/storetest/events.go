// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// log reads all events of conv.
func (c *check) log(conv artel.ConversationID) (list []artel.Event) {
	c.view(func(tx store.Tx) (err error) { list, err = tx.Events.Read(conv, 0, 1000); return err })
	return list
}

func eventsRoundTrip(c *check) {
	conv := c.conversation()
	in := []artel.Event{
		{Seq: 77, Type: artel.EventUsage, Run: "run_1", Agent: "lead", Within: "call_1/call_2", Time: c.at(1), Data: json.RawMessage("{ \"a\" : \"中\\u0000<\" ,\n \"n\":1.0}")},
		{Type: artel.EventRunStarted, Time: c.now},
	}
	c.update(func(tx store.Tx) error {
		last, err := tx.Events.Append(conv, in...)
		c.Same("last number", last, artel.Seq(2))
		return err
	})
	want := append([]artel.Event(nil), in...)
	want[0].Seq, want[1].Seq = 1, 2
	c.Same("events", c.log(conv), want)
	for what, e := range map[string]artel.Event{
		"data that is not JSON":  {Data: json.RawMessage("{")},
		"data that is not UTF-8": {Data: json.RawMessage("\"\xff\"")},
	} {
		c.refused("Append of "+what, artel.Invalid, func(tx store.Tx) error { _, err := tx.Events.Append(conv, e); return err })
	}
}

func eventsNumbers(c *check) {
	conv, other := c.conversation(), c.conversation()
	total := artel.Seq(0)
	for i := range 12 {
		n := i % 4
		undo := i%3 == 1
		err := c.s.Update(c.Context(), me, func(tx store.Tx) error {
			last, err := tx.Events.Append(conv, make([]artel.Event, n)...)
			if err != nil {
				return err
			}
			c.Same("last number", last, total+artel.Seq(n))
			if _, err := tx.Events.Append(other, artel.Event{}); err != nil {
				return err
			}
			if undo {
				return errUndo
			}
			return nil
		})
		if undo != errors.Is(err, errUndo) {
			c.Must("Append", err)
		}
		if !undo {
			total += artel.Seq(n)
		}
	}
	list := c.log(conv)
	c.Same("events", len(list), int(total))
	for i, e := range list {
		c.Same("number", e.Seq, artel.Seq(i+1))
	}
	reads(c, "Last", total, func(tx store.Tx) (artel.Seq, error) { return tx.Events.Last(conv) })
}

func eventsRead(c *check) {
	conv, empty := c.conversation(), c.conversation()
	c.update(func(tx store.Tx) error { _, err := tx.Events.Append(conv, make([]artel.Event, 10)...); return err })
	for _, q := range []struct {
		after       artel.Seq
		limit, want int
	}{{0, 3, 3}, {7, 100, 3}, {8, 1, 1}, {10, 5, 0}, {99, 5, 0}} {
		c.view(func(tx store.Tx) error {
			list, err := tx.Events.Read(conv, q.after, q.limit)
			c.Same("events read", len(list), q.want)
			for i, e := range list {
				c.Same("number", e.Seq, q.after+artel.Seq(i+1))
			}
			return err
		})
	}
	reads(c, "Last of an empty log", artel.Seq(0), func(tx store.Tx) (artel.Seq, error) { return tx.Events.Last(empty) })
	c.missing("Read of no conversation", func(tx store.Tx) error { _, err := tx.Events.Read("cnv_none", 0, 1); return err })
	c.missing("Last of no conversation", func(tx store.Tx) error { _, err := tx.Events.Last("cnv_none"); return err })
	c.refused("Append to no conversation", artel.NotFound, func(tx store.Tx) error {
		_, err := tx.Events.Append("cnv_none", artel.Event{})
		return err
	})
}

func eventsReadBytes(c *check) {
	conv := c.conversation()
	long := artel.Event{Type: artel.EventCompactionCompleted, Time: c.now, Data: json.RawMessage(`"` + strings.Repeat("x", store.MaxEventBytes*3/4) + `"`)}
	huge := long
	huge.Data = json.RawMessage(`"` + strings.Repeat("x", store.MaxEventBytes) + `"`)
	c.update(func(tx store.Tx) error {
		_, err := tx.Events.Append(conv, long, long, long, huge, artel.Event{})
		return err
	})
	for _, q := range []struct {
		after artel.Seq
		limit int
		want  int
		more  bool
	}{{0, 100, 2, true}, {0, 1, 1, true}, {2, 100, 2, true}, {3, 100, 1, true}, {4, 100, 1, false}} {
		c.view(func(tx store.Tx) error {
			list, err := tx.Events.Read(conv, q.after, q.limit)
			c.Same("long events read", len(list), q.want)
			c.Same("whether there may be more", store.MayContinue(list, q.limit), q.more)
			for i, e := range list {
				c.Same("number", e.Seq, q.after+artel.Seq(i+1))
			}
			return err
		})
	}
	c.view(func(tx store.Tx) error {
		list, err := tx.Events.Milestones(conv, 100)
		c.Same("long milestones", len(list), 1)
		c.Same("number of the newest", list[len(list)-1].Seq, artel.Seq(4))
		return err
	})
}

func eventsMilestones(c *check) {
	conv, other := c.conversation(), c.conversation()
	summed := artel.Event{Type: artel.EventCompactionCompleted, Run: "run_1", Within: "call_1", Time: c.now, Data: json.RawMessage(`{"ok":true}`)}
	c.update(func(tx store.Tx) error {
		for _, id := range []artel.ConversationID{conv, other} {
			if _, err := tx.Events.Append(id, summed, artel.Event{Type: artel.EventUsage}, artel.Event{Type: artel.EventServiceChanged}, artel.Event{}, summed, artel.Event{Type: artel.EventServiceChosen}, summed); err != nil {
				return err
			}
		}
		return nil
	})
	for limit, want := range map[int][]artel.Seq{10: {1, 3, 5, 6, 7}, 2: {6, 7}} {
		c.view(func(tx store.Tx) error {
			list, err := tx.Events.Milestones(conv, limit)
			var got []artel.Seq
			for _, e := range list {
				got = append(got, e.Seq)
			}
			c.Same("numbers of milestones", got, want)
			if len(list) > 0 {
				want := summed
				want.Seq = 7
				c.Same("a turning", list[len(list)-1], want)
			}
			return err
		})
	}
	c.missing("Milestones of no conversation", func(tx store.Tx) error { _, err := tx.Events.Milestones("cnv_none", 1); return err })
}

func eventsContexts(c *check) {
	conv, other := c.conversation(), c.conversation()
	built := artel.Event{Type: artel.EventContextBuilt, Run: "run_1", Time: c.now, Data: json.RawMessage(`{"attachments":[]}`)}
	c.update(func(tx store.Tx) error {
		for _, id := range []artel.ConversationID{conv, other} {
			if _, err := tx.Events.Append(id, built, artel.Event{Type: artel.EventUsage}, built, artel.Event{}, built); err != nil {
				return err
			}
		}
		return nil
	})
	for _, q := range []struct {
		upTo  artel.Seq
		limit int
		want  []artel.Seq
	}{{5, 10, []artel.Seq{1, 3, 5}}, {4, 10, []artel.Seq{1, 3}}, {99, 2, []artel.Seq{3, 5}}, {0, 9, nil}} {
		c.view(func(tx store.Tx) error {
			list, err := tx.Events.Contexts(conv, q.upTo, q.limit)
			var got []artel.Seq
			for _, e := range list {
				got = append(got, e.Seq)
			}
			c.Same("numbers of contexts", got, q.want)
			if len(list) > 0 {
				want := built
				want.Seq = list[0].Seq
				c.Same("a context", list[0], want)
			}
			return err
		})
	}
	c.missing("Contexts of no conversation", func(tx store.Tx) error { _, err := tx.Events.Contexts("cnv_none", 9, 1); return err })
}
