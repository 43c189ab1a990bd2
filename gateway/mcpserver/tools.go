// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// scopeArgument is the argument that every tool has here.
const scopeArgument = "conversation"

// ownTools returns the tools of the product by name.
func ownTools() map[string]tool.Tool {
	all := map[string]tool.Tool{}
	for _, t := range tool.BuiltIn() {
		all[t.Name] = t
	}
	return all
}

// reads reports whether a tool changes nothing. Tools of other servers may.
func (h *Handler) reads(name string) bool {
	t, ok := h.own[name]
	return ok && t.Repeat == tool.RepeatAlways
}

// showsContent reports whether the result of a tool is the content of artifacts. Such
// tools have no output schema: hosts that get a structured result give the model only
// that, without the texts and pictures beside it.
func (h *Handler) showsContent(name string) bool {
	t, ok := h.own[name]
	return !ok || t.ShowsContent
}

// describe returns what clients see of a tool.
func (h *Handler) describe(spec model.ToolSpec) *mcp.Tool {
	_, own := h.own[spec.Name]
	destroys := !own || spec.Name == "delete_artifact"
	open := !own || spec.Name == "put_artifact" // which fetches addresses
	t := &mcp.Tool{
		Name: spec.Name, Description: spec.Description, InputSchema: withScope(spec.Schema),
		Annotations: &mcp.ToolAnnotations{
			Title: titleOf(spec.Name), ReadOnlyHint: h.reads(spec.Name), IdempotentHint: h.reads(spec.Name), OpenWorldHint: &open,
		},
	}
	t.Title = t.Annotations.Title
	if !t.Annotations.ReadOnlyHint {
		t.Annotations.DestructiveHint = &destroys
	}
	if !h.showsContent(spec.Name) {
		t.OutputSchema = json.RawMessage(outputSchema)
	}
	return t
}

