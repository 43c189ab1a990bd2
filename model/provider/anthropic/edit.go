// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"context"
	"io"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// editor is the [provider.Editor] of Messages.
type editor struct{ *provider.BaseEditor }

// Editor returns the editor of the dialect. It has no state.
var Editor = sync.OnceValue(func() provider.Editor {
	return editor{&provider.BaseEditor{
		BaseRequests: provider.BaseRequests{
			Name: model.Anthropic, Rule: Payloads,
			Operations: map[string]provider.Operation{
				"/v1/messages": provider.OperationGenerate, "/v1/messages/count_tokens": provider.OperationCount,
			},
		},
		BaseParts: provider.BaseParts{
			Text: `{"type":"text","text":`, User: `{"role":"user","content":[`, Assistant: `{"role":"assistant","content":`,
		},
	}}
})

// ModelBody returns an element of GET /v1/models of Anthropic.
func (editor) ModelBody(s model.Service) any {
	c := s.OnWire().Capabilities
	supports := func(yes bool) map[string]bool { return map[string]bool{"supported": yes} }
	out := map[string]any{
		"type": "model", "id": s.ID, "display_name": s.Name, "created_at": "1970-01-01T00:00:00Z", // unknown
		"capabilities": map[string]any{
			"image_input": supports(c.Takes(artel.CanVision, "image/png")), "pdf_input": supports(c.Takes(artel.CanFile, "application/pdf")),
		},
	}
	if n := c.ContextWindow.Value; n > 0 {
		out["max_input_tokens"] = n
	}
	if n := c.MaxOutput.Value; n > 0 {
		out["max_tokens"] = n
	}
	return out
}

func (d editor) ModelsBody(all []model.Service) any {
	out := map[string]any{"data": provider.EachModel(all, d.ModelBody), "has_more": false, "first_id": nil, "last_id": nil}
	if n := len(all); n > 0 {
		out["first_id"], out["last_id"] = all[0].ID, all[n-1].ID
	}
	return out
}

func (editor) Scan(text string) provider.Layout {
	s := provider.Scanner{Text: "text", Medium: messagesMedium}
	provider.EachElement(gjson.Get(text, "messages"), func(_, m gjson.Result) bool {
		content := m.Get("content")
		e := provider.Element{Span: provider.SpanOf(m), Role: artel.Role(m.Get("role").String()), Content: provider.SpanOf(content)}
		provider.EachElement(content, func(_, block gjson.Result) bool {
			switch block.Get("type").String() {
			case "tool_use":
				e.Calls = e.Role == artel.RoleAssistant
			case "tool_result":
				e.Result, e.InsertAt = true, provider.SpanOf(block).To
				s.Result(block.Get("tool_use_id").String(), block.Get("content"))
			default:
				s.Part(block)
			}
			return true
		})
		s.Elements = append(s.Elements, e)
		return true
	})
	return s.Layout
}

func messagesMedium(block gjson.Result) (provider.Medium, bool) {
	m := provider.Medium{Part: provider.SpanOf(block), Filename: block.Get("title").String()}
	switch block.Get("type").String() {
	case "image":
		m.Accepts = artel.KindImage
	case "document":
		m.Accepts = artel.KindDocument
	default:
		return m, false
	}
	source := block.Get("source")
	m.Slot = provider.SpanOf(source)
	switch source.Get("type").String() {
	case "base64":
		m.Value, m.Declared = source.Get("data").String(), source.Get("media_type").String()
	case "url":
		m.Value = source.Get("url").String()
	case "file":
		m.Value, m.ID = source.Get("file_id").String(), true
	default:
		return m, false
	}
	return m, true
}

func (editor) SentCalls(text string) []provider.CallText {
	return provider.AppendCalls(nil, gjson.Get(text, "messages"), func(to []provider.CallText, m gjson.Result) []provider.CallText {
		return messagesCalls(to, m.Get("content"))
	})
}

func messagesCalls(to []provider.CallText, content gjson.Result) []provider.CallText {
	return provider.AppendCalls(to, content, func(to []provider.CallText, block gjson.Result) []provider.CallText {
		if input := block.Get("input"); input.Exists() && block.Get("type").String() == "tool_use" {
			to = append(to, provider.CallText{Span: provider.SpanOf(input)})
		}
		return to
	})
}

func (editor) GotCalls(data string) []provider.CallText {
	all := gjson.Parse(data)
	switch all.Get("type").String() {
	case "message":
		return messagesCalls(nil, all.Get("content"))
	case "content_block_start":
		if input := all.Get("content_block.input"); input.Exists() {
			return []provider.CallText{{Span: provider.SpanOf(input)}}
		}
	case "content_block_delta":
		if piece := all.Get("delta.partial_json"); piece.Type == gjson.String {
			return []provider.CallText{{Span: provider.SpanOf(piece), Form: provider.JSONText, Stream: all.Get("index").Raw + "."}}
		}
	}
	return nil
}

func (editor) IsPing(event []byte) bool {
	return provider.EventName(event) == "ping" || gjson.GetBytes(provider.EventData(event), "type").String() == "ping"
}

