// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/artelhq/artel"
)

// LocalNotifier is a [Notifier] for a single process. It keeps one copy of
// each answer being written, whatever the number of listeners, and no state
// for conversations without a writer or a listener. It starts no goroutines.
type LocalNotifier struct {
	mu    sync.Mutex
	feeds map[artel.ConversationID]*feed
}

var _ Notifier = (*LocalNotifier)(nil)

// NewNotifier returns a notifier without listeners.
func NewNotifier() *LocalNotifier { return &LocalNotifier{feeds: map[artel.ConversationID]*feed{}} }

// A feed is the state of one conversation that has a listener or a writer. It
// is guarded by LocalNotifier.mu.
type feed struct {
	listeners int
	notified  uint64        // calls of Notify
	changed   chan struct{} // closed at the next change; nil: no listener waits

	answers uint64    // answers started; the last one's number
	active  []*answer // being written, one for each Within
}

// An answer is one that is being written.
type answer struct {
	number    uint64
	latest    Delta           // the newest piece; the builders hold its text and reasoning
	text      strings.Builder // strings returned by the builders share memory and never change
	reasoning strings.Builder
}

// answer returns the answer that d belongs to.
func (f *feed) answer(d Delta) *answer {
	next := func() *answer {
		f.answers++
		return &answer{number: f.answers}
	}
	for i, a := range f.active {
		if a.latest.Within == d.Within {
			if a.latest.Message != d.Message {
				f.active[i] = next()
			}
			return f.active[i]
		}
	}
	f.active = append(f.active, next())
	return f.active[len(f.active)-1]
}

// Notify implements [Notifier].
func (n *LocalNotifier) Notify(c artel.ConversationID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if f := n.feeds[c]; f != nil {
		f.notified++
		f.wake()
	}
}

// Stream implements [Notifier].
func (n *LocalNotifier) Stream(c artel.ConversationID, d Delta) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.feed(c)
	a := f.answer(d)
	a.latest = d
	a.text.WriteString(d.Text)
	a.reasoning.WriteString(d.Reasoning)
	f.wake()
}

// Discard implements [Notifier].
func (n *LocalNotifier) Discard(c artel.ConversationID, within artel.CallPath) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if f := n.feeds[c]; f != nil {
		f.active = slices.DeleteFunc(f.active, func(a *answer) bool { return a.latest.Within.In(within) })
		n.removeUnused(c, f)
	}
}

// Writing returns the answers that are being written in c, each as one piece.
func (n *LocalNotifier) Writing(c artel.ConversationID) []Delta {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.feeds[c]
	if f == nil {
		return nil
	}
	var all []Delta
	for _, a := range f.active {
		d := a.latest
		d.Text, d.Reasoning = a.text.String(), a.reasoning.String()
		all = append(all, d)
	}
	return all
}

// Listen implements [Notifier].
func (n *LocalNotifier) Listen(c artel.ConversationID) Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.feed(c)
	f.listeners++
	return &listener{notifier: n, conversation: c, feed: f, notified: f.notified, first: true}
}

func (n *LocalNotifier) feed(c artel.ConversationID) *feed {
	f := n.feeds[c]
	if f == nil {
		f = &feed{}
		n.feeds[c] = f
	}
	return f
}

func (n *LocalNotifier) removeUnused(c artel.ConversationID, f *feed) {
	if f.listeners == 0 && len(f.active) == 0 {
		delete(n.feeds, c)
	}
}

// wake releases every waiting listener.
func (f *feed) wake() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// A listener implements [Listener] and tracks what it has received.
type listener struct {
	notifier     *LocalNotifier
	conversation artel.ConversationID
	feed         *feed // nil: closed
	first        bool
	notified     uint64
	delivered    []delivered
	turn         int // the active answer to look at first, so that each gets its turn
}

// delivered is how much of one answer a listener has received.
type delivered struct {
	answer          uint64
	text, reasoning int // bytes
}

// Wait implements [Listener].
func (l *listener) Wait(ctx context.Context) (Notification, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Notification{}, err
		}
		n, changed, err := l.poll()
		if err != nil || n != (Notification{}) {
			return n, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// poll returns a notification, or the channel to wait on if there is none.
func (l *listener) poll() (Notification, <-chan struct{}, error) {
	l.notifier.mu.Lock()
	defer l.notifier.mu.Unlock()
	f := l.feed
	if f == nil {
		return Notification{}, nil, artel.Errorf(artel.Internal, "event.Wait", string(l.conversation), "the listener is closed")
	}
	n := Notification{Grown: l.first || l.notified != f.notified}
	l.first, l.notified = false, f.notified
	l.takeText(f, &n)
	if n != (Notification{}) {
		return n, nil, nil
	}
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return n, f.changed, nil
}

// takeText moves the new text of one active answer into n.
func (l *listener) takeText(f *feed, n *Notification) {
	l.delivered = slices.DeleteFunc(l.delivered, func(d delivered) bool {
		return !slices.ContainsFunc(f.active, func(a *answer) bool { return a.number == d.answer })
	})
	for i := range f.active {
		at := (l.turn + i) % len(f.active)
		a := f.active[at]
		j := slices.IndexFunc(l.delivered, func(d delivered) bool { return d.answer == a.number })
		if j < 0 {
			j = len(l.delivered)
			l.delivered = append(l.delivered, delivered{answer: a.number})
		}
		d := &l.delivered[j]
		text, reasoning := a.text.String()[d.text:], a.reasoning.String()[d.reasoning:]
		if text == "" && reasoning == "" {
			continue
		}
		n.Reset = d.text+d.reasoning == 0
		n.Delta = a.latest
		n.Text, n.Reasoning = text, reasoning
		d.text += len(text)
		d.reasoning += len(reasoning)
		l.turn = at + 1
		return
	}
}

// Close implements [Listener]. Closing again does nothing.
func (l *listener) Close() {
	l.notifier.mu.Lock()
	defer l.notifier.mu.Unlock()
	if l.feed == nil {
		return
	}
	l.feed.listeners--
	l.notifier.removeUnused(l.conversation, l.feed)
	l.feed = nil
}
