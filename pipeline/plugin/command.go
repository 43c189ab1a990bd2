// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/process"
	"github.com/artelhq/artel/pipeline"
)

// A Command is a local program that reads a draft from its standard input,
// writes an answer to its standard output and exits with 0.
type Command struct {
	Args []string          // the program, which may be relative to Dir, and its arguments; no shell is involved
	Dir  string            // working directory; "": that of this process
	Env  map[string]string // environment in addition to PATH and LANG=C.UTF-8; the rest of this process's is not passed
}

// waitDelay is how long the output may stay open after the program has ended.
const waitDelay = 500 * time.Millisecond

// maxNotes is how many bytes of the end of standard error go into the record.
const maxNotes = 2000

// Processor returns a processor that runs the command for every build. A
// missing program is of kind Invalid. On a timeout or too much output, the
// program is killed together with all processes that it started.
func (c Command) Processor(id string, o Options) (pipeline.Processor, error) {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return pipeline.Processor{}, artel.Errorf(artel.Invalid, "plugin.New", id, "the command is missing")
	}
	c.Args, c.Env = slices.Clone(c.Args), maps.Clone(c.Env)
	if name := c.Args[0]; strings.ContainsRune(name, '/') && !filepath.IsAbs(name) {
		c.Args[0] = filepath.Join(c.Dir, name)
	}
	if _, err := exec.LookPath(c.Args[0]); err != nil {
		return pipeline.Processor{}, artel.Errorf(artel.Invalid, "plugin.New", id, "the command cannot be found: %w", err)
	}
	return processor(id, c.Args[0], o, c.ask) // its arguments may hold secrets
}

func (c Command) ask(ctx context.Context, draft []byte, limit int64) ([]byte, string, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := &bounded{limit: limit, full: func() {
		stop(artel.Errorf(artel.TooLarge, "plugin.Ask", "", "the answer has more than %d bytes", limit))
	}}
	notes := &tail{}
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Env = c.Dir, c.environ()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(draft), out, notes
	cmd.WaitDelay = waitDelay
	group := process.Lead(cmd)
	err := cmd.Start()
	if err == nil {
		_ = group.Started() // without it the command alone is ended
		err = cmd.Wait()
	}
	_ = group.Kill() // remaining processes
	if ctx.Err() != nil {
		return nil, notes.String(), context.Cause(ctx)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it succeeded; a child process held its output open
	}
	if err != nil {
		said := ""
		if s := notes.String(); s != "" {
			said = ": " + s
		}
		return nil, "", artel.Errorf(artel.Unavailable, "plugin.Ask", "", "the program failed (%w)%s", err, said)
	}
	return out.b, notes.String(), nil
}

// environ returns the environment of the program.
func (c Command) environ() []string {
	env := map[string]string{"PATH": os.Getenv("PATH"), "LANG": "C.UTF-8"}
	maps.Copy(env, c.Env)
	var out []string
	for _, k := range slices.Sorted(maps.Keys(env)) {
		out = append(out, k+"="+env[k])
	}
	return out
}

// bounded keeps up to limit bytes.
type bounded struct {
	b     []byte
	limit int64
	full  func()
}

func (b *bounded) Write(p []byte) (int, error) {
	if int64(len(b.b)+len(p)) > b.limit {
		b.full()
		return 0, fmt.Errorf("more than %d bytes", b.limit)
	}
	b.b = append(b.b, p...)
	return len(p), nil
}

// tail keeps the last bytes.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p[max(0, len(p)-maxNotes):]...)
	t.b = t.b[max(0, len(t.b)-maxNotes):]
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(strings.ToValidUTF8(string(t.b), "\uFFFD")) }
