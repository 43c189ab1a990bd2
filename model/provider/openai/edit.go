// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
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

// editor is the [provider.Editor] of Chat Completions.
type editor struct {
	*provider.BaseEditor
	provider.OpenAIServer
}

// Editor returns the editor of the dialect. It has no state.
var Editor = sync.OnceValue(func() provider.Editor {
	return editor{BaseEditor: &provider.BaseEditor{
		BaseRequests: provider.BaseRequests{
			Name: model.OpenAI, Rule: Payloads,
			Operations: map[string]provider.Operation{"/v1/chat/completions": provider.OperationGenerate},
		},
		BaseParts: provider.BaseParts{
			Text: `{"type":"text","text":`, User: `{"role":"user","content":[`, Assistant: `{"role":"assistant","content":`,
		},
	}}
})

func (editor) Scan(text string) provider.Layout {
	s := provider.Scanner{Layout: provider.Layout{Flat: true}, Text: "text", Medium: chatMedium}
	provider.EachElement(gjson.Get(text, "messages"), func(_, m gjson.Result) bool {
		e := provider.Element{Span: provider.SpanOf(m)}
		var content, id gjson.Result
		m.ForEach(func(key, value gjson.Result) bool {
			switch key.String() {
			case "role":
				e.Role = provider.OpenAIRole(value.String())
			case "content":
				content = value
			case "tool_call_id":
				id = value
			case "tool_calls":
				e.Calls = value.IsArray() && value.Get("#").Int() > 0
			}
			return true
		})
		e.Calls = e.Calls && e.Role == artel.RoleAssistant
		e.Content = provider.SpanOf(content)
		if e.Result = e.Role == artel.RoleTool; e.Result {
			s.Result(id.String(), content)
		} else {
			s.Parts(content)
		}
		s.Elements = append(s.Elements, e)
		return true
	})
	return s.Layout
}

func chatMedium(part gjson.Result) (provider.Medium, bool) {
	m := provider.Medium{Part: provider.SpanOf(part)}
	var slot gjson.Result
	switch part.Get("type").String() {
	case "image_url":
		slot, m.Accepts = part.Get("image_url.url"), artel.KindImage
	case "input_audio":
		slot = part.Get("input_audio.data")
		m.Declared = "audio/wav"
		if part.Get("input_audio.format").String() == "mp3" {
			m.Declared = "audio/mpeg"
		}
	case "file":
		m.Filename = part.Get("file.filename").String()
		if slot = part.Get("file.file_data"); !slot.Exists() {
			slot, m.ID = part.Get("file.file_id"), true
		}
	}
	m.Slot, m.Value = provider.SpanOf(slot), slot.String()
	return m, slot.Type == gjson.String
}

func (editor) SentCalls(text string) []provider.CallText {
	return provider.AppendCalls(nil, gjson.Get(text, "messages"), func(to []provider.CallText, m gjson.Result) []provider.CallText {
		return chatCalls(to, m, "")
	})
}

func (editor) GotCalls(data string) []provider.CallText {
	return provider.AppendCalls(nil, gjson.Get(data, "choices"), func(to []provider.CallText, choice gjson.Result) []provider.CallText {
		to = chatCalls(to, choice.Get("message"), "")
		return chatCalls(to, choice.Get("delta"), nameOf(choice))
	})
}

func (editor) Choices(data string) []string {
	var names []string
	for _, choice := range gjson.Get(data, "choices").Array() {
		names = append(names, nameOf(choice))
	}
	return names
}

func nameOf(choice gjson.Result) string { return choice.Get("index").Raw + "/" }

// chatCalls appends the arguments of calls in a message; choice begins the names of
// the streams of pieces.
func chatCalls(to []provider.CallText, message gjson.Result, choice string) []provider.CallText {
	add := func(v gjson.Result, f provider.TextForm, index string) {
		if v.Type != gjson.String {
			return
		}
		c := provider.CallText{Span: provider.SpanOf(v), Form: f}
		if choice != "" {
			c.Stream, c.Choice = choice+index, choice
		}
		to = append(to, c)
	}
	provider.EachElement(message.Get("tool_calls"), func(_, call gjson.Result) bool {
		add(call.Get("function.arguments"), provider.JSONText, call.Get("index").Raw)
		add(call.Get("custom.input"), provider.PlainText, call.Get("index").Raw)
		return true
	})
	add(message.Get("function_call.arguments"), provider.JSONText, "function_call")
	return to
}

