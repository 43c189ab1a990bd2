// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// An Actor is who a request acts for, and what it may do.
type Actor struct {
	Owner  artel.Owner
	Name   string
	Role   store.Role
	Scopes []store.Scope // of the token; nil: all of the role

	Session string // the id of the session; may be empty
	Token   string // the name of the token; may be empty

	Key     *store.GatewayKey // of a client of the gateway, not to be changed; may be nil
	TokenID string            // its id
}

// Operator is the actor of a deployment without a login and of its own background
// work.
func Operator() Actor { return Actor{Owner: artel.Local, Name: string(artel.Local), Role: store.Admin} }

// scopesOf lists what a role may do.
func scopesOf(r store.Role) []store.Scope {
	switch r {
	case store.Admin:
		return Scopes()
	case store.Member:
		return []store.Scope{store.ScopeRead, store.ScopeWrite, store.ScopeGateway}
	case store.Viewer:
		return []store.Scope{store.ScopeRead}
	}
	return nil
}

// Scopes returns all scopes.
func Scopes() []store.Scope {
	return []store.Scope{store.ScopeRead, store.ScopeWrite, store.ScopeGateway, store.ScopeAdmin}
}

// includes reports whether a token with some scopes has s: write includes read,
// and admin both.
func includes(scopes []store.Scope, s store.Scope) bool {
	switch {
	case slices.Contains(scopes, s):
		return true
	case s == store.ScopeRead:
		return slices.Contains(scopes, store.ScopeWrite) || slices.Contains(scopes, store.ScopeAdmin)
	case s == store.ScopeWrite:
		return slices.Contains(scopes, store.ScopeAdmin)
	}
	return false
}

// May reports whether the role and the token, if there is one, have a scope.
func (a Actor) May(s store.Scope) bool {
	return slices.Contains(scopesOf(a.Role), s) && (a.Scopes == nil || includes(a.Scopes, s))
}

// manages reports whether a may see and end the sessions and tokens of its owner: with
// a login, or with a token of the scope admin.
func (a Actor) manages() bool { return a.Scopes == nil || a.May(store.ScopeAdmin) }

// needsLogin is the error of acts for which a token is not enough.
func needsLogin(op, what string) error {
	return artel.Errorf(artel.Denied, op, "", "a token cannot %s; log in on the page", what)
}

type actorKey struct{}

// With returns a context in which a acts, as the owner of its rows.
func With(ctx context.Context, a Actor) context.Context {
	return artel.WithOwner(context.WithValue(ctx, actorKey{}, a), a.Owner)
}

// Of returns who acts in ctx.
func Of(ctx context.Context) (Actor, bool) {
	a, ok := ctx.Value(actorKey{}).(Actor)
	return a, ok
}

// Error codes of [Require].
const (
	CodeNeedsAdmin  = "needs_admin"
	CodeMayOnlyRead = "may_only_read"
)

// Require returns an error unless who acts in ctx has a scope: of kind
// Unauthenticated without an actor, otherwise Denied.
func Require(ctx context.Context, s store.Scope) error {
	const op = "access.Require"
	a, ok := Of(ctx)
	switch {
	case !ok:
		return Unknown()
	case a.May(s):
		return nil
	case slices.Contains(scopesOf(a.Role), s):
		return tokenLacks(op, "", "this token does not have the scope %s", s)
	case s == store.ScopeAdmin:
		return &artel.Error{Op: op, Kind: artel.Denied, Code: CodeNeedsAdmin, Err: fmt.Errorf("this needs the role admin; you are %s", a.Role)}
	}
	return &artel.Error{Op: op, Kind: artel.Denied, Code: CodeMayOnlyRead, Err: fmt.Errorf("the role %s may only read", a.Role)}
}

// CodeTokenScope is the error code of what the role of the user may do and the token
// may not.
const CodeTokenScope = "token_scope"

// tokenLacks is the error of an act for which the token has too few scopes.
func tokenLacks(op, subject, format string, args ...any) error {
	err := artel.Errorf(artel.Denied, op, subject, format, args...)
	err.Code = CodeTokenScope
	return err
}

// Unknown is the error of requests without an actor.
func Unknown() error {
	return artel.Errorf(artel.Unauthenticated, "access.Require", "", "log in, or send a token (Authorization: Bearer artel_…)")
}
