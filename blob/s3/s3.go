// SPDX-License-Identifier: Apache-2.0

// Package s3 keeps blobs in a bucket of Amazon S3, or of a server that speaks its
// protocol.
//
// Begin with [ParseAddress] and [Open].
//
// Each object has a random key, which is used once. A [blob.Index] in the
// database says under which key the bytes of a digest are. A put needs neither a
// copy, a file on this machine nor a conditional write, and a delete cannot meet
// the object of a later put: that one has another key. The object of a deleted
// blob is removed an hour later, so that open readers and presigned URLs stay
// usable for as long. Keys are reserved in the index before their objects are
// written; those of a killed process become trash after a day.
//
// Up to [PartSize] bytes are held in memory, so that bytes that are there already
// are not sent. More are sent in parts of that size while they are read.
package s3

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
)

// PartSize is the size of the parts in which larger blobs are sent. With the 10,000
// parts of an upload, a blob has at most 80 GB.
const PartSize = 8 << 20

const (
	maxParts  = 10_000
	attempts  = 3              // of each request
	keptKeys  = 24 * time.Hour // how long a reserved key can be kept; longer than any upload
	usedKeys  = 10 * time.Minute
	batchKeys = 32               // reserved at once
	opening   = 10 * time.Second // for the first question to the bucket
	tidying   = 10 * time.Second // for the removal of what a failed call has left
)

// Options of [Open].
type Options struct {
	Rest  time.Duration // how long the object of a deleted blob stays; 0: 1 hour
	Stall time.Duration // how long a connection may stand still; 0: 30 seconds
	Log   *slog.Logger  // nil: none
}

// A Store keeps blobs in a bucket. It implements [blob.Store], [blob.Stager] and
// [blob.Presigner]. Several processes may use one bucket with one index, and
// several indexes one bucket.
type Store struct {
	address   Address
	core      minio.Core
	public    *minio.Client // makes presigned URLs; nil: none
	region    string        // for their signatures
	transport *http.Transport
	index     blob.Index
	rest      time.Duration
	log       *slog.Logger
	buffers   sync.Pool // of *[PartSize]byte

	keys reservedKeys
}

var (
	_ blob.Store     = (*Store)(nil)
	_ blob.Stager    = (*Store)(nil)
	_ blob.Presigner = (*Store)(nil)
)

// Open opens the bucket at an address. An error says that the address or its
// credentials are wrong; a server that does not answer is only logged, and asked
// again with each call.
func Open(ctx context.Context, a Address, index blob.Index, o Options) (*Store, error) {
	const op = "s3.Open"
	if o.Rest == 0 {
		o.Rest = time.Hour
	}
	if o.Stall == 0 {
		o.Stall = 30 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{address: a, transport: newTransport(o.Stall), index: index, rest: o.Rest, log: o.Log, region: a.region}
	s.buffers.New = func() any { return new([PartSize]byte) }
	options := minio.Options{
		Creds: a.credentials(), Secure: a.endpoint.Scheme == "https", Transport: bodyGuard{s.transport}, Region: a.region, MaxRetries: attempts,
	}
	switch a.pathStyle {
	case "true":
		options.BucketLookup = minio.BucketLookupPath
	case "false":
		options.BucketLookup = minio.BucketLookupDNS
	}
	client, err := minio.New(a.endpoint.Host, &options)
	if err != nil {
		return nil, artel.Errorf(artel.Invalid, op, a.String(), "the address of the bucket cannot be used: %w", err)
	}
	s.core = minio.Core{Client: client}
	ctx, stop := context.WithTimeout(ctx, opening)
	defer stop()
	if value, err := options.Creds.GetWithContext(&credentials.CredContext{Client: &http.Client{Transport: s.transport}, Context: ctx}); err != nil || value.AccessKeyID == "" {
		s.transport.CloseIdleConnections()
		return nil, artel.Errorf(artel.Invalid, op, a.String(), "there are no credentials for the bucket: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, choose a profile with AWS_PROFILE, or write s3://KEY:SECRET@…")
	}
	if err := s.Check(ctx); err != nil {
		if isPermanent(err) {
			s.transport.CloseIdleConnections()
			return nil, err
		}
		s.log.WarnContext(ctx, "the bucket of blobs cannot be reached; it is asked again with each request", "bucket", a.String(), "err", err)
	}
	if a.presign != nil {
		options.Secure = a.presign.Scheme == "https"
		if s.region == "" {
			if s.region, err = client.GetBucketLocation(ctx, a.Bucket); err != nil {
				s.transport.CloseIdleConnections()
				return nil, artel.Errorf(artel.Invalid, op, a.String(), "presigned URLs need the region of the bucket: add region=… to its address: %w", failure(ctx, op, "", err))
			}
			options.Region = s.region
		}
		if s.public, err = minio.New(a.presign.Host, &options); err != nil {
			return nil, artel.Errorf(artel.Invalid, op, a.String(), "presign: %w", err)
		}
	}
	return s, nil
}

// credentials returns those of the address, or where to look for them.
func (a Address) credentials() *credentials.Credentials {
	if a.user != nil {
		secret, _ := a.user.Password()
		return credentials.NewStaticV4(a.user.Username(), secret, "")
	}
	all := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	if a.endpoint.String() == amazon { // elsewhere there are no roles of machines
		all = append(all, &credentials.IAM{})
	}
	return credentials.NewChainCredentials(all)
}

// Check asks whether the bucket is there and gives access.
func (s *Store) Check(ctx context.Context) error {
	const op = "s3.Check"
	there, err := s.core.BucketExists(ctx, s.address.Bucket)
	if err == nil && !there {
		err = minio.ErrorResponse{Code: minio.NoSuchBucket, StatusCode: http.StatusNotFound}
	}
	if err != nil {
		return failure(ctx, op, "", err)
	}
	return nil
}

// Close closes idle connections. It does not wait for calls in progress.
func (s *Store) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// reservedKeys are keys that can be used for objects.
type reservedKeys struct {
	mu    sync.Mutex
	free  []string
	until time.Time // when they are no longer used, because their rest would end before an upload
}

// key returns a reserved key. Keys are reserved many at once, so that it seldom
// costs a transaction.
func (s *Store) key(ctx context.Context) (string, error) {
	k := &s.keys
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.free) == 0 || time.Now().After(k.until) {
		k.free, k.until = nil, time.Now().Add(usedKeys)
		more := make([]string, batchKeys)
		for i := range more {
			text := strings.ToLower(rand.Text())
			more[i] = s.address.Prefix + text[:2] + "/" + text[2:]
		}
		if err := s.index.Reserve(ctx, keptKeys, more...); err != nil {
			return "", err
		}
		k.free = more
	}
	last := len(k.free) - 1
	key := k.free[last]
	k.free = k.free[:last]
	return key, nil
}

