// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/internal/fetch"
)

// mcpConfig is an entry of mcp: a server with tools for agents, whose names
// begin with the server's and "_".
type mcpConfig struct {
	Name    string            `yaml:"name"`    // 1 to 30 letters, digits or -
	Command []string          `yaml:"command"` // program and arguments, run in the folder of this file
	Env     map[string]string `yaml:"env"`     // for the command, besides PATH, HOME, LANG and TMPDIR; "${NAME}" is expanded from the environment
	URL     string            `yaml:"url"`     // streamable HTTP, instead of command
	Headers map[string]string `yaml:"headers"` // of requests to url; "${NAME}" is expanded from the environment
	Tools   []string          `yaml:"tools"`   // offered tools, by the server's names; default: all
	Timeout string            `yaml:"timeout"` // of a call without a sign of progress, as 30s; default 2m, at most 1h
	Agents  []artel.AgentName `yaml:"agents"`  // agents that get all tools without naming them in their own files
}

// maxMCPTime is the longest timeout of a call without a sign of progress.
const maxMCPTime = time.Hour

// mcpServers opens the pool of configured servers, nil if there are none, and
// adds their tools to the configured agents. The error, of kind Invalid, names
// the entry.
func (c config) mcpServers(agents []agent.Definition, getenv func(string) string, pool func([]mcp.Server) (*mcp.Pool, error)) (*mcp.Pool, []agent.Definition, error) {
	if len(c.MCP) == 0 {
		return nil, agents, nil
	}
	agents = slices.Clone(agents)
	servers := make([]mcp.Server, len(c.MCP))
	for i, entry := range c.MCP {
		s, err := entry.server(c, getenv)
		if err == nil {
			err = s.Check()
		}
		for _, name := range entry.Agents {
			at := slices.IndexFunc(agents, func(d agent.Definition) bool { return d.Name == name })
			if at < 0 {
				err = cmp.Or(err, fmt.Errorf("agents: there is no agent %q", artel.Shorten(string(name), 60)))
				continue
			}
			if all := entry.Name + "_*"; !slices.Contains(agents[at].Tools, all) {
				agents[at].Tools = append(slices.Clone(agents[at].Tools), all)
			}
		}
		if err != nil {
			return nil, nil, artel.Errorf(artel.Invalid, "config", c.path, "mcp[%d] %s: %w", i, artel.Shorten(entry.Name, 80), err)
		}
		servers[i] = s
	}
	p, err := pool(servers)
	return p, agents, err
}

func (m mcpConfig) server(c config, getenv func(string) string) (mcp.Server, error) {
	s := mcp.Server{Name: m.Name, Only: m.Tools, Secrets: map[string]string{}}
	var err error
	if m.Timeout != "" {
		if s.Limits.Call, err = time.ParseDuration(m.Timeout); err != nil || s.Limits.Call <= 0 || s.Limits.Call > maxMCPTime {
			return s, fmt.Errorf("timeout is %q: want a time up to %v, as in 30s", artel.Shorten(m.Timeout, 40), maxMCPTime)
		}
	}
	for _, values := range []map[string]string{m.Env, m.Headers} {
		for _, v := range values {
			for _, found := range variable.FindAllStringSubmatch(v, -1) {
				s.Secrets[found[1]] = getenv(found[1])
			}
		}
	}
	switch {
	case m.URL != "" && m.Env != nil:
		return s, errors.New("env is for commands")
	case m.URL == "" && m.Headers != nil:
		return s, errors.New("headers are for addresses")
	}
	if m.URL != "" {
		headers, err := expanded("headers", m.Headers, getenv)
		if err != nil {
			return s, err
		}
		// The operator chose the address, so it may be on this machine.
		s.Remote = &mcp.Remote{URL: m.URL, Header: http.Header{}, Client: fetch.NewClient(fetch.Options{AllowPrivate: true, MaxRedirects: -1})}
		for k, v := range headers {
			s.Remote.Header.Set(k, v)
		}
	}
	if len(m.Command) > 0 {
		env, err := expanded("env", m.Env, getenv)
		if err != nil {
			return s, err
		}
		s.Process = &mcp.Process{Args: m.Command, Dir: c.relative(".")}
		for _, k := range []string{"PATH", "HOME", "LANG", "TMPDIR"} {
			if v := getenv(k); v != "" {
				s.Process.Env = append(s.Process.Env, k+"="+v)
			}
		}
		for k, v := range env {
			s.Process.Env = append(s.Process.Env, k+"="+v)
		}
	}
	return s, nil
}

// mcpStartupWait is how long a start waits for the servers, so that resumed runs
// find their tools. Later servers are available to later runs.
const mcpStartupWait = 700 * time.Millisecond

// connect keeps the connections of the pool until the server shuts down.
func (s *server) connect(ctx context.Context, p *mcp.Pool) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { defer close(done); p.Run(running) }()
	s.close = append(s.close, func() error { stop(); <-done; return nil })
	soon, enough := context.WithTimeout(ctx, mcpStartupWait)
	defer enough()
	p.Ready(soon)
}

func toolServersCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "servers", Short: "Show the state of the MCP servers of a running server", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := g.client().ToolServers(cmd.Context())
			if err != nil {
				return err
			}
			return g.print(cmd, list, func(p printer) {
				for _, s := range list.Items {
					p.linef("%s\t%s\t%d tools\t%s", s.Name, s.State, s.Tools, s.Error)
				}
			})
		},
	}
}

// checkedMCP validates mcp without connecting.
func (c config) checkedMCP(agents []agent.Definition) error {
	_, _, err := c.mcpServers(agents, os.Getenv, func(all []mcp.Server) (*mcp.Pool, error) { return mcp.NewPool(all, nil) })
	return err
}
