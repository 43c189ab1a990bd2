// SPDX-License-Identifier: Apache-2.0

// Package oauth gets the access of a user to a server that is protected by OAuth 2.1, as
// MCP's authorization describes it: the server names its authorization server (RFC 9728),
// that one describes itself (RFC 8414, OpenID Connect Discovery), the client is
// configured, described by a document, or registered (RFC 7591), and the user allows the
// access in a browser (code with PKCE S256 and resource indicator, RFC 8707).
//
// Begin with [Start], which returns a [Pending] with the address for the browser.
// [Finish] takes what the authorization server sent back and returns a [Grant], of which
// [Grant.Refreshed] is the next one and which [Grant.Revoke] ends (RFC 7009). Nothing is
// stored here: a Pending and a Grant are values that the caller keeps secret.
//
// All that servers say is foreign: answers are bounded, an authorization server has to
// name itself as it was named, and in its answer too (RFC 9207), and the client of the
// caller decides which addresses are reached.
package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/net/http/httpguts"
	"golang.org/x/oauth2"

	"github.com/artelhq/artel"
)

// Error codes.
const (
	CodeUnreachable = "authorization_unreachable" // an address does not answer, or may not be asked
	CodeUnknown     = "authorization_unknown"     // the server does not say where access is granted
	CodeUnsafe      = "authorization_unsafe"      // what a server says about itself cannot be believed, or PKCE is missing
	CodeClient      = "authorization_client"      // the authorization server knows no client, and registers none
	CodeExpired     = "authorization_expired"     // the answer is of no pending request
	CodeRefused     = "authorization_refused"     // the user or the authorization server refuses
	CodeEnded       = "authorization_ended"       // a grant is not valid any more
)

// Bounds.
const (
	maxToken   = 16 << 10 // bytes of a token
	maxScopes  = 100
	maxName    = 80
	totalTime  = 40 * time.Second // of all requests of one step
	PendingFor = 15 * time.Minute // the time for a user to allow access
)

// failure is an error with a code.
func failure(code, subject, format string, args ...any) error {
	kind := artel.Denied
	if code == CodeUnreachable {
		kind = artel.Unavailable
	}
	err := artel.Errorf(kind, "oauth", artel.Shorten(subject, 200), format, args...)
	err.Code = code
	return err
}

// A Client is what an authorization server knows this program as.
type Client struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
	Method string `json:"method,omitempty"` // client_secret_basic, client_secret_post or none
	// Redirect and Issuer are those that a registered client is for; "": any.
	Redirect string `json:"redirect,omitempty"`
	Issuer   string `json:"issuer,omitempty"`
}

// A Request describes the access that is wanted.
type Request struct {
	URL      string      // of the server
	Header   http.Header // for the server alone
	Client   Client      // configured; zero: a document or a registration
	Earlier  Client      // registered before; may be zero
	Scopes   []string    // nil: those that the server names
	Redirect string      // the address of this program to which the browser comes back
	Document string      // the address of the client's metadata document; "": none that others can read
}

// A Pending is a request that waits for the user.
type Pending struct {
	Location string    `json:"location"` // for the browser
	State    string    `json:"state"`
	Verifier string    `json:"verifier"`
	Names    bool      `json:"names"` // the authorization server names itself in its answer
	Grant    Grant     `json:"grant"` // without tokens
	Ends     time.Time `json:"ends"`
}

// A Grant is the access of a user to a server.
type Grant struct {
	Resource string   `json:"resource"`
	Issuer   string   `json:"issuer"`
	TokenURL string   `json:"token_url"`
	Revoking string   `json:"revocation_url,omitempty"` // "": tokens cannot be revoked
	Client   Client   `json:"client"`
	Scopes   []string `json:"scopes,omitempty"`

	Access  string    `json:"access_token,omitempty"`
	Refresh string    `json:"refresh_token,omitempty"` // "": the access cannot be renewed
	Ends    time.Time `json:"ends,omitzero"`           // of Access; zero: not known
	Name    string    `json:"name,omitempty"`          // of the account, as the authorization server says; "": not known
}

