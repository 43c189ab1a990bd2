// SPDX-License-Identifier: Apache-2.0

package blobtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/contracttest"
)

// Every clause finds the store that breaks it.
func TestBrokenTwins(t *testing.T) {
	twins := map[string]func(*blob.Memory) blob.Store{
		"what is put comes back":                  func(m *blob.Memory) blob.Store { return shortener{m} },
		"any size comes back":                     func(m *blob.Memory) blob.Store { return capped{m} },
		"info is complete":                        func(m *blob.Memory) blob.Store { return timeless{m} },
		"a reader reads anywhere":                 func(m *blob.Memory) blob.Store { return stuck{m} },
		"a limit holds":                           func(m *blob.Memory) blob.Store { return unlimited{m} },
		"a failing source leaves nothing":         func(m *blob.Memory) blob.Store { return forgiving{m} },
		"an ended context leaves nothing":         func(m *blob.Memory) blob.Store { return deaf{m} },
		"nothing shows before the end":            func(m *blob.Memory) blob.Store { return eager{m} },
		"the same bytes are kept once":            func(m *blob.Memory) blob.Store { return doubling{m} },
		"putting again refreshes the time":        func(m *blob.Memory) blob.Store { return &frozen{Memory: m} },
		"the same bytes may come at once":         func(m *blob.Memory) blob.Store { return &jealous{Memory: m} },
		"what is missing is not found":            func(m *blob.Memory) blob.Store { return vague{m} },
		"deleting removes":                        func(m *blob.Memory) blob.Store { return keeper{m} },
		"deleting spares what was put since":      func(m *blob.Memory) blob.Store { return blunt{m} },
		"deleting beside putting loses nothing":   func(m *blob.Memory) blob.Store { return hasty{m} },
		"an open reader survives deleting":        func(m *blob.Memory) blob.Store { return lazy{m} },
		"every blob is listed until told to stop": func(m *blob.Memory) blob.Store { return chatty{m} },
		"nothing is shared with the caller":       func(m *blob.Memory) blob.Store { return &sharing{Memory: m} },
	}
	contracttest.RunTwins(t, clauses(), twins, func(t *testing.T, cl clause, twin func(*blob.Memory) blob.Store) error {
		t.Parallel()
		if err := hold(t.Context(), cl, blob.NewMemory()); err != nil {
			t.Errorf("the sound store fails: %v", err)
		}
		return hold(t.Context(), cl, twin(blob.NewMemory()))
	})
}

type shortener struct{ *blob.Memory }

func (s shortener) Put(ctx context.Context, r io.Reader, limit int64) (blob.Info, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return blob.Info{}, err
	}
	return s.Memory.Put(ctx, bytes.NewReader(b[:len(b)/2]), limit)
}

type capped struct{ *blob.Memory }

func (s capped) Put(ctx context.Context, r io.Reader, limit int64) (blob.Info, error) {
	return s.Memory.Put(ctx, io.LimitReader(r, 1<<20), limit)
}

type timeless struct{ *blob.Memory }

func (s timeless) Stat(ctx context.Context, d artel.Digest) (blob.Info, error) {
	info, err := s.Memory.Stat(ctx, d)
	info.Time = time.Time{}
	return info, err
}

type stuck struct{ *blob.Memory }

func (s stuck) Open(ctx context.Context, d artel.Digest) (blob.Reader, error) {
	r, err := s.Memory.Open(ctx, d)
	return stuckReader{r}, err
}

type stuckReader struct{ blob.Reader }

func (stuckReader) Seek(int64, int) (int64, error) { return 0, nil }

type unlimited struct{ *blob.Memory }

func (s unlimited) Put(ctx context.Context, r io.Reader, _ int64) (blob.Info, error) {
	return s.Memory.Put(ctx, r, 0)
}

type forgiving struct{ *blob.Memory }

func (s forgiving) Put(ctx context.Context, r io.Reader, limit int64) (blob.Info, error) {
	b, _ := io.ReadAll(r)
	return s.Memory.Put(ctx, bytes.NewReader(b), limit)
}

type deaf struct{ *blob.Memory }

func (s deaf) Put(ctx context.Context, r io.Reader, limit int64) (blob.Info, error) {
	return s.Memory.Put(context.WithoutCancel(ctx), r, limit)
}

