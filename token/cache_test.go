// SPDX-License-Identifier: Apache-2.0

package token

import "testing"

// TestCacheForgetsTheOldest is internal: what is remembered cannot be seen
// from outside, where a forgotten count is only slower.
func TestCacheForgetsTheOldest(t *testing.T) {
	c := cache{limit: 2}
	key := func(b byte) cacheKey { return cacheKey{O200k, [32]byte{b}} }
	c.put(key(1), 10)
	c.put(key(2), 20)
	if n, ok := c.get(key(1)); !ok || n != 10 {
		t.Fatalf("get(1) = %d, %v", n, ok)
	}
	c.put(key(3), 30) // 2 is now the least recently used
	c.put(key(3), 30)
	for b, want := range map[byte]bool{1: true, 2: false, 3: true} {
		if _, ok := c.get(key(b)); ok != want {
			t.Errorf("get(%d): found %v, want %v", b, ok, want)
		}
	}
	if _, ok := c.get(cacheKey{Cl100k, key(1).digest}); ok {
		t.Error("a count of one vocabulary was found under another")
	}
	if c.order.Len() != 2 || len(c.byKey) != 2 {
		t.Errorf("%d and %d entries, want 2", c.order.Len(), len(c.byKey))
	}
}
