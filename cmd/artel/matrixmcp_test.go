// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/gateway/mcpproxy/mcpproxytest"
	"github.com/artelhq/artel/gateway/mcpserver"
	"github.com/artelhq/artel/gateway/mcpwrapped"
)

// wrappedName is the name of an MCP server of the deployment.
const wrappedName = "wrapped"

// wrap starts an MCP server, and adds it to the configuration.
func wrap(t *testing.T, c *config) {
	t.Helper()
	s := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return mcpproxytest.Server(0) }, &sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	c.MCP = append(c.MCP, mcp.Config{Name: wrappedName, URL: s.URL})
}

// An mcpMessage is a message to an address.
type mcpMessage struct {
	path, name, message string
	changes             bool
}

// mcpMessages are messages to the MCP server, which has one route for all; the value of a
// variable is that of the API.
func mcpMessages() []mcpMessage {
	tool := func(name, args string) string {
		return `"tools/call","params":{"name":"` + name + `","arguments":` + args + `}`
	}
	here, wrapped := mcpserver.Path, mcpwrapped.Path+wrappedName
	return []mcpMessage{
		{here, "tools/list", `"tools/list"`, false},
		{here, "tools/call list_artifacts", tool("list_artifacts", `{"conversation":"{cid}"}`), false},
		{here, "tools/call read_artifact", tool("read_artifact", `{"conversation":"{cid}","id":"{id}"}`), false},
		{here, "tools/call create_artifact", tool("create_artifact", `{"conversation":"{cid}","id":"{new}","title":"x","content":"x"}`), true},
		{here, "tools/call update_artifact", tool("update_artifact", `{"conversation":"{cid}","id":"{id}","old_str":"","new_str":"x"}`), true},
		{here, "resources/read", `"resources/read","params":{"uri":"artel://{cid}/{id}"}`, false},
		{here, "prompts/get summarise", `"prompts/get","params":{"name":"summarise","arguments":{"conversation":"{cid}","artifact":"{id}"}}`, false},
		{here, "unknown/method", `"unknown/method"`, false},
		{wrapped, "tools/list", `"tools/list"`, false},
		{wrapped, "tools/call echo", tool("echo", `{"text":"x"}`), true},
		{wrapped, "tools/call artel_read", tool("artel_read", `{"ref":"blob:sha256-`+strings.Repeat("0", 64)+`"}`), false},
		{wrapped, "resources/read", `"resources/read","params":{"uri":"test://short"}`, false},
		{wrapped, "unknown/method", `"unknown/method"`, true},
		{mcpwrapped.Path + "unknown", "tools/list", `"tools/list"`, false},
	}
}

// mcpSection asks every message as every visitor, and returns the lines of the table.
func (m *matrixBench) mcpSection() string {
	m.t.Helper()
	var out strings.Builder
	out.WriteString("\n## MCP\n\nAll messages are `POST`. Their outcome is in the result or the error of JSON-RPC.\n\n| message |")
	for _, v := range m.visitors {
		out.WriteString(" " + v.name + " |")
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(m.visitors)) + "\n")
	of := endpoint{"GET", "/api/v1/conversations/{cid}/artifacts/{id}"}
	for _, x := range mcpMessages() {
		fmt.Fprintf(&out, "| `%s %s` |", x.path, x.name)
		for _, v := range m.visitors {
			message := x.message
			for _, name := range []string{"cid", "id", "new"} {
				if strings.Contains(message, "{"+name+"}") {
					value := m.value("new")
					if name != "new" {
						value, _ = m.variable(of, name)
					}
					message = strings.ReplaceAll(message, "{"+name+"}", value)
				}
			}
			fmt.Fprintf(&out, " %s |", m.mcpCell(x, message, v))
		}
		out.WriteString("\n")
	}
	return out.String()
}

// mcpCell sends a message as v, and checks what holds for all.
func (m *matrixBench) mcpCell(x mcpMessage, message string, v *visitor) string {
	m.t.Helper()
	r := httptest.NewRequestWithContext(m.t.Context(), http.MethodPost, x.path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":`+message+`}`))
	r.Host = "127.0.0.1"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if v.token != "" {
		r.Header.Set("Authorization", "Bearer "+v.token)
	}
	if v.cookie != "" {
		r.Header.Set("Cookie", v.cookie)
	}
	if !v.site {
		r.Header.Set("Origin", "http://127.0.0.1")
	}
	w := httptest.NewRecorder()
	m.server.handler.ServeHTTP(w, r)
	text := w.Body.String()
	wrong := func(why string) {
		m.t.Errorf("%s %s as %s: %d, but %s\n%.300s", x.path, x.name, v.name, w.Code, why, text)
	}
	got := mcpOutcome(w.Code, text)
	switch {
	case w.Code >= 400 && !strings.Contains(text, `"jsonrpc":"2.0"`) && w.Code != http.StatusForbidden && x.name != "unknown/method":
		wrong("a client of MCP wants an error of JSON-RPC")
	case slices.Contains([]string{"none", "expired", "revoked"}, v.name) && (w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == ""):
		wrong("it needs a login")
	case (v.name == "gateway" || v.site) && w.Code != http.StatusForbidden:
		wrong("this client may not use it")
	case x.changes && got == "ok" && (v.name == "viewer" || v.name == "read"):
		wrong("it changes something")
	case strings.Contains(message, "cnv_") && !v.owns && got == "ok":
		wrong("the ids belong to another user")
	}
	return got
}

// mcpOutcome returns the word of the matrix for an answer.
func mcpOutcome(status int, text string) string {
	if status >= 400 {
		return outcomeOf(status)
	}
	data := text
	if _, event, ok := strings.Cut(text, "data: "); ok {
		data = event
	}
	var answer struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
		Error struct{ Message string }
	}
	if json.Unmarshal([]byte(data), &answer) != nil {
		return "5xx"
	}
	said := answer.Error.Message
	if answer.Result.IsError {
		said = answer.Result.Content[0].Text
	}
	switch {
	case said == "":
		return "ok"
	case strings.Contains(said, "not allowed"):
		return "403"
	case strings.Contains(said, "there is no"), strings.Contains(said, "not found"):
		return "404"
	}
	return "4xx"
}
