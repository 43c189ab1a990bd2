// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// A PasswordChange is what a user sends to set another password.
type PasswordChange struct {
	Old, New string
	Keep     bool   // the user's other sessions and tokens, with what tokens made; otherwise they end
	KeepKeys bool   // the keys of the gateway that were made without a token; otherwise they end
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
		ended, err := endCredentials(tx, u.ID, c.Keep, c.KeepKeys)
		if err != nil {
			return err
		}
		return k.record(ctx, tx, audit.Act{Action: audit.PasswordSet, Target: string(u.ID), Detail: ended})
	})
	if err != nil {
		return "", s, err
	}
	forget()
	u.Password = hash
	secret, s, err = ss.begin(ctx, u, Login{Client: c.Client, Previous: c.Previous})
	k.forget(func(cr *credential) bool { // the request that asks may end too, after everything is stored
		if key := cr.actor.Key; key != nil && key.Parent == "" {
			return cr.actor.Owner == u.ID && !c.KeepKeys
		}
		return cr.actor.Owner == u.ID && !c.Keep
	})
	return secret, s, err
}

// endCredentials deletes sessions, tokens and what tokens made unless keep, and the keys
// of the gateway that were made without a token unless keepKeys. It returns what the
// audit log says of the keys.
func endCredentials(tx store.PeopleTx, user artel.Owner, keep, keepKeys bool) (ended string, err error) {
	before, err := tx.Keys.List(user)
	if err == nil && !keep {
		err = errors.Join(tx.Sessions.Delete(user, ""), tx.Tokens.Delete(user, ""))
	}
	if err != nil {
		return "", err
	}
	if !keepKeys {
		for _, v := range before {
			if v.Parent == "" {
				err = errors.Join(err, tx.Keys.Delete(user, v.ID))
			}
		}
	}
	after, listed := tx.Keys.List(user)
	if n := len(before) - len(after); n > 0 {
		ended = fmt.Sprintf("keys of the gateway that ended: %d", n)
	}
	return ended, errors.Join(err, listed)
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
