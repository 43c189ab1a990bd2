// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
)

// failure converts an error of the bucket. Its text names neither bucket nor
// server, since it may be shown to people who should not learn where things lie.
func failure(ctx context.Context, op, subject string, err error) error {
	if e, ok := errors.AsType[*artel.Error](err); ok {
		return e
	}
	if ctx.Err() != nil {
		return blob.SourceError(op, ctx.Err())
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		err = e.Err
	} else if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if strings.Contains(err.Error(), "://") { // as the client says that the connection ended
		err = io.ErrUnexpectedEOF
	}
	return artel.Errorf(artel.Unavailable, op, subject, "%s: %w", reason(err), err)
}

// reason says what is wrong with the bucket, and what to do.
func reason(err error) string {
	e, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok {
		return "the server of the bucket of blobs does not answer; it is asked again with the next request"
	}
	switch e.Code {
	case minio.NoSuchBucket:
		return "the bucket of blobs is not there; create it, or correct its address"
	case "RequestTimeTooSkewed":
		return "the bucket of blobs refuses requests, because the clock of this machine is wrong; set it"
	case "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "InsufficientStorage":
		return "no space is left in the bucket of blobs"
	}
	switch e.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "the bucket of blobs refuses access (" + e.Code + "); check its credentials and its policy"
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusBadRequest:
		return "the bucket of blobs refuses the request (" + e.Code + "); check endpoint and region in its address"
	}
	return "the server of the bucket of blobs fails (" + e.Code + "); it is asked again with the next request"
}

// isMissing reports whether an error says that an object is not there.
func isMissing(err error) bool {
	e, ok := errors.AsType[minio.ErrorResponse](err)
	return ok && (e.Code == minio.NoSuchKey || e.StatusCode == http.StatusNotFound && e.Code != minio.NoSuchBucket)
}

// isPermanent reports whether an error does not go away by itself.
func isPermanent(err error) bool {
	e, ok := errors.AsType[minio.ErrorResponse](err)
	return ok && e.StatusCode >= 300 && e.StatusCode < 500 && e.StatusCode != http.StatusTooManyRequests && e.StatusCode != http.StatusRequestTimeout
}

// damaged is for a blob whose object is not what was put.
func damaged(op string, o blob.Object, what string) error {
	return artel.Errorf(artel.Internal, op, string(o.Digest), "the index of blobs has these bytes under the key %s, but %s; restore the object from a version or copy of the bucket, or upload the file again", o.Key, what)
}
