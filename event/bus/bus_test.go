// SPDX-License-Identifier: Apache-2.0

package bus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/event/bus"
	"github.com/artelhq/artel/event/eventtest"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A hub is a bus in memory, which may lose and repeat messages.
type hub struct {
	mu   sync.Mutex
	subs map[string][]*sub
	loss *rand.Rand // nil: nothing is lost
	row  int        // replies lost in a row
	down bool
	// delay returns how long a message takes, up to a time; nil: it takes none.
	delay func(time.Duration) time.Duration
}

type sub struct {
	port    *port
	receive func([]byte, func([]byte))
	mu      sync.Mutex
	queue   []func()
	running bool
	ended   bool
	row     int // losses in a row
}

// A port is the transport of one process.
type port struct {
	*hub
	losses uint64
	mute   bool // nothing can be sent
}

func newHub(loss *rand.Rand) *hub { return &hub{subs: map[string][]*sub{}, loss: loss} }

// copies says how often a message comes: at most two in a row are lost, which row counts. The
// caller holds mu.
func (h *hub) copies(row *int) int {
	switch {
	case h.down:
		return 0
	case h.loss == nil:
		return 1
	}
	n := h.loss.IntN(10)
	switch {
	case n < 2 && *row < 2:
		*row++
		return 0
	case n < 4:
		*row = 0
		return 2
	}
	*row = 0
	return 1
}

func (p *port) send(subject string, message []byte, reply func([]byte)) (heard bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.subs[subject] {
		if s.port == p {
			continue
		}
		heard = true
		for copy := range p.copies(&s.row) {
			if p.delay == nil {
				s.put(func() { s.receive(message, reply) })
				continue
			}
			late := p.delay(200 * time.Millisecond)
			if copy > 0 { // it overtakes nothing
				late += p.delay(5 * time.Second)
			}
			time.AfterFunc(late, func() { s.put(func() { s.receive(message, reply) }) })
		}
	}
	return heard
}

// put queues work for a subscription, which does one after the other.
func (s *sub) put(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue = append(s.queue, f); s.running {
		return
	}
	s.running = true
	go func() {
		for {
			s.mu.Lock()
			if len(s.queue) == 0 || s.ended {
				s.running = false
				s.mu.Unlock()
				return
			}
			f := s.queue[0]
			s.queue = s.queue[1:]
			s.mu.Unlock()
			f()
		}
	}()
}

// cut takes the connection away, or gives it back.
func (p *port) cut(mute bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = mute
}

func (p *port) Publish(subject string, message []byte) error {
	p.mu.Lock()
	mute := p.mute
	p.mu.Unlock()
	if mute {
		return artel.Errorf(artel.Unavailable, "test", "", "the connection is lost")
	}
	p.send(subject, message, func([]byte) {})
	return nil
}

func (p *port) Subscribe(subject string, receive func([]byte, func([]byte))) (func(), error) {
	s := &sub{port: p, receive: receive}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subs[subject] = append(p.subs[subject], s)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for i, one := range p.subs[subject] {
			if one == s {
				p.subs[subject] = append(p.subs[subject][:i:i], p.subs[subject][i+1:]...)
			}
		}
		if len(p.subs[subject]) == 0 {
			delete(p.subs, subject)
		}
		s.mu.Lock()
		s.ended = true
		s.mu.Unlock()
	}, nil
}

func (p *port) Request(ctx context.Context, subject string, message []byte) ([]byte, error) {
	replies := make(chan []byte, 4)
	p.mu.Lock()
	mute := p.mute
	p.mu.Unlock()
	if mute {
		return nil, artel.Errorf(artel.Unavailable, "test", "", "the connection is lost")
	}
	heard := p.send(subject, message, func(data []byte) {
		p.mu.Lock()
		n := p.copies(&p.row)
		p.mu.Unlock()
		if n > 0 {
			select {
			case replies <- data:
			default:
			}
		}
	})
	if !heard {
		return nil, artel.Errorf(artel.Unavailable, "test", "", "nobody has subscribed")
	}
	select {
	case data := <-replies:
		return data, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *port) Health() (bool, uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.down, p.losses
}

func (h *hub) subscriptions() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs)
}

