// SPDX-License-Identifier: Apache-2.0

// Package sqlite implements [store.Store] in one SQLite file, or in memory.
//
// Begin with [Open].
//
// Each view reads one committed state and never waits for the writer.
// Concurrent updates share a commit: each runs in one transaction, in the
// goroutine of its caller, and the last in the queue commits for all. What one
// that fails has written is taken back alone, by a savepoint, or by deletion if
// it is only edits of the journal. One sync therefore stores one update or many.
// Checkpoints of the write-ahead log run beside them. A panic in an update
// affects only its caller.
//
// The schema is in migrations/. Opening a file applies them, forward only;
// steps that SQL cannot do are in store/rows, like the statements that read and write
// rows. Searches use an
// index of parts of words, written in the same update as the message. Text is
// stored byte for byte and must be UTF-8. Times are UTC with microseconds.
// Several processes may open the same file.
//
// An update or view begun inside another one deadlocks until its context ends;
// pass the Tx down instead.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows"
)

// Memory is the path of a database in memory. Each Open makes a new empty one,
// which is lost at Close. A View of it waits for updates to end.
const Memory = ":memory:"

// Options are the settings of a database.
type Options struct {
	Synchronous Synchronous   // durability of updates; "": Full
	BusyTimeout time.Duration // maximum wait for another writing process; 0: 5 s
	Readers     int           // maximum concurrent views; 0: 8. Always 1 in memory
}

// Synchronous is the durability of an update when it returns.
type Synchronous string

// The settings of [Options.Synchronous].
const (
	Full   Synchronous = "FULL"   // on disk: survives a power failure
	Normal Synchronous = "NORMAL" // handed to the operating system: survives a crash of the process
)

// Store is a database. It implements [store.Store].
type Store struct {
	rows.Store
	dialect *rows.Dialect
	path    string
	options Options
	db      *sql.DB
	writer  *writer
	readers *readers      // nil in memory
	lineage *rows.Lineage // nil in memory, where views may read what is never committed

	mu     sync.Mutex // guards closed and calls.Add
	closed bool
	calls  sync.WaitGroup
}

var _ store.Store = (*Store)(nil)

// Open opens the database at path and brings its schema up to date. It creates
// a missing file with mode 0600 and missing directories with mode 0700. The
// error is of kind Unavailable if the file cannot be used, and Unsupported if a
// newer program has written it.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	const op = "store.Open"
	switch o.Synchronous {
	case "":
		o.Synchronous = Full
	case Full, Normal:
	default:
		return nil, artel.Errorf(artel.Invalid, op, path, "synchronous is %q, want FULL or NORMAL", o.Synchronous)
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if o.Readers <= 0 {
		o.Readers = 8
	}
	s := &Store{path: path, options: o, dialect: dialect()}
	s.Store = rows.New(transactions{s})
	if path != Memory {
		if err := makeFile(path); err != nil {
			return nil, artel.Errorf(artel.Unavailable, op, path, "cannot open the database: %w", err)
		}
		s.readers, s.lineage = newReaders(o.Readers), &rows.Lineage{}
	}
	db, err := sql.Open("sqlite", s.dsn())
	if err != nil {
		return nil, artel.Errorf(artel.Internal, op, path, "%w", err)
	}
	s.db = db
	if path == Memory {
		// The database lives as long as its one connection.
		db.SetMaxOpenConns(1)
		db.SetMaxIdleConns(1)
	}
	err = s.prepare(ctx)
	if err == nil {
		s.writer, err = newWriter(s)
	}
	if err != nil {
		_ = db.Close()
		return nil, failure(op, path, err)
	}
	return s, nil
}

// dsn returns the data source name for the driver.
func (s *Store) dsn() string {
	q := url.Values{}
	for _, p := range []string{
		fmt.Sprintf("busy_timeout(%d)", s.options.BusyTimeout.Milliseconds()),
		"foreign_keys(1)",
		"journal_mode(WAL)",
		"synchronous(" + string(s.options.Synchronous) + ")",
		fmt.Sprintf("wal_autocheckpoint(%d)", checkpointPages),
		fmt.Sprintf("journal_size_limit(%d)", logBytes),
	} {
		q.Add("_pragma", p)
	}
	q.Set("_txlock", "immediate")
	if s.path == Memory {
		return "file::memory:?" + q.Encode()
	}
	return fileURI(s.path) + "?" + q.Encode()
}

// fileURI returns the name of a file for SQLite, which decodes percent signs in
// such names, and for which "?" would end the name.
func fileURI(path string) string {
	return "file:" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(filepath.ToSlash(path))
}

// begin counts a call in s.calls; the caller must call s.calls.Done.
func (s *Store) begin(ctx context.Context, op string) error {
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

// transactions implements [rows.DB].
type transactions struct{ *Store }

func (s transactions) Read(ctx context.Context, op string, owner artel.Owner, fn func(*rows.Tx) error) error {
	return s.read(ctx, op, func(c *session) error {
		t := rows.Begin(ctx, &turn{session: c}, rows.Options{Owner: owner, Dialect: s.dialect, Lineage: s.lineage})
		defer t.End()
		return fn(t)
	})
}

func (s transactions) Write(ctx context.Context, owner artel.Owner, fn func(*rows.Tx) error) error {
	if err := s.begin(ctx, "store.Update"); err != nil {
		return err
	}
	defer s.calls.Done()
	return s.writer.update(ctx, owner, fn)
}

// Close implements [store.Store]. Closing again does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	if closed {
		return nil
	}
	if s.readers != nil {
		s.readers.close()
	}
	if s.writer.checkpointer != nil {
		s.writer.checkpointer.close()
	}
	var err error
	if c := s.writer.session; c != nil {
		err = c.close()
	}
	if cerr := s.db.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return failure("store.Close", s.path, err)
	}
	return nil
}

