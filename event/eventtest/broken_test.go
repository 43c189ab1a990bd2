// SPDX-License-Identifier: Apache-2.0

package eventtest

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
)

// A twin is a bell that breaks one promise, and otherwise keeps the contract.
type twin struct {
	event.Bell
	ring   func(artel.ConversationID)
	say    func(artel.ConversationID, event.Speech)
	hush   func(artel.ConversationID)
	listen func(artel.ConversationID) event.Listener
}

func (t *twin) Ring(c artel.ConversationID)                  { t.ring(c) }
func (t *twin) Hush(c artel.ConversationID)                  { t.hush(c) }
func (t *twin) Say(c artel.ConversationID, s event.Speech)   { t.say(c, s) }
func (t *twin) Listen(c artel.ConversationID) event.Listener { return t.listen(c) }

func newTwin() *twin {
	b := event.NewBell()
	return &twin{Bell: b, ring: b.Ring, say: b.Say, hush: b.Hush, listen: b.Listen}
}

// An ear changes what a listener tells.
type ear struct {
	event.Listener
	wait  func(context.Context) (event.News, error)
	close func()
}

func (e *ear) Wait(ctx context.Context) (event.News, error) { return e.wait(ctx) }

func (e *ear) Close() {
	if e.close != nil {
		e.close()
	}
	e.Listener.Close()
}

// told changes news; what is empty then is not told.
func told(change func(*event.News)) func(*twin) {
	return func(t *twin) {
		t.listen = func(c artel.ConversationID) event.Listener {
			l := t.Bell.Listen(c)
			return &ear{Listener: l, wait: func(ctx context.Context) (event.News, error) {
				for {
					n, err := l.Wait(ctx)
					if err != nil {
						return n, err
					}
					if change(&n); n != (event.News{}) {
						return n, nil
					}
				}
			}}
		}
	}
}

