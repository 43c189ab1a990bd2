// SPDX-License-Identifier: Apache-2.0

// Package mcp offers the tools of MCP servers to agents.
//
// A [Server] describes how to reach one: a program that speaks on its standard
// input and output, or an address that speaks streamable HTTP. A [Pool] keeps
// the connections: [Pool.Run] connects, reconnects with growing pauses, and
// follows changes of the lists; [Pool.Tools] returns the tools currently
// offered, with names that begin with the servers' names. [Pool.Put] and [Pool.Remove]
// change the servers at any time; [NewEndpoint] is for connections of one user that are not
// the pool's. A [Config] is a server as the configuration writes
// it, and [Look] shows what a server is and offers.
//
// Results become [tool.Result] values: texts pass the media extraction of the
// calling set, and pictures, sound and other bytes become artifacts of the
// conversation. A failure that the model can correct, or has to wait for, is a
// failed result. What a server asks people during a call goes to the [tool.Host] of the
// call, which also keeps what a call needs to continue after a restart. A [Library] has the
// resources and prompts of servers, for people. Servers get arguments and answers only.
//
// The protocol is that of modelcontextprotocol.io, implemented by the official
// SDK.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
)

// A Server describes one MCP server and how it may be used.
type Server struct {
	Name    string   // prefix of the names of its tools: 1 to 30 letters, digits or -
	Process *Process // a program; nil: URL
	Remote  *Remote  // an address; nil: Process
	// Only lists the tools to offer, by the server's names; nil: all.
	Only    []string
	Secrets tool.Secrets
	Limits  Limits
	Login   *Login // each user connects a Remote with an account of their own; nil: no accounts
}

// A Login says how users get access to a server (OAuth). Its fields may be empty: the
// server and its authorization server say the rest.
type Login struct {
	ClientID, ClientSecret string   // of a client that was registered at the authorization server
	Scopes                 []string // nil: those that the server names
}

// A Process is a program that speaks MCP on its standard input and output.
type Process struct {
	Args []string // program and arguments
	Env  []string // its whole environment, as NAME=value
	Dir  string
}

// A Remote is a server that speaks streamable HTTP.
type Remote struct {
	URL    string
	Header http.Header  // of every request; may hold secrets
	Client *http.Client // guarded against private addresses; should not follow redirects, which would get Header
}

// Limits bound the exchange with a server. Zero fields mean the defaults.
type Limits struct {
	Connect time.Duration // until its tools are listed; 0: 30 s
	Call    time.Duration // of a call without progress notifications; 0: 2 minutes. With them, a call may take ten times as long
}

func (l Limits) orDefault() Limits {
	return Limits{cmp.Or(l.Connect, 30*time.Second), cmp.Or(l.Call, 2*time.Minute)}
}

// maxName is the longest name of a server; it leaves room for the names of
// tools.
const maxName = 30

// Check returns the first mistake in s; nil: none.
func (s Server) Check() error {
	switch {
	case s.Name == "" || len(s.Name) > maxName || strings.ContainsFunc(s.Name, notInName):
		return fmt.Errorf("name: want 1 to %d letters, digits or -", maxName)
	case (s.Process == nil) == (s.Remote == nil):
		return errors.New("want either command or url")
	case s.Process != nil && (len(s.Process.Args) == 0 || s.Process.Args[0] == ""):
		return errors.New("command is empty")
	}
	if s.Remote == nil {
		if s.Login != nil {
			return errors.New("auth: only servers at a url have accounts")
		}
		return nil
	}
	u, err := url.Parse(s.Remote.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return errors.New("url: want http://host/path or https://host/path, without a name and password")
	}
	return nil
}

