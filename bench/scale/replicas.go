// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/secret"
	"github.com/artelhq/artel/store/postgres/postgrestest"
)

// replicaTime is how long each number of servers is measured, and replicaUsers how many users
// have runs one after the other.
const (
	replicaTime  = 20 * time.Second
	replicaUsers = 160
)

// script has a run of two model calls and one tool, which takes half a second of waiting for
// the model, so that many runs are at work at once.
const script = `
-- turn 1 --
@delay 250ms
@call create_artifact {"id": "note", "title": "Note", "content": "one"}
-- turn 2 --
@delay 250ms
Done.
`

// replicas measures whole runs over HTTP with one, two and three servers on one database, beside
// one server on SQLite, all on this machine.
func replicas(ctx context.Context, dir string) error {
	program := filepath.Join(dir, "artel")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/artel")
	build.Dir, build.Stderr = "..", os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "script.txtar"), []byte(script), 0o600); err != nil {
		return err
	}
	fmt.Printf("| servers | database | runs a second | of one on SQLite | p50 | p99 | processor for a run |\n|---|---|---:|---:|---:|---:|---:|\n")
	var anchor float64
	for _, n := range []int{0, 1, 2, 3} {
		m, err := measureReplicas(ctx, dir, program, n)
		if err != nil {
			return err
		}
		name := "PostgreSQL"
		if n == 0 {
			name, anchor = "SQLite", m.rate
		}
		fmt.Printf("| %d | %s | %.0f | %.2f | %.0f ms | %.0f ms | %.1f ms |\n", max(n, 1), name, m.rate, m.rate/anchor, m.p50, m.p99, m.processor)
	}
	return nil
}

// A replicaMeasure is what one number of servers did. Times are milliseconds.
type replicaMeasure struct{ rate, p50, p99, processor float64 }

// measureReplicas measures n servers with PostgreSQL; 0: one with SQLite.
func measureReplicas(ctx context.Context, dir, program string, n int) (m replicaMeasure, err error) {
	env := append(os.Environ(), "HOME="+dir, secret.Variable+"="+strings.Repeat("ab", 32), "OLLAMA_BASE_URL=http://127.0.0.1:1", "LLAMACPP_BASE_URL=http://127.0.0.1:1",
		"LMSTUDIO_BASE_URL=http://127.0.0.1:1", "VLLM_BASE_URL=http://127.0.0.1:1")
	if n > 0 {
		pg, err := postgrestest.Start("fsync=on", "synchronous_commit=on", "full_page_writes=on", "autovacuum=on")
		if err != nil {
			return m, err
		}
		defer pg.Stop()
		env = append(env, "ARTEL_DATABASE="+pg.Address, "ARTEL_BLOBS=file://"+filepath.Join(dir, fmt.Sprint("blobs", n)))
	}
	var servers []*exec.Cmd
	var clients []*httpapi.Client
	defer func() {
		for _, s := range servers {
			_ = s.Process.Signal(syscall.SIGTERM)
			_ = s.Wait()
		}
	}()
	for i := range max(n, 1) {
		args := []string{"serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, fmt.Sprint("data", n, "-", i)), "--scenario", filepath.Join(dir, "script.txtar")}
		if n > 0 {
			args = append(args, "--replica", fmt.Sprint("r", i))
		}
		s := exec.CommandContext(ctx, program, args...)
		s.Env = env
		out, err := s.StdoutPipe()
		if err != nil {
			return m, err
		}
		if err := s.Start(); err != nil {
			return m, err
		}
		servers = append(servers, s)
		line, err := bufio.NewReader(out).ReadString('\n')
		at := strings.Index(line, "http")
		if err != nil || at < 0 {
			return m, fmt.Errorf("artel says %q, %w", line, err)
		}
		clients = append(clients, httpapi.NewClient(strings.TrimSpace(line[at:]), &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: replicaUsers}}))
	}
	ctx, stop := context.WithTimeout(ctx, replicaTime)
	defer stop()
	var mu sync.Mutex
	var took []float64
	var failed error
	var users sync.WaitGroup
	for u := range replicaUsers {
		users.Go(func() {
			for i := u; ctx.Err() == nil; i++ {
				began := time.Now()
				// Each request goes to the next server: what one starts, another one is asked about.
				err := oneRun(ctx, clients[i%len(clients)], clients[(i+1)%len(clients)])
				mu.Lock()
				switch {
				case err == nil:
					took = append(took, float64(time.Since(began).Microseconds())/1000)
				case ctx.Err() == nil:
					failed = errors.Join(failed, err)
				}
				mu.Unlock()
			}
		})
	}
	users.Wait()
	if failed != nil || len(took) == 0 {
		return m, fmt.Errorf("%d runs, %w", len(took), failed)
	}
	slices.Sort(took)
	var processor time.Duration
	for _, s := range servers {
		_ = s.Process.Signal(syscall.SIGTERM)
		_ = s.Wait()
		processor += s.ProcessState.UserTime() + s.ProcessState.SystemTime()
	}
	servers = nil
	runs := float64(len(took))
	return replicaMeasure{runs / replicaTime.Seconds(), took[len(took)/2], took[len(took)*99/100], float64(processor.Milliseconds()) / runs}, nil
}

// oneRun has a message answered at one server, and follows it at another one.
func oneRun(ctx context.Context, at, follows *httpapi.Client) error {
	c, err := at.CreateConversation(ctx, httpapi.NewConversation{})
	if err != nil {
		return err
	}
	sent, err := at.Send(ctx, c.ID, httpapi.NewMessage{Text: "Go."})
	if err != nil {
		return err
	}
	for e, err := range follows.Events(ctx, c.ID, 0, time.Minute) {
		if err != nil {
			return err
		}
		if e.Type == artel.EventRunFinished && e.Run == sent.RunID {
			return nil
		}
	}
	return context.Cause(ctx)
}