type eager struct{ *blob.Memory }

func (s eager) Put(ctx context.Context, r io.Reader, limit int64) (blob.Info, error) {
	var head bytes.Buffer
	if _, err := io.CopyN(&head, r, 300<<10); err == nil {
		if _, err := s.Memory.Put(ctx, bytes.NewReader(head.Bytes()), limit); err != nil {
			return blob.Info{}, err
		}
	}
	return s.Memory.Put(ctx, io.MultiReader(&head, r), limit)
}

type doubling struct{ *blob.Memory }

func (s doubling) List(ctx context.Context, yield func(blob.Info) bool) error {
	return s.Memory.List(ctx, func(i blob.Info) bool {
		more := yield(i)
		return more && yield(i)
	})
}

type frozen struct {
	*blob.Memory
	mu    sync.Mutex
	first time.Time
}

func (s *frozen) Stat(ctx context.Context, d artel.Digest) (blob.Info, error) {
	info, err := s.Memory.Stat(ctx, d)
	info.Time = s.first
	return info, err
}

func (s *frozen) Put(ctx context.Context, r io.Reader, limit int64) (blob.Info, error) {
	info, err := s.Memory.Put(ctx, r, limit)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first.IsZero() {
		s.first = info.Time
	}
	return info, err
}

// jealous refuses what is there already.
type jealous struct {
	*blob.Memory
	mu   sync.Mutex
	seen int
}

func (s *jealous) Put(ctx context.Context, r io.Reader, limit int64) (blob.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen++; s.seen > 1 {
		return blob.Info{}, artel.Errorf(artel.Conflict, "test", "", "busy")
	}
	return s.Memory.Put(ctx, r, limit)
}

type vague struct{ *blob.Memory }

func (s vague) Open(ctx context.Context, d artel.Digest) (blob.Reader, error) {
	r, err := s.Memory.Open(ctx, d)
	if err != nil {
		return nil, errors.New("something went wrong")
	}
	return r, nil
}

type keeper struct{ *blob.Memory }

func (keeper) Delete(context.Context, artel.Digest, time.Time) (bool, error) { return true, nil }

// blunt deletes whatever the time.
type blunt struct{ *blob.Memory }

func (s blunt) Delete(ctx context.Context, d artel.Digest, _ time.Time) (bool, error) {
	return s.Memory.Delete(ctx, d, time.Now().Add(time.Hour))
}

// hasty looks at the time first, and deletes then.
type hasty struct{ *blob.Memory }

func (s hasty) Delete(ctx context.Context, d artel.Digest, before time.Time) (bool, error) {
	info, err := s.Stat(ctx, d)
	if err == nil && !info.Time.Before(before) {
		return false, nil
	}
	time.Sleep(time.Millisecond)
	return s.Memory.Delete(ctx, d, time.Now().Add(time.Hour))
}

// lazy opens anew at each read.
type lazy struct{ *blob.Memory }

func (s lazy) Open(ctx context.Context, d artel.Digest) (blob.Reader, error) {
	r, err := s.Memory.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	return lazyReader{r, func() error { _, err := s.Stat(ctx, d); return err }}, nil
}

type lazyReader struct {
	blob.Reader
	check func() error
}

func (r lazyReader) Read(p []byte) (int, error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

type chatty struct{ *blob.Memory }

func (s chatty) List(ctx context.Context, yield func(blob.Info) bool) error {
	return s.Memory.List(ctx, func(i blob.Info) bool { yield(i); return true })
}

// sharing gives out one reader's memory to be scribbled on.
type sharing struct {
	*blob.Memory
	last []byte
}

func (s *sharing) Put(ctx context.Context, r io.Reader, limit int64) (blob.Info, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return blob.Info{}, err
	}
	s.last = b
	return s.Memory.Put(ctx, bytes.NewReader(b), limit)
}

func (s *sharing) Open(ctx context.Context, d artel.Digest) (blob.Reader, error) {
	if _, err := s.Stat(ctx, d); err != nil {
		return nil, err
	}
	defer func() { s.last = append([]byte("X"), s.last[1:]...) }()
	return bytesReader{bytes.NewReader(s.last)}, nil
}

type bytesReader struct{ *bytes.Reader }

func (bytesReader) Close() error { return nil }
