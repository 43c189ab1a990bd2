// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/event/bus"
	"github.com/artelhq/artel/event/eventtest"
	"github.com/artelhq/artel/store/postgres"
)

var _ bus.Transport = (*postgres.Bus)(nil)

func newBus(tb testing.TB, address string) *postgres.Bus {
	tb.Helper()
	b, err := postgres.NewBus(address, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(b.Close)
	return b
}

func notifier(tb testing.TB, t bus.Transport, prefix string) *bus.Bus {
	b := bus.New(t, prefix, slog.New(slog.DiscardHandler))
	tb.Cleanup(b.Close)
	return b
}

func healthy(tb testing.TB, all ...*postgres.Bus) {
	tb.Helper()
	for _, b := range all {
		for ok := false; !ok; ok, _ = b.Health() {
			select {
			case <-tb.Context().Done():
				tb.Fatal("it does not become healthy")
			case <-time.After(time.Millisecond):
			}
		}
	}
}

// A lossy transport loses every fifth message, and publishes every fifth twice.
type lossy struct {
	*postgres.Bus
	mu     sync.Mutex
	random *rand.Rand
}

func (l *lossy) Publish(subject string, message []byte) error {
	l.mu.Lock()
	n := l.random.IntN(5)
	l.mu.Unlock()
	if n == 0 {
		return nil
	}
	if n == 1 {
		if err := l.Bus.Publish(subject, message); err != nil {
			return err
		}
	}
	return l.Bus.Publish(subject, message)
}

// TestBus runs the kit of notifiers: the transports of two processes serve all clauses.
func TestBus(t *testing.T) {
	address := server.Schema(t)
	one, other := newBus(t, address), newBus(t, address)
	// Each clause has a prefix of its own, as if it had a bus of its own.
	prefix := func(tb testing.TB) string { return strings.NewReplacer("/", "_", " ", "_").Replace(tb.Name()) }
	t.Run("sound", func(t *testing.T) {
		eventtest.RunShared(t, func(tb testing.TB) (event.Notifier, event.Notifier) {
			return notifier(tb, one, prefix(tb)), notifier(tb, other, prefix(tb))
		})
	})
	t.Run("lossy", func(t *testing.T) {
		first := &lossy{Bus: one, random: rand.New(rand.NewPCG(1, 2))}
		second := &lossy{Bus: other, random: rand.New(rand.NewPCG(3, 4))}
		eventtest.RunShared(t, func(tb testing.TB) (event.Notifier, event.Notifier) {
			return notifier(tb, first, prefix(tb)), notifier(tb, second, prefix(tb))
		})
	})
}

// TestBusAway: connections that the database ends, and a database that restarts, cost no
// more than time.
func TestBusAway(t *testing.T) {
	address := server.Schema(t)
	first, second := newBus(t, address), newBus(t, address)
	one, other := notifier(t, first, "test"), notifier(t, second, "test")
	healthy(t, first, second)
	const c artel.ConversationID = "cnv_a"
	l := other.Listen(c)
	defer l.Close()
	var message int
	text := func() { // also what is published while nothing gets through
		t.Helper()
		message++
		want := fmt.Sprint("text ", message)
		one.Stream(c, event.Delta{Message: artel.MessageID(fmt.Sprint("msg_", message)), Text: want})
		for got := ""; got != want; {
			n, err := l.Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n.Reset {
				got = ""
			}
			got += n.Text
		}
	}
	text()
	if err := server.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'artel-bus'"); err != nil {
		t.Fatal(err)
	}
	text()
	healthy(t, first, second)
	_, before := second.Health()
	restarted, err := server.Restart(func() {
		for {
			if a, _ := first.Health(); !a {
				if b, _ := second.Health(); !b {
					break
				}
			}
			time.Sleep(time.Millisecond)
		}
		for range 2 { // while nothing gets through, each second
			for n := (event.Notification{}); !n.Grown; {
				var err error
				if n, err = l.Wait(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	text()
	healthy(t, first, second)
	if _, after := second.Health(); restarted && after == before {
		t.Error("that messages may have been lost is not counted")
	}
}

// TestBusSizes: messages of any bytes and lengths arrive once and in order, those that are too long are
// refused.
func TestBusSizes(t *testing.T) {
	address := server.Schema(t)
	one, other, elsewhere := newBus(t, address), newBus(t, address), newBus(t, server.Schema(t))
	healthy(t, one, other, elsewhere)
	got := make(chan []byte, 100)
	for b, receive := range map[*postgres.Bus]func([]byte, func([]byte)){
		other:     func(m []byte, reply func([]byte)) { got <- m; reply(append([]byte("re: "), m...)) },
		one:       func([]byte, func([]byte)) { t.Error("a process hears itself") },
		elsewhere: func([]byte, func([]byte)) { t.Error("another deployment hears it") },
	} {
		cancel, err := b.Subscribe("a.b", receive)
		if err != nil {
			t.Fatal(err)
		}
		defer cancel()
	}
	const most = 1 << 20
	ascii, binary := bytes.Repeat([]byte("x y"), most/3), make([]byte, most)
	for i := range binary {
		binary[i] = byte(i * i >> 3)
	}
	var want [][]byte
	for _, n := range []int{0, 1, 7_000, 7_700, 7_810, 7_900, 8_000, 16_000, 100_000, 1_000_000} {
		want = append(want, ascii[:n], binary[:n])
	}
	for _, m := range want {
		if err := one.Publish("a.b", m); err != nil {
			t.Fatal(err)
		}
		if len(m) > 100_000 { // what waits is limited
			if reply, err := one.Request(t.Context(), "a.b", []byte("and?")); err != nil || string(reply) != "re: and?" {
				t.Fatalf("%q, %v", reply, err)
			}
		}
	}
	for _, m := range want {
		next := <-got
		for string(next) == "and?" {
			next = <-got
		}
		if !bytes.Equal(next, m) {
			t.Errorf("got %d bytes, want %d", len(next), len(m))
		}
	}
	if err := one.Publish("a.b", make([]byte, most+1)); artel.KindOf(err) != artel.TooLarge {
		t.Errorf("a message that is too long: %v", err)
	}
	for _, subject := range []string{"", "a b", "a\n", "ä", strings.Repeat("x", 256)} {
		if err := one.Publish(subject, nil); artel.KindOf(err) != artel.Invalid {
			t.Errorf("the subject %q: %v", subject, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := one.Request(ctx, "nobody", nil); artel.KindOf(err) != artel.Unavailable {
		t.Errorf("a question to nobody: %v", err)
	}
}

// TestBusFull: what waits for a database that is away is limited.
func TestBusFull(t *testing.T) {
	b := newBus(t, "postgres://artel@127.0.0.1:1/none")
	if ok, _ := b.Health(); ok {
		t.Error("nobody answers, and it is healthy")
	}
	var err error
	for n := 0; err == nil && n < 100; n++ {
		err = b.Publish("x", make([]byte, 1<<20))
	}
	if artel.KindOf(err) != artel.Unavailable {
		t.Errorf("got %v", err)
	}
	b.Close()
	if err := b.Publish("x", nil); artel.KindOf(err) != artel.Unavailable {
		t.Errorf("a closed bus: %v", err)
	}
	if _, err := postgres.NewBus("postgres://me:secret@[/x", slog.New(slog.DiscardHandler)); artel.KindOf(err) != artel.Invalid || strings.Contains(err.Error(), "secret") {
		t.Errorf("an address that cannot be read: %v", err)
	}
}

// TestBusPooler: behind a pooler that passes no notifications on, the bus is not healthy, and
// the log says why.
func TestBusPooler(t *testing.T) {
	u, err := url.Parse(server.Schema(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	const name = ".s.PGSQL.5432"
	network, real := "unix", filepath.Join(q.Get("host"), name)
	if u.Host != "" {
		network, real = "tcp", u.Host
	}
	q.Set("host", t.TempDir())
	l, err := net.Listen("unix", filepath.Join(q.Get("host"), name))
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery, u.Host = q.Encode(), ""
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer client.Close()
				upstream, err := net.Dial(network, real)
				if err != nil {
					return
				}
				defer upstream.Close()
				running.Go(func() {
					_, _ = io.Copy(upstream, client)
					_ = upstream.Close()
				})
				buffer := make([]byte, 64<<10)
				for {
					n, err := upstream.Read(buffer)
					if err != nil {
						return
					}
					if buffer[0] == 'A' { // a notification, and what follows
						continue
					}
					if _, err := client.Write(buffer[:n]); err != nil {
						return
					}
				}
			})
		}
	})
	defer running.Wait()
	defer l.Close()
	said := make(chan struct{})
	var once sync.Once
	log := slog.New(slog.NewTextHandler(writer(func(line []byte) {
		if bytes.Contains(line, []byte("pgbouncer")) {
			once.Do(func() { close(said) })
		}
	}), nil))
	b, err := postgres.NewBusDeaf(u.String(), log, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	<-said
	if ok, _ := b.Health(); ok {
		t.Error("it is healthy")
	}
}

type writer func([]byte)

func (w writer) Write(line []byte) (int, error) { w(line); return len(line), nil }
