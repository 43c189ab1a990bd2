// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// Prefixes of secrets, by which people and scanners recognise them.
const (
	TokenPrefix   = "artel_"
	KeyPrefix     = "sk-artel-" // of keys of the gateway
	sessionPrefix = "ses_"
)

const (
	maxKnown   = 10_000      // credentials that are remembered
	touchEvery = time.Minute // that a use is written
)

// ofKeys stands for the hash of a secret in the credential of the keys of the
// configuration.
const ofKeys artel.Digest = ""

// A credential is a remembered session or token.
type credential struct {
	actor   Actor
	id      string
	ends    time.Time // zero: never
	session bool
	used    atomic.Int64 // microseconds since 1970, as last written
	seen    atomic.Int64 // the newest use, likewise
	live    context.Context
	revoke  context.CancelFunc
	alarm   *time.Timer // at its end; nil: it has none
}

// until returns when c ends without further use; zero: never.
func (k *core) until(c *credential) time.Time {
	if !c.session {
		return c.ends
	}
	if idle := time.UnixMicro(c.seen.Load()).Add(k.options.Idle); idle.Before(c.ends) {
		return idle
	}
	return c.ends
}

// watch ends the requests of c when c ends by itself. It is called with k.mu held.
func (k *core) watch(c *credential) {
	at := k.until(c)
	if at.IsZero() {
		return
	}
	wait := max(at.Sub(k.now()), 0) + time.Millisecond // after the end, also if the clock is coarse
	if c.alarm != nil {
		c.alarm.Reset(wait)
		return
	}
	c.alarm = time.AfterFunc(wait, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if c.live.Err() != nil {
			return
		}
		if k.valid(c) { // it was used meanwhile
			k.watch(c)
			return
		}
		c.end()
		maps.DeleteFunc(k.known, func(_ artel.Digest, other *credential) bool { return other == c })
	})
}

// end ends the requests of c.
func (c *credential) end() {
	c.revoke()
	if c.alarm != nil {
		c.alarm.Stop()
	}
}

// revoked is the error of credentials that are no longer valid, and the cause of
// the contexts in which they act.
func revoked() error {
	return artel.Errorf(artel.Unauthenticated, "access.Access.Identify", "", "the session or token has ended")
}

// Refusal returns the error of kind Unauthenticated with which ctx ended, since what it
// acts with was revoked; nil if ctx has not ended, or ended otherwise. Who asked waits for
// an answer then, other than when the client has left.
func Refusal(ctx context.Context) error {
	if cause := context.Cause(ctx); artel.KindOf(cause) == artel.Unauthenticated {
		return cause
	}
	return nil
}

// Identify returns who has a secret: a token, or the cookie of a session. The
// context that it returns ends with ctx, with the credential and when it is revoked;
// release frees it. An unknown, ended or revoked secret is of kind
// Unauthenticated.
func (a *Access) Identify(ctx context.Context, secret string) (as context.Context, release context.CancelFunc, err error) {
	c, err := a.core.find(ctx, hashOf(secret), secret)
	if err != nil {
		return nil, nil, err
	}
	a.core.touch(c)
	as, release = a.core.act(ctx, c)
	return as, release, nil
}

// IdentifyKey is [Access.Identify] for the keys of the configuration. They act for
// the first administrator, at the gateway alone, as long as that user may log in.
func (a *Access) IdentifyKey(ctx context.Context) (as context.Context, release context.CancelFunc, err error) {
	c, err := a.core.find(ctx, ofKeys, TokenPrefix)
	if err != nil {
		return nil, nil, err
	}
	as, release = a.core.act(ctx, c)
	return as, release, nil
}

// IdentifyOperator returns the context of an [Operator] if no login is needed. It ends
// with ctx, and when the first user is made and a login is needed.
func (a *Access) IdentifyOperator(ctx context.Context) (as context.Context, release context.CancelFunc, ok bool) {
	if !a.Open() {
		return ctx, func() {}, false
	}
	as, cancel := context.WithCancelCause(With(ctx, Operator()))
	stop := context.AfterFunc(a.core.open, func() { cancel(Unknown()) })
	return as, func() { stop(); cancel(nil) }, true
}

// act returns the context in which the actor of c acts.
func (k *core) act(ctx context.Context, c *credential) (as context.Context, release context.CancelFunc) {
	acting, cancel := context.WithCancelCause(With(ctx, c.actor))
	stop := context.AfterFunc(c.live, func() { cancel(revoked()) })
	return acting, func() { stop(); cancel(nil) }
}

