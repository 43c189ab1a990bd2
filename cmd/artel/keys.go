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
	"github.com/artelhq/artel/store"
)

func keyCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use: "key", Short: "Make, list and revoke keys of the gateway", Args: usage(cobra.NoArgs),
		Long: `Keys let programs call models through the gateway, within limits and a budget, and
nothing else.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(keyCreateCommand(g), keyListCommand(g), keyRemoveCommand(g))
	return cmd
}

func keyCreateCommand(g *globals) *cobra.Command {
	var n httpapi.NewKey
	var services []string
	var budget, expires string
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a key and print it, once", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			n.Name = args[0]
			for _, s := range services {
				n.Services = append(n.Services, artel.ServiceID(s))
			}
			if budget != "" {
				b, err := parseBudget(budget)
				if err != nil {
					return usageError{fmt.Errorf("--budget %q: %w", artel.Shorten(budget, 40), err)}
				}
				n.Budget = &httpapi.Budget{USD: b.USD, Period: b.Period}
			}
			if expires != "" {
				d, err := parseAge(expires)
				if err != nil || d <= 0 {
					return usageError{fmt.Errorf("--expires %q: want a time from now such as 90d or 36h", expires)}
				}
				at := time.Now().Add(d).UTC()
				n.ExpiresAt = &at
			}
			made, err := g.client().MakeGatewayKey(cmd.Context(), n)
			if err != nil {
				return err
			}
			return g.print(cmd, made, func(w printer) { w.line(made.Key) })
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&services, "service", nil, "only this service may be called; repeatable; default: all")
	flags.StringVar(&budget, "budget", "", "dollars per day or month, such as 5/month or 0.5/day; default: none")
	flags.IntVar(&n.Requests, "requests-per-minute", 0, "requests in any minute; default: no limit")
	flags.Int64Var(&n.Tokens, "tokens-per-minute", 0, "tokens of requests and answers in any minute; default: no limit")
	flags.IntVar(&n.Concurrent, "concurrent", 0, "requests at once; default: no limit")
	flags.StringVar(&expires, "expires", "", "time from now after which it ends, such as 90d or 36h; default: never")
	return cmd
}

// parseBudget reads a budget such as 5/month.
func parseBudget(text string) (store.Budget, error) {
	amount, period, _ := strings.Cut(text, "/")
	usd, err := strconv.ParseFloat(strings.TrimPrefix(amount, "$"), 64)
	p := store.Period(period)
	if err != nil || usd <= 0 || p != store.PerDay && p != store.PerMonth {
		return store.Budget{}, fmt.Errorf("want dollars per day or month, such as 5/month or 0.5/day")
	}
	return store.Budget{USD: usd, Period: p}, nil
}

func keyListCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List your keys, and those of all users as an administrator", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := g.client().GatewayKeys(cmd.Context())
			if err != nil {
				return err
			}
			return g.print(cmd, all, func(w printer) {
				for _, k := range all.Items {
					state := whenEnds(k.ExpiresAt)
					if k.Disabled {
						state = "disabled"
					}
					if k.ReadOnly {
						state = "in gateway.keys of the configuration"
					}
					budget := "no budget"
					if k.Budget != nil {
						budget = fmt.Sprintf("$%s/%s", strconv.FormatFloat(k.Budget.USD, 'f', -1, 64), k.Budget.Period)
					}
					w.linef("%s\t%s\t%s\t%s\t%s\t%s", k.ID, k.Name, k.User, budget, whenUsed(k.UsedAt), state)
				}
			})
		},
	}
}

func keyRemoveCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "rm ID", Short: "Revoke a key, at once", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.client().RevokeGatewayKey(cmd.Context(), args[0])
		},
	}
}

func usageCommand(g *globals) *cobra.Command {
	var q httpapi.UsageQuery
	var by string
	var asCSV bool
	cmd := &cobra.Command{
		Use: "usage", Short: "Show what model calls have used", Args: usage(cobra.NoArgs),
		Long: `Shows tokens and costs of the last 30 days, of runs and of the gateway: yours, and
those of all users as an administrator. Days are in UTC.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q.By = store.UsageField(by)
			list, err := g.client().AllUsage(cmd.Context(), q)
			if err != nil {
				return err
			}
			if asCSV {
				return httpapi.WriteUsage(cmd.OutOrStdout(), list)
			}
			return g.print(cmd, list, func(w printer) {
				for _, r := range append(list.Items, list.Total) {
					label := r.Label()
					if label == "" {
						label = "none"
					}
					if r == list.Total {
						label = "total"
					}
					cost := "cost unknown"
					if r.Cost.Calls > 0 || r.Calls == 0 {
						cost = "$" + strconv.FormatFloat(r.Cost.USD, 'f', 4, 64)
					}
					w.linef("%s\t%d calls\t%d in\t%d cached\t%d out\t%s", label, r.Calls, r.Input, r.Cached, r.Output, cost)
				}
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&q.From, "from", "", "first day, such as 2026-03-04; default: 29 days before the last")
	flags.StringVar(&q.To, "to", "", "last day; default: today")
	flags.StringVar(&by, "by", string(store.ByDay), "day, user, key, service, model or agent")
	flags.BoolVar(&asCSV, "csv", false, "print CSV")
	return cmd
}
