// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
)

func compactCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "compact CONVERSATION", Short: "Summarize a conversation to shorten what models receive", Args: usage(cobra.ExactArgs(1)),
		Long: `Summarizes the active branch with the conversation's model. From then on, models
receive the summary instead of the messages it covers. Nothing is lost: the
messages stay, and the summary is an artifact that names them. An active run
summarizes before its next model call.`,
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
			sent, err := client.Compact(ctx, id)
			if err != nil {
				return err
			}
			var done artel.CompactionCompleted
			print := func() error {
				return g.print(cmd, done, func(w printer) {
					w.line(fmt.Sprintf("%d messages summed up", done.Replaced))
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
}
