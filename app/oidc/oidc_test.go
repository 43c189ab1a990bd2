// SPDX-License-Identifier: Apache-2.0

package oidc_test

import (
	"encoding/base64"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/oidc"
	"github.com/artelhq/artel/app/oidc/oidctest"
)

const redirect = "https://artel.example/auth/oidc/callback"

func open(t *testing.T, issuer string, now func() time.Time, change func(*oidc.Options)) *oidc.Provider {
	t.Helper()
	o := oidc.Options{Issuer: issuer, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, Key: []byte(strings.Repeat("k", 32))}
	if change != nil {
		change(&o)
	}
	p, err := oidc.New(o, now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// begin starts a login and lets the provider answer.
func begin(t *testing.T, p *oidc.Provider, at *oidctest.Provider) (sealed string, back url.Values) {
	t.Helper()
	location, sealed, err := p.Start(t.Context(), redirect, "/c/1")
	if err != nil {
		t.Fatal(err)
	}
	u := at.Authorize(t, location)
	if !strings.HasPrefix(u.String(), redirect+"?") {
		t.Fatalf("sent back to %s", u)
	}
	return sealed, u.Query()
}

func refused(t *testing.T, what string, p *oidc.Provider, sealed string, q url.Values, code string) {
	t.Helper()
	if cl, _, err := p.Finish(t.Context(), sealed, q); artel.CodeOf(err) != code || artel.KindOf(err) != artel.Denied {
		t.Errorf("%s: got %+v, %v; want %s", what, cl, err, code)
	}
}

func TestClaims(t *testing.T) {
	at := oidctest.New(t, nil)
	yes, no := true, false
	plain := map[string]any{"sub": "7", "email": "Ann@Example.org", "email_verified": true, "name": "Ann"}
	with := func(pairs ...any) map[string]any {
		m := maps.Clone(plain)
		for i := 0; i < len(pairs); i += 2 {
			if m[pairs[i].(string)] = pairs[i+1]; pairs[i+1] == nil {
				delete(m, pairs[i].(string))
			}
		}
		return m
	}
	ann := access.Claim{Issuer: at.URL, Subject: "7", Email: "Ann@Example.org", Verified: true, Name: "Ann"}
	changed := func(f func(*access.Claim)) access.Claim { c := ann; f(&c); return c }
	groups := func(o *oidc.Options) { o.AdminGroup = "ops" }
	domains := func(o *oidc.Options) { o.AllowedDomains = []string{"other.example", "EXAMPLE.org"} }
	for what, tt := range map[string]struct {
		token, info map[string]any
		o           func(*oidc.Options)
		want        access.Claim
	}{
		"plain":                    {plain, nil, nil, ann},
		"verified as a text":       {with("email_verified", "true"), nil, nil, ann},
		"verified as another text": {with("email_verified", "yes"), nil, domains, changed(func(c *access.Claim) { c.Verified = false })},
		"not verified":             {with("email_verified", false), nil, domains, changed(func(c *access.Claim) { c.Verified = false })},
		"nothing about it":         {with("email_verified", nil), nil, domains, changed(func(c *access.Claim) { c.Verified = false })},
		"a member":                 {plain, nil, domains, changed(func(c *access.Claim) { c.Member = true })},
		"a longer domain":          {with("email", "ann@evil-example.org"), nil, domains, changed(func(c *access.Claim) { c.Email = "ann@evil-example.org" })},
		"the long s":               {with("email", "ann@\u017Fhop.example"), nil, func(o *oidc.Options) { o.AllowedDomains = []string{"shop.example"} }, changed(func(c *access.Claim) { c.Email = "ann@\u017Fhop.example" })},
		"a domain below":           {with("email", "ann@x.example.org"), nil, domains, changed(func(c *access.Claim) { c.Email = "ann@x.example.org" })},
		"two signs":                {with("email", "ann@example.org@evil.example"), nil, domains, changed(func(c *access.Claim) { c.Email = "ann@example.org@evil.example" })},
		"an administrator":         {with("groups", []string{"x", "ops"}), nil, groups, changed(func(c *access.Claim) { c.Admin = &yes })},
		"one group":                {with("groups", "ops"), nil, groups, changed(func(c *access.Claim) { c.Admin = &yes })},
		"other groups":             {with("groups", []string{"opsx"}), nil, groups, changed(func(c *access.Claim) { c.Admin = &no })},
		"groups of the endpoint":   {plain, map[string]any{"sub": "7", "groups": []string{"ops"}}, groups, changed(func(c *access.Claim) { c.Admin = &yes })},
		"address of the endpoint":  {map[string]any{"sub": "7"}, plain, nil, ann},
		"no name":                  {with("name", nil, "preferred_username", "annie"), nil, nil, changed(func(c *access.Claim) { c.Name = "annie" })},
	} {
		at.Say(tt.token)
		at.SayOf(tt.info)
		p := open(t, at.URL, time.Now, tt.o)
		sealed, q := begin(t, p, at)
		got, next, err := p.Finish(t.Context(), sealed, q)
		if diff := cmp.Diff(tt.want, got); err != nil || next != "/c/1" || diff != "" {
			t.Errorf("%s: %v, next %q %s", what, err, next, diff)
		}
	}
}

// changedBit returns a sealed state whose last byte has another lowest bit.
func changedBit(t *testing.T, sealed string) string {
	src, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		t.Fatal(err)
	}
	src[len(src)-1] ^= 1
	return base64.RawURLEncoding.EncodeToString(src)
}

// TestHostileAnswers: what does not belong to this login of this browser is refused.
func TestHostileAnswers(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	at, foreign := oidctest.New(t, clock), oidctest.New(t, clock)
	person := map[string]any{"sub": "7", "email": "ann@example.org", "email_verified": true}
	at.Say(person)
	foreign.Say(person)
	p := open(t, at.URL, clock, nil)

	sealed, q := begin(t, p, at)
	if _, _, err := p.Finish(t.Context(), sealed, q); err != nil {
		t.Fatal(err)
	}
	refused(t, "the same answer again", p, sealed, q, oidc.CodeExpired)

	sealed, q = begin(t, p, at)
	other, otherQ := begin(t, p, at)
	refused(t, "the answer of another login", p, sealed, otherQ, oidc.CodeExpired)
	refused(t, "no cookie", p, "", q, oidc.CodeExpired)
	refused(t, "a changed cookie", p, changedBit(t, sealed), q, oidc.CodeExpired)
	refused(t, "a long cookie", p, strings.Repeat("A", 100_000), q, oidc.CodeExpired)
	mixed := url.Values{"code": otherQ["code"], "state": q["state"]}
	refused(t, "the code of another session", p, sealed, mixed, oidc.CodeInvalid) // PKCE
	refused(t, "that session, whose code was tried", p, other, otherQ, oidc.CodeInvalid)

	sealed, q = begin(t, p, at)
	refused(t, "two states", p, sealed, url.Values{"code": q["code"], "state": {q.Get("state"), "x"}}, oidc.CodeInvalid)
	refused(t, "no state", p, sealed, url.Values{"code": q["code"]}, oidc.CodeExpired)
	refused(t, "another issuer", p, sealed, url.Values{"code": q["code"], "state": q["state"], "iss": {foreign.URL}}, oidc.CodeInvalid)

	refused(t, "a refusal", p, sealed, url.Values{"state": q["state"], "error": {"access_denied"}}, oidc.CodeRefused)
	sealed, q = begin(t, p, at)
	refused(t, "no code", p, sealed, url.Values{"state": q["state"]}, oidc.CodeInvalid)

	stranger := open(t, foreign.URL, clock, nil) // with the same key
	sealed, q = begin(t, stranger, foreign)
	refused(t, "the cookie of another provider", p, sealed, q, oidc.CodeExpired)

	sealed, q = begin(t, p, at)
	now = now.Add(oidc.StateLife)
	refused(t, "ten minutes later", p, sealed, q, oidc.CodeExpired)

	for what, claims := range map[string]map[string]any{
		"a foreign nonce":    {"nonce": "x"},
		"no nonce":           {"nonce": ""},
		"a foreign issuer":   {"iss": foreign.URL},
		"a foreign audience": {"aud": "another"},
		"two audiences":      {"aud": []string{oidctest.ClientID, "another"}},
		"another party":      {"aud": []string{oidctest.ClientID, "another"}, "azp": "another"},
		"an ended token":     {"exp": now.Add(-time.Hour).Unix()},
		"another account":    {"email": nil}, // the endpoint for users names another one
	} {
		all := maps.Clone(person)
		maps.Copy(all, claims)
		at.Say(all)
		at.SayOf(map[string]any{"sub": "8", "email": "bob@example.org", "email_verified": true})
		sealed, q := begin(t, p, at)
		refused(t, what, p, sealed, q, oidc.CodeInvalid)
	}
}

func TestUnreachable(t *testing.T) {
	now := time.Now()
	p := open(t, "http://127.0.0.1:1", func() time.Time { return now }, nil)
	for range 2 {
		if _, _, err := p.Start(t.Context(), redirect, "/"); artel.CodeOf(err) != oidc.CodeUnreachable {
			t.Errorf("got %v", err)
		}
	}
}

// TestProviderGoesDown: a provider that cannot be reached any more is not one that lies.
func TestProviderGoesDown(t *testing.T) {
	at := oidctest.New(t, nil)
	p := open(t, at.URL, time.Now, nil)
	sealed, q := begin(t, p, at)
	at.Stop()
	refused(t, "no connection for the code", p, sealed, q, oidc.CodeUnreachable)

	at = oidctest.New(t, nil)
	at.Say(map[string]any{"sub": "7", "email": "ann@example.org"})
	p = open(t, at.URL, time.Now, nil)
	sealed, q = begin(t, p, at)
	at.Break("/token")
	refused(t, "no token, for a fault of the provider", p, sealed, q, oidc.CodeUnreachable)

	at.Break("/keys")
	sealed, q = begin(t, p, at)
	refused(t, "no keys", p, sealed, q, oidc.CodeUnreachable)

	at.Break("/me")
	at.Say(map[string]any{"sub": "7"})
	sealed, q = begin(t, p, at)
	refused(t, "no information about the user", p, sealed, q, oidc.CodeUnreachable)
}

func TestCheck(t *testing.T) {
	good := oidc.Options{Issuer: "https://id.example", ClientID: "artel", AllowedDomains: []string{"example.org"}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*oidc.Options){
		"issuer: want the address": func(o *oidc.Options) { o.Issuer = "id.example" },
		"issuer: want https":       func(o *oidc.Options) { o.Issuer = "http://id.example" },
		"client_id is missing":     func(o *oidc.Options) { o.ClientID = "" },
		"no domain":                func(o *oidc.Options) { o.AllowedDomains = []string{"*.example.org"} },
	} {
		o := good
		change(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
