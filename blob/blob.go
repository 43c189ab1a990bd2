// SPDX-License-Identifier: Apache-2.0

// Package blob keeps bytes by their SHA-256.
//
// Begin with [Store], the contract, and [OpenDir] or [NewMemory], which fulfil
// it. The kit blob/blobtest holds an implementation to it.
//
// A blob never changes and is never half there: it is staged while it is
// written and appears under its digest in one step. The package does not know
// who owns a blob or who refers to it; that is for the rooms above.
package blob

import (
	"context"
	"io"
	"time"

	"github.com/artelhq/artel"
)

// A Store keeps blobs. It is safe for concurrent use.
//
// Errors are [*artel.Error]: of kind [artel.NotFound] where a digest is not
// there, [artel.TooLarge] where a limit is passed, [artel.Canceled] where the
// context ended, [artel.Unavailable] where the storage failed.
type Store interface {
	// Put reads r to its end and keeps the bytes, without ever holding them
	// all in memory. Putting bytes that are there already changes nothing.
	// When r or ctx fails, or more than limit bytes come (limit 0: no limit),
	// nothing is kept. The returned Info is complete.
	Put(ctx context.Context, r io.Reader, limit int64) (Info, error)

	// Open returns the bytes of d, which the caller closes. The size is that
	// of Stat. A blob whose stored size is wrong is of kind Internal.
	Open(ctx context.Context, d artel.Digest) (Reader, error)

	// Stat describes d without reading it.
	Stat(ctx context.Context, d artel.Digest) (Info, error)

	// Delete removes d unless it was put at a time or later, and reports
	// whether it is gone now. A Put of the same bytes at the same time comes
	// either before, and what it put stays, or after. Deleting what is not there
	// is no error. Readers that are open stay readable.
	Delete(ctx context.Context, d artel.Digest, before time.Time) (bool, error)

	// List calls yield for every blob, in no order, until it returns false.
	List(ctx context.Context, yield func(Info) bool) error
}

// Info describes a blob.
type Info struct {
	Digest artel.Digest
	Size   int64     // bytes
	Time   time.Time // when it was first kept, or last put again
}

// A Stager is a Store in which a process that died may leave what it was
// writing.
type Stager interface {
	// Unstage removes what was begun and not written to since a time, and
	// returns how much that was.
	Unstage(ctx context.Context, before time.Time) (Staged, error)
}

// Staged is what was begun and never became a blob.
type Staged struct {
	Files int
	Bytes int64
}

// Unstage is [Stager.Unstage] of a store that has it; others leave nothing.
func Unstage(ctx context.Context, s Store, before time.Time) (Staged, error) {
	if st, ok := s.(Stager); ok {
		return st.Unstage(ctx, before)
	}
	return Staged{}, nil
}

// A Reader reads one blob from any position. Its ReadAt is safe for
// concurrent use; Read and Seek are not.
type Reader interface {
	io.ReadSeekCloser
	io.ReaderAt
	Size() int64
}
