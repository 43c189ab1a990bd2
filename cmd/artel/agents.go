// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/token"
)

func agentsCommand(g *globals) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List the agents of the server", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return g.listAgents(cmd) },
	}
	cmd := &cobra.Command{
		Use: "agents", Short: "List, show, check and make agents", Args: usage(cobra.NoArgs),
		Long: `An agent is a Markdown file: YAML front matter, then its role prompt. Without a verb,
lists the agents of the server.`,
		RunE: list.RunE,
	}
	cmd.AddCommand(list, g.showAgent(), g.checkAgents(), g.newAgent(), g.importAgent(), g.removeAgent())
	return cmd
}

func (g *globals) listAgents(cmd *cobra.Command) error {
	all, err := g.client().Agents(cmd.Context())
	if err != nil {
		return err
	}
	return g.print(cmd, all, func(w printer) {
		for _, a := range all.Items {
			from := string(a.Source)
			if a.File != "" {
				from += " " + a.File
			}
			w.line(fmt.Sprintf("%s\t%s\t%s", a.Name, from, artel.Shorten(a.Description, 100)))
		}
	})
}

func (g *globals) showAgent() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Print an agent as a Markdown file", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if g.json {
				a, err := g.client().Agent(cmd.Context(), artel.AgentName(args[0]))
				if err != nil {
					return err
				}
				return g.print(cmd, a, func(printer) {})
			}
			d, err := g.client().ExportAgent(cmd.Context(), artel.AgentName(args[0]))
			if err != nil {
				return err
			}
			_, err = io.Copy(cmd.OutOrStdout(), d)
			return errors.Join(err, d.Close())
		},
	}
}

// An agentReport is the result of agents check for one file.
type agentReport struct {
	File   string          `json:"file"`
	Name   artel.AgentName `json:"name,omitempty"`
	OK     bool            `json:"ok"`
	Errors []agentFault    `json:"errors"`
}

// An agentFault is one problem of a file.
type agentFault struct {
	Field  string `json:"field,omitempty"` // "": the file cannot be read
	Detail string `json:"detail"`
}

func (r *agentReport) add(field, detail string) {
	r.Errors = append(r.Errors, agentFault{field, detail})
}

