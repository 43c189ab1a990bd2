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
	cancel, err := b.transport.Subscribe(b.subject(everyone), func(data []byte, _ func([]byte)) { b.receiveLoss(data) })
	if err != nil {
		b.log.Warn("that messages of other processes are lost is not heard while the bus is healthy", "err", err)
		cancel = func() {}
	}
	r.hear = cancel
}

// receiveLoss takes a message for all processes.
func (b *Bus) receiveLoss(data []byte) {
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
	if b.count(r, m) || m.Kind == kindLost { // it may be that message that is lost
		b.missed(known || m.Kind == kindLost)
	}
	if len(r.heard) > maxProcesses {
		clear(r.heard)
	}
	b.mu.Unlock()
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
