// SPDX-License-Identifier: Apache-2.0

package token

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// cache remembers the counts of texts. It holds two generations of at most
// limit entries each: what is asked for moves to the younger one, and when that
// is full the older is forgotten.
type cache struct {
	limit int

	mu         sync.Mutex
	young, old map[cacheKey]int
}

// cacheKey names a text in a vocabulary by two digests under keys of this
// process that nobody sees. They are made at some ten times the speed of
// SHA-256, and a count is all that another text of the same digest could get.
type cacheKey struct {
	vocabulary string
	digest     [2]uint64
}

func (c *cache) get(k cacheKey) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.young[k]
	if !ok {
		if n, ok = c.old[k]; ok {
			c.keep(k, n)
		}
	}
	return n, ok
}

func (c *cache) put(k cacheKey, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(k, n)
}

func (c *cache) keep(k cacheKey, n int) {
	if len(c.young) >= c.limit {
		c.old, c.young = c.young, nil
	}
	if c.young == nil {
		c.young = make(map[cacheKey]int)
	}
	c.young[k] = n
}

const (
	pieceSlots   = 1 << 15
	pieceLongest = 96 // bytes
)

// pieceCache remembers how many tokens pieces are that have to be merged:
// words that come again and again, above all Chinese ones, which no space
// parts. It is read without a lock, and a piece takes the place of another, so
// it is never more than about five megabytes.
type pieceCache struct {
	seed  maphash.Seed
	slots [pieceSlots]atomic.Pointer[pieceEntry]
}

type pieceEntry struct {
	piece string
	n     int
}
