// SPDX-License-Identifier: Apache-2.0

// Package oauthtest is an MCP server with accounts for tests, by the official SDK, and the
// authorization server that grants access to it: with registration, PKCE, resource
// indicators, refresh tokens that are accepted once, and revocation. It can be made to
// lie.
package oauthtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A Server is an MCP server with its authorization server.
type Server struct {
	URL    string      // of the MCP server
	Issuer string      // the authorization server
	MCP    *mcp.Server // to which tests add tools

	mu      sync.Mutex
	life    time.Duration
	edit    func(map[string]any) // of the metadata
	answer  func(url.Values)     // of what the browser brings back
	user    string               // who is logged in in the browser
	scopes  []string             // that the MCP server wants
	clients map[string]client
	codes   map[string]login
	access  map[string]grant
	refresh map[string]grant
	counts  map[string]int
}

type client struct {
	secret    string
	redirects []string
}

type login struct {
	client, redirect, challenge, resource, scope, user string
}

type grant struct {
	user, client, scope, family string
	ends                        time.Time
}

// New starts both servers, which end with the test. Ann is logged in at first.
func New(t testing.TB) *Server {
	s := &Server{
		life: time.Hour, user: "ann", clients: map[string]client{}, codes: map[string]login{},
		access: map[string]grant{}, refresh: map[string]grant{}, counts: map[string]int{},
	}
	issuer := http.NewServeMux()
	at := httptest.NewServer(issuer)
	t.Cleanup(at.Close)
	s.Issuer = at.URL
	issuer.HandleFunc("GET /.well-known/oauth-authorization-server", s.metadata)
	issuer.HandleFunc("POST /register", s.register)
	issuer.HandleFunc("GET /authorize", s.authorize)
	issuer.HandleFunc("POST /token", s.token)
	issuer.HandleFunc("POST /revoke", s.revoke)

	s.MCP = mcp.NewServer(&mcp.Implementation{Name: "mail", Version: "1"}, nil)
	mcp.AddTool(s.MCP, &mcp.Tool{Name: "whoami", Description: "Says whose mail this is.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "the mail of " + r.Extra.TokenInfo.UserID}}}, nil, nil
		})
	site := http.NewServeMux()
	resource := httptest.NewServer(site)
	t.Cleanup(resource.Close)
	t.Cleanup(resource.CloseClientConnections)
	s.URL = resource.URL + "/mcp"
	described := resource.URL + "/.well-known/oauth-protected-resource/mcp"
	site.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		m := &oauthex.ProtectedResourceMetadata{Resource: s.URL, AuthorizationServers: []string{s.Issuer}, ScopesSupported: []string{"mail"}}
		s.mu.Unlock()
		auth.ProtectedResourceMetadataHandler(m).ServeHTTP(w, r)
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.MCP }, &mcp.StreamableHTTPOptions{Stateless: true})
	site.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		scopes := slices.Clone(s.scopes)
		s.mu.Unlock()
		auth.RequireBearerToken(s.verify, &auth.RequireBearerTokenOptions{ResourceMetadataURL: described, Scopes: scopes})(handler).ServeHTTP(w, r)
	})
	return s
}

// set changes s under its lock.
func (s *Server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Browser says who is logged in at the authorization server from now on; "": a person who
// refuses.
func (s *Server) Browser(user string) { s.set(func() { s.user = user }) }

// Lives sets how long access tokens are valid that are issued from now on.
func (s *Server) Lives(d time.Duration) { s.set(func() { s.life = d }) }

// Describe changes what the authorization server says of itself.
func (s *Server) Describe(edit func(map[string]any)) { s.set(func() { s.edit = edit }) }

// Answer changes the parameters with which the browser is sent back.
func (s *Server) Answer(edit func(url.Values)) { s.set(func() { s.answer = edit }) }

// Wants sets the scopes that the MCP server asks for.
func (s *Server) Wants(scopes ...string) { s.set(func() { s.scopes = scopes }) }

// Register adds a client as an administrator of the authorization server does.
func (s *Server) Register(id, secret, redirect string) {
	s.set(func() { s.clients[id] = client{secret, []string{redirect}} })
}

// EndAccess makes all access tokens invalid; refresh tokens too if all is set.
func (s *Server) EndAccess(all bool) {
	s.set(func() {
		clear(s.access)
		if all {
			clear(s.refresh)
		}
	})
}

// Count returns how often an endpoint was called with success: register, code, refresh or
// revoke.
func (s *Server) Count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[what]
}

