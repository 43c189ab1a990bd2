// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// Sessions are the use cases of logins.
type Sessions struct {
	core      *core
	byAddress *limiter
	byAccount *limiter
}

// A Login is what a browser sends to begin a session.
type Login struct {
	Email, Password string
	Client          string // the program, as it names itself
	Previous        string // the secret of the session that this one replaces; may be empty
}

// Login begins a session and returns its secret. Wrong passwords, unknown and
// disabled users are one error of kind Unauthenticated, after the same work. Tries
// from one address, and for one account, wait longer and longer if they fail; the
// error is a [*Delay].
func (ss *Sessions) Login(ctx context.Context, l Login) (secret string, s store.Session, err error) {
	const op = "access.Sessions.Login"
	k := ss.core
	email, address := strings.ToLower(strings.TrimSpace(l.Email)), audit.Address(ctx)
	wait := ss.byAddress.enter(address)
	if wait == 0 {
		wait = ss.byAccount.enter(artel.Shorten(email, maxEmail))
	}
	if wait > 0 {
		return "", s, &artel.Error{Op: op, Kind: artel.Denied, Code: CodeTooManyLogins, Err: &Delay{wait}}
	}
	var u store.User
	err = k.people.View(ctx, func(tx store.PeopleTx) (err error) { u, err = tx.Users.ByEmail(email); return err })
	if err != nil && !errors.Is(err, artel.NotFound) {
		return "", s, err
	}
	hash := u.Password
	if u.Disabled || len(l.Password) > MaxPassword {
		hash, l.Password = "", ""
	}
	ok, err := k.matches(ctx, hash, l.Password)
	if err != nil {
		return "", s, err
	}
	if !ok {
		err := k.people.Update(ctx, func(tx store.PeopleTx) error {
			return k.record(ctx, tx, audit.Act{Action: audit.LoginFailed, Target: email})
		})
		if err != nil {
			k.log.ErrorContext(ctx, "a failed login is missing in the audit log", "err", err)
		}
		return "", s, artel.Errorf(artel.Unauthenticated, op, "", "the address or the password is wrong")
	}
	secret, s, err = ss.begin(ctx, u, l)
	if err == nil {
		ss.byAddress.forget(address)
		ss.byAccount.forget(artel.Shorten(email, maxEmail))
	}
	return secret, s, err
}

// begin stores a session of u in place of the previous one.
func (ss *Sessions) begin(ctx context.Context, u store.User, l Login) (string, store.Session, error) {
	k, now := ss.core, ss.core.now()
	secret := sessionPrefix + rand.Text()
	s := store.Session{
		ID: newID("ses"), Hash: hashOf(secret), User: u.ID, Client: artel.Shorten(strings.ToValidUTF8(l.Client, "\uFFFD"), 200), Address: audit.Address(ctx),
		CreatedAt: now, UsedAt: now, ExpiresAt: now.Add(k.options.Absolute),
	}
	previous := hashOf(l.Previous)
	err := k.people.Update(ctx, func(tx store.PeopleTx) error {
		// The password may have changed while its hash was compared.
		if now, err := tx.Users.Get(u.ID); err != nil || now.Disabled || now.Password != u.Password {
			return artel.Errorf(artel.Unauthenticated, "access.Sessions.Login", "", "the address or the password is wrong")
		}
		if old, err := tx.Sessions.Find(previous); err == nil {
			if err := tx.Sessions.Delete(old.User, old.ID); err != nil {
				return err
			}
		}
		if err := tx.Sessions.Prune(now, now.Add(-k.options.Idle)); err != nil {
			return err
		}
		if err := tx.Sessions.Create(s); err != nil {
			return err
		}
		return k.record(ctx, tx, audit.Act{Action: audit.LoggedIn, Target: u.Email, Actor: u.ID})
	})
	if err != nil {
		return "", store.Session{}, err
	}
	if l.Previous != "" {
		k.mu.Lock()
		c := k.known[previous]
		k.mu.Unlock()
		k.forget(func(other *credential) bool { return other == c })
	}
	return secret, s, nil
}

// List returns the sessions of the acting user, newest first.
func (ss *Sessions) List(ctx context.Context) (all []store.Session, err error) {
	a, ok := Of(ctx)
	if !ok {
		return nil, Unknown()
	}
	err = ss.core.people.View(ctx, func(tx store.PeopleTx) (err error) { all, err = tx.Sessions.List(a.Owner); return err })
	return all, err
}

// End ends a session of the acting user, and all of them if the id is empty.
func (ss *Sessions) End(ctx context.Context, id string) error {
	a, ok := Of(ctx)
	if !ok {
		return Unknown()
	}
	k := ss.core
	err := k.people.Update(ctx, func(tx store.PeopleTx) error {
		if err := tx.Sessions.Delete(a.Owner, id); err != nil {
			return err
		}
		return k.record(ctx, tx, audit.Act{Action: audit.SessionEnded, Target: id})
	})
	if err == nil {
		k.forget(func(c *credential) bool { return c.session && c.actor.Owner == a.Owner && (id == "" || c.id == id) })
	}
	return err
}
