// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/run"
)

// A replayItem is one line of an evaluation set. Input and Ideal are what evaluation
// tools expect.
type replayItem struct {
	ID         string                `json:"id"`
	Input      []run.ReplayMessage   `json:"input"`
	Ideal      string                `json:"ideal"` // the recorded answer
	IdealCalls []run.ReplayCall      `json:"ideal_calls"`
	Output     string                `json:"output"`
	Calls      []run.ReplayCall      `json:"calls"`
	Service    artel.ServiceID       `json:"service"`
	Model      string                `json:"model"`
	From       int                   `json:"from"`
	Outcome    artel.RunState        `json:"outcome"`
	Error      *artel.RunError       `json:"error,omitempty"`
	Usage      artel.Usage           `json:"usage"`
	Millis     int64                 `json:"duration_ms"`
	Difference *run.ReplayDifference `json:"difference"`
}

func itemOf(c run.Comparison) replayItem {
	calls := func(r run.Replay) []run.ReplayCall {
		out := []run.ReplayCall{}
		for _, s := range r.Steps {
			out = append(out, s.Calls...)
		}
		return out
	}
	r := c.Replayed
	return replayItem{
		ID: string(r.Run) + "/" + string(r.Service), Input: r.Input, Ideal: c.Recorded.Text, IdealCalls: calls(c.Recorded), Output: r.Text, Calls: calls(r),
		Service: r.Service, Model: r.Model, From: r.From, Outcome: r.Outcome, Error: r.Error, Usage: r.Usage, Millis: r.Millis, Difference: c.Difference,
	}
}

func replayCommand(g *globals) *cobra.Command {
	var services []string
	var from int
	var export string
	cmd := &cobra.Command{
		Use: "replay RUN --service A,B,C", Short: "Make a run again on other models, and compare", Args: usage(cobra.ExactArgs(1)),
		Long: `Makes a recorded run again on each service and shows outcomes, tokens, costs and
the first difference side by side. RUN is a run, or a conversation, for its newest
run. Attachments go as each model takes them. No tool runs: calls are answered from
the log of the run; a call that the run did not make is answered with that. The
model calls cost what they cost, and nothing is stored.

--export appends a line of JSON for each service to a file: input (the messages of
the first call), ideal (the recorded answer), output, calls, usage, difference.`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx, client := cmd.Context(), g.client()
			if len(services) == 0 {
				return usageError{errors.New("name the services with --service A,B,C; artel services lists them")}
			}
			id, err := artel.ParseRunID(args[0])
			if c, cerr := artel.ParseConversationID(args[0]); cerr == nil {
				id, err = newestRun(ctx, client, c, true)
			} else if err != nil {
				return usageError{err}
			}
			if err != nil {
				return err
			}
			out := io.Discard
			if export != "" {
				f, err := os.OpenFile(export, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, f.Close()) }()
				out = f
			}
			lines := json.NewEncoder(out)
			lines.SetEscapeHTML(false)
			all := make([]run.Comparison, 0, len(services))
			for _, s := range services {
				c, err := client.Replay(ctx, id, artel.ServiceID(strings.TrimSpace(s)), from)
				if err == nil {
					err = lines.Encode(itemOf(c))
				}
				if err != nil {
					return fmt.Errorf("on %s: %w", s, err)
				}
				all = append(all, c)
			}
			return g.print(cmd, all, func(w printer) { printReplays(w, all) })
		},
	}
	cmd.Flags().StringSliceVar(&services, "service", nil, "services that make the run again, with commas between them")
	cmd.Flags().IntVar(&from, "from", 0, "the first answer to make again, from 1 (default: all)")
	cmd.Flags().StringVar(&export, "export", "", "file to which evaluation items are appended, one JSON object a line")
	return cmd
}

func printReplays(w printer, all []run.Comparison) {
	w.line("SERVICE\tMODEL\tOUTCOME\tANSWERS\tTOOL CALLS\tTOKENS, COST\tTIME\tDIFFERS")
	row := func(name string, r run.Replay, differs string) {
		tools, answered := 0, map[run.ReplayAnswer]int{}
		for _, s := range r.Steps {
			for _, c := range s.Calls {
				tools++
				answered[c.Answered]++
			}
		}
		calls := itoa(tools)
		for _, how := range []run.ReplayAnswer{run.ReplaySimilar, run.ReplayUnknown} {
			if n := answered[how]; n > 0 {
				calls += fmt.Sprintf(" (%d %s)", n, how)
			}
		}
		took := "-"
		if r.Millis > 0 {
			took = (time.Duration(r.Millis) * time.Millisecond).String()
		}
		w.linef("%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s", name, cmp.Or(r.Model, "-"), r.Outcome, len(r.Steps), calls, tokensAndCost(r.Usage), took, differs)
	}
	row(string(all[0].Recorded.Service)+" (recorded)", all[0].Recorded, "")
	for _, c := range all {
		differs := "no"
		if d := c.Difference; d != nil {
			differs = fmt.Sprintf("step %d: %s", d.Step, d.Kind)
		}
		row(string(c.Replayed.Service), c.Replayed, differs)
	}
	for _, c := range all {
		if e := c.Replayed.Error; e != nil {
			w.linef("\n%s: %s", c.Replayed.Service, e.Message)
		}
		if d := c.Difference; d != nil {
			w.linef("\n%s, step %d, %s\n- %s\n+ %s", c.Replayed.Service, d.Step, d.Kind, onOneLine(d.Recorded), onOneLine(d.Replayed))
		}
	}
}

func onOneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
