// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
)

// messages is Anthropic's Messages dialect.
type messages struct{}

func (messages) name() model.Dialect { return model.Anthropic }

func (messages) target(*http.Request) (head, bool) { return head{}, false }

func (messages) payloads(path []string) provider.Encoding { return anthropic.Payloads(path) }

func (messages) scan(text string) layout {
	var l layout
	each(gjson.Get(text, "messages"), func(_, m gjson.Result) bool {
		n := len(l.elements)
		e := element{span: at(m), role: artel.Role(m.Get("role").String())}
		content := m.Get("content")
		if content.Exists() {
			e.content = at(content)
		}
		if content.IsArray() {
			content.ForEach(func(_, block gjson.Result) bool {
				switch block.Get("type").String() {
				case "tool_use":
					e.calls = e.role == artel.RoleAssistant
				case "tool_result":
					e.result, e.insertAt = true, at(block).to
					l.results = append(l.results, messagesResult(&l, block, n))
				default:
					if x, ok := messagesMedium(block); ok {
						x.result, x.element = -1, n
						l.media = append(l.media, x)
					} else if isLibraryPart(block) {
						l.libraryParts = append(l.libraryParts, libraryPart{span: at(block)})
					}
				}
				return true
			})
		}
		l.elements = append(l.elements, e)
		return true
	})
	return l
}

func messagesResult(l *layout, block gjson.Result, n int) result {
	content := block.Get("content")
	r := result{call: artel.CallID(block.Get("tool_use_id").String()), element: n, content: at(content), list: content.IsArray()}
	switch {
	case content.Type == gjson.String:
		r.texts = []span{at(content)}
	case content.IsArray():
		content.ForEach(func(_, part gjson.Result) bool {
			if t := part.Get("text"); t.Type == gjson.String && part.Get("type").String() == "text" {
				r.texts = append(r.texts, at(t))
			}
			if x, ok := messagesMedium(part); ok {
				x.result, x.element = len(l.results), n
				l.media = append(l.media, x)
			} else if isLibraryPart(part) {
				l.libraryParts = append(l.libraryParts, libraryPart{at(part), r.call, true})
			}
			return true
		})
	}
	return r
}

func messagesMedium(block gjson.Result) (medium, bool) {
	m := medium{part: at(block), filename: block.Get("title").String()}
	switch block.Get("type").String() {
	case "image":
		m.accepts = artel.KindImage
	case "document":
		m.accepts = artel.KindDocument
	default:
		return m, false
	}
	source := block.Get("source")
	m.slot = at(source)
	switch source.Get("type").String() {
	case "base64":
		m.value, m.declared = source.Get("data").String(), source.Get("media_type").String()
	case "url":
		m.value = source.Get("url").String()
	case "file":
		m.value, m.id = source.Get("file_id").String(), true
	default:
		return m, false
	}
	return m, true
}

// stripForeign removes thinking that no service of this dialect has signed. If
// a message has nothing else, its thinking becomes text, since no message may
// be empty.
func (messages) stripForeign(text string) string {
	if !strings.Contains(text, anthropic.SignaturePrefix) {
		return text
	}
	var edits []edit
	each(gjson.Get(text, "messages"), func(_, m gjson.Result) bool {
		content := m.Get("content")
		said := ""
		edits = append(edits, removeElements(content, func(block gjson.Result) bool {
			foreign := block.Get("type").String() == "thinking" && strings.HasPrefix(block.Get("signature").String(), anthropic.SignaturePrefix)
			if foreign && said == "" {
				said = strings.TrimSpace(block.Get("thinking").String())
			}
			return foreign
		}, func() string {
			if said == "" {
				said = "(thinking)"
			}
			return messages{}.textPart(said)
		})...)
		return true
	})
	return apply(text, edits)
}

func (messages) textPart(s string) string { return `{"type":"text","text":` + quote(s) + `}` }

func (messages) mediaPart(m artel.Media, _ bool, add func(string) string) string {
	if m.Kind == artel.KindImage {
		return `{"type":"image","source":` + base64Source(m, add) + `}`
	}
	title := ""
	if m.Filename != "" {
		title = `,"title":` + quote(m.Filename)
	}
	return `{"type":"document","source":` + base64Source(m, add) + title + `}`
}

func base64Source(m artel.Media, add func(string) string) string {
	return `{"type":"base64","media_type":` + quote(m.MediaType) + `,"data":"` + add("") + `"}`
}

