// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCPAsks: a question of the server for its user passes the relay, and so does the
// answer.
func TestMCPAsks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"artel.yaml": "permissions: {delete_artifact: ask}\n"})
	env := with(bareEnvironment(dir), "ARTEL_CONFIG="+filepath.Join(dir, "artel.yaml"))
	for _, version := range mcpVersions() {
		allow := false
		h := hosting(t, env, version, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"allow": allow}}, nil
		}}, "--data", filepath.Join(dir, "data"))
		h.call(t, "create_artifact", map[string]any{"id": "a" + version, "title": "A", "content": "x"})
		r, err := h.CallTool(t.Context(), &mcp.CallToolParams{Name: "delete_artifact", Arguments: map[string]any{"id": "a" + version}})
		if err != nil || !r.IsError || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, "did not allow") {
			t.Errorf("%s: %+v, %v", version, r, err)
		}
		allow = true
		h.call(t, "delete_artifact", map[string]any{"id": "a" + version})
	}
}

// TestMCPCancels: a cancelled call ends at the server, and the host goes on.
func TestMCPCancels(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	env := bareEnvironment(t.TempDir())
	for _, version := range mcpVersions() {
		h := hosting(t, env, version, nil, "--data", data)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := h.CallTool(ctx, &mcp.CallToolParams{Name: "list_artifacts"}); err == nil {
			t.Errorf("%s: a cancelled call succeeded", version)
		}
		h.call(t, "list_artifacts", nil)
	}
}