// Start finds out where access to a server is granted, and returns the request for the
// browser of the user.
func Start(ctx context.Context, client *http.Client, r Request, now time.Time) (Pending, error) {
	ctx, stop := context.WithTimeout(ctx, totalTime)
	defer stop()
	found, err := discover(ctx, client, r)
	if err != nil {
		return Pending{}, err
	}
	meta := found.meta
	if !slices.Contains(meta.CodeChallengeMethodsSupported, "S256") {
		return Pending{}, failure(CodeUnsafe, meta.Issuer, "the authorization server does not offer PKCE with S256, without which codes can be stolen")
	}
	c, err := clientFor(ctx, client, r, meta)
	if err != nil {
		return Pending{}, err
	}
	p := Pending{State: rand.Text(), Verifier: oauth2.GenerateVerifier(), Names: meta.AuthorizationResponseIssParameterSupported, Ends: now.Add(PendingFor)}
	p.Grant = Grant{Resource: found.resource, Issuer: meta.Issuer, TokenURL: meta.TokenEndpoint, Revoking: meta.RevocationEndpoint, Client: c, Scopes: found.scopes}
	if p.Grant.TokenURL == "" || meta.AuthorizationEndpoint == "" {
		return Pending{}, failure(CodeUnknown, meta.Issuer, "the authorization server does not name its addresses for codes and tokens")
	}
	p.Location = p.Grant.config(meta.AuthorizationEndpoint, r.Redirect).AuthCodeURL(p.State,
		oauth2.S256ChallengeOption(p.Verifier), oauth2.SetAuthURLParam("resource", p.Grant.Resource))
	return p, nil
}

func (g Grant) config(authorize, redirect string) *oauth2.Config {
	style := oauth2.AuthStyleInParams
	if g.Client.Method == "client_secret_basic" && g.Client.Secret != "" {
		style = oauth2.AuthStyleInHeader
	}
	return &oauth2.Config{
		ClientID: g.Client.ID, ClientSecret: g.Client.Secret, RedirectURL: redirect, Scopes: g.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: authorize, TokenURL: g.TokenURL, AuthStyle: style},
	}
}

// Finish ends a request with the query with which the browser came back. redirect is that
// of the request.
func Finish(ctx context.Context, client *http.Client, p Pending, redirect string, query url.Values, now time.Time) (Grant, error) {
	g := p.Grant
	for _, name := range []string{"state", "code", "iss", "error"} {
		if len(query[name]) > 1 {
			return g, failure(CodeUnsafe, g.Issuer, "the answer has more than one %s", name)
		}
	}
	switch iss := query.Get("iss"); {
	case subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(p.State)) != 1 || p.State == "" || !now.Before(p.Ends):
		return g, failure(CodeExpired, g.Issuer, "the answer belongs to no request that waits; begin again")
	case iss != "" && iss != g.Issuer, iss == "" && p.Names:
		return g, failure(CodeUnsafe, g.Issuer, "the answer is of %q, another authorization server than the one that was asked", artel.Shorten(iss, 200))
	case query.Get("error") != "":
		return g, failure(CodeRefused, g.Issuer, "access was not granted: %s %s", artel.Shorten(query.Get("error"), 80), artel.Shorten(query.Get("error_description"), 200))
	case query.Get("code") == "":
		return g, failure(CodeUnsafe, g.Issuer, "the answer has no code")
	}
	ctx, stop := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, client), totalTime)
	defer stop()
	t, err := g.config("", redirect).Exchange(ctx, query.Get("code"), oauth2.VerifierOption(p.Verifier), oauth2.SetAuthURLParam("resource", g.Resource))
	if said, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return g, failure(CodeRefused, g.Issuer, "the authorization server does not take its code: %s %s", artel.Shorten(said.ErrorCode, 80), artel.Shorten(said.ErrorDescription, 200))
	}
	if err != nil {
		return g, failure(CodeUnreachable, g.TokenURL, "%w", err)
	}
	raw, _ := t.Extra("id_token").(string)
	scope, _ := t.Extra("scope").(string)
	return g.with(tokens{t.AccessToken, t.RefreshToken, t.TokenType, scope, t.Expiry, raw})
}

