// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/rand"
	"math"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// Keys are the use cases of the keys with which programs call models through the
// gateway. Without users they belong to the operator.
type Keys struct {
	core  *core
	check func(store.GatewayKey) error // may be nil
}

// Limits on what keys can be given.
const (
	maxKeys     = 1000 // of a user
	maxServices = 1000 // of a key
	maxRate     = 1_000_000
	maxTokens   = 1_000_000_000_000
	maxUSD      = 1_000_000
)

// Create makes a key of the acting user and returns its secret, which cannot be
// read again. One that is made with a token ends with it, and has its end if what has
// none. Only Name, Services, Limits, ExpiresAt and Disabled of what are read.
func (ks *Keys) Create(ctx context.Context, what store.GatewayKey) (secret string, made store.GatewayKey, err error) {
	const op = "access.Keys.Create"
	a, ok := Of(ctx)
	if !ok {
		return "", made, Unknown()
	}
	if err := Require(ctx, store.ScopeGateway); err != nil && !a.May(store.ScopeAdmin) { // it would let its client do more than who makes it
		return "", made, err
	}
	k := ks.core
	if err := ks.valid(op, what, time.Time{}); err != nil {
		return "", made, err
	}
	secret = KeyPrefix + rand.Text()
	what.ID, what.Hash, what.User, what.Parent, what.CreatedAt, what.UsedAt = newID("key"), hashOf(secret), a.Owner, a.TokenID, k.now(), time.Time{}
	err = k.people.Update(ctx, func(tx store.PeopleTx) error {
		made = what
		all, err := tx.Keys.List(a.Owner)
		if err != nil {
			return err
		}
		if len(all) >= maxKeys {
			return artel.Errorf(artel.TooLarge, op, "", "you have %d keys, the most that a user can have; revoke some", len(all))
		}
		if err := endWithParent(op, tx, &made); err != nil {
			return err
		}
		if err := tx.Keys.Create(made); err != nil {
			return err
		}
		return k.record(ctx, tx, audit.Act{Action: audit.KeyCreated, Target: what.ID, Detail: what.Name})
	})
	if err != nil {
		return "", store.GatewayKey{}, err
	}
	return secret, made, nil
}

// endWithParent bounds the end of a key by that of the token that it was made with.
func endWithParent(op string, tx store.PeopleTx, v *store.GatewayKey) error {
	if v.Parent == "" {
		return nil
	}
	all, err := tx.Tokens.List(v.User)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(t store.Token) bool { return t.ID == v.Parent })
	if i < 0 {
		return revoked() // meanwhile
	}
	v.ExpiresAt, err = endBy(op, v.ExpiresAt, all[i].ExpiresAt)
	return err
}

// valid refuses what a key cannot have. before is when it ended so far.
func (ks *Keys) valid(op string, v store.GatewayKey, before time.Time) error {
	if err := checkName(op, v.Name); err != nil {
		return err
	}
	l, b := v.Limits, v.Limits.Budget
	switch {
	case len(v.Services) > maxServices:
		return artel.Errorf(artel.TooLarge, op, "services", "%d services: want at most %d, or none for all", len(v.Services), maxServices)
	case v.Services != nil && len(v.Services) == 0:
		return artel.Errorf(artel.Invalid, op, "services", "a key without any service is of no use; name some, or leave services out for all")
	case l.Requests < 0 || l.Requests > maxRate:
		return artel.Errorf(artel.Invalid, op, "requests_per_minute", "the requests a minute can be 1 to %d, or 0 for no limit", maxRate)
	case l.Tokens < 0 || l.Tokens > maxTokens:
		return artel.Errorf(artel.Invalid, op, "tokens_per_minute", "the tokens a minute can be 1 to %d, or 0 for no limit", int64(maxTokens))
	case l.Concurrent < 0 || l.Concurrent > maxRate:
		return artel.Errorf(artel.Invalid, op, "concurrent", "the requests at once can be 1 to %d, or 0 for no limit", maxRate)
	case b != store.Budget{} && (math.IsNaN(b.USD) || b.USD <= 0 || b.USD > maxUSD || b.Period != store.PerDay && b.Period != store.PerMonth):
		return artel.Errorf(artel.Invalid, op, "budget", "a budget is above 0 and up to %d US dollars, in each day or month", maxUSD)
	case !v.ExpiresAt.IsZero() && !v.ExpiresAt.Equal(before) && !v.ExpiresAt.After(ks.core.now()):
		return artel.Errorf(artel.Invalid, op, "expires_at", "the end of a key is a time in the future")
	}
	if ks.check == nil {
		return nil
	}
	return ks.check(v)
}

