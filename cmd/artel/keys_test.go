// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/artelhq/artel/app/access"
)

const chatQuestion = `{"model":"demo","messages":[{"role":"user","content":"hi"}]}`

// TestGatewayKeysAtRunTime: members manage their own keys, administrators see all and
// no secret; a key opens the gateway alone, and a revoked one nothing.
func TestGatewayKeysAtRunTime(t *testing.T) {
	t.Setenv("APP_KEY", "sk-app")
	g := newGuarded(t, access.Options{Mode: access.Required}, func(c *config) { c.Gateway.Keys = []gatewayKey{{Name: "app", Key: "${APP_KEY}"}} })
	admin := g.setUp()
	ann, bob := g.user(admin, "amy@example.org", "member"), g.user(admin, "bob@example.org", "member")
	viewer := g.user(admin, "vic@example.org", "viewer")
	as := func(cookie string) []string { return []string{"Cookie", cookie, "Origin", g.http.URL} }
	var made struct{ ID, Key string }
	resp := g.must(&made, "POST", "/api/v1/gateway/keys", `{"name":"laptop","requests_per_minute":100,"budget":{"usd":2,"period":"month"},"expires_at":"2199-01-01T00:00:00Z"}`, as(ann)...)
	if resp.StatusCode != http.StatusCreated || !strings.HasPrefix(made.Key, "sk-artel-") {
		t.Fatalf("%s %+v", resp.Status, made)
	}
	list := func(cookie string) string {
		_, text := g.ask("GET", "/api/v1/gateway/keys", "", "Cookie", cookie)
		if strings.Contains(text, made.Key) || strings.Contains(text, "sk-app") {
			t.Errorf("a secret in %s", text)
		}
		return text
	}
	if text := list(ann); !strings.Contains(text, `"laptop"`) || !strings.Contains(text, `"budget":{"usd":2,"period":"month"}`) || strings.Contains(text, `"app"`) {
		t.Errorf("own keys: %s", text)
	}
	if text := list(bob); strings.Contains(text, "laptop") {
		t.Errorf("another user's key: %s", text)
	}
	if text := list(admin); !strings.Contains(text, `"laptop"`) || !strings.Contains(text, `"name":"app"`) || !strings.Contains(text, `"read_only":true`) {
		t.Errorf("all keys: %s", text)
	}
	for _, c := range []struct {
		status             int
		method, path, body string
		cookie             string
	}{
		{403, "POST", "", `{"name":"x"}`, viewer},
		{422, "POST", "", `{"name":"x","services":["missing"]}`, ann},
		{422, "POST", "", `{"name":"x","budget":{"usd":0,"period":"day"}}`, ann},
		{422, "POST", "", `{"name":"x","budget":{"usd":1,"period":"year"}}`, ann},
		{422, "POST", "", `{"name":"x","expires_at":"2001-01-01T00:00:00Z"}`, ann},
		{404, "PATCH", "/" + made.ID, `{"name":"mine"}`, bob},
		{404, "DELETE", "/" + made.ID, "", bob},
		{409, "PATCH", "/config:app", `{"name":"mine"}`, admin},
		{409, "DELETE", "/config:app", "", admin},
		{200, "PATCH", "/" + made.ID, `{"budget":null,"concurrent":2}`, ann},
	} {
		if resp, text := g.ask(c.method, "/api/v1/gateway/keys"+c.path, c.body, as(c.cookie)...); resp.StatusCode != c.status {
			t.Errorf("%s %s %s: %s %s, want %d", c.method, c.path, c.body, resp.Status, text, c.status)
		}
	}
	if text := list(ann); strings.Contains(text, "budget") || !strings.Contains(text, `"concurrent":2`) || !strings.Contains(text, `"requests_per_minute":100`) {
		t.Errorf("after the change: %s", text)
	}
	bearer := []string{"Authorization", "Bearer " + made.Key}
	g.must(nil, "POST", "/v1/chat/completions", chatQuestion, bearer...)
	if resp, _ := g.ask("GET", "/api/v1/conversations", "", bearer...); resp.StatusCode != http.StatusForbidden {
		t.Errorf("the API with a key: %s", resp.Status)
	}
	if err := g.server.app.GatewayLog.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, text := g.ask("GET", "/api/v1/gateway/log", "", "Cookie", ann); !strings.Contains(text, `"key":"laptop"`) {
		t.Errorf("the log of the key's user: %s", text)
	}
	g.must(nil, "PATCH", "/api/v1/gateway/keys/"+made.ID, `{"disabled":true}`, as(ann)...)
	if resp, _ := g.ask("POST", "/v1/chat/completions", chatQuestion, bearer...); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a disabled key: %s", resp.Status)
	}
	g.must(nil, "PATCH", "/api/v1/gateway/keys/"+made.ID, `{"disabled":false}`, as(ann)...)
	g.must(nil, "POST", "/v1/chat/completions", chatQuestion, bearer...)
	g.must(nil, "DELETE", "/api/v1/gateway/keys/"+made.ID, "", as(admin)...)
	if resp, _ := g.ask("POST", "/v1/chat/completions", chatQuestion, bearer...); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a revoked key: %s", resp.Status)
	}
}

