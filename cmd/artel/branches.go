// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/httpapi"
)

func branchesCommand(g *globals) *cobra.Command {
	list := &cobra.Command{
		Use: "list CONVERSATION", Short: "List the branches of a conversation", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return g.listBranches(cmd, args[0]) },
	}
	cmd := &cobra.Command{
		Use: "branches", Short: "List, read and switch branches; edit, retry and mute messages", Args: usage(cobra.NoArgs),
		Long: `A conversation is a tree of messages: editing a message or asking for another
answer creates a branch with its own artifacts, variables and permissions.
A branch is named by its last message.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(list, g.showBranch(), g.switchBranch(), g.editMessage(), g.retryMessage(), g.muteMessage())
	return cmd
}

// A branchLine is an entry of the list of branches.
type branchLine struct {
	Leaf     artel.MessageID `json:"leaf"`
	Active   bool            `json:"active"`
	Messages int             `json:"messages"`
	Words    string          `json:"words"` // beginning of the last user message
}

func (g *globals) listBranches(cmd *cobra.Command, conversation string) error {
	id, err := artel.ParseConversationID(conversation)
	if err != nil {
		return usageError{err}
	}
	ctx, client := cmd.Context(), g.client()
	active, err := client.Branch(ctx, id, "")
	if err != nil {
		return err
	}
	var leaf artel.MessageID
	if n := len(active.Items); n > 0 {
		leaf = active.Items[n-1].ID
	}
	of := map[artel.MessageID]branchLine{}
	parents := map[artel.MessageID]bool{}
	var order []artel.MessageID
	for cursor, more := "", true; more; {
		page, err := client.Messages(ctx, id, cursor, 500)
		if err != nil {
			return err
		}
		for _, m := range page.Items { // parents precede their children
			if m.Within != "" {
				continue
			}
			line := of[m.Parent]
			line.Leaf, line.Active = m.ID, m.ID == leaf
			if line.Messages++; m.Role == artel.RoleUser && !m.Summary {
				line.Words = artel.Beginning(strings.Join(strings.Fields(artel.TextOf(m.Parts)), " "), 60)
			}
			of[m.ID], parents[m.Parent], order = line, true, append(order, m.ID)
		}
		cursor = page.Next
		more = cursor != ""
	}
	lines := []branchLine{}
	for _, m := range order {
		if !parents[m] {
			lines = append(lines, of[m])
		}
	}
	return g.print(cmd, lines, func(w printer) {
		for _, l := range lines {
			mark := " "
			if l.Active {
				mark = "*"
			}
			w.linef("%s %s\t%d\t%s", mark, l.Leaf, l.Messages, l.Words)
		}
	})
}

func (g *globals) showBranch() *cobra.Command {
	return &cobra.Command{
		Use: "show CONVERSATION [LEAF]", Short: "Print a branch, message by message; without a leaf the active one", Args: usage(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, leaf, err := messageArgs(append(args, "")[:2])
			if err != nil {
				return err
			}
			branch, err := g.client().Branch(cmd.Context(), id, leaf)
			if err != nil {
				return err
			}
			return g.print(cmd, branch, func(w printer) {
				for _, m := range branch.Items {
					w.linef("%s\t%s\t%s\t%s", m.ID, m.Role, position(m), artel.Beginning(strings.Join(strings.Fields(artel.TextOf(m.Parts)), " "), 80))
				}
			})
		},
	}
}

// position describes a message's position among its siblings, and its state.
func position(m app.BranchMessage) string {
	var words []string
	if n := len(m.Siblings); n > 1 {
		words = append(words, fmt.Sprintf("%d/%d", slices.Index(m.Siblings, m.ID)+1, n))
	}
	if m.Summary {
		words = append(words, "summary")
	}
	if m.Muted {
		words = append(words, "muted")
	}
	return strings.Join(words, " ")
}

// messageArgs parses a conversation id and a message id, which may be empty.
func messageArgs(args []string) (c artel.ConversationID, m artel.MessageID, err error) {
	if c, err = artel.ParseConversationID(args[0]); err == nil && args[1] != "" {
		m, err = artel.ParseMessageID(args[1])
	}
	if err != nil {
		err = usageError{err}
	}
	return c, m, err
}

func (g *globals) switchBranch() *cobra.Command {
	return &cobra.Command{
		Use: "switch CONVERSATION MESSAGE", Short: "Make the branch of a message the active one", Args: usage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, m, err := messageArgs(args)
			if err != nil {
				return err
			}
			c, err := g.client().Switch(cmd.Context(), id, m)
			if err != nil {
				return err
			}
			return g.print(cmd, c, func(w printer) { w.line(string(c.Leaf)) })
		},
	}
}

func (g *globals) editMessage() *cobra.Command {
	var r httpapi.MessageRetry
	cmd := &cobra.Command{
		Use: "edit CONVERSATION MESSAGE TEXT…", Short: "Replace a message by another text, on a new branch", Long: "Replaces a message of the user, which the model then answers, or an answer of the\nmodel, from which the conversation then goes on; prints its id.", Args: usage(cobra.MinimumNArgs(3)),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := strings.Join(args[2:], " ")
			return g.answerOnBranch(cmd, args, &r, func(ctx context.Context, c *httpapi.Client, id artel.ConversationID, m artel.MessageID) (httpapi.Sent, error) {
				return c.Edit(ctx, id, m, httpapi.MessageEdit{Text: &text, MessageRetry: r})
			})
		},
	}
	answering(cmd, &r)
	return cmd
}

func (g *globals) retryMessage() *cobra.Command {
	var r httpapi.MessageRetry
	cmd := &cobra.Command{
		Use: "retry CONVERSATION MESSAGE", Short: "Ask for another answer, on a new branch", Args: usage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.answerOnBranch(cmd, args, &r, func(ctx context.Context, c *httpapi.Client, id artel.ConversationID, m artel.MessageID) (httpapi.Sent, error) {
				return c.Retry(ctx, id, m, r)
			})
		},
	}
	answering(cmd, &r)
	return cmd
}

// answering adds the flags that select the agent and the service.
func answering(cmd *cobra.Command, r *httpapi.MessageRetry) {
	cmd.Flags().StringVar(&r.Service, "service", "", "service that answers")
	cmd.Flags().StringVar(&r.Agent, "agent", "", "agent that answers")
}

// answerOnBranch creates a branch and prints the answer on it as chat does.
func (g *globals) answerOnBranch(cmd *cobra.Command, args []string, r *httpapi.MessageRetry, send func(context.Context, *httpapi.Client, artel.ConversationID, artel.MessageID) (httpapi.Sent, error)) error {
	id, m, err := messageArgs(args[:2])
	if err != nil {
		return err
	}
	t := chatSession{client: g.client(), in: bufio.NewScanner(cmd.InOrStdin()), out: cmd.OutOrStdout(), json: g.json, service: r.Service, agent: r.Agent}
	if err := t.begin(cmd.Context(), string(id)); err != nil {
		return err
	}
	sent, err := send(cmd.Context(), t.client, id, m)
	if err != nil {
		return err
	}
	if sent.RunID == "" { // an answer was edited
		return g.print(cmd, sent, func(w printer) { w.line(string(sent.MessageID)) })
	}
	return t.follow(cmd.Context(), sent)
}

func (g *globals) muteMessage() *cobra.Command {
	off := false
	cmd := &cobra.Command{
		Use: "mute CONVERSATION MESSAGE", Short: "Hide a message from models", Args: usage(cobra.ExactArgs(2)),
		Long: "Hides a message from models, or shows it again with --off. Hiding a summary sends\nthe summarized messages again.",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, m, err := messageArgs(args)
			if err != nil {
				return err
			}
			found, err := g.client().Mute(cmd.Context(), id, m, !off)
			if err != nil {
				return err
			}
			return g.print(cmd, found, func(w printer) {
				if found.Muted {
					w.linef("%s is left out", found.ID)
				} else {
					w.linef("%s is sent", found.ID)
				}
			})
		},
	}
	cmd.Flags().BoolVar(&off, "off", false, "show it to models again")
	return cmd
}
