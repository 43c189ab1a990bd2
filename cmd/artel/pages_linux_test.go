// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// TestUnmapProgram: most pages of the program that were mapped are no longer mapped
// afterwards. It runs in a process of its own, where no other test needs them.
func TestUnmapProgram(t *testing.T) {
	const alone = "ARTEL_TEST_PAGES"
	if os.Getenv(alone) == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestUnmapProgram$")
		again.Env = append(os.Environ(), alone+"=1")
		if out, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	before := mappedFiles(t)
	unmapProgram()
	if after := mappedFiles(t); after > before/2 {
		t.Errorf("%d kB of files were mapped, and %d kB are afterwards", before, after)
	}
}

// mappedFiles returns how much of files is mapped, in kB; see proc_pid_status(5).
func mappedFiles(t *testing.T) (kB int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := bytes.Cut(status, []byte("RssFile:"))
	if _, err := fmt.Sscan(string(rest), &kB); !found || err != nil {
		t.Fatalf("no RssFile: %v", err)
	}
	return kB
}
