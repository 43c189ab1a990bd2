// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/store"
)

// Authentication has what [Authenticate] needs to know of the other faces.
type Authentication struct {
	Access *access.Access
	// Gateway reports whether the gateway serves a request. It refuses requests
	// without an actor itself, in the words of each dialect.
	Gateway func(*http.Request) bool
	// GatewaySecret returns the key that a request of the gateway brings.
	GatewaySecret func(*http.Request) string
	// GatewayKey reports whether a key is one of the configuration, which acts for
	// the first administrator; see [access.Access.IdentifyKey].
	GatewayKey func(secret string) bool
	// MCP reports whether the MCP server serves a request: all its messages are POST, so
	// it checks itself what may be changed, and needs only the right to read. Nil: there is
	// none.
	MCP func(*http.Request) bool
	// RefuseMCP writes why a request of the MCP server is refused.
	RefuseMCP func(w http.ResponseWriter, status int, detail string)
}

func (a Authentication) isMCP(r *http.Request) bool { return a.MCP != nil && a.MCP(r) }

// Authenticate puts who asks into the context of every request to next, and is the
// only place that does. It refuses requests without a known actor, except those
// by which a client becomes known, and those for which the actor has no right:
// reading needs the scope read, everything else write. With a login every role may see and
// change its own account.
//
// Use cases check the scope admin themselves; see [access.Require].
func Authenticate(next http.Handler, a Authentication) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.Access.Open() && isPublic(r) { // the set-up itself does not end when it has made a user
			next.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Operator())))
			return
		}
		if a.Gateway(r) && strings.HasPrefix(a.GatewaySecret(r), access.KeyPrefix) {
			a.gateway(next, w, r) // with its limits, also if no login is needed
			return
		}
		if as, release, ok := a.Access.IdentifyOperator(r.Context()); ok {
			defer release()
			next.ServeHTTP(w, r.WithContext(as))
			return
		}
		if a.Gateway(r) {
			a.gateway(next, w, r)
			return
		}
		if signed(r) {
			next.ServeHTTP(w, r) // the signature names the owner
			return
		}
		secret, cookie := secretOf(r)
		as, release, err := a.Access.Identify(r.Context(), secret)
		if err == nil {
			defer release()
		}
		switch {
		case err != nil && isPublic(r):
			next.ServeHTTP(w, r)
			return
		case err == nil && cookie && !isSafe(r) && r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "":
			// Guard compares them; a browser that sends neither cannot be trusted with a cookie.
			err = artel.Errorf(artel.Denied, "httpapi.Authenticate", "", "a change with a session needs the header Origin")
		case err == nil && !endsSession(r) && !isPublic(r) && !(cookie && ofAccount(r)) && !revokesItself(as, r):
			scope := store.ScopeWrite
			if isSafe(r) || a.isMCP(r) {
				scope = store.ScopeRead
			}
			err = access.Require(as, scope)
		}
		if err != nil && a.isMCP(r) {
			p := refusal(w, err)
			a.RefuseMCP(w, p.Status, p.Detail)
			return
		}
		if err != nil {
			refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(as))
	})
}

// gateway serves a request of the gateway, which takes no cookies.
func (a Authentication) gateway(next http.Handler, w http.ResponseWriter, r *http.Request) {
	secret := a.GatewaySecret(r)
	as, release, err := r.Context(), context.CancelFunc(nil), access.Unknown()
	if strings.HasPrefix(secret, access.TokenPrefix) || strings.HasPrefix(secret, access.KeyPrefix) {
		as, release, err = a.Access.Identify(r.Context(), secret)
	} else if a.GatewayKey(secret) {
		as, release, err = a.Access.IdentifyKey(r.Context())
	}
	if err == nil {
		defer release()
		r = r.WithContext(as)
	}
	next.ServeHTTP(w, r)
}

// secretOf returns the token or, if there is none, the session of a request.
func secretOf(r *http.Request) (secret string, cookie bool) {
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token), false
	}
	secret = access.SessionOf(r)
	return secret, secret != ""
}

func isSafe(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
}

// isPublic reports whether a request needs no login: it begins a session, reads what
// is in every copy of the program, or asks how the server is. Numbers are for its
// machine and for operators; see [Operators].
func isPublic(r *http.Request) bool {
	if !isClean(r.URL.Path) { // what serves it may clean it first, and find another page
		return false
	}
	return isSafe(r) && (slices.Contains([]string{"/healthz", "/readyz", "/metrics", loginPath, setupPath, acceptPath, "/auth/oidc/start", "/auth/oidc/callback", "/auth/mcp/client.json"}, r.URL.Path) || strings.HasPrefix(r.URL.Path, "/static/")) ||
		r.Method == http.MethodPost && slices.Contains([]string{loginPath, Base + loginPath, Base + setupPath, Base + acceptPath, setupPath, acceptPath}, r.URL.Path)
}

// endsSession reports whether a request logs out, which every role may.
func endsSession(r *http.Request) bool {
	return r.Method == http.MethodPost && (r.URL.Path == logoutPath || r.URL.Path == Base+logoutPath)
}

// revokesItself reports whether a token asks to be revoked, which every token may.
func revokesItself(as context.Context, r *http.Request) bool {
	a, _ := access.Of(as)
	return a.TokenID != "" && r.Method == http.MethodDelete && r.URL.Path == Base+"/tokens/"+a.TokenID
}

// ofAccount reports whether a request is about the account of who asks, which every role
// may see and change with a login.
func ofAccount(r *http.Request) bool {
	p, isAPI := strings.CutPrefix(r.URL.Path, Base)
	if !isAPI {
		return p == accountPath || strings.HasPrefix(p, accountPath+"/")
	}
	return p == "/me" || p == "/me/password" || p == "/sessions" || p == "/tokens" ||
		r.Method == http.MethodDelete && (strings.HasPrefix(p, "/sessions/") || strings.HasPrefix(p, "/tokens/"))
}

// refuse answers a request that is not allowed: for a page that a person opens, with
// the way to the login.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	page := !strings.HasPrefix(r.URL.Path, Base+"/") || r.URL.Path == DocsPath
	if page && r.Method == http.MethodGet && artel.KindOf(err) == artel.Unauthenticated && strings.Contains(r.Header.Get("Accept"), "text/html") {
		http.Redirect(w, r, loginPath+"?"+url.Values{"next": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
		return
	}
	writeRefusal(w, err)
}

// writeRefusal writes an error as a problem.
func writeRefusal(w http.ResponseWriter, err error) { writeProblem(w, refusal(w, err)) }

// refusal returns the problem for an error, and sets the headers that belong to it.
func refusal(w http.ResponseWriter, err error) *Problem {
	kind := artel.KindOf(err)
	p := newProblem(statuses[kind], artel.CodeOf(err), err.Error())
	switch kind {
	case artel.Unauthenticated:
		w.Header().Set("WWW-Authenticate", `Bearer realm="artel"`)
	case artel.Internal, artel.Unavailable:
		p.Detail = "it could not be found out who asks; try again"
	}
	return p
}
