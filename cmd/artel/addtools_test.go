// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestToolCommands: a server and a tool are checked, added, used and removed by commands,
// are there after a restart, and are reported, not lost, if the key of secrets is another.
func TestToolCommands(t *testing.T) {
	t.Parallel()
	const token = "Bearer tok-0123456789abcd4f2a"
	s := sdk.NewServer(&sdk.Implementation{Name: "lab", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "measure", Description: "Measures."}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "it has 42 degrees"}}}, nil, nil
	})
	mcp := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	lab := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != token {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		mcp.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { lab.CloseClientConnections(); lab.Close() })
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "it rains in %s", r.URL.Path[1:]) }))
	t.Cleanup(api.Close)
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"artel.yaml":   "mcp:\n  - {name: gone, command: [/no/such/program, --token, hidden-word]}\ntools:\n  - {name: ping, description: Pings., url: \"https://ping.example/\"}\n",
		"s.txtar":      "-- turn 1 --\n@call lab_measure {}\n@call weather {\"city\": \"Bergen\"}\n-- turn 2 --\nDone.\n",
		"weather.yaml": "name: weather\ndescription: Tells the weather.\nurl: " + api.URL + "/{city}\nallow_private: true\nagents: [lead_agent]\nparameters: {type: object, properties: {city: {type: string}}, required: [city]}\n",
		"bad.yaml":     "name: x\ndescription: x\ncommand: [sh]\nurl: https://x.example/\n",
	})
	env := bareEnvironment(dir)
	start := func(env []string) *process { return serving(t, dir, env, "--scenario", filepath.Join(dir, "s.txtar")) }
	p := start(env)
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
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Stdin = dir, env, &out, &out, strings.NewReader(token+"\n")
		_ = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != want || strings.Contains(out.String(), "0123456789") || strings.Contains(out.String(), "hidden-word") {
			t.Fatalf("artel %s: exit %d, want %d: %s", strings.Join(args, " "), got, want, out.String())
		}
		return out.String()
	}
	ready := func() {
		t.Helper()
		for end := time.Now().Add(5 * time.Minute); !strings.Contains(run(0, "mcp", "ls"), "1 tools"); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the server is not connected: %s", run(0, "mcp", "ls"))
			}
		}
	}
	if out := run(1, "mcp", "check", "--url", lab.URL); !strings.Contains(out, "key_missing") {
		t.Errorf("without a token: %s", out)
	}
	if out := run(0, "mcp", "check", "--url", lab.URL, "--header", "Authorization"); !strings.Contains(out, "measure") {
		t.Errorf("with a token: %s", out)
	}
	run(0, "mcp", "add", "lab", "--url", lab.URL, "--header", "Authorization", "--agent", "lead_agent")
	ready()
	run(1, "mcp", "add", "gone", "--url", lab.URL)
	if out := run(1, "mcp", "rm", "gone"); !strings.Contains(out, "artel.yaml") {
		t.Errorf("a server of the file: %s", out)
	}
	if out := run(1, "http-tools", "add", "bad.yaml"); !strings.Contains(out, "can only be configured in artel.yaml") {
		t.Errorf("a command: %s", out)
	}
	if out := run(0, "http-tools", "check", "weather.yaml", "--arguments", `{"city": "Oslo"}`); !strings.Contains(out, "it rains in Oslo") {
		t.Errorf("a call: %s", out)
	}
	run(0, "http-tools", "add", "weather.yaml")
	if out := run(0, "http-tools", "ls"); !strings.Contains(out, "added by an administrator") || !strings.Contains(out, "ping") {
		t.Errorf("%s", out)
	}
	end()

	p = start(env)
	ready()
	if all := p.played(t); !strings.Contains(all, "it has 42 degrees") || !strings.Contains(all, "it rains in Bergen") {
		t.Errorf("after a restart: %s", all)
	}
	end()

	path := filepath.Join(dir, "data", secretFile)
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string][]string{"missing": env, "another": with(env, "ARTEL_SECRET_KEY="+strings.Repeat("k", 32))} {
		p = start(env)
		resp, err := http.Get(p.url + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "secrets") {
			t.Errorf("%s key: %d %s", name, resp.StatusCode, body)
		}
		if out := run(0, "mcp", "ls"); !strings.Contains(out, "secret_unreadable") {
			t.Errorf("%s key: %s", name, out)
		}
		end()
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	p = start(env)
	run(0, "mcp", "check", "lab")
	run(0, "mcp", "rm", "lab")
	run(0, "http-tools", "rm", "weather")
	if out := run(0, "mcp", "ls") + run(0, "http-tools", "ls"); strings.Contains(out, "lab") || strings.Contains(out, "weather") {
		t.Errorf("after their removal: %s", out)
	}
}
