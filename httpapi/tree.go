// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/run"
)

// A MessagePath names a message in a path.
type MessagePath struct {
	ConversationPath
	Message string `path:"mid" doc:"a message of the conversation"`
}

func (p MessagePath) parse() (artel.ConversationID, artel.MessageID, error) {
	c, err := p.id()
	if err != nil {
		return "", "", err
	}
	m, err := artel.ParseMessageID(p.Message)
	return c, m, err
}

// A MessageEdit is the body of POST /conversations/{cid}/messages/{mid}/edit.
type MessageEdit struct {
	Text        *string   `json:"text,omitempty" doc:"absent: that of the message"`
	Attachments *[]string `json:"attachments,omitempty" nullable:"false" doc:"artifact ids or refs; absent: those of the message"`
	MessageRetry
}

// A MessageRetry is the body of POST /conversations/{cid}/messages/{mid}/retry.
type MessageRetry struct {
	Agent    string `json:"agent,omitempty" maxLength:"256"`
	Service  string `json:"service,omitempty" maxLength:"256"`
	IfActive string `json:"if_active,omitempty" enum:"reject,queue" doc:"what to do while another run is active"`
}

func (r MessageRetry) edit() run.Edit {
	return run.Edit{Agent: artel.AgentName(r.Agent), Service: artel.ServiceID(r.Service), Queue: r.IfActive == "queue"}
}

// A MessageMuting is the body of PATCH /conversations/{cid}/messages/{mid}.
type MessageMuting struct {
	Muted bool `json:"muted" doc:"models are not sent it"`
}

func (f *server) tree() {
	const path = "/conversations/{cid}/messages/{mid}"
	send := func(ctx context.Context, key, verb string, p MessagePath, e run.Edit) (*body[Sent], error) {
		c, m, err := p.parse()
		if err != nil {
			return nil, err
		}
		return answer(once(ctx, f, key, []any{verb, c, m, e}, func() (Sent, error) {
			run, err := f.app.Runs.Edit(ctx, c, m, e)
			return sentOf(c, run), err
		}))
	}
	register(f, f.op(http.MethodPost, path+"/edit", "edit-message", "Replace a message by another text, on a branch beside it: a user message is sent, an answer is stored as edited", http.StatusAccepted),
		func(ctx context.Context, in *struct {
			MessagePath
			OnceHeader
			Body MessageEdit
		},
		) (*body[Sent], error) {
			e := in.Body.edit()
			e.Text, e.Attachments = in.Body.Text, in.Body.Attachments
			return send(ctx, in.Key, "edit", in.MessagePath, e)
		})

	register(f, f.op(http.MethodPost, path+"/retry", "retry-message", "Ask for another answer, on a branch beside the present one", http.StatusAccepted),
		func(ctx context.Context, in *struct {
			MessagePath
			OnceHeader
			Body *MessageRetry
		},
		) (*body[Sent], error) {
			var r MessageRetry
			if in.Body != nil {
				r = *in.Body
			}
			return send(ctx, in.Key, "retry", in.MessagePath, r.edit())
		})

	register(f, f.op(http.MethodPatch, path, "change-message", "Mute a message, or take it in again", http.StatusOK),
		func(ctx context.Context, in *struct {
			MessagePath
			Body MessageMuting
		},
		) (*body[artel.Message], error) {
			c, m, err := in.parse()
			if err != nil {
				return nil, err
			}
			return answer(f.app.Messages.Mute(ctx, c, m, in.Body.Muted))
		})

	register(f, f.op(http.MethodGet, "/conversations/{cid}/branch", "read-branch", "Read a branch, root first, with the siblings of each message", http.StatusOK),
		func(ctx context.Context, in *struct {
			ConversationPath
			Leaf  string `query:"leaf" doc:"the message in which it ends; absent: the active branch"`
			Limit int    `query:"limit" minimum:"0" maximum:"10000" default:"0" doc:"of it the last; 0: all"`
		},
		) (*body[List[app.BranchMessage]], error) {
			c, err := in.id()
			if err != nil {
				return nil, err
			}
			var leaf artel.MessageID
			if in.Leaf != "" {
				if leaf, err = artel.ParseMessageID(in.Leaf); err != nil {
					return nil, err
				}
			}
			turns, err := f.app.Messages.Turns(ctx, c, leaf, in.Limit)
			return answer(listOf(turns, ""), err)
		})
}
