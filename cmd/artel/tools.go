// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/fetch"
)

// toolConfig is an entry of tools: an HTTP API for agents.
type toolConfig struct {
	Name         string            `yaml:"name"`          // 1 to 64 letters, digits, "_" or "-"
	Description  string            `yaml:"description"`   // for the model: purpose and use
	Parameters   map[string]any    `yaml:"parameters"`    // JSON Schema of the arguments, of type object; default: none
	Method       string            `yaml:"method"`        // default: GET, or POST with a body
	URL          string            `yaml:"url"`           // "{name}" in path and query stands for an argument
	Headers      map[string]string `yaml:"headers"`       // "${NAME}" is expanded from the environment; never shown
	Body         any               `yaml:"body"`          // JSON with "{name}" in strings; default: the arguments that are not in url
	Idempotent   *bool             `yaml:"idempotent"`    // may be repeated and run in parallel; default: true for GET and HEAD
	Timeout      string            `yaml:"timeout"`       // as 20s; default 30s, at most 10m
	MaxAnswer    int64             `yaml:"max_answer"`    // bytes; default 8 MB
	AllowPrivate bool              `yaml:"allow_private"` // the host may be on this machine or in a private network
	Agents       []artel.AgentName `yaml:"agents"`        // agents that get the tool without naming it in their own files
}

// maxToolTime is the longest timeout of a call.
const maxToolTime = 10 * time.Minute

// toolConfigs returns the entries of tools and tools_dir.
func (c config) toolConfigs() ([]toolConfig, error) {
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
		var t toolConfig
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
		t, err := entry.tool(getenv)
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

func (t toolConfig) tool(getenv func(string) string) (tool.Tool, error) {
	out := tool.Tool{Name: t.Name, Doc: strings.TrimSpace(t.Description)}
	if out.Doc == "" {
		return out, errors.New("description is missing: the model needs to know what the tool does and when to use it")
	}
	schema := t.Parameters
	if schema == nil {
		schema = map[string]any{"type": "object", "properties": map[string]any{}}
	}
	var err error
	if out.Schema, err = json.Marshal(schema); err != nil {
		return out, fmt.Errorf("parameters cannot be written as JSON: %w", err)
	}
	p := tool.Endpoint{Method: strings.ToUpper(t.Method), URL: t.URL, Body: t.Body, Header: http.Header{}, Secrets: map[string]string{}}
	p.Limits.Answer = t.MaxAnswer
	if t.MaxAnswer < 0 {
		return out, fmt.Errorf("max_answer is %d: want a number of bytes, or none for the default", t.MaxAnswer)
	}
	if t.Timeout != "" {
		if p.Limits.Time, err = time.ParseDuration(t.Timeout); err != nil || p.Limits.Time <= 0 || p.Limits.Time > maxToolTime {
			return out, fmt.Errorf("timeout is %q: want a time up to %v, as in 20s", artel.Shorten(t.Timeout, 40), maxToolTime)
		}
	}
	headers, err := expanded("headers", t.Headers, getenv)
	if err != nil {
		return out, err
	}
	for k, v := range headers {
		p.Header.Set(k, v)
		for _, m := range variable.FindAllStringSubmatch(t.Headers[k], -1) {
			p.Secrets[m[1]] = getenv(m[1])
		}
	}
	if m := variable.FindString(t.URL); m != "" {
		return out, fmt.Errorf("url: %s is not expanded there, because addresses show in errors; send secrets in headers", m)
	}
	// Headers may hold secrets: redirects are not followed.
	p.Client = fetch.NewClient(fetch.Options{AllowPrivate: t.AllowPrivate, MaxRedirects: -1})
	again := p.Method == "" && t.Body == nil || p.Method == http.MethodGet || p.Method == http.MethodHead
	if t.Idempotent != nil {
		again = *t.Idempotent
	}
	if again {
		out.Repeat, out.Parallel = tool.RepeatAlways, true
	}
	return p.Tool(out)
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

func configuredTools(g *globals) ([]toolConfig, []tool.Tool, error) {
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
