// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/gateway/mcpserver"
	"github.com/artelhq/artel/gateway/mcpwrapped"
)

// TestRevokedTokenOfHost: when the token of an MCP host is revoked at the server, the streams
// of its sessions end, and its next message needs a login.
func TestRevokedTokenOfHost(t *testing.T) {
	g := newGuarded(t, access.Options{Mode: access.Required}, func(c *config) { wrap(t, c) })
	admin := g.setUp()
	id, token := g.token(admin, `["read","write"]`)
	ask := func(method, path, body, session string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, g.http.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := g.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	paths := []string{mcpserver.Path, mcpwrapped.Path + wrappedName}
	streams := map[string]*http.Response{}
	sessions := map[string]string{}
	for _, path := range paths {
		began := ask(http.MethodPost, path, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`, "")
		if sessions[path] = began.Header.Get("Mcp-Session-Id"); sessions[path] == "" {
			t.Fatalf("%s: %s", path, began.Status)
		}
		if streams[path] = ask(http.MethodGet, path, "", sessions[path]); streams[path].StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", path, streams[path].Status)
		}
	}
	g.must(nil, "DELETE", "/api/v1/tokens/"+id, "", "Cookie", admin, "Origin", g.http.URL)
	for _, path := range paths {
		_, _ = io.Copy(io.Discard, streams[path].Body) // hangs if the stream does not end
		if resp := ask(http.MethodPost, path, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, sessions[path]); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
}