// find returns a credential that is valid now.
func (k *core) find(ctx context.Context, hash artel.Digest, secret string) (*credential, error) {
	for {
		k.mu.Lock()
		c, forgotten := k.known[hash], k.forgotten
		k.mu.Unlock()
		if c != nil {
			if k.valid(c) {
				return c, nil
			}
			// Another process may have seen it used meanwhile.
			k.forget(func(other *credential) bool { return other == c })
		}
		c, err := k.read(ctx, hash, secret)
		if err != nil {
			return nil, err
		}
		if !k.valid(c) {
			return nil, revoked()
		}
		k.mu.Lock()
		if k.forgotten != forgotten { // it may have been revoked after it was read
			k.mu.Unlock()
			continue
		}
		if first := k.known[hash]; first != nil { // of another request at the same time
			k.mu.Unlock()
			return first, nil
		}
		if len(k.known) >= maxKnown {
			for h, other := range k.known { // any; its requests end, as no later revocation would end them
				other.end()
				delete(k.known, h)
				break
			}
		}
		c.live, c.revoke = context.WithCancel(context.Background())
		k.known[hash] = c
		k.watch(c)
		k.mu.Unlock()
		return c, nil
	}
}

// read returns the stored credential with a hash, if its user may log in.
func (k *core) read(ctx context.Context, hash artel.Digest, secret string) (*credential, error) {
	c := &credential{session: !strings.HasPrefix(secret, TokenPrefix) && !strings.HasPrefix(secret, KeyPrefix)}
	err := k.people.View(ctx, func(tx store.PeopleTx) error {
		var user artel.Owner
		var used time.Time
		switch {
		case hash == ofKeys:
			user, c.actor.Scopes = artel.Local, []store.Scope{store.ScopeGateway}
		case c.session:
			s, err := tx.Sessions.Find(hash)
			if err != nil {
				return err
			}
			user, used, c.id, c.ends = s.User, s.UsedAt, s.ID, s.ExpiresAt
			c.actor.Session = s.ID
		case strings.HasPrefix(secret, KeyPrefix):
			g, err := tx.Keys.Find(hash)
			if err != nil {
				return err
			}
			if g.Disabled {
				return revoked()
			}
			user, used, c.id, c.ends = g.User, g.UsedAt, g.ID, g.ExpiresAt
			c.actor.Key, c.actor.Scopes = &g, []store.Scope{store.ScopeGateway}
		default:
			t, err := tx.Tokens.Find(hash)
			if err != nil {
				return err
			}
			user, used, c.id, c.ends = t.User, t.UsedAt, t.ID, t.ExpiresAt
			c.actor.Token, c.actor.TokenID, c.actor.Scopes = t.Name, t.ID, append([]store.Scope{}, t.Scopes...)
		}
		u, err := tx.Users.Get(user)
		if errors.Is(err, artel.NotFound) && user == artel.Local && k.isOpen() { // a deployment without users
			u, err = store.User{ID: user, Name: string(user), Role: store.Admin}, nil
		}
		if err != nil {
			return err
		}
		if u.Disabled {
			return revoked()
		}
		c.actor.Owner, c.actor.Name, c.actor.Role = u.ID, u.Name, u.Role
		c.used.Store(used.UnixMicro())
		c.seen.Store(used.UnixMicro())
		return nil
	})
	if errors.Is(err, artel.NotFound) {
		return nil, Unknown()
	}
	return c, err
}

// valid reports whether c has not ended by itself.
func (k *core) valid(c *credential) bool {
	at := k.until(c)
	return at.IsZero() || k.now().Before(at)
}

// touch notes that c is used, and writes it in the background at most once in
// touchEvery.
func (k *core) touch(c *credential) {
	now, used := k.now(), c.used.Load()
	c.seen.Store(now.UnixMicro())
	if now.Sub(time.UnixMicro(used)) < touchEvery || !c.used.CompareAndSwap(used, now.UnixMicro()) {
		return
	}
	k.writing.Go(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		err := k.people.Update(ctx, func(tx store.PeopleTx) error {
			switch {
			case c.session:
				return tx.Sessions.Touch(c.id, now)
			case c.actor.Key != nil:
				return tx.Keys.Touch(c.id, now)
			}
			return tx.Tokens.Touch(c.id, now)
		})
		if err != nil {
			k.log.WarnContext(ctx, "the use of a credential could not be stored", "id", c.id, "err", err)
		}
	})
}

// forget makes remembered credentials be read again, and ends the requests that
// are served with them. It is called after the change is stored.
func (k *core) forget(which func(*credential) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgotten++
	for hash, c := range k.known {
		if which(c) {
			c.end()
			delete(k.known, hash)
		}
	}
}

// forgetUser forgets all credentials of a user.
func (k *core) forgetUser(id artel.Owner) {
	k.forget(func(c *credential) bool { return c.actor.Owner == id })
}
