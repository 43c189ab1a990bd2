// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A loginBench is a real server with an administrator, and a machine elsewhere.
type loginBench struct {
	t      *testing.T
	dir    string // the home of the machine elsewhere
	server *process
	base   string
	cookie string // of the administrator
}

func newLoginBench(t *testing.T) *loginBench {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "required.yaml")
	if err := os.WriteFile(config, []byte("auth: {mode: required}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &loginBench{t: t, dir: t.TempDir(), server: serving(t, dir, bareEnvironment(dir), "--config", config)}
	setup, err := url.Parse(b.server.url)
	if err != nil {
		t.Fatal(err)
	}
	b.base = "http://" + setup.Host
	resp := b.post("/api/v1/setup", `{"code":"`+setup.Query().Get("code")+`","name":"Ann","email":"ann@example.org","password":"`+testPassword+`"}`, nil)
	b.cookie = sessionOf(t, resp)
	return b
}

func (b *loginBench) post(path, body string, out any) *http.Response {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), "POST", b.base+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", b.base)
	if b.cookie != "" {
		r.Header.Set("Cookie", b.cookie)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	if out != nil {
		err = json.NewDecoder(resp.Body).Decode(out)
	}
	if err != nil || resp.StatusCode >= 300 {
		b.t.Fatalf("%s: %s %v", path, resp.Status, err)
	}
	return resp
}

// run runs artel on the machine elsewhere with lines on its standard input.
func (b *loginBench) run(stdin string, env []string, args ...string) (out string, code int) {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "artel", args...)
	var both bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = b.dir, append(bareEnvironment(b.dir), env...), strings.NewReader(stdin), &both, &both
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return both.String(), exit.ExitCode()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return both.String(), 0
}

func (b *loginBench) wants(code int, says, stdin string, env []string, args ...string) string {
	b.t.Helper()
	out, got := b.run(stdin, env, args...)
	if got != code || !strings.Contains(out, says) {
		b.t.Fatalf("artel %s: exit code %d, want %d with %q: %s", strings.Join(args, " "), got, code, says, out)
	}
	return out
}

// kept are the logins on the machine elsewhere, by file.
func (b *loginBench) kept() map[string]login {
	b.t.Helper()
	all := map[string]login{}
	dir := filepath.Join(b.dir, ".config", "artel", "logins")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == currentLogin {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			b.t.Fatal(err)
		}
		var l login
		if err := json.Unmarshal(text, &l); err != nil {
			b.t.Fatal(err)
		}
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			b.t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
		all[path] = l
	}
	return all
}

// one is the only login.
func (b *loginBench) one() (path string, l login) {
	b.t.Helper()
	all := b.kept()
	if len(all) != 1 {
		b.t.Fatalf("there are %d logins, want 1", len(all))
	}
	for path, l = range all {
	}
	return path, l
}

// status asks the server as the bearer of a token.
func (b *loginBench) status(path, token string) int {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), "GET", b.base+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

const typed = "ann@example.org\n" + testPassword + "\n"

