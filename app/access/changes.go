// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// Changed has what another process has changed be read again, and ends the requests whose
// user, session, token or key has ended.
func (a *Access) Changed(ctx context.Context, c store.Change) {
	k := a.core
	switch c.Of {
	case store.ChangedUser:
		k.hasUsers() // which notices the first one
		k.forgetUser(artel.Owner(c.ID))
	case store.ChangedSession:
		k.forget(func(cr *credential) bool { return cr.session && cr.id == c.ID })
	case store.ChangedToken:
		k.forget(func(cr *credential) bool { return cr.actor.Token != "" && cr.id == c.ID })
	case store.ChangedKey:
		k.rereadKey(ctx, c.ID)
	case store.Anything:
		k.hasUsers()
		k.reread(ctx)
	}
}

// reread reads all remembered credentials again, and ends the requests of those that have ended
// or changed.
func (k *core) reread(ctx context.Context) {
	k.mu.Lock()
	known := maps.Clone(k.known)
	k.mu.Unlock()
	changed := map[*credential]bool{}
	for hash, c := range known {
		kind := ""
		switch {
		case c.actor.Key != nil:
			kind = KeyPrefix
		case !c.session:
			kind = TokenPrefix
		}
		now, err := k.read(ctx, hash, kind)
		changed[c] = err != nil || !same(now.actor, c.actor) || !now.ends.Equal(c.ends)
	}
	k.forget(func(c *credential) bool { return changed[c] })
}

// same reports whether nothing but the time of the last use differs.
func same(a, b Actor) bool {
	if a.Key != nil && b.Key != nil {
		x, y := *a.Key, *b.Key
		x.UsedAt, y.UsedAt = time.Time{}, time.Time{}
		a.Key, b.Key = &x, &y
	}
	return reflect.DeepEqual(a, b)
}

// rereadKey has requests go by the limits of a key that was changed, and ends them if it is
// gone or disabled.
func (k *core) rereadKey(ctx context.Context, id string) {
	err := k.people.View(ctx, func(tx store.PeopleTx) error {
		for _, hash := range k.hashesOf(id) {
			v, err := tx.Keys.Find(hash)
			if err != nil {
				return err
			}
			if v.Disabled {
				return artel.NotFound
			}
			k.replaceKey(v)
		}
		return nil
	})
	if err != nil {
		if !errors.Is(err, artel.NotFound) {
			k.log.WarnContext(ctx, "a changed key could not be read; its requests end", "key", id, "err", err)
		}
		k.forget(func(cr *credential) bool { return cr.of(id) })
	}
}

// hashesOf returns the hashes of the remembered credentials of a key: one, or none.
func (k *core) hashesOf(id string) (all []artel.Digest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for hash, c := range k.known {
		if c.of(id) {
			all = append(all, hash)
		}
	}
	return all
}
