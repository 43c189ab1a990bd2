// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/store"
)

// followEvery is the poll interval of --follow.
const followEvery = time.Second

func gatewayCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "gateway", Short: "Show the API requests of SDKs and the calls of MCP hosts"}
	var q gatewaylog.Query
	var service, of string
	var follow bool
	log := &cobra.Command{
		Use: "log", Short: "List the requests of the gateway and the calls of MCP, the newest last", Args: usage(cobra.NoArgs),
		Long: "Lists the newest requests of the gateway: key, service, result and changes; and calls of MCP: host, server,\n" +
			"tool, result and what was kept back. With --follow, new ones are printed until it is interrupted, with --json\n" +
			"one per line.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			q.Service, q.Of = artel.ServiceID(service), store.LogOf(of)
			if q.Page.Limit < 1 || q.Page.Limit > 200 {
				return usageError{fmt.Errorf("--limit %d: between 1 and 200 requests are listed at once", q.Page.Limit)}
			}
			list, err := g.client().GatewayLog(cmd.Context(), q)
			if err != nil {
				return err
			}
			slices.Reverse(list.Items)
			if follow {
				return followGateway(cmd.Context(), g, cmd.OutOrStdout(), q, list)
			}
			return g.print(cmd, list, func(w printer) {
				for _, e := range list.Items {
					w.line(gatewayLine(e, "\t"))
				}
			})
		},
	}
	flags := log.Flags()
	flags.StringVar(&q.Key, "key", "", "only requests with the key of this name")
	flags.StringVar(&service, "service", "", "only requests to this service")
	flags.StringVar(&of, "of", "", "gateway: only requests of the gateway; mcp: only calls of MCP")
	flags.StringVar(&q.Server, "mcp-server", "", "only calls of this MCP server; artel: of the artifact tools")
	flags.StringVar(&q.Status, "status", "", "ok, failed, a class such as 4xx, or a code such as 429")
	flags.BoolVar(&q.Changed, "changed", false, "only requests with changes")
	flags.IntVar(&q.Page.Limit, "limit", 20, "number of requests to list, at most 200")
	flags.BoolVarP(&follow, "follow", "f", false, "also print new requests as they arrive")
	cmd.AddCommand(log)
	return cmd
}

// followGateway prints a list, and new entries until ctx ends.
func followGateway(ctx context.Context, g *globals, out io.Writer, q gatewaylog.Query, list httpapi.List[gatewaylog.GatewayEntry]) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	last := int64(0)
	q.Page.Limit = 200
	for {
		for _, e := range list.Items {
			if e.Number <= last {
				continue
			}
			last = e.Number
			line := gatewayLine(e, "  ")
			if g.json {
				b, err := json.Marshal(e)
				if err != nil {
					return err
				}
				line = string(b)
			}
			if _, err := fmt.Fprintln(out, line); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var err error
		if list, err = unseen(ctx, g, q, last); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// unseen reads the entries after one, oldest first.
func unseen(ctx context.Context, g *globals, q gatewaylog.Query, last int64) (all httpapi.List[gatewaylog.GatewayEntry], err error) {
	for {
		page, err := g.client().GatewayLog(ctx, q)
		if err != nil {
			return all, err
		}
		known := slices.IndexFunc(page.Items, func(e gatewaylog.GatewayEntry) bool { return e.Number <= last })
		if known >= 0 {
			page.Items = page.Items[:known]
		}
		all.Items = append(all.Items, page.Items...)
		if known >= 0 || page.Next == "" || last == 0 {
			slices.Reverse(all.Items)
			return all, nil
		}
		q.Page.Cursor = page.Next
	}
}

// gatewayLine formats an entry on one line, its columns separated by apart.
func gatewayLine(e gatewaylog.GatewayEntry, apart string) string {
	asked := e.Model
	if e.Service != "" && string(e.Service) != e.Model {
		asked += " → " + string(e.Service)
	}
	said := e.Error
	if said == "" {
		var did []string
		for _, c := range e.Changes {
			what := c.Did
			if c.Field != "" {
				what += ":" + c.Field
			}
			if !slices.Contains(did, what) {
				did = append(did, what)
			}
		}
		said = strings.Join(did, " ")
	}
	if c := e.MCP; c != nil {
		return strings.Join([]string{
			e.Time.Local().Format("2006-01-02 15:04:05"), fmt.Sprint(e.Status), fmt.Sprintf("%.0f ms", e.Millis), orDash(strings.TrimSpace(c.Host + " " + c.HostVersion)), e.Endpoint,
			c.Server + " → " + c.Tool, fmt.Sprintf("%d bytes, %d shown", e.BytesIn, e.BytesOut), artel.Shorten(said, 200),
		}, apart)
	}
	return strings.Join([]string{
		e.Time.Local().Format("2006-01-02 15:04:05"), fmt.Sprint(e.Status), fmt.Sprintf("%.0f ms", e.Millis), orDash(e.Key), e.Endpoint, orDash(asked),
		tokensAndCost(e.Usage), artel.Shorten(said, 200),
	}, apart)
}

// tokensAndCost formats a usage with its cost in US dollars, if that is known.
func tokensAndCost(u artel.Usage) string {
	s := fmt.Sprintf("%d in, %d out", u.InputTokens, u.OutputTokens)
	if u.Cost.Calls > 0 {
		s += fmt.Sprintf(", $%.6f", u.Cost.USD)
	}
	return s
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
