// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
)

// An Endpoint is how one user reaches a server over a connection that is not the pool's.
// Close it.
type Endpoint struct {
	Server Server
	Owner  artel.Owner
	pool   *Pool
	left   chan struct{}
	leave  sync.Once

	mu    sync.Mutex
	token string // the newest of the user; no result shows it
}

// NewEndpoint returns a server of a pool for a user; kind NotFound if there is none of the
// name.
func NewEndpoint(p *Pool, name string, owner artel.Owner) (*Endpoint, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.servers {
		if c.server.Name == name {
			e := &Endpoint{Server: c.server, Owner: owner, pool: p, left: make(chan struct{})}
			p.endpoints[e] = true
			return e, nil
		}
	}
	return nil, artel.Errorf(artel.NotFound, "mcp.Pool", artel.Shorten(name, 60), "there is no MCP server of this name")
}

// Left is closed when the server was changed or removed, or the user's access to it ended.
func (e *Endpoint) Left() <-chan struct{} { return e.left }

// Close ends the interest in the server.
func (e *Endpoint) Close() {
	e.pool.mu.Lock()
	defer e.pool.mu.Unlock()
	delete(e.pool.endpoints, e)
}

// depart closes Left of the endpoints of a server, those of one user if owner is one. p.mu
// is held.
func (p *Pool) depart(server string, owner artel.Owner) {
	for e := range p.endpoints {
		if e.Server.Name == server && (owner == "" || e.Owner == owner) {
			e.leave.Do(func() { close(e.left) })
		}
	}
}

// Client returns the client for requests to a [Remote], which have the access of the user if
// the server has a [Login].
func (e *Endpoint) Client() *http.Client {
	client := *e.Server.Remote.Client
	if e.Server.Login != nil {
		client.Transport = accessTransport{e, client.Transport}
	}
	return &client
}

// Secrets returns the values that no result may show, at this moment.
func (e *Endpoint) Secrets() tool.Secrets {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.token == "" {
		return e.Server.Secrets
	}
	all := tool.Secrets{"access token": e.token}
	for name, value := range e.Server.Secrets {
		all[name] = value
	}
	return all
}

// access returns the access token of the user.
func (e *Endpoint) access(r *http.Request, refused string) (string, error) {
	e.pool.mu.Lock()
	tokens := e.pool.tokens
	e.pool.mu.Unlock()
	if tokens == nil || e.Owner == "" {
		return "", artel.Errorf(artel.Unavailable, "mcp.Endpoint", e.Server.Name, "the MCP server %s can only be used by users with accounts", e.Server.Name)
	}
	t, err := tokens.Token(artel.WithOwner(r.Context(), e.Owner), e.Server, refused)
	if err == nil {
		e.mu.Lock()
		e.token = t
		e.mu.Unlock()
	}
	return t, err
}

// An accessTransport adds the access token of a user to requests. A refused one is renewed
// once.
type accessTransport struct {
	e    *Endpoint
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (a accessTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	next := a.next
	if next == nil {
		next = http.DefaultTransport
	}
	token, err := a.e.access(r, "")
	for again := false; ; again = true {
		if err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, err
		}
		sent := r.Clone(r.Context())
		sent.Header.Set("Authorization", "Bearer "+token)
		if again && r.GetBody != nil {
			if sent.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		resp, err := next.RoundTrip(sent)
		if err != nil {
			return nil, err
		}
		switch {
		case resp.StatusCode == http.StatusForbidden:
			return a.forbidden(r, resp)
		case resp.StatusCode != http.StatusUnauthorized || again || r.Body != nil && r.GetBody == nil:
			return resp, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4096))
		_ = resp.Body.Close()
		if token, err = a.e.access(r, token); err != nil {
			return nil, err
		}
	}
}

// forbidden returns the answer, or the error of an access that allows too little.
func (a accessTransport) forbidden(r *http.Request, resp *http.Response) (*http.Response, error) {
	scopes, ok := wantedScopes(resp)
	if !ok {
		return resp, nil
	}
	_ = resp.Body.Close()
	a.e.pool.mu.Lock()
	tokens := a.e.pool.tokens
	a.e.pool.mu.Unlock()
	if err := tokens.Insufficient(artel.WithOwner(r.Context(), a.e.Owner), a.e.Server, scopes); err != nil {
		return nil, err
	}
	return nil, errors.New("the server refuses the account: " + resp.Status)
}

// wantedScopes returns the scopes that a refusal asks for.
func wantedScopes(resp *http.Response) ([]string, bool) {
	all, _ := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	for _, ch := range all {
		if ch.Scheme == "bearer" && (ch.Params["error"] == "insufficient_scope" || ch.Params["error"] == "" && ch.Params["scope"] != "") {
			return strings.Fields(ch.Params["scope"]), true
		}
	}
	return nil, false
}
