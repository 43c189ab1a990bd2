// SPDX-License-Identifier: Apache-2.0

package oauth_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/internal/oauth"
	"github.com/artelhq/artel/internal/oauth/oauthtest"
)

const redirect = "http://127.0.0.1:7777/auth/mcp/callback"

func client(private bool) *http.Client {
	return fetch.NewClient(fetch.Options{AllowPrivate: private, MaxRedirects: fetch.SameOrigin})
}

func start(t *testing.T, s *oauthtest.Server) (oauth.Pending, error) {
	return oauth.Start(t.Context(), client(true), oauth.Request{URL: s.URL, Redirect: redirect}, time.Now())
}

func refusedWith(t *testing.T, what string, err error, code string) {
	t.Helper()
	if artel.CodeOf(err) != code {
		t.Errorf("%s: %v (code %q), want the code %s", what, err, artel.CodeOf(err), code)
	}
}

// TestGrant: access is granted, renewed with a token that is accepted once, and revoked.
func TestGrant(t *testing.T) {
	s := oauthtest.New(t)
	p, err := start(t, s)
	if err != nil {
		t.Fatal(err)
	}
	if q := must(url.Parse(p.Location)).Query(); q.Get("scope") != "mail" || q.Get("resource") != s.URL {
		t.Errorf("asks for %v", q)
	}
	g, err := oauth.Finish(t.Context(), client(true), p, redirect, s.Visit(t, p.Location).Query(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if g.Name != "ann@mail.example" || g.Refresh == "" || g.Access == "" || time.Until(g.Ends) < 50*time.Minute {
		t.Errorf("got %+v", g)
	}
	next, err := g.Refreshed(t.Context(), client(true), time.Now())
	if err != nil || next.Access == g.Access || next.Refresh == g.Refresh {
		t.Fatalf("renewed: %v, %+v", err, next)
	}
	_, err = g.Refreshed(t.Context(), client(true), time.Now())
	refusedWith(t, "a used refresh token", err, oauth.CodeEnded)
	if err := next.Revoke(t.Context(), client(true)); err != nil {
		t.Fatal(err)
	}
	_, err = next.Refreshed(t.Context(), client(true), time.Now())
	refusedWith(t, "a revoked grant", err, oauth.CodeEnded)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestHostileAnswers: what a browser brings back is refused unless it is the answer of the
// authorization server that was asked, to this request.
func TestHostileAnswers(t *testing.T) {
	for what, tt := range map[string]struct {
		change func(url.Values)
		code   string
	}{
		"another state":        {func(q url.Values) { q.Set("state", "x") }, oauth.CodeExpired},
		"no state":             {func(q url.Values) { q.Del("state") }, oauth.CodeExpired},
		"another issuer":       {func(q url.Values) { q.Set("iss", "https://evil.example") }, oauth.CodeUnsafe},
		"no issuer":            {func(q url.Values) { q.Del("iss") }, oauth.CodeUnsafe},
		"the issuer and slash": {func(q url.Values) { q.Set("iss", q.Get("iss")+"/") }, oauth.CodeUnsafe},
		"two codes":            {func(q url.Values) { q.Add("code", "x") }, oauth.CodeUnsafe},
		"two issuers":          {func(q url.Values) { q.Add("iss", "x") }, oauth.CodeUnsafe},
		"no code":              {func(q url.Values) { q.Del("code") }, oauth.CodeUnsafe},
		"another code":         {func(q url.Values) { q.Set("code", "x") }, oauth.CodeRefused},
		"a refusal":            {func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }, oauth.CodeRefused},
	} {
		s := oauthtest.New(t)
		p, err := start(t, s)
		if err != nil {
			t.Fatal(err)
		}
		q := s.Visit(t, p.Location).Query()
		tt.change(q)
		_, err = oauth.Finish(t.Context(), client(true), p, redirect, q, time.Now())
		refusedWith(t, what, err, tt.code)
	}
	s := oauthtest.New(t)
	p, err := start(t, s)
	if err != nil {
		t.Fatal(err)
	}
	q := s.Visit(t, p.Location).Query()
	_, err = oauth.Finish(t.Context(), client(true), p, redirect, q, p.Ends)
	refusedWith(t, "too late", err, oauth.CodeExpired)
	other := p
	other.Verifier = strings.Repeat("v", 43)
	_, err = oauth.Finish(t.Context(), client(true), other, redirect, q, time.Now())
	refusedWith(t, "another verifier", err, oauth.CodeRefused)
}

// TestHostileDescriptions: an authorization server that cannot be believed is not used.
func TestHostileDescriptions(t *testing.T) {
	for what, tt := range map[string]struct {
		change func(map[string]any)
		code   string
	}{
		"another issuer":           {func(m map[string]any) { m["issuer"] = "https://evil.example" }, oauth.CodeUnsafe},
		"no PKCE":                  {func(m map[string]any) { delete(m, "code_challenge_methods_supported") }, oauth.CodeUnsafe},
		"plain PKCE":               {func(m map[string]any) { m["code_challenge_methods_supported"] = []string{"plain"} }, oauth.CodeUnsafe},
		"a script":                 {func(m map[string]any) { m["authorization_endpoint"] = "javascript:alert(1)" }, oauth.CodeUnsafe},
		"tokens without TLS":       {func(m map[string]any) { m["token_endpoint"] = "http://evil.example/token" }, oauth.CodeUnsafe},
		"no addresses":             {func(m map[string]any) { delete(m, "token_endpoint") }, oauth.CodeUnknown},
		"no registration":          {func(m map[string]any) { delete(m, "registration_endpoint") }, oauth.CodeClient},
		"registration at metadata": {func(m map[string]any) { m["registration_endpoint"] = "https://169.254.169.254/register" }, oauth.CodeUnsafe},
		"too long":                 {func(m map[string]any) { m["issuer"] = strings.Repeat("x", 2<<20) }, oauth.CodeUnsafe},
	} {
		s := oauthtest.New(t)
		s.Describe(tt.change)
		_, err := start(t, s)
		refusedWith(t, what, err, tt.code)
	}
}

// TestHostileServers: an MCP server cannot lead the search to addresses that the client
// does not reach, into loops, or to an answer without end.
func TestHostileServers(t *testing.T) {
	asked := 0
	for what, tt := range map[string]struct {
		serve   http.HandlerFunc
		private bool
		code    string
	}{
		"nothing": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, true, oauth.CodeUnknown},
		"a loop": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.String()+"/x", http.StatusFound)
		}, true, oauth.CodeUnreachable},
		"another host": {func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			http.Redirect(w, r, "http://localhost:1/", http.StatusFound)
		}, true, oauth.CodeUnsafe},
		"another resource": {func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusUnauthorized)
			} else if strings.Contains(r.URL.Path, "oauth-protected-resource") {
				answer(w, map[string]any{"resource": "https://bank.example/mcp", "authorization_servers": []string{"https://bank.example"}})
			} else {
				w.WriteHeader(http.StatusNotFound)
			}
		}, true, oauth.CodeUnsafe},
		"an authorization server at metadata": {leads("http://169.254.169.254"), true, ""},
		"a private one from a public server":  {leads("https://10.1.2.3"), false, ""},
		"without end": {func(w http.ResponseWriter, r *http.Request) {
			asked++
			w.Header().Set("Content-Type", "application/json")
			if r.Method == http.MethodGet {
				_, _ = w.Write([]byte(`{"resource":"` + strings.Repeat("x", 3<<20) + `"}`))
			}
		}, true, oauth.CodeUnsafe},
	} {
		s := httptest.NewServer(tt.serve)
		_, err := oauth.Start(t.Context(), client(true), oauth.Request{URL: s.URL + "/mcp", Redirect: redirect}, time.Now())
		if tt.code == "" {
			if err == nil || errors.Is(err, artel.NotFound) {
				t.Errorf("%s: %v", what, err)
			}
		} else {
			refusedWith(t, what, err, tt.code)
		}
		s.Close()
	}
	if asked > 8 {
		t.Errorf("a server was asked %d times for what it had said", asked)
	}
}

