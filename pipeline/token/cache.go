// SPDX-License-Identifier: Apache-2.0

package token

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

const (
	shards    = 16
	shardSets = 512
	setSize   = 8
)

// A textCache keeps the counts of texts: shards × shardSets × setSize of them,
// in about 1.6 MB. A new text replaces any other of its set when the set is
// full. It is designed for ten thousand lookups per build.
type textCache struct {
	seeds  [2]maphash.Seed
	shards [shards]struct {
		mu   sync.Mutex
		sets []set // nil until the first put
	}
}

type set [setSize]textCount

type textCount struct {
	key textKey
	n   int // 1 + the count; 0: free
}

// A textKey identifies a text in a vocabulary by two hashes with secret
// per-process seeds. They are about ten times as fast as SHA-256, and a
// collision costs no more than a wrong count.
type textKey [2]uint64

func newTextCache() *textCache {
	return &textCache{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

func (c *textCache) key(vocabulary, text string) textKey {
	return textKey{
		maphash.String(c.seeds[0], text),
		maphash.String(c.seeds[1], text) ^ maphash.String(c.seeds[0], vocabulary),
	}
}

func (c *textCache) get(k textKey) (int, bool) {
	s := &c.shards[k[0]%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sets == nil {
		return 0, false
	}
	for _, e := range &s.sets[k[0]/shards%shardSets] {
		if e.key == k && e.n > 0 {
			return e.n - 1, true
		}
	}
	return 0, false
}

func (c *textCache) put(k textKey, n int) {
	s := &c.shards[k[0]%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sets == nil {
		s.sets = make([]set, shardSets)
	}
	in := &s.sets[k[0]/shards%shardSets]
	at := int(k[1] % setSize)
	for i, e := range in {
		if e.n == 0 || e.key == k {
			at = i
			break
		}
	}
	in[at] = textCount{k, n + 1}
}

const (
	pieceSlots   = 1 << 16
	pieceLongest = 96 // bytes
)

// A pieceCache keeps the token counts of pieces that have to be merged:
// recurring words, above all Chinese ones, which have no spaces between them.
// It is read without a lock, and a piece replaces another, so that it never
// exceeds about eight megabytes.
type pieceCache struct {
	seed  maphash.Seed
	slots [pieceSlots]atomic.Pointer[pieceEntry]
}

type pieceEntry struct {
	piece string
	n     int
}
