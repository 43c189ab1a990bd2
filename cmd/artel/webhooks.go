// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
)

func webhooksCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use: "webhooks", Short: "Tell programs of events: ended runs, questions, changed artifacts", Args: usage(cobra.NoArgs),
		Long: `A webhook is an address to which events of your conversations are sent, signed and
repeated until they are accepted. docs/webhooks.md says how a program checks them.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(webhookAddCommand(g), webhookListCommand(g), webhookSetCommand(g), webhookSecretCommand(g), webhookTestCommand(g), webhookLogCommand(g), webhookAgainCommand(g), webhookRemoveCommand(g))
	return cmd
}

func eventTypes(names []string) (types []artel.EventType) {
	for _, n := range names {
		types = append(types, artel.EventType(n))
	}
	return types
}

const eventsUsage = "only events of this type: run_finished, permission_requested, elicitation_requested, artifact_created or artifact_updated; repeatable"

func webhookAddCommand(g *globals) *cobra.Command {
	var events []string
	cmd := &cobra.Command{
		Use: "add NAME URL", Short: "Make a webhook and print its secret, once", Args: usage(cobra.ExactArgs(2)),
		Example: `  artel webhooks add chat https://chat.example/hooks/artel
  artel webhooks add ci https://ci.example/artel --event run_finished > secret.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			made, err := g.client().MakeWebhook(cmd.Context(), httpapi.NewWebhook{Name: args[0], URL: args[1], Events: eventTypes(events)})
			if err != nil {
				return err
			}
			return g.print(cmd, made, func(w printer) { w.line(made.Secret) })
		},
	}
	cmd.Flags().StringSliceVar(&events, "event", nil, eventsUsage+"; default: all")
	return cmd
}

func webhookListCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List your webhooks", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := g.client().Webhooks(cmd.Context())
			if err != nil {
				return err
			}
			return g.print(cmd, all, func(w printer) {
				for _, h := range all.Items {
					state := "enabled"
					if h.Disabled {
						state = "disabled"
					}
					if h.Reason != "" {
						state += ": " + h.Reason
					}
					w.linef("%s\t%s\t%s\t%s\t%s", h.ID, h.Name, h.URL, strings.Join(typeNames(h.Events), ","), state)
				}
			})
		},
	}
}

func typeNames(types []artel.EventType) (out []string) {
	for _, t := range types {
		out = append(out, string(t))
	}
	return out
}

func webhookSetCommand(g *globals) *cobra.Command {
	var name, url string
	var events []string
	var enable, disable bool
	cmd := &cobra.Command{
		Use: "set ID", Short: "Change a webhook, enable or disable it", Args: usage(cobra.ExactArgs(1)),
		Example: `  artel webhooks set hookABC --url https://chat.example/hooks/new
  artel webhooks set hookABC --enable`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var c httpapi.WebhookChange
			if cmd.Flags().Changed("name") {
				c.Name = &name
			}
			if cmd.Flags().Changed("url") {
				c.URL = &url
			}
			if c.Events = eventTypes(events); enable || disable {
				c.Disabled = &disable
			}
			if c.Name == nil && c.URL == nil && c.Events == nil && c.Disabled == nil {
				return usageError{fmt.Errorf("say what to change: --name, --url, --event, --enable or --disable")}
			}
			w, err := g.client().ChangeWebhook(cmd.Context(), args[0], c)
			if err != nil {
				return err
			}
			return g.print(cmd, w, func(p printer) { p.line(w.ID) })
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "new name")
	cmd.Flags().StringVar(&url, "url", "", "new address")
	cmd.Flags().StringSliceVar(&events, "event", nil, eventsUsage)
	cmd.Flags().BoolVar(&enable, "enable", false, "send again, also what waits")
	cmd.Flags().BoolVar(&disable, "disable", false, "send nothing")
	cmd.MarkFlagsMutuallyExclusive("enable", "disable")
	return cmd
}

func webhookSecretCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "secret ID", Short: "Make a new secret and print it, once; the old one signs too for 24 hours", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			made, err := g.client().RotateWebhook(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return g.print(cmd, made, func(w printer) { w.line(made.Secret) })
		},
	}
}

func webhookTestCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "test ID", Short: "Send a test; webhooks log shows what came of it", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := g.client().TestWebhook(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return g.print(cmd, d, func(w printer) { w.line(d.ID) })
		},
	}
}

func webhookLogCommand(g *globals) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "log ID", Short: "Show what was and is sent to a webhook, newest first", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > 500 {
				return usageError{fmt.Errorf("--limit %d: want 1 to 500", limit)}
			}
			all, err := g.client().Deliveries(cmd.Context(), args[0], "", limit)
			if err != nil {
				return err
			}
			return g.print(cmd, all, func(w printer) {
				for _, d := range all.Items {
					what := string(d.Type)
					if what == "" {
						what = "test"
					}
					next := ""
					if d.DueAt != nil {
						next = "again at " + d.DueAt.Local().Format(time.DateTime)
					}
					w.linef("%d\t%s\t%s\t%s\t%d attempts\t%d\t%d ms\t%s\t%s", d.Number, d.ID, what, d.State, d.Attempts, d.Status, d.Millis, artel.Shorten(d.Error, 200), next)
				}
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "how many")
	return cmd
}

func webhookAgainCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "again ID NUMBER", Short: "Send a delivery of the log once more, under the same id", Args: usage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil || n < 1 {
				return usageError{fmt.Errorf("%q is not the number of a delivery, the first column of webhooks log", artel.Shorten(args[1], 40))}
			}
			d, err := g.client().SendAgain(cmd.Context(), args[0], n)
			if err != nil {
				return err
			}
			return g.print(cmd, d, func(w printer) { w.line(d.ID) })
		},
	}
}

func webhookRemoveCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "rm ID", Short: "Delete a webhook with its log", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.client().DeleteWebhook(cmd.Context(), args[0])
		},
	}
}