// leads is a server that names an authorization server.
func leads(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answer(w, map[string]any{"resource": "http://" + r.Host + "/mcp", "authorization_servers": []string{to}})
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// TestClients: a configured client is used before a registration, and one that was
// registered before for the same addresses.
func TestClients(t *testing.T) {
	s := oauthtest.New(t)
	s.Register("fixed", "s3cret:+", redirect)
	r := oauth.Request{URL: s.URL, Redirect: redirect, Client: oauth.Client{ID: "fixed", Secret: "s3cret:+"}, Document: "https://artel.example/auth/mcp/client.json", Scopes: []string{"send"}}
	p, err := oauth.Start(t.Context(), client(true), r, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	g, err := oauth.Finish(t.Context(), client(true), p, redirect, s.Visit(t, p.Location).Query(), time.Now())
	if err != nil || g.Client.ID != "fixed" || s.Count("register") != 0 || len(g.Scopes) != 1 || g.Scopes[0] != "send" {
		t.Fatalf("%v: %+v, %d registrations", err, g, s.Count("register"))
	}
	if _, err := g.Refreshed(t.Context(), client(true), time.Now()); err != nil {
		t.Error(err)
	}
	r.Client = oauth.Client{}
	first, err := oauth.Start(t.Context(), client(true), r, time.Now())
	if err != nil || s.Count("register") != 1 {
		t.Fatalf("%v, %d registrations", err, s.Count("register"))
	}
	r.Earlier = first.Grant.Client
	if _, err := oauth.Start(t.Context(), client(true), r, time.Now()); err != nil || s.Count("register") != 1 {
		t.Errorf("%v, %d registrations", err, s.Count("register"))
	}
	r.Redirect = "http://127.0.0.1:8888/auth/mcp/callback"
	if _, err := oauth.Start(t.Context(), client(true), r, time.Now()); err != nil || s.Count("register") != 2 {
		t.Errorf("%v, %d registrations for another address of this program", err, s.Count("register"))
	}
	s.Describe(func(m map[string]any) { m["client_id_metadata_document_supported"] = true })
	p, err = oauth.Start(t.Context(), client(true), r, time.Now())
	if err != nil || p.Grant.Client.ID != r.Document {
		t.Errorf("%v, client %q", err, p.Grant.Client.ID)
	}
}

// FuzzName: an id_token from outside names an account or none.
func FuzzName(f *testing.F) {
	f.Add("e30.eyJlbWFpbCI6ImEifQ.c2ln")
	f.Add("...")
	f.Fuzz(func(t *testing.T, token string) {
		if name := oauth.AccountName(token); len([]rune(name)) > 80 {
			t.Errorf("%q", name)
		}
	})
}
