// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run/record"
	"github.com/artelhq/artel/store"
)

// A ContextDiff is how the requests of two model calls differ.
type ContextDiff struct {
	Before   record.ContextKey    `json:"before"`
	After    record.ContextKey    `json:"after"`
	Prefix   record.ContextPrefix `json:"prefix"`
	First    *FirstDiff           `json:"first,omitempty"` // absent: the earlier request is the beginning of the later one
	Target   bool                 `json:"target"`          // they went to different models
	Tools    bool                 `json:"tools"`           // the tools differ
	Messages []MessageChange      `json:"messages"`        // in the order of the later request; removed ones at their old place
}

// A MessageChange is the change of a message between two requests.
type MessageChange struct {
	ID     string          `json:"id"`
	Origin pipeline.Origin `json:"origin"`
	Role   artel.Role      `json:"role"`
	Change Change          `json:"change"`
	Tokens int             `json:"tokens"` // of the later one, or of what is gone
}

// A Change is a kind of MessageChange.
type Change string

// The changes.
const (
	Same    Change = "same"
	Added   Change = "added"
	Removed Change = "removed"
	Changed Change = "changed"
)

// A FirstDiff is the first byte in which two requests differ, and the cause.
type FirstDiff struct {
	Offset     int                `json:"offset"`            // in the canonical form, from 0
	Message    string             `json:"message,omitempty"` // id of the message; empty: the target or the tools
	Origin     pipeline.Origin    `json:"origin,omitempty"`
	Stability  pipeline.Stability `json:"stability,omitempty"`
	Cause      Cause              `json:"cause"`
	Processors []string           `json:"processors,omitempty"` // that caused it, in their order
	Rules      []string           `json:"rules,omitempty"`      // of them, where they name some
	Was        string             `json:"was,omitempty"`        // some text from that byte on
	Is         string             `json:"is,omitempty"`
}

// A Cause says why two requests begin to differ.
type Cause string

// The causes.
const (
	CauseTarget   Cause = "target"   // another model
	CauseTools    Cause = "tools"    // other tools
	CauseInserted Cause = "inserted" // a message was inserted
	CauseRemoved  Cause = "removed"  // a message is not sent any more
	CauseText     Cause = "text"     // the text of a message differs
	CauseEnd      Cause = "end"      // the later request ends
)

// Diff compares the request of a model call with an earlier one; a zero with is
// the call before it in the conversation. The error is of kind NotFound if there
// is none, Conflict if one of the calls has no request.
func (cs *Contexts) Diff(ctx context.Context, key, with record.ContextKey) (out ContextDiff, err error) {
	err = cs.with(ctx, key, func(tx store.Tx, s BuiltContext, after *record.Call) error {
		if with == (record.ContextKey{}) {
			if s.Previous == nil {
				return artel.Errorf(artel.NotFound, "inspect.Contexts.Diff", string(key.Run), "no model call came before it in the conversation")
			}
			with = *s.Previous
		}
		before, err := record.Load(tx, with)
		if err != nil {
			return err
		}
		if other, err := tx.Runs.Get(with.Run); err != nil || other.Conversation != s.Conversation {
			return errors.Join(err, artel.Errorf(artel.NotFound, "inspect.Contexts.Diff", string(with.Run), "the other call is not in this conversation"))
		}
		for _, c := range []*record.Call{before, after} {
			if c.Facts.Error != nil {
				return artel.Errorf(artel.Conflict, "inspect.Contexts.Diff", string(c.Key.Run), "call %d had no request: %s", c.Key.Number, c.Facts.Error.Message)
			}
		}
		out, err = diffOf(tx, before, after)
		return err
	})
	return out, err
}

func diffOf(tx store.Tx, before, after *record.Call) (ContextDiff, error) {
	p, err := after.Prefix(tx, before)
	if err != nil {
		return ContextDiff{}, err
	}
	a, b := before.Content.Manifest, after.Content.Manifest
	out := ContextDiff{
		Before: before.Key, After: after.Key, Prefix: record.ContextPrefix{Prefix: p, Ratio: p.Ratio()},
		Target: a.Head != b.Head, Tools: a.Tools != b.Tools, Messages: changesOf(a.Messages, b.Messages),
	}
	if p.Bytes < p.Before {
		out.First = firstDiff(tx, before, after, p)
	}
	return out, nil
}

// changesOf lines up two lists of messages by their ids.
func changesOf(before, after []pipeline.ManifestMessage) []MessageChange {
	out := make([]MessageChange, 0, len(after))
	note := func(x pipeline.ManifestMessage, c Change) {
		out = append(out, MessageChange{x.ID, x.Origin, x.Role, c, x.Tokens})
	}
	place := func(list []pipeline.ManifestMessage, id string) int {
		return slices.IndexFunc(list, func(x pipeline.ManifestMessage) bool { return x.ID == id })
	}
	for _, x := range after {
		i := place(before, x.ID)
		if i < 0 {
			note(x, Added)
			continue
		}
		for _, gone := range before[:i] {
			if place(after, gone.ID) < 0 {
				note(gone, Removed)
			} // otherwise it has moved, and is listed at its new place
		}
		was := before[i]
		before = slices.Concat(before[i+1:], remaining(before[:i], after))
		if was.Same(&x) {
			note(x, Same)
		} else {
			note(x, Changed)
		}
	}
	for _, gone := range before {
		if place(after, gone.ID) < 0 {
			note(gone, Removed)
		}
	}
	return out
}

