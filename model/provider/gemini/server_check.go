// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/artelhq/artel/model"
)

// Check returns an [*APIError] in the API's words if there is no content, or one has
// a part or a field that [Request.Neutral] cannot convert; nil: everything has a neutral form, or is
// among its Dropped.
func (r *Request) Check() error {
	var wrong []Violation
	for _, v := range r.unknown {
		if inContent(v) {
			wrong = append(wrong, v)
		}
	}
	if len(wrong) > 0 {
		return Violated(wrong)
	}
	if r.SystemInstruction != nil {
		if err := r.SystemInstruction.check("system_instruction"); err != nil {
			return err
		}
	}
	for i, c := range r.Contents {
		if err := c.check(fmt.Sprintf("contents[%d]", i)); err != nil {
			return err
		}
	}
	if len(r.Contents) == 0 {
		return Bad("* GenerateContentRequest.contents: contents is not specified")
	}
	return nil
}

// inContent reports whether an unknown field is in a part of a content.
func inContent(v Violation) bool {
	return strings.Contains(v.Field, "parts[") && (strings.HasPrefix(v.Field, "contents[") || strings.HasPrefix(v.Field, "system_instruction."))
}

func (c *Content) check(at string) error {
	if !slices.Contains([]string{"", "user", "model", "function", "system"}, c.Role) {
		return Bad("Please use a valid role: user, model.")
	}
	for i, p := range c.Parts {
		if p.empty() {
			return Bad("* GenerateContentRequest.%s.parts[%d].data: required oneof field 'data' must have one initialized field\n", at, i)
		}
	}
	return nil
}

// empty reports whether a part has nothing that [Request.Neutral] reads.
func (p *Part) empty() bool {
	return p.Text == nil && p.InlineData == nil && p.FileData == nil && p.FunctionCall == nil && p.FunctionResponse == nil && p.ThoughtSignature == "" && !p.Thought &&
		len(p.ExecutableCode) == 0 && len(p.CodeExecutionResult) == 0 && len(p.ToolCall) == 0 && len(p.ToolResponse) == 0
}

// drop records the tools of the API and the unknown fields, which services of other
// dialects do not get. A call that is demanded of no function is not demanded.
func (r *Request) drop(out *model.Request) {
	out.Dropped = slices.Clip(out.Dropped)
	before := len(out.Dropped)
	for _, t := range r.Tools {
		for _, o := range []struct {
			name string
			raw  json.RawMessage
		}{
			{"googleSearch", t.GoogleSearch},
			{"googleSearchRetrieval", t.GoogleSearchRetrieval},
			{"codeExecution", t.CodeExecution},
			{"urlContext", t.URLContext},
			{"computerUse", t.ComputerUse},
			{"fileSearch", t.FileSearch},
			{"googleMaps", t.GoogleMaps},
			{"mcpServers", t.MCPServers},
		} {
			if len(o.raw) > 0 {
				out.Dropped = append(out.Dropped, model.Drop{Field: "tools." + o.name, Reason: model.NotTranslated})
			}
		}
	}
	if len(out.Dropped) > before && out.Choice.Mode == model.ChooseAny && len(out.Tools) == 0 {
		out.Choice.Mode = model.ChooseAuto
		out.Dropped = append(out.Dropped, model.Drop{Field: "toolConfig", Reason: model.NotTranslated})
	}
	for _, v := range r.unknown {
		if !inContent(v) {
			out.Dropped = append(out.Dropped, model.Drop{Field: strings.TrimPrefix(v.Field+"."+v.name, "."), Reason: model.NotTranslated})
		}
	}
}
