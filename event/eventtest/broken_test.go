// SPDX-License-Identifier: Apache-2.0

package eventtest

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/internal/contracttest"
)

// broken is a notifier that breaks one promise and otherwise keeps the contract.
type broken struct {
	event.Notifier
	notify  func(artel.ConversationID)
	stream  func(artel.ConversationID, event.Delta)
	discard func(artel.ConversationID, artel.CallPath)
	listen  func(artel.ConversationID) event.Listener
}

func (t *broken) Notify(c artel.ConversationID)                    { t.notify(c) }
func (t *broken) Discard(c artel.ConversationID, p artel.CallPath) { t.discard(c, p) }
func (t *broken) Stream(c artel.ConversationID, s event.Delta)     { t.stream(c, s) }
func (t *broken) Listen(c artel.ConversationID) event.Listener     { return t.listen(c) }

func newBroken() *broken {
	b := event.NewNotifier()
	return &broken{Notifier: b, notify: b.Notify, stream: b.Stream, discard: b.Discard, listen: b.Listen}
}

// An alteredListener changes what a listener returns.
type alteredListener struct {
	event.Listener
	wait  func(context.Context) (event.Notification, error)
	close func()
}

func (e *alteredListener) Wait(ctx context.Context) (event.Notification, error) { return e.wait(ctx) }

func (e *alteredListener) Close() {
	if e.close != nil {
		e.close()
	}
	e.Listener.Close()
}

// altered changes notifications; empty ones are dropped.
func altered(change func(*event.Notification)) func(*broken) {
	return func(t *broken) {
		t.listen = func(c artel.ConversationID) event.Listener {
			l := t.Notifier.Listen(c)
			return &alteredListener{Listener: l, wait: func(ctx context.Context) (event.Notification, error) {
				for {
					n, err := l.Wait(ctx)
					if err != nil {
						return n, err
					}
					if change(&n); n != (event.Notification{}) {
						return n, nil
					}
				}
			}}
		}
	}
}

