// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"fmt"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// InputItems returns messages as the items of a response's input, as the API lists them. Media are
// named by their refs. suffix makes the ids of the items: "msg_SUFFIX_i0".
func InputItems(messages []model.Message, suffix string) []any {
	items := []any{}
	id := func(prefix string) string { return fmt.Sprintf("%s_%s_i%d", prefix, suffix, len(items)) }
	for _, m := range messages {
		role, kind := string(m.Role), "input_text"
		if m.Role == artel.RoleAssistant {
			kind = "output_text"
		}
		var content []any
		message := func() {
			if len(content) > 0 {
				items = append(items, object{"type": "message", "id": id("msg"), "status": "completed", "role": role, "content": content})
				content = nil
			}
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case artel.Text:
				part := object{"type": kind, "text": p.Text}
				if kind == "output_text" {
					part = outputText(p.Text)
				}
				content = append(content, part)
			case artel.Media:
				content = append(content, namedMedia(p))
			case artel.Reasoning:
				message()
				if kind, _ := stateOf(p.Opaque); slices.Contains(append(ServiceItems(), "reasoning"), kind) {
					items = append(items, p.Opaque)
					continue
				}
				i := object{"type": "reasoning", "id": id("rs"), "summary": []any{}}
				if p.Text != "" {
					i["summary"] = []any{summary(p.Text)}
				}
				if len(p.Opaque) > 0 {
					i["encrypted_content"] = wrap(foreignState{Service: p.Service, Opaque: p.Opaque})
				}
				items = append(items, i)
			case artel.ToolCall:
				message()
				items = append(items, object{
					"type": "function_call", "id": id("fc"), "status": "completed", "call_id": provider.CallID(p.ID, MaxCallID), "name": p.Name,
					"arguments": provider.SentArguments(p.Arguments),
				})
			case artel.ToolResult:
				message()
				var output any = p.Content
				if len(p.Parts) > 0 {
					list := []any{}
					if p.Content != "" {
						list = append(list, object{"type": "input_text", "text": p.Content})
					}
					for _, media := range artel.MediaOf(p.Parts) {
						list = append(list, namedMedia(media))
					}
					output = list
				}
				items = append(items, object{"type": "function_call_output", "id": id("fco"), "status": "completed", "call_id": provider.CallID(p.CallID, MaxCallID), "output": output})
			}
		}
		message()
	}
	return items
}

// namedMedia returns the part of media that are named by their ref.
func namedMedia(m artel.Media) object {
	if m.Kind == artel.KindImage {
		detail := m.Detail
		if detail == "" {
			detail = "auto"
		}
		return object{"type": "input_image", "image_url": m.Ref.String(), "detail": detail}
	}
	return object{"type": "input_file", "file_url": m.Ref.String(), "filename": m.Filename}
}
