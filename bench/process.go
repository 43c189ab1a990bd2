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
func build(ctx context.Context, dir, pkg, to string) {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", to, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		fail("build %s: %w\n%s", pkg, err, out)
	}
}

// A process is a server in a process of its own, so that its memory is its own.
type process struct {
	cmd     *exec.Cmd
	url     string
	stderr  bytes.Buffer
	started time.Duration // from before the process until its first 200
}

// start runs a server that accepts --addr and waits for the first 200 from path.
// Its environment holds only what every program needs, so the machine's
// configuration has no influence.
func start(ctx context.Context, path, program string, args ...string) *process {
	return startIn(ctx, nil, path, program, args...)
}

// startIn is [start] with more in the environment.
func startIn(ctx context.Context, env []string, path, program string, args ...string) *process {
	addr := freeAddr(ctx)
	p := &process{url: "http://" + addr}
	p.cmd = exec.CommandContext(ctx, program, append(args, "--addr", addr)...)
	p.cmd.Env = []string{"HOME=" + os.TempDir(), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stderr = &p.stderr
	began := time.Now()
	check(p.cmd.Start())
	for {
		if ok(ctx, addr, path) {
			p.started = time.Since(began)
			return p
		}
		if time.Since(began) > 20*time.Second || ctx.Err() != nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
			fail("%s does not answer: %s", program, p.stderr.String())
		}
		time.Sleep(100 * time.Microsecond)
	}
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

func freeAddr(ctx context.Context) string {
	l := must((&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"))
	defer shut(l)
	return l.Addr().String()
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

// stop stops them, last first.
func (ps *processes) stop() {
	for _, p := range *ps {
		defer func() { check(p.stop()) }()
	}
}

// startRole adds a process that runs this program in a role.
func (ps *processes) startRole(ctx context.Context, role string, args ...string) *process {
	return ps.start(ctx, must(os.Executable()), append([]string{"role", role}, args...)...)
}

// start adds a process that runs program.
func (ps *processes) start(ctx context.Context, program string, args ...string) *process {
	p := start(ctx, "/healthz", program, args...)
	*ps = append(*ps, p)
	return p
}

// rss returns the resident memory in bytes.
func (p *process) rss() int64 { return p.memory("VmRSS:") }

// peak returns the maximum resident memory since resetPeak.
func (p *process) peak() int64 { return p.memory("VmHWM:") }

// resetPeak resets the peak to the current memory (proc(5), clear_refs).
func (p *process) resetPeak() { check(os.WriteFile(p.proc("clear_refs"), []byte("5"), 0)) }

func (p *process) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), name)
}

// busy returns the CPU time of the process on all processors.
func (p *process) busy() time.Duration {
	text, err := os.ReadFile(p.proc("stat"))
	if err != nil {
		fail("the time of processes is read from /proc: %w", err)
	}
	_, rest, _ := bytes.Cut(text, []byte(") ")) // behind the name; the fields are counted from 3
	fields := strings.Fields(string(rest))
	var ticks int64
	for _, i := range []int{14 - 3, 15 - 3} {
		if i >= len(fields) {
			fail("/proc says nothing about the time of processes")
		}
		n := must(strconv.ParseInt(fields[i], 10, 64))
		ticks += n
	}
	return time.Duration(ticks) * tick
}

// tick is the unit of CPU time in proc(5) on every Linux that Go supports.
const tick = 10 * time.Millisecond

func (p *process) memory(field string) int64 {
	status, err := os.ReadFile(p.proc("status"))
	if err != nil {
		fail("the memory of processes is read from /proc: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			return must(strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)) << 10
		}
	}
	fail("/proc says nothing about %s", field)
	return 0
}

// aboveIdle runs work and returns the growth of p's memory.
func (p *process) aboveIdle(work func() error) int64 {
	idle := p.rss()
	p.resetPeak()
	check(work())
	return p.peak() - idle
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