func (messages) replaceMedia(at medium, m artel.Media, add func(string) string) (edit, bool) {
	if (at.accepts == artel.KindImage) != (m.Kind == artel.KindImage) {
		return edit{}, false
	}
	return edit{at.slot, base64Source(m, add)}, true
}

func (d messages) fillResult(text string, r result, with *string, parts []string) []edit {
	return fillContent(text, r, with, parts, d.textPart)
}

func (messages) userMessage(parts []string) string {
	return `{"role":"user","content":[` + strings.Join(parts, ",") + `]}`
}

func (d messages) prependParts(text string, e element, parts []string) []edit {
	return joinContent(text, e, parts, d.textPart)
}

func (messages) filler() string {
	return `{"role":"assistant","content":` + quote(provider.FillerMessage) + `}`
}

func (messages) decode(ctx context.Context, r io.Reader) (call, error) {
	req, err := anthropic.Decode(ctx, r, provider.DecodeOptions{})
	if err != nil {
		if e, ok := errors.AsType[*anthropic.APIError](err); ok {
			return nil, &fault{status: e.Status, message: e.Message, kind: e.Type}
		}
		return nil, err
	}
	if len(req.Messages) == 0 {
		return nil, invalid("messages: at least one message is required")
	}
	return messagesCall{req}, nil
}

func (messages) errorBody(f *fault) []byte {
	e := anthropic.Refused(f.status, "%s", f.message)
	if f.kind != "" && strings.HasSuffix(f.kind, "_error") {
		e.Type = f.kind
	}
	return e.MarshalBody("")
}

func (d messages) errorEvent(f *fault, _, _ []byte) []byte {
	return append(append([]byte("event: error\ndata: "), d.errorBody(f)...), "\n\n"...)
}

func (messages) inspect(event []byte) eventInfo {
	name := nameOf(event)
	if name == "" { // some servers omit the event's name
		name = gjson.GetBytes(dataOf(event), "type").String()
	}
	switch name {
	case "message_stop":
		return eventInfo{end: true}
	case "error":
		return eventInfo{failed: true}
	case "message_start", "message_delta":
		return eventInfo{usage: true}
	}
	return eventInfo{}
}

func (messages) skippable(run []byte) bool {
	return containsNone(run, "message_", "error", `\u`) // letters of a name may be escaped
}

func (messages) checkBody(body []byte) (artel.Usage, bool) {
	if gjson.GetBytes(body, "type").String() == "error" {
		return artel.Usage{}, false
	}
	return messagesUsage(gjson.GetBytes(body, "usage"), artel.Usage{}), true
}

func (messages) usage(data []byte, before artel.Usage) artel.Usage {
	u := gjson.GetBytes(data, "usage")
	if !u.Exists() {
		u = gjson.GetBytes(data, "message.usage")
	}
	return messagesUsage(u, before)
}

// messagesUsage reads the API's counts, which do not include cached input in
// input_tokens.
func messagesUsage(u gjson.Result, before artel.Usage) artel.Usage {
	if !u.IsObject() {
		return before
	}
	out := before
	out.Calls = 1
	if in := u.Get("input_tokens"); in.Exists() {
		out.CachedTokens = u.Get("cache_read_input_tokens").Int()
		out.StoredTokens = u.Get("cache_creation_input_tokens").Int()
		out.InputTokens = in.Int() + out.CachedTokens + out.StoredTokens
	}
	if n := u.Get("output_tokens"); n.Exists() {
		out.OutputTokens = n.Int()
	}
	return out
}

// messagesCall is a decoded request.
type messagesCall struct{ req *anthropic.Request }

func (c messagesCall) neutral() *model.Request { return c.req.Neutral() }

func (c messagesCall) answer(name string, by artel.ServiceID) anthropic.Answer {
	return anthropic.Answer{ID: "msg_" + randomID(), Model: name, Service: by}
}

func (c messagesCall) body(name string, by artel.ServiceID, deltas iter.Seq2[model.Delta, error]) ([]byte, error) {
	resp, err := c.answer(name, by).Whole(deltas)
	if err != nil {
		return nil, err
	}
	return resp.MarshalBody()
}

func (c messagesCall) stream(name string, by artel.ServiceID, w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
	return c.answer(name, by).Stream(w, flush, deltas)
}
