// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/artelhq/artel"
)

// A protection is what a server and its authorization server say.
type protection struct {
	resource string
	scopes   []string
	meta     *oauthex.AuthServerMeta
}

// maxMetadata is how many bytes a description of a server may have.
const maxMetadata = 1 << 20

// discover finds the authorization server of a server.
func discover(ctx context.Context, client *http.Client, r Request) (protection, error) {
	c := *client
	c.Transport = &recall{next: client.Transport, seen: map[string]recalled{}}
	challenges, err := challenge(ctx, &c, r)
	if err != nil {
		return protection{}, err
	}
	p := protection{resource: r.URL}
	var at string
	for _, ch := range challenges {
		if m := ch.Params["resource_metadata"]; m != "" && at == "" {
			at = m
		}
		if s := ch.Params["scope"]; s != "" && ch.Scheme == "bearer" && p.scopes == nil {
			p.scopes = strings.Fields(s)
		}
	}
	issuer, err := origin(r.URL)
	if err != nil {
		return protection{}, failure(CodeUnknown, r.URL, "%w", err)
	}
	described, said := resourceMetadata(ctx, &c, at, r.URL)
	if described != nil {
		if len(described.AuthorizationServers) == 0 {
			return protection{}, failure(CodeUnknown, r.URL, "the server names no authorization server")
		}
		issuer, p.resource = described.AuthorizationServers[0], described.Resource
		if p.scopes == nil {
			p.scopes = described.ScopesSupported
		}
	}
	p.meta, err = auth.GetAuthServerMetadata(ctx, issuer, &c)
	switch {
	case err != nil && reached(err):
		return protection{}, failure(CodeUnsafe, issuer, "what the authorization server says about itself cannot be used: %s", artel.Shorten(err.Error(), 300))
	case err != nil:
		return protection{}, failure(CodeUnreachable, issuer, "the authorization server cannot be asked: %s", artel.Shorten(err.Error(), 300))
	case p.meta == nil && described == nil && said != nil:
		return protection{}, failure(CodeUnsafe, r.URL, "what the server says about its access cannot be used: %s", artel.Shorten(said.Error(), 300))
	case p.meta == nil:
		return protection{}, failure(CodeUnknown, issuer, "neither the server nor its authorization server describes how access is granted (RFC 9728, RFC 8414); it may want a key in a header instead")
	}
	if r.Scopes != nil {
		p.scopes = r.Scopes
	}
	p.scopes = bounded(p.scopes)
	// With it, OpenID providers issue a token that renews the access (SEP-2207).
	if slices.Contains(p.meta.ScopesSupported, "offline_access") && !slices.Contains(p.scopes, "offline_access") {
		p.scopes = append(p.scopes, "offline_access")
	}
	return p, nil
}

// challenge asks the server without access, and returns how it refuses; none if it does
// not.
func challenge(ctx context.Context, client *http.Client, r Request) ([]oauthex.Challenge, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		return nil, failure(CodeUnreachable, r.URL, "%w", err)
	}
	for name, values := range r.Header {
		q.Header[name] = values
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := client.Do(q)
	if err != nil {
		return nil, failure(CodeUnreachable, r.URL, "the server cannot be asked: %w", err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return nil, nil
	}
	all, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		return nil, nil // the addresses that it would name are known as well
	}
	return all, nil
}

// resourceMetadata returns what a server says about its access (RFC 9728); nil: nothing,
// because of the error. at is the address that it has named; it may be empty.
func resourceMetadata(ctx context.Context, client *http.Client, at, server string) (*oauthex.ProtectedResourceMetadata, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	root := u.Scheme + "://" + u.Host
	var places []string
	if at != "" {
		places = append(places, at)
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		places = append(places, root+"/.well-known/oauth-protected-resource/"+path)
	}
	places = append(places, root+"/.well-known/oauth-protected-resource")
	// The server may name itself with or without the slash at the end, or by its origin.
	names := []string{server}
	for _, name := range []string{strings.TrimSuffix(server, "/"), strings.TrimSuffix(server, "/") + "/", root, root + "/"} {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var first error
	for _, place := range places {
		for _, name := range names {
			m, err := oauthex.GetProtectedResourceMetadata(ctx, place, name, client)
			if err == nil {
				return m, nil
			}
			if first == nil && reached(err) && !strings.Contains(err.Error(), "bad status") {
				first = err
			}
		}
	}
	return nil, first
}

func origin(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	return u.Scheme + "://" + u.Host, nil
}

// reached reports whether an error is about an answer.
func reached(err error) bool {
	_, network := errors.AsType[*url.Error](err)
	return !network && !strings.Contains(err.Error(), "dial ") && !strings.Contains(err.Error(), "fetch.") && !strings.Contains(err.Error(), "context deadline")
}

// A recall repeats answers to GET from memory, so that each address is asked once per
// discovery.
type recall struct {
	next http.RoundTripper

	mu   sync.Mutex
	seen map[string]recalled
}

type recalled struct {
	status int
	header http.Header
	body   []byte
	err    error
}

// RoundTrip implements [http.RoundTripper].
func (m *recall) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return m.next.RoundTrip(r)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := r.URL.String()
	a, ok := m.seen[at]
	if !ok {
		resp, err := m.next.RoundTrip(r)
		a.err = err
		if err == nil {
			a.status, a.header = resp.StatusCode, resp.Header
			a.body, a.err = io.ReadAll(io.LimitReader(resp.Body, maxMetadata))
			_ = resp.Body.Close()
		}
		m.seen[at] = a
	}
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{
		StatusCode: a.status, Status: http.StatusText(a.status), Header: a.header.Clone(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: r,
	}, nil
}
