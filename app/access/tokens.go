// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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

// Bounds of tokens.
const (
	// MaxTokens is how many tokens a user may have that have not ended.
	MaxTokens = 100
	// maxTokenDepth is how many tokens there may be from one that a login made to one
	// that it made through others, with both ends.
	maxTokenDepth = 3
)

// CodeTokenLimit is the error code of a token that is refused because the user has
// [MaxTokens].
const CodeTokenLimit = "token_limit"

// Create makes a token of the acting user and returns its secret, which cannot be
// read again. It may do no more than who makes it. One that is made with a token ends
// with that at the latest, and has its end if r has none.
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
		if !a.May(s) && slices.Contains(scopesOf(a.Role), s) {
			return "", t, tokenLacks(op, "scopes", "this token may not make tokens of the scope %s, which it does not have itself", s)
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
	t = store.Token{
		ID: newID("tok"), Hash: hashOf(secret), User: a.Owner, Name: r.Name, Scopes: r.Scopes, Parent: a.TokenID,
		CreatedAt: now, ExpiresAt: r.ExpiresAt,
	}
	err = k.people.Update(ctx, func(tx store.PeopleTx) error {
		all, err := unended(tx, a.Owner, now)
		if err != nil {
			return err
		}
		if len(all) >= MaxTokens {
			return &artel.Error{Op: op, Kind: artel.Conflict, Code: CodeTokenLimit, Err: fmt.Errorf("you have %d tokens, the most that a user may have; revoke one that is not used any more", len(all))}
		}
		if err := inherit(op, &t, r.ExpiresAt, all); err != nil {
			return err
		}
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

// unended returns the tokens of a user without those that have ended, which it
// removes.
func unended(tx store.PeopleTx, user artel.Owner, now time.Time) ([]store.Token, error) {
	all, err := tx.Tokens.List(user)
	if err != nil {
		return nil, err
	}
	var live []store.Token
	for _, t := range all {
		if t.ExpiresAt.IsZero() || t.ExpiresAt.After(now) {
			live = append(live, t)
			continue
		}
		// Those that descend from it have ended too, and may be gone already.
		if err := tx.Tokens.Delete(user, t.ID); err != nil && !errors.Is(err, artel.NotFound) {
			return nil, err
		}
	}
	return live, nil
}

// inherit bounds t by the token that it is made with, which is one of all.
func inherit(op string, t *store.Token, expires time.Time, all []store.Token) error {
	if t.Parent == "" {
		return nil
	}
	depth, end := 1, time.Time{}
	for id := t.Parent; id != ""; depth++ {
		i := slices.IndexFunc(all, func(t store.Token) bool { return t.ID == id })
		if i < 0 {
			return revoked() // meanwhile
		}
		if id == t.Parent {
			end = all[i].ExpiresAt
		}
		id = all[i].Parent
	}
	if depth > maxTokenDepth {
		return artel.Errorf(artel.Conflict, op, "", "this token was made with a token that was made with a token, and makes no further ones (limit %d); make it with a login", maxTokenDepth)
	}
	var err error
	t.ExpiresAt, err = endBy(op, expires, end)
	return err
}

// endBy returns the end of what is made with a token that ends at end, if expires is
// asked for; zero: never. It is of kind Invalid if that is later.
func endBy(op string, expires, end time.Time) (time.Time, error) {
	switch {
	case end.IsZero():
	case expires.IsZero():
		return end, nil
	case expires.After(end):
		return expires, artel.Errorf(artel.Invalid, op, "expires_at", "want %s at the latest, when the token ends that it is made with", end.UTC().Format(time.RFC3339))
	}
	return expires, nil
}

// family returns the ids of a token among all and of those that descend from it.
func family(all []store.Token, id string) map[string]bool {
	found := map[string]bool{}
	if id == "" {
		return found
	}
	found[id] = true
	for range maxTokenDepth {
		for _, t := range all {
			if found[t.Parent] {
				found[t.ID] = true
			}
		}
	}
	return found
}

// List returns the tokens of the acting user, newest first. A token without the scope
// admin sees itself and those that descend from it.
func (ts *Tokens) List(ctx context.Context) (all []store.Token, err error) {
	a, ok := Of(ctx)
	if !ok {
		return nil, Unknown()
	}
	err = ts.core.people.View(ctx, func(tx store.PeopleTx) (err error) { all, err = tx.Tokens.List(a.Owner); return err })
	if !a.manages() {
		own := family(all, a.TokenID)
		all = slices.DeleteFunc(all, func(t store.Token) bool { return !own[t.ID] })
	}
	return all, err
}

// Revoke removes a token of the acting user with the tokens and keys of the gateway that
// descend from it. Requests that are being served with them end. A token without the scope admin revokes no
// others than [Tokens.List] lists.
func (ts *Tokens) Revoke(ctx context.Context, id string) error {
	a, ok := Of(ctx)
	if !ok {
		return Unknown()
	}
	k := ts.core
	var ended map[string]bool
	err := k.people.Update(ctx, func(tx store.PeopleTx) error {
		all, err := tx.Tokens.List(a.Owner)
		if err != nil {
			return err
		}
		if ended = family(all, id); id == "" || !a.manages() && !family(all, a.TokenID)[id] {
			return artel.Errorf(artel.NotFound, "access.Tokens.Revoke", artel.Shorten(id, 80), "no such token")
		}
		if err := tx.Tokens.Delete(a.Owner, id); err != nil {
			return err
		}
		return k.record(ctx, tx, audit.Act{Action: audit.TokenRevoked, Target: id})
	})
	if err == nil {
		k.forget(func(c *credential) bool {
			return !c.session && ended[c.id] || c.actor.Key != nil && ended[c.actor.Key.Parent]
		})
	}
	return err
}
