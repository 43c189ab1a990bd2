// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReadOnlyData wants a clear refusal of a data directory that cannot be
// written. The superuser can write everywhere, so its tests run the server as
// somebody else.
func TestReadOnlyData(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "artel-readonly-*") // not t.TempDir, which only its owner may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o555); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("artel")
	if err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(dir, "artel")
	if err := os.Link(program, mine); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(mine, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), mine, "serve", "--addr", "127.0.0.1:0", "--data", data)
	cmd.Dir, cmd.Env = dir, bareEnvironment(dir)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != exitRefused || !strings.Contains(string(out), data) || !strings.Contains(string(out), "permission denied") {
		t.Errorf("%v: %s", err, out)
	}
}
