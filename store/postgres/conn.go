// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store/rows"
)

// A conn runs the statements of one transaction: of one update, or of several that share it, one
// after the other. It implements [rows.Pipeline].
//
// A round trip to the server is what a statement costs. So the transaction begins together
// with its first statement, asks for its number together with the first that writes or
// locks, and commits together with the last ones.
type conn struct {
	store  *Store
	pooled *pgxpool.Conn              // nil: nothing was sent
	locks  map[conversationKey]func() // that release them; nil: not obtained in time
	ctx    context.Context            //nolint:containedctx // of the transaction, which is one call
	queue  []pending                  // statements to send before the next one
	xid    string                     // number of the transaction; empty: it has written nothing
	failed error                      // the transaction is lost
	begun  bool                       // something has come of it
	group  bool                       // several updates share the transaction
	wrote  bool                       // the update that uses it now may have changed something
	sent   int                        // how often statements were sent
}

// A pending statement returns nothing that anybody needs.
type pending struct {
	query   string
	args    []any
	missing error // of a query without a row; nil: it needs none
}

// errBusy is the error of a member of a group for whose conversation another transaction works.
var errBusy = errors.New("another update of the conversation is at work")

// errExists is the error of an INSERT whose row is there already.
var errExists = errors.New("already exists")

// A statement is a query in PostgreSQL's form.
type statement struct {
	text  string
	plain string // without what insert adds
	// insert: no row is inserted if there is one with the same key, which does not
	// end the transaction as an error would.
	insert bool
	// guarded: it may break a unique index, and needs a savepoint.
	guarded bool
}

// statement translates a query, once.
func (s *Store) statement(query string) statement {
	if st, ok := s.statements.Load(query); ok {
		return st.(statement)
	}
	st := translate(query)
	s.statements.Store(query, st)
	return st
}

// translate numbers the placeholders: "?" is the next one after the highest.
func translate(query string) statement {
	var b strings.Builder
	highest := 0
	for i := 0; i < len(query); i++ {
		switch query[i] {
		case '\'', '"': // up to the end of the text or name
			end := strings.IndexByte(query[i+1:], query[i])
			if end < 0 {
				end = len(query) - i - 2
			}
			b.WriteString(query[i : i+end+2])
			i += end + 1
		case '?':
			n := 0
			for i+1 < len(query) && query[i+1] >= '0' && query[i+1] <= '9' {
				i++
				n = 10*n + int(query[i]-'0')
			}
			if n == 0 {
				n = highest + 1
			}
			highest = max(highest, n)
			fmt.Fprintf(&b, "$%d", n)
		default:
			b.WriteByte(query[i])
		}
	}
	st := statement{text: b.String(), plain: b.String()}
	if strings.HasPrefix(st.text, "INSERT") && !strings.Contains(st.text, "ON CONFLICT") {
		st.insert = true
		st.text += " ON CONFLICT DO NOTHING"
	}
	st.guarded = strings.HasPrefix(st.text, "UPDATE runs ") || strings.HasPrefix(st.text, "UPDATE users ")
	return st
}

// Exec implements [rows.Conn].
func (c *conn) Exec(query string, args ...any) (n int64, err error) {
	c.wrote = true
	st := c.store.statement(query)
	var after []string
	if st.guarded {
		c.queue, after = append(c.queue, pending{query: "SAVEPOINT one"}), []string{"RELEASE one"}
	}
	err = c.send(st.text, args, c.numbered(after), func(results pgx.BatchResults) error {
		tag, err := results.Exec()
		n = tag.RowsAffected()
		return err
	})
	if exists(err) && st.guarded {
		c.failed = nil
		if err := c.send("ROLLBACK TO one", nil, nil, func(r pgx.BatchResults) error { _, err := r.Exec(); return err }); err != nil {
			return 0, err
		}
		return 0, errExists
	}
	if err == nil && n == 0 && st.insert {
		err = errExists
	}
	return n, err
}

// exists reports whether a unique index refuses a row.
func exists(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "23505"
}

// BeforeLock implements [rows.Pipeline].
func (c *conn) BeforeLock(owner artel.Owner, conversation artel.ConversationID) {
	key := conversationKey{owner, conversation}
	if _, ok := c.locks[key]; ok {
		return
	}
	if c.locks == nil {
		c.locks = map[conversationKey]func(){}
	}
	if c.group && (c.pooled != nil || len(c.locks) > 0) {
		// It holds what others may wait for, so it must not wait.
		release := c.store.locks.TryLock(key)
		if release == nil && c.failed == nil {
			c.failed = errBusy
			return
		}
		c.locks[key] = release
		return
	}
	wait := time.Duration(0)
	if c.pooled != nil || len(c.locks) > 0 {
		wait = lockWait
	}
	c.locks[key] = c.store.locks.Lock(c.ctx, key, wait)
}

