// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app/entries"
	"github.com/artelhq/artel/store"
)

// toolConfigs returns the entries of tools and tools_dir.
func (c config) toolConfigs() ([]tool.EndpointConfig, error) {
	all := slices.Clone(c.Tools)
	if c.ToolsDir == "" {
		return all, nil
	}
	dir := c.relative(c.ToolsDir)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, artel.Errorf(artel.Invalid, "config", c.path, "tools_dir: there is no folder %s", dir)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, artel.Errorf(artel.Invalid, "config", c.path, "tools_dir: %w", err)
	}
	for _, path := range paths {
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, artel.Errorf(artel.Invalid, "config", path, "the tool cannot be read: %w", err)
		}
		var t tool.EndpointConfig
		if err := yaml.UnmarshalWithOptions(src, &t, yaml.Strict()); err != nil {
			return nil, artel.Errorf(artel.Invalid, "config", path, "%w", withLine(err))
		}
		all = append(all, t)
	}
	return all, nil
}

// tools builds the configured tools, and adds them to the configured agents.
// The error, of kind Invalid, names the entry.
func (c config) tools(agents []agent.Definition, getenv func(string) string) ([]tool.Tool, []agent.Definition, error) {
	entries, err := c.toolConfigs()
	if err != nil {
		return nil, nil, err
	}
	var out []tool.Tool
	agents = slices.Clone(agents)
	for i, entry := range entries {
		t, err := configuredTool(entry, getenv)
		for _, name := range entry.Agents {
			at := slices.IndexFunc(agents, func(d agent.Definition) bool { return d.Name == name })
			if at < 0 {
				err = cmp.Or(err, fmt.Errorf("agents: there is no agent %q", artel.Shorten(string(name), 60)))
				continue
			}
			if !slices.Contains(agents[at].Tools, entry.Name) {
				agents[at].Tools = append(slices.Clone(agents[at].Tools), entry.Name)
			}
		}
		if err != nil {
			return nil, nil, artel.Errorf(artel.Invalid, "config", c.path, "tools[%d] %s: %w", i, artel.Shorten(entry.Name, 80), err)
		}
		out = append(out, t)
	}
	if len(out) == 0 { // app.New checks the built-in tools
		return nil, agents, nil
	}
	if _, err := tool.NewSet(append(tool.BuiltIn(), out...)...); err != nil {
		return nil, nil, artel.Errorf(artel.Invalid, "config", c.path, "tools: %w", err)
	}
	return out, agents, nil
}

func configuredTool(t tool.EndpointConfig, getenv func(string) string) (tool.Tool, error) {
	if m := variable.FindString(t.URL); m != "" {
		return tool.Tool{}, fmt.Errorf("url: %s is not expanded there, because addresses show in errors; send secrets in headers", m)
	}
	secrets := variablesIn(getenv, t.Headers)
	var err error
	if t.Headers, err = expanded("headers", t.Headers, getenv); err != nil {
		return tool.Tool{}, err
	}
	return t.Tool(secrets, t.Client())
}

// fileTools returns the configured tools and servers, to be listed among those that
// administrators added. They are without headers and environment, and of a program only
// its name is shown: arguments may hold secrets.
func (c config) fileTools() []entries.FileTool {
	var out []entries.FileTool
	for _, m := range c.MCP {
		fields := map[string]any{"name": m.Name}
		if len(m.Command) > 0 {
			fields["command"] = m.Command[0]
		} else {
			fields["url"] = m.URL
		}
		out = append(out, entries.FileTool{Kind: store.MCPServerEntry, Name: m.Name, Origin: c.file(), Fields: fields})
	}
	tools, _ := c.toolConfigs() // their errors were reported before
	for _, t := range tools {
		out = append(out, entries.FileTool{Kind: store.HTTPToolEntry, Name: t.Name, Origin: c.file(), Fields: map[string]any{"name": t.Name, "description": t.Description, "url": t.URL}})
	}
	return out
}

// variablesIn returns the values of the variables that maps name.
func variablesIn(getenv func(string) string, all ...map[string]string) tool.Secrets {
	out := tool.Secrets{}
	for _, values := range all {
		for _, v := range values {
			for _, m := range variable.FindAllStringSubmatch(v, -1) {
				out[m[1]] = getenv(m[1])
			}
		}
	}
	return out
}

func toolsCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "tools", Short: "List and check the tools of the configuration"}
	list := &cobra.Command{
		Use: "list", Short: "List the tools that agents may call", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			conf, made, err := configuredTools(g)
			if err != nil {
				return err
			}
			type row struct {
				Name   string `json:"name"`
				Method string `json:"method,omitempty"`
				URL    string `json:"url,omitempty"` // "": built in
			}
			var rows []row
			for _, t := range tool.BuiltIn() {
				rows = append(rows, row{Name: t.Name})
			}
			for i, t := range made {
				rows = append(rows, row{t.Name, strings.ToUpper(conf[i].Method), conf[i].URL})
			}
			return g.print(cmd, rows, func(p printer) {
				for _, r := range rows {
					p.linef("%s\t%s\t%s", r.Name, r.Method, r.URL)
				}
			})
		},
	}
	check := &cobra.Command{
		Use: "check", Short: "Check tools, tools_dir and mcp", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, made, err := configuredTools(g)
			if err == nil {
				noun := "tools are"
				if len(made) == 1 {
					noun = "tool is"
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%d %s fine\n", len(made), noun)
			}
			return err
		},
	}
	cmd.AddCommand(list, check, toolServersCommand(g))
	return cmd
}

func configuredTools(g *globals) ([]tool.EndpointConfig, []tool.Tool, error) {
	conf, err := loadConfig(g.config)
	if err != nil {
		return nil, nil, err
	}
	agents, err := conf.agents()
	if err != nil {
		return nil, nil, err
	}
	entries, err := conf.toolConfigs()
	if err != nil {
		return nil, nil, err
	}
	made, agents, err := conf.tools(agents, os.Getenv)
	if err == nil {
		err = conf.checkedMCP(agents)
	}
	return entries, made, err
}
