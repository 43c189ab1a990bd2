// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel/app/access"
)

// A guarded is a whole server that needs a login, in this process.
type guarded struct {
	t      *testing.T
	data   string // directory
	server *server
	http   *httptest.Server
	client *http.Client // follows no redirects
}

func newGuarded(t *testing.T, o access.Options, change func(*config)) *guarded {
	t.Helper()
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"} {
		t.Setenv(name, "")
	}
	for _, name := range []string{"OLLAMA_BASE_URL", "LLAMACPP_BASE_URL", "LMSTUDIO_BASE_URL", "VLLM_BASE_URL"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	var c config
	if change != nil {
		change(&c)
	}
	data := t.TempDir()
	s, err := openServer(t.Context(), serverOptions{data: data, config: c, log: slog.New(slog.DiscardHandler), access: o})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.handler)
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), patience)
		defer stop()
		if err := s.app.Close(ctx); err != nil {
			t.Error(err)
		}
		h.CloseClientConnections()
		h.Close()
		s.shut()
	})
	client := &http.Client{Transport: h.Client().Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &guarded{t, data, s, h, client}
}

// ask sends a request, whose header has pairs of names and values.
func (g *guarded) ask(method, path, body string, header ...string) (*http.Response, string) {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), method, g.http.URL+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if !strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, "/v1") {
		r.Header.Set("HX-Request", "true") // as scripts of the page ask
	}
	resp, err := g.client.Do(r)
	if err != nil {
		g.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	if strings.Contains(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp, ""
	}
	b, _ := io.ReadAll(resp.Body)
	return resp, string(b)
}

// must sends a request that has to succeed, and decodes its answer.
func (g *guarded) must(out any, method, path, body string, header ...string) *http.Response {
	g.t.Helper()
	resp, text := g.ask(method, path, body, header...)
	if resp.StatusCode >= 300 {
		g.t.Fatalf("%s %s: %s %s", method, path, resp.Status, text)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(text), out); err != nil {
			g.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
	return resp
}

const testPassword = "a long password"

// setUp makes the administrator and returns the cookie of his session.
func (g *guarded) setUp() string {
	g.t.Helper()
	resp := g.must(nil, "POST", "/api/v1/setup", `{"code":"`+g.server.app.Access.NewSetupCode()+`","name":"Ann","email":"ann@example.org","password":"`+testPassword+`"}`)
	return sessionOf(g.t, resp)
}

func sessionOf(t *testing.T, r *http.Response) string {
	t.Helper()
	for _, c := range r.Cookies() {
		if c.Name == access.SessionCookie {
			return c.Name + "=" + c.Value
		}
	}
	t.Fatal("no cookie of a session")
	return ""
}

// user makes one and returns the cookie of a session.
func (g *guarded) user(admin, email, role string) string {
	g.t.Helper()
	var invited struct {
		InviteURL string `json:"invite_url"`
	}
	g.must(&invited, "POST", "/api/v1/users", `{"name":"Someone","email":"`+email+`","role":"`+role+`"}`, "Cookie", admin, "Origin", g.http.URL)
	u, err := url.Parse(invited.InviteURL)
	if err != nil {
		g.t.Fatal(err)
	}
	return sessionOf(g.t, g.must(nil, "POST", "/api/v1/invite", `{"code":"`+u.Query().Get("code")+`","password":"`+testPassword+`"}`))
}

// token makes a token with scopes.
func (g *guarded) token(cookie, scopes string) (id, secret string) {
	g.t.Helper()
	var made struct{ ID, Token string }
	g.must(&made, "POST", "/api/v1/tokens", `{"name":"t","scopes":`+scopes+`}`, "Cookie", cookie, "Origin", g.http.URL)
	return made.ID, made.Token
}

// An endpoint is a method and a path with the names of its variables.
type endpoint struct{ method, path string }

// gatewayRoutes are the routes of the gateway, which has no mux.
func gatewayRoutes() []endpoint {
	return []endpoint{
		{"POST", "/v1/chat/completions"},
		{"POST", "/v1/messages"},
		{"POST", "/v1/messages/count_tokens"},
		{"POST", "/v1/messages/batches"},
		{"POST", "/v1/responses"},
		{"POST", "/v1/responses/input_tokens"},
		{"POST", "/v1beta/models/demo:generateContent"},
		{"POST", "/v1beta/models/demo:countTokens"},
		{"GET", "/v1/models"},
		{"GET", "/v1beta/models"},
		{"GET", "/v1/files"},
		{"POST", "/v1/files"},
		{"GET", "/v1/files/file-x/content"},
		{"POST", "/v1/embeddings"},
		{"POST", "/v1/completions"},
		{"POST", "/v1/conversations"},
		{"POST", "/v1/moderations"},
		{"POST", "/v1/rerank"},
		{"POST", "/v1/audio/speech"},
		{"POST", "/v1/audio/transcriptions"},
		{"POST", "/v1/audio/translations"},
		{"POST", "/v1/images/generations"},
		{"POST", "/v1/images/edits"},
		{"POST", "/v1/images/variations"},
		{"POST", "/v1/batches"},
		{"GET", "/v1/batches"},
		{"GET", "/v1/batches/x"},
		{"DELETE", "/v1/files/file-x"},
		{"GET", "/v1/models/demo"},
		{"GET", "/v1beta/models/demo"},
		{"GET", "/v1/unknown"},
		{"POST", "/upload/v1beta/files"},
	}
}

// isGatewayRoute reports whether the gateway serves a route.
func isGatewayRoute(r endpoint) bool { return slices.Contains(gatewayRoutes(), r) }

// TestLoginReplacesSession: a login ends the session that it came with.
func TestLoginReplacesSession(t *testing.T) {
	g := newGuarded(t, access.Options{Mode: access.Required}, nil)
	before := g.setUp()
	g.must(nil, "POST", "/api/v1/login", `{"email":"ann@example.org","password":"`+testPassword+`"}`, "Cookie", before, "Origin", g.http.URL)
	if resp, _ := g.ask("GET", "/api/v1/me", "", "Cookie", before); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the session before another login: %s", resp.Status)
	}
}