// remaining returns those of list that are in others.
func remaining(list, others []pipeline.ManifestMessage) (out []pipeline.ManifestMessage) {
	for _, x := range list {
		if slices.ContainsFunc(others, func(o pipeline.ManifestMessage) bool { return o.ID == x.ID }) {
			out = append(out, x)
		}
	}
	return out
}

// excerpt is how much of a difference is shown, in bytes.
const excerpt = 200

func firstDiff(tx store.Tx, before, after *record.Call, p pipeline.Prefix) *FirstDiff {
	a, b := before.Content.Manifest, after.Content.Manifest
	f := &FirstDiff{Offset: p.Bytes}
	switch {
	case a.Head != b.Head:
		f.Cause = CauseTarget
		return f
	case a.Tools != b.Tools:
		f.Cause = CauseTools
		return f
	}
	begin := p.Bytes - bytesBefore(b, p.Messages)
	read := func(c *record.Call, list []pipeline.ManifestMessage) string {
		if p.Messages >= len(list) {
			return ""
		}
		_, lines, err := list[p.Messages].Message(c.Facts.Service, c.Contents(tx))
		if err != nil || begin >= len(lines) {
			return ""
		}
		return excerptOf(lines[begin:])
	}
	f.Was, f.Is = read(before, a.Messages), read(after, b.Messages)
	var was, is pipeline.ManifestMessage
	if p.Messages < len(a.Messages) {
		was = a.Messages[p.Messages]
	}
	if p.Messages >= len(b.Messages) {
		f.Cause, is = CauseEnd, was
	} else if is = b.Messages[p.Messages]; was.ID == is.ID {
		f.Cause = CauseText
	} else if place := slices.IndexFunc(b.Messages, func(x pipeline.ManifestMessage) bool { return x.ID == was.ID }); place >= 0 {
		f.Cause = CauseInserted
	} else {
		f.Cause, is = CauseRemoved, was
	}
	f.Message, f.Origin, f.Stability = is.ID, is.Origin, is.Stability
	f.Processors, f.Rules = causedBy(before.Content.Record, after.Content.Record, f.Cause, is.ID)
	if f.Cause == CauseText {
		if one, ok := authorOf(tx, before, after, is); ok {
			f.Processors = []string{one}
			f.Rules = rulesBy(before.Content.Record, after.Content.Record, one, is.ID, is.MergedFrom)
		}
	}
	return f
}

func bytesBefore(r pipeline.Manifest, n int) int {
	r.Messages = r.Messages[:n]
	return r.Bytes()
}

func excerptOf(b []byte) string {
	if len(b) <= excerpt {
		return strings.ToValidUTF8(string(b), "")
	}
	b = b[:excerpt]
	for len(b) > 0 && !utf8.RuneStart(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return strings.ToValidUTF8(string(b), "") + "…"
}

// causedBy returns the processors that made a message differ, and the rules that
// they name.
func causedBy(before, after pipeline.Record, cause Cause, id string) (processors, rules []string) {
	for _, record := range []pipeline.Record{before, after} {
		for _, s := range record.Processors {
			did := slices.Contains(s.Changed, id)
			switch cause {
			case CauseRemoved, CauseEnd:
				did = slices.Contains(s.Removed, id)
			case CauseInserted:
				did = did || slices.Contains(s.Added, id)
			case CauseText:
				did = did || slices.Contains(s.Added, id) && s.ID != pipeline.SessionLoader
			}
			if !did {
				continue
			}
			if !slices.Contains(processors, s.ID) {
				processors = append(processors, s.ID)
			}
			for _, r := range rulesOf(s, id) {
				if !slices.Contains(rules, r) {
					rules = append(rules, r)
				}
			}
		}
	}
	if len(processors) == 0 { // it came with the branch, or it is no longer on it
		processors = []string{pipeline.SessionLoader}
	}
	return processors, rules
}

// rulesOf are the rules that a step's notes name, about a message or about all.
func rulesOf(s pipeline.Step, id string) (out []string) {
	for _, l := range s.Logs {
		if about, ok := l.Details["message_id"].(string); ok && about != id {
			continue
		}
		if about, ok := l.Details["messages"].([]any); ok && !slices.Contains(about, any(id)) {
			continue
		}
		if rule, ok := l.Details["rule"].(string); ok {
			out = append(out, rule)
		}
	}
	return out
}
