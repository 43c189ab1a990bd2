// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// Agents are the use cases of agents. Shipped agents and those of files are the
// same for all users and read-only; each user can make others. A file hides a
// user's agent of the same name, which stays stored.
type Agents struct{ config *Config }

// An AgentSource is the origin of an agent.
type AgentSource string

// The sources.
const (
	AgentShipped AgentSource = "shipped" // it comes with Artel
	AgentFile    AgentSource = "file"    // the operator's
	AgentStored  AgentSource = "stored"  // made by a user
)

// An Agent is a definition with its origin.
type Agent struct {
	agent.Definition
	Source    AgentSource
	Revision  int           // of a stored one
	UpdatedAt time.Time     // of a stored one
	Runs      model.Service // that answers if a message names none; zero: it is unknown
	Missing   []string      // tools that it names and that do not exist now
}

// ReadOnly reports whether the agent cannot be changed here.
func (a Agent) ReadOnly() bool { return a.Source != AgentStored }

// Error codes.
const (
	// CodeAgentReadOnly is that of a change to an agent that is from a file.
	CodeAgentReadOnly = "agent_read_only"
	// CodeAgentExists is that of making an agent whose name is taken.
	CodeAgentExists = "agent_exists"
)

// definitions is the prefix of the settings in which agents are stored, as JSON.
// They are read without checks, so that stricter checks lose no agent.
const definitions = "definition/"

// maxAgents is how many agents a user can make.
const maxAgents = 500

func readAgent(s store.Setting) (Agent, error) {
	d, err := decoded[agent.Definition](s)
	if err != nil {
		return Agent{}, err
	}
	d.Name = artel.AgentName(strings.TrimPrefix(s.Name, definitions))
	return Agent{Definition: d, Source: AgentStored, Revision: s.Revision, UpdatedAt: s.UpdatedAt}, nil
}

// fixed returns the agents that are the same for all users.
func (k *Config) fixed() []Agent {
	out := make([]Agent, len(k.Agents))
	for i, d := range k.Agents {
		d.Tools = k.Tools.With(d.Name, d.Tools)
		out[i] = Agent{Definition: d, Source: AgentShipped}
		if d.File != "" {
			out[i].Source = AgentFile
		}
	}
	return out
}

// allAgents returns the agents of the user, those of files first. One that cannot
// be read is skipped and logged.
func (k *Config) allAgents(tx store.Tx) ([]Agent, error) {
	all := k.fixed()
	list, err := tx.Settings.List(definitions)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		a, err := readAgent(s)
		if err != nil {
			k.Logger.Error("an agent is left out", "err", err)
			continue
		}
		if !slices.ContainsFunc(k.Agents, func(d agent.Definition) bool { return d.Name == a.Name }) {
			all = append(all, a)
		}
	}
	return all, nil
}

// agent finds a definition; "" is the lead.
func (k *Config) agent(tx store.Tx, name artel.AgentName) (agent.Definition, error) {
	a, err := k.findAgent(tx, cmp.Or(name, agent.Lead))
	if errors.Is(err, artel.NotFound) {
		all, err := k.allAgents(tx)
		if err != nil {
			return agent.Definition{}, err
		}
		return agent.Definition{}, artel.Errorf(artel.Invalid, "app", "agent "+artel.Shorten(string(name), 80),
			"there is no such agent; there are: %s", strings.Join(agentNames(all), ", "))
	}
	return a.Definition, err
}

func agentNames(all []Agent) []string {
	out := make([]string, len(all))
	for i, a := range all {
		out[i] = string(a.Name)
	}
	return out
}

func (k *Config) findAgent(tx store.Tx, name artel.AgentName) (Agent, error) {
	for _, a := range k.fixed() {
		if a.Name == name {
			return a, nil
		}
	}
	s, err := tx.Settings.Get(definitions + string(name))
	if errors.Is(err, artel.NotFound) {
		return Agent{}, artel.Errorf(artel.NotFound, "settings.Agents", artel.Shorten(string(name), 80), "there is no such agent")
	}
	if err != nil {
		return Agent{}, err
	}
	return readAgent(s)
}

// WithSkill returns the agents that can open a skill.
func WithSkill(all []Agent, name string) (out []artel.AgentName) {
	for _, a := range all {
		if a.Skills.Has(name) {
			out = append(out, a.Name)
		}
	}
	return out
}

// served fills in who answers for an agent.
func (k *Config) withService(a Agent) Agent {
	a.Runs = k.Services.Default()
	if a.Service != "" {
		a.Runs, _ = k.Services.Lookup(a.Service)
	}
	return a
}

// List returns the agents, those of files first, then the stored ones by name.
func (as *Agents) List(ctx context.Context) (all []Agent, err error) {
	err = as.config.view(ctx, func(tx store.Tx) error {
		all, err = as.config.allAgents(tx)
		return err
	})
	tools := as.config.Tools.Set(artel.OwnerOf(ctx)).Names()
	for i := range all {
		all[i] = as.config.withService(all[i])
		all[i].Missing = as.config.missing(all[i].Tools, tools)
	}
	return all, err
}

// missing returns the names of a list of an agent for which there is no tool.
func (k *Config) missing(names, tools []string) (out []string) {
	prefixes := k.Tools.Prefixes()
	for _, n := range names {
		start, many := strings.CutSuffix(n, "*")
		there := n == agent.SubagentTool || n == tool.OpenSkill || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(n, p) }) ||
			slices.ContainsFunc(tools, func(t string) bool { return t == n || many && strings.HasPrefix(t, start) })
		if !there {
			out = append(out, n)
		}
	}
	return out
}

