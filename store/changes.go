// SPDX-License-Identifier: Apache-2.0

package store

import "context"

// A Watcher says what other processes have changed.
type Watcher interface {
	// Watch calls on with each change of users, their credentials and entries that another
	// process with the same database has committed, one at a time, until ctx ends; then it
	// returns nil. A database that one process alone uses has no such changes.
	Watch(ctx context.Context, on func(Change)) error
}

// A Change names a row that another process has made, changed or removed.
type Change struct {
	Of ChangedRow
	ID string // of a user, session, token, key or entry; empty with Anything
}

// A ChangedRow is a kind of rows that Watch tells about.
type ChangedRow string

// The kinds of rows.
const (
	ChangedUser    ChangedRow = "users"
	ChangedSession ChangedRow = "sessions"     // removed
	ChangedToken   ChangedRow = "tokens"       // removed
	ChangedKey     ChangedRow = "gateway_keys" // of the gateway; changed or removed
	ChangedEntry   ChangedRow = "entries"
	Anything       ChangedRow = "" // changes may have been missed, as while the database could not be reached
)