func open(tb testing.TB, t bus.Transport) *bus.Bus {
	b := bus.New(t, "test", slog.New(slog.DiscardHandler))
	tb.Cleanup(b.Close)
	return b
}

func TestOne(t *testing.T) {
	eventtest.Run(t, func(tb testing.TB) event.Notifier { return open(tb, &port{hub: newHub(nil)}) })
}

func TestTwo(t *testing.T) {
	eventtest.RunShared(t, func(tb testing.TB) (event.Notifier, event.Notifier) {
		h := newHub(nil)
		return open(tb, &port{hub: h}), open(tb, &port{hub: h})
	})
}

// TestLossy: a fifth of the messages is lost, and another fifth comes twice.
func TestLossy(t *testing.T) {
	eventtest.RunShared(t, func(tb testing.TB) (event.Notifier, event.Notifier) {
		h := newHub(rand.New(rand.NewPCG(1, 2)))
		return open(tb, &port{hub: h}), open(tb, &port{hub: h})
	})
}

// logs returns the logs of two processes on one store.
func logs(t *testing.T, h *hub) (one, other *event.Log, c artel.ConversationID) {
	db := rowstest.Open(t)
	c = artel.NewConversationID(time.Now())
	if err := db.Update(t.Context(), "me", func(tx store.Tx) error { return tx.Conversations.Create(artel.Conversation{ID: c}) }); err != nil {
		t.Fatal(err)
	}
	return event.NewLog(db, open(t, &port{hub: h})), event.NewLog(db, open(t, &port{hub: h})), c
}

// TestFollowers: what a follower in another process gets of a lossy bus is the log,
// once and in order, and of each answer the bytes that were written, from the first.
func TestFollowers(t *testing.T) {
	for seed := range uint64(3) {
		h := newHub(rand.New(rand.NewPCG(seed, 7)))
		one, other, c := logs(t, h)
		const messages = 6
		texts := map[artel.MessageID]string{}
		for i := range messages {
			texts[artel.MessageID(fmt.Sprint("msg_", i))] = strings.Repeat(fmt.Sprintf("text %d, 中文. ", i), 20+i)
		}
		var work sync.WaitGroup
		work.Go(func() {
			var last artel.Seq
			seen, done := map[artel.MessageID]string{}, 0
			for e, err := range other.Follow(t.Context(), "me", c, 0, event.FollowOptions{}) {
				if err != nil {
					t.Error(err)
					return
				}
				switch e.Type {
				case artel.EventMessageDelta:
					var d artel.MessageDelta
					if err := json.Unmarshal(e.Data, &d); err != nil {
						t.Error(err)
						return
					}
					if d.Reset {
						seen[d.Message] = ""
					}
					if seen[d.Message] += d.Text; !strings.HasPrefix(texts[d.Message], seen[d.Message]) {
						t.Errorf("of %s: %q", d.Message, seen[d.Message])
						return
					}
				default:
					if e.Seq != last+1 {
						t.Errorf("event %d after %d", e.Seq, last)
					}
					last = e.Seq
					if done++; done == messages {
						return
					}
				}
			}
		})
		for i := range messages {
			id := artel.MessageID(fmt.Sprint("msg_", i))
			for text := texts[id]; text != ""; {
				n := min(len(text), 7)
				for n < len(text) && !utf8.RuneStart(text[n]) {
					n++
				}
				one.Notifier().Stream(c, event.Delta{Run: "run_1", Agent: "lead", Message: id, Text: text[:n]})
				text = text[n:]
			}
			e, err := artel.NewEvent("run_1", "lead", time.Now().UTC(), artel.MessageCompleted{Message: artel.Message{ID: id}})
			if err == nil {
				_, err = one.Append(t.Context(), "me", c, e)
			}
			if err != nil {
				t.Fatal(err)
			}
			one.Notifier().Discard(c, "")
		}
		work.Wait()
	}
}

