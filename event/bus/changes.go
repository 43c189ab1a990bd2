// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"encoding/json"

	"github.com/artelhq/artel"
)

// everyone is the room in which all processes are.
const everyone artel.ConversationID = ""

// maxProcesses is how many processes are known at most.
const maxProcesses = 1024

// enter subscribes to what is for all processes.
func (b *Bus) enter() {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.room(everyone)
	r.listeners++
	cancel, err := b.transport.Subscribe(b.subject(everyone), func(data []byte, _ func([]byte)) { b.receiveChange(data) })
	if err != nil {
		b.log.Warn("changes in other processes are not heard while the bus is healthy", "err", err)
		cancel = func() {}
	}
	r.hear = cancel
}

// Announce implements [event.Changes].
func (b *Bus) Announce(topic, key string) {
	b.changes.Announce(topic, key)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() == nil {
		b.publish(everyone, b.room(everyone), message{Kind: kindChange, Topic: topic, Key: key})
	}
}

// OnChange implements [event.Changes].
func (b *Bus) OnChange(topic string, changed func(key string)) (cancel func()) {
	return b.changes.OnChange(topic, changed)
}

// receiveChange takes a message for all processes.
func (b *Bus) receiveChange(data []byte) {
	var m message
	if json.Unmarshal(data, &m) != nil || m.From == b.self {
		return
	}
	b.mu.Lock()
	r := b.rooms[everyone]
	if r == nil || b.ctx.Err() != nil {
		b.mu.Unlock()
		return
	}
	_, known := r.heard[m.From]
	lost := b.count(r, m) || m.Kind == kindLost
	if lost { // it may be that message that is lost
		b.missed(known || m.Kind == kindLost)
	}
	if len(r.heard) > maxProcesses {
		clear(r.heard)
	}
	b.mu.Unlock()
	switch {
	case lost:
		b.changes.AnnounceAll()
	case m.Kind == kindChange:
		b.changes.Announce(m.Topic, m.Key)
	}
}

// count notes the number of a message, and reports whether some before it may be lost. The first one
// that is heard of a process may follow others.
func (b *Bus) count(r *room, m message) (lost bool) {
	last := r.heard[m.From]
	r.heard[m.From] = max(last, m.Number)
	return m.Number > last+1 || m.Number > last && m.Kind == kindBeacon
}

// missed makes all followers read the log. The caller holds mu.
func (b *Bus) missed(ask bool) {
	for c, r := range b.rooms {
		if c != everyone && r.listeners > 0 {
			b.local.Notify(c)
			if ask {
				b.ask(c, r)
			}
		}
	}
}
