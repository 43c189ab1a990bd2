// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/gateway/mcpproxy/mcpproxytest"
)

// hostileMCP is a program that speaks MCP, with a program that it has started.
func hostileMCP() {
	if file := os.Getenv("MCP_CHILD"); file != "" {
		child := exec.Command("sleep", "1000")
		if err := child.Start(); err != nil {
			os.Exit(1)
		}
		if err := os.WriteFile(file, []byte(strconv.Itoa(child.Process.Pid)), 0o600); err != nil {
			os.Exit(1)
		}
	}
	fmt.Fprintln(os.Stderr, "hostile is in", os.Getenv("WHERE"))
	if err := mcpproxytest.Server(0).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

// proxyHost starts artel mcp proxy as a host does.
func proxyHost(t *testing.T, dir string, more []string, args ...string) (*sdk.ClientSession, *apptest.Log) {
	t.Helper()
	errs := &apptest.Log{}
	cmd := exec.Command("artel", append([]string{"mcp", "proxy"}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(bareEnvironment(dir), more...), errs
	s, err := sdk.NewClient(&sdk.Implementation{Name: "host", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd, TerminateDuration: patience}, nil)
	if err != nil {
		t.Fatal(err, errs.String())
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, errs
}

func callProxy(t *testing.T, s *sdk.ClientSession, tool string, in any) string {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		t.Fatal(err)
	}
	return mcpproxytest.Text(r)
}

// TestMCPProxy: a host gets a preview, the whole is an artifact of the data directory, and a
// later proxy and a server that is running then read it.
func TestMCPProxy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, errs := proxyHost(t, dir, []string{"WHERE=" + dir}, "--data", dir+"/data", "--name", "hostile", "--", "hostile-mcp")
	want := mcpproxytest.Log(5000)
	text := callProxy(t, s, "log", mcpproxytest.Arguments{Size: 5000})
	ref := regexp.MustCompile(`blob:sha256-[0-9a-f]{64}`).FindString(text)
	if ref == "" || len(text) > 4096 {
		t.Fatalf("%d bytes: %s", len(text), text)
	}
	if again := callProxy(t, s, "log", mcpproxytest.Arguments{Size: 5000}); again != text {
		t.Errorf("the same call gives %q", again)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(errs.String(), "hostile is in "+dir) {
		t.Errorf("the standard error is %q", errs.String())
	}

	p, err := launch(dir, bareEnvironment(dir), "serve", "--addr", "127.0.0.1:0", "--data", dir+"/data")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.stop() })
	later, _ := proxyHost(t, dir, nil, "--data", dir+"/data", "--name", "hostile", "--", "hostile-mcp")
	got := ""
	for len(got) < len(want) {
		r := callProxy(t, later, "artel_read", map[string]any{"ref": ref, "offset": len(got), "limit": 65536})
		_, page, _ := strings.Cut(r, "]\n")
		if page == "" {
			t.Fatal(r)
		}
		got += page
	}
	if got != want {
		t.Errorf("%d other bytes, want %d", len(got), len(want))
	}
	_ = callProxy(t, later, "log", mcpproxytest.Arguments{Size: 5000})
	_ = callProxy(t, later, "log", mcpproxytest.Arguments{Size: 6000})
	list := exec.Command("artel", "ls", "--server", p.url)
	list.Dir, list.Env = dir, bareEnvironment(dir)
	out, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if n := bytes.Count(out, []byte("MCP hostile")); n != 1 {
		t.Errorf("%d conversations are named MCP hostile:\n%s", n, out)
	}
}

// TestMCPProxyOfAddress wraps a server with an address, with a secret of the environment.
func TestMCPProxyOfAddress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hostile := mcpproxytest.Server(0)
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return hostile }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	defer web.Close()
	s, _ := proxyHost(t, dir, []string{"KEY=secret"}, "--url", web.URL, "--header", "Authorization: Bearer ${KEY}")
	if text := callProxy(t, s, "echo", mcpproxytest.Arguments{Text: "here"}); text != "here" {
		t.Error(text)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	cmd := exec.Command("artel", "mcp", "proxy", "--url", web.URL)
	cmd.Dir, cmd.Env = dir, bareEnvironment(dir)
	_, err := sdk.NewClient(&sdk.Implementation{Name: "host", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err == nil || !strings.Contains(err.Error(), "401 Unauthorized: who are you?") {
		t.Errorf("%v", err)
	}
}

// TestMCPProxyUsage: a wrong command line is refused before anything starts.
func TestMCPProxyUsage(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"give the command of the server after --": {},
		"not both":                                  {"--url", "http://x.example", "--", "y"},
		"--header is for --url":                     {"--header", "A: b", "--", "y"},
		"want 1024 to 1048576 bytes":                {"--limit", "10", "--", "y"},
		"want auto, on or off":                      {"--defer", "maybe", "--", "y"},
		"want an http or https address":             {"--url", "ftp://x.example"},
		"want NAME: VALUE":                          {"--url", "http://x.example", "--header", "nonsense"},
		"environment variable NOT_THERE is not set": {"--url", "http://x.example", "--header", "A: ${NOT_THERE}"},
	} {
		cmd := exec.Command("artel", append([]string{"mcp", "proxy"}, args...)...)
		cmd.Env = bareEnvironment(t.TempDir())
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != exitUsage || !strings.Contains(string(out), want) {
			t.Errorf("%v: exit code %d: %s", args, code, out)
		}
	}
	cmd := exec.Command("artel", "mcp", "proxy", "--", "/nowhere/nothing")
	cmd.Env, cmd.Stdin = bareEnvironment(t.TempDir()), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != exitRefused || !strings.Contains(string(out), "/nowhere/nothing cannot be started") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestServerName(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"@playwright/mcp@latest": {"npx", "-y", "@playwright/mcp@latest", "--headless"},
		"server-files":           {"/usr/bin/server-files", "x"},
		"thing":                  {"uvx", "thing"},
		"image":                  {"docker", "run", "--rm", "image"},
	} {
		if got := serverName(args, ""); got != want {
			t.Errorf("%v is %q", args, got)
		}
	}
	if got := serverName(nil, "https://tracker.example:8443/mcp"); got != "tracker.example" {
		t.Error(got)
	}
}
