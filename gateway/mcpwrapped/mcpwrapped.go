// SPDX-License-Identifier: Apache-2.0

// Package mcpwrapped serves the MCP servers of the deployment to other hosts behind the proxy
// of package mcpproxy: each at an address of its own, [Path] and the name of its entry.
//
// Begin with [New]. A host gets the tools of the server as mcpproxy shows them, if who asks
// may read; calls need the right to write, as calls of such tools
// at /mcp do, and the permissions of the deployment hold for each tool. Servers with accounts
// are reached with the access of the user. What results leave behind is in the user's
// conversation "MCP" and the name of the server.
package mcpwrapped

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/gateway/mcpproxy"
	"github.com/artelhq/artel/pipeline/token"
	"github.com/artelhq/artel/store"
)

// Path is where the servers are served: below it, by their names.
const Path = "/mcp/proxy/"

// Serves reports whether r is for a handler of [New].
func Serves(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, Path) }

// Options configure a handler. The zero value is usable.
type Options struct {
	Pools []*mcp.Pool  // with the servers; a later one has those that the earlier ones have not
	Log   *slog.Logger // nil: slog.Default
}

// A Handler serves what is below [Path]. Close it after the last request.
type Handler struct {
	app     *app.App
	options Options
	counter *token.Counter
	http    *mcpproxy.Handler
}

// New returns a handler of the servers of a.
func New(a *app.App, o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	h := &Handler{app: a, options: o, counter: token.NewCounter()}
	h.http = mcpproxy.NewHandler(h.find, o.Log)
	return h
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.http.ServeHTTP(w, r) }

// Close ends all sessions, with what they have started.
func (h *Handler) Close() { h.http.Close() }

// slower is how many times longer than a call without a sign of progress a request may take.
const slower = 10

// find returns the server of a request, for who asks.
func (h *Handler) find(r *http.Request) (mcpproxy.Wrapped, error) {
	const op = "mcpwrapped"
	ctx := r.Context()
	if err := access.Require(ctx, store.ScopeRead); err != nil {
		return mcpproxy.Wrapped{}, err
	}
	o, err := settings(r.URL.Query())
	if err != nil {
		return mcpproxy.Wrapped{}, err
	}
	name, owner := strings.TrimPrefix(r.URL.Path, Path), artel.OwnerOf(ctx)
	e, err := h.endpoint(name, owner)
	if err != nil {
		return mcpproxy.Wrapped{}, artel.Errorf(artel.NotFound, op, artel.Shorten(name, 60), "there is no MCP server of this name; the page Tools lists all servers")
	}
	defer e.Close()
	o.Name, o.Count, o.Log, o.OnCall = e.Server.Name, h.count, h.options.Log, h.app.GatewayLog.Add
	return mcpproxy.Wrapped{
		Owner: string(owner), Key: fmt.Sprint(o.Name, "\n", o.Limit, o.Defer), Program: e.Server.Process != nil, Slowest: slower * e.Server.Limits.Call,
		Open: func() (mcpproxy.Upstream, mcpproxy.Store, mcpproxy.Options, <-chan struct{}, func(), error) {
			e, err := h.endpoint(name, owner)
			if err != nil {
				return nil, nil, o, nil, nil, err
			}
			g := &guard{h.app, e}
			o.Guard = g
			return h.upstream(g), &kept{app: h.app, title: "MCP " + o.Name}, o, e.Left(), func() { e.Close(); h.closed(e) }, nil
		},
	}, nil
}

func (h *Handler) endpoint(name string, owner artel.Owner) (e *mcp.Endpoint, err error) {
	err = artel.NotFound
	for _, p := range h.options.Pools {
		if e, err = mcp.NewEndpoint(p, name, owner); err == nil {
			break
		}
	}
	return e, err
}

