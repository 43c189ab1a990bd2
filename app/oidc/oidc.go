// SPDX-License-Identifier: Apache-2.0

// Package oidc logs people in at an OpenID provider: the code flow of OpenID Connect
// with PKCE, state and nonce.
//
// Begin with [New]. [Provider.Start] returns where a browser is sent and a sealed state
// for its cookie; [Provider.Finish] takes that cookie and what the provider sent back,
// and returns an [access.Claim]. Nothing is stored in between. The package decides
// nothing about users; see [access.Sessions.LoginBy].
package oidc

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
)

// Options are the settings of a provider.
type Options struct {
	Issuer       string // its address
	ClientID     string
	ClientSecret string   // may be empty for a public client
	Scopes       []string // besides openid; nil: email and profile
	// AllowedDomains are the domains of verified addresses with which a person without
	// an account becomes a member.
	AllowedDomains []string
	AdminGroup     string // whose members are administrators; "": the provider does not decide
	Key            []byte // of the deployment, from which the key of states is derived
}

// Error codes of [Provider.Start] and [Provider.Finish].
const (
	CodeUnreachable = "provider_unreachable"
	CodeExpired     = "login_expired" // the state is missing, of another login, used or too old
	CodeRefused     = "provider_refused"
	CodeInvalid     = "provider_answer" // what the provider sent cannot be believed
)

// A Provider is safe for concurrent use.
type Provider struct {
	o     Options
	http  *http.Client
	now   func() time.Time
	sealK []byte
	used  usedStates

	faults atomic.Int64 // requests that the provider did not answer, for a fault of its own

	mu     sync.Mutex // held while the provider is looked up
	found  *oidc.Provider
	iss    bool // the provider names itself in its answers (RFC 9207)
	failed time.Time
	cause  error
}

// timeout is the time of each request to a provider, and retryAfter that after which
// one that could not be found is asked again.
const (
	timeout    = 15 * time.Second
	retryAfter = 5 * time.Second
	maxAnswer  = 1 << 20 // bytes
)

// New returns a provider, which is asked for its endpoints with the first login.
func New(o Options, now func() time.Time) (*Provider, error) {
	if o.Scopes == nil {
		o.Scopes = []string{"email", "profile"}
	}
	if !slices.Contains(o.Scopes, oidc.ScopeOpenID) {
		o.Scopes = append([]string{oidc.ScopeOpenID}, o.Scopes...)
	}
	key, err := hkdf.Key(sha256.New, o.Key, nil, "artel oidc state", 32)
	if err != nil {
		return nil, artel.Errorf(artel.Internal, "oidc.New", "", "%w", err)
	}
	p := &Provider{o: o, now: now, sealK: key, used: usedStates{until: map[string]time.Time{}}}
	p.http = &http.Client{Timeout: timeout, Transport: bounded{http.DefaultTransport, &p.faults}}
	return p, nil
}

// bounded limits the answers of a provider, and counts those that do not come.
type bounded struct {
	http.RoundTripper
	faults *atomic.Int64
}

// RoundTrip implements [http.RoundTripper].
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err != nil || resp.StatusCode >= http.StatusInternalServerError {
		b.faults.Add(1)
	}
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

// failure is an error of kind Denied with a code; the cause is for the log.
func failure(code, format string, args ...any) error {
	err := artel.Errorf(artel.Denied, "oidc", "", format, args...)
	err.Code = code
	return err
}

// find returns the provider with its endpoints, which are read once.
func (p *Provider) find(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	if p.cause != nil && p.now().Sub(p.failed) < retryAfter {
		return nil, p.cause
	}
	// The keys are read with this context as long as the provider is used.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.http), p.o.Issuer)
	if err != nil {
		p.failed, p.cause = p.now(), failure(CodeUnreachable, "the provider %s cannot be asked: %w", p.o.Issuer, err)
		return nil, p.cause
	}
	var more struct {
		Names bool `json:"authorization_response_iss_parameter_supported"`
	}
	if err := found.Claims(&more); err == nil {
		p.iss = more.Names
	}
	p.found, p.cause = found, nil
	return found, nil
}

