// SPDX-License-Identifier: Apache-2.0

// Package oidctest is an OpenID provider for tests, which logs in at once and can be
// made to lie.
package oidctest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// The client that is registered at every provider.
const (
	ClientID     = "artel"
	ClientSecret = "provider-secret"
)

// A Provider has the endpoints of OpenID Connect's code flow. It accepts each code once,
// with its PKCE verifier and the client's secret.
type Provider struct {
	URL string // also the issuer

	key    *rsa.PrivateKey
	now    func() time.Time
	mu     sync.Mutex
	claims map[string]any
	info   map[string]any
	codes  map[string]login
	broken string // a path

	server *httptest.Server
}

type login struct {
	redirect, challenge, nonce string
	claims                     map[string]any
}

// New starts a provider, which ends with the test. A nil now means time.Now.
func New(t testing.TB, now func() time.Time) *Provider {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	if now == nil {
		now = time.Now
	}
	p := &Provider{key: key, now: now, codes: map[string]login{}}
	mux := http.NewServeMux()
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		broken := r.URL.Path == p.broken
		p.mu.Unlock()
		if broken {
			http.Error(w, "out of order", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.server.Close)
	p.URL = p.server.URL
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys", "userinfo_endpoint": p.URL + "/me",
			"id_token_signing_alg_values_supported": []string{"RS256"}, "response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]string{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", "n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("GET /auth", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /me", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		answer(w, http.StatusOK, p.info)
	})
	return p
}

// Say sets the claims of the logins from now on. They replace those that the provider
// makes itself, such as nonce.
func (p *Provider) Say(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = claims
}

// SayOf sets the answer of the endpoint for users.
func (p *Provider) SayOf(info map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info = info
}

// Stop ends the provider.
func (p *Provider) Stop() { p.server.Close() }

// Break lets a path answer with 502 from now on, and no other.
func (p *Provider) Break(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = path
}

// Authorize logs in at the address to which a browser was sent, and returns the address
// to which it is sent back.
func (p *Provider) Authorize(t testing.TB, location string) *url.URL {
	t.Helper()
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Get(location)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		t.Fatalf("%s: %v", resp.Status, err)
	}
	return back
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("nonce") == "" || q.Get("state") == "" {
		http.Error(w, "a parameter is missing or wrong", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = login{q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("nonce"), maps.Clone(p.claims)}
	p.mu.Unlock()
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	code := r.PostFormValue("code")
	p.mu.Lock()
	l, ok := p.codes[code]
	delete(p.codes, code)
	p.mu.Unlock()
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !ok || id != ClientID || secret != ClientSecret || encode(challenge[:]) != l.challenge || r.PostFormValue("redirect_uri") != l.redirect {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{"iss": p.URL, "aud": ClientID, "nonce": l.nonce, "iat": p.now().Unix(), "exp": p.now().Add(time.Hour).Unix()}
	maps.Copy(claims, l.claims)
	answer(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 3600, "id_token": p.sign(claims)})
}

// sign returns a signed id_token (RFC 7515, RS256).
func (p *Provider) sign(claims map[string]any) string {
	body, err := json.Marshal(claims)
	if err != nil {
		panic(err) // tests write these values
	}
	text := encode([]byte(`{"alg":"RS256","kid":"1"}`)) + "." + encode(body)
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, digest[:])
	if err != nil {
		panic(err) // the key is ours
	}
	return text + "." + encode(signature)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
