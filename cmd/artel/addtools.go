// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/entries"
	"github.com/artelhq/artel/httpapi"
)

func mcpCommand(g *globals) *cobra.Command {
	var conversation string
	cmd := &cobra.Command{
		Use: "mcp", Short: "Give an MCP host artifacts, over standard input and output; manage MCP servers", Args: usage(cobra.NoArgs),
		Long: `Without a subcommand: serves the artifacts of a user to a host that speaks the Model
Context Protocol, such as a coding agent, on standard input and output. It uses the
server of --server or ARTEL_URL, otherwise the one that uses the data directory, and
if none does, serves that itself. Several hosts share one server. A token, where a
login is needed, is in ARTEL_TOKEN.

The subcommands manage the MCP servers that administrators add to a running server,
beside those of its artel.yaml. Agents can use their tools at once. Programs can only
be configured in artel.yaml.`,
		Example: `  claude mcp add artel -- artel mcp
  artel mcp --conversation Work`,
	}
	options := attachFlags(cmd)
	cmd.Flags().StringVar(&conversation, "conversation", "", "id or title of the conversation whose artifacts are used (default: MCP); one with this title is made if there is none")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return g.serveMCP(cmd, options(), conversation) }
	cmd.AddCommand(proxyCommand(g), addServerCommand(g), listEntriesCommand(g, "List the MCP servers, how they are, and where they come from", httpapi.MCPServers), checkServerCommand(g), removeEntryCommand(g, "Delete an MCP server that was added", httpapi.MCPServers))
	cmd.AddCommand(connectAccountCommand(g), disconnectAccountCommand(g), listAccountsCommand(g))
	cmd.AddCommand(resourcesCommand(g), readResourceCommand(g), promptsCommand(g), getPromptCommand(g))
	return cmd
}

func httpToolsCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use: "http-tools", Short: "Add, check, list and remove the HTTP tools of a running server", Args: usage(cobra.NoArgs),
		Long: `Manages the HTTP tools that administrators add to a running server, beside those of its
artel.yaml. Agents can use them at once. A file has an entry as in tools_dir, with values in
the place of variables.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(addToolCommand(g), listEntriesCommand(g, "List the HTTP tools and where they come from", httpapi.HTTPTools), checkToolCommand(g), removeEntryCommand(g, "Delete an HTTP tool that was added", httpapi.HTTPTools))
	return cmd
}

// serverFlags describe an MCP server on the command line.
type serverFlags struct {
	url, timeout           string
	headers, tools, agents []string
	oauth                  bool
	client                 string
	scopes                 []string
}

func (f *serverFlags) declare(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.url, "url", "", "its address, such as https://tracker.example/mcp")
	flags.StringSliceVar(&f.headers, "header", nil, "name of a header whose value is read from standard input, one line each; may be repeated")
	flags.StringSliceVar(&f.tools, "tool", nil, "a tool to offer, by the server's own name; may be repeated (default: all)")
	flags.StringSliceVar(&f.agents, "agent", nil, "an agent of a file that gets the tools; may be repeated")
	flags.BoolVar(&f.oauth, "oauth", false, "each user connects it with an account of their own (artel mcp connect)")
	flags.StringVar(&f.client, "client-id", "", "with --oauth: the client that is registered at its authorization server, whose secret, if it has one, is the last line of standard input")
	flags.StringSliceVar(&f.scopes, "scope", nil, "with --oauth: what is asked for; may be repeated (default: what the server names)")
	flags.StringVar(&f.timeout, "timeout", "", "of a call without progress, as 30s (default: 2m)")
}

// entry returns the fields of an entry. Values of headers come from in: arguments are seen
// by other accounts of the machine.
func (f *serverFlags) entry(in io.Reader) (httpapi.ToolEntry, error) {
	e := httpapi.ToolEntry{}
	for key, value := range map[string]string{"url": f.url, "timeout": f.timeout} {
		if value != "" {
			e[key] = value
		}
	}
	if f.oauth {
		e["auth"] = "oauth"
	}
	if f.client != "" {
		e["client_id"] = f.client
	}
	for key, values := range map[string][]string{"tools": f.tools, "agents": f.agents, "scopes": f.scopes} {
		if len(values) > 0 {
			e[key] = values
		}
	}
	lines, headers := bufio.NewReader(io.LimitReader(in, 1<<16)), map[string]any{}
	for _, name := range f.headers {
		line, err := lines.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if line = strings.TrimSpace(line); line == "" {
			return nil, usageError{errors.New("--header " + name + ": there is no value on standard input")}
		}
		headers[name] = line
	}
	if len(headers) > 0 {
		e["headers"] = headers
	}
	if f.client != "" {
		line, err := lines.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if line = strings.TrimSpace(line); line != "" {
			e["client_secret"] = line
		}
	}
	return e, nil
}

func addServerCommand(g *globals) *cobra.Command {
	var f serverFlags
	cmd := &cobra.Command{
		Use: "add NAME --url URL", Short: "Add an MCP server, whose tools can be used at once", Args: usage(cobra.ExactArgs(1)),
		Example: `  artel mcp add search --url https://search.example/mcp --agent lead_agent
  artel mcp add tracker --url https://tracker.example/mcp --header Authorization < token.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := f.entry(cmd.InOrStdin())
			if err != nil {
				return err
			}
			e["name"] = args[0]
			made, err := httpapi.MCPServers(g.client()).Add(cmd.Context(), e)
			if err != nil {
				return err
			}
			return g.print(cmd, made, func(w printer) { printEntry(w, made) })
		},
	}
	f.declare(cmd)
	return cmd
}