// TestLoginByPassword: one login, and all commands use the server with a token of their
// own, until the logout, which revokes it.
func TestLoginByPassword(t *testing.T) {
	t.Parallel()
	b := newLoginBench(t)
	b.wants(1, "--browser", "ann@example.org\nwrong password\n", nil, "login", b.base)
	b.wants(2, "E-mail is missing", "", nil, "login", b.base)
	b.wants(2, "has no TLS", typed, nil, "login", "http://artel.example")
	b.wants(2, "is no address", typed, nil, "login", "artel.example")
	b.wants(3, "no server answers", typed, nil, "login", "http://127.0.0.1:1")
	if n := len(b.kept()); n != 0 {
		t.Fatalf("failed logins left %d files", n)
	}
	b.wants(0, "as Ann ann@example.org; the token ends ", typed, nil, "login", b.base+"/")
	_, first := b.one()
	list := b.wants(0, first.TokenID, "", nil, "token", "ls") // without ARTEL_URL and ARTEL_TOKEN
	if !strings.Contains(list, "artel login on ") || strings.Contains(list, first.Token) {
		t.Errorf("tokens: %s", list)
	}
	var sessions struct{ Items []struct{ ID string } }
	r, _ := http.NewRequestWithContext(t.Context(), "GET", b.base+"/api/v1/sessions", nil)
	r.Header.Set("Cookie", b.cookie)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&sessions); err != nil || len(sessions.Items) != 1 {
		t.Errorf("the login left a session: %v %v", sessions, err)
	}
	// The environment has precedence, and no other server gets the token.
	b.wants(1, "", "", []string{"ARTEL_TOKEN=artel_wrong"}, "token", "ls")
	var mu sync.Mutex
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Header.Get("Authorization"))
		http.NotFound(w, r)
	}))
	defer other.Close()
	b.wants(3, "", "", []string{"ARTEL_URL=" + other.URL}, "token", "ls")
	b.wants(3, "", "", nil, "token", "ls", "--server", strings.Replace(other.URL, "127.0.0.1", "localhost", 1))
	if strings.Join(seen, "") != "" || len(seen) != 2 {
		t.Errorf("another server got %q", seen)
	}
	b.wants(0, first.TokenID, "", []string{"ARTEL_URL=" + b.base}, "token", "ls")
	// A second login replaces the first, whose token ends.
	b.wants(0, "logged in", testPassword+"\n", nil, "login", b.base, "--email", "ann@example.org", "--scope", "read", "--expires", "1d")
	path, second := b.one()
	if second.TokenID == first.TokenID || b.status("/api/v1/me", first.Token) != http.StatusUnauthorized || b.status("/api/v1/me", second.Token) != http.StatusOK {
		t.Error("the token of the first login still works")
	}
	// A file that others can use is not used.
	if err := os.Chmod(path, 0o644); err != nil { //nolint:gosec // it is what is refused
		t.Fatal(err)
	}
	b.wants(1, "other accounts of this machine can use this file", "", nil, "token", "ls")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	b.wants(0, "its token is revoked", "", nil, "logout")
	if len(b.kept()) != 0 || b.status("/api/v1/me", second.Token) != http.StatusUnauthorized {
		t.Error("after the logout, the token works or is kept")
	}
	b.wants(1, "there is no login", "", nil, "logout")
	// Without the server, the token stays until it is forgotten on purpose.
	b.wants(0, "logged in", typed, nil, "login", b.base)
	if err := b.server.stop(); err != nil {
		t.Fatal(err)
	}
	b.wants(3, "the login is kept", "", nil, "logout")
	b.one()
	b.wants(0, "still works at the server", "", nil, "logout", b.base, "--forget")
	if len(b.kept()) != 0 {
		t.Error("a login that was to be forgotten is kept")
	}
}

// TestLoginByToken: a token makes the one that is kept, which ends with it; one that was
// made on the page is kept itself.
func TestLoginByToken(t *testing.T) {
	t.Parallel()
	b := newLoginBench(t)
	var given, pasted struct{ ID, Token string }
	b.post("/api/v1/tokens", `{"name":"ci","scopes":["write","gateway"]}`, &given)
	b.post("/api/v1/tokens", `{"name":"page","scopes":["read"]}`, &pasted)
	b.wants(1, "", "artel_wrong\n", nil, "login", b.base, "--token")
	b.wants(2, "Token is missing", "", nil, "login", b.base, "--token")
	b.wants(0, "as Ann", given.Token+"\n", nil, "login", b.base, "--token")
	if _, l := b.one(); l.Token == given.Token || l.TokenID == given.ID {
		t.Error("the given token is kept itself")
	}
	b.wants(0, "revoked", "", nil, "logout")
	if b.status("/api/v1/me", given.Token) != http.StatusOK {
		t.Error("the logout revoked the given token")
	}
	b.wants(0, "#tokens", pasted.Token+"\n", nil, "login", b.base, "--browser")
	if _, l := b.one(); l.Token != pasted.Token || l.TokenID != pasted.ID {
		t.Errorf("kept: %s", l.TokenID)
	}
	b.wants(0, "revoked", "", nil, "logout")
	if b.status("/api/v1/me", pasted.Token) != http.StatusUnauthorized {
		t.Error("the logout did not revoke the token from the page")
	}
}

func TestServerURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://Artel.Example": "https://artel.example", "https://artel.example:443/": "https://artel.example", "http://h:80/a/": "http://h/a",
		"https://h:8443/artel": "https://h:8443/artel", "http://[::1]:7420": "http://[::1]:7420", " https://h ": "https://h",
	} {
		if got, err := serverURL(in); err != nil || got != want {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "h", "ftp://h", "https://", "https://u:p@h", "https://h?q=1", "https://h#f", "https://h/%zz"} {
		if got, err := serverURL(in); err == nil {
			t.Errorf("%q is %s", in, got)
		}
	}
	f := loginFolder{"x"}
	if f.path("https://h/a") == f.path("https://h_a") || filepath.Dir(f.path("https://../../etc")) != "x" {
		t.Error("two addresses share a file, or one is elsewhere")
	}
}
