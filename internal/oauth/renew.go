// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/fetch"
)

// Refreshed returns the grant with new tokens. The error has the code [CodeEnded] if the
// authorization server does not renew it any more, and another kind than Denied if it may
// do so later. The caller has to store the result before it uses it: many servers accept
// a refresh token once.
func (g Grant) Refreshed(ctx context.Context, client *http.Client, now time.Time) (Grant, error) {
	if g.Refresh == "" {
		return g, failure(CodeEnded, g.Issuer, "the access has ended, and cannot be renewed")
	}
	status, body, err := g.post(ctx, client, g.TokenURL, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh}, "resource": {g.Resource}})
	if err != nil {
		return g, err
	}
	var said struct {
		Error   string      `json:"error"`
		About   string      `json:"error_description"`
		Access  string      `json:"access_token"`
		Refresh string      `json:"refresh_token"`
		Type    string      `json:"token_type"`
		Scope   string      `json:"scope"`
		ID      string      `json:"id_token"`
		Seconds json.Number `json:"expires_in"`
	}
	err = json.Unmarshal(body, &said)
	switch {
	case said.Error == "invalid_grant" || said.Error == "invalid_client" || said.Error == "unauthorized_client":
		return g, failure(CodeEnded, g.Issuer, "the authorization server does not renew the access: %s %s", artel.Shorten(said.Error, 80), artel.Shorten(said.About, 200))
	case err != nil || status != http.StatusOK || said.Access == "":
		return g, failure(CodeUnreachable, g.TokenURL, "the authorization server answers with status %d and no token: %s", status, artel.Shorten(said.Error, 80))
	}
	t := tokens{access: said.Access, refresh: said.Refresh, kind: said.Type, scope: said.Scope, id: said.ID}
	if n, err := said.Seconds.Int64(); err == nil && n > 0 && n < 1<<31 {
		t.ends = now.Add(time.Duration(n) * time.Second)
	}
	return g.with(t)
}

// Revoke ends the grant at the authorization server. It does nothing if that has no
// address for it.
func (g Grant) Revoke(ctx context.Context, client *http.Client) error {
	if g.Revoking == "" {
		return nil
	}
	for _, t := range []struct{ kind, token string }{{"refresh_token", g.Refresh}, {"access_token", g.Access}} {
		if t.token == "" {
			continue
		}
		status, _, err := g.post(ctx, client, g.Revoking, url.Values{"token": {t.token}, "token_type_hint": {t.kind}})
		if err == nil && status >= http.StatusBadRequest {
			err = failure(CodeUnreachable, g.Revoking, "the authorization server answers the revocation with status %d", status)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// post sends a form as the client of the grant.
func (g Grant) post(ctx context.Context, client *http.Client, to string, form url.Values) (status int, body []byte, err error) {
	ctx, stop := context.WithTimeout(ctx, totalTime)
	defer stop()
	if u, err := url.Parse(to); err != nil || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return 0, nil, failure(CodeUnsafe, to, "the authorization server names an address without TLS, on which tokens would travel readable")
	}
	basic := g.Client.Method == "client_secret_basic" && g.Client.Secret != ""
	if !basic {
		form.Set("client_id", g.Client.ID)
		if g.Client.Secret != "" {
			form.Set("client_secret", g.Client.Secret)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, nil, failure(CodeUnsafe, to, "%w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	if basic {
		r.SetBasicAuth(url.QueryEscape(g.Client.ID), url.QueryEscape(g.Client.Secret))
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, nil, failure(CodeUnreachable, to, "the authorization server cannot be asked: %w", err)
	}
	defer resp.Body.Close()
	body, err = fetch.ReadAll(resp.Body, maxMetadata)
	if err != nil {
		return 0, nil, failure(CodeUnreachable, to, "%w", err)
	}
	return resp.StatusCode, body, nil
}

// AccountName returns the name of the account in an id_token, which came from the
// authorization server itself; it is only shown. "": there is none.
func AccountName(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > maxToken {
		return ""
	}
	src, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Email    string `json:"email"`
		Username string `json:"preferred_username"`
		Name     string `json:"name"`
		Subject  string `json:"sub"`
	}
	if err := json.Unmarshal(src, &claims); err != nil {
		return ""
	}
	for _, s := range []string{claims.Email, claims.Username, claims.Name, claims.Subject} {
		if s = strings.TrimSpace(s); s != "" {
			return artel.Shorten(strings.ToValidUTF8(s, "\uFFFD"), maxName)
		}
	}
	return ""
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}