// read runs fn on one consistent state.
func (s *Store) read(ctx context.Context, op string, fn func(*session) error) error {
	if err := s.begin(ctx, op); err != nil {
		return err
	}
	defer s.calls.Done()
	if s.readers == nil {
		return s.writer.alone(ctx, op, fn)
	}
	c, err := s.readers.take(ctx)
	if err != nil {
		return rows.Canceled(op, err)
	}
	defer func() { s.readers.put(c) }()
	if c == nil {
		opened, err := s.openReader()
		if err != nil {
			return failure(op, "", err)
		}
		c = opened
	}
	if _, err := c.exec("BEGIN DEFERRED"); err != nil {
		_ = c.close()
		c = nil
		return failure(op, "", err)
	}
	defer func() {
		if _, err := c.exec("ROLLBACK"); err != nil {
			_ = c.close()
			c = nil
		}
	}()
	return fn(c)
}

func (s *Store) openReader() (*session, error) {
	c, err := s.openSession()
	if err != nil {
		return nil, err
	}
	if _, err := c.exec("PRAGMA query_only = 1"); err != nil {
		_ = c.close()
		return nil, err
	}
	return c, nil
}

// A session is one connection with its prepared statements. One goroutine uses
// it at a time.
//
// Statements run without the caller's context, because SQLite answers an
// interrupt with a rollback of the whole transaction, which may contain other
// callers' updates. Contexts are checked between statements.
type session struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt // those that return rows

	// The other statements go to the driver directly: what database/sql does for
	// each call, so that connections can be shared, takes a third of the time of a
	// small insert.
	direct  driver.ConnPrepareContext
	directs map[string]direct
	args    []driver.NamedValue // reused

	numbers rows.Numbers
	version int64 // of the data, when numbers were remembered
}

// A direct is a statement of the driver.
type direct struct {
	driver.Stmt
	changesNumbers bool
}

func (s *Store) openSession() (*session, error) {
	conn, err := s.db.Conn(context.Background())
	if err != nil {
		return nil, err
	}
	c := &session{conn: conn, stmts: map[string]*sql.Stmt{}, directs: map[string]direct{}}
	err = conn.Raw(func(own any) error {
		var ok bool
		if c.direct, ok = own.(driver.ConnPrepareContext); !ok {
			return artel.Errorf(artel.Internal, "store.Open", s.path, "the driver has changed: %T", own)
		}
		return nil
	})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

func (c *session) prepare(query string) (*sql.Stmt, error) {
	if st, ok := c.stmts[query]; ok {
		return st, nil
	}
	st, err := c.conn.PrepareContext(context.Background(), withPlainLimits(query))
	if err != nil {
		return nil, err
	}
	c.stmts[query] = st
	return st, nil
}

// withPlainLimits makes SQLite plan a query without the value of its limit. If a
// limit is a bare parameter, it prepares the statement again for each value, which
// takes three times as long as reading a few rows.
func withPlainLimits(query string) string {
	before, limit, found := strings.Cut(query, "LIMIT ?")
	if !found {
		return query
	}
	digits := len(limit) - len(strings.TrimLeft(limit, "0123456789"))
	return before + "LIMIT ?" + limit[:digits] + "+0" + withPlainLimits(limit[digits:])
}

// prepareDirect returns a statement of the driver, and args as it takes them, which
// are valid until the next call.
func (c *session) prepareDirect(query string, args []any) (direct, []driver.NamedValue, error) {
	st, ok := c.directs[query]
	if !ok {
		own, err := c.direct.PrepareContext(context.Background(), withPlainLimits(query))
		if err != nil {
			return direct{}, nil, err
		}
		st = direct{own, rows.ChangesNumbers(query)}
		c.directs[query] = st
	}
	c.args = c.args[:0]
	for i, arg := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return direct{}, nil, err
		}
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return st, c.args, nil
}

// exec runs a statement that returns no rows.
func (c *session) exec(query string, args ...any) (driver.Result, error) {
	st, named, err := c.prepareDirect(query, args)
	if err != nil {
		return nil, err
	}
	if st.changesNumbers {
		c.numbers.Forget()
	}
	return st.Stmt.(driver.StmtExecContext).ExecContext(context.Background(), named)
}

// number runs a statement that returns at most one row with one number.
func (c *session) number(query string, args ...any) (n int64, found bool, err error) {
	err = c.values(query, args, make([]driver.Value, 1), func(row []driver.Value) error {
		n, found = row[0].(int64)
		return nil
	})
	return n, found, err
}

// values calls scan with each row of a query, which is read into row.
func (c *session) values(query string, args []any, row []driver.Value, scan func([]driver.Value) error) (err error) {
	st, named, err := c.prepareDirect(query, args)
	if err != nil {
		return err
	}
	rows, err := st.Stmt.(driver.StmtQueryContext).QueryContext(context.Background(), named)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := rows.Close(); err == nil {
			err = cerr
		}
	}()
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := scan(row); err != nil {
			return err
		}
	}
}

func (c *session) query(query string, args ...any) (*sql.Rows, error) {
	st, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(context.Background(), args...)
}

// refreshNumbers forgets the numbers if another connection has written. It is called
// when no other can write any more.
func (c *session) refreshNumbers() error {
	if c.numbers.Empty() {
		return nil
	}
	version, _, err := c.number("PRAGMA data_version")
	if err != nil || version != c.version {
		c.numbers.Forget()
		c.version = version
	}
	return err
}

func (c *session) close() error {
	for _, st := range c.stmts {
		_ = st.Close()
	}
	for _, st := range c.directs {
		_ = st.Close()
	}
	return c.conn.Close()
}