// Valid returns the number of tokens that are valid.
func (s *Server) Valid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.access) + len(s.refresh)
}

// Visit opens an address as the browser does and returns the one to which it is sent back.
func (s *Server) Visit(t testing.TB, location string) *url.URL {
	t.Helper()
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Get(location)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		t.Fatalf("%s: %s, %v", location, resp.Status, err)
	}
	return back
}

func (s *Server) verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.access[token]
	if !ok || !time.Now().Before(g.ends) {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: g.user, Scopes: strings.Fields(g.scope), Expiration: g.ends}, nil
}

func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	m := map[string]any{
		"issuer": s.Issuer, "authorization_endpoint": s.Issuer + "/authorize", "token_endpoint": s.Issuer + "/token",
		"registration_endpoint": s.Issuer + "/register", "revocation_endpoint": s.Issuer + "/revoke", "response_types_supported": []string{"code"},
		"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true, "scopes_supported": []string{"mail", "send"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic"},
	}
	s.mu.Lock()
	if s.edit != nil {
		s.edit(m)
	}
	s.mu.Unlock()
	reply(w, http.StatusOK, m)
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var m oauthex.ClientRegistrationMetadata
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil || len(m.RedirectURIs) == 0 || m.ClientName == "" {
		reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_client_metadata"})
		return
	}
	id, secret := "client-"+rand.Text(), rand.Text()
	s.set(func() { s.clients[id] = client{secret, m.RedirectURIs}; s.counts["register"]++ })
	reply(w, http.StatusCreated, map[string]any{"client_id": id, "client_secret": secret, "client_secret_expires_at": 0, "redirect_uris": m.RedirectURIs, "token_endpoint_auth_method": "client_secret_basic"})
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	c, known := s.clients[q.Get("client_id")]
	switch {
	case !known || !slices.Contains(c.redirects, q.Get("redirect_uri")):
		http.Error(w, "the client is not known here", http.StatusBadRequest)
		return
	case q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("state") == "" || q.Get("resource") != s.URL:
		http.Error(w, "a parameter is missing or wrong: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	back := url.Values{"state": {q.Get("state")}, "iss": {s.Issuer}}
	if s.user == "" {
		back.Set("error", "access_denied")
	} else {
		code := rand.Text()
		s.codes[code] = login{q.Get("client_id"), q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("resource"), q.Get("scope"), s.user}
		back.Set("code", code)
	}
	if s.answer != nil {
		s.answer(back)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// admitted returns the client of a request, if it has its secret. s.mu is held.
func (s *Server) admitted(r *http.Request) (string, bool) {
	id, secret, ok := r.BasicAuth()
	if ok { // RFC 6749, section 2.3.1
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	c, known := s.clients[id]
	return id, known && c.secret == secret
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.admitted(r)
	if !ok {
		reply(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	if r.PostFormValue("resource") != s.URL {
		reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_target"})
		return
	}
	var g grant
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		l, ok := s.codes[r.PostFormValue("code")]
		delete(s.codes, r.PostFormValue("code"))
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if !ok || l.client != id || l.redirect != r.PostFormValue("redirect_uri") || l.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
			reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
			return
		}
		g = grant{user: l.user, client: id, scope: l.scope, family: rand.Text()}
		s.counts["code"]++
	case "refresh_token":
		old, ok := s.refresh[r.PostFormValue("refresh_token")]
		if !ok || old.client != id { // used before, or unknown
			reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
			return
		}
		delete(s.refresh, r.PostFormValue("refresh_token"))
		g = old
		s.counts["refresh"]++
	default:
		reply(w, http.StatusBadRequest, map[string]string{"error": "unsupported_grant_type"})
		return
	}
	g.ends = time.Now().Add(s.life)
	access, refresh := "access-"+rand.Text(), "refresh-"+rand.Text()
	s.access[access], s.refresh[refresh] = g, g
	claims, _ := json.Marshal(map[string]string{"email": g.user + "@mail.example"})
	reply(w, http.StatusOK, map[string]any{
		"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": int(s.life.Seconds()), "scope": g.scope,
		"id_token": fmt.Sprintf("e30.%s.c2ln", base64.RawURLEncoding.EncodeToString(claims)),
	})
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.admitted(r); !ok {
		reply(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	delete(s.access, r.PostFormValue("token"))
	delete(s.refresh, r.PostFormValue("token"))
	s.counts["revoke"]++
	w.WriteHeader(http.StatusOK)
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