// Stat implements [blob.Store]. It does not ask the bucket.
func (s *Store) Stat(ctx context.Context, d artel.Digest) (blob.Info, error) {
	if err := ctx.Err(); err != nil {
		return blob.Info{}, blob.SourceError("blob.Stat", err)
	}
	o, err := s.index.Find(ctx, d)
	if err != nil {
		return blob.Info{}, err
	}
	return infoOf(o), nil
}

func infoOf(o blob.Object) blob.Info { return blob.Info{Digest: o.Digest, Size: o.Size, Time: o.Time} }

// Delete implements [blob.Store]. The object is removed by a later [Store.Unstage].
func (s *Store) Delete(ctx context.Context, d artel.Digest, before time.Time) (bool, error) {
	return s.index.Drop(ctx, d, before, s.rest)
}

// List implements [blob.Store]. It lists the index.
func (s *Store) List(ctx context.Context, yield func(blob.Info) bool) error {
	var ended error
	err := s.index.List(ctx, func(o blob.Object) bool {
		if err := ctx.Err(); err != nil {
			ended = blob.SourceError("blob.List", err)
			return false
		}
		return yield(infoOf(o))
	})
	if err == nil {
		err = ended
	}
	return err
}

// dueKeys is how many keys of the trash are read at once.
const dueKeys = 500

// Unstage implements [blob.Stager]. It ends the uploads that were begun before a
// time, and removes the objects of the trash, which it does not count: those of
// deleted blobs were counted then.
func (s *Store) Unstage(ctx context.Context, before time.Time) (blob.Staged, error) {
	const op = "blob.Unstage"
	var ended blob.Staged
	listing, stop := context.WithCancel(ctx)
	defer stop()
	for u := range s.core.ListIncompleteUploads(listing, s.address.Bucket, s.address.Prefix, true) {
		if u.Err != nil {
			return ended, failure(ctx, op, "", u.Err)
		}
		if !u.Initiated.Before(before) {
			continue
		}
		if err := s.core.AbortMultipartUpload(ctx, s.address.Bucket, u.Key, u.UploadID); err != nil && !isMissing(err) {
			return ended, failure(ctx, op, "", err)
		}
		ended.Files, ended.Bytes = ended.Files+1, ended.Bytes+u.Size
	}
	for {
		keys, err := s.index.Due(ctx, dueKeys)
		if err != nil || len(keys) == 0 {
			return ended, err
		}
		for _, key := range keys {
			if err := s.core.RemoveObject(ctx, s.address.Bucket, key, minio.RemoveObjectOptions{}); err != nil && !isMissing(err) {
				return ended, failure(ctx, op, "", err)
			}
		}
		if err := s.index.Forget(ctx, keys...); err != nil {
			return ended, err
		}
	}
}
