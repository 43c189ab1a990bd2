// SPDX-License-Identifier: Apache-2.0

//go:build unix

package mcp_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/artelhq/artel/agent/mcp"
)

// A program that an MCP server has started ends with it.
func TestGroupsEnd(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pid")
	pool, err := mcp.NewPool([]mcp.Server{{
		Name:    "group",
		Limits:  patient(),
		Process: &mcp.Process{Args: []string{self}, Env: []string{"MCP_SERVER=1", "MCP_CHILD=" + file, "PATH=" + os.Getenv("PATH")}, Dir: t.TempDir()},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); pool.Run(ctx) }()
	pool.Await(t.Context(), "")
	b, err := os.ReadFile(file)
	pid, bad := strconv.Atoi(string(b))
	if err != nil || bad != nil || len(pool.Tools("local")) == 0 {
		t.Fatalf("the server has %d tools; %v, %v", len(pool.Tools("local")), err, bad)
	}
	stop()
	<-done
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if syscall.Kill(pid, 0) != nil || err == nil && strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(end) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("the program %d is still running", pid)
		}
	}
}
