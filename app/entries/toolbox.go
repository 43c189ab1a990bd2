// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// ToolsConfig has what a toolbox needs to know of the rest of the deployment.
type ToolsConfig struct {
	Fixed    tool.Catalog      // the tools that are built in and of the configuration
	Files    []FileTool        // the entries of the configuration
	Agents   []artel.AgentName // that are the same for all users
	Reserved []string          // more names that no tool may have
}

// A FileTool is an entry of the configuration, which is only listed here. Fields have no
// secrets.
type FileTool struct {
	Kind   store.EntryKind
	Name   string
	Origin string // the file
	Fields map[string]any
}

// A Toolbox has the tools that administrators add: MCP servers and HTTP tools. It
// implements [tool.Servers] and is safe for concurrent use.
type Toolbox struct {
	*Vault
	MCP  *ToolEntries
	HTTP *ToolEntries

	c     ToolsConfig
	pool  *mcp.Pool
	begin sync.Once
	end   func() // waits until the connections are closed
	state atomic.Pointer[toolState]

	changing sync.Mutex // held while entries are changed and applied
	made     map[entryKey]madeTool
}

type entryKey struct {
	kind store.EntryKind
	id   string
}

// A madeTool is an entry in use.
type madeTool struct {
	from string // the entry
	parsedTool
}

// A toolState is what the entries stand for at a moment. It does not change.
type toolState struct {
	tools    []tool.Tool // HTTP tools
	granted  map[artel.AgentName][]string
	problems map[entryKey]toolProblem
}

type toolProblem struct {
	problem model.Problem
	detail  string
}

// NewToolbox returns the tools of a deployment that are stored in v. They are available
// after [Toolbox.Load].
func NewToolbox(v *Vault, c ToolsConfig) *Toolbox {
	b := &Toolbox{Vault: v, c: c, made: map[entryKey]madeTool{}, end: func() {}}
	b.MCP, b.HTTP = &ToolEntries{b, serverKind()}, &ToolEntries{b, httpKind()}
	b.pool, _ = mcp.NewPool(nil, v.o.Log) // without servers none is invalid
	b.state.Store(&toolState{})
	return b
}

// Tools implements [tool.Servers].
func (b *Toolbox) Tools(owner artel.Owner) []tool.Tool {
	return append(b.pool.Tools(owner), b.state.Load().tools...)
}

// Await implements [tool.Servers].
func (b *Toolbox) Await(ctx context.Context, owner artel.Owner) { b.pool.Await(ctx, owner) }

// Pool has the connections to the servers of the entries.
func (b *Toolbox) Pool() *mcp.Pool { return b.pool }

// Prefixes implements [tool.Servers].
func (b *Toolbox) Prefixes() []string { return b.pool.Prefixes() }

// Health implements [tool.Servers].
func (b *Toolbox) Health() []tool.ServerHealth { return b.pool.Health() }

// Granted returns the tools that an agent gets without naming them.
func (b *Toolbox) Granted(agent artel.AgentName) []string { return b.state.Load().granted[agent] }

// Times to wait for servers: at the start, so that resumed runs find their tools, and
// after a change, so that the next message does.
const (
	startWait  = 700 * time.Millisecond
	changeWait = 8 * time.Second
)

// Load reads the entries and connects to the servers, for which it waits a moment.
func (b *Toolbox) Load(ctx context.Context) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	return b.apply(ctx, startWait)
}

// Close closes the connections. Calls that run end.
func (b *Toolbox) Close() {
	b.begin.Do(func() {}) // no connection begins any more
	b.end()
}

// connect keeps the connections until Close.
func (b *Toolbox) connect(ctx context.Context) {
	b.begin.Do(func() {
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		done := make(chan struct{})
		go func() { defer close(done); b.pool.Run(running) }()
		b.end = func() { stop(); <-done }
	})
}

