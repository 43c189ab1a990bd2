// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// A process is a program that was started.
type process struct {
	cmd    *exec.Cmd
	output string // the file of it; no pipe, which a daemon could hold open
	done   chan struct{}
	err    error // when it is done
}

// launch starts a program in a home of its own, without the environment of the
// test, and with a proxy that is not there for all addresses but this machine's.
func launch(how invocation, prompt, modules, home, dir string) (*process, error) {
	for name, text := range how.files {
		file := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			return nil, err
		}
	}
	own, err := filepath.Abs("../../bin")
	if err != nil {
		return nil, err
	}
	r := &process{cmd: exec.Command("/bin/sh", "-c", how.command+` "$0"`, prompt), output: filepath.Join(home, "output.txt"), done: make(chan struct{})}
	r.cmd.Dir = dir
	r.cmd.Env = []string{
		"HOME=" + home, "TMPDIR=" + home, "PATH=" + filepath.Join(modules, ".bin") + ":" + own + ":/usr/local/bin:/usr/bin:/bin", "TERM=xterm-256color", "LANG=C.UTF-8", "NO_COLOR=1",
		"HTTPS_PROXY=http://127.0.0.1:9", "HTTP_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1,localhost",
	}
	output, err := os.Create(r.output)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	r.cmd.Stdout, r.cmd.Stderr = output, output
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		r.err = r.cmd.Wait()
		close(r.done)
	}()
	return r, nil
}

// interrupt does what Ctrl-C does in a terminal.
func (r *process) interrupt() { _ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGINT) }

// kill ends the program and what it started, if they are still there.
func (r *process) kill() {
	_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
	<-r.done
}

// patience is how long a program may take for a session, also under load.
const patience = 5 * time.Minute

// wait returns when the program has ended.
func (r *process) wait() error {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-r.done:
		return r.err
	case <-late.C:
		r.kill()
		return errors.New("it did not come to an end")
	}
}

// said ends the program and returns the end of what it wrote.
func (r *process) said() string {
	r.kill()
	out, err := os.ReadFile(r.output)
	if err != nil {
		return err.Error()
	}
	return string(out[max(0, len(out)-3000):])
}