// end gives the connection and the locks back.
func (c *conn) end() {
	if c.pooled != nil {
		c.pooled.Release()
	}
	for _, release := range c.locks {
		if release != nil {
			release()
		}
	}
}

// raw returns the connection, with the first call from the pool.
func (c *conn) raw() (*pgx.Conn, error) {
	if c.pooled == nil {
		pooled, err := c.store.pool.Acquire(c.ctx)
		if err != nil {
			return nil, err
		}
		c.pooled = pooled
	}
	return c.pooled.Conn(), nil
}

// Later implements [rows.Pipeline].
func (c *conn) Later(query string, args ...any) {
	c.wrote = true
	c.queue = append(c.queue, pending{query: c.store.statement(query).plain, args: args})
	c.number()
}

// Require implements [rows.Pipeline].
func (c *conn) Require(query string, args []any, missing error) {
	c.queue = append(c.queue, pending{query: c.store.statement(query).text, args: args, missing: missing})
	c.number()
}

// number asks for the number of the transaction, unless it is known or asked for.
func (c *conn) number() {
	if c.xid == "" && !slices.ContainsFunc(c.queue, func(p pending) bool { return p.query == numberQuery }) {
		c.queue = append(c.queue, pending{query: numberQuery})
	}
}

// Insert implements [rows.Conn].
func (c *conn) Insert(query string, args ...any) (n int64, err error) {
	c.wrote = true
	st := c.store.statement(query)
	found := false
	err = c.send(st.text+" RETURNING n", args, c.numbered(nil), func(results pgx.BatchResults) error {
		return each(results, func(r rows.Row) error { found = true; return r.Scan(&n) })
	})
	if err == nil && !found {
		err = errExists
	}
	return n, err
}

// Row implements [rows.Conn].
func (c *conn) Row(query string, args []any, dest ...any) (found bool, err error) {
	err = c.Rows(query, args, func(r rows.Row) error {
		if found {
			return nil
		}
		found = true
		return r.Scan(dest...)
	})
	return found, err
}

// Rows implements [rows.Conn].
func (c *conn) Rows(query string, args []any, scan func(rows.Row) error) error {
	c.wrote = c.wrote || !strings.HasPrefix(query, "SELECT") && !strings.HasPrefix(query, "WITH")
	return c.send(c.store.statement(query).text, args, nil, func(results pgx.BatchResults) error {
		return each(results, func(r rows.Row) error {
			c.begun = true
			return scan(r)
		})
	})
}

// Values implements [rows.Conn].
func (c *conn) Values(query string, args []any, columns int, scan func([]driver.Value) error) error {
	values := make([]driver.Value, columns)
	return c.Rows(query, args, func(r rows.Row) (err error) {
		fields, raw := r.(row).rows.FieldDescriptions(), r.(row).rows.RawValues()
		if len(raw) != columns {
			return fmt.Errorf("%d columns, want %d", len(raw), columns)
		}
		for i := range values {
			if values[i], err = value(fields[i], raw[i]); err != nil {
				return err
			}
		}
		return scan(values)
	})
}

// A scanError is one of a function that scans rows; the transaction can continue.
type scanError struct{ error }

// each calls scan with each row of the next result.
func each(results pgx.BatchResults, scan func(rows.Row) error) error {
	found, err := results.Query()
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		if err := scan(row{found}); err != nil {
			return scanError{err}
		}
	}
	return found.Err()
}

// numbered adds the query for the number of the transaction, unless it is known.
func (c *conn) numbered(after []string) []string {
	if c.xid == "" {
		after = append(after, numberQuery)
	}
	return after
}

const numberQuery = "SELECT pg_current_xact_id()::text"

// send sends a statement, with all that is to be sent before and after it, and reads its
// result. A transaction that could not begin, since its connection had ended or the server
// starts, is begun on another one: nothing has come of it yet.
func (c *conn) send(query string, args []any, after []string, read func(pgx.BatchResults) error) error {
	queue := slices.Clone(c.queue)
	for wait := firstWait; ; wait *= 2 {
		err := c.sendOnce(query, args, after, read)
		if c.failed == nil {
			c.begun = true
		}
		if c.begun || c.failed == nil || wait > lastWait || !unreachable(err) || !sleep(c.ctx, wait) {
			return err
		}
		if c.pooled != nil {
			_ = c.pooled.Conn().Close(c.ctx)
			c.pooled.Release()
		}
		c.pooled, c.failed, c.xid, c.queue = nil, nil, "", slices.Clone(queue)
	}
}

