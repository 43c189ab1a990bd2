// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A group has a job object; processes started by a member are members.
type group struct {
	cmd *exec.Cmd

	mu     sync.Mutex
	handle windows.Handle // 0: none
}

func (g *Group) prepare() {
	if g.cmd.SysProcAttr == nil {
		g.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	g.cmd.SysProcAttr.CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP
}

// Started completes the group of a command that has just been started. What the
// command started before that is not in the group.
func (g *Group) Started() error {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(handle, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		err = g.assign(handle)
	}
	if err != nil {
		_ = windows.CloseHandle(handle)
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handle = handle
	return nil
}

func (g *Group) assign(handle windows.Handle) error {
	p, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(g.cmd.Process.Pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(p)
	return windows.AssignProcessToJobObject(handle, p)
}

// Kill ends all processes of the group that are still running. A command that
// was not started has none.
func (g *Group) Kill() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if handle := g.handle; handle != 0 {
		g.handle = 0
		err := windows.TerminateJobObject(handle, 1)
		if closed := windows.CloseHandle(handle); err == nil {
			err = closed
		}
		return err
	}
	if g.cmd.Process == nil {
		return nil
	}
	return g.cmd.Process.Kill()
}
