// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/form"
)

// A NewToolResult is the body of POST /conversations/{cid}/tool_results.
type NewToolResult struct {
	Tool    string          `json:"tool" maxLength:"256" doc:"which tool returned it"`
	Content json.RawMessage `json:"content" doc:"any JSON, or a text"`
}

// toolResults registers the intake of results of tools run by other programs.
// The body may be large and mostly media, so it is read as a stream.
func (f *server) toolResults() {
	op := f.op(http.MethodPost, "/conversations/{cid}/tool_results", "take-tool-result", "Take media and what is too long out of a tool's result", http.StatusOK)
	op.Description = "Media become artifacts, whatever their size, and their refs stand in the content. The same content gives the same answer."
	register(f, op, func(ctx context.Context, in *struct {
		ConversationPath
		RawRequest
	},
	) (*body[app.ScrubbedResult], error) {
		id, err := in.id()
		if err != nil {
			return nil, err
		}
		taken, err := f.app.Tools.TakeResult(ctx, id)
		if err != nil {
			return nil, err
		}
		var left bytes.Buffer
		if err := taken.Scrub(ctx, &left, form.Sent(in.request.Body)); err != nil {
			return nil, err
		}
		var result NewToolResult
		if err := decodeStrictly(left.Bytes(), &result); err != nil {
			return nil, err
		}
		return answer(taken.Finish(ctx, result.Tool, result.Content))
	})
	f.describeBody(op, map[string]*huma.MediaType{
		"application/json": {Schema: &huma.Schema{
			Type: huma.TypeObject, Required: []string{"tool", "content"}, AdditionalProperties: false,
			Properties: map[string]*huma.Schema{
				"tool":    {Type: huma.TypeString, Description: "which tool returned it"},
				"content": {Description: "any JSON, or a text"},
			},
		}},
	})
}

// decodeStrictly decodes the body of a result with the same errors as other
// bodies.
func decodeStrictly(b []byte, result *NewToolResult) error {
	var fields map[string]json.RawMessage
	if err := strictJSON.Unmarshal(b, &fields); err != nil {
		return newProblem(http.StatusBadRequest, "malformed", "the body is no JSON object: "+err.Error())
	}
	var wrong []FieldError
	for name := range fields {
		if name != "tool" && name != "content" {
			wrong = append(wrong, FieldError{Pointer: "/" + name, Detail: "there is no such field; want tool and content"})
		}
	}
	if err := json.Unmarshal(fields["tool"], &result.Tool); err != nil || result.Tool == "" {
		wrong = append(wrong, FieldError{Pointer: "/tool", Detail: "want the name of the tool"})
	}
	if result.Content = fields["content"]; result.Content == nil {
		wrong = append(wrong, FieldError{Pointer: "/content", Detail: "want the tool's result: any JSON, or a text"})
	}
	if len(wrong) > 0 {
		p := newProblem(http.StatusUnprocessableEntity, "invalid", "the result is not as it has to be")
		p.Errors = wrong
		return p
	}
	return nil
}
