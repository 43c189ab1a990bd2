// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"encoding/json"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// record is that of a model call, with its number in it.
func (c *check) record(conv artel.ConversationID, run artel.RunID, at int) store.Context {
	n, _ := json.Marshal(map[string]int{"at": at})
	return store.Context{Conversation: conv, Run: run, Summary: n, Record: json.RawMessage(`{"said":"` + "中" + `"}`), CreatedAt: c.at(at)}
}

// recorded adds a record.
func (c *check) recorded(x store.Context, segments ...store.Segment) (number int) {
	c.update(func(tx store.Tx) (err error) {
		number, err = tx.Contexts.Add(x, segments)
		return err
	})
	return number
}

// ended starts a run that is over.
func (c *check) ended(conv artel.ConversationID) artel.RunID {
	r, err := c.run(me, conv, artel.RunDone, store.Lease{})
	c.Must("Create of a run", err)
	return r.ID
}

func contextsRoundTrip(c *check) {
	conv := c.conversation()
	run := c.ended(conv)
	first, second := c.record(conv, run, 1), c.record(conv, run, 2)
	second.Usage = &artel.Usage{Calls: 1, InputTokens: 1 << 40, CachedTokens: 7}
	second.Number = 40 // is ignored
	c.Same("number of the first", c.recorded(first), 1)
	c.Same("number of the second", c.recorded(second), 2)
	first.Number, second.Number = 1, 2
	get := func(what string, want store.Context) {
		reads(c, what, want, func(tx store.Tx) (store.Context, error) { return tx.Contexts.Get(run, want.Number) })
	}
	get("Get of the first", first)
	get("Get of the second", second)
	c.missing("Get of an unknown number", func(tx store.Tx) error { _, err := tx.Contexts.Get(run, 3); return err })
	other := c.record(conv, "run_none", 3)
	c.refused("Add to an unknown run", artel.NotFound, func(tx store.Tx) error { _, err := tx.Contexts.Add(other, nil); return err })
	other = c.record(c.conversation(), run, 3)
	c.refused("Add to a run of another conversation", artel.NotFound, func(tx store.Tx) error { _, err := tx.Contexts.Add(other, nil); return err })
	c.Kind("Get by another owner", c.s.View(c.Context(), them, func(tx store.Tx) error { _, err := tx.Contexts.Get(run, 1); return err }), artel.NotFound)
}

func contextsReport(c *check) {
	conv := c.conversation()
	run := c.ended(conv)
	first, second := c.record(conv, run, 1), c.record(conv, run, 2)
	first.Number, second.Number = c.recorded(first), c.recorded(second)
	report := func(what string, r store.ContextReport) {
		c.update(func(tx store.Tx) error { return tx.Contexts.Report(run, 1, r) })
		for _, want := range []store.Context{first, second} {
			reads(c, "Get after "+what, want, func(tx store.Tx) (store.Context, error) { return tx.Contexts.Get(run, want.Number) })
		}
	}
	first.Usage = &artel.Usage{OutputTokens: 3}
	report("Report of usage", store.ContextReport{Usage: first.Usage})
	first.Summary = json.RawMessage(`{"at":"文"}`)
	report("Report of a summary", store.ContextReport{Summary: first.Summary})
	first.Usage, first.Summary = &artel.Usage{OutputTokens: 4}, json.RawMessage(`{}`)
	report("Report of both", store.ContextReport{Usage: first.Usage, Summary: first.Summary})
	report("Report of nothing", store.ContextReport{})
	for what, n := range map[string]int{"of an unknown number": 3, "of number 0": 0} {
		c.refused("Report "+what, artel.NotFound, func(tx store.Tx) error {
			return tx.Contexts.Report(run, n, store.ContextReport{Usage: first.Usage})
		})
	}
	c.Kind("Report by another owner", c.s.Update(c.Context(), them, func(tx store.Tx) error {
		return tx.Contexts.Report(run, 1, store.ContextReport{Usage: first.Usage})
	}), artel.NotFound)
}

