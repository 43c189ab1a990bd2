// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
)

func rmCommand(g *globals) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "rm CONVERSATION…", Short: "Delete conversations with everything in them", Args: usage(cobra.MinimumNArgs(1)),
		Long: `Deletes conversations with their messages, artifacts and files, and asks before
each. For an hour, POST /api/v1/conversations/ID/restore brings one back; then its
storage is free.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ids := make([]artel.ConversationID, len(args))
			for i, arg := range args {
				id, err := artel.ParseConversationID(arg)
				if err != nil {
					return err
				}
				ids[i] = id
			}
			answers := bufio.NewScanner(cmd.InOrStdin())
			for _, id := range ids {
				if !yes {
					if err := sure(cmd, g, answers, id); err != nil {
						return err
					}
				}
				if err := g.client().DeleteConversation(cmd.Context(), id); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "delete without asking")
	return cmd
}

// sure asks the user whether to delete a conversation.
func sure(cmd *cobra.Command, g *globals, answers *bufio.Scanner, id artel.ConversationID) error {
	c, err := g.client().Conversation(cmd.Context(), id)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Delete %s (%s) with everything in it? (y, n) ", id, artel.Visible(artel.Shorten(c.Title, 60)))
	if answers.Scan() {
		switch strings.ToLower(strings.TrimSpace(answers.Text())) {
		case "y", "yes":
			return nil
		}
	}
	return errors.Join(answers.Err(), artel.Errorf(artel.Invalid, "rm", string(id), "was not deleted; answer y, or give --yes"))
}
