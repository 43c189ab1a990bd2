// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"
	"slices"
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

	answers uint64    // counts them, from 1
	written []*answer // that are being written, one of each who speaks
}

// An answer is one that is being written.
type answer struct {
	number    uint64
	said      Speech          // the newest piece; its text and reasoning are in the builders
	text      strings.Builder // what the builders return is shared and never changes
	reasoning strings.Builder
}

// answer returns the one that s belongs to.
func (r *room) answer(s Speech) *answer {
	next := func() *answer {
		r.answers++
		return &answer{number: r.answers}
	}
	for i, a := range r.written {
		if a.said.Within == s.Within {
			if a.said.Message != s.Message {
				r.written[i] = next()
			}
			return r.written[i]
		}
	}
	r.written = append(r.written, next())
	return r.written[len(r.written)-1]
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
	a := r.answer(s)
	a.said = s
	a.text.WriteString(s.Text)
	a.reasoning.WriteString(s.Reasoning)
	r.wake()
}

// Hush implements [Bell].
func (b *LocalBell) Hush(c artel.ConversationID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.rooms[c]; r != nil {
		r.written = nil
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
	if r.ears == 0 && len(r.written) == 0 {
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
	heard        []heard
	turn         int // whose answer is looked at first, so that each has its turn
}

// heard is how much of an answer was.
type heard struct {
	answer          uint64
	text, reasoning int // bytes
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
	e.hear(r, &news)
	if news != (News{}) {
		return news, nil, nil
	}
	if r.stir == nil {
		r.stir = make(chan struct{})
	}
	return news, r.stir, nil
}

// hear takes what is new of the next answer that has something new.
func (e *ear) hear(r *room, news *News) {
	e.heard = slices.DeleteFunc(e.heard, func(h heard) bool {
		return !slices.ContainsFunc(r.written, func(a *answer) bool { return a.number == h.answer })
	})
	for n := range r.written {
		at := (e.turn + n) % len(r.written)
		a := r.written[at]
		i := slices.IndexFunc(e.heard, func(h heard) bool { return h.answer == a.number })
		if i < 0 {
			i = len(e.heard)
			e.heard = append(e.heard, heard{answer: a.number})
		}
		h := &e.heard[i]
		text, reasoning := a.text.String()[h.text:], a.reasoning.String()[h.reasoning:]
		if text == "" && reasoning == "" {
			continue
		}
		// An answer is reset as long as nothing of it was heard.
		news.Reset = h.text+h.reasoning == 0
		news.Speech = a.said
		news.Text, news.Reasoning = text, reasoning
		h.text += len(text)
		h.reasoning += len(reasoning)
		e.turn = at + 1
		return
	}
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
