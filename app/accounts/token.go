// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/internal/oauth"
	"github.com/artelhq/artel/store"
)

// expiresSoon is the time before its end in which a token is renewed.
const expiresSoon = 30 * time.Second

// Token implements [mcp.Tokens].
func (a *Accounts) Token(ctx context.Context, s mcp.Server, refused string) (string, error) {
	owner := artel.OwnerOf(ctx)
	r, err := a.load(ctx, owner, s)
	if err != nil {
		return "", err
	}
	if !a.stale(r, refused) {
		return r.secret.Grant.Access, nil
	}
	token := ""
	for range 2 { // a renewal that had begun before the server refused the token may have kept it
		if token, err = a.renewed(ctx, owner, s, refused); err != nil || token != refused {
			break
		}
	}
	return token, err
}

// renewed waits for the renewal of an account, which it begins if none is at work. The
// renewal continues if ctx ends: what the authorization server has sent has to be stored.
func (a *Accounts) renewed(ctx context.Context, owner artel.Owner, s mcp.Server, refused string) (string, error) {
	a.renewals.Add(1)
	result := a.renewing.DoChan(id(owner, s.Name), func() (any, error) {
		return a.renew(context.WithoutCancel(ctx), owner, s, refused)
	})
	select {
	case done := <-result:
		a.renewals.Done()
		token, _ := done.Val.(string)
		return token, done.Err
	case <-ctx.Done():
		go func() { defer a.renewals.Done(); <-result }()
		return "", artel.Errorf(artel.Canceled, "accounts.Token", s.Name, "%w", ctx.Err())
	}
}

// load returns the account of a user that has access.
func (a *Accounts) load(ctx context.Context, owner artel.Owner, s mcp.Server) (r row, err error) {
	err = a.store.View(ctx, owner, func(tx store.Tx) error {
		r, err = a.read(tx, owner, s)
		return err
	})
	switch {
	case err != nil:
		return r, err
	case r.State == NotConnected || r.secret.Grant.Access == "":
		return r, notConnected(s.Name, "the user has not connected the MCP server %s")
	case r.State == Expired:
		return r, notConnected(s.Name, "the user's access to the MCP server %s has ended")
	}
	return r, nil
}

// notConnected is the error of a server that has to be connected. format has one %s.
func notConnected(name, format string) error {
	e := artel.Errorf(artel.Denied, "accounts.Token", name, format+"; the user can connect it on the page %s, or with: artel mcp connect %s", name, Page(name), name)
	e.Code = CodeNotConnected
	return e
}

// Page is the path of the page on which a user connects a server.
func Page(name string) string { return "/accounts/" + name }

// stale reports whether the token has to be renewed. One that has ended but cannot be is
// used: the server decides.
func (a *Accounts) stale(r row, refused string) bool {
	g := r.secret.Grant
	return refused != "" && g.Access == refused || g.Refresh != "" && !g.Ends.IsZero() && a.now().Add(expiresSoon).After(g.Ends)
}

// renew renews the access of a user, unless that has happened meanwhile.
func (a *Accounts) renew(ctx context.Context, owner artel.Owner, s mcp.Server, refused string) (string, error) {
	r, err := a.load(ctx, owner, s)
	if err != nil || !a.stale(r, refused) {
		return r.secret.Grant.Access, err
	}
	g, err := r.secret.Grant.Refreshed(ctx, a.client(ctx, s), a.now())
	if artel.CodeOf(err) == oauth.CodeEnded {
		a.o.Log.WarnContext(ctx, "the access of a user to an MCP server has ended", "mcp_server", s.Name, "user", owner, "err", err)
		return "", a.expire(ctx, owner, s, r)
	}
	if err != nil {
		return "", err
	}
	err = a.store.Update(ctx, owner, func(tx store.Tx) error {
		now, err := a.read(tx, owner, s)
		if err != nil {
			return err
		}
		if now.revision != r.revision && now.secret.Grant.Access != r.secret.Grant.Access {
			return errChanged // disconnected, or connected anew
		}
		now.grant(g)
		return a.write(tx, owner, s.Name, now)
	})
	if errors.Is(err, errChanged) {
		if r, err = a.load(ctx, owner, s); err != nil {
			return "", err
		}
		return r.secret.Grant.Access, nil
	}
	return g.Access, err
}

var errChanged = errors.New("the account has changed")

// expire marks an account whose access has ended.
func (a *Accounts) expire(ctx context.Context, owner artel.Owner, s mcp.Server, r row) error {
	err := a.store.Update(ctx, owner, func(tx store.Tx) error {
		now, err := a.read(tx, owner, s)
		if err != nil || now.secret.Grant.Access != r.secret.Grant.Access {
			return err
		}
		now.State = Expired
		now.secret.Grant.Access, now.secret.Grant.Refresh = "", ""
		return a.write(tx, owner, s.Name, now)
	})
	if err != nil {
		return err
	}
	return notConnected(s.Name, "the user's access to the MCP server %s has ended")
}

// Insufficient implements [mcp.Tokens].
func (a *Accounts) Insufficient(ctx context.Context, s mcp.Server, scopes []string) error {
	owner := artel.OwnerOf(ctx)
	if len(scopes) > 50 {
		scopes = scopes[:50]
	}
	err := a.store.Update(ctx, owner, func(tx store.Tx) error {
		r, err := a.read(tx, owner, s)
		if err != nil || r.State != Connected {
			return err
		}
		r.Wanted = scopes
		return a.write(tx, owner, s.Name, r)
	})
	if err != nil {
		return err
	}
	return notConnected(s.Name, "the MCP server %s wants more than the user has allowed ("+strings.ReplaceAll(artel.Shorten(strings.Join(scopes, " "), 200), "%", "%%")+")")
}
