// SPDX-License-Identifier: Apache-2.0

// Package sqlite keeps rows in one SQLite file, or in memory.
//
// Begin with [Open]. The store fulfils the contract of package store; nothing
// here has rules of its own.
//
// Readers see one committed state each and never wait for the writer. Updates
// that come together share a commit: each runs in a savepoint of one
// transaction, in the goroutine of its caller, and whoever finds nobody behind
// it commits for all. So one update alone is on disk after one sync, and many
// at once are on disk after one sync too. A panic in an update stays with its
// caller.
//
// The schema is in migrations/, applied forward only when the file is opened;
// steps that SQL cannot do are in search.go and newest.go. Searches use an index of the parts
// of words, which the same update writes as the message.
// Text is stored byte for byte; what is not UTF-8 is refused. Times keep
// microseconds, in UTC. Several processes may open the same file.
//
// An update or view that is begun inside another waits for a turn that cannot
// come and ends with its context; a Tx is there to be passed down instead.
package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// Memory is the path that stands for a database in memory: empty, its own for
// each Open, gone after Close. There, a View waits for updates to end.
const Memory = ":memory:"

// Options are the settings of a database.
type Options struct {
	Synchronous Synchronous   // when an update counts as kept; "": Full
	BusyTimeout time.Duration // how long to wait for another process that writes; 0: 5 s
	Readers     int           // most concurrent views; 0: 8. In memory there is one.
}

// Synchronous says what has happened when an update returns.
type Synchronous string

// The settings of [Options.Synchronous].
const (
	Full   Synchronous = "FULL"   // the disk has it: nothing is lost when the power fails
	Normal Synchronous = "NORMAL" // the system has it: nothing is lost when the process dies
)

// Store is a database. It implements [store.Store].
type Store struct {
	path    string
	options Options
	db      *sql.DB
	writer  *writer
	readers chan *session // nil elements stand for sessions not yet opened; nil in memory

	mu     sync.Mutex // guards closed, and adding to calls
	closed bool
	calls  sync.WaitGroup
}

var _ store.Store = (*Store)(nil)

// Open opens the database at path, or makes it: the file with mode 0600, and
// missing directories with mode 0700. It brings the schema up to date. The
// error is of kind Unavailable where the file cannot be used, and Unsupported
// where a newer program has written it.
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
	s := &Store{path: path, options: o}
	if path != Memory {
		if err := makeFile(path); err != nil {
			return nil, artel.Errorf(artel.Unavailable, op, path, "cannot open the database: %w", err)
		}
		s.readers = make(chan *session, o.Readers)
		for range o.Readers {
			s.readers <- nil
		}
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
		err = fillBlank(ctx, db)
	}
	if err == nil {
		err = s.prepare(ctx)
	}
	if err == nil {
		s.writer, err = newWriter(s)
	}
	if err != nil {
		_ = db.Close()
		return nil, failure(op, path, err)
	}
	return s, nil
}

// dsn names the database for the driver.
func (s *Store) dsn() string {
	q := url.Values{}
	for _, p := range []string{
		fmt.Sprintf("busy_timeout(%d)", s.options.BusyTimeout.Milliseconds()),
		"foreign_keys(1)",
		"journal_mode(WAL)",
		"synchronous(" + string(s.options.Synchronous) + ")",
	} {
		q.Add("_pragma", p)
	}
	q.Set("_txlock", "immediate")
	if s.path == Memory {
		return "file::memory:?" + q.Encode()
	}
	// SQLite decodes percent signs in file: names, and "?" would end the name.
	path := filepath.ToSlash(s.path)
	name := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
	return "file:" + name + "?" + q.Encode()
}

// begin counts a call in; calls.Done counts it out.
func (s *Store) begin(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return canceled(op, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return artel.Errorf(artel.Unavailable, op, "", "the database is closed")
	}
	s.calls.Add(1)
	return nil
}

// View implements [store.Store].
func (s *Store) View(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
	const op = "store.View"
	return s.read(ctx, op, func(c *session) error {
		t := &tx{session: c, ctx: ctx, owner: owner}
		defer t.end()
		err := fn(t.repositories())
		if err == nil && ctx.Err() != nil {
			return canceled(op, ctx.Err())
		}
		return err
	})
}

// Update implements [store.Store]. Once fn has run and its context has not
// ended by then, Update waits for the commit and tells how it went.
func (s *Store) Update(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
	const op = "store.Update"
	if err := s.begin(ctx, op); err != nil {
		return err
	}
	defer s.calls.Done()
	return s.writer.update(ctx, owner, func(t *tx) error { return fn(t.repositories()) })
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
	for range cap(s.readers) {
		if c := <-s.readers; c != nil {
			_ = c.close()
		}
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
	var c *session
	select {
	case c = <-s.readers:
	case <-ctx.Done():
		return canceled(op, ctx.Err())
	}
	defer func() { s.readers <- c }()
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

// A session is one connection with the statements that were prepared on it.
// One goroutine uses it at a time.
//
// Its statements run without the caller's context: an interrupt in the middle
// of a statement makes SQLite give up the whole transaction, and that may hold
// other callers' updates. Contexts are looked at between statements.
type session struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

func (s *Store) openSession() (*session, error) {
	conn, err := s.db.Conn(context.Background())
	if err != nil {
		return nil, err
	}
	return &session{conn: conn, stmts: map[string]*sql.Stmt{}}, nil
}

func (c *session) prepare(query string) (*sql.Stmt, error) {
	if st, ok := c.stmts[query]; ok {
		return st, nil
	}
	// Where a limit is nothing but a parameter, SQLite plans by its value, and so
	// prepares the statement anew for each that is bound. That takes three times as
	// long as to read a few rows.
	st, err := c.conn.PrepareContext(context.Background(), strings.ReplaceAll(query, "LIMIT ?", "LIMIT ?+0"))
	if err != nil {
		return nil, err
	}
	c.stmts[query] = st
	return st, nil
}

func (c *session) exec(query string, args ...any) (sql.Result, error) {
	st, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(context.Background(), args...)
}

func (c *session) query(query string, args ...any) (*sql.Rows, error) {
	st, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(context.Background(), args...)
}

func (c *session) close() error {
	for _, st := range c.stmts {
		_ = st.Close()
	}
	return c.conn.Close()
}
