// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/responses"
)

// responsesAPI is OpenAI's Responses dialect.
type responsesAPI struct{}

func (responsesAPI) name() model.Dialect { return model.OpenAIResponses }

func (responsesAPI) target(*http.Request) (head, bool) { return head{}, false }

func (responsesAPI) payloads(path []string) provider.Encoding { return responses.Payloads(path) }

func (responsesAPI) scan(text string) layout {
	l := layout{flat: true}
	input := gjson.Get(text, "input")
	if !input.IsArray() {
		return l
	}
	input.ForEach(func(_, item gjson.Result) bool {
		n := len(l.elements)
		e := element{span: at(item), role: artel.RoleAssistant}
		kind := item.Get("type").String()
		switch {
		case kind == "message" || kind == "" && item.Get("role").Exists():
			e.role = chatRole(item.Get("role").String())
			content := item.Get("content")
			if content.Exists() {
				e.content = at(content)
			}
			responsesParts(&l, content, -1, n)
		case kind == "function_call_output", kind == "custom_tool_call_output":
			e.role, e.result = artel.RoleTool, true
			output := item.Get("output")
			r := result{call: artel.CallID(item.Get("call_id").String()), element: n, content: at(output), list: output.IsArray()}
			if output.Type == gjson.String {
				r.texts = []span{at(output)}
			}
			l.results = append(l.results, r)
			responsesParts(&l, output, len(l.results)-1, n)
		}
		l.elements = append(l.elements, e)
		return true
	})
	return l
}

// responsesParts scans a list of parts.
func responsesParts(l *layout, list gjson.Result, inResult, n int) {
	if !list.IsArray() {
		return
	}
	list.ForEach(func(_, part gjson.Result) bool {
		if t := part.Get("text"); inResult >= 0 && t.Type == gjson.String && part.Get("type").String() == "input_text" {
			l.results[inResult].texts = append(l.results[inResult].texts, at(t))
		}
		if m, ok := responsesMedium(part); ok {
			m.result, m.element = inResult, n
			l.media = append(l.media, m)
		} else if isLibraryPart(part) {
			o := libraryPart{span: at(part), result: inResult >= 0}
			if o.result {
				o.call = l.results[inResult].call
			}
			l.libraryParts = append(l.libraryParts, o)
		}
		return true
	})
}

func responsesMedium(part gjson.Result) (medium, bool) {
	m := medium{part: at(part)}
	var slots []string
	switch part.Get("type").String() {
	case "input_image":
		m.accepts, slots = artel.KindImage, []string{"image_url"}
	case "input_file":
		m.filename, slots = part.Get("filename").String(), []string{"file_data", "file_url"}
	case "input_audio":
		slots, m.declared = []string{"input_audio.data"}, "audio/wav"
		if part.Get("input_audio.format").String() == "mp3" {
			m.declared = "audio/mpeg"
		}
	}
	for _, name := range slots {
		if slot := part.Get(name); slot.Type == gjson.String {
			m.slot, m.value, m.slotHasKey = at(slot), slot.String(), name == "file_url"
			return m, true
		}
	}
	if id := part.Get("file_id"); len(slots) > 0 && id.Type == gjson.String {
		m.slot, m.value, m.id = at(id), id.String(), true
		return m, true
	}
	return m, false
}

// stripForeign removes reasoning whose state is not of this dialect.
func (responsesAPI) stripForeign(text string) string {
	if !strings.Contains(text, responses.StatePrefix) {
		return text
	}
	return apply(text, removeElements(gjson.Get(text, "input"), func(item gjson.Result) bool {
		return item.Get("type").String() == "reasoning" && strings.HasPrefix(item.Get("encrypted_content").String(), responses.StatePrefix)
	}, func() string { return "" }))
}

func (responsesAPI) textPart(s string) string { return `{"type":"input_text","text":` + quote(s) + `}` }

func (responsesAPI) mediaPart(m artel.Media, _ bool, add func(string) string) string {
	if m.Kind == artel.KindImage {
		return `{"type":"input_image","image_url":"` + add(dataURLPrefix(m)) + `"}`
	}
	filename := m.Filename
	if filename == "" {
		filename = "document.pdf"
	}
	return `{"type":"input_file","filename":` + quote(filename) + `,"file_data":"` + add(dataURLPrefix(m)) + `"}`
}

func (responsesAPI) replaceMedia(at medium, m artel.Media, add func(string) string) (edit, bool) {
	if at.id || at.slotHasKey || at.declared != "" || (at.accepts == artel.KindImage) != (m.Kind == artel.KindImage) {
		return edit{}, false
	}
	return edit{at.slot, `"` + add(dataURLPrefix(m)) + `"`}, true
}

