// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/model"
)

// Tools are the use cases of single tool calls, outside any run.
type Tools struct{ core *core }

// List returns the specifications of the tools currently available.
func (ts *Tools) List(context.Context) []model.ToolSpec { return ts.core.tools.Box().Specs() }

// Prefixes are what the names of tools begin with that may come later. An agent
// that names a prefix with a * behind it has all of them.
func (ts *Tools) Prefixes(context.Context) []string { return ts.core.tools.Prefixes() }

// Servers says how the servers of tools are doing.
func (ts *Tools) Servers(context.Context) []tool.ServerHealth {
	return ts.core.tools.Health()
}

// Call runs one tool on a conversation in a workspace of its own: what it
// writes is a version at once, and belongs to the newest message of the
// active branch. A failure that the caller can mend is a result; an unknown
// tool is of kind NotFound.
func (ts *Tools) Call(ctx context.Context, c artel.ConversationID, name string, args json.RawMessage, t Target) (tool.Result, error) {
	box := ts.core.tools.Box()
	if !box.Has(name) {
		return tool.Result{}, &artel.Error{
			Op: "app.Tools.Call", Subject: artel.Shorten(name, 80), Kind: artel.NotFound, Code: "tool_not_found",
			Err: errors.New("there is no such tool; GET /tools lists them"),
		}
	}
	at, err := ts.core.writeBase(ctx, c, "")
	if err != nil {
		return tool.Result{}, err
	}
	env := ts.core.envAt(ctx, c, at, t)
	_, given, err := box.Arguments(ctx, &env, name, args)
	if err != nil {
		return tool.Result{}, err
	}
	result, err := box.Call(ctx, &env, name, given)
	ts.core.log.Notifier().Notify(c)
	return result, err
}
