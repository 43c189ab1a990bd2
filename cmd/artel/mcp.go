// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/mcp"
)

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
		s, err := c.mcpServer(entry, getenv)
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

func (c config) mcpServer(m mcp.Config, getenv func(string) string) (mcp.Server, error) {
	secret := map[string]string{"client_secret": m.ClientSecret}
	secrets := variablesIn(getenv, m.Env, m.Headers, secret)
	var err error
	if m.Headers, err = expanded("headers", m.Headers, getenv); err != nil {
		return mcp.Server{}, err
	}
	if m.Env, err = expanded("env", m.Env, getenv); err != nil {
		return mcp.Server{}, err
	}
	if secret, err = expanded("client_secret", secret, getenv); err != nil {
		return mcp.Server{}, err
	}
	m.ClientSecret = secret["client_secret"]
	s, err := m.Server(secrets)
	if err != nil || s.Process == nil {
		return s, err
	}
	s.Process.Dir = c.relative(".")
	var env []string
	for _, k := range []string{"PATH", "HOME", "LANG", "TMPDIR"} {
		if v := getenv(k); v != "" {
			env = append(env, k+"="+v)
		}
	}
	s.Process.Env = append(env, s.Process.Env...)
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
	p.Await(soon, "")
}

// pools leaves out those that are nil.
func pools(all ...*mcp.Pool) []*mcp.Pool {
	return slices.DeleteFunc(all, func(p *mcp.Pool) bool { return p == nil })
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
