// SPDX-License-Identifier: Apache-2.0

package token

import (
	"strconv"
	"testing"
)

// TestTextCache is internal: what is remembered cannot be seen from outside,
// where a forgotten count is only slower.
func TestTextCache(t *testing.T) {
	c := newTextCache()
	const many = 4 * shards * shardSets * setSize
	for i := range many {
		k := c.key(O200k, strconv.Itoa(i))
		if _, ok := c.get(k); ok {
			t.Fatalf("%d is there already", i)
		}
		c.put(k, i)
		c.put(k, i)
		if n, ok := c.get(k); !ok || n != i {
			t.Fatalf("get(%d) = %d, %v", i, n, ok)
		}
	}
	found := 0
	for i := range many {
		if n, ok := c.get(c.key(O200k, strconv.Itoa(i))); ok {
			if found++; n != i {
				t.Fatalf("get(%d) = %d", i, n)
			}
		}
	}
	if full := shards * shardSets * setSize; found > full || found < full*9/10 {
		t.Errorf("%d of %d are remembered", found, full)
	}
	if _, ok := c.get(c.key(Cl100k, strconv.Itoa(many-1))); ok {
		t.Error("a count of one vocabulary was found under another")
	}
}
