// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/openai"
)

// chat is the Chat Completions dialect.
type chat struct{}

func (chat) name() model.Dialect { return model.OpenAI }

func (chat) target(*http.Request) (head, bool) { return head{}, false }

func (chat) payloads(path []string) provider.Encoding { return openai.Payloads(path) }

func (chat) scan(text string) layout {
	l := layout{flat: true}
	each(gjson.Get(text, "messages"), func(_, m gjson.Result) bool {
		e := element{span: at(m)}
		var content, id gjson.Result
		m.ForEach(func(key, value gjson.Result) bool {
			switch key.String() {
			case "role":
				e.role = chatRole(value.String())
			case "content":
				content = value
			case "tool_call_id":
				id = value
			case "tool_calls":
				e.calls = value.IsArray() && value.Get("#").Int() > 0
			}
			return true
		})
		e.calls = e.calls && e.role == artel.RoleAssistant
		e.result = e.role == artel.RoleTool
		n := len(l.elements)
		inResult := -1
		if e.result {
			inResult = len(l.results)
			l.results = append(l.results, result{call: artel.CallID(id.String()), element: n, content: at(content), list: content.IsArray()})
		}
		if content.Exists() {
			e.content = at(content)
		}
		l.elements = append(l.elements, e)
		switch {
		case content.Type == gjson.String && e.result:
			l.results[inResult].texts = []span{at(content)}
		case content.IsArray():
			content.ForEach(func(_, part gjson.Result) bool {
				if t := part.Get("text"); e.result && t.Type == gjson.String && part.Get("type").String() == "text" {
					l.results[inResult].texts = append(l.results[inResult].texts, at(t))
				}
				if x, ok := chatMedium(part); ok {
					x.result, x.element = inResult, n
					l.media = append(l.media, x)
				} else if isLibraryPart(part) {
					l.libraryParts = append(l.libraryParts, libraryPart{at(part), artel.CallID(id.String()), e.result})
				}
				return true
			})
		}
		return true
	})
	return l
}

func chatRole(role string) artel.Role {
	if role == "developer" {
		return artel.RoleSystem
	}
	return artel.Role(role)
}

func chatMedium(part gjson.Result) (medium, bool) {
	m := medium{part: at(part)}
	var slot gjson.Result
	switch part.Get("type").String() {
	case "image_url":
		slot, m.accepts = part.Get("image_url.url"), artel.KindImage
	case "input_audio":
		slot = part.Get("input_audio.data")
		m.declared = "audio/wav"
		if part.Get("input_audio.format").String() == "mp3" {
			m.declared = "audio/mpeg"
		}
	case "file":
		m.filename = part.Get("file.filename").String()
		if slot = part.Get("file.file_data"); !slot.Exists() {
			slot, m.id = part.Get("file.file_id"), true
		}
	}
	m.slot, m.value = at(slot), slot.String()
	return m, slot.Type == gjson.String
}

func (chat) stripForeign(text string) string { return text }

func (chat) textPart(s string) string { return `{"type":"text","text":` + quote(s) + `}` }

func (chat) mediaPart(m artel.Media, _ bool, add func(string) string) string {
	format := ""
	switch m.MediaType {
	case "audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave":
		format = "wav"
	case "audio/mpeg", "audio/mp3":
		format = "mp3"
	}
	switch {
	case m.Kind == artel.KindImage:
		return `{"type":"image_url","image_url":{"url":"` + add(dataURLPrefix(m)) + `"}}`
	case format != "":
		return `{"type":"input_audio","input_audio":{"data":"` + add("") + `","format":"` + format + `"}}`
	}
	filename := m.Filename
	if filename == "" {
		filename = "document.pdf"
	}
	return `{"type":"file","file":{"filename":` + quote(filename) + `,"file_data":"` + add(dataURLPrefix(m)) + `"}}`
}

func (c chat) replaceMedia(at medium, m artel.Media, add func(string) string) (edit, bool) {
	if at.id || at.declared != "" || at.accepts != "" && at.accepts != m.Kind || at.accepts == "" && m.MediaType != "application/pdf" {
		return edit{}, false
	}
	return edit{at.slot, `"` + add(dataURLPrefix(m)) + `"`}, true
}