func variants() map[string]func(*broken) {
	return map[string]func(*broken){
		"first wait": func(t *broken) { // forgets that the log may have grown before
			t.listen = func(c artel.ConversationID) event.Listener {
				l := t.Notifier.Listen(c)
				first := true
				return &alteredListener{Listener: l, wait: func(ctx context.Context) (event.Notification, error) {
					if first {
						first = false
						if _, err := l.Wait(ctx); err != nil {
							return event.Notification{}, err
						}
					}
					return l.Wait(ctx)
				}}
			}
		},
		"notification wakes": func(t *broken) { t.notify = func(artel.ConversationID) {} },
		"notification is remembered": func(t *broken) { // only who waits hears it
			var mu sync.Mutex
			waiting := 0
			t.notify = func(c artel.ConversationID) {
				mu.Lock()
				defer mu.Unlock()
				if waiting > 0 {
					t.Notifier.Notify(c)
				}
			}
			t.listen = func(c artel.ConversationID) event.Listener {
				l := t.Notifier.Listen(c)
				return &alteredListener{Listener: l, wait: func(ctx context.Context) (event.Notification, error) {
					mu.Lock()
					waiting++
					mu.Unlock()
					defer func() { mu.Lock(); waiting--; mu.Unlock() }()
					return l.Wait(ctx)
				}}
			}
		},
		"text arrives": altered(func(n *event.Notification) { n.Agent = "" }),
		"text is joined": func(t *broken) { // drops what comes too fast
			var mu sync.Mutex
			n := 0
			t.stream = func(c artel.ConversationID, s event.Delta) {
				mu.Lock()
				defer mu.Unlock()
				if n++; n < 500 {
					t.Notifier.Stream(c, s)
				}
			}
		},
		"reasoning arrives": func(t *broken) { // carries text alone
			t.stream = func(c artel.ConversationID, s event.Delta) {
				s.Reasoning = ""
				t.Notifier.Stream(c, s)
			}
		},
		"reasoning then text": func(t *broken) { // begins anew with the text
			t.stream = func(c artel.ConversationID, s event.Delta) {
				if s.Text != "" {
					t.Notifier.Discard(c, "")
				}
				t.Notifier.Stream(c, s)
			}
		},
		"late to reasoning": func(t *broken) { // who comes late gets the text alone
			t.listen = func(c artel.ConversationID) event.Listener {
				l := t.Notifier.Listen(c)
				first := true
				return &alteredListener{Listener: l, wait: func(ctx context.Context) (event.Notification, error) {
					n, err := l.Wait(ctx)
					if first {
						first, n.Reasoning = false, ""
					}
					return n, err
				}}
			}
		},
		"late listener": func(t *broken) { // says only what comes after
			t.listen = func(c artel.ConversationID) event.Listener {
				t.Notifier.Discard(c, "")
				return t.Notifier.Listen(c)
			}
		},
		"new message": func(t *broken) { // continues the first message
			t.stream = func(c artel.ConversationID, s event.Delta) {
				s.Message = "msg_1"
				t.Notifier.Stream(c, s)
			}
		},
		"several writers": func(t *broken) { // as if there were one
			t.stream = func(c artel.ConversationID, s event.Delta) {
				s.Within = ""
				t.Notifier.Stream(c, s)
			}
		},
		"discard": func(t *broken) { t.discard = func(artel.ConversationID, artel.CallPath) {} },
		"discard a thread": func(t *broken) { // and all others
			t.discard = func(c artel.ConversationID, _ artel.CallPath) { t.Notifier.Discard(c, "") }
		},
		"every listener": func(t *broken) { // one at a time
			var mu sync.Mutex
			taken := false
			t.listen = func(c artel.ConversationID) event.Listener {
				l := t.Notifier.Listen(c)
				return &alteredListener{Listener: l, wait: func(ctx context.Context) (event.Notification, error) {
					for {
						n, err := l.Wait(ctx)
						mu.Lock()
						mine := n.Text == "" || !taken
						taken = taken || n.Text != ""
						mu.Unlock()
						if mine || err != nil {
							return n, err
						}
					}
				}}
			}
		},
		"other conversations": func(t *broken) {
			t.notify = func(artel.ConversationID) { t.Notifier.Notify(here) }
		},
		"context": func(t *broken) {
			t.listen = func(c artel.ConversationID) event.Listener {
				l := t.Notifier.Listen(c)
				return &alteredListener{Listener: l, wait: func(ctx context.Context) (event.Notification, error) {
					n, err := l.Wait(ctx)
					if ctx.Err() == context.Canceled {
						err = nil
					}
					return n, err
				}}
			}
		},
		"close": func(t *broken) { // takes everybody along
			closed := false
			t.stream = func(c artel.ConversationID, s event.Delta) {
				if !closed {
					t.Notifier.Stream(c, s)
				}
			}
			t.listen = func(c artel.ConversationID) event.Listener {
				l := t.Notifier.Listen(c)
				return &alteredListener{Listener: l, wait: l.Wait, close: func() { closed = true }}
			}
		},
		"never blocks": func(t *broken) { // waits for a listener
			room := make(chan struct{}, 16)
			stopped := make(chan struct{})
			t.notify = func(artel.ConversationID) {
				select {
				case room <- struct{}{}:
				case <-stopped:
				}
			}
			t.listen = func(c artel.ConversationID) event.Listener {
				l := t.Notifier.Listen(c)
				return &alteredListener{Listener: l, wait: l.Wait, close: func() { close(stopped) }}
			}
		},
		"concurrent use": func(t *broken) { // loses a piece now and then
			var mu sync.Mutex
			n := 0
			t.stream = func(c artel.ConversationID, s event.Delta) {
				mu.Lock()
				defer mu.Unlock()
				if n++; n%10 != 0 {
					t.Notifier.Stream(c, s)
				}
			}
		},
	}
}

// TestBroken runs every clause on a notifier that must fail it. Time is not
// real here, so that what never comes costs none.
func TestBroken(t *testing.T) {
	contracttest.RunTwins(t, clauses(), variants(), func(t *testing.T, cl clause, breakIt func(*broken)) (err error) {
		synctest.Test(t, func(t *testing.T) {
			b := newBroken()
			breakIt(b)
			err = hold(t.Context(), cl, b)
		})
		return err
	})
}
