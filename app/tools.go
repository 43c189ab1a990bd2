// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/tool"
)

// Tools are the use cases of single tool calls, outside any run.
type Tools struct{ *core }

// List returns what the tools say of themselves.
func (ts *Tools) List(context.Context) []model.ToolSpec { return ts.box.Specs(ts.box.Names()...) }

// Call runs one tool on a conversation in a workspace of its own: what it
// writes is a version at once, and belongs to the newest message of the
// active branch. A failure that the caller can mend is a result; an unknown
// tool is of kind NotFound.
func (ts *Tools) Call(ctx context.Context, c artel.ConversationID, name string, args json.RawMessage, t Target) (tool.Result, error) {
	if !ts.box.Has(name) {
		return tool.Result{}, &artel.Error{
			Op: "app.Tools.Call", Subject: artel.Shorten(name, 80), Kind: artel.NotFound, Code: "tool_not_found",
			Err: errors.New("there is no such tool; GET /tools lists them"),
		}
	}
	at, err := ts.desk(ctx, c, "")
	if err != nil {
		return tool.Result{}, err
	}
	env := ts.env(ownerOf(ctx), c, at, ts.workspace(ctx, c, at), ts.target(t))
	_, given, err := ts.box.Arguments(ctx, &env, name, args)
	if err != nil {
		return tool.Result{}, err
	}
	result, err := ts.box.Call(ctx, &env, name, given)
	ts.log.Bell().Ring(c)
	return result, err
}
