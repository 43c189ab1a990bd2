// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/store"
)

// Apps are the use cases of the pages that MCP servers have for their tools (MCP Apps).
// What an app may do is what its user may: it reaches the server that it came from, with
// the tools that the server has for apps, and the permissions of tools hold.
type Apps struct{ core *core }

// An AppPlace names the app of a call: the message that has the result of the call.
type AppPlace struct {
	Conversation artel.ConversationID
	Message      artel.MessageID
	Call         artel.CallID
}

// A ShownApp is an app with what its page gets.
type ShownApp struct {
	mcp.App
	Arguments json.RawMessage // of the call
	Answer    json.RawMessage // the result as the server gave it; nil: it was too long to be kept

	agent artel.AgentName
}

// maxMessagesBack is how far the call may be before its result.
const maxMessagesBack = 200

// Find returns the app of a call.
func (as *Apps) Find(ctx context.Context, at AppPlace) (ShownApp, error) {
	const op = "app.Apps"
	if err := access.Require(ctx, store.ScopeRead); err != nil {
		return ShownApp{}, err
	}
	missing := artel.Errorf(artel.NotFound, op, artel.Shorten(string(at.Call), 80), "there is no app at this call")
	var branch []artel.Message
	err := as.core.view(ctx, func(tx store.Tx) (err error) {
		if _, err = tx.Conversations.Get(at.Conversation); err == nil {
			branch, err = tx.Messages.Path(at.Conversation, at.Message, maxMessagesBack)
		}
		return err
	})
	if err != nil || len(branch) == 0 {
		return ShownApp{}, errors.Join(err, missing)
	}
	out, found := ShownApp{}, false
	for _, r := range artel.ResultsOf(branch[len(branch)-1].Parts) {
		if r.CallID == at.Call {
			out.App, found = mcp.AppOf(r.Metadata)
		}
	}
	if !found {
		return ShownApp{}, missing
	}
	for i := len(branch) - 1; i >= 0 && out.Arguments == nil; i-- {
		for _, c := range artel.CallsOf(branch[i].Parts) {
			if c.ID == at.Call {
				out.Arguments, out.agent = c.Arguments, branch[i].Agent
			}
		}
	}
	if out.Arguments == nil {
		out.Arguments = json.RawMessage("{}")
	}
	if out.Result != "" {
		out.Answer, err = as.bytes(ctx, out.Result)
	}
	return out, err
}

// Page returns the HTML of an app, as the server wrote it.
func (as *Apps) Page(ctx context.Context, at AppPlace) (string, error) {
	a, err := as.Find(ctx, at)
	if err == nil && a.Page == "" {
		err = artel.Errorf(artel.NotFound, "app.Apps", a.URI, "the page of the app could not be read: %s", a.Problem)
	}
	if err != nil {
		return "", err
	}
	b, err := as.bytes(ctx, a.Page)
	return string(b), err
}

func (as *Apps) bytes(ctx context.Context, d artel.Digest) ([]byte, error) {
	r, err := as.core.blobs.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, artel.Errorf(artel.Unavailable, "app.Apps", string(d), "%w", err)
	}
	return b, nil
}

// Call calls a tool for an app and returns the server's result. The permissions of the
// deployment and of the agent that called the tool of the app hold, as in [Tools.Call].
func (as *Apps) Call(ctx context.Context, at AppPlace, name string, args json.RawMessage, confirmed bool) (json.RawMessage, error) {
	a, err := as.acting(ctx, at)
	if err != nil {
		return nil, err
	}
	owner, servers := artel.OwnerOf(ctx), as.core.pools
	full, err := servers.Tool(ctx, owner, a.Server, name)
	if err != nil {
		return nil, err
	}
	if err := permit("the deployment", as.core.permissions, full, confirmed); err != nil {
		return nil, err
	}
	if d, err := as.core.settings.Agents.Find(ctx, a.agent); err == nil { // without it, those of the deployment hold
		if err := permit("the agent "+string(a.agent), d.Permissions, full, confirmed); err != nil {
			return nil, err
		}
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	as.core.logger.InfoContext(ctx, "an app calls a tool", "conversation", at.Conversation, "mcp_server", a.Server, "tool", full, "confirmed", confirmed)
	return servers.Call(ctx, owner, a.Server, name, args)
}

// Read reads a resource of the server of an app.
func (as *Apps) Read(ctx context.Context, at AppPlace, uri string) (json.RawMessage, error) {
	a, err := as.acting(ctx, at)
	if err != nil {
		return nil, err
	}
	if uri == "" || len(uri) > 2000 || strings.ContainsFunc(uri, func(r rune) bool { return r < ' ' }) {
		return nil, artel.Errorf(artel.Invalid, "app.Apps.Read", "uri", "want the address of a resource, of at most 2,000 bytes")
	}
	as.core.logger.InfoContext(ctx, "an app reads a resource", "conversation", at.Conversation, "mcp_server", a.Server, "uri", artel.Shorten(uri, 200))
	return as.core.pools.Read(ctx, artel.OwnerOf(ctx), a.Server, uri)
}

// acting returns an app that asks its server for something.
func (as *Apps) acting(ctx context.Context, at AppPlace) (ShownApp, error) {
	if err := access.Require(ctx, store.ScopeWrite); err != nil {
		return ShownApp{}, err
	}
	return as.Find(ctx, at)
}
