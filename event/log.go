// SPDX-License-Identifier: Apache-2.0

// Package event stores what happens in conversations and lets readers follow
// it. Each event is stored once, under the next number of its conversation's
// log. Any number of followers read the log from any position and receive new
// events as it grows.
//
// Begin with [NewLog]. A [Notifier] wakes the followers; [NewNotifier] makes
// the one for a single process. The kit event/eventtest tests others.
//
// The log guarantees:
//
//   - numbers run from 1 without gaps or repeats, in the order of the commits;
//   - an event never changes, and is on disk before any follower sees it;
//   - a follower from number n gets n+1, n+2, … exactly once each, also after
//     reconnecting, and however slowly it reads.
//
// An answer being written is sent beside the log, as message_delta events with
// number 0. They are a preview: pieces may be joined, a follower's first piece
// of a message holds the whole answer so far (reset), and no piece follows the
// message_completed event, which holds the same text.
//
// As server-sent events, an event of the log has its number as "id:". A
// message_delta has no "id:" and so leaves Last-Event-ID unchanged.
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
	store    store.Store
	notifier Notifier
	tails    *tails
}

// NewLog returns a log that stores its events in s and wakes its followers
// through n.
func NewLog(s store.Store, n Notifier) *Log {
	return &Log{store: s, notifier: n, tails: &tails{of: map[tailKey]*tail{}}}
}

// Notifier returns the notifier, through which answers are streamed.
func (l *Log) Notifier() Notifier { return l.notifier }

// Append stores the events under the next numbers of c, wakes the followers,
// and returns the last number. It ignores Event.Seq. Errors are those of the
// store, and of kind Invalid for a message_delta, which is never stored.
func (l *Log) Append(ctx context.Context, owner artel.Owner, c artel.ConversationID, events ...artel.Event) (artel.Seq, error) {
	var last artel.Seq
	err := l.store.Update(ctx, owner, func(tx store.Tx) (err error) {
		last, err = l.AppendTx(tx, c, events...)
		return err
	})
	if err != nil {
		return 0, err
	}
	l.notifier.Notify(c)
	return last, nil
}

// AppendTx is [Log.Append] inside the caller's transaction, in which it also queues the
// events for webhooks that receive them. The caller must call
// [Notifier.Notify] after the commit.
func (l *Log) AppendTx(tx store.Tx, c artel.ConversationID, events ...artel.Event) (artel.Seq, error) {
	for _, e := range events {
		if e.Type == artel.EventMessageDelta {
			return 0, artel.Errorf(artel.Invalid, "event.Append", string(e.Type), "is never stored: stream it through the notifier")
		}
	}
	last, err := tx.Events.Append(c, events...)
	if err != nil {
		return 0, err
	}
	var hooked []artel.Event
	for i, e := range events {
		if slices.Contains(ForWebhooks(), e.Type) {
			e.Seq = last - artel.Seq(len(events)-1-i)
			hooked = append(hooked, e)
		}
	}
	if len(hooked) > 0 {
		err = tx.Hooks.Queue(c, hooked...)
	}
	return last, err
}

// ForWebhooks returns the types of events that webhooks can receive.
func ForWebhooks() []artel.EventType {
	return []artel.EventType{artel.EventRunFinished, artel.EventPermissionRequested, artel.EventElicitationRequested, artel.EventArtifactCreated, artel.EventArtifactUpdated}
}

// FollowOptions are the settings of [Log.Follow].
type FollowOptions struct {
	// Heartbeat is the time without events after which Follow reads the log
	// again and yields a zero event. 0: never.
	Heartbeat time.Duration

	// Idle is called when all known events have been yielded, before Follow
	// waits; a caller that buffers its output flushes it here. An error ends
	// the sequence. nil: not called.
	Idle func() error
}

const (
	batchSize = 100 // events per read; a follower buffers no more
	recent    = 64  // completed messages remembered, and events read at the start to find them
)

