// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A bench is the access to a deployment whose clock a test sets.
type bench struct {
	*access.Access
	t    *testing.T
	db   store.Store
	stop func(context.Context, artel.Owner, string) error // of the next open; nil: none

	follow bool // the clock is that of the machine, or of a bubble

	mu  sync.Mutex
	now time.Time
}

const password = "a long password"

func newBench(t *testing.T, o access.Options) *bench {
	t.Helper()
	b := &bench{t: t, db: rowstest.Open(t), now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	b.open(o)
	return b
}

// open is a start of the server.
func (b *bench) open(o access.Options) {
	b.t.Helper()
	a := access.New(access.Config{Store: b.db, Options: o, Log: slog.New(slog.DiscardHandler), Now: b.clock, Stop: b.stop})
	b.t.Cleanup(a.Close)
	b.Access = a
}

func (b *bench) clock() time.Time {
	if b.follow {
		return time.Now()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// setUp makes the administrator and returns a context in which he acts.
func (b *bench) setUp() context.Context {
	b.t.Helper()
	_, err := b.Users.Setup(b.t.Context(), access.Setup{Code: b.NewSetupCode(), Name: "Ann", Email: "Ann@Example.org", Password: password})
	b.must(err)
	return access.With(b.t.Context(), access.Actor{Owner: artel.Local, Role: store.Admin})
}

// member makes a user with a role who has set the password.
func (b *bench) member(admin context.Context, email string, r store.Role) store.User {
	b.t.Helper()
	_, code, err := b.Users.Invite(admin, access.NewUser{Name: "Someone", Email: email, Role: r})
	b.must(err)
	u, err := b.Users.Accept(b.t.Context(), code, password)
	b.must(err)
	return u
}

func (b *bench) login(email string) string {
	b.t.Helper()
	secret, _, err := b.Sessions.Login(b.t.Context(), access.Login{Email: email, Password: password, Client: "test"})
	b.must(err)
	return secret
}

// as returns the context of who has a secret.
func (b *bench) as(secret string) context.Context {
	b.t.Helper()
	ctx, release, err := b.Identify(b.t.Context(), secret)
	b.must(err)
	b.t.Cleanup(release)
	return ctx
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) kind(what string, err error, want artel.Kind) {
	b.t.Helper()
	if artel.KindOf(err) != want {
		b.t.Errorf("%s: got %v, want kind %q", what, err, want)
	}
}

// identified returns the error of identifying a secret.
func (b *bench) identified(secret string) error {
	_, release, err := b.Identify(b.t.Context(), secret)
	if err == nil {
		release()
	}
	return err
}

// TestOpen: a login is needed as soon as there are users, and always where others
// can reach the server.
func TestOpen(t *testing.T) {
	for _, c := range []struct {
		o             access.Options
		before, after bool
	}{
		{access.Options{}, true, false},
		{access.Options{Exposed: true}, false, false},
		{access.Options{Mode: access.Required}, false, false},
		{access.Options{Mode: access.OpenMode, Exposed: true}, true, true},
	} {
		b := newBench(t, c.o)
		if b.Open() != c.before {
			t.Errorf("%+v: open %v without users", c.o, b.Open())
		}
		b.setUp()
		if b.Open() != c.after {
			t.Errorf("%+v: open %v with users", c.o, b.Open())
		}
		if b.open(c.o); b.Open() != c.after {
			t.Errorf("%+v: open %v after a new start", c.o, b.Open())
		}
	}
}

// TestSetup: the first user is an administrator and owns what was there; the code
// works once, for an hour, and only the newest.
func TestSetup(t *testing.T) {
	b := newBench(t, access.Options{Exposed: true})
	s := access.Setup{Name: "Ann", Email: "Ann@Example.org ", Password: password}
	_, err := b.Users.Setup(t.Context(), s)
	b.kind("no code", err, artel.Denied)
	s.Code = b.NewSetupCode()
	b.pass(access.SetupLife)
	_, err = b.Users.Setup(t.Context(), s)
	b.kind("a code after an hour", err, artel.Denied)
	s.Code = b.NewSetupCode()
	newest := b.NewSetupCode()
	_, err = b.Users.Setup(t.Context(), s)
	b.kind("a replaced code", err, artel.Denied)
	s.Code = newest
	for what, change := range map[string]func(*access.Setup){
		"short password": func(s *access.Setup) { s.Password = "short" },
		"no name":        func(s *access.Setup) { s.Name = " " },
		"two lines":      func(s *access.Setup) { s.Name = "a\nb" },
		"no address":     func(s *access.Setup) { s.Email = "ann" },
		"named address":  func(s *access.Setup) { s.Email = "Ann <ann@example.org>" },
	} {
		wrong := s
		change(&wrong)
		_, err := b.Users.Setup(t.Context(), wrong)
		b.kind(what, err, artel.Invalid)
	}
	u, err := b.Users.Setup(t.Context(), s)
	b.must(err)
	if u.ID != artel.Local || u.Role != store.Admin || u.Email != "ann@example.org" || !strings.HasPrefix(u.Password, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("got %+v", u)
	}
	s.Email = "eve@example.org"
	_, err = b.Users.Setup(t.Context(), s)
	b.kind("a second time", err, artel.Conflict)
	b.login("ANN@example.org")
}

// TestSetupByTheOperator: while no login is needed, who asks needs no code.
func TestSetupByTheOperator(t *testing.T) {
	b := newBench(t, access.Options{})
	_, err := b.Users.Setup(access.With(t.Context(), access.Operator()), access.Setup{Name: "Ann", Email: "ann@example.org", Password: password})
	b.must(err)
}

// TestRights: what each role may do, and each token.
func TestRights(t *testing.T) {
	r, w, g, a := store.ScopeRead, store.ScopeWrite, store.ScopeGateway, store.ScopeAdmin
	for _, c := range []struct {
		role   store.Role
		scopes []store.Scope
		may    []store.Scope
	}{
		{store.Admin, nil, []store.Scope{r, w, g, a}},
		{store.Member, nil, []store.Scope{r, w, g}},
		{store.Viewer, nil, []store.Scope{r}},
		{"", nil, nil},
		{store.Admin, []store.Scope{}, nil},
		{store.Admin, []store.Scope{a}, []store.Scope{r, w, a}},
		{store.Admin, []store.Scope{g}, []store.Scope{g}},
		{store.Admin, []store.Scope{w}, []store.Scope{r, w}},
		{store.Member, []store.Scope{a}, []store.Scope{r, w}}, // whose role was taken away
		{store.Viewer, []store.Scope{w, g}, []store.Scope{r}},
	} {
		actor := access.Actor{Owner: "x", Role: c.role, Scopes: c.scopes}
		for _, s := range access.Scopes() {
			want := artel.Kind("")
			if !slices.Contains(c.may, s) {
				want = artel.Denied
			}
			if err := access.Require(access.With(t.Context(), actor), s); artel.KindOf(err) != want {
				t.Errorf("%s with %v asks for %s: %v", c.role, c.scopes, s, err)
			}
			if artel.KindOf(access.Require(artel.WithOwner(t.Context(), artel.Local), s)) != artel.Unauthenticated {
				t.Errorf("an owner without an actor has %s", s)
			}
		}
	}
}

// TestOnlyAdministratorsManage: every use case of people refuses others, and nobody.
func TestOnlyAdministratorsManage(t *testing.T) {
	b := newBench(t, access.Options{})
	admin := b.setUp()
	u := b.member(admin, "bob@example.org", store.Member)
	role := store.Admin
	for what, do := range map[string]func(context.Context) error{
		"List": func(ctx context.Context) error { _, err := b.Users.List(ctx); return err },
		"Invite": func(ctx context.Context) error {
			_, _, err := b.Users.Invite(ctx, access.NewUser{Name: "x", Email: "x@y.z"})
			return err
		},
		"InviteAgain": func(ctx context.Context) error { _, err := b.Users.InviteAgain(ctx, artel.Local); return err },
		"Update": func(ctx context.Context) error {
			_, err := b.Users.Update(ctx, u.ID, access.UserPatch{Role: &role})
			return err
		},
		"Delete": func(ctx context.Context) error { return b.Users.Delete(ctx, artel.Local) },
	} {
		b.kind(what+" by a member", do(b.as(b.login("bob@example.org"))), artel.Denied)
		b.kind(what+" by nobody", do(t.Context()), artel.Unauthenticated)
	}
	for what, do := range map[string]func(context.Context) error{
		"Me":            func(ctx context.Context) error { _, err := b.Users.Me(ctx); return err },
		"Sessions.List": func(ctx context.Context) error { _, err := b.Sessions.List(ctx); return err },
		"Sessions.End":  func(ctx context.Context) error { return b.Sessions.End(ctx, "") },
		"Tokens.List":   func(ctx context.Context) error { _, err := b.Tokens.List(ctx); return err },
		"Tokens.Revoke": func(ctx context.Context) error { return b.Tokens.Revoke(ctx, "x") },
		"Tokens.Create": func(ctx context.Context) error {
			_, _, err := b.Tokens.Create(ctx, access.TokenRequest{Name: "x"})
			return err
		},
		"Tokens of none": func(ctx context.Context) error { return access.Require(ctx, store.ScopeRead) },
	} {
		b.kind(what+" by nobody", do(t.Context()), artel.Unauthenticated)
	}
}

// TestInvitation: a code sets a password once, within 7 days, and the newest alone.
func TestInvitation(t *testing.T) {
	b := newBench(t, access.Options{})
	admin := b.setUp()
	u, old, err := b.Users.Invite(admin, access.NewUser{Name: "Bob", Email: "bob@example.org"})
	b.must(err)
	if u.Role != store.Member || u.ID == artel.Local || u.Password != "" {
		t.Errorf("got %+v", u)
	}
	_, _, err = b.Users.Invite(admin, access.NewUser{Name: "Bob", Email: "BOB@example.org"})
	b.kind("the same address", err, artel.Conflict)
	_, _, err = b.Sessions.Login(t.Context(), access.Login{Email: "bob@example.org"})
	b.kind("a login without a password", err, artel.Unauthenticated)
	code, err := b.Users.InviteAgain(admin, u.ID)
	b.must(err)
	_, err = b.Users.Accept(t.Context(), old, password)
	b.kind("a replaced code", err, artel.Denied)
	_, err = b.Users.Accept(t.Context(), code, "short")
	b.kind("a short password", err, artel.Invalid)
	_, err = b.Users.Accept(t.Context(), code, password)
	b.must(err)
	_, err = b.Users.Accept(t.Context(), code, "another password")
	b.kind("a used code", err, artel.Denied)
	session := b.login("bob@example.org")
	code, err = b.Users.InviteAgain(admin, u.ID) // forgot it
	b.must(err)
	b.pass(access.InvitationLife)
	_, err = b.Users.Accept(t.Context(), code, password)
	b.kind("an old code", err, artel.Denied)
	code, err = b.Users.InviteAgain(admin, u.ID)
	b.must(err)
	_, err = b.Users.Accept(t.Context(), code, "a new password")
	b.must(err)
	b.kind("a session from before the password was set", b.identified(session), artel.Unauthenticated)
	_, err = b.Users.InviteAgain(admin, "nobody")
	b.kind("an invitation of nobody", err, artel.NotFound)
}

// TestSessions: each login has a secret of its own, replaces the session it came
// with, and ends when it is idle, old or ended.
func TestSessions(t *testing.T) {
	b := newBench(t, access.Options{Idle: time.Hour, Absolute: 3 * time.Hour})
	b.setUp()
	first := b.login("ann@example.org")
	ctx := b.as(first)
	if a, _ := access.Of(ctx); a.Owner != artel.Local || a.Role != store.Admin || a.Session == "" || artel.OwnerOf(ctx) != artel.Local {
		t.Errorf("got %+v", a)
	}
	second, _, err := b.Sessions.Login(t.Context(), access.Login{Email: "ann@example.org", Password: password, Previous: first})
	b.must(err)
	if first == second {
		t.Error("the secret is the same")
	}
	b.kind("the replaced session", b.identified(first), artel.Unauthenticated)
	<-ctx.Done() // its requests end too
	other := b.login("ann@example.org")
	all, err := b.Sessions.List(b.as(second))
	b.must(err)
	if len(all) != 2 {
		t.Fatalf("%d sessions", len(all))
	}
	b.must(b.Sessions.End(b.as(second), all[0].ID))
	b.kind("the session that was ended", b.identified(other), artel.Unauthenticated)
	for range 5 {
		b.pass(30 * time.Minute)
		b.must(b.identified(second))
	}
	b.pass(30 * time.Minute)
	b.kind("an old session", b.identified(second), artel.Unauthenticated)
	third := b.login("ann@example.org")
	b.pass(time.Hour + time.Second)
	b.kind("an idle session", b.identified(third), artel.Unauthenticated)
	fourth := b.login("ann@example.org")
	b.open(access.Options{Idle: time.Hour, Absolute: 3 * time.Hour}) // nothing is remembered
	b.must(b.identified(fourth))
	b.kind("an unknown session", b.identified("ses_x"), artel.Unauthenticated)
	b.kind("no session", b.identified(""), artel.Unauthenticated)
	b.must(b.Sessions.End(b.as(fourth), ""))
	b.kind("a session after the end of all", b.identified(fourth), artel.Unauthenticated)
}

// TestLoginsWait: failed logins make the next ones wait, for an account from every
// address, and from an address for every account.
func TestLoginsWait(t *testing.T) {
	b := newBench(t, access.Options{})
	b.setUp()
	try := func(address, email, password string) error {
		_, _, err := b.Sessions.Login(audit.WithAddress(t.Context(), address), access.Login{Email: email, Password: password})
		return err
	}
	for i := range 5 {
		b.kind("a wrong password", try(fmt.Sprint("192.0.2.", i), "ann@example.org", "wrong password"), artel.Unauthenticated)
	}
	err := try("198.51.100.1", "ann@example.org", password)
	var d *access.Delay
	if artel.CodeOf(err) != access.CodeTooManyLogins || !errors.As(err, &d) || d.After != time.Second {
		t.Fatalf("got %v", err)
	}
	for want := 2 * time.Second; want <= 32*time.Second; want *= 2 {
		b.pass(d.After)
		b.kind("a wrong password", try("198.51.100.1", "ann@example.org", "wrong password"), artel.Unauthenticated)
		if err := try("198.51.100.1", "ann@example.org", password); !errors.As(err, &d) || d.After != want {
			t.Fatalf("got %v, want a delay of %v", err, want)
		}
	}
	b.pass(d.After)
	b.must(try("198.51.100.1", "ann@example.org", password))
	b.must(try("198.51.100.1", "ann@example.org", password)) // success forgets
	for i := range 20 {
		b.kind("an unknown account", try("203.0.113.9", fmt.Sprint(i, "@example.org"), "wrong password"), artel.Unauthenticated)
	}
	if err := try("203.0.113.9", "ann@example.org", password); !errors.As(err, &d) {
		t.Errorf("got %v", err)
	}
	b.must(try("203.0.113.10", "ann@example.org", password))
}

// TestLoginsLookAlike: an unknown account, a disabled one and a wrong password give
// the same error.
func TestLoginsLookAlike(t *testing.T) {
	b := newBench(t, access.Options{})
	admin := b.setUp()
	gone := b.member(admin, "gone@example.org", store.Member)
	yes := true
	_, err := b.Users.Update(admin, gone.ID, access.UserPatch{Disabled: &yes})
	b.must(err)
	var texts []string
	for _, l := range []access.Login{
		{Email: "nobody@example.org", Password: password},
		{Email: "gone@example.org", Password: password},
		{Email: "ann@example.org", Password: "wrong password"},
		{Email: "ann@example.org", Password: strings.Repeat("x", access.MaxPassword+1)},
	} {
		_, _, err := b.Sessions.Login(t.Context(), l)
		b.kind(l.Email, err, artel.Unauthenticated)
		texts = append(texts, err.Error())
	}
	if len(slices.Compact(texts)) != 1 {
		t.Errorf("got %q", texts)
	}
}

// TestTokens: a token does what its scopes say until it is revoked or ends, and
// its use is stored.
func TestTokens(t *testing.T) {
	b := newBench(t, access.Options{})
	admin := b.setUp()
	bob := b.member(admin, "bob@example.org", store.Member)
	as := b.as(b.login("bob@example.org"))
	for what, r := range map[string]access.TokenRequest{
		"no name":     {Scopes: []store.Scope{store.ScopeRead}},
		"no scope":    {Name: "x"},
		"other scope": {Name: "x", Scopes: []store.Scope{"all"}},
		"past":        {Name: "x", Scopes: []store.Scope{store.ScopeRead}, ExpiresAt: b.clock()},
	} {
		_, _, err := b.Tokens.Create(as, r)
		b.kind(what, err, artel.Invalid)
	}
	_, _, err := b.Tokens.Create(as, access.TokenRequest{Name: "x", Scopes: []store.Scope{store.ScopeAdmin}})
	b.kind("more than one has", err, artel.Denied)
	secret, token, err := b.Tokens.Create(as, access.TokenRequest{Name: "ci", Scopes: []store.Scope{store.ScopeRead}, ExpiresAt: b.clock().Add(time.Hour)})
	b.must(err)
	reader := b.as(secret)
	a, _ := access.Of(reader)
	if d := cmp.Diff(access.Actor{Owner: bob.ID, Name: "Someone", Role: store.Member, Scopes: []store.Scope{store.ScopeRead}, Token: "ci", TokenID: token.ID}, a); d != "" || !strings.HasPrefix(secret, "artel_") {
		t.Errorf("%s %s", secret, d)
	}
	_, _, err = b.Tokens.Create(reader, access.TokenRequest{Name: "more", Scopes: []store.Scope{store.ScopeWrite}})
	b.kind("a token that makes a stronger one", err, artel.Denied)
	used := func() time.Time {
		t.Helper()
		b.Close() // waits for what is being written
		all, err := b.Tokens.List(as)
		b.must(err)
		return all[0].UsedAt
	}
	first := used()
	if !first.Equal(b.clock()) {
		t.Errorf("used at %v", first)
	}
	b.pass(30 * time.Second)
	b.must(b.identified(secret))
	if at := used(); !at.Equal(first) {
		t.Errorf("written again after 30 seconds")
	}
	b.pass(30 * time.Second)
	b.must(b.identified(secret))
	if at := used(); !at.Equal(b.clock()) {
		t.Errorf("not written after a minute")
	}
	b.kind("revoked by another user", b.Tokens.Revoke(admin, token.ID), artel.NotFound)
	b.pass(time.Hour)
	b.kind("a token that has ended", b.identified(secret), artel.Unauthenticated)
	b.must(b.Tokens.Revoke(as, token.ID))
	b.kind("a second revocation", b.Tokens.Revoke(as, token.ID), artel.NotFound)
	b.kind("no such token", b.identified("artel_x"), artel.Unauthenticated)
}

// TestRevocation: what a user may do ends at once, also for requests that are
// being served, by each act that ends it.
func TestRevocation(t *testing.T) {
	yes, viewer := true, store.Viewer
	for what, end := range map[string]func(b *bench, admin, own context.Context, u store.User, token string) error{
		"revoked": func(b *bench, _, own context.Context, _ store.User, token string) error {
			return b.Tokens.Revoke(own, token)
		},
		"disabled": func(b *bench, admin, _ context.Context, u store.User, _ string) error {
			_, err := b.Users.Update(admin, u.ID, access.UserPatch{Disabled: &yes})
			return err
		},
		"deleted": func(b *bench, admin, _ context.Context, u store.User, _ string) error {
			return b.Users.Delete(admin, u.ID)
		},
		"demoted": func(b *bench, admin, _ context.Context, u store.User, _ string) error {
			_, err := b.Users.Update(admin, u.ID, access.UserPatch{Role: &viewer})
			return err
		},
	} {
		b := newBench(t, access.Options{})
		admin := b.setUp()
		u := b.member(admin, "bob@example.org", store.Member)
		own := b.as(b.login("bob@example.org"))
		secret, token, err := b.Tokens.Create(own, access.TokenRequest{Name: "ci", Scopes: []store.Scope{store.ScopeWrite}})
		b.must(err)
		running := b.as(secret)
		if running.Err() != nil || !mayWrite(running) {
			t.Fatalf("%s: %v", what, running.Err())
		}
		b.must(end(b, admin, own, u, token.ID))
		<-running.Done()
		if as, release, err := b.Identify(t.Context(), secret); err == nil {
			if mayWrite(as) {
				t.Errorf("%s: it still may write", what)
			}
			release()
		} else if artel.KindOf(err) != artel.Unauthenticated {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func mayWrite(ctx context.Context) bool { return access.Require(ctx, store.ScopeWrite) == nil }

// TestRevocationIsNotOvertaken: a credential that is read while it is revoked is not
// remembered as valid.
func TestRevocationIsNotOvertaken(t *testing.T) {
	b := newBench(t, access.Options{})
	admin := b.setUp()
	for range 50 {
		secret, token, err := b.Tokens.Create(admin, access.TokenRequest{Name: "ci", Scopes: []store.Scope{store.ScopeRead}})
		b.must(err)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { _ = b.identified(secret) })
		}
		b.must(b.Tokens.Revoke(admin, token.ID))
		b.kind("after the revocation", b.identified(secret), artel.Unauthenticated)
		wg.Wait()
		b.kind("after all requests", b.identified(secret), artel.Unauthenticated)
	}
}

// TestTheLastAdministratorStays: no act leaves a deployment without one who can log in.
func TestTheLastAdministratorStays(t *testing.T) {
	b := newBench(t, access.Options{})
	admin := b.setUp()
	yes, member, name := true, store.Member, "Anna"
	_, _, err := b.Users.Invite(admin, access.NewUser{Name: "Bob", Email: "bob@example.org", Role: store.Admin}) // cannot log in yet
	b.must(err)
	for what, p := range map[string]access.UserPatch{"disabled": {Disabled: &yes}, "demoted": {Role: &member}} {
		_, err := b.Users.Update(admin, artel.Local, p)
		b.kind(what, err, artel.Conflict)
	}
	b.kind("deleted", b.Users.Delete(admin, artel.Local), artel.Conflict)
	u, err := b.Users.Update(admin, artel.Local, access.UserPatch{Name: &name})
	b.must(err)
	if u.Name != "Anna" || u.Role != store.Admin || u.Disabled {
		t.Errorf("got %+v", u)
	}
	b.member(admin, "eve@example.org", store.Admin)
	b.must(b.Users.Delete(admin, artel.Local))
	all, err := b.Users.List(admin)
	b.must(err)
	if len(all) != 2 {
		t.Errorf("%d users", len(all))
	}
	_, err = b.Users.Setup(access.With(t.Context(), access.Operator()), access.Setup{Name: "x", Email: "x@example.org", Password: password})
	b.kind("a set-up after the owner of the old rows was deleted", err, artel.Conflict)
}

// TestActsOfAccess: who let whom in is in the audit log, without a secret.
func TestActsOfAccess(t *testing.T) {
	b := newBench(t, access.Options{})
	admin := b.setUp()
	b.member(admin, "bob@example.org", store.Member)
	_, _, err := b.Sessions.Login(audit.WithAddress(t.Context(), "192.0.2.7"), access.Login{Email: "bob@example.org", Password: "wrong password"})
	b.kind("a wrong password", err, artel.Unauthenticated)
	secret, token, err := b.Tokens.Create(b.as(b.login("bob@example.org")), access.TokenRequest{Name: "ci", Scopes: []store.Scope{store.ScopeRead}})
	b.must(err)
	b.must(b.Tokens.Revoke(b.as(b.login("bob@example.org")), token.ID))
	items, _, err := b.db.Audit().List(t.Context(), store.AuditQuery{})
	b.must(err)
	slices.Reverse(items)
	var actions []string
	for _, e := range items {
		actions = append(actions, e.Action)
		if all := fmt.Sprint(e); strings.Contains(all, secret) || strings.Contains(all, password) || strings.Contains(all, "wrong password") {
			t.Errorf("a secret in %+v", e)
		}
		if e.Action == string(audit.LoginFailed) && (e.Address != "192.0.2.7" || e.Actor != "" || e.Target != "bob@example.org") {
			t.Errorf("got %+v", e)
		}
	}
	want := []string{"user_created", "user_created", "password_set", "login_failed", "logged_in", "token_created", "logged_in", "token_revoked"}
	if d := cmp.Diff(want, actions); d != "" {
		t.Error(d)
	}
}

// BenchmarkIdentify measures what every request pays.
func BenchmarkIdentify(b *testing.B) {
	db := rowstest.Open(b)
	a := access.New(access.Config{Store: db, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	defer a.Close()
	admin := access.With(b.Context(), access.Operator())
	if _, err := a.Users.Setup(admin, access.Setup{Name: "Ann", Email: "ann@example.org", Password: password}); err != nil {
		b.Fatal(err)
	}
	secret, _, err := a.Tokens.Create(admin, access.TokenRequest{Name: "ci", Scopes: []store.Scope{store.ScopeRead}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		_, release, err := a.Identify(b.Context(), secret)
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
}
