// SPDX-License-Identifier: Apache-2.0

package oauth_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel/internal/oauth"
)

// documents answers all requests with what a server and an authorization server may say.
type documents struct {
	challenge            string
	resource, authServer []byte
	client               []byte // of the registration
	asked                int
}

// RoundTrip implements [http.RoundTripper].
func (d *documents) RoundTrip(r *http.Request) (*http.Response, error) {
	d.asked++
	status, body := http.StatusNotFound, []byte(nil)
	header := http.Header{"Content-Type": {"application/json"}}
	switch path := r.URL.Path; {
	case strings.Contains(path, "oauth-protected-resource"):
		status, body = http.StatusOK, d.resource
	case strings.Contains(path, "oauth-authorization-server"), strings.Contains(path, "openid-configuration"):
		status, body = http.StatusOK, d.authServer
	case path == "/mcp":
		status = http.StatusUnauthorized
		header.Set("WWW-Authenticate", d.challenge)
	case r.Method == http.MethodPost:
		status, body = http.StatusCreated, d.client
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r}, nil
}

// FuzzDiscovery: whatever a server and its authorization server say about themselves, a user
// is led to an https address alone, with PKCE and with the scopes bounded, and nothing is
// asked without end.
func FuzzDiscovery(f *testing.F) {
	resource := `{"resource":"https://server.example/mcp","authorization_servers":["https://login.example"],"scopes_supported":["mail"]}`
	meta := `{"issuer":"https://login.example","authorization_endpoint":"https://login.example/authorize?a=b","token_endpoint":"https://login.example/token","registration_endpoint":"https://login.example/register","code_challenge_methods_supported":["S256"],"response_types_supported":["code"],"scopes_supported":["offline_access"]}`
	challenge := `Bearer resource_metadata="https://server.example/.well-known/oauth-protected-resource/mcp", scope="mail read"`
	registered := `{"client_id":"c","redirect_uris":["` + redirect + `"]}`
	f.Add(challenge, []byte(resource), []byte(meta), []byte(registered))
	f.Add(`Bearer`, []byte(resource), []byte(strings.ReplaceAll(meta, "https://login.example/authorize", "javascript:alert(1)//")), []byte(registered))
	f.Add(`Bearer scope=`, []byte(`{"authorization_servers":[""]}`), []byte(`{"issuer":1}`), []byte(`{}`))
	f.Add(`, ,Basic x="`, []byte(`null`), []byte(`[]`), []byte(`null`))
	f.Fuzz(func(t *testing.T, challenge string, resource, meta, registered []byte) {
		d := &documents{challenge, resource, meta, registered, 0}
		p, err := oauth.Start(t.Context(), &http.Client{Transport: d}, oauth.Request{URL: "https://server.example/mcp", Redirect: redirect}, time.Now())
		if d.asked > 20 {
			t.Errorf("%d requests", d.asked)
		}
		if err != nil {
			return
		}
		u, err := url.Parse(p.Location)
		if err != nil {
			t.Fatal(err)
		}
		local := u.Hostname() == "localhost" || strings.HasPrefix(u.Hostname(), "127.") || u.Hostname() == "::1"
		q := u.Query()
		if u.Scheme != "https" && (u.Scheme != "http" || !local) || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("state") == "" || len(q["redirect_uri"]) != 1 {
			t.Errorf("a user is led to %q", p.Location)
		}
		if len(q.Get("scope")) > 20_000 {
			t.Errorf("%d bytes of scopes", len(q.Get("scope")))
		}
	})
}