func (p *Provider) client(found *oidc.Provider, redirect string) *oauth2.Config {
	return &oauth2.Config{ClientID: p.o.ClientID, ClientSecret: p.o.ClientSecret, Endpoint: found.Endpoint(), RedirectURL: redirect, Scopes: p.o.Scopes}
}

// Start begins a login. It returns the address at the provider to which the browser is
// sent, and a sealed state for a cookie, which is valid for [StateLife]. redirect is the
// address to which the provider sends the browser back, and next a path of this site.
func (p *Provider) Start(ctx context.Context, redirect, next string) (location, sealed string, err error) {
	found, err := p.find(ctx)
	if err != nil {
		return "", "", err
	}
	s := p.newState(redirect, next)
	if sealed, err = p.seal(s); err != nil {
		return "", "", err
	}
	return p.client(found, redirect).AuthCodeURL(s.State, oidc.Nonce(s.Nonce), oauth2.S256ChallengeOption(s.Verifier)), sealed, nil
}

// Finish ends a login with the sealed state and the query that the provider sent back.
// It returns what the provider says of the person, and the path of [Provider.Start].
// Each state is accepted once.
func (p *Provider) Finish(ctx context.Context, sealed string, query map[string][]string) (cl access.Claim, next string, err error) {
	before := p.faults.Load()
	cl, next, err = p.finish(ctx, sealed, query)
	if artel.CodeOf(err) == CodeInvalid && p.faults.Load() != before { // the libraries do not say why they have no answer
		err = failure(CodeUnreachable, "the provider %s cannot be asked: %w", p.o.Issuer, err)
	}
	return cl, next, err
}

