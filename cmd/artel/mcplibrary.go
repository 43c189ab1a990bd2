// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/httpapi"
)

// pages collects all pages of a list.
func pages[T any](ctx context.Context, page func(ctx context.Context, cursor string) (httpapi.List[T], error)) (all httpapi.List[T], err error) {
	all.Items = []T{}
	for cursor := ""; ; {
		some, err := page(ctx, cursor)
		if err != nil {
			return all, err
		}
		if all.Items = append(all.Items, some.Items...); some.Next == "" || some.Next == cursor {
			return all, nil
		}
		cursor = some.Next
	}
}

func resourcesCommand(g *globals) *cobra.Command {
	templates := false
	cmd := &cobra.Command{
		Use: "resources [NAME]", Short: "List the tool servers with resources or prompts, or the resources of one", Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			client := g.client()
			if len(args) == 0 {
				all, err := httpapi.ToolServers(cmd.Context(), client)
				return printAll(g, cmd, all, err, func(w printer, o mcp.ServerOffer) {
					w.linef("%s\t%s\tresources %t\tprompts %t", o.Name, o.State, o.Resources, o.Prompts)
				})
			}
			all, err := pages(cmd.Context(), func(ctx context.Context, cursor string) (httpapi.List[mcp.Resource], error) {
				return httpapi.ServerResources(ctx, client, args[0], cursor, templates)
			})
			return printAll(g, cmd, all, err, func(w printer, r mcp.Resource) {
				w.linef("%s\t%s\t%s", artel.Visible(r.URI), artel.Visible(r.Name), artel.Visible(r.Title))
			})
		},
	}
	cmd.Flags().BoolVar(&templates, "templates", false, "list the templates of addresses (RFC 6570) instead")
	return cmd
}

// printAll prints the entries of a list.
func printAll[T any](g *globals, cmd *cobra.Command, all httpapi.List[T], err error, line func(printer, T)) error {
	if err != nil {
		return err
	}
	return g.print(cmd, all, func(w printer) {
		for _, one := range all.Items {
			line(w, one)
		}
	})
}

func readResourceCommand(g *globals) *cobra.Command {
	conversation := ""
	cmd := &cobra.Command{
		Use: "read NAME URI", Short: "Read a resource of a tool server, or attach it to a conversation", Args: usage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, client := cmd.Context(), g.client()
			if conversation != "" {
				id, err := artel.ParseConversationID(conversation)
				if err != nil {
					return err
				}
				all, err := httpapi.AttachResource(ctx, client, id, httpapi.ResourceAttachment{Server: args[0], URI: args[1]})
				return printAll(g, cmd, all, err, func(w printer, a artel.Artifact) { w.linef("%s\t%s\t%s", a.Ref, a.MediaType, artel.Visible(a.Title)) })
			}
			all, err := httpapi.ReadServerResource(ctx, client, args[0], args[1])
			return g.printContents(cmd, all, err)
		},
	}
	cmd.Flags().StringVarP(&conversation, "conversation", "c", "", "make artifacts of a conversation of it, and print their refs")
	return cmd
}

// printContents writes contents as they are.
func (g *globals) printContents(cmd *cobra.Command, all httpapi.List[mcp.Content], err error) error {
	if err != nil {
		return err
	}
	return g.print(cmd, all, func(printer) {
		for _, c := range all.Items {
			switch {
			case c.Bytes != nil:
				_, _ = cmd.OutOrStdout().Write(c.Bytes)
			case c.Text != "":
				_, _ = io.WriteString(cmd.OutOrStdout(), strings.TrimSuffix(c.Text, "\n")+"\n")
			default:
				_, _ = io.WriteString(cmd.OutOrStdout(), c.URI+"\n")
			}
		}
	})
}

func promptsCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "prompts NAME", Short: "List the prompts of a tool server with their arguments", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := pages(cmd.Context(), func(ctx context.Context, cursor string) (httpapi.List[mcp.Prompt], error) {
				return httpapi.ServerPrompts(ctx, g.client(), args[0], cursor)
			})
			return printAll(g, cmd, all, err, func(w printer, p mcp.Prompt) {
				names := make([]string, len(p.Arguments))
				for i, a := range p.Arguments {
					if names[i] = a.Name + "="; !a.Required {
						names[i] = "[" + names[i] + "]"
					}
				}
				w.linef("%s\t%s\t%s", artel.Visible(p.Name), artel.Visible(strings.Join(names, " ")), artel.Visible(p.Description))
			})
		},
	}
}

func getPromptCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "prompt NAME PROMPT [ARGUMENT=VALUE]...", Short: "Print what a tool server makes of a prompt", Args: usage(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := httpapi.PromptRequest{Name: args[1], Arguments: map[string]string{}}
			for _, a := range args[2:] {
				name, value, ok := strings.Cut(a, "=")
				if !ok {
					return fmt.Errorf("%q: want ARGUMENT=VALUE", a)
				}
				in.Arguments[name] = value
			}
			all, err := httpapi.ServerPrompt(cmd.Context(), g.client(), args[0], in)
			return g.printContents(cmd, all, err)
		},
	}
}
