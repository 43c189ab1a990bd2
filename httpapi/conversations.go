// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/store"
)

// A NewConversation is the body of POST /conversations.
type NewConversation struct {
	Title   string `json:"title,omitempty" maxLength:"256"`
	Agent   string `json:"agent,omitempty" maxLength:"256"`
	Service string `json:"service,omitempty" maxLength:"256"`

	Greeting *int `json:"greeting,omitempty" minimum:"0" doc:"the greeting of the agent that becomes the first message, 0 is the first; absent: there is no message"`
}

// A ConversationChange is the body of PATCH /conversations/{cid}.
type ConversationChange struct {
	Title *string `json:"title,omitempty" minLength:"1" maxLength:"256"`
	Leaf  *string `json:"leaf,omitempty" doc:"a message: the branch that goes through it becomes the active one"`
}

// A SearchQuery asks for a page of the conversations that contain all its
// words.
type SearchQuery struct {
	PageQuery
	Search string `query:"search" maxLength:"200" doc:"words that are all in the title or in the messages, also as parts of longer words; case makes no difference"`
	Order  string `query:"order" enum:"best,newest" doc:"of a search: best (default) has first what holds the words in its title, and rare words, and in many messages; newest, what was updated last"`
}

// A ConversationPath names a conversation in a path. Embedded input types are
// exported because huma ignores others.
type ConversationPath struct {
	ID string `path:"cid" doc:"a conversation"`
}

func (p ConversationPath) id() (artel.ConversationID, error) { return artel.ParseConversationID(p.ID) }

func (f *server) conversations() {
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
					Title: n.Title, Agent: artel.AgentName(n.Agent), Service: artel.ServiceID(n.Service), Greeting: n.Greeting,
				})
			}))
		})

	register(f, f.op(http.MethodGet, "/conversations", "list-conversations", "List conversations, newest first, or search them, best first", http.StatusOK),
		func(ctx context.Context, in *SearchQuery) (*body[List[store.Listed]], error) {
			items, next, err := f.app.Conversations.List(ctx, store.ConversationQuery{Search: in.Search, Best: in.Order != "newest", Page: store.Page{Cursor: in.Cursor, Limit: in.Limit}})
			return answer(listOf(items, next), err)
		})

	register(f, f.op(http.MethodGet, "/conversations/{cid}", "read-conversation", "Read a conversation", http.StatusOK),
		func(ctx context.Context, in *ConversationPath) (*body[artel.Conversation], error) {
			return answerFor(ctx, in.id, f.app.Conversations.Find)
		})

	register(f, f.op(http.MethodPatch, "/conversations/{cid}", "change-conversation", "Rename a conversation, or switch to another of its branches", http.StatusOK),
		func(ctx context.Context, in *struct {
			ConversationPath
			Body ConversationChange
		},
		) (*body[artel.Conversation], error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			if in.Body.Title == nil && in.Body.Leaf == nil {
				return nil, artel.Errorf(artel.Invalid, "httpapi", "body", "want a title, a leaf, or both")
			}
			var c artel.Conversation
			if in.Body.Leaf != nil {
				leaf, err := artel.ParseMessageID(*in.Body.Leaf)
				if err != nil {
					return nil, err
				}
				if c, err = f.app.Conversations.Switch(ctx, id, leaf); err != nil {
					return nil, err
				}
			}
			if in.Body.Title != nil {
				c, err = f.app.Conversations.Rename(ctx, id, *in.Body.Title)
			}
			return answer(c, err)
		})

	register(f, f.op(http.MethodPost, "/conversations/{cid}/restore", "restore-conversation", "Bring back a conversation that was deleted less than an hour ago", http.StatusOK),
		func(ctx context.Context, in *ConversationPath) (*body[artel.Conversation], error) {
			return answerFor(ctx, in.id, f.app.Conversations.Restore)
		})

	register(f, f.op(http.MethodDelete, "/conversations/{cid}", "delete-conversation", "Delete a conversation with everything in it; for an hour, restore brings it back", http.StatusNoContent),
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
			items, next, err := f.app.Messages.List(ctx, id, store.Page{Cursor: in.Cursor, Limit: in.Limit})
			return answer(listOf(items, next), err)
		})
}