// List returns the keys of the acting user, newest first, and those of all users for
// administrators.
func (ks *Keys) List(ctx context.Context) (all []store.GatewayKey, err error) {
	a, ok := Of(ctx)
	if !ok {
		return nil, Unknown()
	}
	err = ks.core.people.View(ctx, func(tx store.PeopleTx) (err error) { all, err = tx.Keys.List(a.allOr()); return err })
	return all, err
}

// allOr is the user whose keys a may see and change; empty: all.
func (a Actor) allOr() artel.Owner {
	if a.May(store.ScopeAdmin) {
		return ""
	}
	return a.Owner
}

// Update changes a key; change may set what [Keys.Create] reads, within the end of the
// token that the key was made with. Disabling a key, and
// another end, end the requests that are served with it.
func (ks *Keys) Update(ctx context.Context, id string, change func(*store.GatewayKey)) (v store.GatewayKey, err error) {
	const op = "access.Keys.Update"
	a, ok := Of(ctx)
	if !ok {
		return v, Unknown()
	}
	k := ks.core
	var before store.GatewayKey
	err = k.people.Update(ctx, func(tx store.PeopleTx) error {
		if before, err = keyOf(op, tx, a, id); err != nil {
			return err
		}
		v = before
		change(&v)
		v.ID, v.Hash, v.User, v.Parent, v.CreatedAt, v.UsedAt = before.ID, before.Hash, before.User, before.Parent, before.CreatedAt, before.UsedAt
		if err := ks.valid(op, v, before.ExpiresAt); err != nil {
			return err
		}
		if err := endWithParent(op, tx, &v); err != nil {
			return err
		}
		if err := tx.Keys.Update(v); err != nil {
			return err
		}
		return k.record(ctx, tx, audit.Act{Action: audit.KeyChanged, Target: id, Detail: v.Name})
	})
	if err != nil {
		return store.GatewayKey{}, err
	}
	if v.Disabled != before.Disabled || !v.ExpiresAt.Equal(before.ExpiresAt) {
		k.forget(func(c *credential) bool { return c.of(id) })
	} else {
		k.replaceKey(v)
	}
	return v, nil
}

// keyOf returns a key that a may change. It is of kind NotFound if there is none.
func keyOf(op string, tx store.PeopleTx, a Actor, id string) (store.GatewayKey, error) {
	all, err := tx.Keys.List(a.allOr())
	if err != nil {
		return store.GatewayKey{}, err
	}
	i := slices.IndexFunc(all, func(o store.GatewayKey) bool { return o.ID == id })
	if i < 0 {
		return store.GatewayKey{}, artel.Errorf(artel.NotFound, op, artel.Shorten(id, 80), "no such key")
	}
	return all[i], nil
}

// Revoke removes a key. Requests that are being served with it end.
func (ks *Keys) Revoke(ctx context.Context, id string) error {
	const op = "access.Keys.Revoke"
	a, ok := Of(ctx)
	if !ok {
		return Unknown()
	}
	k := ks.core
	err := k.people.Update(ctx, func(tx store.PeopleTx) error {
		v, err := keyOf(op, tx, a, id)
		if err != nil {
			return err
		}
		if err := tx.Keys.Delete(v.User, id); err != nil {
			return err
		}
		return k.record(ctx, tx, audit.Act{Action: audit.KeyRevoked, Target: id, Detail: v.Name})
	})
	if err == nil {
		k.forget(func(c *credential) bool { return c.of(id) })
	}
	return err
}

// of reports whether c is the key with an id.
func (c *credential) of(id string) bool { return c.actor.Key != nil && c.id == id }

// replaceKey gives requests from now on the changed limits of a key. Those at work
// continue, and end with the same revocation.
func (k *core) replaceKey(v store.GatewayKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgotten++
	for hash, c := range k.known {
		if c.of(v.ID) {
			next := &credential{actor: c.actor, id: c.id, ends: c.ends, live: c.live, revoke: c.revoke}
			next.actor.Key = &v
			next.used.Store(c.used.Load())
			k.known[hash] = next
		}
	}
}