// tokens are an answer of a token endpoint.
type tokens struct {
	access, refresh, kind, scope string
	ends                         time.Time
	id                           string // id_token; may be empty
}

// with returns g with other tokens, if they can be used.
func (g Grant) with(t tokens) (Grant, error) {
	switch {
	case t.access == "" || len(t.access) > maxToken || len(t.refresh) > maxToken || !httpguts.ValidHeaderFieldValue(t.access):
		return g, failure(CodeUnsafe, g.Issuer, "the authorization server sends a token that cannot be used")
	case t.kind != "" && !strings.EqualFold(t.kind, "bearer"):
		return g, failure(CodeUnsafe, g.Issuer, "the authorization server sends tokens of type %q; only Bearer can be used", artel.Shorten(t.kind, 40))
	}
	g.Access, g.Ends = t.access, t.ends
	if t.refresh != "" { // the old one ended, or stays if there is none
		g.Refresh = t.refresh
	}
	if t.scope != "" {
		g.Scopes = bounded(strings.Fields(t.scope))
	}
	if name := AccountName(t.id); name != "" {
		g.Name = name
	}
	return g, nil
}

// bounded leaves out scopes that cannot be ones, and those above a number that no server
// has.
func bounded(scopes []string) []string {
	out := slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return s == "" || len(s) > 200 || strings.ContainsAny(s, " \t\r\n\"\\") })
	return out[:min(len(out), maxScopes)]
}

// clientFor returns what the authorization server knows this program as.
func clientFor(ctx context.Context, client *http.Client, r Request, meta *oauthex.AuthServerMeta) (Client, error) {
	method := "client_secret_basic" // the default of RFC 8414
	if all := meta.TokenEndpointAuthMethodsSupported; len(all) > 0 && !slices.Contains(all, method) {
		method = "client_secret_post"
		if !slices.Contains(all, method) {
			method = "none"
		}
	}
	switch {
	case r.Client.ID != "":
		return Client{ID: r.Client.ID, Secret: r.Client.Secret, Method: method}, nil
	case r.Document != "" && meta.ClientIDMetadataDocumentSupported:
		return Client{ID: r.Document, Method: "none"}, nil
	case r.Earlier.ID != "" && r.Earlier.Redirect == r.Redirect && r.Earlier.Issuer == meta.Issuer:
		return r.Earlier, nil
	case meta.RegistrationEndpoint == "":
		return Client{}, failure(CodeClient, meta.Issuer, "the authorization server registers no clients by itself; register Artel there with the redirect address %s, and set client_id (and client_secret) in the entry of the server", r.Redirect)
	}
	kind := "web"
	if strings.HasPrefix(r.Redirect, "http://") { // this machine
		kind = "native"
	}
	made, err := oauthex.RegisterClient(ctx, meta.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{r.Redirect}, GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		ClientName: "Artel", TokenEndpointAuthMethod: method, ApplicationType: kind,
	}, client)
	if err != nil {
		return Client{}, failure(CodeClient, meta.Issuer, "the authorization server does not register Artel: %s; register it there with the redirect address %s, and set client_id in the entry of the server", artel.Shorten(err.Error(), 300), r.Redirect)
	}
	c := Client{ID: made.ClientID, Secret: made.ClientSecret, Method: made.TokenEndpointAuthMethod, Redirect: r.Redirect, Issuer: meta.Issuer}
	if c.Method == "" {
		c.Method = method
	}
	if len(c.ID) > maxToken || len(c.Secret) > maxToken {
		return Client{}, failure(CodeClient, meta.Issuer, "the authorization server registers Artel with an id or secret of more than %d bytes", maxToken)
	}
	return c, nil
}

// String hides the secrets of a grant.
func (g Grant) String() string { return fmt.Sprintf("grant of %s for %s", g.Issuer, g.Resource) }
