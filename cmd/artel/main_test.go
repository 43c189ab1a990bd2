// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/model/fake"
)

// TestMain puts this program on the PATH under the name artel, so that every
// test runs it as a process of its own. Tests wait for processes most of the
// time, so more of them run at once than there are processors.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"artel": main, "hostile-mcp": hostileMCP})
}

// patience is how long a test waits for what a process should do soon. It is
// long because machines may be busy; nothing waits for it to pass.
const patience = 5 * time.Minute

// bareEnvironment has what a process needs and no keys of models. Nobody
// listens on port 1, so no model server of this machine is found.
func bareEnvironment(home string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + os.TempDir(), "GORACE=atexit_sleep_ms=0",
		"OLLAMA_BASE_URL=http://127.0.0.1:1", "LLAMACPP_BASE_URL=http://127.0.0.1:1",
		"LMSTUDIO_BASE_URL=http://127.0.0.1:1", "VLLM_BASE_URL=http://127.0.0.1:1",
	}
}

// A process is an artel that serves.
type process struct {
	url string // that it told

	cmd  *exec.Cmd
	errs errorFile
	done chan struct{} // closed when it has ended
	err  error         // of Wait; read it after done
}

// launch starts artel in dir and waits until it tells its address. The caller
// stops or kills the process.
func launch(dir string, env []string, args ...string) (*process, error) {
	errs, err := newErrorFile()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command("artel", args...), errs: errs, done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = dir, trusting(dir, env), errs.File
	return p, p.begin()
}

// An errorFile takes the standard error of a process. What the process has written before it
// answers is there then, which it is not when a goroutine copies it.
type errorFile struct{ *os.File }

// newErrorFile makes a file without a name.
func newErrorFile() (errorFile, error) {
	f, err := os.CreateTemp("", "artel-errors-")
	if err != nil {
		return errorFile{}, err
	}
	return errorFile{f}, os.Remove(f.Name())
}

// String returns everything that was written so far.
func (f errorFile) String() string {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, math.MaxInt64))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (p *process) begin() error {
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	told := make(chan string, 1)
	go func() {
		defer close(p.done)
		lines := bufio.NewReader(out)
		line, _ := lines.ReadString('\n')
		told <- line
		_, _ = io.Copy(io.Discard, lines)
		p.err = p.cmd.Wait()
	}()
	select {
	case line := <-told:
		if i := strings.Index(line, "http"); i >= 0 {
			p.url = strings.TrimSpace(line[i:])
			return nil
		}
		<-p.done
		return fmt.Errorf("%q told no address: %w\n%s", p.cmd.Args, p.err, p.errs.String())
	case <-time.After(patience):
		p.kill()
		return fmt.Errorf("%q told no address in %s\n%s", p.cmd.Args, patience, p.errs.String())
	}
}

// stop asks the process to end, as an operator does, and wants it to end well.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
	case <-time.After(patience):
		p.kill()
		return fmt.Errorf("it did not stop in %s\n%s", patience, p.errs.String())
	}
	if p.err != nil {
		return fmt.Errorf("it stopped badly: %w\n%s", p.err, p.errs.String())
	}
	return nil
}

// kill ends the process without a word, and returns when it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.done
}

// serving starts a server for the length of a test.
func serving(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	p, err := launch(dir, env, append([]string{"serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "data")}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// faking starts a fake of a vendor's API for the length of a test.
func faking(t *testing.T, dir, dialect, key string, args ...string) *process {
	t.Helper()
	p, err := launch(dir, bareEnvironment(dir), append([]string{"fake", dialect, "--addr", "127.0.0.1:0", "--key", key}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// reported has a model look at samples, wants says in its answer, and returns the
// answer and the requests that the fake at vendor received.
func (p *process) reported(t *testing.T, vendor string, samples []string, says ...string) (string, []fake.Request) {
	t.Helper()
	args := []string{"chat", "--server", p.url}
	for _, name := range samples {
		path, err := filepath.Abs(samplePath(name))
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "-f", path)
	}
	out, _, err := verb(t.Context(), p.cmd.Dir, p.cmd.Env, append(args, "Look at these files and report.")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range says {
		if !strings.Contains(out, want) {
			t.Errorf("the answer lacks %q:\n%s", want, out)
		}
	}
	var asked []fake.Request
	fetchJSON(t, vendor+"/_fake/requests", &asked)
	if len(asked) < 3 {
		t.Fatalf("%d requests", len(asked))
	}
	return out, asked
}

// played sends a message in a new conversation, and returns its log as JSON when
// the run is done.
func (p *process) played(t *testing.T) string {
	t.Helper()
	client := httpapi.NewClient(p.url, nil)
	c, err := client.CreateConversation(t.Context(), httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := client.Send(t.Context(), c.ID, httpapi.NewMessage{Text: "Go."})
	if err != nil {
		t.Fatal(err)
	}
	if state := waitForEnd(t.Context(), t, client, c.ID, sent.RunID); state != artel.RunDone {
		t.Errorf("the run is %s", state)
	}
	all, err := json.Marshal(wholeLog(t.Context(), t, client, c.ID))
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// writeFiles writes files by their paths in dir.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// verb runs a verb to its end.
func verb(ctx context.Context, dir string, env []string, args ...string) (stdout string, code int, err error) {
	cmd := exec.CommandContext(ctx, "artel", args...)
	var errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = dir, trusting(dir, env), &errs
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode(), fmt.Errorf("artel %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return string(out), 0, err
}

// trusting returns env with the artel.yaml of dir as the trusted configuration,
// unless env has ARTEL_CONFIG.
func trusting(dir string, env []string) []string {
	if _, err := os.Stat(filepath.Join(dir, "artel.yaml")); err != nil || slices.ContainsFunc(env, func(s string) bool { return strings.HasPrefix(s, "ARTEL_CONFIG=") }) {
		return env
	}
	return with(env, "ARTEL_CONFIG=artel.yaml")
}

// with returns env with more in it.
func with(env []string, more ...string) []string { return append(slices.Clip(env), more...) }
