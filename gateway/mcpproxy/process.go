// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel/internal/process"
)

// A Command is a server that speaks on its standard input and output.
type Command struct {
	Args   []string  // program and arguments
	Env    []string  // its whole environment; nil: that of this process
	Dir    string    // "": that of this process
	Stderr io.Writer // gets its standard error
	Say    func(string)
}

// stopTime is how long a program may take to end after its input was closed, and the output
// of what it started after its end.
const stopTime = 2 * time.Second

func (c Command) connect(ctx context.Context) (link, error) {
	ctx, kill := context.WithCancel(context.WithoutCancel(ctx))
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = c.Env, c.Dir, stopTime
	last := &lastWords{next: c.Stderr}
	cmd.Stderr = last
	group := process.Lead(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		kill()
		return nil, err
	}
	r, w := io.Pipe()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		kill()
		return nil, fmt.Errorf("%s cannot be started: %w", c.Args[0], err)
	}
	_ = group.Started() // without it the program alone is ended
	say := c.Say
	if say == nil {
		say = func(string) {}
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		_ = group.Kill() // what it has started
		_ = w.Close()
		ended <- err
	}()
	var once sync.Once
	var how error
	return newLines(r, in, say, func() error {
		once.Do(func() {
			_ = in.Close()
			late := time.AfterFunc(stopTime, kill)
			err := <-ended
			late.Stop()
			kill()
			how = explain(err, last.text())
		})
		return how
	}), nil
}

// explain says how a program ended and what it said last.
func explain(err error, said string) error {
	text := "it ended by itself"
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		text = e.String()
	} else if err != nil {
		text = err.Error()
	}
	if said != "" {
		text += "; it said: " + said
	}
	return errors.New(text)
}

// lastWords passes the standard error on and keeps its end.
type lastWords struct {
	next io.Writer

	mu   sync.Mutex
	kept []byte
}

const maxLastWords = 1000

// Write implements [io.Writer].
func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	l.kept = append(l.kept, p[max(0, len(p)-maxLastWords):]...)
	l.kept = bytes.Clone(l.kept[max(0, len(l.kept)-maxLastWords):])
	l.mu.Unlock()
	if l.next != nil {
		_, _ = l.next.Write(p) // a host that does not read it does not stop the server
	}
	return len(p), nil
}

// text returns the last lines.
func (l *lastWords) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSpace(strings.ToValidUTF8(string(l.kept), ""))
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-3):], " / ")
}
