// SPDX-License-Identifier: Apache-2.0

// Package process ends a program together with the programs that it started.
//
// Begin with [Lead], before the command starts. Unix ends the process group of
// the command, Windows its job object. A program that leaves its group (a
// daemon) is not ended.
package process

import "os/exec"

// A Group is a command with its descendants.
type Group group

// Lead makes cmd, which has not been started, the leader of a group. If cmd was
// made by [exec.CommandContext], the end of its context ends the whole group.
// The caller calls [Group.Started] after the start and [Group.Kill] after the
// end of the command.
func Lead(cmd *exec.Cmd) *Group {
	g := &Group{cmd: cmd}
	g.prepare()
	if cmd.Cancel != nil {
		cmd.Cancel = g.Kill
	}
	return g
}
