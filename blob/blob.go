// SPDX-License-Identifier: Apache-2.0

// Package blob stores bytes under their SHA-256.
//
// Begin with [Store], the contract, and its implementations [OpenDir],
// [NewMemory] and blob/s3, which needs an [Index]. The kit blob/blobtest tests implementations.
//
// A blob never changes and is never partly visible: it is staged while it is
// written, and appears under its digest in one step. The package knows neither
// owners of blobs nor references to them.
package blob

import (
	"context"
	"io"
	"time"

	"github.com/artelhq/artel"
)

// A Store holds blobs. It is safe for concurrent use.
//
// Errors are [*artel.Error]: of kind [artel.NotFound] for a missing digest,
// [artel.TooLarge] if a limit is exceeded, [artel.Canceled] if the context ended,
// [artel.Unavailable] if the storage failed.
type Store interface {
	// Put stores the bytes of r, without holding all of them in memory. Putting
	// stored bytes again only renews their time. If r or ctx fails, or r has more
	// than limit bytes (0: no limit), nothing is stored. The returned Info is
	// complete.
	Put(ctx context.Context, r io.Reader, limit int64) (Info, error)

	// Open returns the bytes of d; the caller must close the reader. A blob whose
	// stored size is wrong is of kind Internal.
	Open(ctx context.Context, d artel.Digest) (Reader, error)

	// Stat describes d without reading it.
	Stat(ctx context.Context, d artel.Digest) (Info, error)

	// Delete removes d if it was last put before a time, and reports whether d
	// is gone. A concurrent Put of the same bytes happens either before, and then
	// d stays, or after. Deleting a missing blob is no error. Open readers stay
	// usable.
	Delete(ctx context.Context, d artel.Digest, before time.Time) (bool, error)

	// List calls yield for every blob, in no order, until it returns false.
	List(ctx context.Context, yield func(Info) bool) error
}

// Info describes a blob.
type Info struct {
	Digest artel.Digest
	Size   int64     // bytes
	Time   time.Time // of the last Put
}

// A Stager is a Store in which a crashed process may leave unfinished files.
type Stager interface {
	// Unstage removes the unfinished files last written before a time.
	Unstage(ctx context.Context, before time.Time) (Staged, error)
}

// Staged is the number and size of unfinished files.
type Staged struct {
	Files int
	Bytes int64
}

// Unstage calls [Stager.Unstage] if s implements it.
func Unstage(ctx context.Context, s Store, before time.Time) (Staged, error) {
	if st, ok := s.(Stager); ok {
		return st.Unstage(ctx, before)
	}
	return Staged{}, nil
}

// A Presigner is a Store whose blobs can be read where they are stored.
type Presigner interface {
	// Presign returns a URL from which anyone can read d, as a media type, from a
	// time until another one. It is the same whenever and by whichever process it
	// is made. It is empty if this is not configured. Errors are those of
	// [Store.Stat].
	Presign(ctx context.Context, d artel.Digest, mediaType string, from, until time.Time) (string, error)
}

// Presign calls [Presigner.Presign] if s implements it.
func Presign(ctx context.Context, s Store, d artel.Digest, mediaType string, from, until time.Time) (string, error) {
	if p, ok := s.(Presigner); ok {
		return p.Presign(ctx, d, mediaType, from, until)
	}
	return "", nil
}

// A Reader reads one blob from any position. Its ReadAt is safe for
// concurrent use; Read and Seek are not.
type Reader interface {
	io.ReadSeekCloser
	io.ReaderAt
	Size() int64
}