func (p *Provider) finish(ctx context.Context, sealed string, query map[string][]string) (cl access.Claim, next string, err error) {
	s, err := p.open(sealed)
	if err != nil {
		return cl, "", err
	}
	q, err := single(query, "state", "code", "iss", "error", "error_description")
	if err != nil {
		return cl, s.Next, err
	}
	found, err := p.find(ctx)
	if err != nil {
		return cl, s.Next, err
	}
	switch {
	case !equal(q["state"], s.State):
		return cl, s.Next, failure(CodeExpired, "the answer of the provider belongs to another login")
	case q["iss"] != "" && q["iss"] != p.o.Issuer, q["iss"] == "" && p.iss:
		return cl, s.Next, failure(CodeInvalid, "the answer comes from %q, not from %q", artel.Shorten(q["iss"], 200), p.o.Issuer)
	case !p.used.take(s.State, p.now(), s.Ends):
		return cl, s.Next, failure(CodeExpired, "this login was finished before")
	case q["error"] != "":
		return cl, s.Next, failure(CodeRefused, "the provider refuses: %s %s", artel.Shorten(q["error"], 80), artel.Shorten(q["error_description"], 200))
	case q["code"] == "":
		return cl, s.Next, failure(CodeInvalid, "the provider sends no code")
	}
	ctx = oidc.ClientContext(ctx, p.http)
	token, err := p.client(found, s.Redirect).Exchange(ctx, q["code"], oauth2.VerifierOption(s.Verifier))
	if err != nil {
		return cl, s.Next, failure(CodeInvalid, "the provider does not take its code: %w", err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return cl, s.Next, failure(CodeInvalid, "the provider sends no id_token")
	}
	id, err := found.VerifierContext(ctx, &oidc.Config{ClientID: p.o.ClientID, Now: p.now}).Verify(ctx, raw)
	if err != nil {
		return cl, s.Next, failure(CodeInvalid, "the id_token is not valid: %w", err)
	}
	if !equal(id.Nonce, s.Nonce) {
		return cl, s.Next, failure(CodeInvalid, "the id_token belongs to another login")
	}
	cl, err = p.claim(ctx, found, id, token)
	return cl, s.Next, err
}

// claims are those of an id_token and of the endpoint for users.
type claims struct {
	Azp      string `json:"azp"`
	Email    string `json:"email"`
	Verified any    `json:"email_verified"` // some providers send a string
	Name     string `json:"name"`
	Username string `json:"preferred_username"`
	Groups   any    `json:"groups"` // a list or one name
}

// claim returns what the provider says, from the id_token and, for what it lacks, from
// the endpoint for users.
func (p *Provider) claim(ctx context.Context, found *oidc.Provider, id *oidc.IDToken, token *oauth2.Token) (access.Claim, error) {
	var c claims
	if err := id.Claims(&c); err != nil {
		return access.Claim{}, failure(CodeInvalid, "the id_token cannot be read: %w", err)
	}
	if c.Azp != "" && c.Azp != p.o.ClientID || c.Azp == "" && len(id.Audience) > 1 {
		return access.Claim{}, failure(CodeInvalid, "the id_token is for another client")
	}
	if c.Email == "" || p.o.AdminGroup != "" && c.Groups == nil {
		if err := p.complete(ctx, found, id.Subject, token, &c); err != nil {
			return access.Claim{}, err
		}
	}
	cl := access.Claim{Issuer: id.Issuer, Subject: id.Subject, Email: c.Email, Verified: c.Verified == true || c.Verified == "true", Name: c.Name}
	if cl.Name == "" {
		cl.Name = c.Username
	}
	_, domain, ok := strings.Cut(access.FoldEmail(c.Email), "@")
	cl.Member = ok && cl.Verified && slices.ContainsFunc(p.o.AllowedDomains, func(d string) bool { return access.FoldEmail(d) == domain })
	if p.o.AdminGroup != "" {
		admin := contains(c.Groups, p.o.AdminGroup)
		cl.Admin = &admin
	}
	return cl, nil
}

// complete adds what the endpoint for users says, if there is one.
func (p *Provider) complete(ctx context.Context, found *oidc.Provider, subject string, token *oauth2.Token, c *claims) error {
	if found.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return failure(CodeInvalid, "the provider does not say who this is: %w", err)
	}
	if info.Subject != subject {
		return failure(CodeInvalid, "the provider names another account than in the id_token")
	}
	var more claims
	if err := info.Claims(&more); err != nil {
		return failure(CodeInvalid, "what the provider says of the account cannot be read: %w", err)
	}
	if c.Email == "" {
		c.Email, c.Verified = more.Email, more.Verified
	}
	if c.Name == "" {
		c.Name, c.Username = more.Name, more.Username
	}
	if c.Groups == nil {
		c.Groups = more.Groups
	}
	return nil
}

func contains(groups any, name string) bool {
	if list, ok := groups.([]any); ok {
		return slices.Contains(list, any(name))
	}
	return groups == name
}

// single returns the values of a query; one that occurs twice is refused.
func single(query map[string][]string, names ...string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range names {
		switch values := query[name]; len(values) {
		case 0:
		case 1:
			out[name] = values[0]
		default:
			return nil, failure(CodeInvalid, "the answer of the provider has more than one %s", name)
		}
	}
	return out, nil
}

// Check reports settings that cannot work.
func (o Options) Check() error {
	switch {
	case !strings.HasPrefix(o.Issuer, "https://") && !strings.HasPrefix(o.Issuer, "http://"):
		return errors.New("issuer: want the address of the provider, such as https://id.example")
	case strings.HasPrefix(o.Issuer, "http://") && !access.IsLoopback(strings.SplitN(strings.TrimPrefix(o.Issuer, "http://"), "/", 2)[0]):
		return errors.New("issuer: want https; without TLS the codes and tokens of logins travel readable")
	case o.ClientID == "":
		return errors.New("client_id is missing: the provider has it")
	}
	for _, d := range o.AllowedDomains {
		if d == "" || strings.ContainsAny(d, "@* /") {
			return fmt.Errorf("allowed_domains: %q is no domain such as example.org", artel.Shorten(d, 80))
		}
	}
	return nil
}
