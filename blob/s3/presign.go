// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/artelhq/artel"
)

// maxPresigned is how long a presigned URL can be valid.
const maxPresigned = 7 * 24 * time.Hour

// Presign implements [blob.Presigner]. A URL ends early when the object is removed,
// or the credentials that it was made with end.
func (s *Store) Presign(ctx context.Context, d artel.Digest, mediaType string, from, until time.Time) (string, error) {
	const op = "blob.Presign"
	if s.public == nil {
		return "", nil
	}
	if valid := until.Sub(from); valid < time.Second || valid > maxPresigned {
		return "", artel.Errorf(artel.Invalid, op, string(d), "a presigned URL is valid for at most %s", maxPresigned)
	}
	o, err := s.index.Find(ctx, d)
	if err != nil {
		return "", err
	}
	// The client of the bucket knows how its URLs look. It signs them with the time of
	// now, which would make each URL another one, so they are signed again.
	u, err := s.public.PresignedGetObject(ctx, s.address.Bucket, o.Key, time.Minute, nil)
	if err != nil {
		return "", failure(ctx, op, string(d), err)
	}
	value, err := s.core.GetCreds()
	if err != nil {
		return "", failure(ctx, op, string(d), err)
	}
	return sign(ctx, u, value, s.region, mediaType, from, until)
}

// Origin returns scheme and host of presigned URLs, "" if there are none.
func (s *Store) Origin(ctx context.Context) (string, error) {
	if s.public == nil {
		return "", nil
	}
	u, err := s.public.PresignedGetObject(ctx, s.address.Bucket, "key", time.Minute, nil)
	if err != nil {
		return "", failure(ctx, "s3.Origin", "", err)
	}
	return u.Scheme + "://" + u.Host, nil
}

func sign(ctx context.Context, u *url.URL, value credentials.Value, region, mediaType string, from, until time.Time) (string, error) {
	q := url.Values{"X-Amz-Expires": {seconds(until.Sub(from))}}
	if mediaType != "" {
		q.Set("response-content-type", mediaType)
	}
	u.RawQuery = q.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", artel.Errorf(artel.Internal, "blob.Presign", "", "%w", err)
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	signed, _, err := signer.PresignHTTP(ctx, aws.Credentials{AccessKeyID: value.AccessKeyID, SecretAccessKey: value.SecretAccessKey, SessionToken: value.SessionToken},
		r, "UNSIGNED-PAYLOAD", "s3", region, from.UTC())
	if err != nil {
		return "", artel.Errorf(artel.Internal, "blob.Presign", "", "%w", err)
	}
	return signed, nil
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }
