// SPDX-License-Identifier: Apache-2.0

// Package accounts connects MCP servers with accounts of users: each user of the
// deployment allows it, in a browser, to use a server in their name (OAuth).
//
// Begin with [New]. [Accounts.Start] returns the address for the browser,
// [Accounts.Finish] takes what comes back, [Accounts.Disconnect] revokes the access, and
// [Accounts.List] says how each server is. [Accounts.Token] gives the connections of
// package agent/mcp the access of the user who acts; it renews it in time.
//
// An account is a row of its user, encrypted for that row alone. Renewed tokens are stored
// before they are used, and one renewal of an account is at work at a time, because many
// authorization servers accept a refresh token once.
package accounts

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/internal/oauth"
	"github.com/artelhq/artel/internal/secret"
	"github.com/artelhq/artel/store"
)

// Servers are the servers that have accounts. [mcp.Pool] implements it.
type Servers interface {
	Logins() []mcp.Server
	Forget(server string, owner artel.Owner)
	Use(mcp.Tokens)
}

// Options are what may be left out.
type Options struct {
	Log *slog.Logger     // nil: slog.Default
	Now func() time.Time // nil: time.Now
}

// Accounts are the accounts of all users. They are safe for concurrent use.
type Accounts struct {
	store   store.Store
	secrets *secret.Box
	servers []Servers
	o       Options
	public  *http.Client // to authorization servers
	inner   *http.Client // to those of servers in a private network

	renewing singleflight.Group
	renewals sync.WaitGroup
}

// New returns the accounts at servers. Without secrets none can be stored.
func New(s store.Store, secrets *secret.Box, servers []Servers, o Options) *Accounts {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	client := func(private bool) *http.Client {
		return fetch.NewClient(fetch.Options{AllowPrivate: private, ResponseTimeout: 20 * time.Second, MaxRedirects: fetch.SameOrigin, IdlePerHost: 2})
	}
	return &Accounts{store: s, secrets: secrets, servers: servers, o: o, public: client(false), inner: client(true)}
}

// Close waits for renewals that run.
func (a *Accounts) Close() {
	a.renewals.Wait()
	a.public.CloseIdleConnections()
	a.inner.CloseIdleConnections()
}

// State is how a server is for a user.
type State string

// The states.
const (
	NotConnected State = "not_connected"
	Connected    State = "connected"
	Expired      State = "expired"      // the authorization server does not renew the access
	Unreadable   State = "unreadable"   // the key of the stored secrets is missing
	Insufficient State = "insufficient" // connected, but the server has asked for more
)

// An Account is how a server is for a user.
type Account struct {
	Server    string
	URL       string
	State     State
	Name      string // of the account, as the authorization server says; "": not known
	Issuer    string // of the access
	Scopes    []string
	Connected time.Time // zero: not
	Ends      time.Time // of the access, if it cannot be renewed; zero: not known
}

// CodeNotConnected is the error code of a server that the user has not connected, or not
// any more.
const CodeNotConnected = "account_not_connected"

// prefix of the names of settings.
const prefix = "mcp_account."

// kept is the stored form.
type kept struct {
	URL       string    `json:"url"` // of the server that it is for
	State     State     `json:"state"`
	Name      string    `json:"name,omitempty"`
	Issuer    string    `json:"issuer,omitempty"`
	Scopes    []string  `json:"scopes,omitempty"`
	Wanted    []string  `json:"wanted,omitempty"` // scopes that the server has asked for
	Connected time.Time `json:"connected,omitzero"`
	Ends      time.Time `json:"ends,omitzero"`
	Sealed    []byte    `json:"sealed,omitempty"` // the hidden
}

// hidden is encrypted.
type hidden struct {
	Grant    oauth.Grant    `json:"grant"`
	Pending  *oauth.Pending `json:"pending,omitempty"`
	Redirect string         `json:"redirect,omitempty"` // of pending
	Client   oauth.Client   `json:"client"`             // that was registered
}

const purpose = "mcp_account"

// row is an account with its revision.
type row struct {
	kept
	secret   hidden
	revision int
}

func (a *Accounts) now() time.Time { return a.o.Now().UTC().Truncate(time.Microsecond) }

// server returns the server of a name; kind NotFound if no server with accounts has it.
func (a *Accounts) server(name string) (mcp.Server, error) {
	for _, all := range a.servers {
		for _, s := range all.Logins() {
			if s.Name == name {
				return s, nil
			}
		}
	}
	return mcp.Server{}, artel.Errorf(artel.NotFound, "accounts", artel.Shorten(name, 60), "no MCP server of this name has accounts of users; set auth: oauth in its entry")
}

// client returns the client for the authorization server of a server, which may be in a
// private network if the server itself is.
func (a *Accounts) client(ctx context.Context, s mcp.Server) *http.Client {
	u, err := url.Parse(s.Remote.URL)
	if err == nil && fetch.Inner(ctx, nil, u.Hostname()) {
		return a.inner
	}
	return a.public
}

// read reads the account of the user at a server; one of revision 0 is not stored.
func (a *Accounts) read(tx store.Tx, owner artel.Owner, s mcp.Server) (row, error) {
	found, err := tx.Settings.Get(prefix + s.Name)
	if artel.KindOf(err) == artel.NotFound {
		return row{kept: kept{URL: s.Remote.URL, State: NotConnected}}, nil
	}
	if err != nil {
		return row{}, err
	}
	r := row{revision: found.Revision}
	if err := json.Unmarshal(found.Value, &r.kept); err != nil {
		return r, artel.Errorf(artel.Internal, "accounts", s.Name, "the stored account is damaged: %w", err)
	}
	if r.URL != s.Remote.URL { // its tokens are for the other one
		return row{kept: kept{URL: s.Remote.URL, State: NotConnected}, revision: found.Revision}, nil
	}
	if len(r.Sealed) > 0 {
		var plain []byte
		if a.secrets == nil {
			err = artel.Errorf(artel.Unavailable, "accounts", s.Name, "%w", secret.ErrNoKey)
		} else if plain, err = a.secrets.Open(purpose, id(owner, s.Name), r.Sealed); err == nil {
			err = json.Unmarshal(plain, &r.secret)
		}
		if err != nil {
			r.State = Unreadable
			return r, err
		}
	}
	return r, nil
}

func id(owner artel.Owner, server string) string { return string(owner) + "/" + server }

// write stores an account in place of its revision.
func (a *Accounts) write(tx store.Tx, owner artel.Owner, name string, r row) error {
	if a.secrets == nil {
		return artel.Errorf(artel.Unsupported, "accounts", name, "this server has no key to encrypt accounts with")
	}
	plain, err := json.Marshal(r.secret)
	if err == nil {
		r.Sealed, err = a.secrets.Seal(purpose, id(owner, name), plain)
	}
	var value []byte
	if err == nil {
		value, err = json.Marshal(r.kept)
	}
	if err == nil {
		_, err = tx.Settings.Put(store.Setting{Name: prefix + name, Revision: r.revision, Value: value, UpdatedAt: a.now()})
	}
	return err
}

// List says how each server with accounts is for the user.
func (a *Accounts) List(ctx context.Context) ([]Account, error) {
	if err := access.Require(ctx, store.ScopeRead); err != nil {
		return nil, err
	}
	owner := artel.OwnerOf(ctx)
	out := []Account{}
	err := a.store.View(ctx, owner, func(tx store.Tx) error {
		out = out[:0]
		for _, all := range a.servers {
			for _, s := range all.Logins() {
				r, err := a.read(tx, owner, s)
				if err != nil && r.State != Unreadable {
					return err
				}
				out = append(out, a.account(s, r))
			}
		}
		return nil
	})
	return out, err
}

// Get says how a server is for the user.
func (a *Accounts) Get(ctx context.Context, name string) (Account, error) {
	all, err := a.List(ctx)
	if err != nil {
		return Account{}, err
	}
	if at := slices.IndexFunc(all, func(c Account) bool { return c.Server == name }); at >= 0 {
		return all[at], nil
	}
	_, err = a.server(name)
	return Account{}, err
}

func (a *Accounts) account(s mcp.Server, r row) Account {
	c := Account{Server: s.Name, URL: s.Remote.URL, State: r.State, Name: r.Name, Issuer: r.Issuer, Scopes: r.Scopes, Connected: r.Connected}
	if r.State == Connected && r.secret.Grant.Refresh == "" {
		if c.Ends = r.Ends; !c.Ends.IsZero() && !a.now().Before(c.Ends) {
			c.State = Expired
		}
	}
	if c.State == Connected && len(r.Wanted) > 0 {
		c.State = Insufficient
	}
	return c
}

// A Site is this program as the browser of the user reaches it.
type Site struct {
	Redirect string // the address for the end of a request
	Document string // the address of the client's metadata document; "": others cannot read it
}

// Start begins to connect a server with an account of the user, and returns the address
// for the browser. It replaces a request that waits.
func (a *Accounts) Start(ctx context.Context, name string, site Site) (string, error) {
	s, err := a.writable(ctx, name)
	if err != nil {
		return "", err
	}
	owner := artel.OwnerOf(ctx)
	var r row
	err = a.store.View(ctx, owner, func(tx store.Tx) error {
		r, err = a.read(tx, owner, s)
		return err
	})
	if err != nil && r.State != Unreadable {
		return "", err
	}
	q := oauth.Request{
		URL: s.Remote.URL, Header: s.Remote.Header, Client: oauth.Client{ID: s.Login.ClientID, Secret: s.Login.ClientSecret}, Earlier: r.secret.Client,
		Scopes: s.Login.Scopes, Redirect: site.Redirect, Document: site.Document,
	}
	if len(r.Wanted) > 0 {
		q.Scopes = slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.Scopes, r.Wanted))))
	}
	p, err := oauth.Start(ctx, a.client(ctx, s), q, a.now())
	if err != nil {
		a.o.Log.WarnContext(ctx, "an MCP server cannot be connected with an account", "mcp_server", name, "err", err)
		return "", err
	}
	err = a.store.Update(ctx, owner, func(tx store.Tx) error {
		now, err := a.read(tx, owner, s)
		if err != nil && now.State != Unreadable {
			return err
		}
		if now.State == Unreadable {
			now.State, now.secret = NotConnected, hidden{}
		}
		now.secret.Pending, now.secret.Redirect = &p, site.Redirect
		if p.Grant.Client.Redirect != "" {
			now.secret.Client = p.Grant.Client
		}
		return a.write(tx, owner, name, now)
	})
	return p.Location, err
}

// writable returns a server whose account the user may change.
func (a *Accounts) writable(ctx context.Context, name string) (mcp.Server, error) {
	if err := access.Require(ctx, store.ScopeWrite); err != nil {
		return mcp.Server{}, err
	}
	return a.server(name)
}

// Finish ends the request of the user to which a query belongs, with which the browser
// came back. The error has a code of package oauth.
func (a *Accounts) Finish(ctx context.Context, query url.Values) (Account, error) {
	if err := access.Require(ctx, store.ScopeWrite); err != nil {
		return Account{}, err
	}
	owner := artel.OwnerOf(ctx)
	var s mcp.Server
	var pending *oauth.Pending
	var redirect string
	// The request is taken out before its code is used, so that each counts once.
	err := a.store.Update(ctx, owner, func(tx store.Tx) error {
		s, pending = mcp.Server{}, nil
		for _, all := range a.servers {
			for _, candidate := range all.Logins() {
				r, err := a.read(tx, owner, candidate)
				if err != nil || r.secret.Pending == nil || r.secret.Pending.State != query.Get("state") {
					continue // an unreadable one waits for nothing
				}
				s, pending, redirect = candidate, r.secret.Pending, r.secret.Redirect
				r.secret.Pending, r.secret.Redirect = nil, ""
				return a.write(tx, owner, candidate.Name, r)
			}
		}
		return nil
	})
	if err != nil {
		return Account{}, err
	}
	if pending == nil {
		e := artel.Errorf(artel.Denied, "accounts.Finish", "", "the answer belongs to no request of yours that waits; begin again")
		e.Code = oauth.CodeExpired
		return Account{}, e
	}
	g, err := oauth.Finish(ctx, a.client(ctx, s), *pending, redirect, query, a.now())
	if err != nil {
		a.o.Log.WarnContext(ctx, "an MCP server was not connected with an account", "mcp_server", s.Name, "err", err)
		return Account{Server: s.Name}, err
	}
	ctx = context.WithoutCancel(ctx) // the code is used
	var r row
	err = a.store.Update(ctx, owner, func(tx store.Tx) error {
		if r, err = a.read(tx, owner, s); err != nil {
			return err
		}
		r.grant(g)
		r.Connected, r.Wanted = a.now(), nil
		if err := a.write(tx, owner, s.Name, r); err != nil {
			return err
		}
		return audit.Record(ctx, tx, a.now(), audit.Act{Action: audit.MCPAccountConnected, Target: s.Name, Detail: strings.TrimSpace(g.Issuer + " " + g.Name)})
	})
	if err != nil {
		return Account{Server: s.Name}, err
	}
	a.forget(s.Name, owner)
	return a.account(s, r), nil
}

// grant sets the access of an account.
func (r *row) grant(g oauth.Grant) {
	r.secret.Grant, r.State = g, Connected
	r.Name, r.Issuer, r.Scopes, r.Ends = g.Name, g.Issuer, g.Scopes, g.Ends
}

func (a *Accounts) forget(server string, owner artel.Owner) {
	for _, all := range a.servers {
		all.Forget(server, owner)
	}
}

// Disconnect ends the access of the user to a server: the tokens are deleted, then revoked
// at the authorization server. revoked is false if that did not work or the authorization
// server cannot do it; its own page then does.
func (a *Accounts) Disconnect(ctx context.Context, name string) (revoked bool, err error) {
	s, err := a.writable(ctx, name)
	if err != nil {
		return false, err
	}
	owner := artel.OwnerOf(ctx)
	var r row
	err = a.store.Update(ctx, owner, func(tx store.Tx) error {
		var err error
		if r, err = a.read(tx, owner, s); err != nil && r.State != Unreadable {
			return err
		}
		if r.revision == 0 {
			return artel.Errorf(artel.NotFound, "accounts.Disconnect", name, "you have not connected this server")
		}
		if err := tx.Settings.Delete(prefix+name, r.revision, a.now()); err != nil {
			return err
		}
		return audit.Record(ctx, tx, a.now(), audit.Act{Action: audit.MCPAccountDisconnected, Target: name, Detail: r.Issuer})
	})
	if err != nil {
		return false, err
	}
	a.forget(name, owner)
	g := r.secret.Grant
	if g.Access == "" && g.Refresh == "" {
		return true, nil // there was nothing
	}
	if err := g.Revoke(context.WithoutCancel(ctx), a.client(ctx, s)); err != nil {
		a.o.Log.WarnContext(ctx, "the access to an MCP server was deleted here, but not revoked there", "mcp_server", name, "issuer", g.Issuer, "err", err)
		return false, nil
	}
	return g.Revoking != "", nil
}

// Remove ends the access of a user who is not one any more: the tokens are deleted, then
// revoked, which [Accounts.Close] waits for.
func (a *Accounts) Remove(ctx context.Context, owner artel.Owner) {
	for _, all := range a.servers {
		for _, s := range all.Logins() {
			var r row
			err := a.store.Update(ctx, owner, func(tx store.Tx) (err error) {
				if r, err = a.read(tx, owner, s); err != nil && r.State != Unreadable || r.revision == 0 {
					return err
				}
				return tx.Settings.Delete(prefix+s.Name, r.revision, a.now())
			})
			if err != nil {
				a.o.Log.ErrorContext(ctx, "the access of a removed user to an MCP server could not be deleted", "mcp_server", s.Name, "user", owner, "err", err)
				continue
			}
			all.Forget(s.Name, owner)
			if g := r.secret.Grant; g.Access != "" || g.Refresh != "" {
				a.renewals.Go(func() {
					if err := g.Revoke(ctx, a.client(ctx, s)); err != nil {
						a.o.Log.WarnContext(ctx, "the access of a removed user was deleted here, but not revoked there", "mcp_server", s.Name, "issuer", g.Issuer, "user", owner, "err", err)
					}
				})
			}
		}
	}
}
