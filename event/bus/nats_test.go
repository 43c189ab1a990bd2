// SPDX-License-Identifier: Apache-2.0

package bus_test

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/event/bus"
	"github.com/artelhq/artel/event/eventtest"
)

// natsServer runs a server in this process; port -1 picks one.
func natsServer(tb testing.TB, port int) *server.Server {
	tb.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoLog: true, NoSigs: true})
	if err != nil {
		tb.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		tb.Fatal("the server does not start")
	}
	tb.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

func connect(tb testing.TB, address string) *bus.NATS {
	tb.Helper()
	n, err := bus.Connect(address, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(n.Close)
	return n
}

func TestNATS(t *testing.T) {
	s := natsServer(t, -1)
	eventtest.RunShared(t, func(tb testing.TB) (event.Notifier, event.Notifier) {
		// Each clause has a prefix of its own, as each deployment has.
		prefix := strings.ReplaceAll(tb.Name(), "/", "_")
		one := bus.New(connect(tb, s.ClientURL()), prefix, slog.New(slog.DiscardHandler))
		tb.Cleanup(one.Close)
		other := bus.New(connect(tb, s.ClientURL()), prefix, slog.New(slog.DiscardHandler))
		tb.Cleanup(other.Close)
		return one, other
	})
}

// TestNATSAway: a server that is away at first, and one that restarts, cost no more
// than time.
func TestNATSAway(t *testing.T) {
	s := natsServer(t, -1)
	address := s.ClientURL()
	port := s.Addr().(*net.TCPAddr).Port
	one, other := open(t, connect(t, address)), open(t, connect(t, address))
	const c artel.ConversationID = "cnv_a"
	l := other.Listen(c)
	defer l.Close()
	text := func(want string) {
		t.Helper()
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
	one.Stream(c, event.Delta{Message: "msg_1", Text: "before"})
	text("before")
	s.Shutdown()
	s.WaitForShutdown()
	for range 2 { // while nothing gets through, each second
		for n := (event.Notification{}); !n.Grown; {
			var err error
			if n, err = l.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	one.Stream(c, event.Delta{Message: "msg_2", Text: "meanwhile"})
	natsServer(t, port)
	text("meanwhile")
}

func TestConnect(t *testing.T) {
	for _, address := range []string{"", "127.0.0.1:4222", "http://127.0.0.1", "nats://user:secret@", "nats://user:%zzsecret@host", "nats://a:4222,b"} {
		n, err := bus.Connect(address, slog.New(slog.DiscardHandler))
		if artel.KindOf(err) != artel.Invalid || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, %v", address, n, err)
		}
	}
	n := connect(t, "nats://127.0.0.1:1")
	if ok, _ := n.Health(); ok {
		t.Error("nobody answers, and it is healthy")
	}
	if err := n.Publish("x", nil); artel.KindOf(err) != artel.Unavailable {
		t.Errorf("Publish: %v", err)
	}
}