// keys are the records that a query finds.
func (c *check) keys(q store.ContextQuery) (out []store.ContextKey) {
	c.view(func(tx store.Tx) error {
		list, err := tx.Contexts.List(q)
		for _, x := range list {
			c.Same("record in a list", x.Record, json.RawMessage(nil))
			out = append(out, store.ContextKey{Run: x.Run, Number: x.Number})
		}
		return err
	})
	return out
}

func contextsList(c *check) {
	conv, other := c.conversation(), c.conversation()
	a, b, foreign := c.ended(conv), c.ended(conv), c.ended(other)
	c.Same("records of a conversation without any", c.keys(store.ContextQuery{Conversation: conv}), []store.ContextKey(nil))
	for i, run := range []artel.RunID{a, b, a} {
		c.recorded(c.record(conv, run, i))
	}
	c.recorded(c.record(other, foreign, 9))
	a1, b1, a2 := store.ContextKey{Run: a, Number: 1}, store.ContextKey{Run: b, Number: 1}, store.ContextKey{Run: a, Number: 2}
	c.Same("all", c.keys(store.ContextQuery{Conversation: conv}), []store.ContextKey{a2, b1, a1})
	c.Same("of a run", c.keys(store.ContextQuery{Conversation: conv, Run: a}), []store.ContextKey{a2, a1})
	c.Same("before one", c.keys(store.ContextQuery{Conversation: conv, Before: &a2}), []store.ContextKey{b1, a1})
	c.Same("the one before", c.keys(store.ContextQuery{Conversation: conv, Before: &a2, Limit: 1}), []store.ContextKey{b1})
	c.Same("before the first", c.keys(store.ContextQuery{Conversation: conv, Before: &a1}), []store.ContextKey(nil))
}

func contextsKeep(c *check) {
	conv, other := c.conversation(), c.conversation()
	run, foreign := c.ended(conv), c.ended(other)
	piece := func(n byte) store.Segment {
		return store.Segment{Digest: numbered(n), Body: []byte{n, 0, 255}}
	}
	empty := store.Segment{Digest: numbered(9), Body: []byte{}}
	c.recorded(c.record(conv, run, 1), piece(1), piece(2))
	c.recorded(c.record(conv, run, 2), piece(2), piece(3), empty)
	c.recorded(c.record(conv, run, 3), piece(2))
	c.recorded(c.record(other, foreign, 1), piece(1))
	segments := func(what string, in artel.ConversationID, want ...store.Segment) {
		reads(c, what, want, func(tx store.Tx) ([]store.Segment, error) {
			return tx.Contexts.Segments(in, []artel.Digest{numbered(1), numbered(2), numbered(3), numbered(4), numbered(9)})
		})
	}
	segments("segments", conv, piece(1), piece(2), piece(3), empty)
	c.update(func(tx store.Tx) error { return tx.Contexts.Trim(conv, 3) })
	segments("segments when nothing had to go", conv, piece(1), piece(2), piece(3), empty)
	c.update(func(tx store.Tx) error { return tx.Contexts.Trim(conv, 2) })
	segments("segments of the newest two", conv, piece(2), piece(3), empty)
	c.update(func(tx store.Tx) error { return tx.Contexts.Trim(conv, 1) })
	segments("segments of the newest one", conv, piece(2))
	c.Same("what is kept", c.keys(store.ContextQuery{Conversation: conv}), []store.ContextKey{{Run: run, Number: 3}})
	c.Same("the number after the others went", c.recorded(c.record(conv, run, 4)), 4)
	segments("segments of another conversation", other, piece(1))
}