// apply makes the entries effective. b.changing is held.
func (b *Toolbox) apply(ctx context.Context, wait time.Duration) error {
	next := &toolState{granted: map[artel.AgentName][]string{}, problems: map[entryKey]toolProblem{}}
	wanted := map[entryKey]bool{}
	for _, k := range []toolKind{b.MCP.kind, b.HTTP.kind} {
		all, err := b.list(ctx, k.kind)
		if err != nil {
			return err
		}
		var lost error
		for _, e := range all {
			at := entryKey{k.kind, e.ID}
			p, problem, err := b.use(k, e)
			if problem.problem == model.SecretUnreadable {
				lost = cmp.Or(lost, err)
			}
			if problem.problem != "" {
				next.problems[at] = problem
				continue
			}
			wanted[at] = true
			pattern := p.name
			if k.kind == store.MCPServerEntry {
				pattern += "_*"
			} else {
				next.tools = append(next.tools, p.tool)
			}
			for _, a := range p.agents {
				next.granted[a] = append(next.granted[a], pattern)
			}
		}
		b.report(ctx, k.kind, lost)
	}
	for at, m := range b.made {
		if wanted[at] {
			continue
		}
		delete(b.made, at)
		if at.kind == store.MCPServerEntry {
			b.pool.Remove(at.id)
		} else {
			m.client.CloseIdleConnections()
		}
	}
	b.state.Store(next)
	b.connect(ctx)
	soon, enough := context.WithTimeout(ctx, wait)
	defer enough()
	b.pool.Await(soon, "")
	return nil
}

// use returns what an entry stands for, and makes it anew if the entry has changed.
func (b *Toolbox) use(k toolKind, e store.Entry) (parsedTool, toolProblem, error) {
	at := entryKey{k.kind, e.ID}
	if e.Disabled {
		return parsedTool{}, toolProblem{problem: model.Disabled}, nil
	}
	from := string(e.Fields) + "\x00" + string(e.Secrets)
	before, known := b.made[at]
	if !known || before.from != from {
		fields, err := fieldsOf(e)
		if err != nil {
			return parsedTool{}, toolProblem{model.BadAnswer, artel.Shorten(err.Error(), 300)}, err
		}
		s, err := open(b.secrets, e)
		if err != nil {
			return parsedTool{}, toolProblem{model.SecretUnreadable, artel.Shorten(err.Error(), 300)}, err
		}
		_, p, err := k.read(fields, s)
		if err != nil { // of an older version
			return parsedTool{}, toolProblem{model.BadAnswer, artel.Shorten(err.Error(), 300)}, err
		}
		if err := b.collides(k.kind, p.name, nil); err != nil {
			return parsedTool{}, toolProblem{model.IDTaken, e.ID}, err
		}
		if k.kind == store.MCPServerEntry {
			b.pool.Put(p.server)
		} else if known {
			before.client.CloseIdleConnections()
		}
		before = madeTool{from, p}
		b.made[at] = before
	}
	return before.parsedTool, toolProblem{}, nil
}

// collides refuses a name that another tool or server has, or that would hide tools.
// stored are the entries of both kinds; those of the configuration are always regarded.
func (b *Toolbox) collides(kind store.EntryKind, name string, stored []entryKey) error {
	conflict := func(format string, args ...any) error {
		return artel.Errorf(artel.Conflict, "entries", artel.Shorten(name, 80), format, args...)
	}
	tools := slices.Concat(b.c.Fixed.BuiltIn.Names(), b.c.Reserved)
	var servers []string
	for _, h := range b.c.Fixed.Health() {
		servers = append(servers, h.Name)
	}
	for _, at := range stored {
		if at.kind == store.MCPServerEntry {
			servers = append(servers, at.id)
		} else {
			tools = append(tools, at.id)
		}
	}
	if kind == store.MCPServerEntry {
		if slices.Contains(servers, name) {
			return conflict("another MCP server has this name; choose another one")
		}
		if at := slices.IndexFunc(tools, func(t string) bool { return strings.HasPrefix(t, name+"_") }); at >= 0 {
			return conflict("names of its tools would begin as that of the tool %s; choose another one", artel.Shorten(tools[at], 80))
		}
		return nil
	}
	if slices.Contains(tools, name) {
		return conflict("another tool has this name; choose another one")
	}
	if at := slices.IndexFunc(servers, func(s string) bool { return strings.HasPrefix(name, s+"_") }); at >= 0 {
		return conflict("names of the tools of the MCP server %s begin like this; choose another one", artel.Shorten(servers[at], 80))
	}
	return nil
}

// checkAgents refuses agents that do not exist for all users.
func (b *Toolbox) checkAgents(p parsedTool) error {
	for _, a := range p.agents {
		if !slices.Contains(b.c.Agents, a) {
			return artel.Errorf(artel.Invalid, "entries", artel.Shorten(p.name, 60), "agents: there is no agent %q in the files of this deployment; there are: %s. Other agents name the tool among their own", artel.Shorten(string(a), 60), strings.Trim(fmt.Sprint(b.c.Agents), "[]"))
		}
	}
	return nil
}
