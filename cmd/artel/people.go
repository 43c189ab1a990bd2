// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/store"
)

func tokenCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use: "token", Short: "Make, list and revoke the tokens of programs", Args: usage(cobra.NoArgs),
		Long: `Tokens let programs act for you. The commands of artel send the one in the
environment variable ARTEL_TOKEN.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(tokenCreateCommand(g), tokenListCommand(g), tokenRemoveCommand(g))
	return cmd
}

func tokenCreateCommand(g *globals) *cobra.Command {
	var scopes []string
	var expires string
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a token and print it, once", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			n := httpapi.NewToken{Name: args[0]}
			for _, s := range scopes {
				n.Scopes = append(n.Scopes, store.Scope(s))
			}
			if expires != "" {
				d, err := parseAge(expires)
				if err != nil || d <= 0 {
					return usageError{fmt.Errorf("--expires %q: want a time from now such as 90d or 36h", expires)}
				}
				at := time.Now().Add(d).UTC()
				n.ExpiresAt = &at
			}
			made, err := g.client().MakeToken(cmd.Context(), n)
			if err != nil {
				return err
			}
			return g.print(cmd, made, func(w printer) { w.line(made.Token) })
		},
	}
	cmd.Flags().StringSliceVar(&scopes, "scope", []string{string(store.ScopeRead), string(store.ScopeWrite), string(store.ScopeGateway)}, "what it may do: read, write, gateway, admin")
	cmd.Flags().StringVar(&expires, "expires", "", "time from now after which it ends, such as 90d or 36h; default: never")
	return cmd
}

func tokenListCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List your tokens", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := g.client().Tokens(cmd.Context())
			if err != nil {
				return err
			}
			return g.print(cmd, all, func(w printer) {
				for _, t := range all.Items {
					w.linef("%s\t%s\t%s\t%s\t%s", t.ID, t.Name, words(t.Scopes), whenUsed(t.UsedAt), whenEnds(t.ExpiresAt))
				}
			})
		},
	}
}

func whenUsed(t *time.Time) string {
	if t == nil {
		return "never used"
	}
	return "used " + t.Local().Format(time.DateTime)
}

func whenEnds(t *time.Time) string {
	if t == nil {
		return "does not end"
	}
	return "ends " + t.Local().Format(time.DateTime)
}

func words(scopes []store.Scope) string {
	all := make([]string, len(scopes))
	for i, s := range scopes {
		all[i] = string(s)
	}
	return strings.Join(all, ",")
}

func tokenRemoveCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "rm ID", Short: "Revoke a token, at once", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.client().RevokeToken(cmd.Context(), args[0])
		},
	}
}

func usersCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use: "users", Short: "Manage the users of a server", Args: usage(cobra.NoArgs),
		Long: `Manages the users of a server, with the token of an administrator in ARTEL_TOKEN.
The first administrator is made on the page /setup.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(usersListCommand(g), usersInviteCommand(g), usersResetCommand(g), usersSetCommand(g), usersRemoveCommand(g), usersRecoverCommand(g))
	return cmd
}

func usersListCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the users", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := g.client().Users(cmd.Context())
			if err != nil {
				return err
			}
			return g.print(cmd, all, func(w printer) {
				for _, u := range all.Items {
					state := "active"
					if u.Disabled {
						state = "disabled"
					} else if u.Invited {
						state = "invited"
					}
					w.linef("%s\t%s\t%s\t%s\t%s\t%s", u.ID, u.Email, u.Name, u.Role, state, storedText(u.Storage))
				}
			})
		},
	}
}

// storedText says what a user stores; empty if a server of an older version says nothing.
func storedText(s *app.StorageUse) string {
	switch {
	case s == nil:
		return ""
	case s.Limit == 0:
		return phrase.Size(s.Used)
	}
	return phrase.Size(s.Used) + " of " + phrase.Size(s.Limit)
}

func (g *globals) printInvitation(cmd *cobra.Command, i httpapi.Invited) error {
	return g.print(cmd, i, func(w printer) { w.linef("%s\t%s", i.ID, i.InviteURL) })
}

