// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"
	"strings"
	"sync"

	"github.com/artelhq/artel"
)

// LocalBell is the bell of a single process. It keeps one copy of each answer
// being written, however many listen, and nothing about conversations where
// nobody writes or listens. It has no goroutines. It implements [Bell].
type LocalBell struct {
	mu    sync.Mutex
	rooms map[artel.ConversationID]*room
}

var _ Bell = (*LocalBell)(nil)

// NewBell returns a bell that nobody listens to yet.
func NewBell() *LocalBell { return &LocalBell{rooms: map[artel.ConversationID]*room{}} }

// A room is a conversation that somebody listens to or writes in. It is
// guarded by the bell.
type room struct {
	ears  int
	rings uint64        // how often the log has grown
	stir  chan struct{} // closed at the next news; nil: nobody waits

	answer    uint64 // counts the answers, from 1
	said      Speech // the newest piece; its text and reasoning are in the builders
	writing   bool
	text      *strings.Builder // what the builders return is shared and never changes
	reasoning *strings.Builder
}

// Ring implements [Bell].
func (b *LocalBell) Ring(c artel.ConversationID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.rooms[c]; r != nil {
		r.rings++
		r.wake()
	}
}

// Say implements [Bell].
func (b *LocalBell) Say(c artel.ConversationID, s Speech) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.room(c)
	if !r.writing || r.said.Message != s.Message {
		r.answer++
		r.writing, r.text, r.reasoning = true, new(strings.Builder), new(strings.Builder)
	}
	r.said = s
	r.text.WriteString(s.Text)
	r.reasoning.WriteString(s.Reasoning)
	r.wake()
}

// Hush implements [Bell].
func (b *LocalBell) Hush(c artel.ConversationID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.rooms[c]; r != nil {
		r.writing, r.text, r.reasoning = false, nil, nil
		b.tidy(c, r)
	}
}

// Listen implements [Bell].
func (b *LocalBell) Listen(c artel.ConversationID) Listener {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.room(c)
	r.ears++
	return &ear{bell: b, conversation: c, room: r, rings: r.rings, first: true}
}

func (b *LocalBell) room(c artel.ConversationID) *room {
	r := b.rooms[c]
	if r == nil {
		r = &room{}
		b.rooms[c] = r
	}
	return r
}

// tidy forgets a room that nobody uses.
func (b *LocalBell) tidy(c artel.ConversationID, r *room) {
	if r.ears == 0 && !r.writing {
		delete(b.rooms, c)
	}
}

// wake lets everybody look again who waits.
func (r *room) wake() {
	if r.stir != nil {
		close(r.stir)
		r.stir = nil
	}
}

// An ear is one listener: what it has had so far.
type ear struct {
	bell         *LocalBell
	conversation artel.ConversationID
	room         *room // nil: closed
	first        bool
	rings        uint64
	answer       uint64
	text         int // bytes of that answer that were heard
	reasoning    int
}

// Wait implements [Listener].
func (e *ear) Wait(ctx context.Context) (News, error) {
	for {
		if err := ctx.Err(); err != nil {
			return News{}, err
		}
		news, stir, err := e.listen()
		if err != nil || news != (News{}) {
			return news, err
		}
		select {
		case <-stir:
		case <-ctx.Done():
		}
	}
}

// listen returns the news; if there is none, what to wait for.
func (e *ear) listen() (News, <-chan struct{}, error) {
	e.bell.mu.Lock()
	defer e.bell.mu.Unlock()
	r := e.room
	if r == nil {
		return News{}, nil, artel.Errorf(artel.Internal, "event.Wait", string(e.conversation), "the listener is closed")
	}
	news := News{Grown: e.first || e.rings != r.rings}
	e.first, e.rings = false, r.rings
	if r.writing {
		if e.answer != r.answer {
			e.answer, e.text, e.reasoning = r.answer, 0, 0
		}
		text, reasoning := r.text.String()[e.text:], r.reasoning.String()[e.reasoning:]
		if text != "" || reasoning != "" {
			// An answer is reset as long as nothing of it was heard.
			news.Reset = e.text+e.reasoning == 0
			news.Speech = r.said
			news.Text, news.Reasoning = text, reasoning
			e.text += len(text)
			e.reasoning += len(reasoning)
		}
	}
	if news != (News{}) {
		return news, nil, nil
	}
	if r.stir == nil {
		r.stir = make(chan struct{})
	}
	return news, r.stir, nil
}

// Close implements [Listener]. Closing again does nothing.
func (e *ear) Close() {
	e.bell.mu.Lock()
	defer e.bell.mu.Unlock()
	if e.room == nil {
		return
	}
	e.room.ears--
	e.bell.tidy(e.conversation, e.room)
	e.room = nil
}
