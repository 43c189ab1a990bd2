// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
)

// mcpMessages are messages to the MCP server, which has one route for all; the value of a
// variable is that of the API.
func mcpMessages() []struct{ name, message string } {
	tool := func(name, args string) string {
		return `"tools/call","params":{"name":"` + name + `","arguments":` + args + `}`
	}
	return []struct{ name, message string }{
		{"tools/list", `"tools/list"`},
		{"tools/call list_artifacts", tool("list_artifacts", `{"conversation":"{cid}"}`)},
		{"tools/call read_artifact", tool("read_artifact", `{"conversation":"{cid}","id":"{id}"}`)},
		{"tools/call create_artifact", tool("create_artifact", `{"conversation":"{cid}","id":"{new}","title":"x","content":"x"}`)},
		{"tools/call update_artifact", tool("update_artifact", `{"conversation":"{cid}","id":"{id}","old_str":"","new_str":"x"}`)},
		{"resources/read", `"resources/read","params":{"uri":"artel://{cid}/{id}"}`},
		{"prompts/get summarise", `"prompts/get","params":{"name":"summarise","arguments":{"conversation":"{cid}","artifact":"{id}"}}`},
		{"unknown/method", `"unknown/method"`},
	}
}

// mcpSection asks every message as every visitor, and returns the lines of the table.
func (m *matrixBench) mcpSection() string {
	m.t.Helper()
	var out strings.Builder
	out.WriteString("\n## MCP\n\nAll messages are `POST /mcp`. Their outcome is in the result or the error of JSON-RPC.\n\n| message |")
	for _, v := range m.visitors {
		out.WriteString(" " + v.name + " |")
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(m.visitors)) + "\n")
	of := endpoint{"GET", "/api/v1/conversations/{cid}/artifacts/{id}"}
	for _, x := range mcpMessages() {
		fmt.Fprintf(&out, "| `%s` |", x.name)
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
			fmt.Fprintf(&out, " %s |", m.mcpCell(x.name, message, v))
		}
		out.WriteString("\n")
	}
	return out.String()
}

// mcpCell sends a message as v, and checks what holds for all.
func (m *matrixBench) mcpCell(name, message string, v *visitor) string {
	m.t.Helper()
	r := httptest.NewRequestWithContext(m.t.Context(), http.MethodPost, "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":`+message+`}`))
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
	wrong := func(why string) { m.t.Errorf("%s as %s: %d, but %s\n%.300s", name, v.name, w.Code, why, text) }
	got := mcpOutcome(w.Code, text)
	switch changes := strings.Contains(name, "create") || strings.Contains(name, "update"); {
	case w.Code >= 400 && !strings.Contains(text, `"jsonrpc":"2.0"`) && w.Code != http.StatusForbidden && name != "unknown/method":
		wrong("a client of MCP wants an error of JSON-RPC")
	case slices.Contains([]string{"none", "expired", "revoked"}, v.name) && (w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == ""):
		wrong("it needs a login")
	case (v.name == "gateway" || v.site) && w.Code != http.StatusForbidden:
		wrong("this client may not use it")
	case changes && got == "ok" && (v.name == "viewer" || v.name == "read"):
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
	_, data, _ := strings.Cut(text, "data: ")
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
