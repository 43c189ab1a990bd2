// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/inspect"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/run/record"
)

func contextCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use: "context", Short: "Show what models received, and why", Args: usage(cobra.NoArgs),
		Long: `Shows the input of a model call. CALL is a run and the number of one of its model
calls, as run_…/2; a run alone means its newest call, and a conversation the
newest call of its newest run.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(contextShowCommand(g), contextDiffCommand(g), contextWhyCommand(g))
	return cmd
}

// callOf finds the model call given by an argument.
func (g *globals) callOf(ctx context.Context, arg string) (record.ContextKey, error) {
	c := g.client()
	if id, err := artel.ParseConversationID(arg); err == nil {
		run, err := newestRun(ctx, c, id, false)
		if err != nil {
			return record.ContextKey{}, err
		}
		arg = string(run)
	}
	if strings.Contains(arg, "/") {
		return httpapi.ParseContextKey(arg)
	}
	run, err := artel.ParseRunID(arg)
	if err != nil {
		return record.ContextKey{}, err
	}
	list, err := c.Contexts(ctx, run)
	if err != nil {
		return record.ContextKey{}, err
	}
	if len(list.Items) == 0 {
		return record.ContextKey{}, artel.Errorf(artel.NotFound, "context", arg, "the run has made no model call, or its records are gone")
	}
	return list.Items[len(list.Items)-1].ContextKey, nil
}

// newestRun is the run of the newest message that has one; with answers alone, of the
// newest that is no summary.
func newestRun(ctx context.Context, c *httpapi.Client, id artel.ConversationID, answers bool) (run artel.RunID, err error) {
	for cursor, first := "", true; first || cursor != ""; first = false {
		page, err := c.Messages(ctx, id, cursor, 500)
		if err != nil {
			return "", err
		}
		for _, m := range page.Items {
			if !m.Summary || !answers {
				run = cmp.Or(m.Run, run)
			}
		}
		cursor = page.Next
	}
	if run == "" {
		return "", artel.Errorf(artel.NotFound, "context", string(id), "nothing was sent in this conversation")
	}
	return run, nil
}

func contextShowCommand(g *globals) *cobra.Command {
	var messages, request bool
	cmd := &cobra.Command{
		Use: "show CALL", Short: "Show the record of a model call, or its messages or request", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := g.callOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			switch {
			case request:
				r, err := g.client().ContextRequest(cmd.Context(), key)
				if err != nil {
					return err
				}
				return g.print(cmd, r, func(w printer) { w.line(string(r.Body)) })
			case messages:
				list, err := g.client().ContextMessages(cmd.Context(), key)
				if err != nil {
					return err
				}
				return g.print(cmd, list, func(w printer) { printBlocks(w, list.Items) })
			}
			v, err := g.client().Context(cmd.Context(), key)
			if err != nil {
				return err
			}
			return g.print(cmd, v, func(w printer) { printContext(w, v) })
		},
	}
	cmd.Flags().BoolVar(&messages, "messages", false, "the messages, with the processors that added them")
	cmd.Flags().BoolVar(&request, "request", false, "the request as sent to the model's API, with digests instead of media")
	cmd.MarkFlagsMutuallyExclusive("messages", "request")
	return cmd
}

func printBlocks(w printer, list []record.Block) {
	for _, b := range list {
		by := b.Processor
		if len(b.Changed) > 0 {
			by += ", changed by " + strings.Join(b.Changed, ", ")
		}
		w.linef("--- %s %s (%s, %d tokens, from %s)", b.Role, b.ID, b.Origin, b.Tokens, by)
		for _, p := range b.Parts {
			switch p := p.(type) {
			case artel.Text:
				w.line(p.Text)
			case artel.Media:
				w.linef("[%s %s %s]", p.MediaType, p.Filename, p.Ref)
			case artel.ToolCall:
				w.linef("[call %s %s]", p.Name, p.Arguments)
			case artel.ToolResult:
				w.line(p.Content)
			case artel.Reasoning:
				w.linef("[reasoning] %s", p.Text)
			}
		}
	}
}

func printContext(w printer, v httpapi.ContextView) {
	w.linef("call\t%s/%d\t%s\t%s", v.Run, v.Number, v.Agent, cmp.Or(v.Model, string(v.Service)))
	w.linef("tokens\t%s\t≈ %d history, ≈ %d fixed\t%d dropped, %d cut", sizeOf(v.ContextSummary), v.Tokens.History, v.Tokens.Fixed, len(v.Tokens.Dropped), len(v.Tokens.Cut))
	w.linef("request\t%d messages\t%d bytes\t%s", v.Messages, v.Bytes, v.RequestHash)
	if p := v.Prefix; p != nil {
		w.linef("prefix\t%.1f %% of the call before stands there again\t%d of %d bytes", 100*p.Ratio, p.Bytes, p.Before)
	}
	if u := v.Usage; u != nil {
		w.linef("usage\t%d in, %d of them from the provider's cache\t%d out", u.InputTokens, u.CachedTokens, u.OutputTokens)
	}
	if e := v.Error; e != nil {
		w.linef("error\t%s\t%s\t%s", e.Kind, e.Processor, e.Message)
	}
	for _, s := range v.Record.Processors {
		w.linef("%s\t+%d -%d ~%d\t%d → %d tokens\t%.1f ms", s.ID, len(s.Added), len(s.Removed), len(s.Changed), s.TokensBefore, s.TokensAfter, s.Millis)
		for _, l := range s.Logs {
			w.linef("\t%s: %s%s", l.Level, l.Message, noted(l.Details))
		}
	}
	for _, d := range v.Record.Decisions {
		w.linef("file\t%s\t%s\t%s", cmp.Or(d.Filename, d.Ref.String()), d.Step, d.Reason)
	}
	for _, m := range v.Media {
		w.linef("media\t%s\t%s, %d bytes\t%s", cmp.Or(m.Artifact.String(), string(m.Digest)), m.MediaType, m.Size, strings.TrimSpace(string(m.Transport)+" "+m.Name))
	}
}

// sizeOf is the size of a call's request: as the provider has counted it,
// otherwise as it was estimated, with the room in the window if that is known.
func sizeOf(c record.ContextSummary) string {
	n := "≈ " + strconv.Itoa(c.Tokens.Total)
	if c.Usage != nil && c.Usage.InputTokens > 0 {
		n = strconv.FormatInt(c.Usage.InputTokens, 10)
	}
	if c.Tokens.Budget > 0 {
		n += " of " + strconv.Itoa(c.Tokens.Budget)
	}
	return n
}

// noted is the details of a note as name=value, in the order of the names.
func noted(d map[string]any) string {
	if len(d) == 0 {
		return ""
	}
	words := make([]string, 0, len(d))
	for _, name := range slices.Sorted(maps.Keys(d)) {
		value := fmt.Sprint(d[name])
		if strings.ContainsAny(value, " \t\n") {
			value = strconv.Quote(value)
		}
		words = append(words, name+"="+value)
	}
	return " " + strings.Join(words, " ")
}

func contextDiffCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "diff CALL [OTHER]", Short: "Compare the request of a model call with another, or with the previous one", Args: usage(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := g.callOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var with record.ContextKey
			if len(args) == 2 {
				if with, err = g.callOf(cmd.Context(), args[1]); err != nil {
					return err
				}
			}
			d, err := g.client().ContextDiff(cmd.Context(), key, with)
			if err != nil {
				return err
			}
			return g.print(cmd, d, func(w printer) { printContextDiff(w, d) })
		},
	}
}

func printContextDiff(w printer, d inspect.ContextDiff) {
	w.linef("%s/%d → %s/%d: %.1f %% stands there again (%d of %d bytes)", d.Before.Run, d.Before.Number, d.After.Run, d.After.Number, 100*d.Prefix.Ratio, d.Prefix.Bytes, d.Prefix.Before)
	if f := d.First; f != nil {
		w.linef("first difference at byte %d: %s %s by %s", f.Offset, f.Cause, f.Message, strings.Join(f.Processors, ", "))
		if len(f.Rules) > 0 {
			w.linef("rules: %s", strings.Join(f.Rules, ", "))
		}
		w.linef("was: %q", f.Was)
		w.linef("is:  %q", f.Is)
	}
	for _, m := range d.Messages {
		if m.Change != inspect.Same {
			w.linef("%s\t%s\t%s\t%s\t%d tokens", m.Change, m.Role, m.ID, m.Origin, m.Tokens)
		}
	}
}

func contextWhyCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "why CALL FILE|MESSAGE", Short: "Explain why the model saw a file or a message, or did not", Args: usage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := g.callOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			why, err := g.client().Why(cmd.Context(), key, args[1])
			if err != nil {
				return err
			}
			return g.print(cmd, why, func(w printer) {
				for _, f := range why.Findings {
					where := ""
					if f.Message != "" {
						where = string(f.Message) + ": "
					}
					w.line(where + f.Text)
				}
			})
		},
	}
}