func (d responsesAPI) fillResult(text string, r result, with *string, parts []string) []edit {
	return fillContent(text, r, with, parts, d.textPart)
}

func (responsesAPI) userMessage(parts []string) string {
	return `{"type":"message","role":"user","content":[` + strings.Join(parts, ",") + `]}`
}

func (d responsesAPI) prependParts(text string, e element, parts []string) []edit {
	return joinContent(text, e, parts, d.textPart)
}

func (responsesAPI) filler() string {
	return `{"type":"message","role":"assistant","content":` + quote(provider.FillerMessage) + `}`
}

func (responsesAPI) decode(ctx context.Context, r io.Reader) (call, error) {
	req, err := responses.Decode(ctx, r, provider.DecodeOptions{})
	if err != nil {
		return nil, chatFault(err)
	}
	for field, there := range map[string]bool{
		"previous_response_id": req.PreviousResponse != "", "conversation": len(req.Conversation) > 0 && string(req.Conversation) != "null",
		"prompt": len(req.Prompt) > 0 && string(req.Prompt) != "null", "background": req.Background,
	} {
		if there {
			f := invalid("%s is what only a service that speaks Responses itself can follow; send the whole input.", field)
			f.code, f.param = "unsupported_parameter", field
			return nil, f
		}
	}
	if req.Input.Text == nil && len(req.Input.Items) == 0 {
		f := invalid("Missing required parameter: 'input'.")
		f.code, f.param = "missing_required_parameter", "input"
		return nil, f
	}
	return responsesCall{req}, nil
}

func (responsesAPI) errorBody(f *fault) []byte { return chat{}.errorBody(f) }

func (responsesAPI) errorEvent(f *fault, first, last []byte) []byte {
	before := -1
	if n := gjson.GetBytes(dataOf(last), "sequence_number"); n.Exists() {
		before = int(n.Int())
	}
	begun := gjson.GetBytes(dataOf(first), "response")
	a := responses.Answer{ID: begun.Get("id").String(), Model: begun.Get("model").String(), Created: time.Unix(begun.Get("created_at").Int(), 0)}
	return a.Fail(before, f.message)
}

func (responsesAPI) inspect(event []byte) eventInfo {
	name := nameOf(event)
	if name == "" {
		name = gjson.GetBytes(dataOf(event), "type").String()
	}
	switch name {
	case "response.completed", "response.incomplete":
		return eventInfo{end: true, usage: true}
	case "response.failed":
		return eventInfo{failed: true}
	case "error":
		return eventInfo{errorBegins: true}
	}
	return eventInfo{}
}

func (responsesAPI) skippable(run []byte) bool {
	return containsNone(run, "response.completed", "response.incomplete", "response.failed", "error", `\u`) // letters of a name may be escaped
}

func (d responsesAPI) checkBody(body []byte) (artel.Usage, bool) {
	if e := gjson.GetBytes(body, "error"); e.Exists() && e.Type != gjson.Null && !gjson.GetBytes(body, "output").Exists() {
		return artel.Usage{}, false
	}
	return responsesUsage(gjson.GetBytes(body, "usage"), artel.Usage{}), true
}

func (responsesAPI) usage(data []byte, before artel.Usage) artel.Usage {
	return responsesUsage(gjson.GetBytes(data, "response.usage"), before)
}

func responsesUsage(u gjson.Result, before artel.Usage) artel.Usage {
	if !u.IsObject() {
		return before
	}
	return artel.Usage{
		Calls: 1, InputTokens: u.Get("input_tokens").Int(), OutputTokens: u.Get("output_tokens").Int(),
		CachedTokens:  u.Get("input_tokens_details.cached_tokens").Int(),
		ThoughtTokens: u.Get("output_tokens_details.reasoning_tokens").Int(),
	}
}

// responsesCall is a decoded request.
type responsesCall struct{ req *responses.Request }

func (c responsesCall) neutral() *model.Request { return c.req.Neutral() }

func (c responsesCall) answer(name string, by artel.ServiceID) responses.Answer {
	return responses.Answer{ID: "resp_" + randomID(), Model: name, Created: time.Now(), Request: c.req, Service: by}
}

func (c responsesCall) body(name string, by artel.ServiceID, deltas iter.Seq2[model.Delta, error]) ([]byte, error) {
	return c.answer(name, by).Whole(deltas)
}

func (c responsesCall) stream(name string, by artel.ServiceID, w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
	return c.answer(name, by).Stream(w, flush, deltas)
}
