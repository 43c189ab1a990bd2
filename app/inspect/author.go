// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run/record"
	"github.com/artelhq/artel/store"
)

// A MessagePass is what one processor made of a message, or one rule of it
// where several have worked on the message.
type MessagePass struct {
	Processor string      `json:"processor"`
	Rules     []string    `json:"rules,omitempty"` // of it, that worked on the message
	Before    artel.Parts `json:"before"`
	After     artel.Parts `json:"after"` // empty if it was joined to another message
}

// passesOf returns what each processor made of a message that it changed, in
// order. States that are no longer stored are of kind NotFound.
func passesOf(tx store.Tx, c *record.Call, id string) ([]MessagePass, error) {
	passes, err := c.Content.Manifest.Changes(c.Content.Processors, id, c.Contents(tx))
	out := make([]MessagePass, len(passes))
	for i, t := range passes {
		s := c.Content.Processors[t.Step]
		out[i] = MessagePass{s.ID, rulesOf(s, id), t.Before.Parts, t.After.Parts}
		if t.Rule != "" {
			out[i].Rules = []string{t.Rule}
		}
	}
	return out, err
}

// Passes returns by message what each processor made of it, in order. Messages
// whose states are no longer stored are skipped.
func (cs *Contexts) Passes(ctx context.Context, key record.ContextKey, ids ...string) (out map[string][]MessagePass, err error) {
	out = make(map[string][]MessagePass, len(ids))
	err = cs.with(ctx, key, func(tx store.Tx, _ BuiltContext, c *record.Call) error {
		for _, id := range ids {
			passes, err := passesOf(tx, c, id)
			if errors.Is(err, artel.NotFound) {
				continue
			}
			if err != nil {
				return err
			}
			out[id] = passes
		}
		return nil
	})
	return out, err
}

// authorOf returns the processor that caused the first difference between two
// calls in a message: the last one whose output differs there for the first
// time. For joined messages, it is the author of the first one that differed
// before. ok is false if the states are no longer stored.
func authorOf(tx store.Tx, before, after *record.Call, x pipeline.ManifestMessage) (processor string, ok bool) {
	processor, ok = authorUpTo(tx, before, after, x.ID, "")
	if !ok {
		return "", false
	}
	for _, id := range x.MergedFrom {
		if one, ok := authorUpTo(tx, before, after, id, processor); ok {
			return one, true
		}
	}
	return processor, true
}

// authorUpTo looks at what a message was up to a processor alone; "": at all.
func authorUpTo(tx store.Tx, before, after *record.Call, id, end string) (processor string, ok bool) {
	a, err := statesOf(tx, before, id)
	if err != nil {
		return "", false
	}
	b, err := statesOf(tx, after, id)
	if err != nil {
		return "", false
	}
	last := differenceOf(a.now, b.now)
	if last.at >= 0 {
		processor, _ = record.Authors(after.Content.Record, id)
	}
	for _, p := range orderOf(before, after) {
		if p == end {
			break
		}
		a.through(p)
		b.through(p)
		now := differenceOf(a.now, b.now)
		switch {
		case now.at < 0:
			processor = ""
		case now.other(last):
			processor = p
		}
		last = now
	}
	return processor, processor != ""
}

// states are those of one message in one call.
type states struct {
	now    []byte
	behind map[string][]byte // what it was behind each processor that changed it
}

func (s *states) through(processor string) {
	if lines, ok := s.behind[processor]; ok {
		s.now = lines
	}
}

func statesOf(tx store.Tx, c *record.Call, id string) (states, error) {
	passes, err := c.Content.Manifest.Changes(c.Content.Processors, id, c.Contents(tx))
	if err != nil {
		return states{}, err
	}
	s := states{behind: make(map[string][]byte, len(passes))}
	for i, t := range passes {
		if i == 0 {
			s.now = t.Before.Lines
		}
		s.behind[c.Content.Processors[t.Step].ID] = t.After.Lines
	}
	if len(passes) == 0 {
		i := slices.IndexFunc(c.Content.Manifest.Messages, func(x pipeline.ManifestMessage) bool { return x.ID == id })
		if i < 0 {
			return s, artel.NotFound
		}
		_, s.now, err = c.Content.Manifest.Messages[i].Message(c.Facts.Service, c.Contents(tx))
	}
	return s, err
}

// orderOf are the processors of two calls, each once, in their order.
func orderOf(before, after *record.Call) (out []string) {
	for _, s := range after.Content.Processors {
		out = append(out, s.ID)
	}
	at := 0
	for _, s := range before.Content.Processors {
		if i := slices.Index(out, s.ID); i >= 0 {
			at = i + 1
			continue
		}
		out = slices.Insert(out, at, s.ID)
		at++
	}
	return out
}

// A difference is the first one of two texts.
type difference struct {
	at  int // -1: there is none
	was []byte
	is  []byte
}

// differenceLength is how many bytes of a difference are compared with another's.
const differenceLength = 16

func differenceOf(a, b []byte) difference {
	n := min(len(a), len(b))
	at := 0
	for at < n && a[at] == b[at] {
		at++
	}
	if at == len(a) && at == len(b) {
		return difference{at: -1}
	}
	return difference{at: at, was: a[at:min(len(a), at+differenceLength)], is: b[at:min(len(b), at+differenceLength)]}
}

// other reports whether d is not just what o was, moved by what both texts
// have got or lost before it.
func (d difference) other(o difference) bool {
	return o.at < 0 || !bytes.Equal(d.was, o.was) || !bytes.Equal(d.is, o.is)
}

// rulesBy are the rules of one processor that worked on a message in either
// call, or on those that were joined in it.
func rulesBy(before, after pipeline.Record, processor, id string, joined []string) (out []string) {
	for _, r := range []pipeline.Record{before, after} {
		for _, s := range r.Processors {
			if s.ID != processor {
				continue
			}
			for _, m := range append([]string{id}, joined...) {
				for _, rule := range rulesOf(s, m) {
					if !slices.Contains(out, rule) {
						out = append(out, rule)
					}
				}
			}
		}
	}
	return out
}
