// SPDX-License-Identifier: Apache-2.0

// Package event tells what happens in conversations: every event is stored
// once, under the next number of its conversation's log, and any number of
// followers read the log from wherever they stand and then on as it grows.
//
// Begin with [NewLog]. A [Bell] wakes the followers; [NewBell] makes the one
// for a single process, and the kit event/eventtest holds any other to the
// contract.
//
// The log is the truth. It promises that
//
//   - numbers run from 1, without gaps or repeats, in the order of the commits;
//   - an event never changes, and is on disk before any follower sees it;
//   - whoever follows from number n gets n+1, n+2, … each exactly once, however
//     often it breaks off and comes back, and however slowly it reads.
//
// The answer that is being written travels beside the log, as events of type
// message_delta with number 0: its text, and what the model thinks before it.
// They are a preview: pieces may be joined, the first one that a follower gets
// of a message carries all of it so far (reset), and none comes after the
// message_completed that has the same. Losing them loses nothing.
//
// As server-sent events (WHATWG HTML, "Server-sent events"), an event of the
// log is one with "id:" its number, "event:" its type and "data:" its JSON, so
// that Last-Event-ID is the number to follow from. A message_delta has no
// "id:", and so leaves Last-Event-ID where it is. A heartbeat is a comment.
//
// What events mean, and who may see them, is for the rooms above.
package event

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// A Log appends to the logs of conversations and follows them. It is safe for
// concurrent use.
type Log struct {
	store store.Store
	bell  Bell
	tails *tails
}

// NewLog returns a log that keeps its events in s and wakes its followers
// with b.
func NewLog(s store.Store, b Bell) *Log {
	return &Log{store: s, bell: b, tails: &tails{of: map[tailKey]*tail{}}}
}

// Bell returns the bell, for who writes an answer.
func (l *Log) Bell() Bell { return l.bell }

// Append stores the events under the next numbers of c, wakes the followers,
// and returns the last number. The numbers that the events carry are ignored.
// Errors are those of the store, and of kind Invalid for a live-only event.
func (l *Log) Append(ctx context.Context, owner artel.Owner, c artel.ConversationID, events ...artel.Event) (artel.Seq, error) {
	var last artel.Seq
	err := l.store.Update(ctx, owner, func(tx store.Tx) (err error) {
		last, err = l.AppendTx(tx, c, events...)
		return err
	})
	if err != nil {
		return 0, err
	}
	l.bell.Ring(c)
	return last, nil
}

// AppendTx is [Log.Append] as a part of somebody else's update. The caller
// rings the bell when that has returned without an error.
func (l *Log) AppendTx(tx store.Tx, c artel.ConversationID, events ...artel.Event) (artel.Seq, error) {
	for _, e := range events {
		if e.Type == artel.EventMessageDelta {
			return 0, artel.Errorf(artel.Invalid, "event.Append", string(e.Type), "is live only: say it on the bell")
		}
	}
	return tx.Events.Append(c, events...)
}

// FollowOptions are the settings of [Log.Follow].
type FollowOptions struct {
	// Heartbeat is the silence after which a zero event is yielded, and the
	// log is looked at even if no bell has rung. 0: never.
	Heartbeat time.Duration

	// Idle is called when everything that is there has been yielded and nothing
	// else is known of: whoever gathers what it sends, sends it now. Its error
	// ends the sequence. nil: nothing.
	Idle func() error
}

const (
	batchSize = 100 // events read at once; a follower holds no more
	recent    = 64  // messages remembered as completed, and events looked back at for them
)

// Follow yields the events of c after a number, then waits for more, and so on
// until ctx ends, which ends the sequence without an error. In between it
// yields message_delta events with number 0 and, after each Heartbeat of
// silence, the zero event.
//
// An error is yielded once and is the end: of kind NotFound when there is no
// such conversation, or it is deleted; Invalid when after is no number of the
// log; else that of the store. A slow caller holds nobody up.
func (l *Log) Follow(ctx context.Context, owner artel.Owner, c artel.ConversationID, after artel.Seq, o FollowOptions) iter.Seq2[artel.Event, error] {
	return func(yield func(artel.Event, error) bool) {
		f := follower{log: l, owner: owner, conversation: c, after: after}
		if err := f.start(ctx); err != nil {
			if ctx.Err() == nil {
				yield(artel.Event{}, err)
			}
			return
		}
		ear := l.bell.Listen(c)
		defer ear.Close()
		key := tailKey{owner, c}
		f.tail = l.tails.join(key, f.last)
		defer l.tails.leave(key, f.tail)
		silence := silence{after: o.Heartbeat}
		defer silence.stop()
		for {
			if o.Idle != nil {
				if err := o.Idle(); err != nil {
					yield(artel.Event{}, err)
					return
				}
			}
			news, err := silence.wait(ctx, ear)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(artel.Event{}, err)
				return
			}
			silent := news == News{}
			if news.Grown || silent {
				told, ok := f.catchUp(ctx, yield)
				if !ok {
					return
				}
				silent = silent && !told
			}
			if news.Said() && !f.isCompleted(news.Message) {
				e, err := delta(news)
				if !yield(e, err) || err != nil {
					return
				}
			}
			if silent && !yield(artel.Event{}, nil) {
				return
			}
		}
	}
}

