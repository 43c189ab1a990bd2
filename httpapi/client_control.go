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
func (c *Client) Decide(ctx context.Context, id artel.RunID, question artel.PermissionID, d artel.Decision) (out app.Permission, err error) {
	return out, c.json(ctx, http.MethodPost, "/runs/"+string(id)+"/permissions/"+string(question), NewDecision{d}, &out)
}

// Waiting lists what waits in a conversation.
func (c *Client) Waiting(ctx context.Context, id artel.ConversationID) (out app.Waiting, err error) {
	return out, c.json(ctx, http.MethodGet, "/conversations/"+string(id)+"/waiting", nil, &out)
}
