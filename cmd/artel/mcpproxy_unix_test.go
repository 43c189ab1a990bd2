// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"strconv"
	"syscall"
	"testing"

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
	if state, err := os.ReadFile("/proc/" + string(b) + "/stat"); err == nil && len(state) > 0 && !isZombie(state) {
		t.Errorf("the child %d still runs", pid)
	}
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