func notInName(r rune) bool {
	return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// The pauses before reconnecting, and the interval of keep-alive pings.
const (
	firstPause = 500 * time.Millisecond
	maxPause   = time.Minute
	keepAlive  = 20 * time.Second // between pings
)

// A Pool keeps the connections to servers. It is safe for concurrent use.
type Pool struct {
	log *slog.Logger

	mu      sync.Mutex
	servers []*connection
	start   func(*connection) // nil: Run does not run
	tokens  Tokens            // of users; nil: none

	endpoints map[*Endpoint]bool
}

// NewPool makes a pool, which connects in [Pool.Run]. The error, of kind
// Invalid, names a server that is invalid or given twice.
func NewPool(servers []Server, log *slog.Logger) (*Pool, error) {
	if log == nil {
		log = slog.Default()
	}
	p := &Pool{log: log, endpoints: map[*Endpoint]bool{}}
	for _, s := range servers {
		err := s.Check()
		if p.has(s.Name) {
			err = errors.New("two servers have this name")
		}
		if err != nil {
			return nil, artel.Errorf(artel.Invalid, "mcp.NewPool", artel.Shorten(s.Name, 80), "%w", err)
		}
		p.servers = append(p.servers, p.connection(s))
	}
	return p, nil
}

func (p *Pool) connection(s Server) *connection {
	s.Limits = s.Limits.orDefault()
	c := newConnection(s, p.log)
	if s.Login != nil {
		c.users, c.state = &accounts{front: c, tokens: p.tokens, users: map[artel.Owner]*account{}}, tool.ServerPerUser
	}
	return c
}

func (p *Pool) has(name string) bool {
	return slices.ContainsFunc(p.all(), func(c *connection) bool { return c.server.Name == name })
}

// all returns the servers of this moment.
func (p *Pool) all() []*connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.servers)
}

// Put adds a server, or replaces that of its name, which must be valid. While
// [Pool.Run] runs, it is connected to at once. Calls of the replaced one end as they
// would have; its connection is closed after them.
func (p *Pool) Put(s Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.connection(s)
	p.depart(s.Name, "")
	p.servers = slices.Clone(p.servers)
	if at := slices.IndexFunc(p.servers, func(o *connection) bool { return o.server.Name == s.Name }); at >= 0 {
		p.servers[at].leave()
		p.servers[at] = c
	} else {
		p.servers = append(p.servers, c)
	}
	if p.start != nil {
		p.start(c)
	}
}

// Remove takes a server away, if there is one of the name. Its tools are gone at once;
// calls that run end as they would have, and its connection is closed after them.
func (p *Pool) Remove(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.depart(name, "")
	p.servers = slices.DeleteFunc(slices.Clone(p.servers), func(c *connection) bool {
		if c.server.Name != name {
			return false
		}
		c.leave()
		return true
	})
}

// Run keeps all connections until ctx ends, and returns after they are closed
// and the programs have ended, with all programs that these started.
func (p *Pool) Run(ctx context.Context) {
	var wg sync.WaitGroup
	p.mu.Lock()
	p.start = func(c *connection) { wg.Go(func() { c.run(ctx) }) }
	for _, c := range p.servers {
		p.start(c)
	}
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock()
	p.start = nil
	p.mu.Unlock()
	wg.Wait()
}

// Prefixes returns the prefixes of the names of all present and future tools.
func (p *Pool) Prefixes() []string {
	all := p.all()
	out := make([]string, len(all))
	for i, c := range all {
		out[i] = c.server.prefix()
	}
	return out
}

// Tools returns the tools of the connected servers for a user, in the order of the
// servers and of their lists.
func (p *Pool) Tools(owner artel.Owner) []tool.Tool {
	var out []tool.Tool
	for _, c := range p.all() {
		if c.users != nil {
			out = append(out, c.users.tools(owner)...)
		} else {
			out = append(out, c.currentTools()...)
		}
	}
	return out
}

// Health returns the state of each server.
func (p *Pool) Health() []tool.ServerHealth {
	all := p.all()
	out := make([]tool.ServerHealth, len(all))
	for i, c := range all {
		out[i] = c.health()
	}
	return out
}

// pause returns the wait after this many failures in a row: it doubles each
// time, with jitter, so that servers are not called all at once.
func pause(failures int) time.Duration {
	d := firstPause << min(failures, 10)
	d = min(d, maxPause)
	return d/2 + rand.N(d/2+1)
}
