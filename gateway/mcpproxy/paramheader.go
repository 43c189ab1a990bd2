// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Since 2026-07-28, a schema may ask for arguments in the header of a request (x-mcp-header),
// for what stands between client and server. They belong to a call, so that they come with
// its context.

type paramHeadersKey struct{}

// paramHeader begins the names of such fields.
const paramHeader = "Mcp-Param-"

// withParamHeaders adds the fields that the schema of a tool asks for to the context of a
// call.
func (p *Proxy) withParamHeaders(ctx context.Context, m *message, tool string) context.Context {
	p.mu.Lock()
	l := p.listed
	p.mu.Unlock()
	if l == nil {
		return ctx
	}
	t, ok := l.index.Get(tool)
	if !ok || !strings.Contains(string(t.Schema), "x-mcp-header") {
		return ctx
	}
	h := http.Header{}
	m.paramHeaders(t.Schema, m.member(m.params, "arguments"), maxShrinkDepth, h)
	return context.WithValue(ctx, paramHeadersKey{}, h)
}

func (m *message) paramHeaders(schema json.RawMessage, at span, depth int, h http.Header) {
	var s struct {
		Properties map[string]json.RawMessage
	}
	if depth == 0 || m.kind(at) != '{' || json.Unmarshal(schema, &s) != nil {
		return
	}
	for name, property := range s.Properties {
		v := m.member(at, name)
		if v.empty() {
			continue
		}
		var field struct {
			Name string `json:"x-mcp-header"`
		}
		if json.Unmarshal(property, &field) != nil || field.Name == "" {
			m.paramHeaders(property, v, depth-1, h)
			continue
		}
		value := m.word(v)
		switch m.kind(v) {
		case '"':
		case 'n', '{', '[':
			continue
		default:
			b, err := m.bytes(v, 100)
			if err != nil {
				continue
			}
			value = string(b)
		}
		if key := paramHeader + field.Name; httpguts.ValidHeaderFieldName(key) {
			h.Set(key, headerValue(value))
		}
	}
}

// headerValue encodes a value for a header: in base64 if it has other characters
// than a field may have.
func headerValue(v string) string {
	plain := v == strings.TrimSpace(v) && !strings.HasPrefix(v, "=?base64?")
	for _, r := range v {
		plain = plain && r >= 0x20 && r <= 0x7e
	}
	if plain {
		return v
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(v)) + "?="
}
