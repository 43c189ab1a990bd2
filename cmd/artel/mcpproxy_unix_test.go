// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/artelhq/artel/gateway/mcpproxy/mcpproxytest"
)

// TestMCPProxyEndsAll: what the server has started ends with the host.
func TestMCPProxyEndsAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _ := proxyHost(t, dir, []string{"MCP_CHILD=" + dir + "/child"}, "--", "hostile-mcp")
	if text := callProxy(t, s, "echo", mcpproxytest.Arguments{Text: "x"}); text != "x" {
		t.Error(text)
	}
	b, err := os.ReadFile(dir + "/child")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(b))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the child is gone before the end: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	// A signal has ended it, which takes a moment.
	late, look := time.After(3*time.Minute), time.NewTicker(10*time.Millisecond)
	defer look.Stop()
	for runs(pid) {
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("the child %d still runs", pid)
		}
	}
}

// runs reports whether a process has not ended yet.
func runs(pid int) bool {
	state, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !errors.Is(err, os.ErrNotExist)
	}
	return len(state) > 0 && !isZombie(state)
}

// isZombie reports whether a process has ended and nobody asked for its exit code.
func isZombie(stat []byte) bool {
	for i := len(stat) - 1; i > 0; i-- {
		if stat[i] == ')' {
			return len(stat) > i+2 && (stat[i+2] == 'Z' || stat[i+2] == 'X')
		}
	}
	return false
}
