// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
)

func compactCommand(g *globals) *cobra.Command {
	focus := ""
	cmd := &cobra.Command{
		Use: "compact CONVERSATION", Short: "Summarize a conversation to shorten what models receive", Args: usage(cobra.ExactArgs(1)),
		Long: `Summarizes the active branch with the conversation's model. From then on, models
receive the summary instead of the messages it covers. Nothing is lost: the
messages stay, and the summary is an artifact that names them. An active run
summarizes before its next model call. "artel compact undo" sends the messages
again, and "artel compact redo" the summary.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := artel.ParseConversationID(args[0])
			if err != nil {
				return usageError{err}
			}
			ctx, client := cmd.Context(), g.client()
			t := chatSession{client: client, id: id}
			if err := t.skip(ctx); err != nil {
				return err
			}
			sent, err := client.Compact(ctx, id, focus)
			if err != nil {
				return err
			}
			var done artel.CompactionCompleted
			print := func() error {
				return g.print(cmd, done, func(w printer) {
					w.linef("%d messages summed up%s", done.Replaced, tokensOf(done.Before, done.After))
					if done.Artifact != nil {
						w.line(done.Artifact.Ref.String())
					}
				})
			}
			own := false // a separate compaction run
			for e, err := range client.Events(ctx, id, t.last, giveUp) {
				if err != nil {
					return err
				}
				if e.Run != sent.RunID {
					continue
				}
				switch e.Type {
				case artel.EventRunStarted:
					own = true
				case artel.EventCompactionCompleted:
					var p artel.CompactionCompleted
					if err := json.Unmarshal(e.Data, &p); err != nil {
						return err
					}
					if p.Reason != artel.CompactRequested {
						continue
					}
					switch done = p; {
					case own: // the end of the run has the result
					case p.Error != nil:
						return artel.Errorf(p.Error.Kind, "compact", string(e.Run), "%s", p.Error.Message)
					default:
						return print()
					}
				case artel.EventRunFinished:
					var end artel.RunFinished
					if err := json.Unmarshal(e.Data, &end); err != nil {
						return err
					}
					if end.Error != nil {
						return artel.Errorf(end.Error.Kind, "compact", "run "+string(end.State), "%s", end.Error.Message)
					}
					return print()
				}
			}
			return ctx.Err()
		},
	}
	cmd.Flags().StringVar(&focus, "focus", "", "what the summary keeps in detail")
	cmd.AddCommand(g.listSummaries(), g.readSummary(), g.changeSummary(true), g.changeSummary(false))
	return cmd
}

// tokensOf says what a summary was made from and has; "": not known.
func tokensOf(before, after int) string {
	if before == 0 {
		return ""
	}
	return fmt.Sprintf(", %d → %d tokens", before, after)
}

func (g *globals) listSummaries() *cobra.Command {
	return &cobra.Command{
		Use: "list CONVERSATION", Short: "List the summaries of the active branch", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := artel.ParseConversationID(args[0])
			if err != nil {
				return usageError{err}
			}
			list, err := g.client().Summaries(cmd.Context(), id)
			if err != nil {
				return err
			}
			return g.print(cmd, list, func(w printer) {
				for _, s := range list.Items {
					w.linef("%s\t%s\t%d messages%s", s.ID, s.State, s.Messages, tokensOf(s.Before, s.After))
				}
			})
		},
	}
}

func (g *globals) readSummary() *cobra.Command {
	return &cobra.Command{
		Use: "read CONVERSATION SUMMARY", Short: "Read the messages that a summary stands for", Args: usage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, m, err := messageArgs(args)
			if err != nil {
				return err
			}
			list, err := g.client().Summarised(cmd.Context(), id, m)
			if err != nil {
				return err
			}
			return g.print(cmd, list, func(w printer) {
				for _, m := range list.Items {
					w.linef("%s\t%s\t%s", m.ID, m.Role, contentOf(m))
				}
			})
		},
	}
}

// contentOf returns the texts, calls and results of a message.
func contentOf(m artel.Message) string {
	out := []string{artel.TextOf(m.Parts)}
	for _, c := range artel.CallsOf(m.Parts) {
		out = append(out, "→ "+c.Name+" "+string(c.Arguments))
	}
	for _, r := range artel.ResultsOf(m.Parts) {
		out = append(out, "← "+r.Content)
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

// changeSummary undoes or redoes a summary.
func (g *globals) changeSummary(undo bool) *cobra.Command {
	cmd := &cobra.Command{Args: usage(cobra.RangeArgs(1, 2))}
	cmd.Use, cmd.Short = "undo CONVERSATION [SUMMARY]", "Send models the messages of a summary again"
	cmd.Long = `Undoes a summary, or the newest one: models receive the messages that it stands for
again, from the next call on. If they do not fit, the oldest of them are summarized
before the next answer.`
	if !undo {
		cmd.Use, cmd.Short = "redo CONVERSATION [SUMMARY]", "Send models a summary that was undone"
		cmd.Long = "Takes \"artel compact undo\" back: models receive the summary instead of its messages."
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, m, err := messageArgs(append(args, "")[:2])
		if err != nil {
			return err
		}
		do := g.client().RedoCompaction
		if undo {
			do = g.client().UndoCompaction
		}
		done, err := do(cmd.Context(), id, m)
		if err != nil {
			return err
		}
		return g.print(cmd, done, func(w printer) {
			if w.linef("%s is %s; it stands for %d messages", done.ID, done.State, done.Messages); done.Tokens > 0 {
				w.linef("the next request has about %d tokens", done.Tokens)
			}
			switch {
			case done.Compacts:
				w.linef("it is too long (more than %d tokens): the oldest messages are summarized before the next answer", done.Threshold)
			case done.Dropped > 0:
				w.linef("%d messages do not fit and are left out", done.Dropped)
			}
		})
	}
	return cmd
}