// printEntry prints an entry and its tools.
func printEntry(w printer, e httpapi.ToolEntryView) {
	w.linef("%s\t%s\t%s", e.ID, stateOfEntry(e), e.Detail)
	for _, t := range e.Tools {
		if t.Name != e.ID {
			w.linef("tool\t%s", t.Name)
		}
	}
}

func stateOfEntry(e httpapi.ToolEntryView) string {
	switch {
	case e.Disabled:
		return "switched off"
	case e.Problem != "":
		return string(e.Problem)
	case e.State != "":
		return string(e.State)
	}
	return "ready"
}

func listEntriesCommand(g *globals, short string, of func(*httpapi.Client) httpapi.ToolsClient) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: short, Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := of(g.client()).List(cmd.Context())
			if err != nil {
				return err
			}
			return g.print(cmd, all, func(w printer) {
				for _, e := range all.Items {
					w.linef("%s\t%v\t%s\t%d tools\t%s\t%s", e.ID, e.Entry["url"], stateOfEntry(e), len(e.Tools), e.Origin, e.Detail)
				}
			})
		},
	}
}

func removeEntryCommand(g *globals, short string, of func(*httpapi.Client) httpapi.ToolsClient) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: short, Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return of(g.client()).Delete(cmd.Context(), args[0]) },
	}
}

// errNoTools makes the checks of tools exit with 1.
var errNoTools = errors.New("it does not work")

func printSteps(w printer, steps []entries.ToolStep) {
	for _, s := range steps {
		w.linef("%s\t%s\t%s\t%s", s.Name, s.State, s.Cause, explained(entries.CheckStep{Try: s.Try, Detail: s.Detail}))
	}
}

func checkServerCommand(g *globals) *cobra.Command {
	var f serverFlags
	cmd := &cobra.Command{
		Use: "check [NAME] --url URL", Short: "Try an MCP server, added or not: reach it, use its headers, speak the protocol, list its tools", Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := f.entry(cmd.InOrStdin())
			if err != nil {
				return err
			}
			if len(args) > 0 {
				stored, err := httpapi.MCPServers(g.client()).Get(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				for key, value := range stored.Entry {
					if _, given := e[key]; !given {
						e[key] = value
					}
				}
			}
			r, err := httpapi.CheckMCPServer(cmd.Context(), g.client(), e)
			if err != nil {
				return err
			}
			err = g.print(cmd, r, func(w printer) {
				printSteps(w, r.Items)
				for _, t := range r.Tools {
					w.linef("tool\t%s\t%s", t.Own, artel.Shorten(t.About, 100))
				}
			})
			if err == nil && !r.OK {
				err = errNoTools
			}
			return err
		},
	}
	f.declare(cmd)
	return cmd
}

// readEntry reads an entry of YAML or JSON; "-" is standard input.
func readEntry(cmd *cobra.Command, path string) (httpapi.ToolEntry, error) {
	var src []byte
	var err error
	if path == "-" {
		src, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), 1<<20))
	} else {
		src, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, artel.Errorf(artel.Invalid, "http-tools", path, "the file cannot be read: %w", err)
	}
	var e httpapi.ToolEntry
	if err := yaml.Unmarshal(src, &e); err != nil {
		return nil, artel.Errorf(artel.Invalid, "http-tools", path, "%w", withLine(err))
	}
	return e, nil
}

func addToolCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "add FILE", Short: "Add an HTTP tool, which can be used at once; - reads standard input", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := readEntry(cmd, args[0])
			if err != nil {
				return err
			}
			made, err := httpapi.HTTPTools(g.client()).Add(cmd.Context(), e)
			if err != nil {
				return err
			}
			return g.print(cmd, made, func(w printer) { printEntry(w, made) })
		},
	}
}

func checkToolCommand(g *globals) *cobra.Command {
	var arguments string
	cmd := &cobra.Command{
		Use: "check FILE", Short: "Check an HTTP tool that need not be added; with --arguments, call it once", Args: usage(cobra.ExactArgs(1)),
		Example: `  artel http-tools check weather.yaml --arguments '{"city": "Bergen"}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := readEntry(cmd, args[0])
			if err != nil {
				return err
			}
			var call json.RawMessage
			if arguments != "" {
				if call = json.RawMessage(arguments); !json.Valid(call) {
					return usageError{errors.New("--arguments: want a JSON object, as in '{\"city\": \"Bergen\"}'")}
				}
			}
			r, err := httpapi.CheckHTTPTool(cmd.Context(), g.client(), e, call)
			if err != nil {
				return err
			}
			err = g.print(cmd, r, func(w printer) {
				printSteps(w, r.Items)
				if len(r.Items) == 0 {
					w.linef("%s\tthe entry can be used", r.Tool.Name)
				}
				if r.Content != "" {
					w.line(r.Content)
				}
			})
			if err == nil && !r.OK {
				err = errNoTools
			}
			return err
		},
	}
	cmd.Flags().StringVar(&arguments, "arguments", "", "arguments of a call, as a JSON object")
	return cmd
}
