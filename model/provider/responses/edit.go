// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// editor is the [provider.Editor] of Responses.
type editor struct {
	*provider.BaseEditor
	provider.OpenAIServer
}

// Editor returns the editor of the dialect. It has no state.
var Editor = sync.OnceValue(func() provider.Editor {
	return editor{BaseEditor: &provider.BaseEditor{
		BaseRequests: provider.BaseRequests{
			Name: model.OpenAIResponses, Rule: Payloads,
			Operations: map[string]provider.Operation{
				"/v1/responses": provider.OperationGenerate, "/v1/responses/input_tokens": provider.OperationCount,
			},
		},
		BaseParts: provider.BaseParts{
			Text: `{"type":"input_text","text":`, User: `{"type":"message","role":"user","content":[`,
			Assistant: `{"type":"message","role":"assistant","content":`,
		},
	}}
})

func (editor) CountBody(tokens int) any {
	return map[string]any{"object": "response.input_tokens", "input_tokens": tokens}
}

func (editor) Scan(text string) provider.Layout {
	s := provider.Scanner{Layout: provider.Layout{Flat: true}, Text: "input_text", Medium: responsesMedium}
	provider.EachElement(gjson.Get(text, "input"), func(_, item gjson.Result) bool {
		e := provider.Element{Span: provider.SpanOf(item), Role: artel.RoleAssistant}
		kind := item.Get("type").String()
		switch {
		case kind == "message" || kind == "" && item.Get("role").Exists():
			content := item.Get("content")
			e.Role, e.Content = provider.OpenAIRole(item.Get("role").String()), provider.SpanOf(content)
			s.Parts(content)
		case kind == "function_call_output", kind == "custom_tool_call_output":
			e.Role, e.Result = artel.RoleTool, true
			s.Result(item.Get("call_id").String(), item.Get("output"))
		}
		s.Elements = append(s.Elements, e)
		return true
	})
	return s.Layout
}

func responsesMedium(part gjson.Result) (provider.Medium, bool) {
	m := provider.Medium{Part: provider.SpanOf(part)}
	var slots []string
	switch part.Get("type").String() {
	case "input_image":
		m.Accepts, slots = artel.KindImage, []string{"image_url"}
	case "input_file":
		m.Filename, slots = part.Get("filename").String(), []string{"file_data", "file_url"}
	case "input_audio":
		slots, m.Declared = []string{"input_audio.data"}, "audio/wav"
		if part.Get("input_audio.format").String() == "mp3" {
			m.Declared = "audio/mpeg"
		}
	}
	for _, name := range slots {
		if slot := part.Get(name); slot.Type == gjson.String {
			m.Slot, m.Value, m.SlotHasKey = provider.SpanOf(slot), slot.String(), name == "file_url"
			return m, true
		}
	}
	if id := part.Get("file_id"); len(slots) > 0 && id.Type == gjson.String {
		m.Slot, m.Value, m.ID = provider.SpanOf(id), id.String(), true
		return m, true
	}
	return m, false
}

func (editor) SentCalls(text string) []provider.CallText {
	return responsesCalls(gjson.Get(text, "input"))
}

func responsesCalls(items gjson.Result) []provider.CallText {
	return provider.AppendCalls(nil, items, responsesCallOf)
}

func responsesCallOf(to []provider.CallText, item gjson.Result) []provider.CallText {
	var v gjson.Result
	f := provider.JSONValue
	switch item.Get("type").String() {
	case "function_call":
		v, f = item.Get("arguments"), provider.JSONText
	case "custom_tool_call":
		v, f = item.Get("input"), provider.PlainText
	case "local_shell_call", "shell_call":
		v = item.Get("action")
	case "apply_patch_call":
		v = item.Get("operation")
	}
	if !v.Exists() || (v.Type == gjson.String) != (f != provider.JSONValue) {
		return to
	}
	return append(to, provider.CallText{Span: provider.SpanOf(v), Form: f})
}

func (editor) GotCalls(data string) []provider.CallText {
	all := gjson.Parse(data)
	field, f, stream := "", provider.JSONText, ""
	switch all.Get("type").String() {
	case "":
		return responsesCalls(all.Get("output"))
	case "response.completed", "response.incomplete", "response.failed":
		return responsesCalls(all.Get("response.output"))
	case "response.output_item.added", "response.output_item.done":
		return responsesCallOf(nil, all.Get("item"))
	case "response.function_call_arguments.delta":
		field, stream = "delta", all.Get("output_index").Raw+"."
	case "response.function_call_arguments.done":
		field = "arguments"
	case "response.custom_tool_call_input.delta":
		field, f, stream = "delta", provider.PlainText, all.Get("output_index").Raw+"."
	case "response.custom_tool_call_input.done":
		field, f = "input", provider.PlainText
	default:
		return nil
	}
	if v := all.Get(field); v.Type == gjson.String {
		return []provider.CallText{{Span: provider.SpanOf(v), Form: f, Stream: stream}}
	}
	return nil
}

func (editor) IsPing(event []byte) bool { return provider.EventName(event) == "keepalive" }

// StripForeign removes reasoning whose state is not of this dialect.
func (editor) StripForeign(text string) string {
	if !strings.Contains(text, StatePrefix) {
		return text
	}
	return provider.ApplyEdits(text, provider.RemoveElements(gjson.Get(text, "input"), func(item gjson.Result) bool {
		return item.Get("type").String() == "reasoning" && strings.HasPrefix(item.Get("encrypted_content").String(), StatePrefix)
	}, func() string { return "" }))
}