// TestCharacters: what is cut on its way is cut between characters.
func TestCharacters(t *testing.T) {
	h := newHub(nil)
	one, other := open(t, &port{hub: h}), open(t, &port{hub: h})
	want := strings.Repeat("中", 100_000) // more than two messages carry
	hear := func(l event.Listener) {
		t.Helper()
		defer l.Close()
		for got, thought := "", ""; got != want || thought != want; {
			n, err := l.Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, thought = got+n.Text, thought+n.Reasoning
			if !utf8.ValidString(n.Text) || !utf8.ValidString(n.Reasoning) || !strings.HasPrefix(want, got) || !strings.HasPrefix(want, thought) {
				t.Fatalf("after %d and %d bytes: a piece of %d and %d", len(thought), len(got), len(n.Reasoning), len(n.Text))
			}
		}
	}
	early := other.Listen("cnv_a")
	one.Stream("cnv_a", event.Delta{Message: "msg_1", Text: want, Reasoning: want})
	hear(early)
	hear(other.Listen("cnv_a"))
}

// TestDown: while nothing gets through, followers read the log by themselves.
func TestDown(t *testing.T) {
	h := newHub(nil)
	one, other, c := logs(t, h)
	h.mu.Lock()
	h.down = true
	h.mu.Unlock()
	got := make(chan artel.Event)
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		for e, err := range other.Follow(ctx, "me", c, 0, event.FollowOptions{}) { // without heartbeats
			if err != nil {
				t.Error(err)
			}
			got <- e
		}
	})
	for i := range 2 {
		e, err := artel.NewEvent("run_1", "lead", time.Now().UTC(), artel.MessageCompleted{})
		if err == nil {
			_, err = one.Append(t.Context(), "me", c, e)
		}
		if err != nil {
			t.Fatal(err)
		}
		if e := <-got; e.Seq != artel.Seq(i+1) {
			t.Errorf("got %d", e.Seq)
		}
	}
	stop()
	work.Wait()
}

// TestSubscriptions: a process subscribes to what it listens to and writes, and ends
// that.
func TestSubscriptions(t *testing.T) {
	h := newHub(nil)
	one, other := open(t, &port{hub: h}), open(t, &port{hub: h})
	want := func(what string, n int) {
		t.Helper()
		if got := h.subscriptions(); got != n {
			t.Errorf("%s: %d subscriptions, want %d", what, got, n)
		}
	}
	const everyone = 1 // what is for all processes
	one.Notify("cnv_a")
	want("to tell", everyone)
	one.Stream("cnv_a", event.Delta{Message: "msg_1", Text: "x"})
	want("to write", everyone+1)
	a, b, c := other.Listen("cnv_a"), other.Listen("cnv_a"), other.Listen("cnv_b")
	want("to listen to two", everyone+3)
	a.Close()
	a.Close()
	want("one of two in a conversation is left", everyone+3)
	b.Close()
	want("one conversation is left", everyone+2)
	c.Close()
	one.Discard("cnv_a", "")
	want("in the end", everyone)
}

// TestLateDiscard: a process that has lost a run, and notices late, discards the answer that
// another one writes by now. It comes back.
func TestLateDiscard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(nil)
		late, writer, third := open(t, &port{hub: h}), open(t, &port{hub: h}), open(t, &port{hub: h})
		const c artel.ConversationID = "cnv_a"
		say := func(text string) {
			writer.Stream(c, event.Delta{Message: "msg_1", Text: text})
			synctest.Wait()
		}
		var listeners []event.Listener
		for _, b := range []*bus.Bus{writer, third} {
			l := b.Listen(c)
			defer l.Close()
			listeners = append(listeners, l)
		}
		read := func(want string) {
			t.Helper()
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			for i, l := range listeners {
				for got := ""; got != want; {
					n, err := l.Wait(ctx)
					if err != nil {
						t.Fatalf("listener %d has %q, want %q: %v", i, got, want, err)
					}
					if n.Reset {
						got = ""
					}
					got += n.Text
				}
			}
		}
		say("one ")
		read("one ")
		late.Discard(c, "")
		synctest.Wait()
		say("two")
		read("one two")
	})
}

// TestFirstLost: the first message that is heard of a process may follow another one, which
// is lost.
func TestFirstLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(nil)
		one, other := open(t, &port{hub: h}), open(t, &port{hub: h})
		const c artel.ConversationID = "cnv_a"
		l := other.Listen(c)
		defer l.Close()
		if _, err := l.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		set := func(down bool) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.down = down
		}
		set(true)
		one.Notify(c)
		set(false)
		one.Discard(c, "")
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if n, err := l.Wait(ctx); err != nil || !n.Grown {
			t.Errorf("got %+v, %v", n, err)
		}
	})
}