// Follow yields the events of c after a number, and then new ones as they
// arrive, until ctx ends. The end of ctx is no error. In between it yields
// message_delta events with number 0 and, after each Heartbeat without events,
// the zero event. A slow caller delays no other.
//
// An error is yielded once, at the end: of kind NotFound if the conversation is
// missing or deleted, Invalid if after lies beyond the log, otherwise an error
// of the store.
func (l *Log) Follow(ctx context.Context, owner artel.Owner, c artel.ConversationID, after artel.Seq, o FollowOptions) iter.Seq2[artel.Event, error] {
	return func(yield func(artel.Event, error) bool) {
		f := follower{log: l, owner: owner, conversation: c, after: after}
		if err := f.start(ctx); err != nil {
			if ctx.Err() == nil {
				yield(artel.Event{}, err)
			}
			return
		}
		listener := l.notifier.Listen(c)
		defer listener.Close()
		key := tailKey{owner, c}
		f.tail = l.tails.join(key, f.last)
		defer l.tails.leave(key, f.tail)
		timer := silenceTimer{after: o.Heartbeat}
		defer timer.stop()
		for {
			if o.Idle != nil {
				if err := o.Idle(); err != nil {
					yield(artel.Event{}, err)
					return
				}
			}
			n, err := timer.wait(ctx, listener)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(artel.Event{}, err)
				return
			}
			silent := n == Notification{}
			if n.Grown || silent {
				sent, ok := f.catchUp(ctx, yield)
				if !ok {
					return
				}
				silent = silent && !sent
			}
			if n.HasText() && !f.isCompleted(n.Message) {
				e, err := deltaEvent(n)
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

// A silenceTimer ends one follower's wait after a time without events. The
// timer is reset for each event and allocated again only after it has fired,
// because every follower waits again after every event.
type silenceTimer struct {
	after   time.Duration   // 0: never
	limited context.Context // Follow's context, ended by the timer; nil: not yet made
	end     context.CancelFunc
	timer   *time.Timer
}

// wait returns the next notification, or the zero one after the silence.
func (s *silenceTimer) wait(ctx context.Context, l Listener) (Notification, error) {
	if s.after <= 0 {
		return l.Wait(ctx)
	}
	if s.limited == nil {
		s.limited, s.end = context.WithCancel(ctx)
		s.timer = time.AfterFunc(s.after, s.end)
	} else {
		s.timer.Reset(s.after)
	}
	n, err := l.Wait(s.limited)
	over := s.limited.Err() != nil
	if !s.timer.Stop() { // it has fired, perhaps just now
		s.end()
		s.limited = nil
	}
	if err != nil && over && ctx.Err() == nil {
		return Notification{}, nil
	}
	return n, err
}

func (s *silenceTimer) stop() {
	if s.limited != nil {
		s.timer.Stop()
		s.end()
	}
}

func deltaEvent(n Notification) (artel.Event, error) {
	e, err := artel.NewEvent(n.Run, n.Agent, time.Now().UTC(), artel.MessageDelta{
		Message: n.Message, Text: n.Text, Reasoning: n.Reasoning, Reset: n.Reset,
	})
	e.Within = n.Within
	return e, err
}

// A follower is the position and state of one call of Follow.
type follower struct {
	log          *Log
	owner        artel.Owner
	conversation artel.ConversationID
	after        artel.Seq
	completed    []artel.MessageID // the most recent ones; later deltas of them are dropped
	last         artel.Seq         // end of the log at the start
	tail         *tail
}

// start checks the position, and notes which messages a reconnecting caller
// already has in full.
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
		for from := max(0, f.after-recent); from < f.after; {
			events, err := tx.Events.Read(f.conversation, from, int(f.after-from))
			if err != nil || len(events) == 0 {
				return err
			}
			for _, e := range events {
				f.note(e)
				from = e.Seq
			}
		}
		return nil
	})
}

// catchUp yields what the log has after the follower's position.
func (f *follower) catchUp(ctx context.Context, yield func(artel.Event, error) bool) (sent, ok bool) {
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
			return sent, false
		}
		for _, e := range events {
			f.note(e)
			f.after = e.Seq
			sent = true
			if !yield(e, nil) {
				return sent, false
			}
		}
		if near || !store.MayContinue(events, batchSize) {
			return sent, true
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
		return // payloads are not validated here
	}
	if len(f.completed) == recent {
		f.completed = append(f.completed[:0], f.completed[1:]...)
	}
	f.completed = append(f.completed, p.Message.ID)
}

func (f *follower) isCompleted(m artel.MessageID) bool {
	return slices.Contains(f.completed, m)
}
