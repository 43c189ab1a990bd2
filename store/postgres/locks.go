// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store/rows"
)

// A conversationKey names a conversation of an owner. The updates of one process to one
// conversation run one after the other. The database does so too, by the lock of a row; but
// transactions that wait for such a lock hold a connection each, and are woken at a high price.
type conversationKey struct {
	owner        artel.Owner
	conversation artel.ConversationID
}

// lockWait is how long an update waits while it holds what another one may wait for. Then it
// continues without the lock, and the database finds out whether they wait in a circle.
const lockWait = 100 * time.Millisecond

// mostLocks is how many locks of names a process holds or waits for at once. They have
// connections of their own, since what a holder does needs some too.
const mostLocks = 8

// lockPool returns the pool of those connections. It makes none until they are needed.
func lockPool(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, error) {
	c := config.Copy()
	c.MaxConns, c.MinConns, c.MinIdleConns, c.MaxConnIdleTime = mostLocks, 0, 0, time.Minute
	noticeDeath(c.ConnConfig.RuntimeParams)
	c.ConnConfig.RuntimeParams["application_name"] = "artel-locks"
	return pgxpool.NewWithConfig(ctx, c)
}

// noticeDeath has the server notice within 20 seconds that a machine is gone which holds a
// lock, and not within hours.
func noticeDeath(params map[string]string) {
	params["tcp_keepalives_idle"], params["tcp_keepalives_interval"], params["tcp_keepalives_count"] = "10", "5", "2"
}

// Lock implements [store.Locker] by the locks of a session. Of this process, one waits there.
func (s *Store) Lock(ctx context.Context, name string) (release func(), err error) {
	const op = "store.Lock"
	here, err := s.Store.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			here()
		}
	}()
	if err := s.enter(ctx, op); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	c, err := s.lockers.Acquire(ctx)
	if err != nil {
		return nil, connecting(op, err)
	}
	if _, err := c.Exec(ctx, "SELECT pg_advisory_lock"+lockKey, escape(name)); err != nil {
		_ = c.Conn().Close(context.WithoutCancel(ctx)) // it may have the lock
		c.Release()
		if ctx.Err() != nil {
			return nil, rows.Canceled(op, ctx.Err())
		}
		return nil, failure(op, name, err)
	}
	return func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer stop()
		if _, err := c.Exec(ctx, "SELECT pg_advisory_unlock"+lockKey, escape(name)); err != nil {
			_ = c.Conn().Close(ctx) // which releases it too
		}
		c.Release()
		here()
	}, nil
}

const lockKey = "(hashtextextended(current_schema() || '/lock/' || $1, 0))"
