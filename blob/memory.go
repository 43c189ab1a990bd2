// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"math"
	"sync"
	"time"

	"github.com/artelhq/artel"
)

// A Memory keeps blobs in memory, for tests and for servers that keep nothing.
// Unlike other stores it holds what is put in memory, whole.
type Memory struct {
	mu    sync.RWMutex
	blobs map[artel.Digest]memoryBlob
}

type memoryBlob struct {
	data []byte // never written again
	time time.Time
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{blobs: map[artel.Digest]memoryBlob{}} }

// Put implements [Store].
func (m *Memory) Put(ctx context.Context, r io.Reader, limit int64) (Info, error) {
	const op = "blob.Put"
	r = &contextReader{ctx, r}
	if limit > 0 && limit < math.MaxInt64 {
		r = io.LimitReader(r, limit+1)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return Info{}, SourceError(op, err)
	}
	if limit > 0 && int64(len(data)) > limit {
		return Info{}, LimitError(op, limit)
	}
	info := Info{Digest: artel.NewDigest(sha256.Sum256(data)), Size: int64(len(data)), Time: time.Now()}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.blobs[info.Digest]; ok {
		data = old.data
	}
	m.blobs[info.Digest] = memoryBlob{data, info.Time}
	return info, nil
}

// Open implements [Store].
func (m *Memory) Open(ctx context.Context, d artel.Digest) (Reader, error) {
	b, err := m.find(ctx, "blob.Open", d)
	if err != nil {
		return nil, err
	}
	return memoryReader{bytes.NewReader(b.data)}, nil
}

// Stat implements [Store].
func (m *Memory) Stat(ctx context.Context, d artel.Digest) (Info, error) {
	b, err := m.find(ctx, "blob.Stat", d)
	if err != nil {
		return Info{}, err
	}
	return Info{Digest: d, Size: int64(len(b.data)), Time: b.time}, nil
}

// Delete implements [Store].
func (m *Memory) Delete(ctx context.Context, d artel.Digest, before time.Time) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, SourceError("blob.Delete", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if b, ok := m.blobs[d]; ok && !b.time.Before(before) {
		return false, nil
	}
	delete(m.blobs, d)
	return true, nil
}

// List implements [Store]. It lists what was there when it was called.
func (m *Memory) List(ctx context.Context, yield func(Info) bool) error {
	m.mu.RLock()
	infos := make([]Info, 0, len(m.blobs))
	for d, b := range m.blobs {
		infos = append(infos, Info{Digest: d, Size: int64(len(b.data)), Time: b.time})
	}
	m.mu.RUnlock()
	for _, info := range infos {
		if err := ctx.Err(); err != nil {
			return SourceError("blob.List", err)
		}
		if !yield(info) {
			return nil
		}
	}
	return nil
}

func (m *Memory) find(ctx context.Context, op string, d artel.Digest) (memoryBlob, error) {
	if err := ctx.Err(); err != nil {
		return memoryBlob{}, SourceError(op, err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	b, ok := m.blobs[d]
	if !ok {
		return memoryBlob{}, notFound(op, d)
	}
	return b, nil
}

// memoryReader's embedded reader already has a Size method.
type memoryReader struct{ *bytes.Reader }

// Close implements [Reader].
func (memoryReader) Close() error { return nil }

// A contextReader fails once its context has ended; it lives for one call.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
