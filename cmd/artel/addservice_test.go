// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/artelhq/artel/model/fake"
)

// TestServicesCommand: a service is checked, added, used and removed by commands, is there
// after a restart, and is reported, not lost, if its key is another one.
func TestServicesCommand(t *testing.T) {
	t.Parallel()
	const key = "sk-0123456789abcd4f2a"
	api := httptest.NewServer(fake.OpenAI(fake.Options{Key: key, Models: []string{"alpha", "beta"}}))
	t.Cleanup(api.Close)
	dir := t.TempDir()
	env := bareEnvironment(dir)
	p := serving(t, dir, env)
	end := func() {
		t.Helper()
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
	}
	run := func(want int, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "artel", append(args, "--server", p.url)...)
		var out bytes.Buffer
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Stdin = dir, env, &out, &out, strings.NewReader(key+"\n")
		_ = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != want || strings.Contains(out.String(), key) {
			t.Fatalf("artel %s: exit %d, want %d: %s", strings.Join(args, " "), got, want, out.String())
		}
		return out.String()
	}
	if out := run(1, "services", "check", "--url", api.URL+"/v1"); !strings.Contains(out, "key_missing") {
		t.Errorf("without a key: %s", out)
	}
	if out := run(0, "services", "check", "--url", api.URL+"/v1", "--key"); !strings.Contains(out, "word") || !strings.Contains(out, "beta") {
		t.Errorf("with a key: %s", out)
	}
	if out := run(0, "services", "add", "team", "--url", api.URL+"/v1", "--key", "--all-models"); out != "team\nteam-beta\n" {
		t.Errorf("added %q", out)
	}
	if out := run(0, "services", "ls"); !strings.Contains(out, "team-beta") || !strings.Contains(out, "added by an administrator") {
		t.Errorf("list: %s", out)
	}
	run(0, "services", "check", "team")
	run(1, "services", "add", "team", "--url", api.URL)
	if out := run(1, "key", "create", "crew", "--service", "team-beta", "--budget", "5/month"); !strings.Contains(out, "/services") || !strings.Contains(out, "artel services set ID --price-input") {
		t.Errorf("a budget without a price does not name the next step: %s", out)
	}
	if out := run(1, "services", "set", "team", "--price-input", "1.25"); !strings.Contains(out, "input and output are needed") {
		t.Errorf("a price of input alone: %s", out)
	}
	run(2, "services", "set", "team", "--price-input", "1,25")
	run(0, "services", "set", "team", "--price-input", "1.25", "--price-output", "10")
	run(0, "services", "set", "team", "--price-cached", "0.125") // the others stay, and so does the secret
	run(0, "services", "check", "team")
	run(0, "key", "create", "crew", "--service", "team-beta", "--budget", "5/month")
	end()

	p = serving(t, dir, env)
	run(0, "chat", "--service", "team-beta", "hello")
	end()

	path := filepath.Join(dir, "data", secretFile)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the key file: %v, %v", info, err)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	p = serving(t, dir, env)
	resp, err := http.Get(p.url + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "secrets") {
		t.Errorf("without the key file: %d %s", resp.StatusCode, body)
	}
	end()
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	p = serving(t, dir, env)
	run(0, "services", "check", "team")
	run(0, "services", "rm", "team")
	if out := run(0, "services", "ls"); strings.Contains(out, "team") {
		t.Errorf("after its removal: %s", out)
	}
}
