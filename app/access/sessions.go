// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
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

// MaxSessions is how many sessions a user may have. The oldest ends when there is a
// further one.
const MaxSessions = 100

// CodeWrongLogin is the error code of a wrong address or password.
const CodeWrongLogin = "wrong_login"

func wrongLogin() error {
	return &artel.Error{Op: "access.Sessions.Login", Kind: artel.Unauthenticated, Code: CodeWrongLogin, Err: errors.New("the address or the password is wrong")}
}

// Login begins a session and returns its secret. Wrong passwords, unknown and
// disabled users are one error of kind Unauthenticated, after the same work. Tries
// from one network, and for one account, wait longer and longer if they fail; the
// error is a [*Delay]. Failures elsewhere do not delay an account's logins from a network
// in which it has a session.
func (ss *Sessions) Login(ctx context.Context, l Login) (secret string, s store.Session, err error) {
	const op = "access.Sessions.Login"
	k := ss.core
	email, network := FoldEmail(l.Email), networkOf(audit.Address(ctx))
	var u store.User
	account := "account " + artel.Shorten(email, maxEmail)
	err = k.people.View(ctx, func(tx store.PeopleTx) (err error) {
		if u, err = tx.Users.ByEmail(email); err != nil {
			return err
		}
		all, err := tx.Sessions.List(u.ID)
		if slices.ContainsFunc(all, func(s store.Session) bool { return networkOf(s.Address) == network }) {
			account = "network " + network + " " + account
		}
		return err
	})
	if err != nil && !errors.Is(err, artel.NotFound) {
		return "", s, err
	}
	forget, err := ss.enter(op, network, account)
	if err != nil {
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
			a := audit.Act{Action: audit.LoginFailed, Target: u.Email}
			if u.Email == "" { // what was typed may be a password
				a.Detail = "unknown account"
			}
			return k.record(ctx, tx, a)
		})
		if err != nil {
			k.log.ErrorContext(ctx, "a failed login is missing in the audit log", "err", err)
		}
		return "", s, wrongLogin()
	}
	secret, s, err = ss.begin(ctx, u, l)
	if err == nil {
		forget()
	}
	return secret, s, err
}

// enter counts a try from a network for an account, which fails until forget is called,
// or returns a [*Delay].
func (ss *Sessions) enter(op, network, account string) (forget func(), err error) {
	wait := ss.byAddress.enter(network)
	if wait == 0 {
		wait = ss.byAccount.enter(account)
	}
	if wait > 0 {
		return nil, &artel.Error{Op: op, Kind: artel.Denied, Code: CodeTooManyLogins, Err: &Delay{wait}}
	}
	return func() { ss.byAddress.forget(network); ss.byAccount.forget(account) }, nil
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
	var ended []string
	err := k.people.Update(ctx, func(tx store.PeopleTx) error {
		// The password may have changed while its hash was compared.
		if now, err := tx.Users.Get(u.ID); err != nil || now.Disabled || now.Password != u.Password {
			return wrongLogin()
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
		all, err := tx.Sessions.List(u.ID)
		if err != nil {
			return err
		}
		ended = nil
		for _, old := range all[min(MaxSessions, len(all)):] {
			if err := tx.Sessions.Delete(u.ID, old.ID); err != nil {
				return err
			}
			ended = append(ended, old.ID)
		}
		return k.record(ctx, tx, audit.Act{Action: audit.LoggedIn, Target: u.Email, Actor: u.ID})
	})
	if err != nil {
		return "", store.Session{}, err
	}
	if l.Previous != "" || len(ended) > 0 {
		k.mu.Lock()
		c := k.known[previous]
		k.mu.Unlock()
		k.forget(func(other *credential) bool { return other == c || other.session && slices.Contains(ended, other.id) })
	}
	return secret, s, nil
}

// sessionsOf returns whose sessions the actor may see and end: those of the actor, with a
// login or a token of the scope admin.
func sessionsOf(ctx context.Context, op string) (artel.Owner, error) {
	a, ok := Of(ctx)
	switch {
	case !ok:
		return "", Unknown()
	case !a.manages():
		return "", needsLogin(op, "list or end sessions without the scope admin")
	}
	return a.Owner, nil
}

// List returns the sessions of the acting user, newest first.
func (ss *Sessions) List(ctx context.Context) (all []store.Session, err error) {
	user, err := sessionsOf(ctx, "access.Sessions.List")
	if err != nil {
		return nil, err
	}
	err = ss.core.people.View(ctx, func(tx store.PeopleTx) (err error) { all, err = tx.Sessions.List(user); return err })
	return all, err
}

// End ends a session of the acting user, and all of them if the id is empty.
func (ss *Sessions) End(ctx context.Context, id string) error {
	user, err := sessionsOf(ctx, "access.Sessions.End")
	if err != nil {
		return err
	}
	k := ss.core
	err = k.people.Update(ctx, func(tx store.PeopleTx) error {
		if err := tx.Sessions.Delete(user, id); err != nil {
			return err
		}
		return k.record(ctx, tx, audit.Act{Action: audit.SessionEnded, Target: id})
	})
	if err == nil {
		k.forget(func(c *credential) bool { return c.session && c.actor.Owner == user && (id == "" || c.id == id) })
	}
	return err
}
