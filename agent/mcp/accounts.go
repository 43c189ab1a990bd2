// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
)

// Tokens gives connections the access of users to servers with a [Login]. The owner of
// the context is the user. It is safe for concurrent use.
type Tokens interface {
	// Token returns the user's access token for a server. refused is one that the server
	// did not accept, "" at first. The error is of kind Denied if the user has to connect
	// the server, with a text for models.
	Token(ctx context.Context, s Server, refused string) (string, error)
	// Insufficient records that a server wants more scopes than the user has allowed, and
	// returns the error of kind Denied.
	Insufficient(ctx context.Context, s Server, scopes []string) error
}

// Bounds of the connections of one server.
const (
	maxOpen   = 200              // connections at once
	idleAfter = 10 * time.Minute // without a call, a connection is closed
	forgotten = 24 * time.Hour   // after which the tools of a user who does not call are forgotten
	sweepTime = time.Minute      // between looks for idle connections
)

// accounts are the connections of a server that each user connects with an account of
// their own. They are opened at the first use, and again at the next one after they ended.
type accounts struct {
	front *connection // stands for the server in the pool, and has no session

	mu     sync.Mutex
	tokens Tokens // nil: none can be connected
	users  map[artel.Owner]*account
	start  func(*connection) // nil: the pool does not run
}

// An account is what one user has of a server.
type account struct {
	conn  *connection // nil: none is open
	tools []tool.Tool // that the last connection offered
	token string      // the newest; no result shows it
	used  time.Time
}

// run keeps the connections until ctx ends.
func (a *accounts) run(ctx context.Context) {
	var wg sync.WaitGroup
	a.mu.Lock()
	a.start = func(c *connection) { wg.Go(func() { c.runOnce(ctx) }) }
	a.mu.Unlock()
	a.front.once.Do(func() { close(a.front.firstAttempt) })
	tick := time.NewTicker(sweepTime)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-ctx.Done():
			done = true
		case <-a.front.idle: // not of the pool any more
			done = true
		case now := <-tick.C:
			a.sweep(now)
		}
	}
	a.mu.Lock()
	a.start = nil
	for _, u := range a.users {
		u.close()
	}
	a.mu.Unlock()
	wg.Wait()
}

func (u *account) close() {
	if u.conn != nil {
		u.conn.leave()
		u.conn = nil
	}
}

// sweep closes idle connections.
func (a *accounts) sweep(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for owner, u := range a.users {
		switch {
		case u.conn != nil && u.conn.busy():
			u.used = now
		case now.Sub(u.used) >= forgotten:
			u.close()
			delete(a.users, owner)
		case now.Sub(u.used) >= idleAfter:
			u.close()
		}
	}
}

// forget closes the connection of a user; its tools are gone.
func (a *accounts) forget(owner artel.Owner) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if u := a.users[owner]; u != nil {
		u.close()
		delete(a.users, owner)
	}
}

