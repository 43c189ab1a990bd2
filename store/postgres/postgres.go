// SPDX-License-Identifier: Apache-2.0

// Package postgres implements [store.Store] in a schema of a PostgreSQL database, which
// several processes share.
//
// Begin with [Open]. The statements are those of store/rows; the tables are in
// migrations/.
//
// An update is one transaction, or shares one with others that come while many run: what fails
// of those has no effect on the others. It locks the row of each conversation that it reads or
// writes before it reads anything else of it, so that updates of one conversation happen
// one after the other, and see what the one before has written; updates of different
// conversations run at the same time. An update that waits in a circle with others, or
// loses its connection before the commit, is run again. If the connection is lost during
// the commit, the database is asked for the outcome; if that cannot be learned, the error
// has the code [artel.CodeOutcomeUnknown].
//
// Text may hold zero bytes, which are stored escaped. Ids and names are indexed, and so
// limited to about 2,700 bytes together.
//
// [NewBus] carries messages between these processes, by LISTEN and NOTIFY.
package postgres

import (
	"cmp"
	"context"
	cryptorand "crypto/rand"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows"
)

// Options are the settings of a connection to a database.
type Options struct {
	Connections int  // at most, to the server; 0: 16
	Existing    bool // refuse a database whose schema would have to be changed, as while an older program uses it
}

// Store is a database. It implements [store.Store].
type Store struct {
	rows.Store
	pool       *pgxpool.Pool
	name       string // of the connections, which tells processes apart
	dialect    *rows.Dialect
	lineage    *rows.Lineage
	statements sync.Map // by query: statement
	locks      rows.Locks[conversationKey]
	groups     groups
	lockers    *pgxpool.Pool // for [Store.Lock]
	patience   time.Duration // how long the outcome of a commit is asked for

	mu     sync.Mutex // guards closed and calls.Add
	closed bool
	calls  sync.WaitGroup
}

var _ store.Store = (*Store)(nil)

const (
	// idle is how long a transaction may do nothing before the server ends it, as when
	// its process was stopped.
	idle = time.Minute
	// attempts is how often an update is run that could not be finished.
	attempts = 6
	// patience is how long the outcome of a commit is asked for, and how long the end of a
	// transaction may take.
	patience = 5 * time.Second
)

// Open connects to the database of an address such as postgres://user@host/name, and
// brings its schema up to date. The parameter search_path of the address selects another
// schema than public, which must exist. The error is of kind Invalid if the address cannot
// be read, Unavailable if the database cannot be used, and Unsupported if a newer program
// has written it.
func Open(ctx context.Context, address string, o Options) (*Store, error) {
	const op = "store.Open"
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		// The error has the password removed.
		return nil, artel.Errorf(artel.Invalid, op, "", "the address of the database cannot be read: %w", err)
	}
	if o.Connections <= 0 {
		o.Connections = 16
	}
	config.MaxConns = int32(min(o.Connections, 10_000)) //nolint:gosec // small
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "60000"
	// The name of the connections tells this process from others; PostgreSQL cuts it after 63 bytes.
	name := artel.Shorten(cmp.Or(config.ConnConfig.RuntimeParams["application_name"], "artel"), 30) + "/" + cryptorand.Text()
	config.ConnConfig.RuntimeParams["application_name"] = name
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 10 * time.Second
	}
	config.ConnConfig.DialFunc = dialer().DialContext
	subject := config.ConnConfig.Host + "/" + config.ConnConfig.Database
	if err := migrate(ctx, config.ConnConfig, subject, o.Existing); err != nil {
		return nil, failure(op, subject, err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, failure(op, subject, err)
	}
	lockers, err := lockPool(ctx, config)
	if err != nil {
		pool.Close()
		return nil, failure(op, subject, err)
	}
	s := &Store{name: name, pool: pool, lockers: lockers, dialect: dialect(), lineage: &rows.Lineage{}, patience: patience}
	s.Store = rows.New(transactions{s})
	return s, nil
}

// enter counts a call; the caller must call s.calls.Done.
func (s *Store) enter(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return rows.Canceled(op, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return artel.Errorf(artel.Unavailable, op, "", "the database is closed")
	}
	s.calls.Add(1)
	return nil
}

// Close implements [store.Store]. Closing again does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	s.pool.Close()
	s.lockers.Close()
	return nil
}

// transactions implements [rows.DB].
type transactions struct{ *Store }

// Read implements [rows.DB].
func (s transactions) Read(ctx context.Context, op string, owner artel.Owner, fn func(*rows.Tx) error) error {
	if err := s.enter(ctx, op); err != nil {
		return err
	}
	defer s.calls.Done()
	c := &conn{store: s.Store, ctx: ctx, queue: []pending{{query: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}}}
	defer c.end()
	t := rows.Begin(ctx, c, rows.Options{Owner: owner, Dialect: s.dialect, Lineage: s.lineage})
	defer func() {
		t.End()
		s.rollBack(c)
	}()
	return fn(t)
}

// rollBack ends a transaction. A connection on which that fails is closed, and so leaves
// the pool.
func (s *Store) rollBack(c *conn) {
	if c.pooled == nil || c.pooled.Conn().IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), patience)
	defer cancel()
	if _, err := c.pooled.Exec(ctx, "ROLLBACK"); err != nil {
		_ = c.pooled.Conn().Close(ctx)
	}
}

// connecting returns the error of a call that got no connection.
func connecting(op string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return rows.Canceled(op, err)
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return failure(op, "", e)
	}
	return artel.Errorf(artel.Unavailable, op, "", "the database cannot be reached: %w", err)
}