// TestKeysInTheWordsOfDialects: an unknown key is 401, one without the scope gateway
// 403, as each API says it.
func TestKeysInTheWordsOfDialects(t *testing.T) {
	g := newGuarded(t, access.Options{Mode: access.Required}, nil)
	_, reader := g.token(g.setUp(), `["read"]`)
	for _, c := range []struct{ path, body, unknown, denied string }{
		{"/v1/chat/completions", chatQuestion, `"code":"invalid_api_key"`, `"code":"insufficient_permissions"`},
		{"/v1/responses", `{"model":"demo","input":"hi"}`, `"code":"invalid_api_key"`, `"code":"insufficient_permissions"`},
		{"/v1/messages", `{"model":"demo","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, `"type":"authentication_error"`, `"type":"permission_error"`},
		{"/v1beta/models/demo:generateContent", `{"contents":[{"parts":[{"text":"hi"}]}]}`, `"status":"UNAUTHENTICATED"`, `"status":"PERMISSION_DENIED"`},
	} {
		for secret, want := range map[string]struct {
			status int
			word   string
		}{"sk-artel-unknown": {401, c.unknown}, reader: {403, c.denied}} {
			resp, text := g.ask("POST", c.path, c.body, "Authorization", "Bearer "+secret)
			var compact any
			_ = json.Unmarshal([]byte(text), &compact)
			whole, _ := json.Marshal(compact)
			if resp.StatusCode != want.status || !strings.Contains(string(whole), want.word) {
				t.Errorf("%s: %s %s, want %d with %s", c.path, resp.Status, whole, want.status, want.word)
			}
		}
	}
}

// TestKeysWithoutUsers: the operator of an open server makes keys, too; clients with
// another key or none are served as before.
func TestKeysWithoutUsers(t *testing.T) {
	g := newGuarded(t, access.Options{}, nil)
	var made struct{ ID, Key string }
	g.must(&made, "POST", "/api/v1/gateway/keys", `{"name":"laptop","requests_per_minute":1}`)
	bearer := []string{"Authorization", "Bearer " + made.Key}
	g.must(nil, "POST", "/v1/chat/completions", chatQuestion, bearer...)
	if resp, text := g.ask("POST", "/v1/chat/completions", chatQuestion, bearer...); resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("over the limit: %s %s", resp.Status, text)
	}
	g.must(nil, "POST", "/v1/chat/completions", chatQuestion)
	g.must(nil, "DELETE", "/api/v1/gateway/keys/"+made.ID, "")
	if resp, _ := g.ask("POST", "/v1/chat/completions", chatQuestion, bearer...); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a revoked key: %s", resp.Status)
	}
}

// TestRevokedKeyEndsStreams: an answer that is being streamed ends when its key, or the
// token that made the key, is revoked, at the service, too.
func TestRevokedKeyEndsStreams(t *testing.T) {
	t.Run("key", func(t *testing.T) { revokedKeyEndsStreams(t, false) })
	t.Run("token", func(t *testing.T) { revokedKeyEndsStreams(t, true) })
}

func revokedKeyEndsStreams(t *testing.T, ofToken bool) {
	left := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"slow\"}}]}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(left)
	}))
	defer upstream.Close()
	g := newGuarded(t, access.Options{Mode: access.Required}, func(c *config) {
		c.Services = []any{map[string]any{"id": "slow", "baseURL": upstream.URL, "model": "slow"}}
	})
	admin := g.setUp()
	var made struct{ ID, Key string }
	as, revoked := []string{"Cookie", admin, "Origin", g.http.URL}, "/api/v1/gateway/keys/"
	maker := as
	if ofToken {
		id, token := g.token(admin, `["write","gateway"]`)
		maker, revoked = []string{"Authorization", "Bearer " + token}, "/api/v1/tokens/"+id
	}
	g.must(&made, "POST", "/api/v1/gateway/keys", `{"name":"laptop"}`, maker...)
	if !ofToken {
		revoked += made.ID
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, "POST", g.http.URL+"/v1/chat/completions", strings.NewReader(`{"model":"slow","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+made.Key)
	resp, err := g.client.Do(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	defer resp.Body.Close()
	first := make([]byte, 6)
	if _, err := io.ReadFull(resp.Body, first); err != nil {
		t.Fatal(err)
	}
	g.must(nil, "DELETE", revoked, "", as...)
	_, _ = io.Copy(io.Discard, resp.Body) // ends
	select {
	case <-left:
	case <-ctx.Done():
		t.Fatal("the call of the service continues")
	}
	if ctx.Err() != nil {
		t.Fatal(fmt.Errorf("the stream did not end: %w", ctx.Err()))
	}
}