// open returns the connection of a user, and opens it if there is none. The error is of
// kind Denied if the user has to connect the server.
func (a *accounts) open(ctx context.Context, owner artel.Owner) (*connection, error) {
	const op = "mcp.Pool"
	server := a.front.server
	a.mu.Lock()
	tokens := a.tokens
	a.mu.Unlock()
	if tokens == nil || owner == "" {
		return nil, artel.Errorf(artel.Unavailable, op, server.Name, "the MCP server %s can only be used by users with accounts", server.Name)
	}
	if _, err := tokens.Token(artel.WithOwner(ctx, owner), server, ""); err != nil {
		if artel.KindOf(err) == artel.Denied {
			a.forget(owner)
		}
		return nil, err
	}
	select { // the pool may begin just now
	case <-a.front.firstAttempt:
	case <-a.front.idle:
	case <-ctx.Done():
		return nil, artel.Errorf(artel.Canceled, op, server.Name, "%w", ctx.Err())
	}
	c, err := a.connection(owner)
	if err != nil {
		return nil, err
	}
	select {
	case <-c.firstAttempt:
	case <-ctx.Done():
		return nil, artel.Errorf(artel.Canceled, op, server.Name, "%w", ctx.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil && c.noAccess != nil {
		return nil, c.noAccess
	}
	if c.session == nil {
		return nil, artel.Errorf(artel.Unavailable, op, server.Name, "the MCP server %s cannot be reached now (%s)", server.Name, c.problem)
	}
	return c, nil
}

// connection returns the connection of a user, which may have begun just now.
func (a *accounts) connection(owner artel.Owner) (*connection, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.start == nil {
		return nil, artel.Errorf(artel.Unavailable, "mcp.Pool", a.front.server.Name, "the MCP server %s was changed or removed", a.front.server.Name)
	}
	u := a.users[owner]
	if u == nil {
		u = &account{}
		a.users[owner] = u
	}
	u.used = time.Now()
	if u.conn != nil && !u.conn.hasEnded() {
		return u.conn, nil
	}
	if err := a.makeRoom(); err != nil {
		return nil, err
	}
	u.conn = newConnection(a.front.server, a.front.root)
	u.conn.of, u.conn.owner, u.conn.tokens = a, owner, a.tokens
	a.start(u.conn)
	return u.conn, nil
}

// makeRoom closes the connection that was not used for the longest time, if there are as
// many as there may be. a.mu is held.
func (a *accounts) makeRoom() error {
	open := 0
	var oldest *account
	for _, u := range a.users {
		if u.conn == nil || u.conn.hasEnded() {
			continue
		}
		open++
		if !u.conn.busy() && (oldest == nil || u.used.Before(oldest.used)) {
			oldest = u
		}
	}
	switch {
	case open < maxOpen:
	case oldest == nil:
		return artel.Errorf(artel.Unavailable, "mcp.Pool", a.front.server.Name, "%d users call the MCP server %s at this moment, and no more can; try again in a minute", open, a.front.server.Name)
	default:
		oldest.close()
	}
	return nil
}

// keep remembers the tools that a connection offers.
func (a *accounts) keep(c *connection, tools []tool.Tool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if u := a.users[c.owner]; u != nil && u.conn == c {
		u.tools = tools
	}
}

// tools returns the tools of a user: those of the last connection, or the one that says
// how to connect.
func (a *accounts) tools(owner artel.Owner) []tool.Tool {
	if owner == "" {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if u := a.users[owner]; u != nil && u.tools != nil {
		return u.tools
	}
	return []tool.Tool{a.connectTool()}
}

// connectTool stands for the tools of a server that the user has not connected.
func (a *accounts) connectTool() tool.Tool {
	server := a.front.server
	name := server.prefix() + "connect"
	t := tool.Func(name, "Says whether the user has connected the MCP server "+server.Name+", whose tools need an account of the user, and how it is connected. Its tools are available after that.",
		func(ctx context.Context, e *tool.Env, _ struct{}) (tool.Result, error) {
			if _, err := a.open(ctx, e.Owner); err != nil {
				return a.front.withoutAccess(ctx, name, err)
			}
			return tool.Result{Content: "The MCP server " + server.Name + " is connected; its tools are available from now on."}, nil
		})
	t.Repeat, t.StandsFor = tool.RepeatAlways, server.prefix()
	return t
}

// withoutAccess is the result of a call that could not be made.
func (c *connection) withoutAccess(ctx context.Context, name string, err error) (tool.Result, error) {
	if ctx.Err() != nil {
		return tool.Result{}, artel.Errorf(artel.Canceled, "tool.Call", name, "%w", ctx.Err())
	}
	said := err
	if e, ok := err.(*artel.Error); ok && e.Err != nil {
		said = e.Err
	}
	r := tool.Failed("%s: %s", name, c.hide(artel.Shorten(said.Error(), 1000)))
	if artel.KindOf(err) == artel.Denied {
		r.Metadata["connect"] = c.server.Name
	}
	return r, nil
}

// runOnce serves one connection of a user. It is opened again when it is needed.
func (c *connection) runOnce(ctx context.Context) {
	ctx, stop := c.whileUsed(ctx)
	defer stop()
	err := c.connect(ctx)
	if err == nil {
		err = ctx.Err()
	}
	c.failed(err)
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	if ctx.Err() == nil {
		c.log.Warn("the connection of a user to an MCP server has ended; it is opened again when it is needed", "user", c.owner, "err", c.health().Error)
	}
}

func (c *connection) hasEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended || c.gone
}

func (c *connection) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.active > 0
}

// refused returns why the user has no access; nil: there is access, as far as is known.
func (c *connection) refused() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.noAccess
}

