// SPDX-License-Identifier: Apache-2.0

package toolindex

import (
	"bytes"
	"slices"
	"sync"
)

// A Cache has the deferrals of the newest requests, because an index of hundreds of tools
// takes milliseconds to make. The zero Cache is empty. It is safe for concurrent use.
type Cache struct {
	mu     sync.Mutex
	newest [cached]entry
	next   int
}

const cached = 8 // deferrals

type entry struct {
	vocabulary string
	tools      []Tool
	of         *Deferral
}

// Defer is [Defer]; vocabulary names what count counts by. A cache is used with one pair of
// names.
func (c *Cache) Defer(vocabulary string, tools []Tool, find, call string, count func([]Tool) int) *Deferral {
	if d, ok := c.get(vocabulary, tools); ok {
		return d
	}
	d := Defer(tools, find, call, count)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest[c.next] = entry{vocabulary, slices.Clone(tools), d}
	c.next = (c.next + 1) % cached
	return d
}

func (c *Cache) get(vocabulary string, tools []Tool) (*Deferral, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.newest {
		if e.vocabulary == vocabulary && slices.EqualFunc(e.tools, tools, func(a, b Tool) bool {
			return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
		}) {
			return e.of, true
		}
	}
	return nil, false
}
