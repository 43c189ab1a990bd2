// SPDX-License-Identifier: Apache-2.0

package token

import (
	"container/list"
	"crypto/sha256"
	"sync"
)

// cache remembers counts, and forgets the least recently used beyond limit.
type cache struct {
	limit int

	mu    sync.Mutex
	byKey map[cacheKey]*list.Element
	order list.List // of cacheEntry, newest in front
}

type cacheKey struct {
	vocabulary string
	digest     [sha256.Size]byte
}

type cacheEntry struct {
	key cacheKey
	n   int
}

func (c *cache) get(k cacheKey) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[k]
	if !ok {
		return 0, false
	}
	c.order.MoveToFront(e)
	return e.Value.(cacheEntry).n, true
}

func (c *cache) put(k cacheKey, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[k]; ok {
		c.order.MoveToFront(e)
		return
	}
	if c.byKey == nil {
		c.byKey = make(map[cacheKey]*list.Element)
	}
	c.byKey[k] = c.order.PushFront(cacheEntry{k, n})
	if c.order.Len() > c.limit {
		oldest := c.order.Back()
		c.order.Remove(oldest)
		delete(c.byKey, oldest.Value.(cacheEntry).key)
	}
}
