// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/httpapi"
)

// A host is a client of "artel mcp" in a process of its own.
type host struct {
	*mcp.ClientSession
	cmd  *exec.Cmd
	errs errorFile
}

// hosting starts "artel mcp" for the length of a test.
func hosting(t *testing.T, env []string, version string, o *mcp.ClientOptions, args ...string) *host {
	t.Helper()
	errs, err := newErrorFile()
	if err != nil {
		t.Fatal(err)
	}
	h := &host{cmd: exec.Command("artel", append([]string{"mcp"}, args...)...), errs: errs}
	h.cmd.Env, h.cmd.Stderr, h.cmd.Dir = env, errs.File, t.TempDir()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(), &mcp.CommandTransport{Command: h.cmd}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("%v\n%s", err, h.errs.String())
	}
	if got := c.InitializeResult().ProtocolVersion; got != version {
		t.Errorf("it speaks %s, not %s", got, version)
	}
	h.ClientSession = c
	t.Cleanup(func() { _ = c.Close() })
	return h
}

// call calls a tool that must succeed, and returns its text.
func (h *host) call(t *testing.T, name string, args map[string]any) string {
	t.Helper()
	r, err := h.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, h.errs.String())
	}
	text := ""
	if len(r.Content) > 0 {
		text = r.Content[0].(*mcp.TextContent).Text
	}
	if r.IsError {
		t.Fatalf("%s: %s", name, text)
	}
	return text
}

func mcpVersions() []string { return []string{"2026-07-28", "2025-11-25", "2025-06-18"} }

// TestMCPHosts: hosts that speak different versions of the protocol share the data
// directory of a user, and ask and answer as over HTTP.
func TestMCPHosts(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	env := bareEnvironment(t.TempDir())
	for i, version := range mcpVersions() {
		h := hosting(t, env, version, nil, "--data", data)
		if want := "artel: the data directory is " + data; !strings.Contains(h.errs.String(), want) {
			t.Errorf("it said %q", h.errs.String())
		}
		tools, err := h.ListTools(t.Context(), nil)
		if err != nil || len(tools.Tools) < 12 {
			t.Errorf("%+v, %v", tools, err)
		}
		h.call(t, "create_artifact", map[string]any{"id": fmt.Sprint("a", i), "title": "A", "content": "by " + version})
		if list := h.call(t, "list_artifacts", nil); strings.Count(list, "<artifact_slice") != i+1 {
			t.Errorf("%s: %s", version, list)
		}
		if text := h.call(t, "read_artifact", map[string]any{"id": "a0"}); !strings.Contains(text, "by 2026-07-28") {
			t.Errorf("%s: %s", version, text)
		}
		work := hosting(t, env, version, nil, "--data", data, "--conversation", "Work")
		if list := work.call(t, "list_artifacts", nil); !strings.Contains(list, "No artifacts") {
			t.Errorf("%s: %s", version, list)
		}
	}
}

// TestMCPTakeover: when the host with the server is killed, another goes on, with its
// session and its subscriptions.
func TestMCPTakeover(t *testing.T) {
	t.Parallel()
	for _, version := range mcpVersions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			env := bareEnvironment(t.TempDir())
			first := hosting(t, env, version, nil, "--data", data)
			first.call(t, "create_artifact", map[string]any{"id": "a", "title": "A", "content": "x"})
			heard := make(chan string, 1000)
			second := hosting(t, env, version, &mcp.ClientOptions{
				ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { heard <- r.Params.URI },
			}, "--data", data)
			list, err := second.ListResources(t.Context(), nil)
			if err != nil || len(list.Resources) != 1 {
				t.Fatalf("%+v, %v", list, err)
			}
			uri := list.Resources[0].URI
			done := make(chan struct{})
			go func() { // with the newest version, it returns when the subscription ends
				defer close(done)
				_ = second.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri})
			}()
			changeUntilHeard := func() {
				t.Helper()
				ctx, stop := context.WithTimeout(t.Context(), patience)
				defer stop()
				for len(heard) > 0 {
					<-heard
				}
				for len(heard) == 0 {
					if ctx.Err() != nil {
						t.Fatalf("it heard nothing\n%s", second.errs.String())
					}
					second.call(t, "update_artifact", map[string]any{"id": "a", "old_str": "x", "new_str": "x."})
				}
			}
			changeUntilHeard()
			if err := first.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = first.Close() // waits for the end of the process; the error is that it was killed
			if text := second.call(t, "read_artifact", map[string]any{"id": "a"}); !strings.Contains(text, "x.") {
				t.Errorf("got %s", text)
			}
			if !strings.Contains(second.errs.String(), "ended without removing its address file") {
				t.Errorf("it said %s", second.errs.String())
			}
			changeUntilHeard()
			if err := second.Close(); err != nil {
				t.Error(err)
			}
			<-done
			if _, err := os.Stat(filepath.Join(data, addressFile)); err == nil {
				t.Error("the address file is left")
			}
		})
	}
}