func (editor) MediaPart(m artel.Media, _ bool, add func(string) string) string {
	format := ""
	switch m.MediaType {
	case "audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave":
		format = "wav"
	case "audio/mpeg", "audio/mp3":
		format = "mp3"
	}
	switch {
	case m.Kind == artel.KindImage:
		return `{"type":"image_url","image_url":{"url":"` + add(provider.DataURLPrefix(m)) + `"}}`
	case format != "":
		return `{"type":"input_audio","input_audio":{"data":"` + add("") + `","format":"` + format + `"}}`
	}
	filename := m.Filename
	if filename == "" {
		filename = "document.pdf"
	}
	return `{"type":"file","file":{"filename":` + provider.QuoteJSON(filename) + `,"file_data":"` + add(provider.DataURLPrefix(m)) + `"}}`
}

func (c editor) ReplaceMedia(at provider.Medium, m artel.Media, add func(string) string) (provider.Edit, bool) {
	if at.ID || at.Declared != "" || at.Accepts != "" && at.Accepts != m.Kind || at.Accepts == "" && m.MediaType != "application/pdf" {
		return provider.Edit{}, false
	}
	return provider.Edit{Span: at.Slot, With: `"` + add(provider.DataURLPrefix(m)) + `"`}, true
}

func (editor) AskUsage(text string) (with string, added bool) {
	const wish = `"include_usage":true`
	options := gjson.Get(text, "stream_options")
	value := options.Get("include_usage")
	switch {
	case !options.Exists():
		end := strings.LastIndexByte(text, '}')
		return text[:end] + `,"stream_options":{` + wish + `}` + text[end:], true
	case options.Type == gjson.Null:
		return provider.ApplyEdits(text, []provider.Edit{{Span: provider.SpanOf(options), With: "{" + wish + "}"}}), true
	case !options.IsObject() || value.Type == gjson.True:
		return text, false
	case value.Exists():
		return provider.ApplyEdits(text, []provider.Edit{{Span: provider.SpanOf(value), With: "true"}}), true
	}
	member := wish
	if strings.TrimSpace(options.Raw[1:len(options.Raw)-1]) != "" {
		member += ","
	}
	start := provider.SpanOf(options).From + 1
	return provider.ApplyEdits(text, []provider.Edit{{Span: provider.Span{From: start, To: start}, With: member}}), true
}

func (editor) Decode(ctx context.Context, r io.Reader) (provider.ServerCall, error) {
	return provider.DecodeCall(ctx, r, Decode, provider.OpenAIFault, func(r *Request, name string, _ artel.ServiceID) provider.Answerer {
		return Answer{
			ID: "chatcmpl-" + provider.RandomID(), Model: name, Created: time.Now(), Request: r,
			IncludeUsage: r.StreamOptions != nil && r.StreamOptions.IncludeUsage,
		}
	})
}

func (c editor) ErrorEvent(f provider.Fault, _, _ []byte) []byte {
	return append(append([]byte("data: "), c.ErrorBody(f)...), "\n\n"...)
}

// IsPrelude reports whether a chunk has no choice, or a role alone.
func (editor) IsPrelude(event []byte) bool {
	chunk := gjson.ParseBytes(provider.EventData(event))
	choices := chunk.Get("choices")
	if !choices.IsArray() || provider.IsGiven(chunk.Get("usage")) {
		return false
	}
	empty := true
	choices.ForEach(func(_, choice gjson.Result) bool {
		choice.ForEach(func(key, value gjson.Result) bool {
			switch key.String() {
			case "delta":
				value.ForEach(func(key, value gjson.Result) bool {
					empty = key.String() == "role" || !provider.IsGiven(value)
					return empty
				})
			case "finish_reason", "logprobs", "message", "text":
				empty = !provider.IsGiven(value)
			}
			return empty
		})
		return empty
	})
	return empty
}

