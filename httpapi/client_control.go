// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/run"
)

// Inject sends a text to an active run.
func (c *Client) Inject(ctx context.Context, id artel.RunID, text string) (out run.Injection, err error) {
	return out, c.json(ctx, http.MethodPost, "/runs/"+string(id)+"/inject", NewInjection{text}, &out)
}

// Decide answers the question of a run whether a tool may be called.
func (c *Client) Decide(ctx context.Context, id artel.RunID, question artel.PermissionID, d NewDecision) (out run.Permission, err error) {
	return out, c.json(ctx, http.MethodPost, "/runs/"+string(id)+"/permissions/"+string(question), d, &out)
}

// Elicit answers a question of a tool server.
func (c *Client) Elicit(ctx context.Context, id artel.RunID, question artel.ElicitationID, a NewElicitAnswer) (out run.Elicitation, err error) {
	return out, c.json(ctx, http.MethodPost, "/runs/"+string(id)+"/elicitations/"+string(question), a, &out)
}

// Usage returns the usage of all runs of a conversation.
func (c *Client) Usage(ctx context.Context, id artel.ConversationID) (out artel.Usage, err error) {
	return out, c.json(ctx, http.MethodGet, "/conversations/"+string(id)+"/usage", nil, &out)
}

// Waiting lists the queued messages, injections and open questions of a
// conversation.
func (c *Client) Waiting(ctx context.Context, id artel.ConversationID) (out run.Waiting, err error) {
	return out, c.json(ctx, http.MethodGet, "/conversations/"+string(id)+"/waiting", nil, &out)
}

// Edit sends a message that replaces another, on a branch beside it.
func (c *Client) Edit(ctx context.Context, id artel.ConversationID, m artel.MessageID, e MessageEdit) (out Sent, err error) {
	return out, c.json(ctx, http.MethodPost, "/conversations/"+string(id)+"/messages/"+string(m)+"/edit", e, &out)
}

// Retry asks for another answer, on a branch beside the present one.
func (c *Client) Retry(ctx context.Context, id artel.ConversationID, m artel.MessageID, r MessageRetry) (out Sent, err error) {
	return out, c.json(ctx, http.MethodPost, "/conversations/"+string(id)+"/messages/"+string(m)+"/retry", r, &out)
}

// Mute excludes a message from what models are sent, or includes it again.
func (c *Client) Mute(ctx context.Context, id artel.ConversationID, m artel.MessageID, muted bool) (out artel.Message, err error) {
	return out, c.json(ctx, http.MethodPatch, "/conversations/"+string(id)+"/messages/"+string(m), MessageMuting{muted}, &out)
}

// Compact starts a run that summarises the active branch. focus is what the summary
// keeps in detail; "": nothing in particular.
func (c *Client) Compact(ctx context.Context, id artel.ConversationID, focus string) (out Sent, err error) {
	return out, c.json(ctx, http.MethodPost, "/conversations/"+string(id)+"/compact", NewCompaction{focus}, &out)
}

// UndoCompaction undoes a summary; "": the newest that models are sent.
func (c *Client) UndoCompaction(ctx context.Context, id artel.ConversationID, summary artel.MessageID) (out run.SummaryChange, err error) {
	return out, c.json(ctx, http.MethodPost, "/conversations/"+string(id)+"/compact/undo", SummaryChoice{string(summary)}, &out)
}

// RedoCompaction takes [Client.UndoCompaction] back; "": of the one that was undone last.
func (c *Client) RedoCompaction(ctx context.Context, id artel.ConversationID, summary artel.MessageID) (out run.SummaryChange, err error) {
	return out, c.json(ctx, http.MethodPost, "/conversations/"+string(id)+"/compact/redo", SummaryChoice{string(summary)}, &out)
}

// Summaries lists the summaries of the active branch, oldest first.
func (c *Client) Summaries(ctx context.Context, id artel.ConversationID) (out List[run.Summary], err error) {
	return out, c.json(ctx, http.MethodGet, "/conversations/"+string(id)+"/summaries", nil, &out)
}

// Summarised reads the messages that a summary stands for, oldest first.
func (c *Client) Summarised(ctx context.Context, id artel.ConversationID, summary artel.MessageID) (out List[artel.Message], err error) {
	return out, c.json(ctx, http.MethodGet, "/conversations/"+string(id)+"/summaries/"+string(summary)+"/messages", nil, &out)
}

// Replay makes a run again on a service, from an answer on (0: all), and compares both.
func (c *Client) Replay(ctx context.Context, id artel.RunID, service artel.ServiceID, from int) (out run.Comparison, err error) {
	return out, c.json(ctx, http.MethodPost, "/runs/"+string(id)+"/replay", NewReplay{string(service), from}, &out)
}

// Switch activates the branch through a message.
func (c *Client) Switch(ctx context.Context, id artel.ConversationID, through artel.MessageID) (out artel.Conversation, err error) {
	leaf := string(through)
	return out, c.json(ctx, http.MethodPatch, "/conversations/"+string(id), ConversationChange{Leaf: &leaf}, &out)
}

// Branch reads the branch that ends in leaf ("": the active one), with the
// siblings of each message.
func (c *Client) Branch(ctx context.Context, id artel.ConversationID, leaf artel.MessageID) (out List[app.BranchMessage], err error) {
	return out, c.json(ctx, http.MethodGet, "/conversations/"+string(id)+"/branch?leaf="+string(leaf), nil, &out)
}
