// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// token makes a token and returns its secret and its id.
func (b *bench) token(ctx context.Context, expires time.Time, scopes ...store.Scope) (secret, id string) {
	b.t.Helper()
	secret, t, err := b.Tokens.Create(ctx, access.TokenRequest{Name: "ci", Scopes: scopes, ExpiresAt: expires})
	b.must(err)
	return secret, t.ID
}

// TestTokensEndWithTheirParents: a token that a token has made ends with it, has no more
// scopes and no later end, and the chain is bounded.
func TestTokensEndWithTheirParents(t *testing.T) {
	b := newBench(t, access.Options{})
	admin := b.setUp()
	end := b.clock().Add(time.Hour)
	root, rootID := b.token(admin, end, store.ScopeWrite)
	other, _ := b.token(admin, time.Time{}, store.ScopeRead)
	child, childID := b.token(b.as(root), time.Time{}, store.ScopeWrite)
	grandchild, _ := b.token(b.as(child), end.Add(-time.Minute), store.ScopeRead)
	_, _, err := b.Tokens.Create(b.as(grandchild), access.TokenRequest{Name: "x", Scopes: []store.Scope{store.ScopeRead}})
	b.kind("a fourth one", err, artel.Conflict)
	if err == nil || !strings.Contains(err.Error(), "limit 3") {
		t.Errorf("got %v", err)
	}
	_, _, err = b.Tokens.Create(b.as(child), access.TokenRequest{Name: "x", Scopes: []store.Scope{store.ScopeRead}, ExpiresAt: end.Add(1)})
	b.kind("a later end", err, artel.Invalid)
	_, _, err = b.Tokens.Create(b.as(child), access.TokenRequest{Name: "x", Scopes: []store.Scope{store.ScopeGateway}})
	b.kind("another scope", err, artel.Denied)
	all, err := b.Tokens.List(admin)
	b.must(err)
	for _, token := range all {
		if token.ID == childID && (!token.ExpiresAt.Equal(end) || token.Parent != rootID) {
			t.Errorf("got %+v", token)
		}
	}
	running := b.as(grandchild)
	b.must(b.Tokens.Revoke(admin, rootID))
	<-running.Done() // a request at work ends
	for _, secret := range []string{root, child, grandchild} {
		b.kind("after the end of the first", b.identified(secret), artel.Unauthenticated)
	}
	b.must(b.identified(other))

	end = b.clock().Add(time.Hour)
	root, _ = b.token(admin, end, store.ScopeRead)
	child, _ = b.token(b.as(root), time.Time{}, store.ScopeRead)
	b.pass(time.Hour)
	b.kind("after the end of its parent", b.identified(child), artel.Unauthenticated)
}

// TestTokensSeeTheirOwn: a token without the scope admin lists and revokes itself and what
// it has made, and no session.
func TestTokensSeeTheirOwn(t *testing.T) {
	b := newBench(t, access.Options{})
	admin := b.setUp()
	login := b.login("ann@example.org")
	_, other := b.token(admin, time.Time{}, store.ScopeRead)
	writer, _ := b.token(admin, time.Time{}, store.ScopeWrite)
	_, made := b.token(b.as(writer), time.Time{}, store.ScopeRead)
	all, err := b.Tokens.List(b.as(writer))
	b.must(err)
	if len(all) != 2 {
		t.Errorf("a token lists %d tokens", len(all))
	}
	b.kind("another token", b.Tokens.Revoke(b.as(writer), other), artel.NotFound)
	b.kind("no token", b.Tokens.Revoke(admin, ""), artel.NotFound)
	b.must(b.Tokens.Revoke(b.as(writer), made))
	_, err = b.Sessions.List(b.as(writer))
	b.kind("sessions listed with the scope write", err, artel.Denied)
	b.kind("sessions ended with the scope write", b.Sessions.End(b.as(writer), ""), artel.Denied)
	_, err = b.Users.Rename(b.as(writer), "Eve")
	b.kind("a name changed with the scope write", err, artel.Denied)
	manager, _ := b.token(admin, time.Time{}, store.ScopeAdmin)
	sessions, err := b.Sessions.List(b.as(manager))
	b.must(err)
	if len(sessions) != 1 {
		t.Errorf("%d sessions", len(sessions))
	}
	b.must(b.Sessions.End(b.as(manager), sessions[0].ID))
	b.kind("the ended session", b.identified(login), artel.Unauthenticated)
}

