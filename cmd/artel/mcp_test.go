// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/httpapi"
)

// TestMCPServer has the demo call a tool of a server over HTTP, whose picture
// becomes an artifact, and a reader ask how the servers are doing.
func TestMCPServer(t *testing.T) {
	t.Parallel()
	photo := sampleBytes(t, "photo.jpg")
	s := sdk.NewServer(&sdk.Implementation{Name: "camera", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "shoot", Description: "Takes a picture."}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{Data: photo, MIMEType: "image/jpeg"}}}, nil, nil
	})
	camera := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	defer camera.Close()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"artel.yaml": fmt.Sprintf("mcp:\n  - {name: camera, url: %q, agents: [lead_agent]}\n  - {name: gone, command: [/no/such/program]}\n", camera.URL),
		"s.txtar":    "-- turn 1 --\n@call camera_shoot {}\n-- turn 2 --\nDone.\n",
	})
	p := serving(t, dir, bareEnvironment(dir), "--scenario", filepath.Join(dir, "s.txtar"))
	client := httpapi.NewClient(p.url, nil)
	health, err := client.ToolServers(t.Context())
	if err != nil || len(health.Items) != 2 || health.Items[0].State != "ready" || health.Items[0].Tools != 1 || health.Items[1].State != "failed" {
		t.Errorf("health is %+v, %v", health, err)
	}
	out, _, err := verb(t.Context(), dir, bareEnvironment(dir), "tools", "servers", "--server", p.url)
	if err != nil || !strings.Contains(out, "camera") || !strings.Contains(out, "no such file") {
		t.Errorf("got %s, %v", out, err)
	}
	all := p.played(t)
	if !strings.Contains(all, "[image/jpeg, ") || !strings.Contains(all, `"media_type":"image/jpeg"`) {
		t.Errorf("the log lacks the picture: %s", all)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}

func TestMCPServersThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"{name: a_b, command: [x]}": "name: want",
		"{name: a}":                 "either command or url",
		"{name: a, command: [x], url: \"http://x/\"}":          "either command or url",
		"{name: a, command: [x], env: {K: \"${NONE}\"}}":       "NONE is not set",
		"{name: a, command: [x], timeout: 2h}":                 "up to 1h",
		"{name: a, command: [x], headers: {a: b}}":             "headers are for addresses",
		"{name: a, url: \"http://x/\", env: {a: b}}":           "env is for commands",
		"{name: a, command: [x], agents: [nobody]}":            "no agent",
		"{name: a, command: [x]}\n  - {name: a, command: [x]}": "two servers",
	} {
		var c config
		err := c.parse("artel.yaml", []byte("mcp:\n  - "+text+"\n"))
		if err == nil {
			agents, agentsErr := c.agents()
			if agentsErr != nil {
				t.Fatal(agentsErr)
			}
			_, _, err = c.mcpServers(agents, func(string) string { return "" }, func(all []mcp.Server) (*mcp.Pool, error) { return mcp.NewPool(all, nil) })
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