// How long a transaction waits before it is begun on another connection: twice as long each
// time, less than two seconds together.
const (
	firstWait = 25 * time.Millisecond
	lastWait  = 800 * time.Millisecond
)

func (c *conn) sendOnce(query string, args []any, after []string, read func(pgx.BatchResults) error) error {
	if c.failed != nil {
		return c.failed
	}
	batch := &pgx.Batch{}
	queue, err := c.flush(batch)
	if err != nil {
		return err
	}
	converted, err := arguments(args)
	if err != nil {
		return err
	}
	batch.Queue(query, converted...)
	for _, query := range after {
		batch.Queue(query)
	}
	raw, err := c.raw()
	if err != nil {
		c.failed = connecting("store", err)
		return c.failed
	}
	results := raw.SendBatch(c.ctx, batch)
	c.queue = nil
	c.sent++
	missing, err := c.readQueue(queue, results)
	if err == nil {
		err = read(results)
	}
	for _, query := range after {
		switch {
		case err != nil:
		case query == numberQuery:
			err = results.QueryRow().Scan(&c.xid)
		default:
			_, err = results.Exec()
		}
	}
	closing := results.Close()
	scanning, scanned := errors.AsType[scanError](err)
	switch {
	case scanned && closing == nil:
		err = scanning.error
		if missing != nil {
			err = missing
		}
		return err
	case scanned, err == nil:
		err = closing
	}
	if err != nil {
		c.failed = err
		return err
	}
	return missing
}

// flush adds the queue to a batch.
func (c *conn) flush(batch *pgx.Batch) ([]pending, error) {
	for _, p := range c.queue {
		converted, err := arguments(p.args)
		if err != nil {
			c.failed = err // what was to be written is not
			return nil, err
		}
		batch.Queue(p.query, converted...)
	}
	return c.queue, nil
}

// readQueue reads the results of a queue. missing is the error of a query that should have
// had a row.
func (c *conn) readQueue(queue []pending, results pgx.BatchResults) (missing, err error) {
	for _, p := range queue {
		found := false
		switch {
		case p.query == numberQuery:
			err = results.QueryRow().Scan(&c.xid)
		case p.missing != nil:
			if err = each(results, func(rows.Row) error { found = true; return nil }); err == nil && !found {
				missing = p.missing
			}
		default:
			_, err = results.Exec()
		}
		if err != nil {
			return nil, err
		}
	}
	return missing, nil
}

// Failure implements [rows.Conn].
func (c *conn) Failure(op, subject string, err error) error {
	if c.ctx.Err() != nil && c.failed != nil {
		return rows.Canceled(op, c.ctx.Err())
	}
	return failure(op, subject, err)
}

// failure converts an error of the database into one of the contract.
func failure(op, subject string, err error) error {
	if e, ok := errors.AsType[*artel.Error](err); ok {
		return e
	}
	if errors.Is(err, errExists) || exists(err) {
		return artel.Errorf(artel.Conflict, op, subject, "already exists")
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return rows.Canceled(op, err)
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		if unreachable(err) {
			return artel.Errorf(artel.Unavailable, op, subject, "the database cannot be reached: %w", err)
		}
		return artel.Errorf(artel.Internal, op, subject, "%w", err)
	}
	why := ""
	switch {
	case e.Code == "23503": // a foreign key
		return artel.Errorf(artel.NotFound, op, subject, "no such conversation")
	case e.Code == "54000" && strings.Contains(e.Message, "index row"):
		return artel.Errorf(artel.TooLarge, op, subject, "a name or an id is longer than an index can hold: 2,700 bytes")
	case e.Code == "54000", e.Code == "22001":
		return artel.Errorf(artel.TooLarge, op, subject, "larger than a row can be: 1,000,000,000 bytes")
	case e.Code == "53100":
		why = "the disk of the database is full"
	case e.Code == "53300":
		why = "the database has too many connections"
	case e.Code == "25006":
		why = "the database is read-only"
	case again(err):
		why = "other updates were in the way, several times"
	case strings.HasPrefix(e.Code, "53"), strings.HasPrefix(e.Code, "57"), strings.HasPrefix(e.Code, "58"), strings.HasPrefix(e.Code, "08"), e.Code == "25P03":
		why = "the database cannot be used"
	default:
		return artel.Errorf(artel.Internal, op, subject, "%w", err)
	}
	return artel.Errorf(artel.Unavailable, op, subject, "%s: %w", why, err)
}

// again reports whether an update must be run again: it was chosen to resolve a deadlock,
// or is in conflict with another.
func again(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "40P01" || e.Code == "40001" || e.Code == "0A000" && strings.Contains(e.Message, "cached plan"))
}