// TestTokensMakeNoAdministrators: a token cannot come by the session of an
// administrator, which would outlive it.
func TestTokensMakeNoAdministrators(t *testing.T) {
	b := newBench(t, access.Options{})
	admin := b.setUp()
	bob := b.member(admin, "bob@example.org", store.Member)
	secret, _ := b.token(admin, time.Time{}, store.ScopeAdmin)
	token := b.as(secret)
	role, email, disabled := store.Admin, "eve@example.org", true
	update := func(id artel.Owner, p access.UserPatch) error { _, err := b.Users.Update(token, id, p); return err }
	_, _, err := b.Users.Invite(token, access.NewUser{Name: "Eve", Email: email, Role: store.Admin})
	b.kind("an administrator is invited", err, artel.Denied)
	_, err = b.Users.InviteAgain(token, artel.Local)
	b.kind("an administrator is reset", err, artel.Denied)
	b.kind("a member becomes one", update(bob.ID, access.UserPatch{Role: &role}), artel.Denied)
	b.kind("the address of one changes", update(artel.Local, access.UserPatch{Email: &email}), artel.Denied)
	b.kind("one is disabled", update(artel.Local, access.UserPatch{Disabled: &disabled}), artel.Denied)
	b.kind("one is deleted", b.Users.Delete(token, artel.Local), artel.Denied)
	_, _, err = b.Sessions.ChangePassword(token, access.PasswordChange{Old: password, New: "another password"})
	b.kind("the password changes", err, artel.Denied)
	_, _, err = b.Users.Invite(token, access.NewUser{Name: "Eve", Email: email})
	b.must(err)
	_, err = b.Users.InviteAgain(token, bob.ID)
	b.must(err)
	b.must(update(bob.ID, access.UserPatch{Disabled: &disabled}))
	b.must(b.Users.Delete(token, bob.ID))
}

