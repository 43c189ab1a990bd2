// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// key makes a key of the gateway.
func (b *bench) key(ctx context.Context, expires time.Time) (secret string, k store.GatewayKey) {
	b.t.Helper()
	secret, k, err := b.Keys.Create(ctx, store.GatewayKey{Name: "laptop", ExpiresAt: expires})
	b.must(err)
	return secret, k
}

// TestKeysEndWithTheirTokens: a key that a token has made ends with it and with the tokens
// above it, at the same moment, with its requests; no change of the key lets it live
// longer, and a key that a login has made stays.
func TestKeysEndWithTheirTokens(t *testing.T) {
	b := newBench(t, access.Options{})
	admin := b.setUp()
	login := b.as(b.login("ann@example.org"))
	end := b.clock().Add(time.Hour)
	root, rootID := b.token(login, end, store.ScopeWrite, store.ScopeGateway)
	child, childID := b.token(b.as(root), time.Time{}, store.ScopeWrite, store.ScopeGateway)
	own, _ := b.key(login, time.Time{})
	ofRoot, k := b.key(b.as(root), end.Add(-time.Minute))
	ofChild, c := b.key(b.as(child), time.Time{})
	if k.Parent != rootID || c.Parent != childID || !c.ExpiresAt.Equal(end) || !k.ExpiresAt.Equal(end.Add(-time.Minute)) {
		t.Errorf("got %+v and %+v", k, c)
	}

	// No way to a later end, with whatever credential.
	_, _, err := b.Keys.Create(b.as(root), store.GatewayKey{Name: "x", ExpiresAt: end.Add(1)})
	b.kind("a key that ends later than its token", err, artel.Invalid)
	for what, ctx := range map[string]context.Context{"the token": b.as(root), "a login": login, "an administrator": admin} {
		_, err := b.Keys.Update(ctx, k.ID, func(v *store.GatewayKey) { v.ExpiresAt = end.Add(time.Hour) })
		b.kind("a later end by "+what, err, artel.Invalid)
		v, err := b.Keys.Update(ctx, k.ID, func(v *store.GatewayKey) { v.ExpiresAt, v.Parent = time.Time{}, "" })
		b.must(err)
		if !v.ExpiresAt.Equal(end) || v.Parent != rootID {
			t.Errorf("without an end, by %s: got %+v", what, v)
		}
	}

	// A key cannot make tokens or keys.
	if _, _, err := b.Tokens.Create(b.as(ofRoot), access.TokenRequest{Name: "x", Scopes: []store.Scope{store.ScopeRead}}); err == nil {
		t.Error("a key makes a token")
	}

	running, deep, stays := b.as(ofRoot), b.as(ofChild), b.as(own)
	b.must(b.Tokens.Revoke(login, rootID))
	<-running.Done()
	<-deep.Done()
	for what, secret := range map[string]string{"the key of the token": ofRoot, "the key of its child": ofChild} {
		b.kind(what, b.identified(secret), artel.Unauthenticated)
	}
	b.must(stays.Err())
	b.must(b.identified(own))
	all, err := b.Keys.List(login)
	b.must(err)
	if len(all) != 1 {
		t.Errorf("%d keys are left, want 1", len(all))
	}
	b.open(access.Options{}) // nothing comes back with a restart
	b.kind("after a restart", b.identified(ofChild), artel.Unauthenticated)
	b.must(b.identified(own))

	root, _ = b.token(admin, b.clock().Add(time.Hour), store.ScopeWrite, store.ScopeGateway)
	ofRoot, _ = b.key(b.as(root), time.Time{})
	b.must(b.identified(ofRoot))
	b.pass(time.Hour)
	b.kind("after the end of its token", b.identified(ofRoot), artel.Unauthenticated)
}

// TestKeysOfARevokedTokenRace: whatever is made with a token while it is being revoked is
// refused, or ends with it.
func TestKeysOfARevokedTokenRace(t *testing.T) {
	b := newBench(t, access.Options{})
	admin := b.setUp()
	for range 20 {
		token, id := b.token(admin, time.Time{}, store.ScopeWrite, store.ScopeGateway)
		as := b.as(token)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var made []string
		for range 4 {
			wg.Go(func() {
				secret, _, err := b.Keys.Create(as, store.GatewayKey{Name: "x"})
				if err == nil {
					_ = b.identified(secret) // it may be remembered
					mu.Lock()
					made = append(made, secret)
					mu.Unlock()
				}
			})
		}
		wg.Go(func() { b.must(b.Tokens.Revoke(admin, id)) })
		wg.Wait()
		for _, secret := range made {
			b.kind("a key of a revoked token", b.identified(secret), artel.Unauthenticated)
		}
	}
}

// TestANewPasswordEndsKeys: a new password ends all keys of its user and of no other one;
// those that a login has made can be kept, those of tokens end with these.
func TestANewPasswordEndsKeys(t *testing.T) {
	b := newBench(t, access.Options{})
	admin := b.setUp()
	bob := b.member(admin, "bob@example.org", store.Member)
	foreign, _ := b.key(b.as(b.login("bob@example.org")), time.Time{})
	login := b.login("ann@example.org")
	change := func(old, next string, keep, keys bool) {
		t.Helper()
		var err error
		login, _, err = b.Sessions.ChangePassword(b.as(login), access.PasswordChange{Old: old, New: next, Keep: keep, KeepKeys: keys, Previous: login})
		b.must(err)
	}
	token, _ := b.token(b.as(login), time.Time{}, store.ScopeWrite, store.ScopeGateway)
	own, _ := b.key(b.as(login), time.Time{})
	ofToken, _ := b.key(b.as(token), time.Time{})

	change(password, "a second password", true, true)
	b.must(b.identified(own))
	b.must(b.identified(ofToken))

	running, stays := b.as(ofToken), b.as(own)
	change("a second password", "a third password", false, true)
	<-running.Done()
	b.must(stays.Err())
	b.must(b.identified(own))
	b.kind("a key of a token, with keys kept", b.identified(ofToken), artel.Unauthenticated)

	token, _ = b.token(b.as(login), time.Time{}, store.ScopeWrite, store.ScopeGateway)
	ofToken, _ = b.key(b.as(token), time.Time{})
	running, stays = b.as(own), b.as(ofToken)
	change("a third password", "a fourth password", true, false)
	<-running.Done()
	b.kind("a key from before the password", b.identified(own), artel.Unauthenticated)
	b.must(stays.Err()) // it is the token's, which is kept
	b.must(b.identified(ofToken))
	b.must(b.identified(foreign))
	items, _, err := b.db.Audit().List(t.Context(), store.AuditQuery{Action: string(audit.PasswordSet)})
	b.must(err)
	if len(items) == 0 || items[0].Detail != "keys of the gateway that ended: 1" {
		t.Errorf("the audit log has %+v", items)
	}

	running = b.as(foreign)
	code, err := b.Users.InviteAgain(admin, bob.ID)
	b.must(err)
	_, err = b.Users.Accept(t.Context(), code, strings.ToUpper(password))
	b.must(err)
	<-running.Done()
	b.kind("a key from before a reset", b.identified(foreign), artel.Unauthenticated)
}
