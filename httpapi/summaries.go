// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/run"
)

// A NewCompaction is the body of POST /conversations/{cid}/compact.
type NewCompaction struct {
	Focus string `json:"focus,omitempty" maxLength:"2000" doc:"what the summary keeps in detail"`
}

// A SummaryChoice is the body of POST /conversations/{cid}/compact/undo and /redo.
type SummaryChoice struct {
	Summary string `json:"summary,omitempty" maxLength:"256" doc:"a summary of the active branch; absent: the newest active one to undo, the one that was undone last to redo"`
}

func (f *server) summaries() {
	const path = "/conversations/{cid}/compact"
	register(f, f.op(http.MethodPost, path, "compact-conversation", "Sum up the active branch, by a run of its own or by the active one before its next model call; models are sent the summary from then on, and nothing is lost", http.StatusAccepted),
		func(ctx context.Context, in *struct {
			ConversationPath
			Body *NewCompaction
		},
		) (*body[Sent], error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			var n NewCompaction
			if in.Body != nil {
				n = *in.Body
			}
			run, err := f.app.Runs.Compact(ctx, id, n.Focus)
			return answer(sentOf(id, run), err)
		})

	type choice struct {
		ConversationPath
		Body *SummaryChoice
	}
	change := func(ctx context.Context, in *choice, do func(context.Context, artel.ConversationID, artel.MessageID) (run.SummaryChange, error)) (*body[run.SummaryChange], error) {
		id, err := in.id()
		if err != nil {
			return nil, err
		}
		var m artel.MessageID
		if in.Body != nil && in.Body.Summary != "" {
			if m, err = artel.ParseMessageID(in.Body.Summary); err != nil {
				return nil, err
			}
		}
		return answer(do(ctx, id, m))
	}
	register(f, f.op(http.MethodPost, path+"/undo", "undo-compaction", "Undo a summary: models are sent the messages that it stands for again, from the next call on", http.StatusOK),
		func(ctx context.Context, in *choice) (*body[run.SummaryChange], error) {
			return change(ctx, in, f.app.Summaries.Undo)
		})

	register(f, f.op(http.MethodPost, path+"/redo", "redo-compaction", "Send a summary that was undone again, in place of its messages", http.StatusOK),
		func(ctx context.Context, in *choice) (*body[run.SummaryChange], error) {
			return change(ctx, in, f.app.Summaries.Redo)
		})

	register(f, f.op(http.MethodGet, "/conversations/{cid}/summaries", "list-summaries", "List the summaries of the active branch, oldest first", http.StatusOK),
		func(ctx context.Context, in *ConversationPath) (*body[List[run.Summary]], error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			all, err := f.app.Summaries.List(ctx, id)
			return answer(listOf(all, ""), err)
		})

	register(f, f.op(http.MethodGet, "/conversations/{cid}/summaries/{mid}/messages", "read-summarised-messages", "Read the messages that a summary stands for, oldest first", http.StatusOK),
		func(ctx context.Context, in *MessagePath) (*body[List[artel.Message]], error) {
			id, m, err := in.parse()
			if err != nil {
				return nil, err
			}
			all, err := f.app.Summaries.Messages(ctx, id, m)
			return answer(listOf(all, ""), err)
		})
}
