// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// Tokens are the use cases of the tokens of programs.
type Tokens struct{ core *core }

// A TokenRequest describes a new token.
type TokenRequest struct {
	Name      string
	Scopes    []store.Scope
	ExpiresAt time.Time // zero: never
}

// maxName is the longest name of a user or token in code points.
const maxName = 100

func checkName(op, name string) error {
	if name != artel.Shorten(name, 4*maxName) || !utf8.ValidString(name) || strings.TrimSpace(name) == "" || utf8.RuneCountInString(name) > maxName {
		return artel.Errorf(artel.Invalid, op, "name", "want one line of 1 to %d characters", maxName)
	}
	return nil
}

// Create makes a token of the acting user and returns its secret, which cannot be
// read again. It may do no more than who makes it.
func (ts *Tokens) Create(ctx context.Context, r TokenRequest) (secret string, t store.Token, err error) {
	const op = "access.Tokens.Create"
	a, ok := Of(ctx)
	k := ts.core
	now := k.now()
	if !ok {
		return "", t, Unknown()
	}
	if err := checkName(op, r.Name); err != nil {
		return "", t, err
	}
	if len(r.Scopes) == 0 {
		return "", t, artel.Errorf(artel.Invalid, op, "scopes", "want one or more of %v", Scopes())
	}
	for _, s := range r.Scopes {
		if !slices.Contains(Scopes(), s) {
			return "", t, artel.Errorf(artel.Invalid, op, "scopes", "there is no %q; there are %v", artel.Shorten(string(s), 40), Scopes())
		}
		if !a.May(s) {
			return "", t, artel.Errorf(artel.Denied, op, "scopes", "you do not have the scope %s yourself", s)
		}
	}
	if !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(now) {
		return "", t, artel.Errorf(artel.Invalid, op, "expires_at", "want a time in the future")
	}
	if !k.hasUsers() {
		return "", t, artel.Errorf(artel.Conflict, op, "", "there are no users yet, so nobody needs a token; POST /api/v1/setup makes the first")
	}
	secret = TokenPrefix + rand.Text()
	t = store.Token{ID: newID("tok"), Hash: hashOf(secret), User: a.Owner, Name: r.Name, Scopes: r.Scopes, CreatedAt: now, ExpiresAt: r.ExpiresAt}
	err = k.people.Update(ctx, func(tx store.PeopleTx) error {
		if err := tx.Tokens.Create(t); err != nil {
			return err
		}
		return k.record(ctx, tx, audit.Act{Action: audit.TokenCreated, Target: t.ID, Detail: t.Name})
	})
	if err != nil {
		return "", store.Token{}, err
	}
	return secret, t, nil
}

// List returns the tokens of the acting user, newest first.
func (ts *Tokens) List(ctx context.Context) (all []store.Token, err error) {
	a, ok := Of(ctx)
	if !ok {
		return nil, Unknown()
	}
	err = ts.core.people.View(ctx, func(tx store.PeopleTx) (err error) { all, err = tx.Tokens.List(a.Owner); return err })
	return all, err
}

// Revoke removes a token of the acting user. Requests that are being served with
// it end.
func (ts *Tokens) Revoke(ctx context.Context, id string) error {
	a, ok := Of(ctx)
	if !ok {
		return Unknown()
	}
	k := ts.core
	err := k.people.Update(ctx, func(tx store.PeopleTx) error {
		if err := tx.Tokens.Delete(a.Owner, id); err != nil {
			return err
		}
		return k.record(ctx, tx, audit.Act{Action: audit.TokenRevoked, Target: id})
	})
	if err == nil {
		k.forget(func(c *credential) bool { return !c.session && c.id == id })
	}
	return err
}