// TestLimitsOfCredentials: a user has at most so many tokens, of which those that have
// ended do not count, and so many sessions, of which the oldest ends.
func TestLimitsOfCredentials(t *testing.T) {
	b := newBench(t, access.Options{})
	admin := b.setUp()
	b.token(admin, b.clock().Add(time.Hour), store.ScopeRead)
	for range access.MaxTokens - 1 {
		b.token(admin, time.Time{}, store.ScopeRead)
	}
	_, _, err := b.Tokens.Create(admin, access.TokenRequest{Name: "x", Scopes: []store.Scope{store.ScopeRead}})
	if artel.CodeOf(err) != access.CodeTokenLimit || !strings.Contains(err.Error(), "100 tokens") {
		t.Errorf("got %v", err)
	}
	b.pass(time.Hour)
	b.token(admin, time.Time{}, store.ScopeRead)

	first := b.login("ann@example.org")
	b.must(b.identified(first))
	b.must(b.db.People().Update(t.Context(), func(tx store.PeopleTx) error {
		for i := range access.MaxSessions - 1 {
			id := fmt.Sprint("ses", i)
			err := tx.Sessions.Create(store.Session{ID: id, Hash: artel.Digest(id), User: artel.Local, CreatedAt: b.clock(), UsedAt: b.clock(), ExpiresAt: b.clock().Add(time.Hour)})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	running := b.as(first)
	last := b.login("ann@example.org")
	<-running.Done()
	b.kind("the oldest session", b.identified(first), artel.Unauthenticated)
	all, err := b.Sessions.List(b.as(last))
	b.must(err)
	if len(all) != access.MaxSessions {
		t.Errorf("%d sessions", len(all))
	}
}

// TestANewPasswordEndsCredentials: a new password ends sessions and tokens, unless their
// user keeps them.
func TestANewPasswordEndsCredentials(t *testing.T) {
	b := newBench(t, access.Options{})
	b.setUp()
	asking, other := b.login("ann@example.org"), b.login("ann@example.org")
	token, _ := b.token(b.as(other), time.Time{}, store.ScopeRead)
	change := func(secret, old, next string, keep bool) (string, error) {
		secret, _, err := b.Sessions.ChangePassword(b.as(secret), access.PasswordChange{Old: old, New: next, Keep: keep, Previous: secret})
		return secret, err
	}
	_, err := change(asking, "wrong password", "a second password", false)
	if artel.CodeOf(err) != access.CodeWrongPassword {
		t.Errorf("got %v", err)
	}
	_, err = change(asking, password, "short", false)
	b.kind("a short password", err, artel.Invalid)
	second, err := change(asking, password, "a second password", true)
	b.must(err)
	b.kind("the session that asked", b.identified(asking), artel.Unauthenticated)
	for what, secret := range map[string]string{"the new session": second, "another session": other, "a token": token} {
		if err := b.identified(secret); err != nil {
			t.Errorf("%s, which is kept: %v", what, err)
		}
	}
	running := b.as(token)
	third, err := change(second, "a second password", "a third password", false)
	b.must(err)
	<-running.Done()
	b.must(b.identified(third))
	for what, secret := range map[string]string{"the session that asked": second, "another session": other, "a token": token} {
		b.kind(what, b.identified(secret), artel.Unauthenticated)
	}
	for range 5 {
		if _, err := change(third, "wrong password", "a fourth password", false); err == nil {
			t.Error("a wrong password is taken")
		}
	}
	if _, err = change(third, "wrong password", "a fourth password", false); artel.CodeOf(err) != access.CodeTooManyLogins {
		t.Errorf("after wrong ones: %v", err)
	}

	token, _ = b.token(b.as(third), time.Time{}, store.ScopeRead)
	code, err := b.Users.InviteAgain(access.With(t.Context(), access.Operator()), artel.Local)
	b.must(err)
	_, err = b.Users.Accept(t.Context(), code, password)
	b.must(err)
	b.kind("a token from before a reset", b.identified(token), artel.Unauthenticated)
	b.kind("a session from before a reset", b.identified(third), artel.Unauthenticated)
}

// TestUnknownAccountsAreNotRecorded: people type passwords where the address belongs.
func TestUnknownAccountsAreNotRecorded(t *testing.T) {
	b := newBench(t, access.Options{})
	b.setUp()
	for _, email := range []string{"my secret password", "Ann@example.org"} {
		_, _, err := b.Sessions.Login(t.Context(), access.Login{Email: email, Password: "wrong password"})
		b.kind(email, err, artel.Unauthenticated)
	}
	items, _, err := b.db.Audit().List(t.Context(), store.AuditQuery{})
	b.must(err)
	if known, unknown := items[0], items[1]; known.Target != "ann@example.org" || unknown.Target != "" || unknown.Detail != "unknown account" {
		t.Errorf("got %+v", items)
	}
	if text := fmt.Sprint(items); strings.Contains(text, "secret") {
		t.Errorf("got %s", text)
	}
}

// TestWorkOfUsersStops: who may no longer have work done has it stopped, with the reason.
func TestWorkOfUsersStops(t *testing.T) {
	b := newBench(t, access.Options{})
	var stopped []string
	b.stop = func(_ context.Context, u artel.Owner, why string) error {
		stopped = append(stopped, string(u)+": "+why)
		return nil
	}
	b.open(access.Options{})
	b.must(b.MayWork(t.Context(), "anyone")) // there are no users
	admin := b.setUp()
	bob := b.member(admin, "bob@example.org", store.Member)
	yes, no, name, viewer, member := true, false, "Bob", store.Viewer, store.Member
	b.must(b.MayWork(t.Context(), bob.ID))
	for _, c := range []struct {
		p   access.UserPatch
		why string
	}{
		{access.UserPatch{Name: &name}, ""},
		{access.UserPatch{Disabled: &yes}, "the user was disabled"},
		{access.UserPatch{Disabled: &no}, ""},
		{access.UserPatch{Role: &viewer}, "the user may only read now"},
		{access.UserPatch{Role: &member}, ""},
	} {
		stopped = nil
		_, err := b.Users.Update(admin, bob.ID, c.p)
		b.must(err)
		want := ""
		if c.why != "" {
			want = string(bob.ID) + ": " + c.why
		}
		err = b.MayWork(t.Context(), bob.ID)
		if got := strings.Join(stopped, "; "); got != want || (err == nil) != (c.why == "") {
			t.Errorf("%+v: got %q, %v; want %q", c.p, got, err, want)
		}
	}
	b.must(b.Users.Delete(admin, bob.ID))
	if len(stopped) != 1 || stopped[0] != string(bob.ID)+": the user was deleted" {
		t.Errorf("got %q", stopped)
	}
	b.kind("of a deleted user", b.MayWork(t.Context(), bob.ID), artel.Denied)
}

// TestDelaysOfNetworks: one network of a client counts as one, and the owner of an
// account is not locked out by the failures of others.
func TestDelaysOfNetworks(t *testing.T) {
	b := newBench(t, access.Options{})
	b.setUp()
	try := func(address, email, password string) error {
		_, _, err := b.Sessions.Login(audit.WithAddress(t.Context(), address), access.Login{Email: email, Password: password})
		return err
	}
	for i := range 20 {
		b.kind("an unknown account", try(fmt.Sprintf("2001:db8:0:1::%d", i+1), fmt.Sprint(i, "@example.org"), "x"), artel.Unauthenticated)
	}
	if err := try("2001:db8:0:1:ffff::1", "ann@example.org", password); artel.CodeOf(err) != access.CodeTooManyLogins {
		t.Errorf("from the same network: %v", err)
	}
	b.must(try("2001:db8:0:2::1", "ann@example.org", password))
	for i := range 5 {
		b.kind("a wrong password", try(fmt.Sprint("192.0.2.", i), "ann@example.org", "wrong password"), artel.Unauthenticated)
	}
	if err := try("192.0.2.9", "ann@example.org", password); artel.CodeOf(err) != access.CodeTooManyLogins {
		t.Errorf("from elsewhere: %v", err)
	}
	b.must(try("2001:db8:0:2::2", "ann@example.org", password)) // where there is a session
}
