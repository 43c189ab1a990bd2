// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// Tools are the use cases of single tool calls, outside any run.
type Tools struct{ core *core }

// List returns the specifications of the tools currently available.
func (ts *Tools) List(ctx context.Context) []model.ToolSpec {
	return ts.core.tools.Set(artel.OwnerOf(ctx)).Specs()
}

// Prefixes are what the names of tools begin with that may come later. An agent
// that names a prefix with a * behind it has all of them.
func (ts *Tools) Prefixes(context.Context) []string { return ts.core.tools.Prefixes() }

// Servers says how the servers of tools are doing, to administrators.
func (ts *Tools) Servers(ctx context.Context) ([]tool.ServerHealth, error) {
	if err := access.Require(ctx, store.ScopeAdmin); err != nil {
		return nil, err
	}
	return ts.core.tools.Health(), nil
}

// Call runs one tool on a conversation in a workspace of its own: what it
// writes is a version at once, and belongs to the newest message of the
// active branch. A failure that the caller can mend is a result; an unknown
// tool is of kind NotFound. The deployment's permissions hold: a denied
// tool is of kind Denied, code "tool_denied"; one set to ask also is, code
// "tool_needs_confirmation", unless the caller has confirmed the call.
func (ts *Tools) Call(ctx context.Context, c artel.ConversationID, name string, args json.RawMessage, t Target, confirmed bool) (tool.Result, error) {
	owner := artel.OwnerOf(ctx)
	ts.core.tools.Await(ctx, owner)
	box := ts.core.tools.Set(owner)
	if !box.Has(name) {
		return tool.Result{}, &artel.Error{
			Op: "app.Tools.Call", Subject: artel.Shorten(name, 80), Kind: artel.NotFound, Code: "tool_not_found",
			Err: errors.New("there is no such tool; GET /tools lists them"),
		}
	}
	if err := ts.Permit(name, confirmed); err != nil {
		return tool.Result{}, err
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

// Permit refuses a call that the deployment's permissions do not allow, as [Tools.Call].
func (ts *Tools) Permit(name string, confirmed bool) error {
	return permit("the deployment", ts.core.permissions, name, confirmed)
}

// permit refuses a call that the permissions of the deployment, or of an agent, do not
// allow.
func permit(whose string, permissions agent.Permissions, name string, confirmed bool) error {
	rule, level := name, permissions.Of(name)
	if _, named := permissions[name]; !named {
		rule = agent.AnyTool
	}
	refuse := func(code, format string) error {
		return &artel.Error{Op: "app.Tools.Call", Subject: artel.Shorten(name, 80), Kind: artel.Denied, Code: code, Err: fmt.Errorf(format, whose, rule, level)}
	}
	switch {
	case level == agent.Deny:
		return refuse("tool_denied", "%s does not allow the tool: permissions has %q: %s")
	case level == agent.Ask && !confirmed:
		return refuse("tool_needs_confirmation", "%s wants a confirmation of each call: permissions has %q: %s; repeat the call with confirm=true after a user has agreed")
	}
	return nil
}

// A TakenResult is the result of a tool outside Artel. Call
// [TakenResult.Scrub], then [TakenResult.Finish].
type TakenResult struct {
	core         *core
	media        *run.StagedMedia
	conversation artel.ConversationID
	at           artel.MessageID
	limit        int64
}

// A ScrubbedResult is a tool's result without media. Content is JSON: the result
// with refs in place of media, a shortened text or, if the whole result is one
// file, the path under which that is served.
type ScrubbedResult struct {
	Content  json.RawMessage `json:"content"`
	Metadata map[string]any  `json:"metadata"`
}

// TakeResult starts to receive a result.
func (ts *Tools) TakeResult(ctx context.Context, c artel.ConversationID) (*TakenResult, error) {
	at, err := ts.core.writeBase(ctx, c, "")
	if err != nil {
		return nil, err
	}
	return &TakenResult{core: ts.core, media: run.NewStagedMedia(ts.core.artifacts), conversation: c, at: at, limit: int64(ts.core.maxText)}, nil
}

// Scrub copies a stream of JSON to dst without its media. The rest has at most the
// length of an artifact's text.
func (t *TakenResult) Scrub(ctx context.Context, dst io.Writer, src io.Reader) error {
	return scrub.Copy(ctx, &limited{dst, t.limit, t.limit}, src, t.media.Keep)
}

// limited refuses to write more than limit bytes.
type limited struct {
	io.Writer
	left, limit int64
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, artel.Errorf(artel.TooLarge, "app.Tools.TakeResult", "body", "without media it has more than %s, which the text of an artifact may have; send less of it", phrase.Size(l.limit))
	}
	return l.Writer.Write(p)
}

// Finish makes artifacts of the media, and of content that is too long to be
// shown. content is JSON from Scrub.
func (t *TakenResult) Finish(ctx context.Context, name string, content json.RawMessage) (ScrubbedResult, error) {
	env := t.core.envAt(ctx, t.conversation, t.at, Target{})
	k := tool.NewKeeper(&env)
	kept := make([]artel.Artifact, len(t.media.Staged()))
	for i, s := range t.media.Staged() {
		a, err := k.Add(ctx, s)
		if err != nil {
			return ScrubbedResult{}, err
		}
		kept[i] = a
	}
	text := t.media.Replacer(kept).Replace(string(content))
	shown, isText := text, strings.HasPrefix(text, `"`)
	if isText {
		if err := json.Unmarshal([]byte(text), &shown); err != nil {
			return ScrubbedResult{}, artel.Errorf(artel.Invalid, "app.Tools.TakeResult", "content", "it is no JSON: %w", err)
		}
	}
	r, err := k.Finish(ctx, tool.Result{Content: shown})
	if err != nil {
		return ScrubbedResult{}, err
	}
	t.core.log.Notifier().Notify(t.conversation)
	out := ScrubbedResult{Content: json.RawMessage(text), Metadata: r.Metadata}
	out.Metadata["tool"] = artel.Shorten(name, tool.MaxName)
	if url, ok := r.Metadata["url"].(string); ok && isText && len(kept) == 1 && strings.TrimSpace(shown) == kept[0].MediaPart().Ref.String() {
		r.Content = url // the result is that file
	}
	if isText || r.Content != shown {
		out.Content, err = json.Marshal(r.Content)
	}
	return out, err
}
