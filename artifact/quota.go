// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/store"
)

// CodeStorage is the error code, of kind TooLarge, around a [*Full].
const CodeStorage = "storage_limit"

// A Full is the error of a write for which an owner's quota leaves too little.
type Full struct {
	Used, Limit int64 // bytes
	Needs       int64 // more bytes; -1: not known

	// Reserved reports that it would fit, but for uploads of the same owner that are
	// still running; it may be tried again.
	Reserved bool
	// Passing is when less is taken by bytes that nothing refers to, which have reached
	// the limit; 0: what is stored has.
	Passing time.Duration
}

// Error implements error.
func (f *Full) Error() string {
	needs := "something"
	if f.Needs >= 0 {
		needs = phrase.Size(f.Needs)
	}
	if f.Passing > 0 {
		return fmt.Sprintf("media in your requests and uploads that broke off in the last two days take %s on disk, as much as your %s of storage (limits.user.storage); they are removed by and by: try again in %v, or ask an administrator for a larger limit", phrase.Size(f.Used), phrase.Size(f.Limit), f.Passing.Round(time.Minute))
	}
	if f.Reserved {
		return fmt.Sprintf("%s of your %s of storage (limits.user.storage) are used, and other uploads of yours have reserved the rest: %s more may fit when they have ended; try again in a few seconds", phrase.Size(f.Used), phrase.Size(f.Limit), needs)
	}
	return fmt.Sprintf("%s of your %s of storage (limits.user.storage) are used, and this needs %s more: delete files that you uploaded through the gateway, which frees their space at once, or conversations, which frees theirs when they can no longer be restored, an hour later; or ask an administrator for a larger limit", phrase.Size(f.Used), phrase.Size(f.Limit), needs)
}

// retryReserved is when a caller that other uploads keep out may try again, and
// maxReserveWait how long [Quota.Reserve] waits for them.
const (
	retryReserved  = 5 * time.Second
	maxReserveWait = time.Minute
)

// RetryAfter says when it may be tried again; 0: when something was deleted.
func (f *Full) RetryAfter() time.Duration {
	if f.Passing > 0 {
		return f.Passing
	}
	if f.Reserved {
		return retryReserved
	}
	return 0
}

func full(op string, f Full) error {
	return &artel.Error{Op: op, Kind: artel.TooLarge, Code: CodeStorage, Err: &f}
}

// A Quota limits what each owner stores, as [store.Storage] counts it. It is safe for
// concurrent use; nil is no limit.
//
// [Quota.Within] is exact: it adds up inside the transaction that writes, and updates
// are serial, so that writes at once cannot exceed the limit together. [Quota.Reserve]
// comes before an upload: what cannot fit is refused before its bytes are read, and
// bytes of uploads that run at once are not received for nothing. [Quota.AdmitPassing] is
// for bytes that are not kept.
type Quota struct {
	store store.Store
	limit int64
	now   func() time.Time

	mu      sync.Mutex
	owners  map[artel.Owner]*reserved
	passing map[artel.Owner]*passing
}

// reserved is what running uploads of an owner may still store.
type reserved struct {
	turn   sync.Mutex // held while what is used is read, and a reservation made
	amount int64      // guarded by Quota.mu, like the others
	freed  chan struct{}
	users  int // Reserve calls that wait or hold something
}

// NewQuota returns a Quota of as many bytes for each owner; nil for 0.
func NewQuota(s store.Store, limit int64, now func() time.Time) *Quota {
	if limit <= 0 {
		return nil
	}
	return &Quota{store: s, limit: limit, now: now, owners: map[artel.Owner]*reserved{}, passing: map[artel.Owner]*passing{}}
}

// Limit is the limit in bytes; 0: none.
func (q *Quota) Limit() int64 {
	if q == nil {
		return 0
	}
	return q.limit
}