func (editor) MediaPart(m artel.Media, _ bool, add func(string) string) string {
	if m.Kind == artel.KindImage {
		return `{"type":"input_image","image_url":"` + add(provider.DataURLPrefix(m)) + `"}`
	}
	filename := m.Filename
	if filename == "" {
		filename = "document.pdf"
	}
	return `{"type":"input_file","filename":` + provider.QuoteJSON(filename) + `,"file_data":"` + add(provider.DataURLPrefix(m)) + `"}`
}

func (editor) ReplaceMedia(at provider.Medium, m artel.Media, add func(string) string) (provider.Edit, bool) {
	if at.ID || at.SlotHasKey || at.Declared != "" || (at.Accepts == artel.KindImage) != (m.Kind == artel.KindImage) {
		return provider.Edit{}, false
	}
	return provider.Edit{Span: at.Slot, With: `"` + add(provider.DataURLPrefix(m)) + `"`}, true
}

func (editor) Decode(ctx context.Context, r io.Reader) (provider.ServerCall, error) {
	return provider.DecodeCall(ctx, r, Decode, provider.OpenAIFault, func(r *Request, name string, by artel.ServiceID) provider.Answerer {
		return Answer{ID: "resp_" + provider.RandomID(), Model: name, Created: time.Now(), Request: r, Service: by}
	})
}

func (editor) ErrorEvent(f provider.Fault, first, last []byte) []byte {
	before := -1
	if n := gjson.GetBytes(provider.EventData(last), "sequence_number"); n.Exists() {
		before = int(n.Int())
	}
	begun := gjson.GetBytes(provider.EventData(first), "response")
	a := Answer{ID: begun.Get("id").String(), Model: begun.Get("model").String(), Created: time.Unix(begun.Get("created_at").Int(), 0)}
	return a.Fail(before, f.Status, f.Message)
}

func (editor) IsPrelude(event []byte) bool {
	switch provider.EventType(event) {
	case "response.created", "response.queued", "response.in_progress", "keepalive":
		return true
	case "response.output_item.added", "response.output_item.done":
		return isEmptyMessage(gjson.GetBytes(provider.EventData(event), "item"))
	case "response.content_part.added", "response.content_part.done":
		return isEmptyPart(gjson.GetBytes(provider.EventData(event), "part"))
	case "response.output_text.done", "response.refusal.done":
		return isEmptyPart(gjson.ParseBytes(provider.EventData(event)))
	}
	return false
}

func (editor) Inspect(event []byte) provider.EventInfo {
	switch provider.EventType(event) {
	case "response.completed", "response.incomplete":
		return provider.EventInfo{End: true, Usage: true}
	case "response.failed":
		return provider.EventInfo{Failed: true}
	case "error":
		return provider.EventInfo{ErrorBegins: true}
	}
	return provider.EventInfo{}
}

func (editor) Skippable(run []byte) bool {
	return provider.ContainsNone(run, "response.completed", "response.incomplete", "response.failed", "error", `\u`) // letters of a name may be escaped
}

func (d editor) CheckBody(body []byte) (artel.Usage, bool) {
	if e := gjson.GetBytes(body, "error"); e.Exists() && e.Type != gjson.Null && !gjson.GetBytes(body, "output").Exists() {
		return artel.Usage{}, false
	}
	return responsesUsage(gjson.GetBytes(body, "usage"), artel.Usage{}), true
}

func (editor) FilterStop(data []byte) (stopped, empty bool) {
	m := gjson.ParseBytes(data)
	if r := m.Get("response"); r.Exists() {
		m = r
	}
	empty = true
	m.Get("output").ForEach(func(_, item gjson.Result) bool {
		empty = isEmptyMessage(item)
		return empty
	})
	return m.Get("incomplete_details.reason").String() == "content_filter", empty
}

// isEmptyMessage reports whether an item is a message without text.
func isEmptyMessage(item gjson.Result) bool {
	empty := item.Get("type").String() == "message"
	item.Get("content").ForEach(func(_, part gjson.Result) bool {
		empty = empty && isEmptyPart(part)
		return empty
	})
	return empty
}

func isEmptyPart(part gjson.Result) bool {
	return part.Get("text").String() == "" && part.Get("refusal").String() == ""
}

func (editor) Usage(data []byte, before artel.Usage) artel.Usage {
	return responsesUsage(gjson.GetBytes(data, "response.usage"), before)
}

func responsesUsage(u gjson.Result, before artel.Usage) artel.Usage {
	if !u.IsObject() {
		return before
	}
	return ReadUsage([]byte(u.Raw))
}

// NameMedia implements [provider.PartWriter].
func (editor) NameMedia(part string, _ artel.Media, name model.Name) (string, bool) {
	done := false
	out := provider.EditMembers(part, func(key string, _ gjson.Result) (string, bool) {
		switch key {
		case "image_url", "file_data":
			done = true
			if name.By == model.ByURL {
				key = strings.Replace(key, "file_data", "file_url", 1)
				return provider.QuoteJSON(key) + ":" + provider.QuoteJSON(name.Text), true
			}
			return `"file_id":` + provider.QuoteJSON(name.Text), true
		case "filename":
			return "", true // the service knows it, or takes none
		}
		return "", false
	})
	return out, done
}