// StripForeign removes thinking that no service of this dialect has signed. If
// a message has nothing else, its thinking becomes text, since no message may
// be empty.
func (d editor) StripForeign(text string) string {
	if !strings.Contains(text, SignaturePrefix) {
		return text
	}
	var edits []provider.Edit
	provider.EachElement(gjson.Get(text, "messages"), func(_, m gjson.Result) bool {
		content := m.Get("content")
		said := ""
		edits = append(edits, provider.RemoveElements(content, func(block gjson.Result) bool {
			foreign := block.Get("type").String() == "thinking" && strings.HasPrefix(block.Get("signature").String(), SignaturePrefix)
			if foreign && said == "" {
				said = strings.TrimSpace(block.Get("thinking").String())
			}
			return foreign
		}, func() string {
			if said == "" {
				said = "(thinking)"
			}
			return d.TextPart(said)
		})...)
		return true
	})
	return provider.ApplyEdits(text, edits)
}

func (editor) MediaPart(m artel.Media, _ bool, add func(string) string) string {
	if m.Kind == artel.KindImage {
		return `{"type":"image","source":` + base64Source(m, add) + `}`
	}
	title := ""
	if m.Filename != "" {
		title = `,"title":` + provider.QuoteJSON(m.Filename)
	}
	return `{"type":"document","source":` + base64Source(m, add) + title + `}`
}

func base64Source(m artel.Media, add func(string) string) string {
	return `{"type":"base64","media_type":` + provider.QuoteJSON(m.MediaType) + `,"data":"` + add("") + `"}`
}

func (editor) ReplaceMedia(at provider.Medium, m artel.Media, add func(string) string) (provider.Edit, bool) {
	if (at.Accepts == artel.KindImage) != (m.Kind == artel.KindImage) {
		return provider.Edit{}, false
	}
	return provider.Edit{Span: at.Slot, With: base64Source(m, add)}, true
}

func (editor) Decode(ctx context.Context, r io.Reader) (provider.ServerCall, error) {
	return provider.DecodeCall(ctx, r, Decode, fault, func(_ *Request, name string, by artel.ServiceID) provider.Answerer {
		return Answer{ID: "msg_" + provider.RandomID(), Model: name, Service: by}
	})
}

func (editor) ErrorBody(f provider.Fault) []byte {
	if f.Call != nil && f.Call.Status == f.Status {
		return ErrorOf(f.Call).MarshalBody("")
	}
	e := Refused(f.Status, "%s", f.Message)
	if f.Kind != "" && strings.HasSuffix(f.Kind, "_error") {
		e.Type = f.Kind
	}
	return e.MarshalBody("")
}

func (editor) IsError(body []byte) bool {
	e := gjson.ParseBytes(body)
	return e.Get("type").String() == "error" && e.Get("error.type").Type == gjson.String && e.Get("error.message").Type == gjson.String
}

func (d editor) ErrorEvent(f provider.Fault, _, _ []byte) []byte {
	return append(append([]byte("event: error\ndata: "), d.ErrorBody(f)...), "\n\n"...)
}

func (editor) KeepAlive() []byte { return []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n") }

// IsPrelude reports whether an event begins the message, is a ping, or begins a
// block without a word of it.
func (editor) IsPrelude(event []byte) bool {
	switch provider.EventType(event) {
	case "message_start", "ping", "content_block_stop":
		return true
	case "content_block_start":
		block := gjson.GetBytes(provider.EventData(event), "content_block")
		kind := block.Get("type").String()
		return (kind == "text" || kind == "thinking") && block.Get(kind).String() == "" && block.Get("signature").String() == ""
	}
	return false
}

func (editor) Inspect(event []byte) provider.EventInfo {
	switch provider.EventType(event) {
	case "message_stop":
		return provider.EventInfo{End: true}
	case "error":
		return provider.EventInfo{Failed: true}
	case "message_start", "message_delta":
		return provider.EventInfo{Usage: true}
	}
	return provider.EventInfo{}
}

func (editor) Skippable(run []byte) bool {
	return provider.ContainsNone(run, "message_", "error", `\u`) // letters of a name may be escaped
}

func (editor) CheckBody(body []byte) (artel.Usage, bool) {
	if gjson.GetBytes(body, "type").String() == "error" {
		return artel.Usage{}, false
	}
	return messagesUsage(gjson.GetBytes(body, "usage"), artel.Usage{}), true
}

func (editor) FilterStop(data []byte) (stopped, empty bool) {
	m := gjson.ParseBytes(data)
	stopped = m.Get("stop_reason").String() == "refusal" || m.Get("delta.stop_reason").String() == "refusal"
	return stopped, m.Get("content.#").Int() == 0
}

func (editor) Usage(data []byte, before artel.Usage) artel.Usage {
	u := gjson.GetBytes(data, "usage")
	if !u.Exists() {
		u = gjson.GetBytes(data, "message.usage")
	}
	return messagesUsage(u, before)
}

func messagesUsage(u gjson.Result, before artel.Usage) artel.Usage {
	if !u.IsObject() {
		return before
	}
	return ReadUsage([]byte(u.Raw), before)
}

// NameMedia implements [provider.PartWriter].
func (editor) NameMedia(part string, _ artel.Media, name model.Name) (string, bool) {
	done := false
	out := provider.EditMembers(part, func(key string, _ gjson.Result) (string, bool) {
		if key != "source" {
			return "", false
		}
		done = true
		if name.By == model.ByURL {
			return `"source":{"type":"url","url":` + provider.QuoteJSON(name.Text) + `}`, true
		}
		return `"source":{"type":"file","file_id":` + provider.QuoteJSON(name.Text) + `}`, true
	})
	return out, done
}