// TokenSource implements auth.OAuthHandler of the SDK.
func (c *connection) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	t, err := c.token(ctx, "")
	if err != nil {
		return nil, err
	}
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: t}), nil
}

// Authorize implements auth.OAuthHandler of the SDK: a refused token is renewed once.
func (c *connection) Authorize(ctx context.Context, r *http.Request, resp *http.Response) error {
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusForbidden {
		if scopes, ok := wantedScopes(resp); ok {
			return c.without(c.tokens.Insufficient(artel.WithOwner(ctx, c.owner), c.server, scopes))
		}
		return fmt.Errorf("the server refuses the account: %s", resp.Status)
	}
	_, err := c.token(ctx, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	return err
}

// token returns the access token of the user.
func (c *connection) token(ctx context.Context, refused string) (string, error) {
	t, err := c.tokens.Token(artel.WithOwner(ctx, c.owner), c.server, refused)
	if err != nil {
		return "", c.without(err)
	}
	c.of.mu.Lock()
	if u := c.of.users[c.owner]; u != nil {
		u.token = t
	}
	c.of.mu.Unlock()
	_ = c.without(nil)
	return t, nil
}

// without remembers why there is no access.
func (c *connection) without(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noAccess = err
	return err
}

// hide hides the secrets of the server, and the token of the user.
func (c *connection) hide(text string) string {
	if c.of != nil {
		c.of.mu.Lock()
		if u := c.of.users[c.owner]; u != nil {
			text = tool.Secrets{"access token": u.token}.Hide(text)
		}
		c.of.mu.Unlock()
	}
	return c.server.Secrets.Hide(text)
}

// Use sets from where users have access to servers with a [Login]. Call it before
// [Pool.Run].
func (p *Pool) Use(t Tokens) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tokens = t
	for _, c := range p.servers {
		if c.users != nil {
			c.users.mu.Lock()
			c.users.tokens = t
			c.users.mu.Unlock()
		}
	}
}

// Logins returns the servers that users connect with accounts of their own.
func (p *Pool) Logins() []Server {
	var out []Server
	for _, c := range p.all() {
		if c.users != nil {
			out = append(out, c.server)
		}
	}
	return out
}

// Forget closes the connection of a user to a server. Calls that run end as they would
// have.
func (p *Pool) Forget(server string, owner artel.Owner) {
	p.mu.Lock()
	p.depart(server, owner)
	p.mu.Unlock()
	for _, c := range p.all() {
		if c.users != nil && c.server.Name == server {
			c.users.forget(owner)
		}
	}
}

// Await opens the connections of a user to the servers that the user has connected.
// Without a user, it waits until the first attempt to connect to every other server has
// ended.
func (p *Pool) Await(ctx context.Context, owner artel.Owner) {
	if owner == "" {
		for _, c := range p.all() {
			select {
			case <-c.firstAttempt:
			case <-c.idle:
			case <-ctx.Done():
				return
			}
		}
		return
	}
	var wg sync.WaitGroup
	for _, c := range p.all() {
		if c.users != nil {
			wg.Go(func() {
				if _, err := c.users.open(ctx, owner); err != nil && artel.KindOf(err) != artel.Denied {
					c.log.WarnContext(ctx, "an MCP server cannot be reached for a user", "user", owner, "err", err)
				}
			})
		}
	}
	wg.Wait()
}
