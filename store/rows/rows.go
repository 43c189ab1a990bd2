// SPDX-License-Identifier: Apache-2.0

// Package rows keeps the rows of a [store.Store] in tables, for every database that
// understands the SQL used here: statements and what is read from them are written once.
//
// Begin with [New], which makes a store of a [DB]. A DB runs functions in transactions;
// a [Conn] runs the statements of one of them; a [Dialect] has what differs between
// databases. Packages store/sqlite and store/postgres are the two that exist; each has
// its own schema.
//
// Statements have the placeholders "?" and "?1". Booleans are the numbers 0 and 1, times
// are microseconds.
package rows

import (
	"context"
	"database/sql/driver"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// A DB runs functions in transactions. Errors of a function are returned unchanged.
type DB interface {
	// Read runs fn on one committed state.
	Read(ctx context.Context, op string, owner artel.Owner, fn func(*Tx) error) error
	// Write runs fn and commits what it wrote, unless it fails. Owner [Deployment] means
	// rows without an owner, which are written by one transaction at a time.
	Write(ctx context.Context, owner artel.Owner, fn func(*Tx) error) error
}

// A Conn runs the statements of one transaction. One goroutine uses it at a time. It
// must allow no statement in a function that scans a row.
type Conn interface {
	// Exec runs a statement that returns no rows, and returns how many it changed. An
	// INSERT without ON CONFLICT fails with kind Conflict, once [Conn.Failure] has
	// converted the error, if a row is there already; the transaction can continue.
	Exec(query string, args ...any) (int64, error)
	// Insert is Exec for one row of a table with the column n, which it returns.
	Insert(query string, args ...any) (int64, error)
	// Row scans the first row of a query.
	Row(query string, args []any, dest ...any) (found bool, err error)
	// Rows calls scan with each row of a query. It ends with the first error of scan.
	Rows(query string, args []any, scan func(Row) error) error
	// Values is Rows with the values of the columns: int64, float64, string, []byte, nil.
	Values(query string, args []any, columns int, scan func([]driver.Value) error) error
	// Failure converts an error into one of the contract.
	Failure(op, subject string, err error) error
}

// A Pipeline is a Conn that can send statements together with the next one, so that nothing
// waits for them. What they fail with is the error of that next one, or of the commit.
type Pipeline interface {
	Conn
	// BeforeLock is called before an update locks a conversation.
	BeforeLock(owner artel.Owner, c artel.ConversationID)
	// Later is Exec for a statement whose effect is certain, unless the transaction fails:
	// also with a row that is there already, it cannot continue.
	Later(query string, args ...any)
	// Require sends a query that locks a row. Without such a row the next statement, which
	// must be a query, has the error missing; the transaction can continue.
	Require(query string, args []any, missing error)
}

// A Row is the current row of a query.
type Row interface{ Scan(dest ...any) error }

// A Dialect is what differs between databases.
type Dialect struct {
	Lock     string                            // ends a SELECT whose row no other transaction may change until this one ends; empty if updates are serial
	Position string                            // the function that finds a text in another one: 1 at the beginning, 0 if there is none
	InJSON   string                            // completes a condition: the number is in the JSON array ?
	Bytes    string                            // a text column as bytes, with % for its name
	Now      string                            // a query for the time in microseconds; empty: that of the process
	Number   string                            // the value of a new conversation's number
	Some     func(table, where string) string  // a condition for the rows of a table that a query with this WHERE, ORDER BY and LIMIT selects
	Turn     string                            // a query with an owner, after which no other transaction has the owner's turn; empty if updates are serial
	Beside   string                            // a query with an owner, after which no other transaction can get the turn; likewise
	Columns  string                            // a query with a table for the names of its columns
	CountOn  func(table, column string) string // a query after which a column that counts up continues after its greatest number; nil: it does so by itself
	Grams    Grams
}

// Grams is the search index: for each message the parts of its words.
type Grams interface {
	// Add adds a message; grams are separated by spaces.
	Add(c Conn, owner artel.Owner, at Place, grams string) error
	// Remove removes a message, if it is there.
	Remove(c Conn, at Place) error
	// Find returns the messages that have all grams, in order.
	Find(c Conn, owner artel.Owner, grams []string) ([]Place, error)
}

// A Place locates a message by the numbers of its conversation and its row.
type Place struct{ Conversation, Message int64 }

// Deployment is the owner of transactions on rows without an owner.
const Deployment artel.Owner = ""

// A Store implements [store.Store] except for Close.
type Store struct {
	db DB
	leases
	alone
}

// New returns a store of db.
func New(db DB) Store { return Store{db, leases{db}, alone{&Locks[string]{}}} }

// View implements [store.Store].
func (s Store) View(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
	if owner == "" {
		return noOwner("store.View")
	}
	return s.view(ctx, owner, func(t *Tx) error { return fn(t.nouns()) })
}

func (s Store) view(ctx context.Context, owner artel.Owner, fn func(*Tx) error) error {
	const op = "store.View"
	return s.db.Read(ctx, op, owner, func(t *Tx) error {
		err := fn(t)
		if err == nil && ctx.Err() != nil {
			return Canceled(op, ctx.Err())
		}
		return err
	})
}

// Update implements [store.Store]. If ctx ends after fn has returned, Update
// still waits for the commit and returns its result.
func (s Store) Update(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
	if owner == "" {
		return noOwner("store.Update")
	}
	return s.db.Write(ctx, owner, func(t *Tx) error { return fn(t.nouns()) })
}

// Options describe a transaction. Numbers and Lineage may be nil.
type Options struct {
	Owner   artel.Owner
	Write   bool
	Dialect *Dialect
	Numbers *Numbers
	Lineage *Lineage
}

// Begin returns a transaction on c. The caller must call [Tx.End].
func Begin(ctx context.Context, c Conn, o Options) *Tx {
	t := &Tx{conn: c, ctx: ctx, owner: o.Owner, write: o.Write, Dialect: o.Dialect, numbers: o.Numbers, lineage: o.Lineage}
	t.pipeline, _ = c.(Pipeline)
	return t
}