func usersInviteCommand(g *globals) *cobra.Command {
	var name, role string
	cmd := &cobra.Command{
		Use: "invite EMAIL", Short: "Make a user and print where the user sets a password", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if name == "" {
				name, _, _ = strings.Cut(args[0], "@")
			}
			made, err := g.client().Invite(cmd.Context(), httpapi.NewUser{Name: name, Email: args[0], Role: store.Role(role)})
			if err != nil {
				return err
			}
			return g.printInvitation(cmd, made)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the user; default: the address before the @")
	cmd.Flags().StringVar(&role, "role", string(store.Member), "admin, member or viewer")
	return cmd
}

func usersResetCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "reset ID", Short: "Print a new address at which a user sets a password", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			made, err := g.client().InviteAgain(cmd.Context(), artel.Owner(args[0]))
			if err != nil {
				return err
			}
			return g.printInvitation(cmd, made)
		},
	}
}

func usersSetCommand(g *globals) *cobra.Command {
	var name, email, role string
	var disable, enable bool
	cmd := &cobra.Command{
		Use: "set ID", Short: "Change a user", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if disable && enable {
				return usageError{errors.New("--disable and --enable exclude each other")}
			}
			var change httpapi.UserChange
			flags := cmd.Flags()
			if flags.Changed("name") {
				change.Name = &name
			}
			if flags.Changed("email") {
				change.Email = &email
			}
			if flags.Changed("role") {
				r := store.Role(role)
				change.Role = &r
			}
			if disable || enable {
				change.Disabled = &disable
			}
			u, err := g.client().ChangeUser(cmd.Context(), artel.Owner(args[0]), change)
			if err != nil {
				return err
			}
			return g.print(cmd, u, func(w printer) { w.linef("%s\t%s\t%s\t%s", u.ID, u.Email, u.Name, u.Role) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&name, "name", "", "new name")
	flags.StringVar(&email, "email", "", "new address")
	flags.StringVar(&role, "role", "", "admin, member or viewer")
	flags.BoolVar(&disable, "disable", false, "end the user's sessions and tokens, and refuse new ones")
	flags.BoolVar(&enable, "enable", false, "let the user log in again")
	return cmd
}

func usersRemoveCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "rm ID", Short: "Delete a user; what the user made stays in the database", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.client().DeleteUser(cmd.Context(), artel.Owner(args[0]))
		},
	}
}

func usersRecoverCommand(g *globals) *cobra.Command {
	var data, database string
	cmd := &cobra.Command{
		Use: "recover EMAIL", Short: "Print where a user sets a password, from the data directory of a stopped server", Args: usage(cobra.ExactArgs(1)),
		Long: `Prints the path at which a user sets a new password, for an administrator who has
forgotten it and whom no other can invite again. The server has to be stopped.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := os.Stat(filepath.Join(data, databaseFile)); err != nil && database == "" {
				return usageError{fmt.Errorf("--data %s: there is no database in it", data)}
			}
			conf, err := loadConfig(g.config)
			if err != nil {
				return err
			}
			conf.blobs, conf.database = os.Getenv(blobsVariable), database
			s := &server{config: conf, log: newLog(conf)}
			defer s.shut()
			db, _, err := s.openData(cmd.Context(), serverOptions{data: data, config: conf, log: s.log})
			if err != nil {
				return err
			}
			users := access.New(access.Config{Store: db, Log: s.log, Now: time.Now}).Users
			ctx := access.With(cmd.Context(), access.Operator())
			all, err := users.List(ctx)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(all, func(u store.User) bool { return strings.EqualFold(u.Email, args[0]) })
			if i < 0 {
				return artel.Errorf(artel.NotFound, "users", args[0], "no user has this address")
			}
			code, err := users.InviteAgain(ctx, all[i].ID)
			if err != nil {
				return err
			}
			path := httpapi.InvitePath(code)
			return g.print(cmd, map[string]string{"path": path}, func(w printer) { w.line(path) })
		},
	}
	databaseFlag(cmd, &database)
	cmd.Flags().StringVar(&data, "data", envOr("ARTEL_DATA", defaultData), "data directory")
	return cmd
}
