// SPDX-License-Identifier: Apache-2.0

// Package program runs Artel as its users do, for tests with their clients.
package program

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/artelhq/artel"
)

// Build builds the program from the repository at root, and returns its path.
func Build(t testing.TB, root string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "artel")
	build := exec.Command("go", "build", "-o", binary, "./cmd/artel")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// Start builds the program from the repository at root, serves with the text of an
// artel.yaml until the test ends, and returns the base URL. Nothing of the
// environment configures a service.
func Start(t testing.TB, root, config string) string {
	t.Helper()
	url, _ := StartAt(t, root, config, "127.0.0.1:0")
	return url
}

// StartAt is Start for an address to listen on. setup is where the first administrator
// is made, "" if the server asks for none.
func StartAt(t testing.TB, root, config, address string) (url, setup string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "artel.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := Build(t, root)
	ctx, stop := context.WithCancel(context.Background())
	serve := exec.CommandContext(ctx, binary, "serve", "--addr", address, "--data", filepath.Join(dir, "data"), "--config", file)
	serve.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir, "OLLAMA_HOST=127.0.0.1:1", "OPENAI_API_KEY=", "ANTHROPIC_API_KEY=", "GEMINI_API_KEY=", "OPENROUTER_API_KEY=")
	serve.Cancel = func() error { return serve.Process.Signal(os.Interrupt) }
	var log strings.Builder
	serve.Stderr = &log
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = serve.Wait()
		if t.Failed() {
			t.Logf("the server said:\n%s", artel.Shorten(log.String(), 2000))
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), "set up at "); ok {
			setup = at
		}
		if _, url, ok := strings.Cut(lines.Text(), "listening on "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return url, setup
		}
	}
	t.Fatal("the server does not start")
	return "", ""
}