// unreachable reports whether a connection could not be made, or has ended.
func unreachable(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "57P01" || e.Code == "57P02" || e.Code == "57P03" || e.Code == "25P03" // ended by the server, or starting
	}
	var network net.Error
	_, connect := errors.AsType[*pgconn.ConnectError](err)
	return connect || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &network) || pgconn.SafeToRetry(err)
}

// Write implements [rows.DB].
func (s transactions) Write(ctx context.Context, owner artel.Owner, fn func(*rows.Tx) error) error {
	const op = "store.Update"
	if err := s.enter(ctx, op); err != nil {
		return err
	}
	defer s.calls.Done()
	if owner != rows.Deployment { // those wait for their turn
		m, of, err := s.enterLane(ctx)
		switch {
		case err != nil:
			return err
		case of == nil:
			defer s.leaveLane()
		default:
			if alone, err := s.join(ctx, owner, fn, m, of); !alone {
				return err
			}
		}
	}
	return s.writeOwn(ctx, owner, fn)
}

// writeOwn runs fn in a transaction of its own.
func (s transactions) writeOwn(ctx context.Context, owner artel.Owner, fn func(*rows.Tx) error) error {
	const op = "store.Update"
	for attempt := 1; ; attempt++ {
		rerun, err := s.write(ctx, owner, fn)
		if !rerun || attempt == attempts {
			return err
		}
		select { // the others in the circle first
		case <-ctx.Done():
			return rows.Canceled(op, ctx.Err())
		case <-time.After(rand.N(time.Duration(attempt) * 10 * time.Millisecond)):
		}
	}
}

// write runs fn once. rerun reports that nothing was committed, and that it may succeed
// when it is run again.
func (s transactions) write(ctx context.Context, owner artel.Owner, fn func(*rows.Tx) error) (rerun bool, err error) {
	const op = "store.Update"
	c := &conn{store: s.Store, ctx: ctx, queue: []pending{{query: "BEGIN"}}}
	defer c.end()
	if owner == rows.Deployment {
		c.queue = append(c.queue, pending{query: s.statement(s.dialect.Turn).text, args: []any{""}})
	}
	begins := len(c.queue)
	t := rows.Begin(ctx, c, rows.Options{Owner: owner, Write: true, Dialect: s.dialect, Lineage: s.lineage})
	done := false // stays false if fn panics or calls runtime.Goexit
	defer func() {
		t.End()
		if !done {
			s.rollBack(c)
		}
	}()
	err = fn(t)
	switch {
	case c.failed != nil && c.pooled == nil: // there was no connection
		return false, c.failed
	case c.failed != nil && ctx.Err() == nil && (again(c.failed) || unreachable(c.failed)):
		return true, failure(op, "", c.failed)
	case err != nil:
		return false, err
	case ctx.Err() != nil:
		return false, rows.Canceled(op, ctx.Err())
	case c.failed != nil: // fn has taken no notice
		return false, c.Failure(op, "", c.failed)
	case c.pooled == nil && len(c.queue) == begins: // there is nothing to commit
		return false, nil
	}
	done, rerun, err = s.commit(c)
	return rerun, err
}

// commit sends what is left and commits, also if the context has ended. ended reports that
// the transaction is over, at the server or with its connection.
func (s *Store) commit(c *conn) (ended, rerun bool, err error) {
	const op = "store.Update"
	if c.xid == "" && len(c.queue) > 0 { // without the number, the outcome could not be asked for
		if err := c.send(numberQuery, nil, nil, func(r pgx.BatchResults) error { return r.QueryRow().Scan(&c.xid) }); err != nil {
			return false, again(err) || unreachable(err), c.Failure(op, "", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), idle)
	defer cancel()
	batch := &pgx.Batch{}
	queue, err := c.flush(batch)
	if err != nil {
		return false, false, c.Failure(op, "", err)
	}
	batch.Queue("COMMIT")
	results := c.pooled.SendBatch(ctx, batch)
	_, err = c.readQueue(queue, results)
	reached := err == nil
	var tag pgconn.CommandTag
	if reached {
		tag, err = results.Exec()
	}
	if closing := results.Close(); err == nil {
		err = closing
	}
	switch {
	case err == nil && tag.String() == "COMMIT":
		return true, false, nil
	case err == nil:
		return true, false, artel.Errorf(artel.Internal, op, "", "the database has answered the commit with %q", tag)
	case !c.pooled.Conn().IsClosed():
		return reached, again(err), failure(op, "", err)
	case c.xid == "":
		return true, false, nil // nothing was written
	}
	rerun, err = s.outcome(c, err)
	return true, rerun, err
}

// outcome asks the database whether a transaction was committed, whose connection was lost
// meanwhile.
func (s *Store) outcome(c *conn, cause error) (rerun bool, err error) {
	const op = "store.Update"
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), s.patience)
	defer cancel()
	for {
		var status *string
		err := s.pool.QueryRow(ctx, "SELECT pg_xact_status($1::text::xid8)", c.xid).Scan(&status)
		switch {
		case err == nil && status != nil && *status == "committed":
			return false, nil
		case err == nil && status != nil && *status == "aborted":
			return true, failure(op, "", cause)
		}
		select {
		case <-ctx.Done():
			unknown := artel.Errorf(artel.Unavailable, op, "", "the connection was lost while the database stored this, so it is not known whether it did: %w", cause)
			unknown.Code = artel.CodeOutcomeUnknown
			return false, unknown
		case <-time.After(50 * time.Millisecond):
		}
	}
}

var _ rows.Pipeline = (*conn)(nil)
