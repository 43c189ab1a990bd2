// SPDX-License-Identifier: Apache-2.0

//go:build unix

package plugin

import (
	"os/exec"
	"syscall"
)

// grouped lets cmd lead a group of processes, and returns what ends all of it.
func grouped(cmd *exec.Cmd) func() error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() error {
		if cmd.Process == nil {
			return nil
		}
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