// TestOpenAsBefore: on loopback without users everyone is the operator, and the
// first user ends that.
func TestOpenAsBefore(t *testing.T) {
	g := newGuarded(t, access.Options{}, nil)
	var c struct{ ID string }
	g.must(&c, "POST", "/api/v1/conversations", `{}`)
	g.must(nil, "GET", "/api/v1/findings", "")
	g.must(nil, "POST", "/v1/chat/completions", `{"model":"demo","messages":[{"role":"user","content":"hi"}]}`)
	var me struct {
		ID, Role string
		Login    bool
	}
	if g.must(&me, "GET", "/api/v1/me", ""); me.ID != "local" || me.Role != "admin" || me.Login {
		t.Errorf("got %+v", me)
	}
	resp := g.must(nil, "POST", "/api/v1/setup", `{"name":"Ann","email":"ann@example.org","password":"`+testPassword+`"}`)
	if resp, _ := g.ask("GET", "/api/v1/me", ""); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the set-up: %s", resp.Status)
	}
	cookie := sessionOf(t, resp)
	if g.must(&me, "GET", "/api/v1/me", "", "Cookie", cookie); me.ID != "local" || !me.Login {
		t.Errorf("got %+v", me)
	}
	g.must(nil, "GET", "/api/v1/conversations/"+c.ID, "", "Cookie", cookie) // what was there belongs to the administrator
}

// TestGatewayTokens: the gateway takes tokens with the scope gateway where SDKs put
// their keys, and keys of the configuration; no cookies.
func TestGatewayTokens(t *testing.T) {
	t.Setenv("APP_KEY", "sk-app")
	g := newGuarded(t, access.Options{Mode: access.Required}, func(c *config) { c.Gateway.Keys = []gatewayKey{{Name: "app", Key: "${APP_KEY}"}} })
	admin := g.setUp()
	_, gateway := g.token(admin, `["gateway"]`)
	_, reader := g.token(admin, `["read","write"]`)
	const question = `{"model":"demo","messages":[{"role":"user","content":"hi"}]}`
	for _, c := range []struct {
		status int
		header []string
	}{
		{200, []string{"Authorization", "Bearer " + gateway}},
		{200, []string{"X-Api-Key", gateway}},
		{200, []string{"X-Goog-Api-Key", gateway}},
		{200, []string{"Authorization", "Bearer sk-app"}},
		{401, []string{"Authorization", "Bearer sk-other"}},
		{401, []string{"Authorization", "Bearer artel_x"}},
		{403, []string{"Authorization", "Bearer " + reader}},
		{401, []string{"Cookie", admin, "Origin", g.http.URL}},
		{401, nil},
	} {
		if resp, text := g.ask("POST", "/v1/chat/completions", question, c.header...); resp.StatusCode != c.status {
			t.Errorf("%v: %s %s", c.header, resp.Status, text)
		}
	}
	for _, secret := range []string{gateway, "sk-app"} { // neither opens the API
		if resp, _ := g.ask("GET", "/api/v1/conversations", "", "Authorization", "Bearer "+secret); resp.StatusCode != http.StatusForbidden && resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("the API with a key of the gateway: %s", resp.Status)
		}
	}
	g.must(nil, "GET", "/api/v1/conversations", "", "Authorization", "Bearer "+reader)
}

