// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPeopleByCommand: an administrator manages users and tokens with the commands,
// which act with the token in the environment.
func TestPeopleByCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "required.yaml")
	if err := os.WriteFile(path, []byte("auth: {mode: required}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := serving(t, dir, bareEnvironment(dir), "--config", path)
	setup, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + setup.Host
	post := func(path, body, cookie string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", base+path, bytes.NewBufferString(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Origin", base)
		if cookie != "" {
			r.Header.Set("Cookie", cookie)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil || resp.StatusCode >= 300 {
			t.Fatalf("%s: %v %v", path, resp, err)
		}
		return resp
	}
	made := post("/api/v1/setup", `{"code":"`+setup.Query().Get("code")+`","name":"Ann","email":"ann@example.org","password":"`+testPassword+`"}`, "")
	made.Body.Close()
	resp := post("/api/v1/tokens", `{"name":"boot","scopes":["admin","gateway"]}`, sessionOf(t, made))
	var body bytes.Buffer
	_, _ = body.ReadFrom(resp.Body)
	resp.Body.Close()
	_, token, _ := strings.Cut(body.String(), `"token":"`)
	token, _, _ = strings.Cut(token, `"`)

	as := func(token string, args ...string) (string, error) {
		out, _, err := verb(t.Context(), dir, append(bareEnvironment(dir), "ARTEL_URL="+base, "ARTEL_TOKEN="+token), args...)
		return strings.TrimSpace(out), err
	}
	must := func(token string, args ...string) string {
		t.Helper()
		out, err := as(token, args...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return out
	}
	if _, err := as("", "users", "ls"); err == nil {
		t.Error("users are listed without a token")
	}
	id, invite, _ := strings.Cut(must(token, "users", "invite", "bob@example.org", "--role", "viewer"), " ")
	if !strings.HasPrefix(id, "usr_") || !strings.Contains(invite, base+"/invite?code=") {
		t.Errorf("got %s %s", id, invite)
	}
	if again := must(token, "users", "reset", id); !strings.Contains(again, "/invite?code=") || strings.Contains(again, strings.TrimSpace(invite)) {
		t.Errorf("got %s", again)
	}
	must(token, "users", "set", id, "--role", "member", "--name", "Bob B.", "--disable")
	if all := must(token, "users", "ls"); !strings.Contains(all, "Bob B.") || !strings.Contains(all, "disabled") || !strings.Contains(all, "ann@example.org") {
		t.Errorf("got %s", all)
	}
	must(token, "users", "rm", id)
	if all := must(token, "users", "ls"); strings.Contains(all, "Bob") {
		t.Errorf("got %s", all)
	}
	second := must(token, "token", "create", "ci", "--scope", "read", "--expires", "1d")
	if !strings.HasPrefix(second, "artel_") {
		t.Fatalf("got %s", second)
	}
	if _, err := as(second, "users", "ls"); err == nil {
		t.Error("a token without the scope admin lists users")
	}
	list := must(second, "token", "ls")
	var line string
	for l := range strings.Lines(list) {
		if strings.Contains(l, " ci ") {
			line = l
		}
	}
	if !strings.Contains(line, "read") || !strings.Contains(line, "ends ") {
		t.Fatalf("got %s", list)
	}
	must(token, "token", "rm", strings.Fields(line)[0])
	if _, err := as(second, "token", "ls"); err == nil {
		t.Error("a revoked token works")
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	if _, err := as("", "users", "recover", "eve@example.org", "--data", data); err == nil {
		t.Error("a user that is not there is recovered")
	}
	recovered := must("", "users", "recover", "ann@example.org", "--data", data)
	base = serving(t, dir, bareEnvironment(dir), "--config", path).url
	_, code, _ := strings.Cut(recovered, "code=")
	post("/api/v1/invite", `{"code":"`+code+`","password":"another password"}`, "").Body.Close()
	if _, err := as(token, "users", "ls"); err == nil {
		t.Error("a token from before the new password works")
	}
}
