// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package plugin

import "os/exec"

// grouped returns what ends cmd alone: this system has no groups of processes.
func grouped(cmd *exec.Cmd) func() error {
	return func() error {
		if cmd.Process == nil {
			return nil
		}
		return cmd.Process.Kill()
	}
}
