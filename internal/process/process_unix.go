// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"os/exec"
	"syscall"
)

// A group needs no handle: Unix names it by the process id of its leader.
type group struct{ cmd *exec.Cmd }

func (g *Group) prepare() {
	if g.cmd.SysProcAttr == nil {
		g.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	g.cmd.SysProcAttr.Setpgid = true
}

// Started completes the group of a command that has just been started.
func (g *Group) Started() error { return nil }

// Kill ends all processes of the group that are still running. A command that
// was not started has none.
func (g *Group) Kill() error {
	if g.cmd.Process == nil {
		return nil
	}
	return syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL)
}
