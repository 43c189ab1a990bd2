// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/artelhq/artel"
)

// ask asks the process that writes in a conversation for what is missing here. One
// question is on its way at a time.
func (b *Bus) ask(c artel.ConversationID, r *room) {
	if r.again = r.asking; r.asking || b.ctx.Err() != nil {
		return
	}
	r.asking = true
	b.work.Go(func() {
		for tries := 0; ; {
			q := question{From: b.self}
			b.mu.Lock()
			q.Has = slices.Clone(r.theirs)
			b.mu.Unlock()
			answer, ok, late := b.request(c, q)
			if late {
				tries++
			}
			b.mu.Lock()
			more := ok && b.settle(c, r, answer) || late && tries < maxTries
			r.asking = more || r.again
			r.again = false
			more = r.asking && r.listeners > 0 && b.ctx.Err() == nil
			r.asking = more
			b.mu.Unlock()
			if !more {
				return
			}
		}
	})
}

// request returns a reply, or reports that none came in time: question or reply may
// be lost.
func (b *Bus) request(c artel.ConversationID, q question) (answer reply, ok, late bool) {
	data, err := json.Marshal(q)
	if err != nil {
		return answer, false, false
	}
	ctx, stop := context.WithTimeout(b.ctx, asking)
	defer stop()
	data, err = b.transport.Request(ctx, b.subject(c)+".ask", data)
	if err != nil { // no process writes, or the next piece asks again
		return answer, false, b.ctx.Err() == nil && ctx.Err() != nil
	}
	return answer, json.Unmarshal(data, &answer) == nil, false
}

// settle brings what is here up to a reply, and reports whether there is more.
func (b *Bus) settle(c artel.ConversationID, r *room, answer reply) bool {
	if r.listeners == 0 || answer.From == b.self {
		return false
	}
	if last, known := r.heard[answer.From]; !known || answer.Number > last {
		r.heard[answer.From] = answer.Number
		b.local.Notify(c) // what came before may have been lost
	}
	for _, p := range slices.Clone(r.theirs) {
		written := slices.ContainsFunc(answer.Writes, func(w piece) bool { return w.Message == p.Message })
		if !written && p.from == answer.From && answer.Number >= r.heard[answer.From] { // its Discard was lost
			r.end(p.Message)
			r.theirs = slices.DeleteFunc(r.theirs, func(t piece) bool { return t.Message == p.Message })
			b.discardOne(c, r, p)
		}
	}
	for _, m := range answer.Pieces {
		m.From = answer.From
		b.take(c, r, m)
	}
	return answer.HasMore
}

// discardOne drops the answer of one thread, unless one of a thread below is still
// written: that would be dropped with it.
func (b *Bus) discardOne(c artel.ConversationID, r *room, p piece) {
	if !slices.ContainsFunc(r.theirs, func(t piece) bool { return t.Within.In(p.Within) }) {
		b.local.Discard(c, p.Within)
	}
}

// reply answers a question of another process.
func (b *Bus) reply(c artel.ConversationID, data []byte, send func([]byte)) {
	var q question
	if json.Unmarshal(data, &q) != nil || q.From == b.self {
		return
	}
	b.mu.Lock()
	r := b.rooms[c]
	if r == nil || len(r.mine) == 0 {
		b.mu.Unlock()
		return
	}
	answer := reply{From: b.self, Number: r.number, Writes: slices.Clone(r.mine)}
	room := maxText
	for _, d := range b.local.Writing(c) {
		if !slices.ContainsFunc(r.mine, func(p piece) bool { return p.Message == d.Message }) {
			continue
		}
		at := piece{Within: d.Within, Message: d.Message}
		if i := slices.IndexFunc(q.Has, func(p piece) bool { return p.Message == d.Message }); i >= 0 {
			at.Text, at.Reasoning = min(max(0, q.Has[i].Text), len(d.Text)), min(max(0, q.Has[i].Reasoning), len(d.Reasoning))
		}
		thought := first([]byte(d.Reasoning[at.Reasoning:]), room)
		room -= len(thought)
		text := first([]byte(d.Text[at.Text:]), room)
		room -= len(text)
		answer.HasMore = answer.HasMore || at.Reasoning+len(thought) < len(d.Reasoning) || at.Text+len(text) < len(d.Text)
		if len(text)+len(thought) > 0 {
			answer.Pieces = append(answer.Pieces, message{Kind: kindStream, At: &at, Run: d.Run, Agent: d.Agent, Text: text, Thought: thought})
		}
	}
	b.mu.Unlock()
	if data, err := json.Marshal(answer); err == nil {
		send(data)
	}
}

// tick repeats last numbers, and makes followers read the log where messages do not
// get through.
func (b *Bus) tick() {
	tick := time.NewTicker(Tick)
	defer tick.Stop()
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-tick.C:
		}
		ok, losses := b.transport.Health()
		b.mu.Lock()
		if ok != b.healthy {
			b.healthy = ok
			b.log.Warn("the state of the bus between servers has changed; while it is not healthy, followers read the log every second", "healthy", ok)
		}
		lost := !ok || losses != b.lost
		if b.lost = losses; lost {
			b.missed(ok)
		}
		if ok && b.unsent {
			b.unsent = false // unless this is lost too
			b.publish(everyone, b.room(everyone), message{Kind: kindLost})
		}
		for c, r := range b.rooms {
			if r.quiet && r.beacons > 0 {
				r.beacons--
				b.publish(c, r, message{Kind: kindBeacon})
				b.leave(c, r)
			}
			r.quiet = true
		}
		b.mu.Unlock()
	}
}