// Find returns one agent; kind NotFound where there is none of the name.
func (as *Agents) Find(ctx context.Context, name artel.AgentName) (a Agent, err error) {
	err = as.config.view(ctx, func(tx store.Tx) error {
		a, err = as.config.findAgent(tx, name)
		return err
	})
	a.Missing = as.config.missing(a.Tools, as.config.Tools.Set(artel.OwnerOf(ctx)).Names())
	return as.config.withService(a), err
}

// Check returns the flaws of a definition, but not that its name is taken.
func (as *Agents) Check(ctx context.Context, d agent.Definition) (flaws agent.Flaws, err error) {
	err = as.config.view(ctx, func(tx store.Tx) error {
		flaws, err = as.config.flaws(tx, d.Tidy())
		return err
	})
	return flaws, err
}

func (k *Config) flaws(tx store.Tx, d agent.Definition) (agent.Flaws, error) {
	all, err := k.allAgents(tx)
	if err != nil {
		return nil, err
	}
	known := agent.Known{Tools: append(k.Tools.Set("").Names(), agent.SubagentTool, tool.OpenSkill), Prefixes: k.Tools.Prefixes(), Agents: []artel.AgentName{d.Name}, Services: []artel.ServiceID{}}
	for _, a := range all {
		if a.Name != d.Name {
			known.Agents = append(known.Agents, a.Name)
		}
	}
	for _, s := range k.Services.All() {
		known.Services = append(known.Services, s.ID)
		if !s.Priced() {
			known.Unpriced = append(known.Unpriced, s.ID)
		}
	}
	if d.Service == model.AutoService {
		known.Services = append(known.Services, model.AutoService)
	}
	flaws := d.Check(known)
	if err := k.check(d.Processors); err != nil {
		flaws = append(flaws, agent.Wrong("processors", err))
	}
	return flaws, nil
}

// Create makes an agent. A definition with flaws is of kind Invalid with
// [agent.Flaws] in its chain, a name that is taken of kind Conflict, code
// CodeAgentExists.
func (as *Agents) Create(ctx context.Context, d agent.Definition) (Agent, error) {
	return as.keep(ctx, d, 0)
}

// Save replaces an agent; see [Agents.Create]. revision is that of the Agent
// that it replaces, or [AnyRevision]; another one is of kind Conflict, code
// [artifact.CodeStale]. One that is from a file is of kind Denied, code CodeAgentReadOnly,
// and none of kind NotFound.
func (as *Agents) Save(ctx context.Context, d agent.Definition, revision int) (Agent, error) {
	if revision == 0 {
		return Agent{}, &artel.Error{Op: "settings.Agents.Save", Subject: artel.Shorten(string(d.Name), 80), Kind: artel.Conflict, Code: artifact.CodeStale, Err: errStaleSettings}
	}
	return as.keep(ctx, d, revision)
}

func (as *Agents) keep(ctx context.Context, d agent.Definition, revision int) (a Agent, err error) {
	const op = "settings.Agents.Save"
	d = d.Tidy()
	subject := artel.Shorten(string(d.Name), 80)
	err = as.config.update(ctx, func(tx store.Tx) error {
		flaws, err := as.config.flaws(tx, d)
		if err != nil {
			return err
		}
		if len(flaws) > 0 {
			return artel.Errorf(artel.Invalid, op, subject, "%w", flaws)
		}
		now, err := as.config.findAgent(tx, d.Name)
		switch {
		case err == nil && revision == 0:
			return &artel.Error{Op: op, Subject: subject, Kind: artel.Conflict, Code: CodeAgentExists, Err: errors.New("there is an agent of this name; take another name, or change that one")}
		case err == nil && now.ReadOnly():
			return readOnly(op, now)
		case revision != 0 && err != nil, err != nil && !errors.Is(err, artel.NotFound):
			return err
		case err != nil:
			list, err := tx.Settings.List(definitions)
			if err == nil && len(list) >= maxAgents {
				err = artel.Errorf(artel.TooLarge, op, subject, "there are %d agents, and more are not taken; delete one", len(list))
			}
			if err != nil {
				return err
			}
		}
		if _, err := as.config.putTx(tx, definitions+string(d.Name), d, revision); err != nil {
			return err
		}
		a, err = as.config.findAgent(tx, d.Name)
		return err
	})
	return as.config.withService(a), err
}

func readOnly(op string, a Agent) error {
	why := "it comes with Artel"
	if a.Source == AgentFile {
		why = "it is defined by the file " + artel.Shorten(a.File, 80)
	}
	return &artel.Error{
		Op: op, Subject: artel.Shorten(string(a.Name), 80), Kind: artel.Denied, Code: CodeAgentReadOnly,
		Err: errors.New(why + " and cannot be changed here; change the file in agents_dir, or make an agent with another name"),
	}
}

// Delete takes an agent away, with what was set about its processors; see
// [Agents.Save] for the revision. Conversations that it has answered stay, and
// need another agent to continue.
func (as *Agents) Delete(ctx context.Context, name artel.AgentName, revision int) error {
	return as.config.update(ctx, func(tx store.Tx) error {
		a, err := as.config.findAgent(tx, name)
		if errors.Is(err, artel.NotFound) {
			return err
		}
		if err == nil && a.ReadOnly() { // one that cannot be read can be deleted
			return readOnly("settings.Agents.Delete", a)
		}
		for _, prefix := range []string{agentSettings, pictures} {
			if _, err = as.config.putTx(tx, prefix+string(name), nil, AnyRevision); err != nil {
				return err
			}
		}
		if _, err = as.config.putTx(tx, definitions+string(name), nil, revision); err != nil {
			return err
		}
		return audit.Record(ctx, tx, as.config.Now(), audit.Act{Action: audit.AgentDeleted, Target: string(name)})
	})
}