func settingsRoundTrip(c *check) {
	put := func(s store.Setting) (n int) {
		c.update(func(tx store.Tx) (err error) { n, err = tx.Settings.Put(s); return err })
		return n
	}
	a := store.Setting{Name: "service/a", Value: json.RawMessage(`{"x":[1,"中"]}`), UpdatedAt: c.at(1)}
	b := store.Setting{Name: "service/" + awkward, Value: json.RawMessage(`null`), UpdatedAt: c.at(2)}
	d := store.Setting{Name: "profile", Value: json.RawMessage(`{}`), UpdatedAt: c.at(3)}
	for _, s := range []*store.Setting{&b, &a, &d} {
		s.Revision = put(*s)
		c.Same("first revision", s.Revision, 1)
		reads(c, "Get", *s, func(tx store.Tx) (store.Setting, error) { return tx.Settings.Get(s.Name) })
	}
	c.view(func(tx store.Tx) error {
		got, err := tx.Settings.List("service/")
		want := []store.Setting{a, b}
		if a.Name > b.Name {
			want = []store.Setting{b, a}
		}
		c.Same("List", got, want)
		return err
	})
	get := func(name string) func(store.Tx) error {
		return func(tx store.Tx) error { _, err := tx.Settings.Get(name); return err }
	}
	c.missing("Get of an unknown name", get("service/"))
	c.Kind("Get by another owner", c.s.View(c.Context(), them, get("profile")), artel.NotFound)
	c.Must("Put by another owner", c.s.Update(c.Context(), them, func(tx store.Tx) error {
		_, err := tx.Settings.Put(store.Setting{Name: "profile", Value: json.RawMessage(`1`)})
		return err
	}))
	reads(c, "Get after another owner's Put", d, func(tx store.Tx) (store.Setting, error) { return tx.Settings.Get("profile") })
}

func settingsRevisions(c *check) {
	put := func(revision int) func(store.Tx) error {
		return func(tx store.Tx) error {
			_, err := tx.Settings.Put(store.Setting{Name: "n", Value: json.RawMessage(`1`), Revision: revision, UpdatedAt: c.now})
			return err
		}
	}
	remove := func(revision int) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.Settings.Delete("n", revision, c.now) }
	}
	c.refused("Put over what is not there", artel.Conflict, put(1))
	c.refused("Delete of what is not there", artel.NotFound, remove(0))
	c.update(put(0))
	c.refused("Put over what is there as if it were not", artel.Conflict, put(0))
	c.update(put(1))
	c.refused("Put over an old revision", artel.Conflict, put(1))
	c.refused("Delete of an old revision", artel.Conflict, remove(1))
	c.update(remove(2))
	c.missing("Get after Delete", func(tx store.Tx) error { _, err := tx.Settings.Get("n"); return err })
	c.refused("Put over what was deleted", artel.Conflict, put(2))
	c.update(put(0))
	c.view(func(tx store.Tx) error {
		got, err := tx.Settings.Get("n")
		c.Same("revision after a deletion", got.Revision, 4)
		return err
	})
}

func variablesBranches(c *check) {
	conv := c.conversation()
	root := c.message(conv, "")
	left, right := c.message(conv, root), c.message(conv, root)
	leaf := c.message(conv, left)
	on := func(what, want string, path ...artel.MessageID) {
		c.view(func(tx store.Tx) error {
			got, err := tx.Variables.On(conv, path)
			c.Same(what, string(got), want)
			return err
		})
	}
	put := func(m artel.MessageID, value string) {
		c.update(func(tx store.Tx) error { return tx.Variables.Put(conv, m, json.RawMessage(value)) })
	}
	messages := func(want ...artel.MessageID) {
		c.view(func(tx store.Tx) error {
			got, err := tx.Variables.Messages(conv)
			slices.Sort(want)
			c.Same("messages with variables", len(got) == len(want) && slices.Equal(got, want), true)
			return err
		})
	}
	messages()
	on("variables where none was set", "", root, left)
	put(root, `{"a":"1"}`)
	put(left, `{"a":"2"}`)
	on("variables of a message", `{"a":"2"}`, root, left)
	on("variables behind it", `{"a":"2"}`, root, left, leaf)
	on("variables on another branch", `{"a":"1"}`, root, right)
	on("variables of no message", "")
	put(left, `{"a":"中"}`)
	on("variables after another Put", `{"a":"中"}`, root, left, leaf)
	messages(root, left)
	c.refused("Put of what is not JSON", artel.Invalid, func(tx store.Tx) error { return tx.Variables.Put(conv, left, json.RawMessage(`{`)) })
}