// titleOf returns a name as words.
func titleOf(name string) string {
	words := strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' }), " ")
	if words == "" {
		return name
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

// withScope adds the argument conversation to a schema that has none of this name.
func withScope(schema json.RawMessage) json.RawMessage {
	var s map[string]any
	if json.Unmarshal(schema, &s) != nil {
		return schema
	}
	withoutHeaders(s)
	properties, _ := s["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
	}
	if _, taken := properties[scopeArgument]; !taken {
		properties[scopeArgument] = map[string]any{"type": "string", "description": "id or title of another conversation"}
	}
	s["properties"] = properties
	out, err := json.Marshal(s)
	if err != nil {
		return schema
	}
	return out
}

// withoutHeaders removes the names of headers from the schema of another server's tool:
// clients would have to repeat arguments in them here.
func withoutHeaders(schema map[string]any) {
	delete(schema, "x-mcp-header")
	properties, _ := schema["properties"].(map[string]any)
	for _, p := range properties {
		if inner, ok := p.(map[string]any); ok {
			withoutHeaders(inner)
		}
	}
}

// unscoped takes the argument conversation out of the arguments.
func (h *Handler) unscoped(ctx context.Context, name string, args json.RawMessage) (rest json.RawMessage, conversation string, err error) {
	if !strings.Contains(string(args), `"`+scopeArgument+`"`) {
		return args, "", nil
	}
	for _, t := range h.app.Tools.List(ctx) {
		var s struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if t.Name == name && json.Unmarshal(t.Schema, &s) == nil && s.Properties[scopeArgument] != nil {
			return args, "", nil // its own
		}
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil || all[scopeArgument] == nil {
		return args, "", nil //nolint:nilerr // the tool says what is wrong
	}
	if err := json.Unmarshal(all[scopeArgument], &conversation); err != nil {
		return args, "", artel.Errorf(artel.Invalid, "mcp", scopeArgument, "want the id or the title of a conversation, as a text")
	}
	delete(all, scopeArgument)
	rest, err = json.Marshal(all)
	return rest, conversation, err
}

// pictureCapabilities: hosts show pictures to their models. Recordings and documents come
// as text.
func pictureCapabilities() []artel.Capability {
	return []artel.Capability{artel.CanText, artel.CanVision}
}

// callTool is the handler of all tools.
func (h *Handler) callTool(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	name := r.Params.Name
	if !h.reads(name) {
		if err := access.Require(ctx, store.ScopeWrite); err != nil {
			return failed(fmt.Sprintf("%s changes things, which is not allowed: %v", name, err)), nil
		}
	}
	args, given, err := h.unscoped(ctx, name, r.Params.Arguments)
	if err != nil {
		return h.refused(ctx, err)
	}
	c, err := h.conversation(ctx, given)
	if err != nil {
		return h.refused(ctx, err)
	}
	state := stateOf(c.ID, name, args)
	confirmed, answered := confirmation(r, state)
	if answered && !confirmed {
		return failed(fmt.Sprintf("the user did not allow %s; do not try it again in other words", name)), nil
	}
	defer h.progress(ctx, r)()
	result, err := h.app.Tools.Call(ctx, c.ID, name, args, app.Target{Capabilities: pictureCapabilities(), Shown: shown()}, confirmed)
	switch {
	case artel.CodeOf(err) == "tool_needs_confirmation" && asks(r):
		return &mcp.CallToolResult{
			InputRequests: mcp.InputRequestMap{confirmKey: question(name, args)}, RequestState: state,
		}, nil
	case artel.CodeOf(err) == "tool_needs_confirmation":
		return failed(fmt.Sprintf("%s needs the agreement of a user, and this client cannot ask (it has no elicitation): set permissions for %s in artel.yaml, or let the user do it on the page", name, name)), nil
	case artel.CodeOf(err) == "tool_not_found":
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q; tools/list has the available tools", artel.Shorten(name, 80))}
	case err != nil:
		return h.refused(ctx, err)
	}
	return h.answer(ctx, c.ID, name, result)
}

// refused returns the result for an error that the model can correct; others are errors
// of the protocol.
func (h *Handler) refused(ctx context.Context, err error) (*mcp.CallToolResult, error) {
	switch artel.KindOf(err) {
	case artel.Internal, artel.Unavailable, artel.Canceled, artel.Unauthenticated:
		return nil, h.failure(ctx, err)
	}
	return failed(err.Error()), nil
}

func failed(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// confirmKey names the question for the agreement of a user.
const confirmKey = "confirm"

// stateOf binds an agreement to one call.
func stateOf(c artel.ConversationID, name string, args json.RawMessage) string {
	sum := sha256.Sum256([]byte(string(c) + "\n" + name + "\n" + string(args)))
	return hex.EncodeToString(sum[:])
}

// confirmation returns what the user has answered for the call with a state.
func confirmation(r *mcp.CallToolRequest, state string) (agreed, answered bool) {
	answer, ok := r.Params.InputResponses[confirmKey].(*mcp.ElicitResult)
	if !ok || r.Params.RequestState != state {
		return false, false
	}
	allowed, _ := answer.Content["allow"].(bool)
	return answer.Action == "accept" && allowed, true
}

// asks reports whether the client can ask its user.
func asks(r *mcp.CallToolRequest) bool {
	c := r.ClientCapabilities()
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// question asks the user for the agreement to a call.
func question(name string, args json.RawMessage) *mcp.ElicitParams {
	return &mcp.ElicitParams{
		Message:         fmt.Sprintf("Allow %s with %s?", name, artel.Shorten(string(args), 1000)),
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{"allow":{"type":"boolean","title":"Allow this call"}},"required":["allow"]}`),
	}
}

// progress reports that a call is at work, if the client asks for that, until the
// returned function is called.
func (h *Handler) progress(ctx context.Context, r *mcp.CallToolRequest) (end func()) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		began, tick := time.Now(), time.NewTicker(h.options.Progress)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			took := time.Since(began)
			p := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: took.Seconds(), Message: fmt.Sprintf("%s has been at work for %s", r.Params.Name, took.Round(time.Second))}
			if r.Session.NotifyProgress(ctx, p) != nil {
				return // the client has left
			}
		}
	}()
	return func() { cancel(); <-done }
}
