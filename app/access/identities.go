// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// A Claim is what an OpenID provider says of the person who logs in.
type Claim struct {
	Issuer, Subject string // the account, by which its user is found
	Email           string
	Verified        bool // the provider has checked Email
	Name            string
	Member          bool  // a person without an account here becomes a member
	Admin           *bool // whether the person is an administrator; nil: the provider does not decide that
}

// Error codes of [Sessions.LoginBy].
const (
	CodeUnverified = "email_not_verified" // and the account belongs to no user
	CodeUninvited  = "not_invited"        // there is no user with the address
	CodeDisabled   = "user_disabled"
	CodeLinked     = "other_account" // the user with the address has another account of the provider
	CodeNotSetUp   = "not_set_up"    // there is no administrator yet
)

// LoginBy begins a session for the person of a claim, and returns its secret. The user
// is found by issuer and subject; if there is none, the user with the verified address
// gets this account, once. Errors are of kind Denied, with a code.
//
// Admin gives and takes the role admin, but does not take it from the last
// administrator.
func (ss *Sessions) LoginBy(ctx context.Context, cl Claim, l Login) (secret string, s store.Session, err error) {
	const op = "access.Sessions.LoginBy"
	k := ss.core
	if cl.Issuer == "" || cl.Subject == "" || len(cl.Subject) > 255 || !utf8.ValidString(cl.Subject) {
		return "", s, artel.Errorf(artel.Invalid, op, "subject", "the provider names no account")
	}
	var u store.User
	changed := false
	err = k.people.Update(ctx, func(tx store.PeopleTx) (err error) {
		if u, err = k.claimed(ctx, tx, cl); err != nil {
			return err
		}
		if u.Disabled {
			return refusedBy(CodeDisabled, "this user is disabled")
		}
		changed, err = k.promote(ctx, tx, &u, cl.Admin)
		return err
	})
	if e := new(artel.Error); errors.As(err, &e) && e.Kind == artel.Denied {
		k.recordFailure(ctx, cl, e.Code)
	}
	if err != nil {
		return "", s, err
	}
	if changed {
		k.forgetUser(u.ID)
	}
	l.Email = u.Email
	return ss.begin(ctx, u, l)
}

func refusedBy(code, text string) error {
	err := artel.Errorf(artel.Denied, "access.Sessions.LoginBy", "", "%s", text)
	err.Code = code
	return err
}

func (k *core) recordFailure(ctx context.Context, cl Claim, code string) {
	err := k.people.Update(ctx, func(tx store.PeopleTx) error {
		return k.record(ctx, tx, audit.Act{Action: audit.LoginFailed, Target: cl.Email, Detail: code})
	})
	if err != nil {
		k.log.ErrorContext(ctx, "a failed login is missing in the audit log", "err", err)
	}
}

// claimed returns the user of a claim. It makes or links one if that is allowed.
func (k *core) claimed(ctx context.Context, tx store.PeopleTx, cl Claim) (u store.User, err error) {
	i, err := tx.Identities.Find(cl.Issuer, cl.Subject)
	if err == nil {
		return tx.Users.Get(i.User)
	}
	if !errors.Is(err, artel.NotFound) {
		return u, err
	}
	all, err := tx.Users.List()
	switch {
	case err != nil:
		return u, err
	case len(all) == 0:
		return u, refusedBy(CodeNotSetUp, "there is no administrator yet; set up the server first")
	}
	email, bad := address("access.Sessions.LoginBy", cl.Email)
	if bad != nil || !cl.Verified {
		return u, refusedBy(CodeUnverified, "the provider has not verified the address of this account")
	}
	u, err = tx.Users.ByEmail(email)
	switch {
	case errors.Is(err, artel.NotFound) && !cl.Member:
		return u, refusedBy(CodeUninvited, "there is no user with the address "+email)
	case errors.Is(err, artel.NotFound):
		now := k.now()
		u = store.User{ID: artel.Owner(newID("usr_")), Name: nameOf(cl, email), Email: email, Role: store.Member, CreatedAt: now, UpdatedAt: now}
		if err := tx.Users.Create(u); err != nil {
			return u, err
		}
		if err := k.record(ctx, tx, audit.Act{Action: audit.UserCreated, Target: string(u.ID), Detail: email, Actor: u.ID}); err != nil {
			return u, err
		}
	case err != nil:
		return u, err
	case u.Disabled:
		return u, nil // it is refused, and gets no account
	}
	err = tx.Identities.Create(store.Identity{Issuer: cl.Issuer, Subject: cl.Subject, User: u.ID, CreatedAt: k.now()})
	if errors.Is(err, artel.Conflict) {
		return u, refusedBy(CodeLinked, "the user with the address "+email+" logs in with another account of the provider")
	}
	if err != nil {
		return u, err
	}
	return u, k.record(ctx, tx, audit.Act{Action: audit.UserChanged, Target: string(u.ID), Detail: "account of " + cl.Issuer, Actor: u.ID})
}

// nameOf is the name of a new user.
func nameOf(cl Claim, email string) string {
	name := strings.TrimSpace(strings.ToValidUTF8(cl.Name, ""))
	if name = artel.Shorten(name, 100); checkName("", name) != nil {
		name, _, _ = strings.Cut(email, "@")
	}
	return name
}

// promote makes u an administrator or a member, as the provider says.
func (k *core) promote(ctx context.Context, tx store.PeopleTx, u *store.User, admin *bool) (changed bool, err error) {
	if admin == nil || *admin == (u.Role == store.Admin) {
		return false, nil
	}
	before := *u
	if u.Role = store.Member; *admin {
		u.Role = store.Admin
	}
	u.UpdatedAt = k.now()
	if err := tx.Users.Update(*u); err != nil {
		return false, err
	}
	if err := anAdminIsLeft("access.Sessions.LoginBy", tx); errors.Is(err, artel.Conflict) {
		*u = before
		k.log.WarnContext(ctx, "the last administrator stays one, although the provider does not name the group", "user", u.ID)
		return false, tx.Users.Update(before)
	} else if err != nil {
		return false, err
	}
	return true, k.record(ctx, tx, audit.Act{Action: audit.UserChanged, Target: string(u.ID), Detail: "role", Actor: u.ID})
}

// linked reports whether a user logs in with an account at a provider.
func linked(tx store.PeopleTx, id artel.Owner) bool {
	all, err := tx.Identities.List(id)
	return err == nil && len(all) > 0
}
