// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/model"
)

// A ToolAnswer is the outcome of one tool call. Content is the text for the
// model, or the object if that text is a JSON object.
type ToolAnswer struct {
	OK       bool            `json:"ok"`
	Content  json.RawMessage `json:"content"`
	Metadata map[string]any  `json:"metadata"`
	Parts    artel.Parts     `json:"parts,omitempty"`
}

func (f *server) tools() {
	register(f, f.op(http.MethodGet, "/tools", "list-tools", "List the tools with their JSON Schemas", http.StatusOK),
		func(ctx context.Context, _ *none) (*body[List[model.ToolSpec]], error) {
			return answer(listOf(f.app.Tools.List(ctx), ""), nil)
		})

	register(f, f.op(http.MethodGet, "/tools/servers", "list-tool-servers", "Say how the servers of tools (MCP) are doing", http.StatusOK),
		func(ctx context.Context, _ *none) (*body[List[tool.ServerHealth]], error) {
			servers, err := f.app.Tools.Servers(ctx)
			return answer(listOf(servers, ""), err)
		})

	register(f, f.op(http.MethodPost, "/conversations/{cid}/tools/{name}", "call-tool", "Run one tool outside a run", http.StatusOK, maxBody(textBody)),
		func(ctx context.Context, in *struct {
			ConversationPath
			OnceHeader
			TargetQuery
			Name    string `path:"name"`
			Confirm bool   `query:"confirm" doc:"a user has agreed to this call, which the deployment's permissions set to ask"`
			Body    *json.RawMessage
		},
		) (*body[ToolAnswer], error) {
			c, err := in.id()
			if err != nil {
				return nil, err
			}
			var args json.RawMessage // none are an empty object
			if in.Body != nil {
				args = *in.Body
			}
			return answer(once(ctx, f, in.Key, []any{"tool", c, in.Name, in.TargetQuery, in.Confirm, args}, func() (ToolAnswer, error) {
				result, err := f.app.Tools.Call(ctx, c, in.Name, args, in.target(), in.Confirm)
				if err != nil {
					return ToolAnswer{}, err
				}
				return toolAnswer(in.Name, result)
			}))
		})
}

// toolAnswer converts a result. Only get_artifact answers with an object, and
// only if it shows no text of the artifact.
func toolAnswer(name string, r tool.Result) (ToolAnswer, error) {
	content := json.RawMessage(r.Content)
	if object := name == "get_artifact" && (r.IsError || len(r.Parts) > 0); !object || !json.Valid(content) {
		var err error
		if content, err = json.Marshal(r.Content); err != nil {
			return ToolAnswer{}, err
		}
	}
	metadata := r.Metadata
	if metadata == nil {
		metadata = map[string]any{}
	}
	return ToolAnswer{OK: !r.IsError, Content: content, Metadata: metadata, Parts: r.Parts}, nil
}
