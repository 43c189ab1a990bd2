// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/artelhq/artel/internal/oauth/oauthtest"
)

// TestAccountCommands: a server of artel.yaml with accounts is connected by a command that
// waits, used after a restart, listed, and disconnected.
func TestAccountCommands(t *testing.T) {
	t.Parallel()
	mail := oauthtest.New(t)
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"artel.yaml": "mcp:\n  - {name: mail, url: \"" + mail.URL + "\", auth: oauth, agents: [lead_agent]}\n",
		"s.txtar":    "-- turn 1 --\n@call mail_whoami {}\n-- turn 2 --\nDone.\n",
	})
	env := bareEnvironment(dir)
	p := serving(t, dir, env, "--scenario", filepath.Join(dir, "s.txtar"))
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "artel", append(args, "--server", p.url)...)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("artel %s: %v: %s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if out := run("mcp", "accounts"); !strings.Contains(out, "mail  not_connected") {
		t.Errorf("before: %s", out)
	}
	cmd := exec.CommandContext(t.Context(), "artel", "mcp", "connect", "mail", "--server", p.url)
	var said bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = dir, env, &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), mail.Issuer+"/authorize?") {
		t.Fatalf("printed %q; %s", lines.Text(), said.String())
	}
	resp, err := http.Get(lines.Text()) // the browser, which comes back
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Request.URL.Path != "/tools" {
		t.Fatalf("arrived at %s: %s", resp.Request.URL, resp.Status)
	}
	if !lines.Scan() || !strings.Contains(lines.Text(), "mail  connected  ann@mail.example") {
		t.Errorf("at the end: %q", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	p = serving(t, dir, env, "--scenario", filepath.Join(dir, "s.txtar"))
	if out := run("chat", "Read my mail."); !strings.Contains(out, "Done.") {
		t.Errorf("chat: %s", out)
	}
	if n := mail.Count("code"); n != 1 {
		t.Errorf("%d codes", n)
	}
	run("mcp", "disconnect", "mail")
	if out := run("mcp", "accounts"); !strings.Contains(out, "mail  not_connected") || mail.Valid() != 0 {
		t.Errorf("after: %s, %d tokens are valid", out, mail.Valid())
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
}