func (editor) Inspect(event []byte) provider.EventInfo {
	data := provider.EventData(event)
	if bytes.Equal(data, []byte("[DONE]")) {
		return provider.EventInfo{End: true}
	}
	v := provider.EventInfo{}
	if bytes.Contains(data, []byte(`"error"`)) {
		if e := gjson.GetBytes(data, "error"); provider.IsGiven(e) {
			v.Failed = !gjson.GetBytes(data, "choices.0").Exists()
			v.ErrorBegins = !v.Failed // OpenRouter reports it beside the last choice
		}
	}
	if v.Usage = bytes.Contains(data, []byte(`"usage"`)); v.Usage {
		chunk := gjson.ParseBytes(data)
		choices := chunk.Get("choices")
		v.UsageOnly = choices.IsArray() && choices.Get("#").Int() == 0 && chunk.Get("usage").IsObject()
	}
	if containsReason(data) {
		reason := gjson.GetBytes(data, "choices.0.finish_reason").String()
		v.MayEnd = reason != "" // some servers send no [DONE]
		v.ErrorBegins = v.ErrorBegins || reason == "error"
	}
	return v
}

func (editor) Skippable(run []byte) bool {
	return provider.ContainsNone(run, `[DONE]`, `"error"`, `"usage"`, `_reason":"`, `_reason": "`) // rare first bytes are found fast
}

// containsReason reports whether chunks may have a finish reason; in most it is null.
func containsReason(run []byte) bool {
	const name = `"finish_reason":`
	for {
		n := bytes.Index(run, []byte(name))
		if n < 0 {
			return false
		}
		if run = run[n+len(name):]; bytes.HasPrefix(bytes.TrimPrefix(run, []byte(" ")), []byte(`"`)) {
			return true
		}
	}
}

func (editor) CheckBody(body []byte) (artel.Usage, bool) {
	if e := gjson.GetBytes(body, "error"); e.Exists() && e.Type != gjson.Null && !gjson.GetBytes(body, "choices").Exists() {
		return artel.Usage{}, false
	}
	return chatUsage(body), true
}

func (editor) FilterStop(data []byte) (stopped, empty bool) {
	empty = true
	gjson.GetBytes(data, "choices").ForEach(func(_, choice gjson.Result) bool {
		stopped = stopped || choice.Get("finish_reason").String() == "content_filter"
		empty = empty && isEmptyMessage(choice.Get("message")) && isEmptyMessage(choice.Get("delta"))
		return true
	})
	return stopped, empty
}

// isEmptyMessage reports whether a message, or a delta of one, says nothing.
func isEmptyMessage(m gjson.Result) bool {
	empty := true
	m.ForEach(func(key, value gjson.Result) bool {
		switch key.String() {
		case "content", "refusal", "reasoning_content", "reasoning", "reasoning_details", "tool_calls", "function_call", "audio":
			empty = !provider.IsGiven(value)
		}
		return empty
	})
	return empty
}

func (editor) Usage(data []byte, before artel.Usage) artel.Usage {
	if u := chatUsage(data); u.Calls > 0 {
		return u
	}
	return before
}

func chatUsage(data []byte) artel.Usage {
	u := gjson.GetBytes(data, "usage")
	if !u.IsObject() {
		return artel.Usage{}
	}
	return ReadUsage([]byte(u.Raw))
}

// NameMedia implements [provider.PartWriter]. Chat Completions takes file ids for
// PDF only, and addresses for pictures only.
func (editor) NameMedia(part string, _ artel.Media, name model.Name) (string, bool) {
	done := false
	out := provider.EditMembers(part, func(key string, value gjson.Result) (string, bool) {
		switch {
		case key == "file" && name.By == model.ByFileID:
			done = true
			return `"file":{"file_id":` + provider.QuoteJSON(name.Text) + `}`, true
		case key == "image_url" && name.By == model.ByURL:
			done = true
			if !value.IsObject() {
				return `"image_url":` + provider.QuoteJSON(name.Text), true
			}
			return `"image_url":` + provider.EditMembers(value.Raw, func(key string, _ gjson.Result) (string, bool) {
				return `"url":` + provider.QuoteJSON(name.Text), key == "url"
			}), true
		}
		return "", false
	})
	return out, done
}
