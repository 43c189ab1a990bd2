// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/minio/minio-go/v7"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
)

const (
	headSize  = 256 << 10 // what a reader holds of the beginning of a blob
	blockSize = 512 << 10 // what ReadAt reads at once
	maxBlocks = 8         // that a reader holds
)

// Open implements [blob.Store]. The reader needs the bucket until it is closed,
// except for small blobs. It does not depend on ctx any more.
func (s *Store) Open(ctx context.Context, d artel.Digest) (blob.Reader, error) {
	const op = "blob.Open"
	if err := ctx.Err(); err != nil {
		return nil, blob.SourceError(op, err)
	}
	o, err := s.index.Find(ctx, d)
	if err != nil {
		return nil, err
	}
	r := &reader{store: s, object: o, head: make([]byte, min(o.Size, headSize))}
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	loose := context.AfterFunc(ctx, r.cancel)
	if err = r.begin(op); !loose() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = r.Close()
		return nil, failure(ctx, op, string(d), err)
	}
	return r, nil
}

// A reader reads one object. It holds the beginning; what follows comes from one
// request for the rest, as long as it is read in order, and in blocks by ReadAt.
type reader struct {
	store  *Store
	object blob.Object
	ctx    context.Context // of the requests; ends with Close
	cancel context.CancelFunc
	head   []byte
	pos    int64
	stream io.ReadCloser // of the bytes from at; nil: none
	at     int64

	mu     sync.Mutex // guards blocks
	blocks []block    // the last used first
}

type block struct {
	number int64
	data   []byte
}

// begin reads the head.
func (r *reader) begin(op string) error {
	for n := 0; ; {
		k, err := r.next(op, r.head[n:], int64(n))
		if n += k; err != nil {
			return err
		}
		if n == len(r.head) {
			break
		}
	}
	if r.at == r.object.Size { // there is nothing else to read
		r.drop()
	}
	return nil
}

// get asks for the bytes from off to end.
func (r *reader) get(op string, off, end int64) (io.ReadCloser, error) {
	var o minio.GetObjectOptions
	if off > 0 || end < r.object.Size {
		if err := o.SetRange(off, end-1); err != nil {
			return nil, artel.Errorf(artel.Internal, op, string(r.object.Digest), "%w", err)
		}
	}
	body, info, _, err := r.store.core.GetObject(r.ctx, r.store.address.Bucket, r.object.Key, o)
	if err != nil {
		if isMissing(err) {
			return nil, damaged(op, r.object, "the bucket lacks it")
		}
		return nil, failure(r.ctx, op, string(r.object.Digest), err)
	}
	if info.Size != end-off {
		_ = body.Close()
		if off == 0 && end == r.object.Size {
			return nil, damaged(op, r.object, "the object has another size than what was put")
		}
		return nil, artel.Errorf(artel.Unavailable, op, string(r.object.Digest), "the server of the bucket of blobs answered with other bytes than those that were asked for")
	}
	return body, nil
}

// next reads some bytes at off, in the stream or in a new one. It continues where
// a stream breaks off, unless that brings nothing several times in a row.
func (r *reader) next(op string, p []byte, off int64) (int, error) {
	if r.stream != nil && r.at != off {
		r.drop()
	}
	for broken := 0; ; {
		if r.stream == nil {
			body, err := r.get(op, off, r.object.Size)
			if err != nil {
				return 0, err
			}
			r.stream, r.at = body, off
		}
		if len(p) == 0 {
			return 0, nil
		}
		n, err := r.stream.Read(p)
		r.at += int64(n)
		if n > 0 {
			return n, nil
		}
		if err == nil {
			continue
		}
		r.drop()
		if broken++; broken == attempts {
			return 0, cut(r.ctx, op, r.object, err)
		}
	}
}

// cut is for an answer that broke off again and again.
func cut(ctx context.Context, op string, o blob.Object, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return failure(ctx, op, string(o.Digest), err)
}

func (r *reader) drop() {
	_ = r.stream.Close()
	r.stream = nil
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	const op = "blob.Read"
	if r.ctx.Err() != nil {
		return 0, fs.ErrClosed
	}
	if len(p) == 0 {
		return 0, nil
	}
	if r.pos >= r.object.Size {
		return 0, io.EOF
	}
	var n int
	var err error
	if r.pos < int64(len(r.head)) {
		n = copy(p, r.head[r.pos:])
	} else {
		n, err = r.next(op, p, r.pos)
	}
	r.pos += int64(n)
	return n, err
}

// Seek implements [io.Seeker]. It asks for nothing.
func (r *reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += r.pos
	case io.SeekEnd:
		offset += r.object.Size
	default:
		return 0, artel.Errorf(artel.Invalid, "blob.Seek", "", "there is no such place to seek from")
	}
	if offset < 0 {
		return 0, artel.Errorf(artel.Invalid, "blob.Seek", "", "a position before the beginning")
	}
	r.pos = offset
	return offset, nil
}

// ReadAt implements [io.ReaderAt].
func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, artel.Errorf(artel.Invalid, "blob.ReadAt", "", "a position before the beginning")
	}
	n := 0
	for n < len(p) {
		if off >= r.object.Size {
			return n, io.EOF
		}
		k, err := r.someAt(p[n:], off)
		n, off = n+k, off+int64(k)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// someAt reads some of the bytes at off, from the head or a block.
func (r *reader) someAt(p []byte, off int64) (int, error) {
	if r.ctx.Err() != nil {
		return 0, fs.ErrClosed
	}
	if off < int64(len(r.head)) {
		return copy(p, r.head[off:]), nil
	}
	if len(p) >= blockSize {
		p = p[:min(int64(len(p)), r.object.Size-off)]
		return r.fetch(p, off)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	number := off / blockSize
	i := slices.IndexFunc(r.blocks, func(b block) bool { return b.number == number })
	if i < 0 {
		data := make([]byte, min(blockSize, r.object.Size-number*blockSize))
		if _, err := r.fetch(data, number*blockSize); err != nil {
			return 0, err
		}
		r.blocks = slices.Insert(r.blocks[:min(len(r.blocks), maxBlocks-1)], 0, block{number, data})
	} else if i > 0 {
		b := r.blocks[i]
		r.blocks = slices.Insert(slices.Delete(r.blocks, i, i+1), 0, b)
	}
	return copy(p, r.blocks[0].data[off-number*blockSize:]), nil
}

// fetch fills p with the bytes at off, by requests of its own.
func (r *reader) fetch(p []byte, off int64) (int, error) {
	const op = "blob.ReadAt"
	n := 0
	for broken := 0; n < len(p); {
		body, err := r.get(op, off+int64(n), off+int64(len(p)))
		if err != nil {
			return n, err
		}
		k, err := io.ReadFull(body, p[n:])
		_ = body.Close()
		if n += k; k > 0 {
			broken = 0
		}
		if err != nil {
			if broken++; broken == attempts {
				return n, cut(r.ctx, op, r.object, err)
			}
		}
	}
	return n, nil
}

// Close implements [io.Closer].
func (r *reader) Close() error {
	r.cancel()
	if r.stream != nil {
		r.drop()
	}
	return nil
}

// Size implements [blob.Reader].
func (r *reader) Size() int64 { return r.object.Size }