func twins() map[string]func(*twin) {
	return map[string]func(*twin){
		"first wait": func(t *twin) { // forgets that the log may have grown before
			t.listen = func(c artel.ConversationID) event.Listener {
				l := t.Bell.Listen(c)
				first := true
				return &ear{Listener: l, wait: func(ctx context.Context) (event.News, error) {
					if first {
						first = false
						if _, err := l.Wait(ctx); err != nil {
							return event.News{}, err
						}
					}
					return l.Wait(ctx)
				}}
			}
		},
		"ring wakes": func(t *twin) { t.ring = func(artel.ConversationID) {} },
		"ring is remembered": func(t *twin) { // only who waits hears it
			var mu sync.Mutex
			waiting := 0
			t.ring = func(c artel.ConversationID) {
				mu.Lock()
				defer mu.Unlock()
				if waiting > 0 {
					t.Bell.Ring(c)
				}
			}
			t.listen = func(c artel.ConversationID) event.Listener {
				l := t.Bell.Listen(c)
				return &ear{Listener: l, wait: func(ctx context.Context) (event.News, error) {
					mu.Lock()
					waiting++
					mu.Unlock()
					defer func() { mu.Lock(); waiting--; mu.Unlock() }()
					return l.Wait(ctx)
				}}
			}
		},
		"text arrives": told(func(n *event.News) { n.Agent = "" }),
		"text is joined": func(t *twin) { // drops what comes too fast
			var mu sync.Mutex
			n := 0
			t.say = func(c artel.ConversationID, s event.Speech) {
				mu.Lock()
				defer mu.Unlock()
				if n++; n < 500 {
					t.Bell.Say(c, s)
				}
			}
		},
		"reasoning arrives": func(t *twin) { // carries text alone
			t.say = func(c artel.ConversationID, s event.Speech) {
				s.Reasoning = ""
				t.Bell.Say(c, s)
			}
		},
		"reasoning then text": func(t *twin) { // begins anew with the text
			t.say = func(c artel.ConversationID, s event.Speech) {
				if s.Text != "" {
					t.Bell.Hush(c)
				}
				t.Bell.Say(c, s)
			}
		},
		"late to reasoning": func(t *twin) { // who comes late gets the text alone
			t.listen = func(c artel.ConversationID) event.Listener {
				l := t.Bell.Listen(c)
				first := true
				return &ear{Listener: l, wait: func(ctx context.Context) (event.News, error) {
					n, err := l.Wait(ctx)
					if first {
						first, n.Reasoning = false, ""
					}
					return n, err
				}}
			}
		},
		"late listener": func(t *twin) { // says only what comes after
			t.listen = func(c artel.ConversationID) event.Listener {
				t.Bell.Hush(c)
				return t.Bell.Listen(c)
			}
		},
		"new message": func(t *twin) { // goes on with the first message
			t.say = func(c artel.ConversationID, s event.Speech) {
				s.Message = "msg_1"
				t.Bell.Say(c, s)
			}
		},
		"several speakers": func(t *twin) { // as if there were one
			t.say = func(c artel.ConversationID, s event.Speech) {
				s.Within = ""
				t.Bell.Say(c, s)
			}
		},
		"hush": func(t *twin) { t.hush = func(artel.ConversationID) {} },
		"every listener": func(t *twin) { // one at a time
			var mu sync.Mutex
			taken := false
			t.listen = func(c artel.ConversationID) event.Listener {
				l := t.Bell.Listen(c)
				return &ear{Listener: l, wait: func(ctx context.Context) (event.News, error) {
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
		"other conversations": func(t *twin) {
			t.ring = func(artel.ConversationID) { t.Bell.Ring(here) }
		},
		"context": func(t *twin) {
			t.listen = func(c artel.ConversationID) event.Listener {
				l := t.Bell.Listen(c)
				return &ear{Listener: l, wait: func(ctx context.Context) (event.News, error) {
					n, err := l.Wait(ctx)
					if ctx.Err() == context.Canceled {
						err = nil
					}
					return n, err
				}}
			}
		},
		"close": func(t *twin) { // takes everybody along
			closed := false
			t.say = func(c artel.ConversationID, s event.Speech) {
				if !closed {
					t.Bell.Say(c, s)
				}
			}
			t.listen = func(c artel.ConversationID) event.Listener {
				l := t.Bell.Listen(c)
				return &ear{Listener: l, wait: l.Wait, close: func() { closed = true }}
			}
		},
		"never blocks": func(t *twin) { // waits until somebody listens
			room := make(chan struct{}, 16)
			stopped := make(chan struct{})
			t.ring = func(artel.ConversationID) {
				select {
				case room <- struct{}{}:
				case <-stopped:
				}
			}
			t.listen = func(c artel.ConversationID) event.Listener {
				l := t.Bell.Listen(c)
				return &ear{Listener: l, wait: l.Wait, close: func() { close(stopped) }}
			}
		},
		"concurrent use": func(t *twin) { // loses a piece now and then
			var mu sync.Mutex
			n := 0
			t.say = func(c artel.ConversationID, s event.Speech) {
				mu.Lock()
				defer mu.Unlock()
				if n++; n%10 != 0 {
					t.Bell.Say(c, s)
				}
			}
		},
	}
}

// TestTwins holds every clause to a bell that must not pass it. Time is not
// real here, so that what never comes costs none.
func TestTwins(t *testing.T) {
	broken := twins()
	for _, cl := range clauses() {
		breakIt, ok := broken[cl.name]
		delete(broken, cl.name)
		if !ok {
			t.Errorf("clause %q has no broken twin", cl.name)
			continue
		}
		t.Run(cl.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTwin()
				breakIt(b)
				err := hold(t.Context(), cl, b)
				if err == nil {
					t.Error("the broken twin passes")
				}
				t.Log(err)
			})
		})
	}
	for name := range broken {
		t.Errorf("the twin %q belongs to no clause", name)
	}
}
