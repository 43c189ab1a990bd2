// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"bytes"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A priorState is a message before a processor changed or removed it.
type priorState struct {
	step   int // index in the record
	before Message
	rule   string // the rule of the step after which this is the state; "": before the step
}

// noteChanges stores the earlier state of the messages that a step changed or
// removed. The parts are shared with the draft, which never writes into them.
func (d *Draft) noteChanges(step int, s Step) {
	ruled := d.ruleStates
	d.ruleStates = nil
	if s.ID == SessionLoader || len(s.Changed)+len(s.Removed) == 0 {
		return
	}
	ids := make(map[string]bool, len(s.Changed))
	for _, id := range s.Changed {
		ids[id] = true
	}
	if s.ID != TokenLimiter { // nothing of the dropped messages is sent
		for _, id := range s.Removed {
			ids[id] = true
		}
	}
	for _, m := range d.before {
		if ids[m.ID] {
			d.changes = append(d.changes, priorState{step: step, before: m})
			delete(ids, m.ID) // of messages with the same id, the first
		}
	}
	for _, t := range ruled {
		if slices.Contains(s.Changed, t.before.ID) {
			t.step = step
			d.changes = append(d.changes, t)
		}
	}
}

// recordChanges writes the earlier states of messages that are sent into the
// steps, and adds the segments that they name.
func (d *Draft) recordChanges(steps []Step, segments []Segment) ([]Segment, error) {
	if len(d.changes) == 0 {
		return segments, nil
	}
	sent := make(map[string]bool, len(d.Messages))
	for i := range d.Messages {
		sent[d.Messages[i].ID] = true
		for _, id := range d.Messages[i].MergedFrom {
			sent[id] = true
		}
	}
	stored := newFinder(d.History, len(d.Messages))
	known := make(map[artel.Digest]bool, len(segments))
	for _, s := range segments {
		known[s.Digest] = true
	}
	for i := range d.changes {
		t := &d.changes[i]
		m := &t.before
		if !sent[m.ID] {
			continue
		}
		if t.rule == "" && d.asStored(stored.find(m), m) {
			continue
		}
		var b bytes.Buffer
		if err := encodeMessage(&b, model.Message{Role: m.Role, Parts: m.Parts}); err != nil {
			return nil, err
		}
		digest := digestOf(b.Bytes())
		if !known[digest] {
			known[digest] = true
			segments = append(segments, Segment{digest, b.Bytes()})
		}
		s := &steps[t.step]
		if t.rule != "" {
			if s.Rules == nil {
				s.Rules = make(map[string][]RuleState)
			}
			s.Rules[m.ID] = append(s.Rules[m.ID], RuleState{t.rule, digest})
			continue
		}
		if s.Before == nil {
			s.Before = make(map[string]artel.Digest)
		}
		s.Before[m.ID] = digest
	}
	return segments, nil
}

// A MessageState is a message at one point of a build, with its canonical
// lines. Lines is nil if the message did not exist.
type MessageState struct {
	Parts artel.Parts
	Lines []byte
}

// A Change is what one processor did to a message.
type Change struct {
	Step   int    // index in the record
	Rule   string // of the step, if several rules changed the message; "": the step as a whole
	Before MessageState
	After  MessageState // zero if the processor merged the message into another one
}

// Changes returns the changes of a message, and of its merging into another
// one, in the order of the processors. A message that is not stored begins in
// the state in which its processor added it. Errors are those of c; NotFound
// means that a piece is no longer kept.
func (r Manifest) Changes(steps []Step, id string, p Contents) ([]Change, error) {
	var out []Change
	for i, s := range steps {
		changed, removed := slices.Contains(s.Changed, id), slices.Contains(s.Removed, id)
		if s.ID == SessionLoader || !changed && !removed {
			continue
		}
		before, err := r.stateBefore(s, id, p)
		if err != nil {
			return nil, err
		}
		if n := len(out); n > 0 {
			out[n-1].After = before
		}
		out = append(out, Change{Step: i, Before: before})
		for k, x := range s.Rules[id] {
			m, lines, err := ManifestMessage{ID: id, Digest: x.After}.Message(r.Head.Service, p)
			if err != nil {
				return nil, err
			}
			if k > 0 {
				out = append(out, Change{Step: i, Before: out[len(out)-1].After})
			}
			out[len(out)-1].Rule, out[len(out)-1].After = x.Rule, MessageState{m.Parts, lines}
		}
	}
	if len(out) == 0 || slices.Contains(steps[out[len(out)-1].Step].Removed, id) {
		return out, nil
	}
	for _, x := range r.Messages {
		if x.ID == id {
			m, lines, err := x.Message(r.Head.Service, p)
			out[len(out)-1].After = MessageState{m.Parts, lines}
			return out, err
		}
	}
	return out, nil
}

// stateBefore returns the message before step s.
func (r Manifest) stateBefore(s Step, id string, p Contents) (MessageState, error) {
	x := ManifestMessage{ID: id, Stored: true}
	if d, ok := s.Before[id]; ok {
		x = ManifestMessage{ID: id, Digest: d}
	} else {
		was, err := p.Stored(artel.MessageID(id))
		if err != nil {
			return MessageState{}, err
		}
		x.Role = was.Role
	}
	m, lines, err := x.Message(r.Head.Service, p)
	return MessageState{m.Parts, lines}, err
}