func (c chat) fillResult(text string, r result, with *string, parts []string) []edit {
	return fillContent(text, r, with, parts, c.textPart)
}

func (chat) userMessage(parts []string) string {
	return `{"role":"user","content":[` + strings.Join(parts, ",") + `]}`
}

func (c chat) prependParts(text string, e element, parts []string) []edit {
	return joinContent(text, e, parts, c.textPart)
}

func (chat) filler() string {
	return `{"role":"assistant","content":` + quote(provider.FillerMessage) + `}`
}

func (chat) decode(ctx context.Context, r io.Reader) (call, error) {
	req, err := openai.Decode(ctx, r, provider.DecodeOptions{})
	if err != nil {
		return nil, chatFault(err)
	}
	if len(req.Messages) == 0 {
		return nil, &fault{status: http.StatusBadRequest, message: "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.", code: "empty_array", param: "messages"}
	}
	return chatCall{req}, nil
}

// chatFault converts an error of the dialect to one of the gateway.
func chatFault(err error) error {
	if e, ok := errors.AsType[*openai.APIError](err); ok {
		f := &fault{status: e.Status, message: e.Message, kind: e.Type}
		if e.Code != nil {
			f.code = *e.Code
		}
		if e.Param != nil {
			f.param = *e.Param
		}
		return f
	}
	return err
}

func (chat) errorBody(f *fault) []byte {
	e := openai.APIError{Status: f.status, Message: f.message, Type: f.kind}
	if e.Type == "" {
		e.Type = "invalid_request_error"
		switch {
		case f.status == http.StatusTooManyRequests:
			e.Type = "rate_limit_error"
		case f.status >= 500:
			e.Type = "server_error"
		}
	}
	if f.code != "" {
		e.Code = &f.code
	}
	if f.param != "" {
		e.Param = &f.param
	}
	return e.MarshalBody()
}

func (c chat) errorEvent(f *fault, _, _ []byte) []byte {
	return append(append([]byte("data: "), c.errorBody(f)...), "\n\n"...)
}

func (chat) inspect(event []byte) eventInfo {
	data := dataOf(event)
	if bytes.Equal(data, []byte("[DONE]")) {
		return eventInfo{end: true}
	}
	v := eventInfo{}
	if bytes.Contains(data, []byte(`"error"`)) {
		if e := gjson.GetBytes(data, "error"); e.Exists() && e.Type != gjson.Null && !gjson.GetBytes(data, "choices.0").Exists() {
			v.failed = true
		}
	}
	v.usage = bytes.Contains(data, []byte(`"usage"`))
	return v
}

func (chat) skippable(run []byte) bool {
	return containsNone(run, `[DONE]`, `"error"`, `"usage"`)
}

func (chat) checkBody(body []byte) (artel.Usage, bool) {
	if e := gjson.GetBytes(body, "error"); e.Exists() && e.Type != gjson.Null && !gjson.GetBytes(body, "choices").Exists() {
		return artel.Usage{}, false
	}
	return chatUsage(body), true
}

func (chat) usage(data []byte, before artel.Usage) artel.Usage {
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
	return artel.Usage{
		Calls: 1, InputTokens: u.Get("prompt_tokens").Int(), OutputTokens: u.Get("completion_tokens").Int(),
		CachedTokens:  u.Get("prompt_tokens_details.cached_tokens").Int(),
		ThoughtTokens: u.Get("completion_tokens_details.reasoning_tokens").Int(),
	}
}

// chatCall is a decoded request.
type chatCall struct{ req *openai.Request }

func (c chatCall) neutral() *model.Request { return c.req.Neutral() }

func (c chatCall) answer(name string) openai.Answer {
	return openai.Answer{
		ID: "chatcmpl-" + randomID(), Model: name, Created: time.Now(),
		IncludeUsage: c.req.StreamOptions != nil && c.req.StreamOptions.IncludeUsage,
	}
}

func (c chatCall) body(name string, _ artel.ServiceID, deltas iter.Seq2[model.Delta, error]) ([]byte, error) {
	resp, err := c.answer(name).Whole(deltas)
	if err != nil {
		return nil, err
	}
	return marshal(resp)
}

func (c chatCall) stream(name string, _ artel.ServiceID, w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
	return c.answer(name).Stream(w, flush, deltas)
}
