// SPDX-License-Identifier: Apache-2.0

package token

import "testing"

// TestCacheForgetsTheOldest is internal: what is remembered cannot be seen
// from outside, where a forgotten count is only slower.
func TestCacheForgetsTheOldest(t *testing.T) {
	c := cache{limit: 2}
	key := func(n uint64) cacheKey { return cacheKey{O200k, [2]uint64{n}} }
	for n := range uint64(4) {
		c.put(key(n), int(n)*10)
	}
	if n, ok := c.get(key(1)); !ok || n != 10 { // of the older generation, and young again
		t.Fatalf("get(1) = %d, %v", n, ok)
	}
	c.put(key(4), 40)
	for n, want := range map[uint64]bool{0: false, 1: true, 2: true, 3: true, 4: true} {
		_, young := c.young[key(n)]
		_, old := c.old[key(n)]
		if (young || old) != want {
			t.Errorf("%d is remembered: %v, want %v", n, !want, want)
		}
	}
	if len(c.young) > 2 || len(c.old) > 2 {
		t.Errorf("%d and %d entries", len(c.young), len(c.old))
	}
	if _, ok := c.get(cacheKey{Cl100k, key(4).digest}); ok {
		t.Error("a count of one vocabulary was found under another")
	}
}
