// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// maxArgument is the most bytes of an argument of a prompt.
const maxArgument = 10_000

// addPrompts registers the prompts.
func (s *server) addPrompts() {
	conversation := &mcp.PromptArgument{Name: scopeArgument, Title: "Conversation", Description: "id or title of a conversation; default: this client's"}
	s.mcp.AddPrompt(&mcp.Prompt{
		Name: "plan", Title: "Plan the work", Description: "Makes a task plan for a goal, or goes on with the one there is.",
		Arguments: []*mcp.PromptArgument{{Name: "goal", Title: "Goal", Description: "what is to be reached", Required: true}, conversation},
	}, s.h.plan)
	s.mcp.AddPrompt(&mcp.Prompt{
		Name: "summarise", Title: "Summarise an artifact", Description: "Sums up a document and keeps the summary as an artifact.",
		Arguments: []*mcp.PromptArgument{
			{Name: "artifact", Title: "Artifact", Description: "id of the artifact", Required: true},
			{Name: "length", Title: "Length", Description: "of the summary, as: five sentences"},
			conversation,
		},
	}, s.h.summarise)
}

// argument returns an argument of a prompt.
func argument(r *mcp.GetPromptRequest, name string, required bool) (string, error) {
	v := strings.TrimSpace(r.Params.Arguments[name])
	switch {
	case v == "" && required:
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("the argument %s is missing", name)}
	case len(v) > maxArgument:
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("the argument %s has more than %d bytes; put it into an artifact", name, maxArgument)}
	}
	return v, nil
}

// prompted returns the messages of a prompt: what to do, and an artifact to do it with.
func prompted(about, text string, attached *mcp.ResourceContents) *mcp.GetPromptResult {
	out := &mcp.GetPromptResult{Description: about, Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}
	if attached != nil {
		out.Messages = append(out.Messages, &mcp.PromptMessage{Role: "user", Content: &mcp.EmbeddedResource{Resource: attached}})
	}
	return out
}

// place names a conversation in the arguments of tools; "": it is the client's own.
func (h *Handler) place(r *mcp.GetPromptRequest, c artel.Conversation) string {
	if strings.TrimSpace(r.Params.Arguments[scopeArgument]) == "" {
		return ""
	}
	return fmt.Sprintf(" Give every tool the argument conversation: %q.", c.ID)
}

func (h *Handler) plan(ctx context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	goal, err := argument(r, "goal", true)
	if err != nil {
		return nil, err
	}
	c, err := h.conversation(ctx, strings.TrimSpace(r.Params.Arguments[scopeArgument]))
	if err != nil {
		return nil, err
	}
	now, err := h.contents(ctx, artel.Ref{Conversation: c.ID, Artifact: artel.TaskPlan})
	if err != nil && !errors.Is(err, artel.NotFound) {
		return nil, err
	}
	text := fmt.Sprintf("Goal: %s\n\nMake a plan before you begin. Write it with create_artifact as the artifact %s: a checklist in Markdown (- [ ] step) whose last step compares the result with the goal. Tick a step (- [x] step) with update_artifact when it is done, and change the plan when the work teaches you something.%s", goal, artel.TaskPlan, h.place(r, c))
	if now != nil {
		text = fmt.Sprintf("Goal: %s\n\nThere is a plan already; it follows. Go on with it: change it with update_artifact so that it leads to the goal, and tick each step that is done.%s", goal, h.place(r, c))
	}
	return prompted("A task plan for a goal", text, now), nil
}

func (h *Handler) summarise(ctx context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	id, err := argument(r, "artifact", true)
	if err != nil {
		return nil, err
	}
	length, err := argument(r, "length", false)
	if err != nil {
		return nil, err
	}
	c, err := h.conversation(ctx, strings.TrimSpace(r.Params.Arguments[scopeArgument]))
	if err != nil {
		return nil, err
	}
	a, text, err := h.app.Artifacts.Find(ctx, c.ID, artel.ArtifactID(id), "")
	if err != nil {
		return nil, err
	}
	ask := fmt.Sprintf("Sum up the artifact %s (%q, version %d) in %s: what it says, what it decides, and what stays open. Keep to what it says. Keep the summary as a new artifact with create_artifact.%s", a.ID, a.Title, a.Version, cmp.Or(length, "at most ten sentences"), h.place(r, c))
	if text == nil || len(*text) > maxText {
		return prompted("A summary of "+string(a.ID), ask+" Read it first with read_artifact, page by page.", nil), nil
	}
	ref := artel.Ref{Conversation: c.ID, Artifact: a.ID, Version: a.Version}
	return prompted("A summary of "+string(a.ID), ask, &mcp.ResourceContents{URI: uriOf(ref), MIMEType: a.MediaType, Text: *text}), nil
}

// maxCompleted is the most values of a completion, by the protocol.
const maxCompleted = 100

// complete completes ids of conversations and of artifacts.
func (h *Handler) complete(ctx context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	p := r.Params
	given := ""
	if p.Context != nil {
		given = p.Context.Arguments[scopeArgument]
	}
	var values []string
	var err error
	switch p.Argument.Name {
	case scopeArgument:
		values, err = h.completeConversation(ctx, p.Argument.Value)
	case "id", "artifact":
		values, err = h.completeArtifact(ctx, given, p.Argument.Value)
	case "version":
		if p.Context != nil {
			values, err = h.completeVersion(ctx, given, artel.ArtifactID(p.Context.Arguments["id"]), p.Argument.Value)
		}
	}
	if err != nil && artel.KindOf(err) != artel.NotFound {
		return nil, err
	}
	out := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}, Total: len(values), HasMore: len(values) > maxCompleted}}
	out.Completion.Values = append(out.Completion.Values, values[:min(len(values), maxCompleted)]...)
	return out, nil
}

// completeConversation returns the newest conversations with an id that begins with a
// value, or a title that contains it.
func (h *Handler) completeConversation(ctx context.Context, value string) ([]string, error) {
	list, _, err := h.app.Conversations.List(ctx, store.ConversationQuery{Page: store.Page{Limit: 500}})
	var out []string
	for _, c := range list {
		if strings.HasPrefix(string(c.ID), value) || strings.Contains(strings.ToLower(c.Title), strings.ToLower(value)) {
			out = append(out, string(c.ID))
		}
	}
	return out, err
}

func (h *Handler) completeArtifact(ctx context.Context, conversation, value string) ([]string, error) {
	c, err := h.conversation(ctx, conversation)
	if err != nil {
		return nil, err
	}
	all, err := h.app.Artifacts.List(ctx, c.ID, "")
	var begin, contain []string
	for _, a := range all {
		id := string(a.ID)
		switch {
		case strings.HasPrefix(id, value):
			begin = append(begin, id)
		case strings.Contains(strings.ToLower(id+" "+a.Title), strings.ToLower(value)):
			contain = append(contain, id)
		}
	}
	return append(begin, contain...), err
}

func (h *Handler) completeVersion(ctx context.Context, conversation string, id artel.ArtifactID, value string) ([]string, error) {
	c, err := h.conversation(ctx, conversation)
	if err != nil {
		return nil, err
	}
	all, err := h.app.Versions.List(ctx, c.ID, id)
	var out []string
	for _, v := range slices.Backward(all) {
		if n := fmt.Sprint(v.Number); strings.HasPrefix(n, value) {
			out = append(out, n)
		}
	}
	return out, err
}
