// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"
	"time"

	"github.com/artelhq/artel"
)

// An Index holds the keys under which a store such as blob/s3 keeps bytes in a
// place that does not know digests. Databases implement it. It is safe for
// concurrent use, also by several processes.
//
// A key is used for one object only. It is reserved before the object is written,
// then kept for a digest, and becomes trash when the digest is dropped. The
// object of a key that is never kept becomes trash by itself, so that no object
// is forgotten.
//
// Each call is one transaction. Times are those of the database, in whole
// microseconds; that of a Keep is not before the call.
type Index interface {
	// Find returns the object of a digest. It is of kind NotFound if there is
	// none.
	Find(ctx context.Context, d artel.Digest) (Object, error)

	// Keep makes o the object of its digest if the digest has none, and returns
	// it with the time. Otherwise it returns the object that the digest has,
	// whose time is now, and o.Key stays reserved. With an empty o.Key it only
	// renews the time, and is of kind NotFound if the digest has no object. It is
	// of kind Conflict if o.Key is not reserved, or its rest has ended, and
	// Invalid if o.Digest is no digest.
	Keep(ctx context.Context, o Object) (Object, error)

	// Drop removes the object of a digest if it was last kept before a time,
	// and reports whether the digest has none now. The key is trash after rest.
	Drop(ctx context.Context, d artel.Digest, before time.Time, rest time.Duration) (bool, error)

	// List calls yield for every object, in no order, until it returns false.
	// Objects that come or go meanwhile may be left out. yield may call the
	// Index.
	List(ctx context.Context, yield func(Object) bool) error

	Trash
}

// A Trash holds the keys of objects that are not those of a digest.
type Trash interface {
	// Reserve adds new keys, which are trash after rest unless they are kept
	// before. It is of kind Conflict if one is in the trash already.
	Reserve(ctx context.Context, rest time.Duration, keys ...string) error

	// Due returns keys whose rest has ended, the oldest first, at most limit.
	Due(ctx context.Context, limit int) ([]string, error)

	// Forget removes keys, whose objects are gone. Missing keys are no error.
	Forget(ctx context.Context, keys ...string) error
}

// An Object is what an [Index] knows of the bytes of a digest.
type Object struct {
	Digest artel.Digest
	Size   int64 // bytes
	Key    string
	Time   time.Time // of the last Keep
}
