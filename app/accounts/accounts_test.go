// SPDX-License-Identifier: Apache-2.0

package accounts_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/accounts"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/internal/oauth"
	"github.com/artelhq/artel/internal/oauth/oauthtest"
	"github.com/artelhq/artel/internal/secret"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var site = accounts.SiteAt("http://127.0.0.1:7777")

// bench is the server mail with accounts, of one deployment.
type bench struct {
	t      *testing.T
	server *oauthtest.Server
	db     store.Store
	box    *secret.Box
	log    *apptest.Log
	pool   *mcp.Pool
	*accounts.Accounts
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, server: oauthtest.New(t), db: rowstest.At(t, rowstest.Address(t)), log: &apptest.Log{}}
	var err error
	if b.box, err = secret.New("", filepath.Join(t.TempDir(), "key")); err != nil {
		t.Fatal(err)
	}
	b.restart(b.box)
	return b
}

// entry is the server as an administrator has added it.
func (b *bench) entry() mcp.Server {
	s, err := mcp.Config{Name: "mail", URL: b.server.URL, Auth: "oauth"}.Server(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	s.Limits = mcp.Limits{Connect: 5 * time.Minute, Call: 5 * time.Minute}
	return s
}

// restart is a new process with the same data.
func (b *bench) restart(box *secret.Box) {
	b.t.Helper()
	var err error
	if b.pool, err = mcp.NewPool([]mcp.Server{b.entry()}, b.logger()); err != nil {
		b.t.Fatal(err)
	}
	made := accounts.New(b.db, box, []accounts.Servers{b.pool}, accounts.Options{Log: b.logger()})
	b.Accounts = made
	b.pool.Use(made)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	pool := b.pool
	go func() { defer close(done); pool.Run(ctx) }()
	b.t.Cleanup(func() { stop(); <-done; made.Close() })
}

func (b *bench) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b.log, nil)) }

func as(ctx context.Context, who artel.Owner) context.Context {
	return access.With(ctx, access.Actor{Owner: who, Role: store.Member})
}

// connect connects the server for a user with an account.
func (b *bench) connect(who artel.Owner, account string) {
	b.t.Helper()
	b.server.Browser(account)
	ctx := as(b.t.Context(), who)
	location, err := b.Start(ctx, "mail", site)
	if err != nil {
		b.t.Fatal(err)
	}
	a, err := b.Finish(ctx, b.server.Visit(b.t, location).Query())
	if err != nil || a.State != accounts.Connected || a.Name != account+"@mail.example" {
		b.t.Fatalf("%v: %+v", err, a)
	}
}

func (b *bench) state(who artel.Owner) accounts.State {
	b.t.Helper()
	a, err := b.Get(as(b.t.Context(), who), "mail")
	if err != nil {
		b.t.Fatal(err)
	}
	return a.State
}

// call calls the first tool of the server that a user has, as runs do.
func (b *bench) call(who artel.Owner) tool.Result {
	b.t.Helper()
	b.pool.Await(b.t.Context(), who)
	set, err := tool.NewSet(b.pool.Tools(who)...)
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := set.Call(b.t.Context(), &tool.Env{Owner: who}, set.Names()[0], json.RawMessage(`{}`))
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bench) says(what string, who artel.Owner, want string) {
	b.t.Helper()
	if r := b.call(who); r.IsError || r.Content != want {
		b.t.Errorf("%s: %+v, want %q", what, r, want)
	}
}

func (b *bench) needsAccount(what string, who artel.Owner, want string) {
	b.t.Helper()
	r := b.call(who)
	if !r.IsError || r.Metadata["connect"] != "mail" || !strings.Contains(r.Content, "/accounts/mail") || !strings.Contains(r.Content, want) {
		b.t.Errorf("%s: %+v, want %q", what, r, want)
	}
}

