// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"testing"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
)

// TestBus: what one server writes, listeners of the other hear.
func TestBus(t *testing.T) {
	at, err := nats.NewServer(&nats.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	at.Start()
	defer func() { at.Shutdown(); at.WaitForShutdown() }()
	if !at.ReadyForConnections(time.Minute) {
		t.Fatal("NATS does not start")
	}
	var notifiers []event.Notifier
	for range 2 {
		s := newServerForBus(at.ClientURL())
		defer s.shut()
		n, err := s.openNotifier()
		if err != nil {
			t.Fatal(err)
		}
		notifiers = append(notifiers, n)
	}
	l := notifiers[1].Listen("cnv_a")
	defer l.Close()
	notifiers[0].Stream("cnv_a", event.Delta{Message: "msg_1", Text: "hello"})
	for got := ""; got != "hello"; {
		n, err := l.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got += n.Text
	}
	if _, err := newServerForBus("kafka://x").openNotifier(); artel.KindOf(err) != artel.Invalid {
		t.Errorf("another bus: %v", err)
	}
}

func newServerForBus(at string) *server {
	return &server{config: config{bus: at}, log: slog.New(slog.DiscardHandler)}
}
