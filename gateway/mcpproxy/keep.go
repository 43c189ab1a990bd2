// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"context"
	"io"
	"slices"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
)

// A Store keeps what a wrapped server returned, by digest.
type Store interface {
	// Keep stores size bytes. Storing the same bytes again changes nothing.
	Keep(ctx context.Context, r io.Reader, f File) error
	// Open returns bytes that were kept, also by an earlier process. Of an unknown digest
	// the error is of kind [artel.NotFound].
	Open(ctx context.Context, d artel.Digest) (io.ReadCloser, error)
}

// A File describes bytes.
type File struct {
	Digest artel.Digest
	artel.MediaInfo
	Name string // proposed by the server; may be empty
}

// Ref returns the ref by which models name the bytes.
func (f File) Ref() string { return artel.BlobRef(f.Digest).String() }

// recent is how many of the last used files a keeper holds.
const recent = 4

// maxKnown is how many digests a keeper remembers.
const maxKnown = 20_000

// A keeper puts bytes into a store, and holds the last ones for reading on.
type keeper struct {
	store Store

	mu    sync.Mutex
	known map[artel.Digest]bool // that are in the store
	files []*held               // the last used first
}

// A held file is in a spool. It is closed after its last user.
type held struct {
	File
	*spool
	at    span
	users int
	gone  bool
}

func newKeeper(s Store) *keeper { return &keeper{store: s, known: map[artel.Digest]bool{}} }

// sniff describes the bytes at a span.
func sniff(ctx context.Context, s *spool, at span, h media.Hint) (File, error) {
	n := media.NewSniffer(h)
	if _, err := io.Copy(n, s.reader(at)); err != nil {
		return File{}, err
	}
	d, err := s.digest(at)
	info := n.Info()
	if !info.IsBinary() && info.MediaType == "text/plain" && looksJSON(s, at) {
		info.MediaType = "application/json"
	}
	info = media.Measure(ctx, info, s.reader(at))
	return File{Digest: d, MediaInfo: info, Name: h.Filename}, err
}

// looksJSON reports whether the whole text is one JSON object or array.
func looksJSON(s *spool, at span) bool {
	if k := s.kind(at); k != '{' && k != '[' {
		return false
	}
	c := scan(s, at)
	_, err := c.value()
	return err == nil && c.peek() == 0
}

// keep stores the bytes at a span, unless they are stored.
func (k *keeper) keep(ctx context.Context, s *spool, at span, h media.Hint) (File, error) {
	f, err := sniff(ctx, s, at, h)
	if err != nil {
		return f, err
	}
	k.mu.Lock()
	known := k.known[f.Digest]
	k.mu.Unlock()
	if known {
		return f, nil
	}
	if err := k.store.Keep(ctx, s.reader(at), f); err != nil {
		return f, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= maxKnown {
		clear(k.known)
	}
	k.known[f.Digest] = true
	return f, nil
}

// open returns a file of the store. The caller calls done.
func (k *keeper) open(ctx context.Context, d artel.Digest) (h *held, done func(), err error) {
	if h := k.use(d); h != nil {
		return h, func() { k.done(h) }, nil
	}
	r, err := k.store.Open(ctx, d)
	if err != nil {
		return nil, nil, err
	}
	s := &spool{}
	_, err = io.Copy(s, r)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	var f File
	if err == nil {
		f, err = sniff(ctx, s, s.all(), media.Hint{})
	}
	if err != nil {
		_ = s.Close()
		return nil, nil, err
	}
	h = &held{File: f, spool: s, at: s.all(), users: 1}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.files = slices.Insert(k.files, 0, h)
	for len(k.files) > recent {
		last := k.files[len(k.files)-1]
		k.files = k.files[:len(k.files)-1]
		last.gone = true
		if last.users == 0 {
			_ = last.Close()
		}
	}
	return h, func() { k.done(h) }, nil
}

func (k *keeper) use(d artel.Digest) *held {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.files, func(h *held) bool { return h.Digest == d })
	if i < 0 {
		return nil
	}
	h := k.files[i]
	h.users++
	k.files = slices.Insert(slices.Delete(k.files, i, i+1), 0, h)
	return h
}

func (k *keeper) done(h *held) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.users--; h.users == 0 && h.gone {
		_ = h.Close()
	}
}

func (k *keeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range k.files {
		_ = h.Close()
	}
	k.files = nil
}