// TestTwoUsers: each user sees what their own account sees; who has none reads how to get
// one; both hold over a restart, and disconnecting revokes.
func TestTwoUsers(t *testing.T) {
	b := newBench(t)
	b.needsAccount("before", "user-a", "has not connected")
	if names := b.pool.Tools("user-a"); len(names) != 1 || names[0].Name != "mail_connect" {
		t.Errorf("tools before: %v", names)
	}
	b.connect("user-a", "ann")
	b.says("ann", "user-a", "the mail of ann")
	b.needsAccount("another user", "user-b", "has not connected")
	b.connect("user-b", "bob")
	b.says("bob", "user-b", "the mail of bob")
	b.says("ann again", "user-a", "the mail of ann")
	if n := b.server.Count("register"); n != 2 {
		t.Errorf("%d registrations", n)
	}
	b.restart(b.box)
	b.says("ann after a restart", "user-a", "the mail of ann")
	b.says("bob after a restart", "user-b", "the mail of bob")

	before := b.server.Valid()
	if revoked, err := b.Disconnect(as(t.Context(), "user-a"), "mail"); err != nil || !revoked {
		t.Fatalf("%v, revoked %v", err, revoked)
	}
	if b.server.Valid() != before-2 {
		t.Errorf("%d tokens are valid, %d before", b.server.Valid(), before)
	}
	b.needsAccount("disconnected", "user-a", "has not connected")
	b.says("the other one", "user-b", "the mail of bob")
	b.connect("user-a", "carl")
	b.says("another account", "user-a", "the mail of carl")
	var acts []string
	items, _, err := b.db.Audit().List(t.Context(), store.AuditQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range items {
		acts = append(acts, string(e.Actor)+" "+e.Action+" "+e.Target)
	}
	if want := []string{"user-a mcp_account_connected mail", "user-a mcp_account_disconnected mail", "user-b mcp_account_connected mail", "user-a mcp_account_connected mail"}; !slices.Equal(acts, want) {
		t.Errorf("audit log: %q", acts)
	}
}

// TestRenewal: a token that ends or is refused is renewed once for all callers, and what
// came is kept before it is used.
func TestRenewal(t *testing.T) {
	b := newBench(t)
	b.server.Lives(time.Second) // which is always soon
	b.connect("user-a", "ann")
	b.server.Lives(time.Hour)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { b.says("at once", "user-a", "the mail of ann") })
	}
	wg.Wait()
	if n := b.server.Count("refresh"); n != 1 {
		t.Errorf("renewed %d times for 20 calls", n)
	}
	b.server.EndAccess(false) // as after a change of its keys
	b.says("refused", "user-a", "the mail of ann")
	if n := b.server.Count("refresh"); n != 2 {
		t.Errorf("renewed %d times after a refusal", n)
	}
	b.restart(b.box)
	b.server.EndAccess(false)
	b.says("after a restart", "user-a", "the mail of ann")
	if b.state("user-a") != accounts.Connected {
		t.Error(b.state("user-a"))
	}
	b.server.EndAccess(true) // the user has revoked it there
	b.needsAccount("revoked there", "user-a", "has ended")
	if b.state("user-a") != accounts.Expired {
		t.Error(b.state("user-a"))
	}
	b.connect("user-a", "ann")
	b.says("connected again", "user-a", "the mail of ann")
	if strings.Contains(b.log.String(), "access-") || strings.Contains(b.log.String(), "refresh-") {
		t.Errorf("the log has a token:\n%s", b.log)
	}
}

// TestRequestsOfOthers: an answer counts once, for the user who asked, in time, also after
// a restart; a newer request replaces the older one.
func TestRequestsOfOthers(t *testing.T) {
	b := newBench(t)
	a, other := as(t.Context(), "user-a"), as(t.Context(), "user-b")
	location, err := b.Start(a, "mail", site)
	if err != nil {
		t.Fatal(err)
	}
	q := b.server.Visit(t, location).Query()
	late := func(what string, ctx context.Context, q url.Values) {
		t.Helper()
		if _, err := b.Finish(ctx, q); artel.CodeOf(err) != oauth.CodeExpired {
			t.Errorf("%s: %v", what, err)
		}
	}
	late("of another user", other, q)
	late("of nobody", a, url.Values{})
	b.restart(b.box)
	if _, err := b.Finish(a, q); err != nil {
		t.Fatal(err)
	}
	late("a second time", a, q)
	first, err := b.Start(a, "mail", site)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Start(a, "mail", site); err != nil {
		t.Fatal(err)
	}
	late("an older one", a, b.server.Visit(t, first).Query())
	if b.state("user-a") != accounts.Connected {
		t.Errorf("a request that was not finished has changed the account: %s", b.state("user-a"))
	}
	b.server.Browser("")
	location, err = b.Start(a, "mail", site)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Finish(a, b.server.Visit(t, location).Query()); artel.CodeOf(err) != oauth.CodeRefused {
		t.Errorf("a refusal: %v", err)
	}
	viewer := access.With(t.Context(), access.Actor{Owner: "user-a", Role: store.Viewer})
	if _, err := b.Start(viewer, "mail", site); artel.KindOf(err) != artel.Denied {
		t.Errorf("a viewer: %v", err)
	}
	if _, err := b.Start(a, "news", site); artel.KindOf(err) != artel.NotFound {
		t.Errorf("another server: %v", err)
	}
}

