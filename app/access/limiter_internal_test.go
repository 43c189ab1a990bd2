// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"testing"
	"time"
)

// TestLimiterForgetsNoCount: a client that tries very many names does not make the
// limiter forget the failures of another one, nor gets rid of its own.
func TestLimiterForgetsNoCount(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	l := newLimiter(func() time.Time { return now }, 5)
	for range 5 {
		if wait := l.enter("ann"); wait != 0 {
			t.Fatalf("waits %v", wait)
		}
	}
	for i := range 2 * maxLimited {
		l.enter(fmt.Sprint("spray ", i))
	}
	if len(l.tries) != maxLimited {
		t.Errorf("%d names", len(l.tries))
	}
	if l.enter("ann") == 0 {
		t.Error("the failures of ann were forgotten")
	}
	// Between two tries of bob there are others, each of which takes somebody's place.
	free := 0
	for i := range 20 {
		if l.enter("bob") == 0 {
			free++
		}
		l.enter(fmt.Sprint("other ", i))
	}
	if free > 5 {
		t.Errorf("%d tries of bob did not wait", free)
	}
	now = now.Add(forgetting + maxDelay + time.Second)
	if wait := l.enter("carol"); wait != 0 || len(l.tries) != 1 {
		t.Errorf("after the time of all: waits %v with %d names", wait, len(l.tries))
	}
}

func TestNetworkOf(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64", "": "", "@": "@",
	} {
		if got := networkOf(address); got != want {
			t.Errorf("%q: got %q, want %q", address, got, want)
		}
	}
}