// A silence ends the waiting of one follower after a while. It is set anew for
// each event and made anew only where it came: a thousand followers wait again
// after every event.
type silence struct {
	after   time.Duration   // 0: never
	limited context.Context // of Follow's, until the silence; nil: to be made
	end     context.CancelFunc
	timer   *time.Timer
}

// wait returns the next news, or none after the silence.
func (s *silence) wait(ctx context.Context, ear Listener) (News, error) {
	if s.after <= 0 {
		return ear.Wait(ctx)
	}
	if s.limited == nil {
		s.limited, s.end = context.WithCancel(ctx)
		s.timer = time.AfterFunc(s.after, s.end)
	} else {
		s.timer.Reset(s.after)
	}
	news, err := ear.Wait(s.limited)
	over := s.limited.Err() != nil
	if !s.timer.Stop() { // it has come, if only just now
		s.end()
		s.limited = nil
	}
	if err != nil && over && ctx.Err() == nil {
		return News{}, nil
	}
	return news, err
}

func (s *silence) stop() {
	if s.limited != nil {
		s.timer.Stop()
		s.end()
	}
}

func delta(n News) (artel.Event, error) {
	e, err := artel.NewEvent(n.Run, n.Agent, time.Now().UTC(), artel.MessageDelta{
		Message: n.Message, Text: n.Text, Reasoning: n.Reasoning, Reset: n.Reset,
	})
	e.Within = n.Within
	return e, err
}

// A follower is where one caller of Follow stands.
type follower struct {
	log          *Log
	owner        artel.Owner
	conversation artel.ConversationID
	after        artel.Seq
	completed    []artel.MessageID // the most recent ones; their deltas are late
	last         artel.Seq         // of the log, at the start
	tail         *tail
}

// start checks the position, and notes which messages the caller, who comes
// back, has in full.
func (f *follower) start(ctx context.Context) error {
	return f.log.store.View(ctx, f.owner, func(tx store.Tx) error {
		last, err := tx.Events.Last(f.conversation)
		if err != nil {
			return err
		}
		f.last = last
		if f.after < 0 || f.after > last {
			return artel.Errorf(artel.Invalid, "event.Follow", string(f.conversation),
				"cannot follow from %d: the log ends at %d; 0 is its beginning", f.after, last)
		}
		if f.after == 0 {
			return nil
		}
		from := max(0, f.after-recent)
		events, err := tx.Events.Read(f.conversation, from, int(f.after-from))
		for _, e := range events {
			f.note(e)
		}
		return err
	})
}

// catchUp yields what the log has after the follower's position.
func (f *follower) catchUp(ctx context.Context, yield func(artel.Event, error) bool) (told, ok bool) {
	for {
		events, near, err := f.tail.after(ctx, f.log.store, tailKey{f.owner, f.conversation}, f.after)
		if err == nil && !near {
			err = f.log.store.View(ctx, f.owner, func(tx store.Tx) (err error) {
				events, err = tx.Events.Read(f.conversation, f.after, batchSize)
				return err
			})
		}
		if err != nil {
			if ctx.Err() == nil {
				yield(artel.Event{}, err)
			}
			return told, false
		}
		for _, e := range events {
			f.note(e)
			f.after = e.Seq
			told = true
			if !yield(e, nil) {
				return told, false
			}
		}
		if near || len(events) < batchSize {
			return told, true
		}
	}
}

// note remembers the message that e completes.
func (f *follower) note(e artel.Event) {
	if e.Type != artel.EventMessageCompleted {
		return
	}
	var p struct {
		Message struct {
			ID artel.MessageID `json:"id"`
		} `json:"message"`
	}
	if json.Unmarshal(e.Data, &p) != nil || p.Message.ID == "" {
		return // the payload is not ours to judge
	}
	if len(f.completed) == recent {
		f.completed = append(f.completed[:0], f.completed[1:]...)
	}
	f.completed = append(f.completed, p.Message.ID)
}

func (f *follower) isCompleted(m artel.MessageID) bool {
	return slices.Contains(f.completed, m)
}