// Within runs fn, which writes to tx. The error is a [*Full] of kind TooLarge if the
// owner then stores more than before and more than the limit; the caller must return
// it from the update, so that nothing is kept.
func (q *Quota) Within(tx store.Tx, fn func() error) error {
	if q == nil {
		return fn()
	}
	before, err := tx.Storage.Used()
	if err != nil {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	after, err := tx.Storage.Used()
	if err == nil && after > q.limit && after > before {
		err = full("artifact.Quota.Within", Full{Used: before, Limit: q.limit, Needs: after - before})
	}
	return err
}

// A reservation is what the uploads of a request may store.
type reservation struct {
	q     *Quota
	owner artel.Owner

	mu     sync.Mutex
	left   int64
	grown  int64 // beyond what was reserved first
	staged map[artel.Digest]int64
}

type reservationKey struct{}

// Reserve admits the uploads of one request, whose body has size bytes, -1 if that is
// not known, of which spare at most are not stored, such as the headers of a form. What
// [Uploads.Stage] reads with the returned context counts towards it; release must be
// called after the upload is stored or has failed. The error is a [*Full] if the body
// cannot fit. If it would fit but for other uploads of the owner, Reserve waits for
// them, and is refused only if they succeed; after a minute, the error says that it may
// be tried again.
//
// Uploads that are complete when a request breaks off belong to nothing. At the release,
// they count as passing, and Reserve refuses owners whose passing bytes have reached the
// limit, so that broken requests cannot fill the disk.
func (q *Quota) Reserve(ctx context.Context, size, spare int64) (_ context.Context, release func(), err error) {
	const op = "artifact.Quota.Reserve"
	if q == nil || size == 0 {
		return ctx, func() {}, nil
	}
	owner := artel.OwnerOf(ctx)
	if err := q.AdmitPassing(owner, q.now()); err != nil {
		return nil, nil, err
	}
	r := q.enter(owner)
	defer func() {
		if err != nil {
			q.leave(owner, r, 0)
		}
	}()
	patience := time.NewTimer(maxReserveWait)
	defer patience.Stop()
	for {
		amount, used, freed, err := q.tryReserve(ctx, owner, r, size, spare)
		if err != nil {
			return nil, nil, err
		}
		if freed == nil {
			one := &reservation{q: q, owner: owner, left: amount}
			release := sync.OnceFunc(func() {
				one.abandon(context.WithoutCancel(ctx))
				one.mu.Lock()
				defer one.mu.Unlock()
				q.leave(owner, r, amount+one.grown)
			})
			return context.WithValue(ctx, reservationKey{}, one), release, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, nil, artel.Errorf(artel.Canceled, op, "", "%w", ctx.Err())
		case <-patience.C:
			return nil, nil, full(op, Full{Used: used, Limit: q.limit, Needs: size, Reserved: true})
		}
	}
}

// keep remembers the bytes of an upload until the release.
func (one *reservation) keep(d artel.Digest, size int64) {
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.staged == nil {
		one.staged = map[artel.Digest]int64{}
	}
	one.staged[d] = size
}

// abandon counts the uploads that nothing refers to as passing.
func (one *reservation) abandon(ctx context.Context) {
	one.mu.Lock()
	staged := one.staged
	one.mu.Unlock()
	if len(staged) == 0 {
		return
	}
	q := one.q
	_ = q.store.View(ctx, one.owner, func(tx store.Tx) error { // what cannot be looked up counts
		for d := range staged {
			if held, err := tx.Storage.Holds(d); err != nil {
				return err
			} else if held {
				delete(staged, d)
			}
		}
		return nil
	})
	for d, size := range staged {
		q.Passed(one.owner, d, size, q.now())
	}
}

// tryReserve reserves what a body needs. If other uploads keep it from that, freed is
// closed when one of them has ended.
func (q *Quota) tryReserve(ctx context.Context, owner artel.Owner, r *reserved, size, spare int64) (amount, used int64, freed chan struct{}, err error) {
	r.turn.Lock()
	defer r.turn.Unlock()
	err = q.store.View(ctx, owner, func(tx store.Tx) (err error) { used, err = tx.Storage.Used(); return err })
	if err != nil {
		return 0, 0, nil, err
	}
	left := q.limit - used
	if left <= 0 || size-spare > left {
		return 0, used, nil, full("artifact.Quota.Reserve", Full{Used: used, Limit: q.limit, Needs: max(size, -1)})
	}
	amount = min(size, left)
	if size < 0 {
		amount = min(DefaultMaxBytes, left)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.amount > left-amount {
		return 0, used, r.freed, nil
	}
	r.amount += amount
	return amount, used, nil, nil
}

func (q *Quota) enter(owner artel.Owner) *reserved {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.owners[owner]
	if r == nil {
		r = &reserved{freed: make(chan struct{})}
		q.owners[owner] = r
	}
	r.users++
	return r
}

// leave gives back an amount, and lets the uploads that wait try again.
func (q *Quota) leave(owner artel.Owner, r *reserved, amount int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r.amount -= amount
	if amount > 0 {
		close(r.freed)
		r.freed = make(chan struct{})
	}
	if r.users--; r.users == 0 {
		delete(q.owners, owner)
	}
}

// Reserved returns body, limited to what the request has reserved. Without a
// reservation, body is returned.
func Reserved(ctx context.Context, body io.Reader) io.Reader {
	one, _ := ctx.Value(reservationKey{}).(*reservation)
	if one == nil {
		return body
	}
	return &reservedReader{body, ctx, one}
}

type reservedReader struct {
	io.Reader
	ctx context.Context // of the request whose body this is
	one *reservation
}

// moreReserved is by how much a reservation for a body of unknown size grows.
const moreReserved = 16 << 20

// Read implements [io.Reader].
func (r *reservedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	one := r.one
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.left -= int64(n); one.left >= 0 {
		return n, err
	}
	more, fullErr := one.q.grow(r.ctx, one.owner, -one.left)
	if fullErr != nil {
		return 0, fullErr
	}
	one.left += more
	one.grown += more
	return n, err
}

// grow reserves at least need bytes more, without waiting: two that wait for each
// other's reservations would wait for ever.
func (q *Quota) grow(ctx context.Context, owner artel.Owner, need int64) (int64, error) {
	r := q.enter(owner)
	defer q.leave(owner, r, 0)
	r.turn.Lock()
	defer r.turn.Unlock()
	var used int64
	if err := q.store.View(ctx, owner, func(tx store.Tx) (err error) { used, err = tx.Storage.Used(); return err }); err != nil {
		return 0, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.limit - used - r.amount
	if need > left {
		return 0, full("artifact.Quota", Full{Used: used, Limit: q.limit, Needs: -1})
	}
	more := min(need+moreReserved, left)
	r.amount += more
	return more, nil
}
