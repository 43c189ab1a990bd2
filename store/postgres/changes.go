// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/artelhq/artel/store"
)

// changesChannel is the channel of the triggers tell_change, of the schema.
const changesChannel = "SELECT 'artel_changes_' || md5(coalesce(current_schema(), ''))"

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
	c, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	var channel string
	if err := c.QueryRow(ctx, changesChannel).Scan(&channel); err != nil {
		return err
	}
	if _, err := c.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	begun()
	for {
		n, err := c.WaitForNotification(ctx)
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