// TestRevokingEndsStreams: an event stream ends when its token is revoked, and the
// token is refused from then on.
func TestRevokingEndsStreams(t *testing.T) {
	g := newGuarded(t, access.Options{Mode: access.Required}, nil)
	admin := g.setUp()
	id, secret := g.token(admin, `["read"]`)
	var c struct{ ID string }
	g.must(&c, "POST", "/api/v1/conversations", `{}`, "Cookie", admin, "Origin", g.http.URL)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, "GET", g.http.URL+"/api/v1/conversations/"+c.ID+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	resp, err := g.client.Do(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", resp, err)
	}
	defer resp.Body.Close()
	g.must(nil, "DELETE", "/api/v1/tokens/"+id, "", "Cookie", admin, "Origin", g.http.URL)
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
	}
	if ctx.Err() != nil {
		t.Fatal("the stream did not end")
	}
	if resp, _ := g.ask("GET", "/api/v1/me", "", "Authorization", "Bearer "+secret); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("got %s", resp.Status)
	}
}

// TestSetupEndsStreams: an event stream that began before the first user was made ends
// when a login is needed.
func TestSetupEndsStreams(t *testing.T) {
	g := newGuarded(t, access.Options{}, nil)
	var c struct{ ID string }
	g.must(&c, "POST", "/api/v1/conversations", `{}`)
	r, err := http.NewRequestWithContext(t.Context(), "GET", g.http.URL+"/api/v1/conversations/"+c.ID+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := g.client.Do(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", resp, err)
	}
	defer resp.Body.Close()
	g.setUp()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); { // a stream that stays open never gets to the end
	}
}

// TestLoginPage: a page leads to the login, the login back to the page, with a cookie
// that scripts cannot read; a foreign address is not led to.
func TestLoginPage(t *testing.T) {
	g := newGuarded(t, access.Options{Mode: access.Required}, nil)
	code := g.server.app.Access.NewSetupCode()
	form := func(path string, values url.Values, header ...string) (*http.Response, string) {
		return g.ask("POST", path, values.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded", "Origin", g.http.URL}, header...)...)
	}
	resp, page := g.ask("GET", "/setup?code="+code, "", "Accept", "text/html")
	if resp.StatusCode != http.StatusOK || !strings.Contains(page, `value="`+code+`"`) {
		t.Fatalf("%s %s", resp.Status, page)
	}
	resp, page = form("/setup", url.Values{"code": {code}, "name": {"Ann"}, "email": {"ann@example.org"}, "password": {"short"}})
	if resp.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(page, `role="alert"`) || !strings.Contains(page, "ann@example.org") || strings.Contains(page, "short") {
		t.Errorf("%s %s", resp.Status, page)
	}
	resp, page = form("/setup", url.Values{"code": {code}, "name": {"Ann"}, "email": {"ann@example.org"}, "password": {testPassword}})
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/" {
		t.Fatalf("%s %s", resp.Status, page)
	}
	resp, _ = g.ask("GET", "/settings?x=1", "", "Accept", "text/html")
	if to := resp.Header.Get("Location"); resp.StatusCode != http.StatusSeeOther || to != "/login?next=%2Fsettings%3Fx%3D1" {
		t.Fatalf("%s %s", resp.Status, to)
	}
	for next, want := range map[string]string{"/settings?x=1": "/settings?x=1", "//evil.example": "/", "https://evil.example": "/", "/\\evil.example": "/", "": "/"} {
		resp, _ := form("/login", url.Values{"email": {"ann@example.org"}, "password": {testPassword}, "next": {next}})
		if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != want {
			t.Errorf("next %q: %s %s", next, resp.Status, resp.Header.Get("Location"))
		}
		c := resp.Cookies()[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Secure {
			t.Errorf("got %+v", c)
		}
	}
	cookie := sessionOf(t, g.must(nil, "POST", "/api/v1/login", `{"email":"ann@example.org","password":"`+testPassword+`"}`))
	g.must(nil, "GET", "/settings", "", "Accept", "text/html", "Cookie", cookie)
	if resp, _ := form("/logout", nil, "Cookie", cookie); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("logout: %s", resp.Status)
	}
	if resp, _ := g.ask("GET", "/api/v1/me", "", "Cookie", cookie); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the logout: %s", resp.Status)
	}
	for range 5 {
		g.ask("POST", "/api/v1/login", `{"email":"ann@example.org","password":"wrong password"}`)
	}
	if resp, text := g.ask("POST", "/api/v1/login", `{"email":"ann@example.org","password":"`+testPassword+`"}`); resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("after failed logins: %s %s", resp.Status, text)
	}
}

