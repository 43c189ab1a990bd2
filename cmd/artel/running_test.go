// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/gateway/mcpproxy/mcpproxytest"
	"github.com/artelhq/artel/httpapi"
)

// inFolder runs a verb in a new folder.
func inFolder(t *testing.T, home string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("artel", args...)
	cmd.Dir, cmd.Env = t.TempDir(), bareEnvironment(home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestOtherFolder: from any folder, without flags, a host reaches the artifacts that the user
// sees on the page, through artel mcp and through a proxy, whose calls are in the log.
func TestOtherFolder(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	p := serving(t, home, bareEnvironment(home))
	folder := t.TempDir()
	errs := &apptest.Log{}
	cmd := exec.Command("artel", "mcp")
	cmd.Dir, cmd.Env, cmd.Stderr = folder, bareEnvironment(home), errs
	s, err := sdk.NewClient(&sdk.Implementation{Name: "host", Version: "3"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd, TerminateDuration: patience}, nil)
	if err != nil {
		t.Fatal(err, errs.String())
	}
	if r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "create_artifact", Arguments: map[string]any{"id": "plan", "title": "Plan", "content": "# Plan\n"}}); err != nil || r.IsError {
		t.Fatal(err, r)
	}
	_ = s.Close()
	if want := "using the server of this user at " + p.url; !strings.Contains(errs.String(), want) {
		t.Errorf("standard error does not say %q: %s", want, errs.String())
	}
	out, err := inFolder(t, home, "ls")
	if err != nil || !strings.Contains(out, "MCP") || !strings.Contains(out, "artel: using the server of this user at "+p.url) {
		t.Errorf("artel ls says %v: %s", err, out)
	}

	proxied, _ := proxyHost(t, folder, []string{"HOME=" + home}, "--name", "hostile", "--", "hostile-mcp")
	_ = callProxy(t, proxied, "echo", mcpproxytest.Arguments{Text: "here"})
	_ = callProxy(t, proxied, "log", mcpproxytest.Arguments{Size: 5000})
	_ = proxied.Close() // reports the last calls
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) > 0 {
		t.Errorf("the folder has %q", left)
	}
	api := httpapi.NewClient(p.url, nil)
	var entries []gatewaylog.GatewayEntry
	for late := time.Now().Add(patience); len(entries) < 3; time.Sleep(20 * time.Millisecond) {
		list, err := api.GatewayLog(t.Context(), gatewaylog.Query{Of: "mcp"})
		if err != nil || time.Now().After(late) {
			t.Fatal(err, list)
		}
		entries = list.Items
	}
	log, echo := entries[0], entries[1]
	if log.MCP.Server != "hostile" || log.MCP.Tool != "log" || log.MCP.Host != "host" || log.MCP.Conversation == "" || len(log.Changes) != 1 || log.BytesIn < 100_000 || log.BytesOut > 5000 {
		t.Errorf("the log says %+v of %+v", log, log.MCP)
	}
	if echo.MCP.Tool != "echo" || len(echo.Changes) > 0 {
		t.Errorf("the log says %+v of %+v", echo, echo.MCP)
	}
	if artifacts := entries[2]; artifacts.MCP.Server != "artel" || artifacts.MCP.Tool != "create_artifact" || artifacts.MCP.HostVersion != "3" {
		t.Errorf("the log says %+v of %+v", artifacts, artifacts.MCP)
	}
	out, err = inFolder(t, home, "gateway", "log", "--mcp-server", "hostile")
	if err != nil || !strings.Contains(out, "hostile → log") || strings.Contains(out, "create_artifact") {
		t.Errorf("artel gateway log says %v: %s", err, out)
	}

	// With a second server nobody can know which is meant.
	other := t.TempDir()
	second, err := launch(other, bareEnvironment(home), "serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(other, "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.kill)
	for _, args := range [][]string{{"ls"}, {"mcp"}} {
		out, err := inFolder(t, home, args...)
		if err == nil || !strings.Contains(out, "2 servers of this user run: ") || !strings.Contains(out, p.url) || !strings.Contains(out, "--server") {
			t.Errorf("artel %s says %v: %s", args[0], err, out)
		}
	}
}

// TestOtherAccountsServer: a program that listens where a server was killed is not used, and
// neither is a file that other accounts can change.
func TestOtherAccountsServer(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	served := serving(t, home, bareEnvironment(home))
	files, err := filepath.Glob(filepath.Join(home, ".config", "artel", "servers", "*.json"))
	if runtime.GOOS == "darwin" {
		files, err = filepath.Glob(filepath.Join(home, "Library", "Application Support", "artel", "servers", "*.json"))
	}
	if err != nil || len(files) != 1 {
		t.Fatalf("the files of servers are %q, %v", files, err)
	}
	info, err := os.Stat(files[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of the server: %v, %v", info, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 10)
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + r.Header.Get("Authorization")
		w.Header().Set(proofHeader, proof("another", r.Header.Get(challengeHeader)))
		fmt.Fprintln(w, `{"status":"ok"}`)
	}))
	defer foreign.Close()
	var at runningServer
	if err := json.Unmarshal(text, &at); err != nil || at.URL != served.url || at.PID == 0 {
		t.Fatalf("%v: %s", err, text)
	}
	at.URL = foreign.URL
	changed, err := json.Marshal(at)
	if err == nil {
		err = os.WriteFile(files[0], changed, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := inFolder(t, home, "ls"); strings.Contains(out, foreign.URL) {
		t.Errorf("artel ls says %s", out)
	}
	if got := <-asked; got != "/healthz" || len(asked) > 0 {
		t.Errorf("the other program was asked for %s and %d more", got, len(asked))
	}
	if err := os.WriteFile(files[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(files[0], 0o644); err != nil {
		t.Fatal(err)
	}
	if out, _ := inFolder(t, home, "ls"); !strings.Contains(out, "other accounts can use this file") {
		t.Errorf("artel ls says %s", out)
	}
	if err := served.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(files[0]); !os.IsNotExist(err) {
		t.Errorf("a server that ended left its file: %v", err)
	}
}
