// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"strings"
	"testing"

	"github.com/artelhq/artel/gateway/backend"
)

// TestCacheMarks: a conversation gets cache marks as the gateway, the key or the
// request says; a single question gets none, and the marks of a client stay alone.
func TestCacheMarks(t *testing.T) {
	const (
		once  = `"messages":[{"role":"user","content":"hi"}]`
		turn  = `"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yes"},{"role":"user","content":"and?"}]`
		tools = once + `,"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{}}}}]`
		own   = `"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]},{"role":"assistant","content":"yes"},{"role":"user","content":"and?"}]`
		chat  = "/v1/chat/completions"
		mess  = "/v1/messages"
		five  = `"cache_control":{"type":"ephemeral"}`
		hour  = `"cache_control":{"type":"ephemeral","ttl":"1h"}`
	)
	for _, c := range []struct {
		gateway, key       backend.Cache
		header, path, body string
		mark               string
		marks              int
	}{
		{path: chat, body: once},
		{path: chat, body: turn, mark: five, marks: 2},
		{path: chat, body: tools, mark: five, marks: 1},
		{path: mess, body: turn},
		{gateway: "1h", path: chat, body: turn, mark: hour, marks: 2},
		{gateway: "1h", path: chat, body: once},
		{gateway: "1h", path: mess, body: turn, mark: hour, marks: 1},
		{gateway: "1h", path: mess, body: own, mark: five, marks: 1},
		{gateway: "5m", path: mess, body: turn, mark: five, marks: 1},
		{gateway: "5m", path: mess, body: once},
		{gateway: "off", path: chat, body: turn},
		{gateway: "1h", key: "off", path: chat, body: turn},
		{gateway: "off", key: "1h", header: "5m", path: chat, body: turn, mark: five, marks: 2},
	} {
		b := newBench(t, setup{options: backend.Options{Cache: c.gateway, Keys: []backend.Key{{Name: "a", Secret: "sk-a", Cache: c.key}}}})
		b.upstream = says(`{"type":"error","error":{"type":"invalid_request_error","message":"seen"}}`)
		b.post(c.path, `{"model":"messages","max_tokens":10,`+c.body+`}`, "X-Api-Key", "sk-a", "X-Artel-Cache", c.header)
		sent := b.last()
		if n := strings.Count(sent, `"cache_control"`); n != c.marks || strings.Count(sent, c.mark) != c.marks && c.mark != "" {
			t.Errorf("%+v: %d marks in %s", c, n, sent)
		}
		if added := c.path == mess && c.marks > 0 && c.body != own; added != has(b.did(), "cached") {
			t.Errorf("%+v: logged %v", c, b.did())
		}
	}
	b := newBench(t)
	if status, body := b.post(chat, asks("messages", ""), "X-Artel-Cache", "long"); status != 400 || !strings.Contains(body, "X-Artel-Cache") {
		t.Errorf("%d %s", status, body)
	}
}
