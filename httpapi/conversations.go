// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
)

// A NewConversation is the body of POST /conversations.
type NewConversation struct {
	Title   string `json:"title,omitempty" maxLength:"256"`
	Agent   string `json:"agent,omitempty" maxLength:"256"`
	Service string `json:"service,omitempty" maxLength:"256"`
}

// A ConversationPath is the part of a path that names a conversation. Input
// types that others embed are exported because huma looks at no others.
type ConversationPath struct {
	ID string `path:"cid" doc:"a conversation"`
}

func (p ConversationPath) id() (artel.ConversationID, error) { return artel.ParseConversationID(p.ID) }

func (f *face) conversations() {
	register(f, f.op(http.MethodPost, "/conversations", "create-conversation", "Begin a conversation", http.StatusCreated),
		func(ctx context.Context, in *struct {
			OnceHeader
			Body *NewConversation
		},
		) (*body[artel.Conversation], error) {
			var n NewConversation
			if in.Body != nil {
				n = *in.Body
			}
			return answer(once(ctx, f, in.Key, []any{"conversation", n}, func() (artel.Conversation, error) {
				return f.app.Conversations.Create(ctx, app.NewConversation{
					Title: n.Title, Agent: artel.AgentName(n.Agent), Service: artel.ServiceID(n.Service),
				})
			}))
		})

	register(f, f.op(http.MethodGet, "/conversations", "list-conversations", "List conversations, newest first", http.StatusOK),
		func(ctx context.Context, in *PageQuery) (*body[List[artel.Conversation]], error) {
			items, next, err := f.app.Conversations.List(ctx, app.Page{Cursor: in.Cursor, Limit: in.Limit})
			return answer(listOf(items, next), err)
		})

	register(f, f.op(http.MethodGet, "/conversations/{cid}", "read-conversation", "Read a conversation", http.StatusOK),
		func(ctx context.Context, in *ConversationPath) (*body[artel.Conversation], error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			return answer(f.app.Conversations.Find(ctx, id))
		})

	register(f, f.op(http.MethodDelete, "/conversations/{cid}", "delete-conversation", "Delete a conversation with everything in it", http.StatusNoContent),
		func(ctx context.Context, in *ConversationPath) (*none, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			return nil, f.app.Conversations.Delete(ctx, id)
		})

	register(f, f.op(http.MethodGet, "/conversations/{cid}/messages", "list-messages", "List the messages of all branches, oldest first", http.StatusOK),
		func(ctx context.Context, in *struct {
			ConversationPath
			PageQuery
		},
		) (*body[List[artel.Message]], error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			items, next, err := f.app.Conversations.Messages(ctx, id, app.Page{Cursor: in.Cursor, Limit: in.Limit})
			return answer(listOf(items, next), err)
		})
}
