// SPDX-License-Identifier: Apache-2.0

// Package mcp makes the tools of MCP servers tools of agents.
//
// A [Server] says how to reach one: a program that speaks on its standard input
// and output, or an address that speaks streamable HTTP. A [Pool] keeps the
// connections: [Pool.Run] connects, connects again with growing pauses when one
// is lost, and takes over changes of the lists; [Pool.Tools] are what the
// servers offer right now, under names that begin with their servers'.
//
// What a tool returns becomes a [tool.Result]: texts pass the scrubber of the
// box that calls, and pictures, sound and other bytes become artifacts of the
// conversation. A failure that the model can mend, or can only wait for, is a
// result that says so. Servers are asked for nothing but tools and resources,
// and are given nothing but arguments.
//
// The protocol is that of modelcontextprotocol.io, spoken by the official SDK.
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

// A Server is how one MCP server is reached, and what may be done there.
type Server struct {
	Name    string   // begins the names of its tools: 1 to 30 letters, digits or -
	Process *Process // a program; nil: URL
	Remote  *Remote  // an address; nil: Process
	// Only are the tools that are offered, by the names that the server gives
	// them; nil: all.
	Only    []string
	Secrets tool.Secrets
	Limits  Limits
}

// A Process is a program that speaks MCP on its standard input and output.
type Process struct {
	Args []string // program and arguments
	Env  []string // all of its environment, as NAME=value
	Dir  string
}

// A Remote is a server that speaks streamable HTTP.
type Remote struct {
	URL    string
	Header http.Header  // of each request; may hold secrets
	Client *http.Client // guarded; should follow no redirects, since it would carry Header there
}

// Limits bound the exchange with a server. Zero fields mean the defaults.
type Limits struct {
	Connect time.Duration // until it has told its tools; 0: 30 s
	Call    time.Duration // of a call without a sign of progress; 0: 2 minutes. One with signs may take ten times as long
}

func (l Limits) orDefault() Limits {
	return Limits{cmp.Or(l.Connect, 30*time.Second), cmp.Or(l.Call, 2*time.Minute)}
}

// maxName is the longest name of a server, so that names of tools have room.
const maxName = 30

// Check says what is wrong in s; nil: nothing.
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

// How long a server is left alone after it was lost or not reached: the first
// time, and at most.
const (
	firstPause = 500 * time.Millisecond
	maxPause   = time.Minute
	keepAlive  = 20 * time.Second // between looks whether it is still there
)

// A Pool keeps the connections to servers. It is safe for concurrent use.
type Pool struct {
	servers []*connection
}

// NewPool makes a pool; nobody is connected to before [Pool.Run]. The error, of
// kind Invalid, names the server that is wrong or there twice.
func NewPool(servers []Server, log *slog.Logger) (*Pool, error) {
	if log == nil {
		log = slog.Default()
	}
	p := &Pool{}
	for _, s := range servers {
		err := s.Check()
		if p.has(s.Name) {
			err = errors.New("two servers have this name")
		}
		if err != nil {
			return nil, artel.Errorf(artel.Invalid, "mcp.NewPool", artel.Shorten(s.Name, 80), "%w", err)
		}
		s.Limits = s.Limits.orDefault()
		p.servers = append(p.servers, newConnection(s, log))
	}
	return p, nil
}

func (p *Pool) has(name string) bool {
	return slices.ContainsFunc(p.servers, func(c *connection) bool { return c.server.Name == name })
}

// Run keeps all connections until ctx ends, and returns when they are closed
// and the programs have ended.
func (p *Pool) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range p.servers {
		wg.Go(func() { c.run(ctx) })
	}
	wg.Wait()
}

// Ready waits until every server was connected to, or could not be, once.
func (p *Pool) Ready(ctx context.Context) {
	for _, c := range p.servers {
		select {
		case <-c.firstAttempt:
		case <-ctx.Done():
			return
		}
	}
}

// Prefixes are what the names of all tools begin with, now and later.
func (p *Pool) Prefixes() []string {
	out := make([]string, len(p.servers))
	for i, c := range p.servers {
		out[i] = c.server.prefix()
	}
	return out
}

// Tools are the tools of the servers that are connected to, in the order of
// the servers and of their lists.
func (p *Pool) Tools() []tool.Tool {
	var out []tool.Tool
	for _, c := range p.servers {
		out = append(out, c.currentTools()...)
	}
	return out
}

// Health says how each server is doing.
func (p *Pool) Health() []tool.ServerHealth {
	out := make([]tool.ServerHealth, len(p.servers))
	for i, c := range p.servers {
		out[i] = c.health()
	}
	return out
}

// pause is how long to wait after so many failures in a row: twice as long each
// time, a little more or less, so that servers are not asked all at once.
func pause(failures int) time.Duration {
	d := firstPause << min(failures, 10)
	d = min(d, maxPause)
	return d/2 + rand.N(d/2+1)
}
