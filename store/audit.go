// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"

	"github.com/artelhq/artel"
)

// Audit adds to the audit log, in the transaction of the act itself.
type Audit interface {
	// Add appends entries in order, under increasing numbers; Number is ignored.
	// It is of kind Invalid if an entry has no action.
	Add(entries ...AuditEntry) error
}

// An AuditLog reads the audit log of the whole deployment. Entries cannot be
// changed, and are removed only by age.
type AuditLog interface {
	// List returns entries newest first. next is "" at the end.
	List(ctx context.Context, q AuditQuery) (items []AuditEntry, next string, err error)
	// Prune removes the entries made before a time and returns their number.
	Prune(ctx context.Context, before time.Time) (int, error)
}

// An AuditEntry says who did what to which thing, when and from where.
type AuditEntry struct {
	Number  int64
	Time    time.Time
	Actor   artel.Owner // empty: unknown, as of a failed login
	Action  string      // chosen by the application
	Target  string      // what was acted on; may be empty
	Detail  string      // may be empty
	Address string      // of the client; empty: none, as of background work
}

// An AuditQuery selects entries; zero fields select all.
type AuditQuery struct {
	Actor  artel.Owner
	Action string
	Since  time.Time // inclusive
	Until  time.Time // exclusive
	Page
}
