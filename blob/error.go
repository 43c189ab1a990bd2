// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/artelhq/artel"
)

func notFound(op string, d artel.Digest) error {
	return artel.Errorf(artel.NotFound, op, artel.Shorten(string(d), 80), "no such blob")
}

// LimitError returns the error of [Store.Put] for more bytes than the limit.
func LimitError(op string, limit int64) error {
	return artel.Errorf(artel.TooLarge, op, "", "more than the limit of %d bytes; send less, or have the limit raised", limit)
}

// SourceError returns the error of a [Store] for a failing reader or an ended
// context: what the reader says about its kind holds.
func SourceError(op string, err error) error {
	kind := artel.KindOf(err)
	if kind == artel.Internal {
		kind = artel.Unavailable
	}
	return artel.Errorf(kind, op, "", "the bytes to keep could not be read: %w", err)
}

// diskError is for a failing file system. Its text names no path, since it may
// be shown to people who should not learn where things lie.
func diskError(op, subject string, err error) error {
	text := "the blob folder failed"
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		text = "no space is left for blobs"
	case errors.Is(err, syscall.EROFS):
		text = "the blob folder is read-only"
	case errors.Is(err, fs.ErrPermission):
		text = "the blob folder refuses access"
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	} else if le, ok := errors.AsType[*os.LinkError](err); ok {
		err = le.Err
	}
	return artel.Errorf(artel.Unavailable, op, subject, "%s: %w", text, err)
}
