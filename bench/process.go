// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// build compiles a program as releases are compiled.
func build(ctx context.Context, dir, pkg, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", to, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// A process is a server in a process of its own, so that its memory is its own.
type process struct {
	cmd     *exec.Cmd
	url     string
	stderr  bytes.Buffer
	started time.Duration // from before the process until its first 200
}

// start runs a server that accepts --addr and waits for the first 200 from path.
// The environment is empty but for what every program needs, so that nothing
// The environment is empty but for what every program needs, so that nothing
// Its environment holds only what every program needs, so the machine's
// configuration has no influence.
func start(ctx context.Context, path, program string, args ...string) (*process, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	p := &process{url: "http://" + addr}
	p.cmd = exec.CommandContext(ctx, program, append(args, "--addr", addr)...)
	p.cmd.Env = []string{"HOME=" + os.TempDir(), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	p.cmd.Stderr = &p.stderr
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for {
		if ok(ctx, addr, path) {
			p.started = time.Since(began)
			return p, nil
		}
		if time.Since(began) > 20*time.Second || ctx.Err() != nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
			return nil, fmt.Errorf("%s does not answer: %s", program, p.stderr.String())
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// startRole runs this program in one of its roles.
func startRole(ctx context.Context, role string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return start(ctx, "/healthz", self, append([]string{"role", role}, args...)...)
}

// ok sends one request over a plain connection, without http.Client.
func ok(ctx context.Context, addr, path string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: "+addr+"\r\nConnection: close\r\n\r\n"); err != nil {
		return false
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && strings.HasPrefix(line, "HTTP/1.1 200 ")
}

func freeAddr(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// stop asks the process to end, and waits for it.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	kill := time.AfterFunc(20*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	err := p.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGTERM {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, p.stderr.String())
	}
	return nil
}

// processes are the processes that a benchmark has started.
type processes []*process

// stop stops them, last first, and joins errors to err.
func (ps processes) stop(err *error) {
	for i := len(ps) - 1; i >= 0; i-- {
		*err = errors.Join(*err, ps[i].stop())
	}
}

// rss returns the resident memory in bytes.
func (p *process) rss() (int64, error) { return p.memory("VmRSS:") }

// peak returns the maximum resident memory since resetPeak.
func (p *process) peak() (int64, error) { return p.memory("VmHWM:") }

// resetPeak resets the peak to the current memory (proc(5), clear_refs).
func (p *process) resetPeak() error {
	return os.WriteFile(p.proc("clear_refs"), []byte("5"), 0)
}

func (p *process) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), name)
}

// busy returns the CPU time of the process on all processors.
func (p *process) busy() (time.Duration, error) {
	text, err := os.ReadFile(p.proc("stat"))
	if err != nil {
		return 0, fmt.Errorf("the time of processes is read from /proc: %w", err)
	}
	_, rest, _ := bytes.Cut(text, []byte(") ")) // behind the name; the fields are counted from 3
	fields := strings.Fields(string(rest))
	var ticks int64
	for _, i := range []int{14 - 3, 15 - 3} {
		if i >= len(fields) {
			return 0, errors.New("/proc says nothing about the time of processes")
		}
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// tick is the unit of CPU time in proc(5) on every Linux that Go supports.
const tick = 10 * time.Millisecond

func (p *process) memory(field string) (int64, error) {
	status, err := os.ReadFile(p.proc("status"))
	if err != nil {
		return 0, fmt.Errorf("the memory of processes is read from /proc: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("/proc says nothing about %s", field)
}

// aboveIdle runs work and returns the growth of p's memory.
func (p *process) aboveIdle(work func() error) (int64, error) {
	idle, err := p.rss()
	if err == nil {
		err = p.resetPeak()
	}
	if err == nil {
		err = work()
	}
	if err != nil {
		return 0, err
	}
	peak, err := p.peak()
	return peak - idle, err
}

// discard reads an answer to its end and checks the status.
func discard(resp *http.Response, status int) error {
	defer resp.Body.Close()
	if resp.StatusCode != status {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return fmt.Errorf("%s %s: %s: %s", resp.Request.Method, resp.Request.URL.Path, resp.Status, text)
	}
	_, err := io.Copy(io.Discard, resp.Body)
	return err
}
