// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel/app/accounts"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/oauth"
)

// accountPoll is how often a waiting connect asks how the account is.
const accountPoll = time.Second

func connectAccountCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "connect NAME", Short: "Connect an MCP server with your account: print the address to open in a browser, and wait", Args: usage(cobra.ExactArgs(1)),
		Long: `Connects an MCP server that has auth: oauth with an account of yours. Open the printed
address in a browser in which you are logged in to Artel, and allow the access there.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, client := cmd.Context(), g.client()
			before, err := httpapi.MCPAccount(ctx, client, args[0])
			if err != nil {
				return err
			}
			begun, err := httpapi.ConnectMCPAccount(ctx, client, args[0])
			if err != nil {
				return err
			}
			printer{cmd.ErrOrStderr()}.linef("open this address in a browser, and allow the access:")
			printer{cmd.OutOrStdout()}.linef("%s", begun.Location)
			tick, end := time.NewTicker(accountPoll), time.NewTimer(oauth.PendingFor)
			defer tick.Stop()
			defer end.Stop()
			for {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-end.C:
					return errors.New("the access was not allowed within 15 minutes; begin again")
				case <-tick.C:
				}
				now, err := httpapi.MCPAccount(ctx, client, args[0])
				if err != nil {
					return err
				}
				again := before.ConnectedAt != nil && now.ConnectedAt != nil && now.ConnectedAt.Equal(*before.ConnectedAt)
				if now.State == accounts.Connected && !again {
					return g.print(cmd, now, func(w printer) { printAccount(w, now) })
				}
			}
		},
	}
}

func printAccount(w printer, a httpapi.AccountView) {
	w.linef("%s\t%s\t%s\t%s\t%s", a.Server, a.State, a.Account, a.Issuer, a.URL)
}

func disconnectAccountCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "disconnect NAME", Short: "Delete your access to an MCP server, and revoke it there", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			end, err := httpapi.DisconnectMCPAccount(cmd.Context(), g.client(), args[0])
			if err != nil {
				return err
			}
			return g.print(cmd, end, func(w printer) {
				if !end.Revoked {
					w.linef("deleted here; the authorization server did not revoke it, so do that on its page")
				}
			})
		},
	}
}

func listAccountsCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "accounts", Short: "List the MCP servers that you connect with an account, and how each is", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := httpapi.MCPAccounts(cmd.Context(), g.client())
			if err != nil {
				return err
			}
			return g.print(cmd, all, func(w printer) {
				for _, a := range all.Items {
					printAccount(w, a)
				}
			})
		},
	}
}
