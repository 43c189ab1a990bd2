// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
)

func TestPercentFor(t *testing.T) {
	for live, want := range map[uint64]int{0: 1000, 1 << 20: 1000, 16 << 20: 300, 32 << 20: 100, 40 << 20: 100, 1 << 40: 100} {
		if got := percentFor(live); got != want {
			t.Errorf("%d bytes in use: %d %%, want %d", live, got, want)
		}
	}
}

// TestRaiseHeap: the percentage is high while little is in use, the usual one when
// much is, and the usual one again at the end. It runs in a process of its own,
// because other tests use the heap, too.
func TestRaiseHeap(t *testing.T) {
	const alone = "ARTEL_TEST_HEAP"
	if os.Getenv(alone) == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRaiseHeap$")
		again.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "GOGC=") }), alone+"=1")
		if out, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	runtime.GC()
	stop := raiseHeap()
	little := percent()
	if little <= usualPercent {
		t.Errorf("little in use: %d %%", little)
	}
	much := make([]byte, heapFloor)
	for percent() != usualPercent {
		runtime.GC() // the percentage is set a moment later
	}
	runtime.KeepAlive(much)
	for percent() == usualPercent {
		runtime.GC()
	}
	stop()
	if got := percent(); got != usualPercent {
		t.Errorf("at the end: %d %%", got)
	}
	t.Setenv("GOGC", "50")
	debug.SetGCPercent(50)
	raiseHeap()()
	if got := percent(); got != 50 {
		t.Errorf("a percentage that the user has set became %d", got)
	}
}

// percent returns the percentage that is set.
func percent() int {
	m := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(m)
	return int(m[0].Value.Uint64())
}