// settings reads what the address of a server says.
func settings(q url.Values) (o mcpproxy.Options, err error) {
	o.Limit = mcpproxy.DefaultLimit
	if s := q.Get("limit"); s != "" {
		if o.Limit, err = strconv.Atoi(s); err != nil || o.Limit < mcpproxy.SmallestLimit || o.Limit > mcpproxy.LargestLimit {
			return o, artel.Errorf(artel.Invalid, "mcpwrapped", "limit", "is %q: want %d to %d bytes", artel.Shorten(s, 40), mcpproxy.SmallestLimit, mcpproxy.LargestLimit)
		}
	}
	if o.Defer, err = mcpproxy.ParseDefer(q.Get("defer")); err != nil {
		err = artel.Errorf(artel.Invalid, "mcpwrapped", "defer", "is %q: want auto, on or off", artel.Shorten(q.Get("defer"), 40))
	}
	return o, err
}

// count counts tokens.
func (h *Handler) count(s string) int {
	n, err := h.counter.Count(token.O200k, s)
	if err != nil {
		return len(s) // more than any vocabulary
	}
	return n
}

// upstream returns how the server is reached.
func (h *Handler) upstream(g *guard) mcpproxy.Upstream {
	log := h.options.Log.With("mcp_server", g.Server.Name)
	say := func(s string) { log.Warn("an MCP server behind the proxy: " + g.Endpoint.Secrets().Hide(s)) }
	if p := g.Server.Process; p != nil {
		return mcpproxy.Command{
			Args: p.Args, Env: append([]string{}, p.Env...), Dir: p.Dir, // never the environment of this program
			Stderr: &lines{say: func(s string) { log.Info("an MCP server says", "line", g.Endpoint.Secrets().Hide(s)) }}, Say: say,
		}
	}
	return mcpproxy.Remote{URL: g.Server.Remote.URL, Header: g.Server.Remote.Header, Client: g.Client(), Say: say}
}

// closed frees what a session has used.
func (h *Handler) closed(e *mcp.Endpoint) {
	if r := e.Server.Remote; r != nil {
		r.Client.CloseIdleConnections()
	}
}

// A guard holds hosts to the rights of who asks and to the permissions of the deployment.
type guard struct {
	app *app.App
	*mcp.Endpoint
}

// Secrets implements [mcpproxy.Guard].
func (g *guard) Secrets() map[string]string { return g.Endpoint.Secrets() }

// Offers implements [mcpproxy.Guard].
func (g *guard) Offers(tool string) bool {
	return g.Server.Only == nil || slices.Contains(g.Server.Only, tool)
}

// Method implements [mcpproxy.Guard]. A read token may do what changes nothing.
func (g *guard) Method(ctx context.Context, method string) error {
	switch group, _, _ := strings.Cut(method, "/"); group {
	case "resources", "prompts", "completion":
		if g.Server.Only != nil {
			return artel.Errorf(artel.NotFound, "mcpwrapped", artel.Shorten(method, 60), "the entry of the MCP server %s offers some tools (tools), and nothing else", g.Server.Name)
		}
		return access.Require(ctx, store.ScopeRead)
	case "initialize", "server", "ping", "logging", "subscriptions":
		return access.Require(ctx, store.ScopeRead)
	}
	switch method {
	case "tools/list", "tasks/get", "tasks/result", "tasks/list":
		return access.Require(ctx, store.ScopeRead)
	}
	return access.Require(ctx, store.ScopeWrite)
}

// Call implements [mcpproxy.Guard]. What a server says about its tools is no reason to let
// those change things who may only read.
func (g *guard) Call(ctx context.Context, tool string, confirmed bool) error {
	if err := access.Require(ctx, store.ScopeWrite); err != nil {
		return artel.Errorf(artel.Denied, "mcpwrapped", artel.Shorten(tool, 80), "a tool of another server may change things, which is not allowed: %w", err)
	}
	return g.app.Tools.Permit(g.Server.ToolName(tool), confirmed)
}

// longest is the most bytes of a line of the log.
const longest = 2000

// lines passes on what a program says, line by line.
type lines struct {
	say  func(string)
	rest string
}

// Write implements [io.Writer].
func (l *lines) Write(p []byte) (int, error) {
	l.rest += strings.ToValidUTF8(string(p), "\uFFFD")
	for {
		line, rest, ok := strings.Cut(l.rest, "\n")
		if !ok && len(l.rest) < longest {
			return len(p), nil
		}
		l.rest = rest
		if line = strings.TrimSpace(line); line != "" {
			l.say(artel.Shorten(cmp.Or(line, "-"), longest))
		}
	}
}