func (g *globals) checkAgents() *cobra.Command {
	var language string
	cmd := &cobra.Command{
		Use: "check [FILE…]", Short: "Check agents' files, without a server", Args: usage(cobra.ArbitraryArgs),
		Long: `Checks the named files, or all files of agents_dir, and lists their problems by field: unknown keys,
tools and subagents, limits out of bounds, unusable processors and presets. The files may refer to each
other, to the agents of agents_dir and to built-in agents. Names of services are not checked, because
only a server knows all of them; a limit of cost is, against the services of the configuration.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := loadConfig(g.config)
			if err != nil {
				return err
			}
			own, err := c.agentFiles()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				if args = own; len(args) == 0 {
					return artel.Errorf(artel.Invalid, "agents check", "", "nothing to check: name files, or set agents_dir in the configuration")
				}
			}
			reports, err := c.checkAgents(args, own, phrase.ParseLocale(cmp.Or(language, c.Locale)))
			if err != nil {
				return err
			}
			bad := 0
			for _, r := range reports {
				if !r.OK {
					bad++
				}
			}
			err = g.print(cmd, httpapi.List[agentReport]{Items: reports}, func(w printer) {
				for _, r := range reports {
					if r.OK {
						w.line(fmt.Sprintf("%s: %s is in order", r.File, r.Name))
					}
					for _, e := range r.Errors {
						w.line(strings.TrimSuffix(r.File+": "+e.Field, ": ") + ": " + e.Detail)
					}
				}
			})
			if err == nil && bad > 0 {
				err = artel.Errorf(artel.Invalid, "agents check", "", "%d of %d files have something wrong", bad, len(reports))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&language, "locale", "", "language of the output: en or zh (default: the configuration's)")
	return cmd
}

// agentFiles lists the files of agents_dir.
func (c config) agentFiles() ([]string, error) {
	if c.AgentsDir == "" {
		return nil, nil
	}
	dir := c.relative(c.AgentsDir)
	names, err := fs.Glob(os.DirFS(dir), "*.md")
	for i, n := range names {
		names[i] = filepath.Join(dir, n)
	}
	return names, err
}

// checkAgents returns the problems of agents' files. The files may name each
// other, the agents of beside and the shipped agents.
func (c config) checkAgents(files, beside []string, l phrase.Locale) ([]agentReport, error) {
	plugins, err := c.plugins(os.Getenv)
	if err != nil {
		return nil, err
	}
	processors, err := pipeline.NewRegistry(token.NewCounter(), append(pipeline.BuiltIn(), plugins...)...)
	if err != nil {
		return nil, err
	}
	shipped, err := agent.Shipped()
	if err != nil {
		return nil, err
	}
	known := agent.Known{Tools: []string{agent.SubagentTool, tool.OpenSkill}}
	for _, t := range tool.BuiltIn() {
		known.Tools = append(known.Tools, t.Name)
	}
	configured, err := c.toolConfigs()
	if err != nil {
		return nil, err
	}
	for _, t := range configured {
		known.Tools = append(known.Tools, t.Name)
	}
	services, _, err := c.configured()
	if err != nil {
		return nil, err
	}
	for _, s := range services {
		known.Default = cmp.Or(known.Default, c.DefaultService, s.ID)
		if !s.Priced() {
			known.Unpriced = append(known.Unpriced, s.ID)
		}
	}
	for _, s := range c.MCP {
		known.Prefixes = append(known.Prefixes, s.Name+"_")
	}
	for _, d := range shipped {
		known.Agents = append(known.Agents, d.Name)
	}
	for _, path := range beside {
		if d, err := readAgentFile(path); err == nil {
			known.Agents = append(known.Agents, d.Name)
		}
	}
	reports, read := make([]agentReport, len(files)), make([]agent.Definition, len(files))
	for i, path := range files {
		reports[i] = agentReport{File: path, Errors: []agentFault{}}
		if read[i], err = readAgentFile(path); err != nil {
			reports[i].add("", strings.TrimPrefix(err.Error(), filepath.Base(path)+": "))
			continue
		}
		reports[i].Name = read[i].Name
		known.Agents = append(known.Agents, read[i].Name)
	}
	slices.Sort(known.Agents)
	known.Agents = slices.Compact(known.Agents)
	for i, d := range read {
		r := &reports[i]
		if r.Name != "" {
			for _, f := range d.Check(known) {
				r.add(f.Field, f.In(l))
			}
			if _, err := processors.Processors().Check(d.Processors); err != nil {
				r.add("processors", err.Error())
			}
			if slices.ContainsFunc(read[:i], func(o agent.Definition) bool { return o.Name == d.Name }) {
				r.add("name", fmt.Sprintf("another file defines %q already", d.Name))
			}
		}
		r.OK = len(r.Errors) == 0
	}
	return reports, nil
}

func readAgentFile(path string) (agent.Definition, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return agent.Definition{}, err
	}
	return agent.Read(filepath.Base(path), src)
}

func (g *globals) newAgent() *cobra.Command {
	return &cobra.Command{
		Use: "new NAME", Short: "Write the file of a new agent into agents_dir, or into the current folder if that is not set", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := loadConfig(g.config)
			if err != nil {
				return err
			}
			d := agent.Definition{
				Name: artel.AgentName(args[0]), Description: "Says in one sentence what it is for; other agents read this.",
				Tools: []string{"list_artifacts", "read_artifact", "grep_artifacts", "create_artifact", "update_artifact"}, Limits: agent.Limits{Turns: 40, ToolCalls: 200, Seconds: 3600},
				Prompt: "You are " + args[0] + ". Describe here who that is, the people it works for, and what a good result looks like.\n\nHow you work:\n\n" +
					"1. Look at what you were given before you judge it: `list_artifacts` names it, `read_artifact` reads it.\n" +
					"2. Write results that are longer than a few paragraphs with `create_artifact`, and mention them as `artifact:its_id`.\n" +
					"3. End with a short answer: what was found or made, where it is, and what is still open.",
			}
			if flaws := d.Check(agent.Known{}); len(flaws) > 0 {
				return artel.Errorf(artel.Invalid, "agents new", "", "%w", flaws)
			}
			path := args[0] + ".md"
			if c.AgentsDir != "" {
				path = filepath.Join(c.relative(c.AgentsDir), path)
			}
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if err != nil {
				return artel.Errorf(artel.Invalid, "agents new", path, "cannot be made: %w", err)
			}
			_, err = f.Write(d.Markdown())
			if err = errors.Join(err, f.Close()); err != nil {
				return artel.Errorf(artel.Unavailable, "agents new", path, "%w", err)
			}
			return g.print(cmd, map[string]string{"file": path}, func(w printer) {
				w.line(path)
				if c.AgentsDir == "" {
					w.line("set agents_dir to its folder, or bring it in with: artel agents import " + path)
				}
			})
		},
	}
}

func (g *globals) importAgent() *cobra.Command {
	var replace bool
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Import an agent from a Markdown file", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			src, err := os.ReadFile(args[0])
			if err != nil {
				return artel.Errorf(artel.Invalid, "agents import", args[0], "cannot be read: %w", err)
			}
			a, err := g.client().ImportAgent(cmd.Context(), strings.TrimSuffix(filepath.Base(args[0]), ".md"), src, replace)
			if err != nil {
				return err
			}
			return g.print(cmd, a, func(w printer) { w.line("imported " + string(a.Name)) })
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "replace an existing agent of the same name")
	return cmd
}

func (g *globals) removeAgent() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Delete an agent from the server", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := g.client().DeleteAgent(cmd.Context(), artel.AgentName(args[0])); err != nil {
				return err
			}
			return g.print(cmd, map[string]string{"deleted": args[0]}, func(w printer) { w.line("deleted " + args[0]) })
		},
	}
}
