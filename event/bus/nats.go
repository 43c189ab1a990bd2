// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/artelhq/artel"
)

// NATS is a [Transport] over a server of NATS. It needs neither JetStream nor
// permissions beyond publishing and subscribing.
type NATS struct {
	conn   *nats.Conn
	losses atomic.Uint64
}

var _ Transport = (*NATS)(nil)

// Connect connects to servers, such as "nats://user:password@host:4222", with commas
// between several. A server that does not answer is tried again for ever.
func Connect(address string, log *slog.Logger) (*NATS, error) {
	const op = "bus.Connect"
	for one := range strings.SplitSeq(address, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls" && u.Scheme != "ws" && u.Scheme != "wss" { // the error would quote the password
			return nil, artel.Errorf(artel.Invalid, op, "", "the address of the bus: want nats://HOST:PORT or tls://HOST:PORT, with commas between several")
		}
	}
	n := &NATS{}
	lose := func(what string) func(*nats.Conn, error) {
		return func(_ *nats.Conn, err error) {
			n.losses.Add(1)
			if err != nil {
				log.Warn(what, "err", err)
			}
		}
	}
	failed := lose("the bus between servers has lost messages; followers read the log")
	conn, err := nats.Connect(address,
		nats.Name("artel"), nats.NoEcho(), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1),
		nats.Timeout(2*time.Second), nats.ReconnectWait(500*time.Millisecond), nats.PingInterval(5*time.Second), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(lose("the connection to the bus between servers has ended; it is made again")),
		nats.ReconnectHandler(func(*nats.Conn) { n.losses.Add(1) }),
		nats.ErrorHandler(func(c *nats.Conn, _ *nats.Subscription, err error) { failed(c, err) }),
	)
	if err != nil {
		return nil, artel.Errorf(artel.Invalid, op, "", "the bus between servers cannot be used: %w", err)
	}
	n.conn = conn
	return n, nil
}

// Close closes the connection.
func (n *NATS) Close() { n.conn.Close() }

// Publish implements [Transport].
func (n *NATS) Publish(subject string, message []byte) error {
	if err := n.conn.Publish(subject, message); err != nil {
		return artel.Errorf(artel.Unavailable, "bus.Publish", "", "the bus between servers cannot be reached: %w", err)
	}
	return nil
}

// Subscribe implements [Transport].
func (n *NATS) Subscribe(subject string, receive func(message []byte, reply func([]byte))) (func(), error) {
	s, err := n.conn.Subscribe(subject, func(m *nats.Msg) {
		receive(m.Data, func(data []byte) {
			if m.Reply != "" {
				_ = m.Respond(data) // who asked asks again
			}
		})
	})
	if err != nil {
		return nil, artel.Errorf(artel.Unavailable, "bus.Subscribe", "", "the bus between servers cannot be reached: %w", err)
	}
	return func() { _ = s.Unsubscribe() }, nil // fails on a closed connection only
}

// Request implements [Transport].
func (n *NATS) Request(ctx context.Context, subject string, message []byte) ([]byte, error) {
	m, err := n.conn.RequestWithContext(ctx, subject, message)
	if err != nil {
		return nil, artel.Errorf(artel.Unavailable, "bus.Request", "", "there is no reply: %w", err)
	}
	return m.Data, nil
}

// Health implements [Transport].
func (n *NATS) Health() (bool, uint64) { return n.conn.IsConnected(), n.losses.Load() }