// TestStored: nothing readable of an account is in the database, a lost key is said, and
// tokens are not sent to another address under the same name.
func TestStored(t *testing.T) {
	b := newBench(t)
	b.connect("user-a", "ann")
	err := b.db.View(t.Context(), "user-a", func(tx store.Tx) error {
		all, err := tx.Settings.List("")
		if len(all) != 1 || bytes.Contains(all[0].Value, []byte("access-")) || bytes.Contains(all[0].Value, []byte("refresh-")) || bytes.Contains(all[0].Value, []byte("client-")) {
			t.Errorf("stored: %+v", all)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lost, err := secret.New(strings.Repeat("k", 40), "")
	if err != nil {
		t.Fatal(err)
	}
	b.restart(lost)
	if b.state("user-a") != accounts.Unreadable {
		t.Error(b.state("user-a"))
	}
	if r := b.call("user-a"); !r.IsError {
		t.Errorf("%+v", r)
	}
	b.restart(b.box)
	b.says("with the key", "user-a", "the mail of ann")

	// Another address under the name gets no token of the first.
	moved := b.entry()
	var seen []string
	moved.Remote = &mcp.Remote{URL: strings.Replace(b.server.URL, "/mcp", "/other", 1), Client: fetch.NewClient(fetch.Options{AllowPrivate: true})}
	moved.Remote.Client.Transport = spy{moved.Remote.Client.Transport, &seen}
	b.pool.Put(moved)
	b.needsAccount("moved", "user-a", "has not connected")
	if len(seen) != 0 {
		t.Errorf("it was sent %q", seen)
	}
}

// spy notes what is sent.
type spy struct {
	http.RoundTripper
	seen *[]string
}

func (s spy) RoundTrip(r *http.Request) (*http.Response, error) {
	*s.seen = append(*s.seen, r.Header.Get("Authorization"))
	return s.RoundTripper.RoundTrip(r)
}

// TestMoreScopes: a server that wants more than was allowed is connected again with more.
func TestMoreScopes(t *testing.T) {
	b := newBench(t)
	b.connect("user-a", "ann")
	b.says("mail", "user-a", "the mail of ann")
	b.server.Wants("mail", "send")
	b.restart(b.box)
	b.needsAccount("more", "user-a", "wants more")
	if b.state("user-a") != accounts.Insufficient {
		t.Error(b.state("user-a"))
	}
	b.connect("user-a", "ann")
	b.says("with more", "user-a", "the mail of ann")
}

// TestRemovedUser: what a removed user has connected is deleted and revoked; that of others
// stays.
func TestRemovedUser(t *testing.T) {
	b := newBench(t)
	b.connect("user-a", "ann")
	b.connect("user-b", "bob")
	b.Remove(t.Context(), "user-a")
	b.Close() // waits for the revocation
	if b.server.Valid() != 2 || b.server.Count("revoke") != 2 {
		t.Errorf("%d tokens are valid, %d were revoked", b.server.Valid(), b.server.Count("revoke"))
	}
	b.needsAccount("removed", "user-a", "has not connected")
	b.says("the other one", "user-b", "the mail of bob")
	b.Remove(t.Context(), "user-a") // nothing is left
	if b.server.Count("revoke") != 2 {
		t.Errorf("revoked %d times", b.server.Count("revoke"))
	}
}
