// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
)

// Put implements [blob.Store]. The bytes are where the server of the bucket keeps
// them when it returns.
func (s *Store) Put(ctx context.Context, r io.Reader, limit int64) (blob.Info, error) {
	buf := s.buffers.Get().(*[PartSize]byte)
	defer s.buffers.Put(buf)
	src := &source{r: r, limit: limit, hash: sha256.New()}
	n, err := src.fill(ctx, buf[:])
	if err != nil {
		return blob.Info{}, err
	}
	if !src.end {
		return s.putParts(ctx, src, buf[:])
	}
	src.hash.Write(buf[:n])
	o := blob.Object{Digest: src.digest(), Size: src.size}
	if _, err := s.index.Find(ctx, o.Digest); err == nil {
		info, kept, err := s.keep(ctx, o)
		if err != nil || kept {
			return info, err
		}
	} else if artel.KindOf(err) != artel.NotFound {
		return blob.Info{}, err
	}
	if o.Key, err = s.key(ctx); err != nil {
		return blob.Info{}, err
	}
	// The digest is also the checksum that the server holds the bytes to.
	_, err = s.core.PutObject(ctx, s.address.Bucket, o.Key, bytes.NewReader(buf[:n]), o.Size, "", o.Digest.Hex(), s.putOptions())
	if err != nil {
		return blob.Info{}, failure(ctx, "blob.Put", string(o.Digest), err)
	}
	return s.mustKeep(ctx, o)
}

// putOptions say no checksum while sending, because one of all bytes is given.
func (s *Store) putOptions() minio.PutObjectOptions {
	return minio.PutObjectOptions{ServerSideEncryption: s.address.encryption, ContentType: "application/octet-stream", DisableContentSha256: true}
}

// putParts sends buf, which is full, and the rest of src in parts.
func (s *Store) putParts(ctx context.Context, src *source, buf []byte) (_ blob.Info, err error) {
	const op = "blob.Put"
	o := blob.Object{}
	if o.Key, err = s.key(ctx); err != nil {
		return blob.Info{}, err
	}
	upload, err := s.core.NewMultipartUpload(ctx, s.address.Bucket, o.Key, s.putOptions())
	if err != nil {
		return blob.Info{}, failure(ctx, op, "", err)
	}
	defer func() {
		if err != nil {
			detached, stop := context.WithTimeout(context.WithoutCancel(ctx), tidying)
			defer stop()
			// Where this fails too, Unstage ends the upload.
			_ = s.core.AbortMultipartUpload(detached, s.address.Bucket, o.Key, upload)
		}
	}()
	var parts []minio.CompletePart
	var hashing sync.WaitGroup
	defer hashing.Wait() // before buf is used again
	for n := len(buf); n > 0; {
		if len(parts) == maxParts {
			return blob.Info{}, blob.LimitError(op, maxParts*PartSize)
		}
		sent := buf[:n]
		hashing.Go(func() { src.hash.Write(sent) })
		sum := sha256.Sum256(sent)
		part, err := s.core.PutObjectPart(ctx, s.address.Bucket, o.Key, upload, len(parts)+1, bytes.NewReader(sent), int64(n),
			minio.PutObjectPartOptions{Sha256Hex: hex.EncodeToString(sum[:]), DisableContentSha256: true})
		if err != nil {
			return blob.Info{}, failure(ctx, op, "", err)
		}
		parts = append(parts, minio.CompletePart{PartNumber: part.PartNumber, ETag: part.ETag})
		hashing.Wait()
		if n = 0; !src.end {
			if n, err = src.fill(ctx, buf); err != nil {
				return blob.Info{}, err
			}
		}
	}
	if _, err := s.core.CompleteMultipartUpload(ctx, s.address.Bucket, o.Key, upload, parts, minio.PutObjectOptions{}); err != nil {
		return blob.Info{}, failure(ctx, op, "", err)
	}
	o.Digest, o.Size = src.digest(), src.size
	return s.mustKeep(ctx, o)
}

// mustKeep keeps an object that was written.
func (s *Store) mustKeep(ctx context.Context, o blob.Object) (blob.Info, error) {
	info, kept, err := s.keep(ctx, o)
	if artel.KindOf(err) == artel.Conflict || err == nil && !kept {
		err = artel.Errorf(artel.Unavailable, "blob.Put", string(o.Digest), "the bytes could not be kept; put them again")
	}
	return info, err
}

// keep makes o the object of its digest, or renews the one that is there, and
// reports whether there is one. What is there only counts if the bucket has it:
// the bytes of the caller would be lost otherwise.
func (s *Store) keep(ctx context.Context, o blob.Object) (info blob.Info, kept bool, err error) {
	for range attempts {
		there, err := s.index.Keep(ctx, o)
		switch {
		case artel.KindOf(err) == artel.NotFound:
			return info, false, nil
		case err != nil:
			return info, false, err
		case there.Key == o.Key:
			return infoOf(there), true, nil
		}
		whole, err := s.isWhole(ctx, there)
		if err != nil {
			return info, false, err
		}
		if whole {
			s.discard(ctx, o.Key)
			return infoOf(there), true, nil
		}
		s.log.WarnContext(ctx, "the bucket of blobs lacks an object; the bytes are put again", "digest", there.Digest, "key", there.Key)
		// One that is kept meanwhile, whose bytes were seen, is not dropped.
		if _, err := s.index.Drop(ctx, there.Digest, there.Time.Add(time.Nanosecond), s.rest); err != nil {
			return info, false, err
		}
	}
	return info, false, nil
}

// isWhole reports whether the bucket has an object of the right size.
func (s *Store) isWhole(ctx context.Context, o blob.Object) (bool, error) {
	stat, err := s.core.StatObject(ctx, s.address.Bucket, o.Key, minio.StatObjectOptions{})
	if err != nil && isMissing(err) {
		// The answer is the same for a missing bucket.
		return false, s.Check(ctx)
	}
	if err != nil {
		return false, failure(ctx, "blob.Put", string(o.Digest), err)
	}
	return stat.Size == o.Size, nil
}

// discard removes an object that is not needed. Where that fails, it becomes
// trash by itself.
func (s *Store) discard(ctx context.Context, key string) {
	if key == "" {
		return
	}
	detached, stop := context.WithTimeout(context.WithoutCancel(ctx), tidying)
	defer stop()
	err := s.core.RemoveObject(detached, s.address.Bucket, key, minio.RemoveObjectOptions{})
	if err == nil {
		err = s.index.Forget(detached, key)
	}
	if err != nil {
		s.log.WarnContext(ctx, "an object that is not needed stays until its key is a day old", "key", key, "err", err)
	}
}

// A source is read in parts and counted. Its parts are hashed in order.
type source struct {
	r     io.Reader
	limit int64
	size  int64
	hash  hash.Hash
	end   bool
}

// fill fills buf, or reads to the end.
func (s *source) fill(ctx context.Context, buf []byte) (int, error) {
	const op = "blob.Put"
	n := 0
	for n < len(buf) && !s.end {
		if err := ctx.Err(); err != nil {
			return 0, blob.SourceError(op, err)
		}
		k, err := s.r.Read(buf[n:])
		n, s.size = n+k, s.size+int64(k)
		if s.limit > 0 && s.size > s.limit {
			return 0, blob.LimitError(op, s.limit)
		}
		s.end = err == io.EOF // a wrapped EOF is a failure, not the end
		if err != nil && !s.end {
			return 0, blob.SourceError(op, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return 0, blob.SourceError(op, err)
	}
	return n, nil
}

func (s *source) digest() artel.Digest { return artel.NewDigest([32]byte(s.hash.Sum(nil))) }
