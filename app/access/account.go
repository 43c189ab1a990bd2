// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// A PasswordChange is what a user sends to set another password.
type PasswordChange struct {
	Old, New string
	Keep     bool   // the user's other sessions and tokens; otherwise they end
	Client   string // the program, as it names itself
	Previous string // the secret of the session that asks
}

// CodeWrongPassword is the error code of a change with a wrong old password.
const CodeWrongPassword = "wrong_password"

// ChangePassword sets the password of the acting user, who has to act in a session and
// know the old one. It begins a new session in place of the one that asks, and returns
// its secret. Tries with a wrong password wait like those of [Sessions.Login].
func (ss *Sessions) ChangePassword(ctx context.Context, c PasswordChange) (secret string, s store.Session, err error) {
	const op = "access.Sessions.ChangePassword"
	k := ss.core
	a, ok := Of(ctx)
	switch {
	case !ok:
		return "", s, Unknown()
	case a.Session == "":
		return "", s, needsLogin(op, "change the password")
	}
	if err := checkPassword(op, c.New); err != nil {
		return "", s, err
	}
	var u store.User
	err = k.people.View(ctx, func(tx store.PeopleTx) (err error) { u, err = tx.Users.Get(a.Owner); return err })
	if err != nil {
		return "", s, err
	}
	forget, err := ss.enter(op, networkOf(audit.Address(ctx)), "password "+string(u.ID))
	if err != nil {
		return "", s, err
	}
	old := u.Password
	if len(c.Old) > MaxPassword {
		old, c.Old = "", ""
	}
	if ok, err := k.matches(ctx, old, c.Old); err != nil {
		return "", s, err
	} else if !ok {
		return "", s, &artel.Error{Op: op, Subject: "old", Kind: artel.Invalid, Code: CodeWrongPassword, Err: errors.New("the old password is wrong")}
	}
	hash, err := k.hashPassword(ctx, c.New)
	if err != nil {
		return "", s, err
	}
	err = k.people.Update(ctx, func(tx store.PeopleTx) error {
		now, err := tx.Users.Get(u.ID)
		if err == nil && (now.Disabled || now.Password != u.Password) {
			err = revoked() // meanwhile
		}
		if err != nil {
			return err
		}
		now.Password, now.UpdatedAt = hash, k.now()
		if err := tx.Users.Update(now); err != nil {
			return err
		}
		if !c.Keep {
			if err := errors.Join(tx.Sessions.Delete(u.ID, ""), tx.Tokens.Delete(u.ID, "")); err != nil {
				return err
			}
		}
		return k.record(ctx, tx, audit.Act{Action: audit.PasswordSet, Target: string(u.ID)})
	})
	if err != nil {
		return "", s, err
	}
	forget()
	u.Password = hash
	secret, s, err = ss.begin(ctx, u, Login{Client: c.Client, Previous: c.Previous})
	if !c.Keep {
		k.forgetUser(u.ID) // the request that asks ends too, after everything is stored
	}
	return secret, s, err
}

// Rename changes the name of the acting user. A token needs the scope admin. Addresses
// are changed by administrators alone, because a user is recognised by them.
func (us *Users) Rename(ctx context.Context, name string) (u store.User, err error) {
	const op = "access.Users.Rename"
	k := us.core
	a, ok := Of(ctx)
	switch {
	case !ok:
		return u, Unknown()
	case !a.manages():
		return u, needsLogin(op, "change the account without the scope admin")
	}
	if err := checkName(op, name); err != nil {
		return u, err
	}
	err = k.people.Update(ctx, func(tx store.PeopleTx) (err error) {
		if u, err = tx.Users.Get(a.Owner); err != nil || u.Name == name {
			return err
		}
		u.Name, u.UpdatedAt = name, k.now()
		if err := tx.Users.Update(u); err != nil {
			return err
		}
		return k.record(ctx, tx, audit.Act{Action: audit.UserChanged, Target: string(u.ID), Detail: "name"})
	})
	return u, err
}