// TestMCPServerOfURL: the server of ARTEL_URL is used, with the token of the user.
func TestMCPServerOfURL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := bareEnvironment(dir)
	served := serving(t, dir, env)
	client := httpapi.NewClient(served.url, nil)
	h := hosting(t, with(env, "ARTEL_URL="+served.url), "2026-07-28", nil)
	h.call(t, "create_artifact", map[string]any{"id": "a", "title": "A", "content": "x"})
	list, err := client.Conversations(t.Context(), "", 10)
	if err != nil || len(list.Items) != 1 || list.Items[0].Title != "MCP" {
		t.Errorf("%+v, %v", list, err)
	}
	if strings.Contains(h.errs.String(), "data directory") {
		t.Errorf("it said %s", h.errs.String())
	}
}

// TestMCPInput: what is no message is answered, the end of the input ends the program
// after the answers, and nothing else is on standard output.
func TestMCPInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	input := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ``, `what?`, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":"three","method":"no/method"}`, `7`,
	}, "\n")
	cmd := exec.CommandContext(t.Context(), "artel", "mcp", "--data", filepath.Join(dir, "data"))
	var errs apptest.Log
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stderr = dir, bareEnvironment(dir), strings.NewReader(input), &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	got := map[string]int{}
	for line := range strings.Lines(string(out)) {
		var m struct {
			ID    any
			Error struct{ Code int }
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		got[fmt.Sprint(m.ID, " ", m.Error.Code)]++
	}
	for _, want := range []string{"1 0", "2 0", "<nil> -32700"} {
		if got[want] == 0 {
			t.Errorf("no answer %q in %v", want, got)
		}
	}
	if n := len(got); n != 4 {
		t.Errorf("got %v", got)
	}
}

// TestMCPRenewal: at a server that took over and forgets a message while the session is made
// again, the next attempt makes it with its subscriptions, and the stream is opened again.
func TestMCPRenewal(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	sessions, forgotten := 0, false
	streams, subscribed := make(chan string, 100), make(chan string, 100)
	looked := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		current := fmt.Sprint("s", sessions)
		mu.Unlock()
		session := r.Header.Get("Mcp-Session-Id")
		var m message
		if r.Method == http.MethodPost {
			_ = json.NewDecoder(r.Body).Decode(&m)
		}
		switch {
		case m.Method == "initialize":
			mu.Lock()
			sessions++
			w.Header().Set("Mcp-Session-Id", fmt.Sprint("s", sessions))
			again := sessions == 2
			mu.Unlock()
			if again { // the stream is asked for meanwhile
				select {
				case <-looked:
				case <-r.Context().Done():
				}
			}
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`)
		case r.Method == http.MethodGet && (session != current || session == "s1"):
			looked <- struct{}{}
			w.WriteHeader(map[bool]int{true: http.StatusBadRequest, false: http.StatusNotFound}[session == ""])
		case r.Method == http.MethodGet:
			streams <- session
			<-r.Context().Done()
		case r.Method == http.MethodDelete:
		case session != current || session == "s1" && m.Method == "ping":
			w.WriteHeader(http.StatusNotFound)
		case m.Method == "resources/subscribe":
			mu.Lock()
			fails := session == "s2" && !forgotten
			forgotten = forgotten || fails
			mu.Unlock()
			if fails {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			subscribed <- session
			fallthrough
		default:
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, cmp.Or(string(m.ID), "null"))
		}
	}))
	defer server.Close()
	in, feed := io.Pipe()
	r := &relay{url: server.URL, http: server.Client(), out: io.Discard}
	ended := make(chan error)
	go func() { ended <- r.run(t.Context(), in) }()
	say := func(line string) {
		t.Helper()
		if _, err := io.WriteString(feed, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	for begun := false; !begun; {
		r.mu.Lock()
		begun = r.session == "s1"
		r.mu.Unlock()
	}
	say(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a"}}`)
	if got := <-subscribed; got != "s1" {
		t.Errorf("subscribed in %s", got)
	}
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`) // from now on the session is gone
	say(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	if a, b := <-subscribed, <-streams; a != "s3" || b != "s3" {
		t.Errorf("subscribed in %s, listening to %s", a, b)
	}
	_ = feed.Close()
	server.CloseClientConnections()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
