// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/store"
)

// Usage are the use cases of what model calls have used.
type Usage struct{ core *core }

// UsageFields are by what usage can be listed.
func UsageFields() []store.UsageField {
	return []store.UsageField{store.ByDay, store.ByUser, store.ByKey, store.ByService, store.ByModel, store.ByAgent}
}

// maxDays is the longest time that one list of usage covers.
const maxDays = 3 * 366

// List returns what the acting user's calls have used from a day to another, both
// included, by fields; those of all users for administrators.
func (us *Usage) List(ctx context.Context, from, to time.Time, by ...store.UsageField) (rows []store.UsageRow, err error) {
	const op = "app.Usage.List"
	if err := access.Require(ctx, store.ScopeRead); err != nil {
		return nil, err
	}
	for _, f := range by {
		if !slices.Contains(UsageFields(), f) {
			return nil, artel.Errorf(artel.Invalid, op, "by", "%q is unknown: want one of %v", artel.Shorten(string(f), 40), UsageFields())
		}
	}
	switch {
	case to.Before(from):
		return nil, artel.Errorf(artel.Invalid, op, "to", "the last day is before the first")
	case to.Sub(from) > maxDays*24*time.Hour:
		return nil, artel.Errorf(artel.Invalid, op, "from", "at most %d days are listed at once", maxDays)
	}
	q := store.UsageQuery{From: from, To: to, User: artel.OwnerOf(ctx), By: by}
	if access.Require(ctx, store.ScopeAdmin) == nil {
		q.User = ""
	}
	k := us.core
	if err := k.meter.Flush(ctx); err != nil {
		return nil, err
	}
	err = k.store.People().View(ctx, func(tx store.PeopleTx) (err error) { rows, err = tx.Ledger.Sum(q); return err })
	return rows, err
}

// Today is the current day in UTC.
func (us *Usage) Today() time.Time { return us.core.now().UTC().Truncate(24 * time.Hour) }

// Refused reports whether the budget of a key left too little for its last request.
func (us *Usage) Refused(k store.GatewayKey) bool {
	return us.core.meter.Refused(k.ID, k.Limits.Budget)
}

// Shared reports whether other processes use the same limits.
func (us *Usage) Shared() bool { return us.core.meter.Shared() }

// Request counts a request with a key that may make most in a minute, in all processes. after is
// how long the client has to wait; 0: the request may be made.
func (us *Usage) Request(ctx context.Context, key string, most int) (after time.Duration, err error) {
	return us.core.meter.Request(ctx, key, most)
}

// Flush writes what was counted before, and what limits have counted.
func (us *Usage) Flush(ctx context.Context) error { return us.core.meter.Close(ctx) }
