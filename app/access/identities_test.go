// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"context"
	"slices"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/store"
)

const issuer = "https://id.example"

// TestLoginBy: an account at a provider belongs to one user, whom it finds by issuer and
// subject, and at first by a verified address.
func TestLoginBy(t *testing.T) {
	b := newBench(t, access.Options{Mode: access.Required})
	person := func(subject, email string) access.Claim {
		return access.Claim{Issuer: issuer, Subject: subject, Email: email, Verified: true, Name: "Someone"}
	}
	refused := func(what string, cl access.Claim, code string) {
		t.Helper()
		if _, _, err := b.Sessions.LoginBy(t.Context(), cl, access.Login{}); artel.CodeOf(err) != code || artel.KindOf(err) != artel.Denied {
			t.Errorf("%s: got %v, want %s", what, err, code)
		}
	}
	enter := func(what string, cl access.Claim) access.Actor {
		t.Helper()
		secret, _, err := b.Sessions.LoginBy(t.Context(), cl, access.Login{Client: "browser"})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		as, release, err := b.Identify(t.Context(), secret)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		defer release()
		a, _ := access.Of(as)
		return a
	}
	joining := person("1", "eve@example.org")
	joining.Member = true
	refused("no administrator", joining, access.CodeNotSetUp)
	admin := b.setUp()

	refused("nobody invited", person("1", "eve@example.org"), access.CodeUninvited)
	unverified := person("1", "ann@example.org")
	unverified.Verified, unverified.Member = false, true
	refused("an address that is not verified", unverified, access.CodeUnverified)
	refused("no address", person("1", ""), access.CodeUnverified)
	if _, _, err := b.Sessions.LoginBy(t.Context(), person("", "ann@example.org"), access.Login{}); artel.KindOf(err) != artel.Invalid {
		t.Errorf("no subject: %v", err)
	}

	bob, _, err := b.Users.Invite(admin, access.NewUser{Name: "Bob", Email: "bob@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	if got := enter("the first time", person("2", "Bob@Example.org")); got.Owner != bob.ID || got.Role != store.Member {
		t.Errorf("got %+v", got)
	}
	moved := person("2", "someone@else.example")
	moved.Verified = false
	if got := enter("with another address", moved); got.Owner != bob.ID {
		t.Errorf("got %+v", got)
	}
	refused("another person with the address", person("3", "bob@example.org"), access.CodeLinked)
	elsewhere := person("2", "nobody@example.org")
	elsewhere.Issuer = "https://other.example"
	refused("the subject at another provider", elsewhere, access.CodeUninvited)

	if _, _, err := b.Users.Invite(admin, access.NewUser{Name: "Kate", Email: "Kate@example.org"}); err != nil {
		t.Fatal(err)
	}
	refused("the Kelvin sign for a K", person("4", "\u212Aate@example.org"), access.CodeUninvited)
	if got := enter("another case", person("5", "KATE@EXAMPLE.ORG")); got.Name != "Kate" {
		t.Errorf("got %+v", got)
	}

	got := enter("a new member", joining)
	if got.Role != store.Member || got.Name != "Someone" || got.Owner == bob.ID || got.Owner == artel.Local {
		t.Errorf("got %+v", got)
	}
	joining.Subject, joining.Email, joining.Name = "9", "zoe@example.org", ""
	if got := enter("no name", joining); got.Name != "zoe" {
		t.Errorf("got %+v", got)
	}

	yes := true
	if _, err := b.Users.Update(admin, bob.ID, access.UserPatch{Disabled: &yes}); err != nil {
		t.Fatal(err)
	}
	refused("a disabled user", person("2", "bob@example.org"), access.CodeDisabled)
	refused("a disabled user without an account", person("2", "bob@example.org"), access.CodeDisabled)
	var failed []string
	items, _, err := b.db.Audit().List(t.Context(), store.AuditQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range items {
		if e.Action == "login_failed" {
			failed = append(failed, e.Detail)
		}
	}
	for _, code := range []string{access.CodeNotSetUp, access.CodeUninvited, access.CodeUnverified, access.CodeLinked, access.CodeDisabled} {
		if !slices.Contains(failed, code) {
			t.Errorf("the audit log has no %s: %v", code, failed)
		}
	}
}

// TestGroups: a group gives the role admin and takes it, with the sessions that have it,
// but not from the last administrator.
func TestGroups(t *testing.T) {
	b := newBench(t, access.Options{Mode: access.Required})
	b.setUp() // ann@example.org
	yes, no := true, false
	login := func(subject, email string, is *bool) (context.Context, access.Actor) {
		t.Helper()
		secret, _, err := b.Sessions.LoginBy(t.Context(), access.Claim{Issuer: issuer, Subject: subject, Email: email, Verified: true, Member: true, Name: "N", Admin: is}, access.Login{})
		if err != nil {
			t.Fatal(err)
		}
		as, release, err := b.Identify(t.Context(), secret)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(release)
		a, _ := access.Of(as)
		return as, a
	}
	if _, a := login("1", "ann@example.org", &no); a.Owner != artel.Local || a.Role != store.Admin {
		t.Errorf("the last administrator became %s", a.Role)
	}
	old, a := login("2", "bob@example.org", &yes)
	if a.Role != store.Admin {
		t.Errorf("the group makes %s", a.Role)
	}
	if _, a := login("1", "ann@example.org", &no); a.Role != store.Member {
		t.Errorf("without the group ann stays %s", a.Role)
	}
	if _, a := login("2", "bob@example.org", nil); a.Role != store.Admin {
		t.Errorf("a provider that does not decide took the role: %s", a.Role)
	}
	if _, a := login("2", "bob@example.org", &no); a.Role != store.Admin {
		t.Errorf("the last administrator, without a password, became %s", a.Role)
	}
	if old.Err() != nil {
		t.Error("a session of the last administrator has ended")
	}
	if _, a := login("1", "ann@example.org", &yes); a.Role != store.Admin {
		t.Errorf("the group makes %s", a.Role)
	}
	if _, a := login("2", "bob@example.org", &no); a.Role != store.Member {
		t.Errorf("bob stays %s", a.Role)
	}
	<-old.Done() // the session that has the role admin
}