// TestBinding: beyond loopback a login is needed, and the flags that say otherwise
// have to be complete.
func TestBinding(t *testing.T) {
	for _, c := range []struct {
		b       binding
		mode    access.Mode
		hosts   []string
		refused bool
		want    access.Options
	}{
		{b: binding{addr: "127.0.0.1:0"}},
		{b: binding{addr: "localhost:0"}},
		{b: binding{addr: "127.0.0.1"}, refused: true},
		{b: binding{addr: "0.0.0.0:0"}, want: access.Options{Exposed: true}},
		{b: binding{addr: ":0"}, want: access.Options{Exposed: true}},
		{b: binding{addr: "127.0.0.1:0", noAuth: true}, want: access.Options{Mode: access.OpenMode}},
		{b: binding{addr: "0.0.0.0:0", noAuth: true}, refused: true},
		{b: binding{addr: "0.0.0.0:0"}, mode: access.OpenMode, refused: true},
		{b: binding{addr: "0.0.0.0:0", noAuth: true, know: true}, want: access.Options{Mode: access.OpenMode, Exposed: true}},
		{b: binding{addr: "127.0.0.1:0", noAuth: true}, mode: access.Required, refused: true},
		{b: binding{addr: "127.0.0.1:0"}, mode: "closed", refused: true},
		{b: binding{addr: "127.0.0.1:0"}, hosts: []string{"localhost"}},
		{b: binding{addr: "127.0.0.1:0"}, hosts: []string{"artel.example"}, want: access.Options{Exposed: true}}, // behind a proxy
		{b: binding{addr: "127.0.0.1:0", noAuth: true}, hosts: []string{"artel.example"}, refused: true},
	} {
		got, err := c.b.access(authConfig{Mode: c.mode}, c.hosts)
		if (err != nil) != c.refused || err == nil && got != c.want {
			t.Errorf("%+v with mode %q and hosts %q: %+v, %v", c.b, c.mode, c.hosts, got, err)
		}
	}
}

// TestServeBeyondLoopback: the server prints where it is set up, and refuses
// everything else until then; its names are checked.
func TestServeBeyondLoopback(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "artel.yaml"), []byte("hosts: [artel.example]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := launch(dir, bareEnvironment(dir), "serve", "--addr", "0.0.0.0:0", "--data", filepath.Join(dir, "data"), "--config", "artel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	setup, err := url.Parse(p.url) // the first line
	if err != nil || setup.Path != "/setup" || setup.Query().Get("code") == "" {
		t.Fatalf("got %q", p.url)
	}
	base := "http://127.0.0.1:" + setup.Port()
	get := func(host, path string) int {
		r, err := http.NewRequestWithContext(t.Context(), "GET", base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for host, want := range map[string]int{"127.0.0.1": 401, "192.0.2.1:80": 401, "artel.example": 401, "evil.example": 403} {
		if got := get(host, "/api/v1/conversations"); got != want {
			t.Errorf("host %s: %d, want %d", host, got, want)
		}
	}
	resp, err := http.Post(base+"/api/v1/setup", "application/json", bytes.NewBufferString(`{"code":"`+setup.Query().Get("code")+`","name":"Ann","email":"ann@example.org","password":"`+testPassword+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Errorf("set-up: %s", resp.Status)
	}
}
