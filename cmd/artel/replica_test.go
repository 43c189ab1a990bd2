// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/internal/secret"
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
	return &server{config: config{replica: replica{name: "a", bus: at}}, log: slog.New(slog.DiscardHandler)}
}

// TestReplicaFlags: what replicas cannot share is said before anything is opened.
func TestReplicaFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := secret.Variable + "=" + strings.Repeat("ab", 32)
	for _, c := range []struct {
		args, env []string
		want      string
	}{
		{[]string{"--bus", "nats://127.0.0.1:1"}, nil, "--replica NAME"},
		{[]string{"--replica", "a b"}, nil, "letters"},
		{[]string{"--replica", "a"}, nil, "--database"},
		{[]string{"--replica", "a", "--database", "postgres://127.0.0.1:1/x"}, nil, "--blobs"},
		{[]string{"--replica", "a", "--database", "postgres://127.0.0.1:1/x", "--blobs", "file:///tmp/x"}, nil, secret.Variable},
		{[]string{"--replica", "a", "--database", "postgres://127.0.0.1:1/x", "--blobs", "file:///tmp/x", "--standby"}, []string{key}, "take over"},
	} {
		_, err := launch(dir, with(bareEnvironment(dir), c.env...), append([]string{"serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "data")}, c.args...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.args, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); err == nil {
		t.Error("a data directory was made")
	}
}
