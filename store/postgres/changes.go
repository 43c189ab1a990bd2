// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/artelhq/artel/store"
)

// changesChannel is the channel of the triggers tell_change, of the schema.
const changesChannel = "SELECT 'artel_changes_' || md5(coalesce(current_schema(), ''))"

// heartbeat is how long a connection that listens may be silent before it is tried, and how long
// that may take.
const heartbeat = time.Second

// Watch implements [store.Watcher] by a connection that listens to what triggers tell. While it
// is lost, and before it is there, nothing is heard: anything may have changed. What this process has done
// itself it knows by the name of its connections.
func (s *Store) Watch(ctx context.Context, on func(store.Change)) error {
	var wait backoff
	for ctx.Err() == nil {
		_ = s.hearChanges(ctx, func() {
			wait = 0
			on(store.Change{})
		}, on)
		wait.sleep(ctx)
	}
	return nil
}

// hearChanges listens on one connection until that is lost.
func (s *Store) hearChanges(ctx context.Context, begun func(), on func(store.Change)) error {
	config := s.pool.Config().ConnConfig
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()} // a wait that ends leaves the connection as it is
	}
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), heartbeat)
		defer stop()
		_ = c.Close(ctx)
	}()
	var channel string
	if err := c.QueryRow(ctx, changesChannel).Scan(&channel); err != nil {
		return err
	}
	if _, err := c.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	begun()
	for {
		n, err := hear(ctx, c)
		if err != nil {
			return err
		}
		of, rest, _ := strings.Cut(n.Payload, " ")
		end := strings.LastIndexByte(rest, ' ')
		if end < 0 || rest[end+1:] == s.name {
			continue
		}
		on(store.Change{Of: store.ChangedRow(of), ID: rest[:end]})
	}
}

// hear waits for a notification. A connection whose other end is gone without a word would be
// silent too, and a revoked token valid until that is noticed: so a silent one is tried.
func hear(ctx context.Context, c *pgx.Conn) (*pgconn.Notification, error) {
	for {
		wait, stop := context.WithTimeout(ctx, heartbeat)
		n, err := c.WaitForNotification(wait)
		stop()
		if err == nil || ctx.Err() != nil || c.IsClosed() {
			return n, err
		}
		try, stop := context.WithTimeout(ctx, heartbeat)
		_, err = c.Exec(try, "SELECT 1")
		stop()
		if err != nil {
			return nil, err
		}
	}
}
