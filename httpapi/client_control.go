// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
)

// Inject says something to a run at work.
func (c *Client) Inject(ctx context.Context, id artel.RunID, text string) (out app.Injection, err error) {
	return out, c.json(ctx, http.MethodPost, "/runs/"+string(id)+"/inject", NewInjection{text}, &out)
}

// Decide answers a run's question whether a tool may be called.
func (c *Client) Decide(ctx context.Context, id artel.RunID, question artel.PermissionID, d NewDecision) (out app.Permission, err error) {
	return out, c.json(ctx, http.MethodPost, "/runs/"+string(id)+"/permissions/"+string(question), d, &out)
}

// Usage tells what all runs of a conversation took.
func (c *Client) Usage(ctx context.Context, id artel.ConversationID) (out artel.Usage, err error) {
	return out, c.json(ctx, http.MethodGet, "/conversations/"+string(id)+"/usage", nil, &out)
}

// Waiting lists what waits in a conversation.
func (c *Client) Waiting(ctx context.Context, id artel.ConversationID) (out app.Waiting, err error) {
	return out, c.json(ctx, http.MethodGet, "/conversations/"+string(id)+"/waiting", nil, &out)
}

// Edit sends a message in the place of another, on a branch beside it.
func (c *Client) Edit(ctx context.Context, id artel.ConversationID, m artel.MessageID, e MessageEdit) (out Sent, err error) {
	return out, c.json(ctx, http.MethodPost, "/conversations/"+string(id)+"/messages/"+string(m)+"/edit", e, &out)
}

// Retry asks for another answer, on a branch beside the one that there is.
func (c *Client) Retry(ctx context.Context, id artel.ConversationID, m artel.MessageID, r MessageRetry) (out Sent, err error) {
	return out, c.json(ctx, http.MethodPost, "/conversations/"+string(id)+"/messages/"+string(m)+"/retry", r, &out)
}

// Mute leaves a message out of what models are sent, or takes it in again.
func (c *Client) Mute(ctx context.Context, id artel.ConversationID, m artel.MessageID, muted bool) (out artel.Message, err error) {
	return out, c.json(ctx, http.MethodPatch, "/conversations/"+string(id)+"/messages/"+string(m), MessageMuting{muted}, &out)
}

// Switch makes the branch active that goes through a message.
func (c *Client) Switch(ctx context.Context, id artel.ConversationID, through artel.MessageID) (out artel.Conversation, err error) {
	leaf := string(through)
	return out, c.json(ctx, http.MethodPatch, "/conversations/"+string(id), ConversationChange{Leaf: &leaf}, &out)
}

// Branch reads the branch that ends in leaf ("": the active one), with the
// siblings of each message.
func (c *Client) Branch(ctx context.Context, id artel.ConversationID, leaf artel.MessageID) (out List[app.BranchMessage], err error) {
	return out, c.json(ctx, http.MethodGet, "/conversations/"+string(id)+"/branch?leaf="+string(leaf), nil, &out)
}
