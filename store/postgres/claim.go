// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/artelhq/artel"
)

// Check returns an error if the database of an address cannot be reached, or its account may
// not write to it.
func Check(ctx context.Context, address string) error {
	const op = "store.Check"
	pool, err := pgxpool.ParseConfig(address)
	if err != nil {
		return artel.Errorf(artel.Invalid, op, "", "the address of the database cannot be read: %w", err)
	}
	conn, err := pgx.ConnectConfig(ctx, pool.ConnConfig)
	if err != nil {
		return connecting(op, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	subject := pool.ConnConfig.Host + "/" + pool.ConnConfig.Database
	var writes *bool
	var readOnly string
	err = conn.QueryRow(ctx, "SELECT has_schema_privilege(current_schema(), 'CREATE'), current_setting('transaction_read_only')").Scan(&writes, &readOnly)
	switch {
	case err != nil:
		return failure(op, subject, err)
	case writes == nil:
		return artel.Errorf(artel.Invalid, op, subject, "the schema of search_path is not there")
	case !*writes:
		return artel.Errorf(artel.Denied, op, subject, "the account may not create tables in the schema; GRANT CREATE ON SCHEMA … TO the account")
	case readOnly == "on":
		return artel.Errorf(artel.Unavailable, op, subject, "the database is read-only, as a standby is")
	}
	return nil
}

// A Claim says which servers use a database: one alone, of which what it keeps in memory is
// true, since no other process writes, or several that share it. It is a lock of a connection of its
// own, which ends with the process. Begin with [Take], before [Open], whose migrations are for
// those who use the database.
type Claim struct {
	config *pgx.ConnConfig
	query  string
	lost   chan error
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// TakeOptions says how a database is claimed.
type TakeOptions struct {
	Wait   bool // for the end of the process that has it, and for a database that cannot be reached
	Shared bool // with others that share it
}

const (
	claimAlone  = "SELECT pg_try_advisory_lock(hashtextextended(current_schema() || '/server', 0))"
	claimShared = "SELECT pg_try_advisory_lock_shared(hashtextextended(current_schema() || '/server', 0))"
	// claimCheck is how often a claim is looked at, and tried again.
	claimCheck = time.Second
	// claimAnswer is how long the database may take for that.
	claimAnswer = 5 * time.Second
)

// Take claims the database of an address. If a process has it that does not share it, the
// error is of kind Conflict.
func Take(ctx context.Context, address string, o TakeOptions) (*Claim, error) {
	const op = "store.Take"
	pool, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, artel.Errorf(artel.Invalid, op, "", "the address of the database cannot be read: %w", err)
	}
	config := pool.ConnConfig
	config.RuntimeParams["application_name"] = "artel-claim"
	noticeDeath(config.RuntimeParams)
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 10 * time.Second
	}
	c := &Claim{config: config, query: claimAlone, lost: make(chan error, 1)}
	if o.Shared {
		c.query = claimShared
	}
	for {
		conn, err := c.try(ctx)
		if err == nil {
			background, cancel := context.WithCancel(context.WithoutCancel(ctx))
			c.cancel = cancel
			c.wg.Go(func() { c.keep(background, conn) })
			return c, nil
		}
		if !o.Wait || ctx.Err() != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, artel.Errorf(artel.Canceled, op, "", "%w", ctx.Err())
		case <-time.After(claimCheck / 10):
		}
	}
}

// try returns a connection that has the lock.
func (c *Claim) try(ctx context.Context) (*pgx.Conn, error) {
	const op = "store.Take"
	subject := c.config.Host + "/" + c.config.Database
	conn, err := pgx.ConnectConfig(ctx, c.config)
	if err != nil {
		return nil, connecting(op, err)
	}
	var held bool
	err = conn.QueryRow(ctx, c.query).Scan(&held)
	if err == nil && held {
		return conn, nil
	}
	_ = conn.Close(context.WithoutCancel(ctx))
	if err != nil {
		return nil, failure(op, subject, err)
	}
	if c.query == claimShared {
		return nil, artel.Errorf(artel.Conflict, op, subject, "a server that shares nothing uses this database; stop it and start it again with --replica")
	}
	return nil, artel.Errorf(artel.Conflict, op, subject, "another server uses this database; stop it, wait for its end with --standby, or give all of them --replica")
}

// keep looks whether the connection is there, and claims the database again after it was
// lost. That another process has the database then ends the claim.
func (c *Claim) keep(ctx context.Context, conn *pgx.Conn) {
	defer func() {
		end, stop := context.WithTimeout(context.WithoutCancel(ctx), claimAnswer)
		defer stop()
		_, _ = conn.Exec(end, "SELECT pg_advisory_unlock_all()") // the end of the connection is noticed later
		_ = conn.Close(end)
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(claimCheck):
		}
		answer, stop := context.WithTimeout(ctx, claimAnswer)
		err := conn.Ping(answer)
		if err != nil {
			_ = conn.Close(answer)
			var again *pgx.Conn
			if again, err = c.try(answer); err == nil {
				conn = again
			}
		}
		stop()
		if ctx.Err() == nil && artel.KindOf(err) == artel.Conflict {
			c.lost <- artel.Errorf(artel.Conflict, "store.Claim", c.config.Host+"/"+c.config.Database, "another server has taken the database over while it could not be reached")
			return
		}
	}
}

// Lost receives the reason when another process has taken the database over.
func (c *Claim) Lost() <-chan error { return c.lost }

// Release gives the database free.
func (c *Claim) Release() error {
	c.cancel()
	c.wg.Wait()
	return nil
}
